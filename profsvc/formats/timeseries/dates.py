"""Timestamps of meters: dates in any order, times of day and elapsed seconds.

``01/02/2024`` is the 1st of February or the 2nd of January: the order of the fields is a property of the file.
`DateOrderEvidence` is shown every date; its `decide` gives the order that all of them allow, or refuses the file.
A clock without a zone is local: it says nothing about UTC.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import NamedTuple

import numpy as np

from profsvc.errors import BrokenInputError
from profsvc.formats.parsing.timestamps import (
    DAY,
    EPOCH_UNITS,
    LOCAL,
    MAX_EPOCH_S,
    MAX_NS,
    MIN_EPOCH_S,
    MONTHS,
    SECOND,
    UTC,
    Int64s,
)
from profsvc.formats.parsing.zone_letters import APPLIED_LETTERS, NAMED_ZONE, ZONE_HOURS

ELAPSED = "elapsed"
YEARS = range(1900, 2101)
MAX_MEMO_DATES = 1 << 12
DATE_ORDERS = {"ymd": (0, 1, 2), "dmy": (2, 1, 0), "mdy": (2, 0, 1)}
_UNIX_DAY = date(1970, 1, 1).toordinal()

_DATE = re.compile(r"([0-9]{1,4})([-/.])([0-9]{1,2})\2([0-9]{1,4})")
TIME_OF_DAY = re.compile(
    # HWiNFO prints 9:5:1.752 for five minutes past nine.
    r"(?:T|[ ,]+|^)([0-9]{1,5}):([0-9]{2}|[0-9](?=:))(?::([0-9]{1,2})(?:[.,]([0-9]{1,30})|:([0-9]{3}))?)?"
    # Spanish and newer American programs print p. m. and spaces that do not break.
    r"[ \u00a0\u202f]?([AaPp]\.?[ \u00a0\u202f]?[Mm]\.?)?"
    # Behind an offset, Java prints the zone in brackets and JavaScript its name.
    # Postgres prints an offset of whole hours as +02.
    r"[ ]?(?:(?:UTC|GMT)(?=[-+]))?(Z|UTC|GMT|[-+][0-9]{2}(?::?[0-9]{2})?|(?<=UTC|GMT)[-+][0-9]"
    rf"|(?<= )(?:{APPLIED_LETTERS}))?"
    r"(?:(?:(?<=Z)|(?<=[-+][0-9]{4})|(?<=[-+][0-9]{2}:[0-9]{2})|(?<=[-+][0-9]{2}))(?:\[[\w/+-]+\]| \([\w ]+\)))?"
    rf"(?:(?<=[0-9MmZ.])[ ]({NAMED_ZONE}))?$"
)
_COMPACT = re.compile(r"^([0-9]{4})([0-9]{2})([0-9]{2})[T _-]([0-9]{2}):?([0-9]{2}):?([0-9]{2})(?=$|[.,Z+-])")
# A duration of pandas or of Python.
_DAYS = re.compile(r"([0-9]{1,3}) days?,? \+?([0-9]{1,2})(:[0-9:.]{3,20})")
_MONTH = re.compile("|".join(MONTHS))
_NAMED = re.compile(
    r"(?:[A-Z][a-z]{2},? +)?"
    r"(?:(?P<day>[0-9]{1,2})[- ](?P<month>[A-Z][a-z]{2})|(?P<month2>[A-Z][a-z]{2}) +(?P<day2>[0-9]{1,2}))"
    r"(?:,?[- ](?P<year>[0-9]{4})(?P<rest>.*)"
    # The command date prints the year last.
    r"|(?P<time> [0-9:.]{8,18}(?: [AP]M)?)(?P<zone> [A-Z]{3,5})? (?P<year2>[0-9]{4}))"
)
# No stamp is longer.
MAX_STAMP_CHARS = 90
_NUMBER = re.compile(r"[-+]?(?:[0-9]{1,20}(?:[.,][0-9]{0,30})?|[.,][0-9]{1,30})(?:[eE][-+]?[0-9]{1,2})?")


class Stamp(NamedTuple):
    """A time: ``kind`` is UTC, LOCAL or ELAPSED; ``ns`` counts from 1970, or from an unknown start."""

    kind: str
    ns: int


def normalize_date(text: str) -> str:
    """Return a timestamp with a date YYYY-MM-DD for one without separators or with a month name; else the text itself.

    >>> [normalize_date(text) for text in ("20250729_105347", "29-Jul-2025 10:53:47", "Tue Jul 29 10:53:47 2025")]
    ['2025-07-29 10:53:47', '2025-07-29 10:53:47', '2025-07-29 10:53:47']
    >>> normalize_date("1 days 02:00:01.5")
    '26:00:01.5'
    """
    if " day" in text and (match := _DAYS.fullmatch(text)):
        return f"{int(match[1]) * 24 + int(match[2])}{match[3]}"
    if text[:4].isdigit():
        # Nothing else has eight digits and then a time of day.
        return _COMPACT.sub(r"\1-\2-\3 \4:\5:\6", text, count=1) if text[4:8].isdigit() else text
    match = _NAMED.fullmatch(text) if len(text) <= MAX_STAMP_CHARS and _MONTH.search(text) else None
    month = (match["month"] or match["month2"]) if match else None
    if match is None or month not in MONTHS:
        return text
    day, year = match["day"] or match["day2"], match["year"] or match["year2"]
    return f"{year}-{MONTHS.index(month) + 1:02}-{day:0>2}{match['rest'] or match['time'] or ''}{match['zone'] or ''}"


def split_date(text: str) -> tuple[tuple[str, str, str], str, str] | None:
    """Split a text into the three fields of its date, their separator, and the rest; None without a date.

    >>> split_date("17.12.2024 08:40")
    (('17', '12', '2024'), '.', ' 08:40')
    """
    match = _DATE.match(text)
    return ((match[1], match[3], match[4]), match[2], text[match.end() :]) if match else None


def _day(fields: Sequence[str], order: str) -> int | None:
    """Return the days since 1970 of a date; None if it is invalid in this order."""
    year, month, day = (fields[place] for place in DATE_ORDERS[order])
    if len(year) not in (2, 4) or len(month) > 2 or len(day) > 2:
        return None
    full = int(year) + (2000 if len(year) == 2 else 0)
    if full not in YEARS:
        return None
    try:
        return date(full, int(month), int(day)).toordinal() - _UNIX_DAY
    except ValueError:
        return None


def _orders(fields: Sequence[str], sign: str) -> list[str]:
    """Return the orders in which ``fields`` are a date."""
    # A date with dots never begins with the month: dots are used by countries that write the day first.
    allowed = [order for order in DATE_ORDERS if not (sign == "." and order == "mdy")]
    return [order for order in allowed if _day(fields, order) is not None]


@dataclass
class DateOrderEvidence:
    """Collects the orders that the dates of a file allow; keeps the dates that excluded an order."""

    orders: set[str] = field(default_factory=lambda: set(DATE_ORDERS))
    shown: list[str] = field(default_factory=list)
    advice: str = ""
    _seen: set[tuple[str, str, str]] = field(default_factory=set)
    _same: bool = True

    def add(self, text: str, line: int) -> None:
        """Add a text that may begin with a date."""
        found = split_date(text.lstrip("'"))
        if found is None or found[0] in self._seen:
            return
        if len(self._seen) > MAX_MEMO_DATES:
            self._seen.clear()
        self._seen.add(found[0])
        possible = _orders(*found[:2])
        if possible:
            if self.orders - set(possible) or not self.shown:
                self.shown.append(f"{text[:20].strip()!r} (line {line})")
            self.orders &= set(possible)
            self._same &= len({_day(found[0], order) for order in possible}) == 1

    def decide(self) -> str:
        """Return ``ymd``, ``dmy`` or ``mdy``; raise `BrokenInputError` if the dates are contradictory or ambiguous."""
        if len(self.orders) == 1 or (self.orders and (self._same or not self.shown)):
            return min(self.orders)
        what = "do not tell the day from the month" if self.orders else "contradict each other"
        raise BrokenInputError(
            f"the dates {', '.join(self.shown[:3])} {what}; write them as YYYY-MM-DD, "
            f"or add a day of the recording after the 12th{self.advice if self.orders else ''}"
        )

    def agree(self, order: str) -> str:
        """Return ``order``, which the user or the format says; raise `BrokenInputError` if a date is none in it."""
        if order in self.orders:
            return order
        raise BrokenInputError(
            f"the dates {', '.join(self.shown[:3])} are not all {order}, as --column or the format says"
        )


def count_to_ns(text: str, unit_ns: int) -> int | None:
    """Return a count of units as whole nanoseconds, exactly; None if it is none.

    >>> count_to_ns("1718369824.263312", 10**9), count_to_ns(".5", 10**9)
    (1718369824263312000, 500000000)
    """
    if not _NUMBER.fullmatch(text):
        return None
    ns = (Decimal(text.replace(",", ".")) * unit_ns).to_integral_value()
    return int(ns) if abs(ns) <= MAX_NS else None


def epoch_unit(text: str) -> str | None:
    """Return the unit in which a count since 1970 falls between 1990 and 2100; None if there is none.

    >>> epoch_unit("1718369824263312"), epoch_unit("12.5")
    ('us', None)
    """
    return next((u for u, ns in EPOCH_UNITS.items() if is_plausible_epoch(count_to_ns(text, ns))), None)


def is_plausible_epoch(ns: int | None) -> bool:
    """Tell whether a count of ns since 1970 falls between 1990 and 2100."""
    return ns is not None and MIN_EPOCH_S * SECOND <= ns < MAX_EPOCH_S * SECOND


def _time_ns(match: re.Match[str], is_day: bool) -> int | None:
    hours, minutes, seconds = int(match[1]), int(match[2]), int(match[3] or 0)
    if match[6]:
        if not 1 <= hours <= 12:
            return None
        hours = hours % 12 + (12 if match[6][0] in "pP" else 0)
    if minutes > 59 or seconds > 59 or (is_day and hours > 23):
        return None
    fraction = int((match[4] or match[5] or "")[:9].ljust(9, "0"))
    return (hours * 3600 + minutes * 60 + seconds) * SECOND + fraction


def zone_ns(zone: str) -> int:
    """Return the offset of a zone from UTC in ns.

    >>> zone_ns("Z"), zone_ns("-01:30"), zone_ns("+02"), zone_ns("CEST")
    (0, -5400000000000, 7200000000000, 7200000000000)
    """
    if zone[0] not in "+-":
        return round(ZONE_HOURS.get(zone, 0.0) * 3600) * SECOND
    digits = zone[1:].replace(":", "")
    return (1 if zone[0] == "+" else -1) * (int(digits[:2]) * 60 + int(digits[2:] or 0)) * 60 * SECOND


def zone_named_in(text: str) -> str:
    """Return the time zone that a stamp names without an offset; empty if it names none.

    >>> zone_named_in("2024-05-01 12:00:00 Europe/Berlin"), zone_named_in("2024-05-01 12:00:00 CEST")
    ('Europe/Berlin', '')
    """
    found = split_date(text.strip().lstrip("'"))
    match = TIME_OF_DAY.match(found[2]) if found else None
    return (match[8] or "") if match and not match[7] else ""


class AmbiguousDateParser:
    """Parses the times of one file; ``order`` is that of its dates.

    >>> AmbiguousDateParser("mdy").read("12-23-2020 10:21:51.496")
    Stamp(kind='local time, no zone given', ns=1608718911496000000)
    >>> AmbiguousDateParser().read("2024-12-17T08:40:37+01:00")
    Stamp(kind='UTC', ns=1734421237000000000)
    >>> AmbiguousDateParser().read("00:05:08")
    Stamp(kind='elapsed', ns=308000000000)
    """

    def __init__(self, order: str = "ymd") -> None:
        """Parse dates in ``order``."""
        self._order = order
        self._days: dict[str, int | None] = {}
        self._last = self._turns = 0

    def _date(self, text: str) -> tuple[int | None, str]:
        match = _DATE.match(text)
        if match is None:
            return None, text
        key = match[0]
        if key not in self._days:
            if len(self._days) > MAX_MEMO_DATES:
                self._days.clear()
            self._days[key] = _day((match[1], match[3], match[4]), self._order)
        return self._days[key], text[match.end() :]

    def read(self, text: str) -> Stamp | None:
        """Return the time in ``text``; None if it is invalid. For times without a date, midnights are counted."""
        text = text.strip().lstrip("'")
        day, rest = self._date(text)
        if day is None and rest != text:
            return None
        if day is not None and not rest.strip():
            return Stamp(LOCAL, day * DAY)
        match = TIME_OF_DAY.match(rest)
        time = _time_ns(match, day is not None) if match else None
        if match is None or time is None:
            return None
        if day is None:
            return None if match[7] or match[8] else self._turn(time)
        if match[7]:
            return Stamp(UTC, day * DAY + time - zone_ns(match[7]))
        return Stamp(LOCAL, day * DAY + time)

    def _turn(self, time: int) -> Stamp:
        # A time of day that decreases by more than half a day has passed midnight.
        if self._last - time > DAY // 2 and self._last < DAY:
            self._turns += 1
        self._last = time
        return Stamp(ELAPSED, self._turns * DAY + time)

    def turned(self, times: Int64s) -> Int64s:
        """Return elapsed times for times of day that follow those parsed before; ``times`` must not be empty."""
        before = np.concatenate(([self._last], times[:-1]))
        turns = (before - times > DAY // 2) & (before < DAY)
        return (self._turns + np.cumsum(turns)) * DAY + times

    def go_on(self, last: int, turns: int) -> None:
        """Continue after a time of day that is ``turns`` midnights after the first."""
        self._last, self._turns = last, turns
