"""What the compiled splitter must answer, in plain Python; and rows to ask it about.

Only the standard library is used, so that this runs in an interpreter under sanitizers.
"""

import math
import random
import re
from array import array
from typing import Any, NamedTuple

SKIP, INTEGER, REAL, PLAIN, WHOLE, DECIMAL, CLOCK, TEXT, NUMBERED, VALUE = KINDS = "sirpwdtcnv"
NUMBERS = (INTEGER, REAL, PLAIN, WHOLE, DECIMAL)
CODES = {
    INTEGER: "q",
    REAL: "d",
    PLAIN: "d",
    WHOLE: "q",
    DECIMAL: "q",
    CLOCK: "q",
    TEXT: "i",
    NUMBERED: "i",
    VALUE: "d",
}
EXTRA = {DECIMAL: "b", CLOCK: "i", NUMBERED: "q"}
Column = tuple[str, bool, float, float, float, str]
MAX_WHOLE = 9e18
MAX_STRICT = 20


class Question(NamedTuple):
    """A block, and how it is to be read; a column is its kind, rounded, factor, least, most and suffix."""

    block: bytes
    separator: str
    decimal: str
    blanks: bool
    columns: tuple[Column, ...]
    quoted: bool = False
    least: int = 0  # all cells


class OddError(Exception):
    """A row is not plain."""


def _plain(condition: bool) -> None:
    if not condition:
        raise OddError


def _number(text: str, column: Column, decimal: str) -> tuple[Any, bool, int]:
    """Return value, missing and decimals."""
    kind, rounded, factor, least, most, suffix = column
    if not text:
        return 0, True, 0
    _plain(text.endswith(suffix))
    text = text.removesuffix(suffix)
    if kind in (PLAIN, DECIMAL):
        bare = text.removeprefix("-") if kind == DECIMAL and least < 0 else text
        _plain(len(bare) <= MAX_STRICT and bool(re.fullmatch(r"[0-9](.*[0-9])?", bare)))
    fraction = rf"(?:{re.escape(decimal)}([0-9]*))?" if decimal and kind != INTEGER else "()"
    exponent = "(?:[eE]([-+]?[0-9]+))?" if kind in (REAL, WHOLE) else "()"
    match = re.fullmatch(rf"(-?)([0-9]*){fraction}{exponent}", text)
    _plain(match is not None)
    assert match is not None
    sign, whole, part, power = match[1], match[2], match[3] or "", match[4] or "0"
    _plain(bool(whole or part) and len(part) <= 9999 and abs(int(power)) <= 9999)
    digits = int(whole + part or "0")
    _plain(len(str(digits)) <= 19)
    if kind in (INTEGER, DECIMAL):
        _plain(digits < 2**63 and len(part) <= 127)
        value = -digits if sign else digits
        _plain(least <= float(value) <= most)
        return value, False, len(part)
    shift = int(power) - len(part)
    bare = digits
    while bare > 2**53 and bare % 10 == 0:
        bare, shift = bare // 10, shift + 1
    _plain(bare <= 2**53 and (bare == 0 or abs(shift) <= 22))
    real = float(f"{sign}{digits}e{int(power) - len(part)}") * factor
    if rounded and 0 <= real < 2**33:
        real = float(round(real * 1e6)) / 1e6
    _plain(least <= real <= most)
    return (round(real) if kind == WHOLE else real), False, 0


def _clock(text: str) -> tuple[int, bool, str]:
    """Return the ns of the day, and the date."""
    match = re.fullmatch(r"(?:([-/.0-9]+)[ T])?([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]{1,9}))?", text)
    _plain(match is not None)
    assert match is not None
    hours, minutes, seconds = map(int, match.group(2, 3, 4))
    _plain(hours < 24 and minutes < 60 and seconds < 60)
    return ((hours * 60 + minutes) * 60 + seconds) * 10**9 + int((match[5] or "").ljust(9, "0")), True, match[1] or ""


def _text(text: str, kind: str) -> tuple[str, bool, int]:
    """Return the text to be coded, whether it has no number, and its number."""
    if kind == NUMBERED and not text.startswith("[") and (match := re.search(r"(?<=.) \[([0-9]+)\](\)?)\Z", text)):
        _plain(len(match[1]) <= 18)
        return text if match[2] else text[: match.start()], False, int(match[1])
    if kind == NUMBERED and not text.startswith("[") and (match := re.search(r"([0-9]+)\]\)?\Z", text)):
        _plain(len(match[1]) <= 18)
    return text, True, 0


def _value(text: str, decimal: str) -> float | None:
    """Return the number of a cell; None where it is not a plain one."""
    try:
        digits = text.removeprefix("-")
        _plain(bool(digits) and len(text) <= MAX_STRICT)
        number, *_ = _number(digits, (PLAIN, False, 1.0, -math.inf, math.inf, ""), decimal)
    except OddError:
        return None
    return -number if text[0] == "-" else number


def answer(question: Question) -> list[list[tuple[Any, bool, int]]]:
    """Return the cells of the plain rows at the beginning of a block."""
    separator = re.escape(question.separator)
    blank = " ?" if question.blanks else ""
    text = question.block.decode("latin-1")
    rows: list[list[tuple[Any, bool, int]]] = []
    place = 0
    if not text.endswith("\n"):
        return []
    # A tab is the only control character that a cell may hold.
    tab = "" if question.separator == "\t" else r"|\t"
    cell = re.compile(rf'{blank}(?:"((?:[^\x00-\x1f"]|\t)*)"|((?:[^\x00-\x1f"{separator}]{tab})*))')
    end = re.compile(r"\r?\n")
    while place < len(text):
        row = []
        try:
            for number, column in enumerate(question.columns):
                match = cell.match(text, place)
                _plain(match is not None)
                assert match is not None
                quoted = match[1] is not None
                _plain(quoted or not question.quoted)
                found = match[1] if quoted else match[2]
                decimal = question.decimal if quoted or question.decimal != question.separator else ""
                if column[0] == CLOCK:
                    row.append(_clock(found))
                elif column[0] in NUMBERS:
                    row.append(_number(found, column, decimal))
                else:
                    _plain(quoted or found == found.strip(" \t"))
                    span = match.span(1 if quoted else 2)
                    row.append((_value(found, decimal), True, span) if column[0] == VALUE else _text(found, column[0]))
                place = match.end()
                follows = text[place : place + 1] == question.separator
                if number + 1 >= (question.least or len(question.columns)) and not follows:
                    break
                if number + 1 < len(question.columns):
                    _plain(follows)
                    place += 1
            match = end.match(text, place)
            _plain(match is not None)
            assert match is not None
            place = match.end()
        except OddError:
            break
        rows.append(row)
    return rows


def compiled(module: Any, question: Question) -> list[list[tuple[Any, bool, int]]]:
    """Return the same from the compiled module, whose buffers have just the room that they need."""
    rows = module.count_lines(question.block)
    assert rows == question.block.count(b"\n")

    def buffer(code: str | None) -> Any:
        return None if code is None else array(code, bytes(rows * array(code).itemsize))

    kinds = [column[0] for column in question.columns]
    values = [buffer(CODES.get(kind)) for kind in kinds]
    missing = [buffer("B" if kind in (*NUMBERS, NUMBERED) else None) for kind in kinds]
    extra = [array("i", bytes(8 * rows)) if kind == VALUE else buffer(EXTRA.get(kind)) for kind in kinds]
    columns = tuple(
        (*column, *buffers) for column, *buffers in zip(question.columns, values, missing, extra, strict=True)
    )
    try:
        taken, texts, stopped = module.split(
            *(question.block, question.separator, question.decimal, question.blanks, question.quoted),
            *(question.least or len(columns), rows, columns),
        )
    except UnicodeDecodeError:
        return []
    assert taken <= rows
    assert -1 <= stopped < len(kinds)

    def cell(at: int, kind: str, row: int) -> tuple[Any, bool, Any]:
        if kind == VALUE:
            value = values[at][row]
            return value if value == value else None, True, tuple(extra[at][2 * row : 2 * row + 2])
        return (
            texts[at][values[at][row]] if kind in (TEXT, NUMBERED) else values[at][row] if kind != SKIP else None,
            bool(missing[at][row]) if missing[at] is not None else True,
            0 if extra[at] is None else texts[at][extra[at][row]] if kind == CLOCK else extra[at][row],
        )

    return [[cell(at, kind, row) for at, kind in enumerate(kinds)] for row in range(taken)]


def differences(module: Any, question: Question) -> str:
    """Return where the module and this oracle differ; nothing where they agree."""
    try:
        question.block.decode()
    except UnicodeDecodeError:
        compiled(module, question)  # it must not fail, but may stop anywhere
        return ""
    found, expected = compiled(module, question), answer(question)
    if len(found) != len(expected):
        return f"{len(found)} rows instead of {len(expected)}"
    for number, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        for column, mine, other in zip(question.columns, ours, theirs, strict=False):
            value = other[0].encode("latin-1").decode() if isinstance(other[0], str) else other[0]
            if column[0] == SKIP:
                continue
            if (mine[0], mine[2]) != (value, other[2]) or (column[0] != TEXT and mine[1] != other[1]):
                return f"row {number}: {mine} instead of {(value, *other[1:])}"
    return ""


_NUMBERS = (
    "0", "7", "12", "1.5", "0.000001", "345.123456789", "1,5", "-3", "-0", "1e5", "2.5E-3", "007", ".5", "5.",
    "9007199254740993", "9007199254740992", "123456789012345678", "9223372036854775807", "9223372036854775808",
    "1234567890123456789", "99999999999999999999",
    "1e22", "1e23", "1e-22", "1e9999", "1e99999", "0e99", "", "-", ".", "-.", "+1", "nan", "0x10", " 1", "1 ", "1_0",
    "1'000", "1,234.5", "18446744073709551616", "0.1234567890123456789", "1.000000000000000000", "12345678",
    "123456789", "1234567812345678", "00000000000000000000001", "8589.9345921", "2147483.6475",
)  # fmt: skip
_TEXTS = (
    "", "a", "saxpy(float*, int) [123]", "cudaLaunch (saxpy(int) [12])", "[CUDA memcpy HtoD]", "x [1", "x [1]", " x",
    "x ", "a\tb", 'a"b', "x [1234567890123456789]", "x[12]", " [12]", "\xe4 [7]", "name with a long tail of words",
    "a,b", "a;b", "\x0b", "12345678", "x [12]y", "[12])", "x [12])", "\u4e2d\u6587",
)  # fmt: skip
_PLAIN_TEXTS = (
    "", "a", "saxpy(float*) [123]", "cudaLaunch (saxpy(int) [12])", "[CUDA memcpy HtoD]", "x[12]", "\xe4",
)  # fmt: skip
_CLOCKS = (
    "2026/03/01 12:34:56.789",
    "2026/03/01 12:34:56.789",
    "2026-03-02T00:00:00",
    "1.2.26 9:05:01,25",
    "23:59:59.999999999",
)
_ODD_CLOCKS = (
    "24:00:00", "12:60:00", "12:00:60", "12:00", "12:0:00", "T12:00:00", " 12:00:00", "2026/03/01  12:00:00",
    "12:00:00.", "12:00:00.0123456789", "2026/03/01 12:00:00 PM", "2026/03/01", "1.2:03:04", "123:00:00", "x 1:00:00",
    "W", " W",
)  # fmt: skip
_SIGNS = (
    b",", b";", b"\t", b'"', b"\n", b"\r", b"\r\n", b" ", b"0", b"9", b".", b"-", b"e", b"[", b"]", b"\x00", b"\xff",
    b"\xc3", b"\x7f",
)  # fmt: skip


def _cell(draw: random.Random, kind: str, odd: bool) -> str:
    """Return a cell of a column, which is plain unless ``odd``."""
    if odd:
        return draw.choice(_NUMBERS + _TEXTS + _CLOCKS + _ODD_CLOCKS)
    if kind in (INTEGER, DECIMAL):
        return draw.choice(("", str(draw.randrange(10 ** draw.randrange(1, 20)))))
    if kind == CLOCK:
        return draw.choice(_CLOCKS)
    if kind in (REAL, PLAIN, WHOLE, VALUE):
        number = f"{draw.random() * 10 ** draw.randrange(-3, 6):.{draw.randrange(9)}f}"
        return draw.choice(
            ("", number, number, number if kind in (PLAIN, VALUE) else f"{number}e{draw.randrange(-3, 4)}")
        )
    return draw.choice(_PLAIN_TEXTS) if draw.random() < 0.8 else f"kernel<{draw.randrange(300)}> [{draw.randrange(99)}]"


def question(draw: random.Random) -> Question:
    """Return a block of rows, most of them plain, and how it is to be read."""
    separator, decimal = draw.choice((",.", ",.", ",.", ";,", ";.", "\t.", " .", ",,"))
    columns = []
    for _ in range(draw.choice((1, 2, 3, 5, 9))):
        kind = draw.choice(KINDS)
        least = 0.0 if kind == WHOLE else draw.choice((-math.inf, -math.inf, 0.0))
        most = MAX_WHOLE if kind == WHOLE else draw.choice((math.inf, math.inf, math.inf, 1e6))
        factor = draw.choice((1.0, 1.0, 1e3, 1e9, 1024.0, 1e-3))
        suffix = draw.choice(("", "", "W", "%" if separator == " " else " %"))
        columns.append((kind, draw.random() < 0.3, factor, least, most, suffix))
    least, quoted = len(columns), draw.random() < 0.2
    columns += draw.choice((0, 0, 1, 3)) * [(SKIP, False, 1.0, 0.0, 0.0, "")]
    lines, oddness = [], draw.choice((0, 0, 0.001, 0.02))
    for _ in range(draw.choice((0, 1, 3, 20, 200))):
        cells = []
        for kind, *_, suffix in columns:
            cell = _cell(draw, kind, draw.random() < oddness)
            if kind in (REAL, PLAIN, WHOLE, VALUE):
                cell = cell.replace(".", decimal)
            if kind in NUMBERS and cell and draw.random() >= oddness:
                cell += suffix
            is_quoted = separator in cell or (draw.random() > oddness if quoted else draw.random() < 0.4)
            cells.append(f'"{cell}"' if is_quoted else cell)
        del cells[draw.randrange(least, len(cells) + 1) if draw.random() >= oddness else 0 :]
        lines.append(separator.join(cells) + draw.choice(("\n", "\n", "\n", "\r\n")))
    block = "".join(lines).encode()
    for _ in range(draw.choice((0, 0, 0, 1, 3))):
        at = draw.randrange(len(block) + 1)
        block = block[:at] + draw.choice(_SIGNS) + block[at + draw.choice((0, 1, 5)) :]
    if draw.random() < 0.05:
        block = draw.randbytes(draw.randrange(200))
    return Question(block, separator, decimal, draw.random() < 0.3, tuple(columns), quoted, least)
