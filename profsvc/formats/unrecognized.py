"""Errors for files of unrecognized formats: what the file is, and a command that makes it readable."""

import re
import shlex

from profsvc.errors import InputError, UnknownFormatError
from profsvc.formats import generic_timeseries
from profsvc.formats.native import characterization, memory_references, phase_marks
from profsvc.formats.parsing.head import head_lines, head_text
from profsvc.formats.parsing.timestamps import epoch_ns
from profsvc.formats.timeseries.labels import UNKNOWN, channel_from_label, unit_of
from profsvc.formats.timeseries.tables.lines import separator_of, split_row
from profsvc.formats.timeseries.tables.time_columns import SPREADSHEET_DAYS, is_numeric, is_spreadsheet_day
from profsvc.specs.files.foreign import foreign_files, foreign_text

MAX_SHOWN_CHARS = 100
MAX_TABLE_LINES, MAX_KNOWN_LINES = 5, 200
# Formats of our own -> sets of columns of which a header has all of one.
OWN_COLUMNS = {
    characterization.NAME: (set(characterization.REQUIRED_COLUMNS),),
    "memory-trace": (set(memory_references.REQUIRED_COLUMNS),),
    phase_marks.NAME: (phase_marks.MARK_COLUMNS, phase_marks.PHASE_COLUMNS),
}
FORMATS_HINT = "list the formats with: profsvc formats"
BINARY_CHARS = re.compile("[\\x00-\\x08\\x0e-\\x1a\\x1c-\\x1f\\ufffd]")  # never in a text, not even in a cut one
# A number with commas: between thousands, or one that marks decimals.
_ONE_NUMBER = re.compile(r"[-+]?[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]*)?|[-+]?(?:[0-9.']*),[0-9]+(?:[eE][-+]?[0-9]+)?")
SQLITE = b"SQLite format 3\0"
UNSUPPORTED_ARCHIVES = {b"\xfd7zXZ\0": "xz", b"BZh": "bzip2", b"PK\x03\x04": "zip", b"7z\xbc\xaf\x27\x1c": "7z"}
"""First bytes of compressed files that are not decompressed here -> name."""
DECOMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")
"""First bytes of files that are decompressed here: where they come out of one, it was compressed twice."""
TAR_PLACE = 257
WORKBOOK = ".xlsx"
# Names in the first bytes of workbooks, which are zip archives.
_WORKBOOK_MARKS = (b"[Content_Types].xml", b"mimetypeapplication/vnd.oasis.opendocument.spreadsheet")
UNSUPPORTED_LOG_HINT = (
    "; for a log with a time, name its columns: --column t=time:s --column P=power:W (or by number: "
    "--column '#1=time:s')"
)

NO_NAMES_HINT = (
    "; its first line has values and no names of columns: if that line was cut off (tail -n +2), upload the file as "
    "the tool wrote it"
)


def is_text(head: bytes) -> bool:
    """Return whether the first bytes of a file can be those of a text."""
    return not BINARY_CHARS.search(head.decode("latin-1"))


def refuse_foreign(head: bytes, name: str | None) -> None:
    """Refuse a file in the private format of a tool; ``head`` are its raw first bytes.

    The name counts only if the bytes are not a text.
    """
    if not head or is_text(head):
        return
    for kind in foreign_files():
        marked = kind.begins and head.startswith(kind.begins)
        marked = marked or (kind.ending == WORKBOOK and any(mark in head for mark in _WORKBOOK_MARKS))
        if (name or "").lower().endswith(kind.ending) or marked:
            stem = (name or "")[: -len(kind.ending)] if (name or "").lower().endswith(kind.ending) else "FILE"
            do = _with_name(kind.do, stem)
            raise InputError(
                f"{name or 'the file'} is {kind.what}, which only its own tool reads; export it and upload that: {do}"
            )


def refuse_archive(head: bytes, name: str | None) -> None:
    """Refuse an archive, and a file that is compressed in a way that is not read; ``head`` are its first bytes.

    Whatever follows looks like lines of an export where an archive only stores its files.
    """
    if error := _archive_error(head, name or "the file"):
        raise error


def _archive_error(head: bytes, file: str) -> UnknownFormatError | None:
    if head[TAR_PLACE:].startswith(b"ustar"):
        return UnknownFormatError(f"unrecognized format: {file} is a tar archive; unpack it and upload its folder")
    packed = next((kind for magic, kind in UNSUPPORTED_ARCHIVES.items() if head.startswith(magic)), None)
    if packed is None or is_text(head):
        return None
    return UnknownFormatError(f"unrecognized format: {file} is compressed with {packed}; decompress it first")


def _with_name(do: str, name: str) -> str:
    """Return what to do with the name of the file."""
    return shlex.quote(name).join(re.split(r"\bFILE\b", do))


def unrecognized_error(head: bytes, name: str | None) -> UnknownFormatError:
    """Return the error for a file of unrecognized format that begins with ``head``."""
    file, text = name or "the file", head_text(head)
    if not text.strip():
        return UnknownFormatError(f"{file} is empty; re-run the export")
    if error := _archive_error(head, file):
        return error
    if head.startswith(SQLITE):
        return _database_error(head, file)
    if head.startswith(DECOMPRESSED):
        return UnknownFormatError(
            f"unrecognized format: {file} is compressed twice; decompress it once and upload that"
        )
    if BINARY_CHARS.search(text):
        return UnknownFormatError(f"unrecognized format: {file} is not a text; {FORMATS_HINT}")
    first = next((line for line in text.splitlines() if line.strip()), "")
    seen = f"begins with {first[:MAX_SHOWN_CHARS]!a}{' ...' if len(first) > MAX_SHOWN_CHARS else ''}"
    if "\r" in text and "\n" not in text:
        turned = f"tr '\\r' '\\n' < {shlex.quote(name or 'FILE')} | profsvc upload -"
        return UnknownFormatError(f"{file} {seen}; its lines end with carriage returns only; convert it: {turned}")
    if kind := foreign_text(text.splitlines()[:MAX_KNOWN_LINES]):
        return UnknownFormatError(f"{file} is {kind.what}, which is not read: {_with_name(kind.do, name or 'FILE')}")
    cut = "" if b"\n" in head else "; it has no line end, so it may be cut"
    return UnknownFormatError(f"unrecognized format: {file} {seen}; {FORMATS_HINT}{_table_hint(head, name)}{cut}")


def _database_error(head: bytes, file: str) -> UnknownFormatError:
    """Return the error for a SQLite database of no known tool; nvprof's may have any name."""
    if b"CUPTI_ACTIVITY_KIND_" in head and b"StringTable" in head:
        nvprof = next(kind for kind in foreign_files() if kind.ending == ".nvprof")
        do = _with_name(nvprof.do.replace("FILE.nvprof", "FILE"), file)
        return UnknownFormatError(f"{file} is {nvprof.what}; export it and upload that: {do}")
    if b"v1_kernel_totals" in head:
        return UnknownFormatError(
            f"{file} is a store of profsvc, not an export; to see its runs: profsvc --store {shlex.quote(file)} runs"
        )
    known = "Nsight Systems, rocprof or rocprofv3"
    return UnknownFormatError(f"{file} is a SQLite database, but not of {known}; {FORMATS_HINT}")


def _table_hint(head: bytes, name: str | None) -> str:
    """Return how a table of numbers can be read; an empty text for other files."""
    lines = [line.rstrip("\r") for line in head_lines(head) if line.strip()]
    if hint := _bare_numbers_hint(lines, name):
        return hint
    if not any(sign in line and re.search(r"[0-9]", line) for line in lines[:MAX_TABLE_LINES] for sign in "\t;,"):
        return ""
    sign = separator_of(lines[0])
    cells, rows = split_row(lines[0], sign), [split_row(line, sign) for line in lines[1:4]]
    if own := next((name for name, all_of in OWN_COLUMNS.items() if _lacks_none(cells, all_of)), None):
        return (
            f"; its columns are those of {own}, whose cells are separated by commas, whose column names are in small "
            f"letters, and whose numbers have a decimal point; see: profsvc formats {own}"
        )
    rows = [row for row in rows if len(row) == len(cells)]
    if any(is_numeric(cell) for cell in cells):
        return f"{NO_NAMES_HINT}{UNSUPPORTED_LOG_HINT}"
    if len(cells) < 2 or not rows:
        return UNSUPPORTED_LOG_HINT
    return _log_hint(cells, rows[0], sign, name)


def _bare_numbers_hint(lines: list[str], name: str | None) -> str:
    """Return how a file of nothing but numbers, with one unit of power or none, can be read; else an empty text."""
    words = [line.split() for line in lines[:MAX_TABLE_LINES]]
    if len({tuple(row[1:]) for row in words}) == 1 and len(words[0]) == 2:
        printed = unit_of(words[0][1])
        words = [row[:1] for row in words] if printed and printed.dimension == "power" else words
    if not words or not all(is_numeric(word) for row in words for word in row) or any("\t" in line for line in lines):
        return ""
    counted = len(words[0]) == 1
    if counted and any("," in row[0] and not _ONE_NUMBER.fullmatch(row[0]) for row in words):
        return "; it has no column names; give its columns by number: --column '#1=time:s' --column '#2=power:W'"
    print_row = "print NR-1, $1" if counted else "$1=$1; print"
    line = f"awk -v OFS=';' '{{{print_row}}}' {shlex.quote(name or 'FILE')} | profsvc upload -"
    why = "count its rows as seconds" if counted else "read its first column as seconds"
    return f"; {why}: {line} --column '#1=time:s' --column '#2=power:W'"


def _log_hint(cells: list[str], row: list[str], sign: str, name: str | None) -> str:
    """Return how a table with the header ``cells`` and the first row ``row`` can be read as a log."""
    clocks = {cell: seen for cell, seen in zip(cells, row, strict=True) if generic_timeseries.is_clock_name(cell)}
    if clock := next((cell for cell, seen in clocks.items() if generic_timeseries.is_time(seen)), None):
        days = (
            SPREADSHEET_DAYS
            if is_spreadsheet_day(clocks[clock]) and not generic_timeseries.names_time_unit(clock)
            else ""
        )
        counts_parts = epoch_ns(clocks[clock]) is not None and epoch_ns(clocks[clock], "s") is None  # ms, us or ns
        tells_unit = generic_timeseries.names_time_unit(clock) or counts_parts
        unit = "" if tells_unit or not is_numeric(clocks[clock]) else ":s"
        return (
            f"; {days}if it is a log, name its time and what it reads: --column {shlex.quote(f'{clock}=time{unit}')} "
            "--column NAME=power:W (or =temperature:C and others, see: profsvc formats timeseries)"
        )
    if clock := next((cell for cell in cells[:2] if cell in clocks), None):
        seen = clocks[clock][:MAX_SHOWN_CHARS]
        return (
            f"; its column {clock!r} has {seen!r}, which is not a supported date or time; write it as YYYY-MM-DD "
            f"hh:mm:ss, or count the rows as seconds: {_row_count_command(sign, cells, row, name)}"
        )
    if generic_timeseries.is_ordinal_name(cells[0]) or len(cells[0]) == 1:
        column = shlex.quote(f"{cells[0]}=time:s")
        hint = f"no column has the name of a time; if {cells[0]!r} is a time in seconds, add: --column {column}"
        return f"; {hint}{UNSUPPORTED_LOG_HINT}"
    if not _columns_with_units(cells, row):
        return UNSUPPORTED_LOG_HINT
    return f"; it has no time column; count the rows as seconds: {_row_count_command(sign, cells, row, name)}"


def _lacks_none(cells: list[str], all_of: tuple[set[str], ...]) -> bool:
    """Tell whether a header has all columns of one of the sets, in letters of any case."""
    return any(columns <= {cell.lower() for cell in cells} for columns in all_of)


def _columns_with_units(cells: list[str], row: list[str]) -> list[str]:
    """Return the options for the columns of numbers whose names have a unit that needs no factor."""
    numbers = [(n, channel_from_label(cell)) for n, cell in enumerate(cells, 2) if is_numeric(row[n - 2])]
    return [
        f"#{n}={one.quantity}:{one.unit}" for n, one in numbers if one.unit not in (UNKNOWN, "1") and one.factor == 1
    ]


def _row_count_command(sign: str, cells: list[str], row: list[str], name: str | None) -> str:
    """Return the command that uses row numbers as time, and maps columns whose names have a unit.

    Where none has one, it maps the first number as a power; the user has to say what it is.
    """
    columns = _columns_with_units(cells, row)
    number = next((n for n, cell in enumerate(row, 2) if is_numeric(cell)), 2)
    columns = columns or [f"#{number}=power:W"]
    options = " ".join(f"--column {shlex.quote(text)}" for text in ("#1=time:s", *columns))
    shown = {"\t": "\\t"}.get(sign, sign)
    return f"awk 'NR>1 {{print NR-2 \"{shown}\" $0}}' {shlex.quote(name or 'FILE')} | profsvc upload - {options}"
