"""A log's own clock brought to UTC."""

import pandas as pd
import pytest

from profsvc.analysis.timezones import samples_in_utc, time_zone
from profsvc.errors import UsageError


def samples(*local: str | None) -> pd.DataFrame:
    ns = [None if text is None else pd.Timestamp(text).value for text in local]
    return pd.DataFrame({"time_ns": pd.array([None] * len(ns), "Int64"), "local_ns": pd.array(ns, "Int64")})


def utc(text: str) -> int:
    return pd.Timestamp(text).value


def test_summer_and_winter() -> None:
    found = samples_in_utc(samples("2026-07-01 12:00", "2026-12-01 12:00", None), time_zone("Europe/Berlin"), 0.0)[
        "time_ns"
    ]
    assert found[0] == utc("2026-07-01 10:00")
    assert found[1] == utc("2026-12-01 11:00")
    assert found[2] is pd.NA


def test_hours_that_are_twice_or_never_stay_unknown() -> None:
    found = samples_in_utc(samples("2026-10-25 02:30", "2026-03-29 02:30"), time_zone("Europe/Berlin"), 0.0)["time_ns"]
    assert found.isna().all()


def test_a_nanosecond_is_kept() -> None:
    made = samples("2026-07-01 12:00:00.123456789")
    assert samples_in_utc(made, time_zone("UTC"), 0.0)["time_ns"][0] == utc("2026-07-01 12:00:00.123456789")


def test_the_offset_is_taken_off_known_times_too() -> None:
    made = samples(None).assign(time_ns=pd.array([5_000_000_000], "Int64"))
    assert samples_in_utc(made, None, 1.5)["time_ns"][0] == 3_500_000_000


def test_a_zone_that_is_none() -> None:
    with pytest.raises(UsageError, match="Europe/Berlin"):
        time_zone("Middle/Earth")
