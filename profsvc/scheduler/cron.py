"""When a schedule is due: cron on the clock of a zone, and the key that makes each time one of a kind.

The fields are those of cron, day of the week counted from Sunday. They are matched against the clock on the wall, and
only then is the wall's time placed in the zone: a time that a night skips is due an hour later, and of a time that a
night has twice the first counts, unless the schedule is due every hour and so goes on. (A `CronTrigger` that knows the
zone itself steps over midnight after the night that is an hour short.)
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from apscheduler.triggers.base import BaseTrigger
from apscheduler.triggers.cron import CronTrigger

from profsvc.analysis.timezones import time_zone
from profsvc.errors import UsageError

FIELDS = ("minute", "hour", "day", "month", "day_of_week")
ALLOWED_VALUES = {
    "minute": "0 to 59", "hour": "0 to 23", "day": "1 to 31", "month": "1 to 12 or jan to dec",
    "day_of_week": "0 to 7 or sun to sat (0 and 7 are Sunday)",
}  # fmt: skip
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
FIELD_PATTERNS = (*[re.compile(r"[0-9*/,-]+")] * 3, *[re.compile(r"[0-9a-z*/,-]+")] * 2)
# Newest first: how far back the last time is looked for, so that few times lie in the shortest stretch that has one.
LOOKBACK_PERIODS = tuple(timedelta(days=days) for days in (1 / 24, 1, 7, 31, 366, 3000))
TIME_RESOLUTION = timedelta(microseconds=1)
MAX_CLOCK_SHIFT = timedelta(hours=3)
"""More than any clock is put forward or back today."""


class Due(NamedTuple):
    """A time at which a schedule is due, and its key."""

    at: datetime
    key: str


class CronTimes(NamedTuple):
    """The times of a schedule: those of a clock on the wall, in a zone."""

    wall: CronTrigger
    zone: ZoneInfo
    is_hourly: bool

    def after(self, when: datetime) -> datetime | None:
        """Return the first time after ``when``, None where there is none."""
        found: datetime | None = None
        for shown in self._wall_times(when):
            if found is not None and shown > self._to_wall_time(found) + MAX_CLOCK_SHIFT:
                break
            for due in self._utc_times(shown):
                if due.at > when and (found is None or due.at < found):
                    found = due.at
        return found

    def latest(self, now: datetime, since: datetime) -> Due | None:
        """Return the newest time that is after ``since`` and not after ``now``."""
        for stretch in LOOKBACK_PERIODS:
            begin = max(since, now - stretch)
            if found := self.between(begin, now):
                return found[-1]
            if begin == since:
                break
        return None

    def between(self, begin: datetime, end: datetime) -> list[Due]:
        """Return the times after ``begin`` that are not after ``end``, one a key."""
        last, found = self._to_wall_time(end) + MAX_CLOCK_SHIFT, set[Due]()
        for shown in self._wall_times(begin):
            if shown > last:
                break
            found.update(due for due in self._utc_times(shown) if begin < due.at <= end)
        return sorted(found)

    def _to_wall_time(self, when: datetime) -> datetime:
        """Return what the clock on the wall shows, as if it were UTC: a clock that is never put forward or back."""
        return when.astimezone(self.zone).replace(tzinfo=UTC)

    def _wall_times(self, when: datetime) -> Iterator[datetime]:
        """Yield what the wall shows when it is due, beginning safely before ``when``."""
        shown = self.wall.get_next_fire_time(None, self._to_wall_time(when) - MAX_CLOCK_SHIFT)
        while shown is not None:
            yield shown
            shown = self.wall.get_next_fire_time(None, shown + TIME_RESOLUTION)

    def _utc_times(self, shown: datetime) -> Iterator[Due]:
        """Yield when the wall shows this: once, or twice where that counts."""
        first, second = (shown.replace(tzinfo=self.zone, fold=fold).astimezone(UTC) for fold in (0, 1))
        if not self.is_hourly:
            yield Due(first, shown.strftime("%Y-%m-%dT%H:%M"))
            return
        for when in (first, second) if second > first else (first,):
            yield Due(when, when.strftime("%Y-%m-%dT%H:%MZ"))


class ScheduleTrigger(BaseTrigger):  # type: ignore[misc]  # APScheduler has no types
    """The times of a schedule, as the timer asks for them."""

    def __init__(self, times: CronTimes) -> None:
        """Keep the times."""
        self.times = times

    def get_next_fire_time(self, previous: datetime | None, now: datetime) -> datetime | None:
        """Return the next time; what was missed is found by looking at the store, not here."""
        return self.times.after(now if previous is None else max(previous, now))


def parse_cron(cron: str, zone: str = "UTC") -> CronTimes:
    """Return the times of a schedule; raise `UsageError` for what is no cron or is never due.

    >>> from datetime import datetime, UTC
    >>> times = parse_cron("30 2 * * 1-5", "Europe/Berlin")
    >>> times.after(datetime(2026, 3, 1, tzinfo=UTC)).isoformat()
    '2026-03-02T01:30:00+00:00'
    """
    place = time_zone(zone)
    fields = cron.lower().split()
    if len(fields) != 5:
        raise UsageError(
            f"--cron {cron!r} must have five fields: minute, hour, day of the month, month, day of the week, such as "
            "'0 6 * * *' for 6 o'clock"
        )
    given = dict(zip(FIELDS, fields, strict=True))
    for form, (name, field) in zip(FIELD_PATTERNS, given.items(), strict=True):
        try:
            if not form.fullmatch(field):
                raise ValueError(field)
            given[name] = _day_names(field) if name == "day_of_week" else field
            CronTrigger(timezone=UTC, **{name: given[name]})
        except (ValueError, KeyError):
            allowed = f"{ALLOWED_VALUES[name]}; lists (1,3), spans (1-5) and steps (*/2) of them, or *"
            raise UsageError(
                f"--cron {cron!r}: the {name.replace('_of_', ' of the ')} {field!r} is not one of {allowed}; such as "
                "'0 6 * * *' for 6 o'clock"
            ) from None
    if "*" not in (fields[2][0], fields[4][0]):
        raise UsageError(
            f"--cron {cron!r} names days of the month and of the week; give one of them and a * for the other"
        )
    trigger = CronTrigger(timezone=UTC, **given)
    times = CronTimes(trigger, place, fields[1].startswith("*"))
    if times.after(datetime.now(UTC)) is None:
        raise UsageError(f"--cron {cron!r} is never due")
    return times


def _day_names(field: str) -> str:
    """Return the days of the week by name, for numbers mean others here than where they are given.

    >>> _day_names("1-5"), _day_names("0,7"), _day_names("*"), _day_names("fri-mon")
    ('mon,tue,wed,thu,fri', 'sun', '*', 'fri,sat,sun,mon')
    """
    if field == "*":
        return field
    found: dict[str, None] = {}
    for item in field.split(","):
        span, _, step = item.partition("/")
        first, dash, last = ("0", "-", "6") if span == "*" else span.partition("-")
        begin, end = _day_number(first), _day_number(last if dash else "6" if step else first)
        length = (end - begin) % 7 if (end, begin) != (7, 0) else 6
        found |= dict.fromkeys(DAYS[(begin + n) % 7] for n in range(0, length + 1, int(step or 1)))
    return ",".join(found)


def _day_number(text: str) -> int:
    number = DAYS.index(text) if text in DAYS else int(text)
    if not 0 <= number <= 7:
        raise ValueError(f"no day {number}")
    return number
