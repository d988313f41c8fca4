"""Timestamps to whole nanoseconds, with their clock: UTC or local time.

A timestamp with a zone, and a count since 1970, are UTC. A timestamp without a zone is local; its nanoseconds are
counted as if it were UTC, but it is never mixed with UTC. A count since 1970 may be in s, ms, us or ns: between 1990
and 2100 the magnitude implies the unit, and other counts are refused.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

UTC = "UTC"
LOCAL = "local time, no zone given"
MAX_NS = 2**62
"""Times in ns stay below it, so that sums and differences of two fit 64 bits."""
SECOND = 1_000_000_000
DAY = 86_400 * SECOND
# Valid seconds since 1970: 1990 to 2100. In this range no count is valid in two units.
MIN_EPOCH_S, MAX_EPOCH_S = 631_152_000, 4_102_444_800
EPOCH_UNITS = {"s": SECOND, "ms": 1_000_000, "us": 1_000, "ns": 1}
FRACTION_DIGITS = 9
# Digits of the seconds since 1970, from 2001 on.
SECOND_DIGITS = 10
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

_TIME = r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})(?:[.,](?P<fraction>[0-9]{1,9}))?"
_ZONE = r" ?(?P<zone>Z|UTC|GMT|[+-][0-9]{2}:?[0-9]{2})?"
_ISO = re.compile(rf"(?P<year>[0-9]{{4}})([-/])(?P<month>[0-9]{{1,2}})\2(?P<day>[0-9]{{1,2}})[ T]{_TIME}{_ZONE}")
_COMPACT = re.compile(rf"(?P<year>[0-9]{{4}})(?P<month>[0-9]{{2}})(?P<day>[0-9]{{2}}) {_TIME}{_ZONE}")
_MONTH_FIRST = re.compile(rf"(?P<month>[0-9]{{2}})-(?P<day>[0-9]{{2}})-(?P<year>[0-9]{{4}}) {_TIME}{_ZONE}")
_CTIME = re.compile(
    rf"[A-Z][a-z]{{2}} (?P<name>[A-Z][a-z]{{2}}) +(?P<day>[0-9]{{1,2}}) {_TIME} (?:(?P<zone>UTC|GMT)|[A-Z]{{2,5}})? ?"
    r"(?P<year>[0-9]{4})"
)
_COUNT = re.compile(r"([0-9]{9,19})(?:\.([0-9]{1,9})[0-9]*)?")
_LAYOUT = re.compile(r"[0-9]{4}([-/])[0-9]{2}\1[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?")


def _nanoseconds(fraction: str | None) -> int:
    return int((fraction or "0").ljust(FRACTION_DIGITS, "0")[:FRACTION_DIGITS])


def epoch_ns(text: str, unit: str | None = None) -> int | None:
    """Return a count since 1970 in ns; without a ``unit`` (s, ms, us, ns) the magnitude implies it.

    >>> epoch_ns("1718369824263312"), epoch_ns("1795180576.3281"), epoch_ns("12345678901")
    (1718369824263312000, 1795180576328100000, None)
    """
    match = _COUNT.fullmatch(text)
    if match is None:
        return None
    for name in [unit] if unit else EPOCH_UNITS:
        scale = EPOCH_UNITS[name]
        if MIN_EPOCH_S * (SECOND // scale) <= int(match[1]) < MAX_EPOCH_S * (SECOND // scale):
            return int(match[1]) * scale + _nanoseconds(match[2]) * scale // SECOND
    return None


def parse_timestamp(text: str, month_first: bool = False) -> tuple[str, int] | None:
    """Return the clock and the ns of a timestamp; None if it is invalid.

    ``month_first`` accepts 01-26-2021, for tools that are known to write the month first.

    >>> parse_timestamp("2026/11/20 13:16:16.215") == (LOCAL, 1795180576215000000)
    True
    >>> parse_timestamp("2024-06-14T14:57:04.263312+02:00")
    ('UTC', 1718369824263312000)
    """
    text = text.strip()
    if (count := epoch_ns(text)) is not None:
        return UTC, count
    match = _ISO.fullmatch(text) or _COMPACT.fullmatch(text) or _CTIME.fullmatch(text)
    if match is None and month_first:
        match = _MONTH_FIRST.fullmatch(text)
    if match is None:
        return None
    parts = match.groupdict()
    if "name" in parts:
        parts["month"] = str(MONTHS.index(parts["name"]) + 1) if parts["name"] in MONTHS else "0"
    hour, minute, second = int(parts["hour"]), int(parts["minute"]), int(parts["second"])
    try:
        days = date(int(parts["year"]), int(parts["month"]), int(parts["day"])).toordinal() - 719_163
    except ValueError:
        return None
    seconds = days * 86_400 + hour * 3600 + minute * 60 + second
    if hour > 23 or minute > 59 or second > 59 or not MIN_EPOCH_S <= seconds < MAX_EPOCH_S:
        return None
    zone = parts["zone"]
    if zone and zone[0] in "+-":
        seconds -= int(zone[0] + "1") * (int(zone[1:3]) * 3600 + int(zone[-2:]) * 60)
    return (UTC if zone else LOCAL), seconds * SECOND + _nanoseconds(parts["fraction"])


def time_of_day_ns(text: str) -> int | None:
    """Return the ns since midnight of a time of day.

    >>> time_of_day_ns("13:16:16"), time_of_day_ns("25:00:00")
    (47776000000000, None)
    """
    match = re.fullmatch(_TIME, text)
    if match is None or int(match["hour"]) > 23 or int(match["minute"]) > 59 or int(match["second"]) > 59:
        return None
    seconds = int(match["hour"]) * 3600 + int(match["minute"]) * 60 + int(match["second"])
    return seconds * SECOND + _nanoseconds(match["fraction"])


def _days(year: Int64s, month: Int64s, day: Int64s) -> tuple[Int64s, Flags]:
    """Return days since 1970 and which dates exist (algorithm of Howard Hinnant)."""
    shifted = year - (month <= 2)
    era, of_era = shifted // 400, shifted % 400
    of_year = (153 * (month + np.where(month > 2, -3, 9)) + 2) // 5 + day - 1
    days = era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    lengths = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
    length = lengths[np.clip(month, 0, 12)] + (leap & (month == 2))
    return days, (month >= 1) & (month <= 12) & (day >= 1) & (day <= length)


def _matrix(cells: Sequence[str], width: int) -> npt.NDArray[np.uint8] | None:
    """Return the characters of ASCII cells of equal width as a matrix; None for other cells."""
    if any(len(cell) != width for cell in cells):
        return None
    try:
        return np.frombuffer("".join(cells).encode("ascii"), np.uint8).reshape(len(cells), width)
    except UnicodeEncodeError:
        return None


def _digits(matrix: npt.NDArray[np.uint8], start: int, stop: int) -> Int64s:
    value = np.zeros(len(matrix), np.int64)
    for place in range(start, stop):
        value *= 10
        value += matrix[:, place] - np.uint8(48)
    return value


def parse_timestamp_matrix(matrix: npt.NDArray[np.uint8]) -> tuple[Int64s, Flags] | None:
    """Parse timestamps such as 2026/11/20 13:16:16.215, one per row of letters; None if they have another layout."""
    first, signs = matrix[0].tobytes().decode("latin-1"), matrix[0]
    if not _LAYOUT.fullmatch(first):
        return None
    is_digit = (signs >= 48) & (signs <= 57)
    good = np.ones(len(matrix), np.bool_)
    for place, digit in enumerate(is_digit.tolist()):
        letters = matrix[:, place]
        good &= letters - np.uint8(48) <= 9 if digit else letters == signs[place]
    same_day = bool((matrix[:, :10] == signs[:10]).all())
    days, exists = _days(*(_digits(matrix[:1] if same_day else matrix, *ends) for ends in ((0, 4), (5, 7), (8, 10))))
    hour, minute, second = (_digits(matrix, place, place + 2) for place in (11, 14, 17))
    seconds = days * 86_400 + hour * 3600 + minute * 60 + second
    good &= exists & (hour < 24) & (minute < 60) & (second < 60) & (seconds >= MIN_EPOCH_S) & (seconds < MAX_EPOCH_S)
    fraction = _digits(matrix, 20, len(first)) * 10 ** (FRACTION_DIGITS - max(0, len(first) - 20))
    return np.where(good, seconds * SECOND + fraction, 0), good


def _parse_calendar_timestamps(cells: Sequence[str]) -> tuple[Int64s, Flags] | None:
    matrix = _matrix(cells, len(cells[0])) if _LAYOUT.fullmatch(cells[0]) else None
    return None if matrix is None else parse_timestamp_matrix(matrix)


def _counts(cells: Sequence[str], unit: str | None) -> tuple[Int64s, Flags] | None:
    """Parse whole counts since 1970 of equal width; None for other cells."""
    width = len(cells[0])
    matrix = _matrix(cells, width) if 9 <= width <= 19 and cells[0].isdigit() else None
    if matrix is None:
        return None
    if not (matrix - np.uint8(48) <= 9).all():
        return None
    values = _digits(matrix, 0, width)
    for name in [unit] if unit else EPOCH_UNITS:
        scale = EPOCH_UNITS[name]
        good: Flags = (values >= MIN_EPOCH_S * (SECOND // scale)) & (values < MAX_EPOCH_S * (SECOND // scale))
        if good.all():
            return values * scale, good
    return None


def _decimal_seconds(cells: Sequence[str], unit: str | None) -> tuple[Int64s, Flags] | None:
    """Parse seconds since 1970 with a fraction of up to 9 digits; None for other cells."""
    width = SECOND_DIGITS + 1 + FRACTION_DIGITS
    if unit not in (None, "s") or cells[0][SECOND_DIGITS : SECOND_DIGITS + 1] != ".":
        return None
    matrix = _matrix([cell.ljust(width, "0") for cell in cells], width)
    if matrix is None or not (matrix[:, SECOND_DIGITS] == ord(".")).all():
        return None
    digits = np.delete(matrix, SECOND_DIGITS, axis=1)
    if not (digits - np.uint8(48) <= 9).all():
        return None
    seconds, fraction = _digits(digits, 0, SECOND_DIGITS), _digits(digits, SECOND_DIGITS, width - 1)
    good: Flags = (seconds >= MIN_EPOCH_S) & (seconds < MAX_EPOCH_S)
    return (seconds * SECOND + fraction, good) if good.all() else None


@dataclass
class TimestampParser:
    """Parses the timestamps of a file; the first valid one decides the clock of all."""

    month_first: bool = False
    unit: str | None = None
    kind: str | None = None
    _slow: Callable[[str], tuple[str, int] | None] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Choose the parser of single timestamps."""
        self._slow = self._counted if self.unit else self._stamped

    def _stamped(self, cell: str) -> tuple[str, int] | None:
        return parse_timestamp(cell, self.month_first)

    def _counted(self, cell: str) -> tuple[str, int] | None:
        count = epoch_ns(cell.strip(), self.unit)
        return None if count is None else (UTC, count)

    def read(self, cells: Sequence[str]) -> tuple[Int64s, Flags]:
        """Return the ns of every timestamp, and which are valid."""
        if not cells:
            return np.zeros(0, np.int64), np.zeros(0, np.bool_)
        fast = None if self.unit else _parse_calendar_timestamps(cells)
        kind = LOCAL if fast else UTC
        fast = fast or _counts(cells, self.unit) or _decimal_seconds(cells, self.unit)
        if fast and self.kind in (None, kind):
            ns, good = fast
            # The others may be timestamps of another layout.
            for place in np.flatnonzero(~good).tolist():
                found = self._slow(cells[place])
                if found is not None and found[0] == kind:
                    ns[place], good[place] = found[1], True
            self.kind = kind if good.any() else self.kind
            return ns, good
        read = [self._slow(cell) for cell in cells]
        self.kind = self.kind or next((found[0] for found in read if found), None)
        good = np.array([found is not None and found[0] == self.kind for found in read], np.bool_)
        return np.array([found[1] if found else 0 for found in read], np.int64), good
