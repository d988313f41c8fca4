"""What is said of a file that no reader knows: what it is, where that can be told, and the line that makes it read."""

import re
import shlex

from profsvc.errors import InputError, UnknownFormatError
from profsvc.formats import timeseries
from profsvc.formats.head import head_lines, head_text
from profsvc.formats.meter_lines import sign_of, split_row
from profsvc.formats.meter_time import is_numeric
from profsvc.formats.readings import UNKNOWN, labelled
from profsvc.specs.foreign import foreign_files

SHOWN = 100
TABLE_LINES = 5
HOW = "profsvc formats lists the formats and how to make each"
NO_TEXT = re.compile("[\\x00-\\x08\\x0e-\\x1a\\x1c-\\x1f\\ufffd]")  # what a text holds none of, cut or whole
PACKED = {b"\xfd7zXZ\0": "xz", b"BZh": "bzip2", b"PK\x03\x04": "zip", b"7z\xbc\xaf\x27\x1c": "7z"}
"""How files begin that hold others and are not unpacked here -> what they are."""
LOG = (
    "; a log with a time is read where its columns are named (--column t=time:s --column P=power:W), or their places "
    "(--column '#1=time:s')"
)
TURBOSTAT = (
    "turbostat writes no time unless it is told to; record again with: turbostat --quiet --Summary --interval 1 "
    "--enable Time_Of_Day_Seconds --show Time_Of_Day_Seconds,PkgWatt,RAMWatt,PkgTmp --out FILE"
)


def refuse_foreign(head: bytes, name: str | None) -> None:
    """Refuse a file that only the tool that wrote it reads; ``head`` are its first bytes as they came.

    A name counts where the bytes are no text; without a name the bytes alone do.
    """
    if not head or not NO_TEXT.search(head.decode("latin-1")):
        return
    for kind in foreign_files():
        if (name or "").lower().endswith(kind.ending) or (kind.begins and head.startswith(kind.begins)):
            stem = (name or "")[: -len(kind.ending)] if (name or "").lower().endswith(kind.ending) else "FILE"
            do = re.sub(r"\bFILE\b", lambda _, stem=stem: shlex.quote(stem), kind.do)  # type: ignore[misc]
            said = f"{name or 'it'} is {kind.what}, which its own tool alone reads"
            raise InputError(f"{said}; do this, and upload what it makes: {do}")


def refusal(head: bytes, name: str | None) -> UnknownFormatError:
    """Return the error that no reader knows a file that begins with ``head``."""
    file, text = name or "the file", head_text(head)
    if not text.strip():
        return UnknownFormatError(f"{file} is empty: there is nothing to read; make it again")
    if packed := next((kind for magic, kind in PACKED.items() if head.startswith(magic)), None):
        return UnknownFormatError(f"{file} is something which no reader knows; unpack it from {packed} first")
    if NO_TEXT.search(text):
        return UnknownFormatError(f"{file} is no text, and something which no reader knows; {HOW}")
    first = next((line for line in text.splitlines() if line.strip()), "")
    seen = f"begins with {first[:SHOWN]!a}{' ...' if len(first) > SHOWN else ''}"
    if "\r" in text and "\n" not in text:
        turned = f"tr '\\r' '\\n' < {shlex.quote(name or 'FILE')} | profsvc upload -"
        return UnknownFormatError(f"{file} {seen}; its lines end with carriage returns alone: {turned}")
    cut = "" if b"\n" in head else "; it has no end of line, so it may be cut"
    return UnknownFormatError(f"{file} {seen}, which no reader knows; {HOW}{_of_table(head, name)}{cut}")


def _of_table(head: bytes, name: str | None) -> str:
    """Say how a table of numbers can be read after all; nothing of what is none."""
    lines = [line.rstrip("\r") for line in head_lines(head) if line.strip()]
    if any("PkgWatt" in line or "Bzy_MHz" in line for line in lines[:200]):
        return f"; {TURBOSTAT}"
    words = [line.split() for line in lines[:TABLE_LINES]]
    if words and all(is_numeric(word) for row in words for word in row) and not any("\t" in line for line in lines):
        number = "NR-1, " if len(words[0]) == 1 else ""
        line = f"awk -v OFS=';' '{{$1=$1; print {number}$0}}' {shlex.quote(name or 'FILE')} | profsvc upload -"
        why = "its rows, here one a second" if number else "its first column as seconds"
        return f"; read {why}: {line} --column '#1=time:s' --column '#2=power:W'"
    if not any(sign in line and re.search(r"[0-9]", line) for line in lines[:TABLE_LINES] for sign in "\t;,"):
        return ""
    sign = sign_of(lines[0])
    cells, rows = split_row(lines[0], sign), [split_row(line, sign) for line in lines[1:4]]
    rows = [row for row in rows if len(row) == len(cells)]
    if len(cells) < 2 or not rows or any(is_numeric(cell) for cell in cells):
        return LOG
    if any(timeseries.is_clock(cell) for cell in cells[:2]):
        clock = next(cell for cell in cells[:2] if timeseries.is_clock(cell))
        seen = rows[0][cells.index(clock)][:40]
        return (
            f"; its column {clock!r} holds {seen!r}, which is no date or time that is read: write it as YYYY-MM-DD "
            f"hh:mm:ss, or count the rows instead, here one a second: {_counting(sign, cells, rows[0], name)}"
        )
    if timeseries.is_ordinal(cells[0]) or len(cells[0]) == 1:
        column = shlex.quote(f"{cells[0]}=time:s")
        return f"; no column is called a time; where {cells[0]!r} is one, in seconds, say so: --column {column}{LOG}"
    return f"; no column is a time; count the rows, here one a second: {_counting(sign, cells, rows[0], name)}"


def _counting(sign: str, cells: list[str], row: list[str], name: str | None) -> str:
    """Return the line that gives the rows of a table a time by their number, and names what columns say themselves."""
    known = [(n, labelled(cell)) for n, cell in enumerate(cells, 2) if is_numeric(row[n - 2])]
    told = [f"#{n}={one.quantity}:{one.unit}" for n, one in known if one.unit not in (UNKNOWN, "1") and one.factor == 1]
    told = told or [f"#{n}=power:W" for n, _ in known[:1]]
    asked = " ".join(f"--column {shlex.quote(text)}" for text in ("#1=time:s", *told))
    shown = {"\t": "\\t"}.get(sign, sign)
    return f"awk 'NR>1 {{print NR-2 \"{shown}\" $0}}' {shlex.quote(name or 'FILE')} | profsvc upload - {asked}"
