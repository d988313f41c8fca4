"""Heat maps of runs made up here, with known fields, biases and faults; and every refusal with its figure."""

import numpy as np
import pandas as pd
import pytest

from profsvc.analysis.thermocouples.heat_map import COLUMNS, Log, TimeRange, die_mm, heat_map
from profsvc.formulas.numerics.flags import Flag

GRID = np.array([3.0, 9.0, 15.0, 21.0])
X, Y = (v.ravel() for v in np.meshgrid(GRID, GRID))
K = X.size
NAMES = [f"T{k}" for k in range(K)]
HOT = 9  # the sensor at (9, 15)
SECOND = 1_000_000_000


def chip(height: float) -> np.ndarray:
    return 57 + height * np.exp(-((X - 9) ** 2 + (Y - 15) ** 2) / 40)


def log_of(readings: np.ndarray, seconds: float = 1.0, first_id: int = 100, upload: int = 1, **columns: object) -> Log:
    """A run with a sensor a row; columns of the sensors can be given."""
    sensors = pd.DataFrame(
        {
            "sensor_id": pd.array(np.arange(len(readings)) + first_id, dtype="Int64"),
            "upload_id": pd.array([upload] * len(readings), dtype="Int64"),
            "quantity": "temperature",
            "name": NAMES[: len(readings)],
            "unit": "degC",
            "x_mm": X[: len(readings)],
            "y_mm": Y[: len(readings)],
        }
    ).assign(**columns)
    number, place = np.divmod(np.arange(readings.size), readings.shape[1])
    elapsed = np.round(place * seconds * SECOND).astype(np.int64)
    samples = pd.DataFrame(
        {
            "sensor_id": pd.array(number + first_id, dtype="Int64"),
            "time_ns": pd.array([None] * readings.size, dtype="Int64"),
            "local_ns": pd.array([None] * readings.size, dtype="Int64"),
            "elapsed_ns": pd.array(elapsed, dtype="Int64"),
            "value": readings.ravel(),
        }
    )
    return Log(sensors, samples)


def warmed(height: float = 6.0, seed: int = 0, n: int = 400, bias: np.ndarray | float = 0.0) -> np.ndarray:
    t = np.arange(n)
    noise = np.random.default_rng(seed).normal(0, 0.05, (K, n))
    return 40 + (chip(height) - 40)[:, np.newaxis] * (1 - np.exp(-t / 35)) + noise + np.reshape(bias, (-1, 1))


def stacked(*logs: Log) -> Log:
    return Log(*(pd.concat(frames, ignore_index=True) for frames in zip(*logs, strict=True)))


def quantity(rows: pd.DataFrame, name: str, sensor: int | None = None) -> pd.Series:
    found = rows[(rows["quantity"] == name) & ((rows["sensor_id"] == sensor) if sensor else rows["sensor_id"].isna())]
    assert len(found) == 1
    return found.iloc[0]


def refused(reason: str, *args: object, **more: object) -> pd.DataFrame:
    found = heat_map(*args, **more)
    assert reason in found.reason
    assert found.die_map is None
    hot = quantity(found.rows, "hot_spot")
    assert hot["value"] is None
    assert hot["reason"] == found.reason
    assert hot["flags"] == Flag.INPUT_SUSPECT
    return found.rows


def test_a_settled_run_gives_a_map_and_its_rows() -> None:
    found = heat_map(log_of(warmed()))
    assert found.reason == ""
    assert tuple(found.rows.columns) == COLUMNS
    assert set(found.rows["model"]) == {"thermocouple", "heat_map"}
    inside = 0
    for k in range(K):
        row = quantity(found.rows, "steady_temperature", 100 + k)
        assert row["value"] == pytest.approx(chip(6.0)[k], abs=0.05)
        inside += row["low"] < chip(6.0)[k] < row["high"]
        assert (row["unit"], row["form"], row["flags"], row["reason"]) == ("degC", "raw", 0, None)
        assert quantity(found.rows, "drift", 100 + k)["unit"] == "degC/min"
        assert type(row["sensor_id"]) is int
    assert inside >= 13
    hot = quantity(found.rows, "hot_spot")
    assert hot["value"] == pytest.approx(63, abs=0.05)
    assert hot["low"] < 63 < hot["high"]
    assert hot["form"] == "bilinear"
    assert [quantity(found.rows, f"hot_spot_{axis}")["value"] for axis in "xy"] == [9, 15]
    assert quantity(found.rows, "sensors")["value"] == 16
    assert quantity(found.rows, "contrast")["value"] == pytest.approx(63 - np.median(chip(6.0)), abs=0.1)
    made = found.die_map
    assert made is not None
    assert made.names[HOT] == "T9"
    assert (made.hot_x_mm, made.hot_y_mm, made.difference) == (9, 15, False)
    assert made.edges_c[0] <= np.nanmin(made.temperature_c)


def test_the_frame_is_the_die_where_it_is_known_and_the_hull_where_not() -> None:
    log = log_of(warmed())
    whole = heat_map(log, die=die_mm("GeForce GTX 280")).die_map
    assert whole is not None
    assert whole.outline_is_die
    assert whole.outline_mm.max(axis=0).tolist() == [24, 24]
    assert whole.notes == ()
    hull = heat_map(log, die=die_mm("NVIDIA H200")).die_map
    assert hull is not None
    assert not hull.outline_is_die
    assert sorted(map(tuple, hull.outline_mm)) == [(3, 3), (3, 21), (21, 3), (21, 21)]
    assert hull.notes == ("the die size is unknown: the frame is the hull of the sensors",)
    beside = heat_map(log, die=(20.0, 24.0)).die_map
    assert beside is not None
    assert "4 of 16 sensors are outside the die of 20 by 24 mm" in beside.notes[0]
    assert die_mm(None) is None
    assert die_mm("a card that never was") is None


def test_no_places() -> None:
    rows = refused("none of the 16 temperature channels has a position", log_of(warmed(), x_mm=np.nan))
    assert len(rows) == 1
    empty = Log(*(frame.iloc[:0] for frame in log_of(warmed())))
    refused("none of the 0 temperature channels", empty)
    # With nothing to calibrate the run itself is what is wrong.
    refused("none of the 16 temperature channels", log_of(warmed(), y_mm=np.nan), calibration=empty)


@pytest.mark.parametrize(
    ("readings", "reason"),
    [
        (warmed(n=60), "16 of 16 sensors are not steady; the worst is T9: it still drifts by +"),
        (warmed()[:4] + 0.05 * np.arange(400) * np.eye(4)[:, :1], "T0: it still drifts by +2.9"),
        (57 + np.random.default_rng(1).normal(0, 3, (4, 120)), "noise is too high to detect drift"),
        (np.full((4, 20), 57.25), "T1: it has 20 readings; 30 are needed; and 2 more)"),
    ],
)
def test_not_settled(readings: np.ndarray, reason: str) -> None:
    rows = refused(reason, log_of(readings))
    steady = rows[rows["quantity"] == "steady_temperature"]
    assert len(steady) == len(readings)
    wrong = steady[steady["value"].isna()]
    assert len(wrong)
    assert wrong["reason"].notna().all()
    assert (wrong["flags"] == Flag.INPUT_SUSPECT).all()


def test_too_short_a_log_says_its_length() -> None:
    refused("its readings span less than 30 s", log_of(np.full((4, 40), 57.25), seconds=0.25))


def test_a_time_constant_settles_a_noisy_run() -> None:
    noisy = chip(6.0)[:, np.newaxis] + np.random.default_rng(2).normal(0, 3, (K, 180))
    refused("noise is too high", log_of(noisy[:, :170]))
    refused("noise is too high", log_of(noisy[:, :170]), rc_s=35.0)
    assert heat_map(log_of(noisy), rc_s=35.0).reason == ""


def test_too_few_or_badly_placed_sensors() -> None:
    refused("2 sensors with a position have a steady value; a map needs 3", log_of(warmed()[:2]))
    refused("the 4 sensors with a position are on one line", log_of(warmed()[:4]))
    same = X.copy()
    same[1] = X[0]
    refused("T0 and T1 are both at (3, 3) mm", log_of(warmed(), x_mm=same))


def test_a_silent_sensor_is_left_out_and_said_so() -> None:
    readings = warmed()
    readings[3, 10:] = np.nan
    readings[5] = np.nan
    found = heat_map(log_of(readings))
    assert found.die_map is not None
    assert found.die_map.notes[:2] == (
        "excluded: T3: it has 10 readings; 30 are needed",
        "excluded: T5: it has 0 readings; 30 are needed",
    )
    assert quantity(found.rows, "steady_temperature", 103)["value"] is None
    hot = quantity(found.rows, "hot_spot")
    assert (hot["form"], hot["flags"]) == ("delaunay", Flag.INPUT_SUSPECT)
    assert "excluded: T3" in hot["reason"]
    assert quantity(found.rows, "sensors")["value"] == 14


def test_a_sensor_that_stops_early_is_left_out() -> None:
    readings = warmed()
    readings[0, 300:] = np.nan
    found = heat_map(log_of(readings))
    assert found.die_map is not None
    assert "excluded: T0: its readings end 100 s before those of the others" in found.die_map.notes


def test_a_cut_takes_the_load_out_of_a_log() -> None:
    cooling = np.concatenate((warmed(), warmed()[:, ::-1]), axis=1)
    refused("it still drifts by -", log_of(cooling))
    found = heat_map(log_of(cooling), cut=TimeRange(0, 400 * SECOND))
    assert quantity(found.rows, "hot_spot")["value"] == pytest.approx(63, abs=0.05)
    refused("it has 0 readings", log_of(cooling), cut=TimeRange(10**15, None))


def test_clocks_of_several_files() -> None:
    readings = warmed()
    low, high = log_of(readings[:8]), log_of(readings[8:], first_id=200, upload=2)
    high = Log(high.sensors.assign(name=NAMES[8:], x_mm=X[8:], y_mm=Y[8:]), high.samples)
    apart = heat_map(stacked(low, high))
    assert apart.die_map is not None
    assert any("share no clock" in note for note in apart.die_map.notes)
    dated = [
        Log(part.sensors, part.samples.assign(time_ns=part.samples["elapsed_ns"] + 10**18)) for part in (low, high)
    ]
    joined = heat_map(stacked(*dated))
    assert joined.die_map is not None
    assert not any("clock" in note for note in joined.die_map.notes)
    later = Log(high.sensors, high.samples.assign(time_ns=high.samples["elapsed_ns"] + 10**18 + 3600 * SECOND))
    split = heat_map(stacked(dated[0], later))
    assert split.die_map is not None
    assert quantity(split.rows, "sensors")["value"] == 8


def settled_at(temperature: float, bias: np.ndarray, seed: int = 5, gain: np.ndarray | float = 1.0) -> np.ndarray:
    noise = np.random.default_rng(seed).normal(0, 0.05, (K, 300))
    cooling = temperature + 0.5 * np.exp(-np.arange(300) / 200)
    return np.reshape(gain, (-1, 1)) * cooling + np.reshape(bias, (-1, 1)) + noise


BIAS = np.random.default_rng(8).normal(0, 0.8, K)


def test_a_calibration_takes_the_bias_off() -> None:
    log = log_of(warmed(bias=BIAS))
    # Channels of a calibration need no place, and others in its log are left alone.
    plates = log_of(settled_at(25.0, BIAS), x_mm=np.nan)
    room = Log(plates.sensors.iloc[:1].assign(sensor_id=900, name="room"), plates.samples.iloc[:0])
    found = heat_map(log, calibration=stacked(plates, room))
    truth = chip(6.0) + BIAS.mean()  # what is common to all shows in no difference
    for k in range(K):
        row = quantity(found.rows, "steady_temperature", 100 + k)
        assert row["value"] == pytest.approx(truth[k], abs=0.06)
        assert row["form"] == "calibrated"
        off = quantity(found.rows, "calibration_offset", 100 + k)
        assert off["value"] == pytest.approx(BIAS[k] - BIAS.mean(), abs=0.03)
        assert off["low"] < off["value"] < off["high"]
    raw = heat_map(log)
    assert found.die_map is not None
    assert raw.die_map is not None
    assert np.std(found.die_map.sensor_c - truth) < 0.1 * np.std(raw.die_map.sensor_c - truth)
    width = [q["high"] - q["low"] for q in (quantity(f.rows, "hot_spot") for f in (found, raw))]
    assert width[0] > width[1]


def test_a_gain_from_two_plates_in_two_files() -> None:
    gain = 1 + np.random.default_rng(9).normal(0, 0.01, K)
    gain /= gain.mean()
    parts = [log_of(settled_at(T, 0.0 * BIAS, gain=gain), first_id=n, upload=n) for n, T in ((300, 25.0), (400, 60.0))]
    readings = gain[:, np.newaxis] * warmed()
    found = heat_map(log_of(readings), calibration=stacked(*parts), gain=True)
    assert quantity(found.rows, "hot_spot")["value"] == pytest.approx(63, abs=0.1)
    refused("a gain needs at least two plates", log_of(readings), calibration=parts[0], gain=True)


@pytest.mark.parametrize(
    ("plates", "reason"),
    [
        (log_of(settled_at(25.0, BIAS)[:15]), "it has no channel 'T15'"),
        (log_of(settled_at(25.0, BIAS)[:, :20]), "one of its plates has"),
        (log_of(settled_at(25.0, BIAS) + 0.02 * np.arange(300) * np.eye(K)[:, :1]), "never settle"),
        (
            log_of(settled_at(25.0, BIAS) + np.random.default_rng(1).normal(0, 1, 300) * np.eye(K)[:, 6:7]),
            "T6 is off by",
        ),
        (log_of(settled_at(25.0, BIAS), unit="V"), "T0: its unit is V, not \u00b0C"),
        (
            stacked(log_of(settled_at(25.0, BIAS)), log_of(settled_at(25.0, BIAS)[:3], first_id=500, upload=2)),
            "not every file has all channels exactly once",
        ),
    ],
)
def test_a_calibration_that_cannot_be_used(plates: Log, reason: str) -> None:
    rows = refused("the calibration run cannot be used: ", log_of(warmed()), calibration=plates)
    assert reason in rows.iloc[0]["reason"]


def test_the_difference_of_two_runs() -> None:
    found = heat_map(log_of(warmed(6.0, 1, bias=BIAS)), minus=log_of(warmed(1.0, 2, bias=BIAS)))
    made = found.die_map
    assert made is not None
    assert made.difference
    np.testing.assert_allclose(made.sensor_c, chip(6.0) - chip(1.0), atol=0.06)  # the biases are gone
    assert made.edges_c[0] <= np.nanmin(made.temperature_c)
    assert made.edges_c[-1] >= np.nanmax(made.temperature_c)
    hot = quantity(found.rows, "hot_spot")
    assert hot["value"] == pytest.approx(5, abs=0.06)
    assert hot["low"] < 5 < hot["high"]
    assert (hot["unit"], hot["form"]) == ("K", "difference, bilinear")
    refused("the subtracted run: none of the 16", log_of(warmed()), minus=log_of(warmed(), x_mm=np.nan))
    refused("the subtracted run: 16 of 16 sensors", log_of(warmed()), minus=log_of(warmed(n=60)))
    refused("do not overlap", log_of(warmed()), minus=log_of(warmed(), x_mm=X + 100))
    some = heat_map(log_of(warmed()), minus=log_of(warmed(1.0), x_mm=X + 6)).die_map
    assert some is not None
    assert np.isnan(some.sensor_c[X == 3]).all()
    assert np.isfinite(some.sensor_c[X > 3]).all()


def test_thermocouples_that_were_logged_in_volts() -> None:
    volts = (warmed() - 25) * 52e-6
    rows = refused("its unit is V, not \u00b0C", log_of(volts, quantity="voltage", unit="V"))
    assert (rows["quantity"] == "steady_temperature").sum() == 16
    found = heat_map(log_of(volts, quantity="voltage", unit="V"), reference_c=25.0)
    assert quantity(found.rows, "hot_spot")["value"] == pytest.approx(63, abs=1)


def test_power_with_a_place_is_no_thermocouple() -> None:
    reason = "16 channels have a position on the die, but none measures temperature: T0 measures power"
    refused(reason, log_of(warmed(), quantity="power", unit="W"))
