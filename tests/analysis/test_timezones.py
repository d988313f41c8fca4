"""A log's own clock brought to UTC."""

from zoneinfo import ZoneInfo

import pandas as pd
import pytest

from profsvc.analysis.timezones import SampleClock, ranges_in_utc, time_zone
from profsvc.errors import UsageError


def samples(*local: str | None) -> pd.DataFrame:
    ns = [None if text is None else pd.Timestamp(text).value for text in local]
    first = next((each for each in ns if each is not None), 0)
    columns = {"sensor_index": [0] * len(ns), "time_ns": [None] * len(ns), "local_ns": ns}
    columns["elapsed_ns"] = [None if each is None else each - first for each in ns]
    return pd.DataFrame({name: pd.array(values, "Int64") for name, values in columns.items()})


def samples_in_utc(made: pd.DataFrame, zone: ZoneInfo | None, offset_s: float) -> pd.DataFrame:
    return SampleClock(zone, offset_s).in_utc(made)


BERLIN = time_zone("Europe/Berlin")


def polled(begin: str, minutes: int, step_s: int) -> tuple[pd.DataFrame, list[int]]:
    """Return the readings of a clock of Berlin that begin at a time in UTC, and their times."""
    moments = pd.date_range(begin, periods=minutes * 60 // step_s, freq=f"{step_s}s", tz="UTC")
    shown = moments.tz_convert("Europe/Berlin").tz_localize(None)
    return samples(*map(str, shown)), moments.as_unit("ns").asi8.tolist()


@pytest.mark.parametrize("begin", ["2024-10-26 23:30", "2024-03-31 00:30"], ids=["back", "forward"])
@pytest.mark.parametrize("batches", [1, 7])
def test_a_log_through_a_change_of_the_clock_has_every_time_once(begin: str, batches: int) -> None:
    made, moments = polled(begin, 180, 20)
    two = pd.concat([made, made.assign(sensor_index=1)])  # as batches have them: one sensor behind the other
    clock, size = SampleClock(BERLIN, 0.0), -(-len(made) // batches)
    parts = [two[two.index // size == part].reset_index(drop=True) for part in range(batches)]
    found = pd.concat([clock.in_utc(part) for part in parts])
    for _, own in found.groupby("sensor_index"):
        assert own["time_ns"].tolist() == moments
        assert own["elapsed_ns"].tolist() == [ns - moments[0] for ns in moments]


def test_a_log_that_begins_in_an_hour_that_comes_twice_is_not_guessed() -> None:
    made, moments = polled("2024-10-27 00:30", 120, 20)
    found = samples_in_utc(made, BERLIN, 0.0)["time_ns"]
    assert found[:180].isna().all()
    assert found[270:].tolist() == moments[270:]


def test_one_reading_an_hour_does_not_tell_which_it_is() -> None:
    made, moments = polled("2024-10-26 22:30", 360, 3600)
    found = samples_in_utc(made, BERLIN, 0.0)["time_ns"]
    assert found.isna().tolist() == [False, False, True, True, False, False]
    assert found[4:].tolist() == moments[4:]


def test_a_clock_that_is_set_back_by_a_second_does_not_jump_an_hour() -> None:
    made = samples("2024-10-27 01:59:58", "2024-10-27 01:59:59", "2024-10-27 02:00:00", "2024-10-27 01:59:59.5")
    made = pd.concat([made, samples("2024-10-27 02:00:00.5")], ignore_index=True)
    found = samples_in_utc(made, BERLIN, 0.0)["time_ns"]
    assert found.iloc[-1] == utc("2024-10-27 00:00:00.5")


def test_a_reading_behind_one_without_a_place_is_not_placed_by_an_older_one() -> None:
    shown = ("01:58", "01:59", "02:00", "02:30", "02:59", "02:00", "02:30", "03:00", "03:01")
    found = samples_in_utc(samples(*(f"2024-10-27 {one}" for one in shown)), BERLIN, 0.0)["time_ns"]
    assert found.isna().tolist() == [False, False, False, True, True, True, True, False, False]
    assert found.dropna().is_unique


def test_a_phase_through_a_change_of_the_clock_lasts_as_long_as_it_did() -> None:
    made = pd.DataFrame({"start_ns": [utc("2024-03-31 01:30"), utc("2024-10-27 02:30")], "duration_ns": 2 * [7200e9]})
    found = ranges_in_utc(made.astype({"start_ns": "Int64"}), BERLIN, 0.0)
    assert found["start_ns"][0] == utc("2024-03-31 00:30")
    assert found["start_ns"].isna().tolist() == [False, True]
    assert found["duration_ns"].tolist() == [3600e9, 7200e9]


def utc(text: str) -> int:
    return pd.Timestamp(text).value


def test_summer_and_winter() -> None:
    found = samples_in_utc(samples("2026-07-01 12:00", "2026-12-01 12:00", None), time_zone("Europe/Berlin"), 0.0)[
        "time_ns"
    ]
    assert found[0] == utc("2026-07-01 10:00")
    assert found[1] == utc("2026-12-01 11:00")
    assert found[2] is pd.NA


def test_hours_that_are_twice_or_never_stay_unknown_and_are_counted() -> None:
    clock = SampleClock(BERLIN, 0.0)
    assert clock.in_utc(samples("2026-10-25 02:30", "2026-03-29 02:30"))["time_ns"].isna().all()
    assert len(clock.warnings()) == 1
    assert clock.warnings()[0].startswith("2 readings have no time in UTC: in Europe/Berlin ")


def test_a_nanosecond_is_kept() -> None:
    made = samples("2026-07-01 12:00:00.123456789")
    assert samples_in_utc(made, time_zone("UTC"), 0.0)["time_ns"][0] == utc("2026-07-01 12:00:00.123456789")


def test_the_offset_is_taken_off_known_times_too() -> None:
    made = samples(None).assign(time_ns=pd.array([5_000_000_000], "Int64"))
    assert samples_in_utc(made, None, 1.5)["time_ns"][0] == 3_500_000_000


def test_a_zone_that_is_none() -> None:
    with pytest.raises(UsageError, match="Europe/Berlin"):
        time_zone("Middle/Earth")
