"""Times in the format of the store: ISO 8601 in UTC with fixed length, which sort as texts."""

from datetime import UTC, datetime

TIME_FORMAT = "%Y-%m-%dT%H:%M:%SZ"


def format_time(time: datetime) -> str:
    """Return a time in the format of the store.

    >>> format_time(datetime(2026, 3, 29, 1, 30, tzinfo=UTC))
    '2026-03-29T01:30:00Z'
    """
    return time.astimezone(UTC).strftime(TIME_FORMAT)


def parse_time(text: str) -> datetime:
    """Return the time for a text of the store.

    >>> parse_time("2026-03-29T01:30:00Z").isoformat()
    '2026-03-29T01:30:00+00:00'
    """
    return datetime.strptime(text, TIME_FORMAT).replace(tzinfo=UTC)


def now() -> str:
    """Return the current time in the format of the store."""
    return format_time(datetime.now(UTC))
