"""Clocks of logs: a file's own clock to UTC, where the user says its zone, and its offset from the true time."""

from __future__ import annotations

from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from profsvc.errors import UsageError
from profsvc.tables.on_demand import pd


def time_zone(name: str) -> ZoneInfo:
    """Return the time zone called ``name``; raise `UsageError` if there is none.

    >>> time_zone("Europe/Berlin").key
    'Europe/Berlin'
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UsageError(f"no time zone is named {name!r}; give an IANA name such as UTC or Europe/Berlin") from None


def samples_in_utc(samples: pd.DataFrame, zone: ZoneInfo | None, offset_s: float) -> pd.DataFrame:
    """Return tidy samples with ``time_ns`` in UTC.

    A file's own clock is taken to stand in ``zone``; where the hour is ambiguous or skipped (daylight saving) the time
    stays null. ``offset_s`` is what the clock was ahead of the true time: it is taken off.

    >>> made = pd.DataFrame({"time_ns": [None], "local_ns": [3_600_000_000_000]}, dtype="Int64")
    >>> samples_in_utc(made, time_zone("Europe/Berlin"), 0.5)["time_ns"].tolist()
    [-500000000]
    """
    time = samples["time_ns"].copy()
    if zone is not None:
        unplaced = time.isna() & samples["local_ns"].notna()
        clock = pd.to_datetime(samples.loc[unplaced, "local_ns"].astype("int64"), unit="ns")
        moments = clock.dt.tz_localize(zone, ambiguous="NaT", nonexistent="NaT").dt.tz_convert("UTC")
        whole = moments.notna()
        time.loc[moments.index[whole]] = moments[whole].astype("datetime64[ns, UTC]").astype("int64").to_numpy()
    return samples.assign(time_ns=(time - round(offset_s * 1e9)).astype("Int64"))


def ranges_in_utc(ranges: pd.DataFrame, zone: ZoneInfo | None, offset_s: float) -> pd.DataFrame:
    """Return tidy ranges of a file's own clock with ``start_ns`` in UTC, as `samples_in_utc` does it; durations stay.

    Where a start cannot be placed, it is null. Without a ``zone`` only ``offset_s`` is taken off.

    >>> made = pd.DataFrame({"start_ns": [3_600_000_000_000]}, dtype="Int64")
    >>> ranges_in_utc(made, time_zone("Europe/Berlin"), 0.5)["start_ns"].tolist()
    [-500000000]
    """
    if zone is None:
        return ranges.assign(start_ns=(ranges["start_ns"] - round(offset_s * 1e9)).astype("Int64"))
    clock = pd.DataFrame({"time_ns": pd.array([None] * len(ranges), dtype="Int64"), "local_ns": ranges["start_ns"]})
    return ranges.assign(start_ns=samples_in_utc(clock, zone, offset_s)["time_ns"])
