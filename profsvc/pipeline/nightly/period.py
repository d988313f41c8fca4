"""When a night begins and ends: a local date in a time zone."""

from datetime import UTC, date, datetime, time, timedelta
from typing import NamedTuple

from profsvc.analysis.timezones import time_zone
from profsvc.errors import UsageError


class ReportPeriod(NamedTuple):
    """A night: its date, its zone, and its begin and end there."""

    night: str
    zone: str
    begins: datetime
    ends: datetime


def report_period(night: date | str | None, zone: str, now: datetime | None = None) -> ReportPeriod:
    """Return a night in its zone, by default the date there now; raise `UsageError` for one that is none.

    >>> report_period("2026-10-25", "Europe/Berlin").ends.isoformat()
    '2026-10-26T00:00:00+01:00'
    """
    where, now = time_zone(zone), now or datetime.now(UTC)
    today = now.astimezone(where).date()
    if isinstance(night, str):
        try:
            night = date.fromisoformat(night)
        except ValueError:
            raise UsageError(f"{night!r} is not a date; write it as {today.isoformat()}") from None
    night = night or today
    if night > today:
        raise UsageError(f"the night {night} is in the future; today is {today} in {zone}")
    if night < date(1970, 1, 2):
        raise UsageError(f"the night {night} is before 1970; write a date such as {today}")
    begins, ends = (datetime.combine(day, time(), where) for day in (night, night + timedelta(days=1)))
    return ReportPeriod(night.isoformat(), zone, begins, ends)
