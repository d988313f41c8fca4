"""Exports that a program saved again in another form of CSV, brought back line by line to the form of their tool.

Editors and scripts put blanks after the commas, spreadsheets quote whole lines or each quoted cell once more, pandas
writes the numbers of rows before them or a table in Markdown, R quotes the names and texts of a log, both write tabs
or semicolons between the cells, and launchers of processes write the rank or the time before each line. The cells are
unchanged, so such a file is read as the original. The lines correspond one to one, so every line keeps its number.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import BinaryIO, NamedTuple

from profsvc.formats.parsing.records import split_cells
from profsvc.formats.parsing.stream import read_chunks, stream_of
from profsvc.formats.parsing.text import marked_encoding

# A quoted cell, which is kept, or blanks between a comma and a cell or between a quote and a comma.
_CELL_OR_BLANKS = re.compile(rb'("(?:[^"\n]|"")*")[ \t]*(?=,|\r?\n|$)|(?<=,)[ \t]+(?=\S)')
_WHOLE_LINE = re.compile(rb'"(?:[^"]|"")*"')
_INDEX = re.compile(rb'(?:""|"?Unnamed: 0"?|),(?=.)')
_INDEX_CELL = re.compile(rb'"?[0-9]*"?,')
_QUOTED = re.compile(rb'"[^"\n]*"')
# A line with quoted cells, none of which needs its quotes.
_NEEDLESS_QUOTES = re.compile(rb'(?:"[^",\r\n]*"|[^",\r\n]*)(?:,(?:"[^",\r\n]*"|[^",\r\n]*))*\r?\n?')
# read.csv of R makes names of units: "power.draw [W]" becomes "power.draw..W.", and "fan.speed [%]" "fan.speed....".
_NAME_OF_R = re.compile(rb"(?<=[a-z])\.(?:\.(W|MHz|MiB|KiB|us)|\.\.)\.(?=[,\r\n]|$)")
# The process of a line as Open MPI (--tag-output), srun (--label) and torchrun print it, or the time as ts and kubectl.
_PROCESS = re.compile(
    rb"\[[0-9]{1,9},[0-9]{1,9}\]<std(?:out|err|diag)>:"
    rb"|(?:\[?(?:rank|default) ?[0-9]{1,9}\]?| {0,9}[0-9]{1,9}):(?: |(?=\r?$))"
)
_TIME = re.compile(
    rb"\[[0-9][0-9:., T/+-]{7,30}\] |[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.,]{8,18}(?:Z|[-+][0-9:]{4,6})? "
)
_BAR, _RULE, _CODE = re.compile(rb"(?<!\\)\|"), re.compile(rb":?-+:?"), re.compile(rb"`([^`]*)`")
_STREAM = re.compile(rb"<std[a-z]+>")
MAX_HEADER_LINES, MIN_BLANKS = 200, 3


class Rewriting(NamedTuple):
    """How a file was saved again: in words, the line that tells it, and the line as the tool wrote it."""

    words: str
    is_header: Callable[[bytes], bool]
    undo: Callable[[bytes], bytes]


def without_blanks(line: bytes) -> bytes:
    """Return a line without the blanks after its commas; blanks in quoted cells stay.

    >>> without_blanks(b'"0", "f(int, int)" , 7, "", \\n')
    b'"0","f(int, int)",7,"", \\n'
    """
    if line.count(b'"') % 2:
        return line
    return _CELL_OR_BLANKS.sub(lambda match: match[1] or b"", line)


def without_outer_quotes(line: bytes) -> bytes:
    """Return the content of a line that is one quoted cell; any other line as it is.

    >>> without_outer_quotes(b'"0,""f(int, int)"",7"\\n'), without_outer_quotes(b'"0","1"\\n')
    (b'0,"f(int, int)",7\\n', b'"0","1"\\n')
    """
    bare = line.rstrip(b"\r\n")
    return bare[1:-1].replace(b'""', b'"') + line[len(bare) :] if _WHOLE_LINE.fullmatch(bare) else line


def _is_header_with_blanks(line: bytes) -> bool:
    """Tell whether all commas of a line stand before a blank, as in no line of a tool that quotes its cells."""
    bare = _QUOTED.sub(b"", line)
    return bare.count(b",") >= MIN_BLANKS and bare.count(b",") == bare.count(b", ")


def _without_second_quotes(line: bytes) -> bytes:
    return line.replace(b'"""', b'"')


def with_commas(sign: bytes, line: bytes) -> bytes:
    """Return a line with commas in place of another separator; a line that has commas as it is.

    >>> with_commas(b";", b"2025/06/12 10:01:02.123;71.53 W;30\\n"), with_commas(b";", b"0;71,53 W")
    (b'2025/06/12 10:01:02.123,71.53 W,30\\n', b'0;71,53 W')
    """
    return line.replace(sign, b",") if _is_separated(sign, line) else line


def _is_separated(sign: bytes, line: bytes) -> bool:
    return sign in line and b"," not in line


def _without_index(line: bytes) -> bytes:
    match = _INDEX.match(line) or _INDEX_CELL.match(line)
    return line[match.end() :] if match else line


def without_needless_quotes(line: bytes) -> bytes:
    """Return a line without its quotes if no cell needs them, and the names of a header as nvidia-smi writes them.

    >>> without_needless_quotes(b'"timestamp","power.draw..W.","fan.speed...."\\n')
    b'timestamp,power.draw [W],fan.speed [%]\\n'
    >>> without_needless_quotes(b'"2025/06/12 10:01:02.123"," 71.53 W",30\\n'), without_needless_quotes(b'"1","a, b"')
    (b'2025/06/12 10:01:02.123, 71.53 W,30\\n', b'"1","a, b"')
    """
    if line.count(b'"') % 2 or not _NEEDLESS_QUOTES.fullmatch(line):
        return line
    line = line.replace(b'"', b"")
    return _NAME_OF_R.sub(_with_unit, line) if line[:1].islower() else line


def _with_unit(match: re.Match[bytes]) -> bytes:
    return b" [" + (match[1] or b"%") + b"]"


def _is_quoted_row(line: bytes) -> bool:
    return line.startswith(b'"') and b'","' in line


def _without_row_names(line: bytes) -> bytes:
    return without_needless_quotes(_without_index(line))


def _is_header_of_r(line: bytes) -> bool:
    return line.startswith(b'"","')


def _is_pandas_header(line: bytes) -> bool:
    names = split_cells(line.decode("latin-1"))[1:]
    return bool(_INDEX.match(line)) and len(names) > 1 and all(names)


def without_prefix(line: bytes) -> bytes:
    """Return a line without the process or the time that stands before it.

    >>> without_prefix(b"[1,0]<stdout>:==PROF== a"), without_prefix(b"12: 0.5"), without_prefix(b"12:00:01 0.5")
    (b'==PROF== a', b'0.5', b'12:00:01 0.5')
    """
    match = _PROCESS.match(line.rstrip(b"\n")) or _TIME.match(line)
    return line[match.end() :] if match else line


def processes_of(head: bytes) -> list[bytes]:
    """Return the prefixes of the processes whose lines stand in the head of a file, if each line has one.

    >>> processes_of(b"[1,0]<stdout>:a\\n[1,1]<stdout>:b\\n[1,0]<stdout>:c\\n"), processes_of(b"0: a\\nb\\n")
    ([b'[1,0]<stdout>:', b'[1,1]<stdout>:'], [])
    """
    found = [_PROCESS.match(line) for line in head.splitlines()[:MAX_HEADER_LINES] if line.strip()]
    prefixes = [_STREAM.sub(b"<stdout>", match[0].strip()) for match in found if match]
    return list(dict.fromkeys(prefixes)) if all(found) else []


def has_prefix(head: bytes) -> bool:
    """Tell whether the first line of a file begins with a process or a time."""
    return without_prefix(head[:MAX_HEADER_LINES]) != head[:MAX_HEADER_LINES]


def without_bars(line: bytes) -> bytes:
    """Return a row of a table in Markdown as quoted cells, its rule as an empty line, and any other line as it is.

    >>> without_bars(b"| 0 | `f(int, int)` | |\\n"), without_bars(b"|---|:-:|--:|\\n"), without_bars(b"a | b\\n")
    (b'"0","f(int, int)",""\\n', b'\\n', b'a | b\\n')
    """
    bare = line.strip()
    if not _is_row_of_bars(bare):
        return line
    cells = [cell.strip() for cell in _BAR.split(bare[1:-1])]
    if all(map(_RULE.fullmatch, cells)):
        return b"\n"
    texts = (_CODE.sub(rb"\1", cell).replace(rb"\|", b"|").replace(b'"', b'""') for cell in cells)
    return b",".join(b'"' + text + b'"' for text in texts) + b"\n"


def _is_row_of_bars(line: bytes) -> bool:
    bare = line.strip()
    return len(bare) > 1 and bare.startswith(b"|") and bare.endswith(b"|")


PREFIX = Rewriting("the process or the time before each line", has_prefix, without_prefix)
OF_R = (
    Rewriting("quotes around names and texts", _is_quoted_row, without_needless_quotes),
    Rewriting("row names of R, and quotes around names and texts", _is_header_of_r, _without_row_names),
)
"""Quotes that most readers know themselves: they are undone for logs of boards, whose tools write none."""
SEPARATED = tuple(
    Rewriting(f"{words} between the cells", partial(_is_separated, sign), partial(with_commas, sign))
    for words, sign in (("tabs", b"\t"), ("semicolons", b";"))
)
"""Other separators, which are undone for logs of boards where no line has a comma: it may be that of a number."""
REWRITINGS = (
    Rewriting("blanks after commas", _is_header_with_blanks, without_blanks),
    Rewriting("quotes around each line", lambda line: without_outer_quotes(line) != line, without_outer_quotes),
    Rewriting("quotes around quoted cells", lambda line: b'""","""' in line, _without_second_quotes),
    Rewriting("row numbers in the first column", _is_pandas_header, _without_index),
    Rewriting("a table in Markdown", _is_row_of_bars, without_bars),
    *OF_R,
    *SEPARATED,
    PREFIX,
)
"""The ways in which an export is recognized although another program saved it again."""


def rewritings_of(head: bytes) -> Iterator[tuple[Rewriting, bytes, bytes]]:
    """Yield the ways in which a file that begins with ``head`` may be rewritten.

    With each comes the head before that, and those of its lines that may be headers.
    """
    if (marked_encoding(head) or "").startswith("utf-16"):
        return
    lines = head.splitlines(keepends=True)
    for one in REWRITINGS:
        if headers := [one.undo(line) for line in lines[:MAX_HEADER_LINES] if one.is_header(line)]:
            yield one, b"".join(map(one.undo, lines)), b"".join(headers)


def undone(stream: BinaryIO, one: Rewriting) -> BinaryIO:
    """Return a stream of the lines as their tool wrote them."""

    def lines() -> Iterator[bytes]:
        rest = b""
        for chunk in read_chunks(stream):
            *whole, rest = (rest + chunk).split(b"\n")
            if whole:
                yield b"".join(one.undo(line + b"\n") for line in whole)
        if rest:
            yield one.undo(rest)

    return stream_of(lines())
