"""Idle time is what the board says it is, and the mean power of a window is its energy over its time."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest

from profsvc.analysis.power.analyze import analyze_power
from profsvc.analysis.power.logs import UTC, Log
from profsvc.analysis.power.options import Options
from tests.analysis.power.made_logs import NO_LAUNCHES, NO_MARKS, ORIGIN, S, made

Frames = Mapping[str, pd.DataFrame]
TIME = np.arange(0.0, 60.0, 0.1)
NOISE = 0.3 * np.random.default_rng(5).standard_normal(TIME.size)


def logs(power: np.ndarray, busy: np.ndarray | None = None, clock: np.ndarray | None = None) -> list[Log]:
    """A board's power, and what it says of itself beside it."""
    found = [made("power", "power.draw.instant", TIME, power, number=1)]
    if busy is not None:
        found.append(made("utilization", "utilization.gpu", TIME, busy, number=2, unit="1"))
        found.append(made("utilization", "utilization.memory", TIME, 0 * busy, number=3, unit="1"))
    if clock is not None:
        found.append(made("clock", "clocks.current.sm", TIME, clock, number=4, unit="Hz"))
    return found


def idle_of(frames: Frames) -> dict[str, object]:
    rows = frames["power_models"]
    return dict(rows[rows["quantity"] == "idle_power_w"].iloc[0])


def flags_of(frames: Frames) -> set[str]:
    return set(frames["power_quality"].get("flag", []))


def wavy() -> np.ndarray:
    """A load that stays nowhere, after 12 s at rest."""
    load = 300 + 120 * np.sin(TIME / 1.1) + 60 * np.sin(TIME / 0.37)
    return np.where(TIME < 12, 127.0, load) + NOISE


def test_a_log_with_one_steady_level_does_not_take_its_load_for_idle():
    """The level is where the board rested; what moves about is the load."""
    frames = analyze_power(logs(wavy(), np.where(TIME < 12, 0.0, 0.9)), NO_MARKS, NO_LAUNCHES)
    table = frames["power_windows"]
    assert table.loc[table["window"] == "idle", "mean_power_w"].iloc[0] == pytest.approx(127, abs=0.3)
    assert idle_of(frames)["value"] == pytest.approx(127, abs=0.3)
    known = table["runtime_power_w"].dropna().astype(float)
    assert (known > 0).all()
    # The same log without a word of the board: the idle power is not known, and no runtime power is negative.
    silent = analyze_power(logs(wavy() + 250), NO_MARKS, NO_LAUNCHES)
    assert silent["power_windows"]["runtime_power_w"].isna().all()
    assert idle_of(silent)["value"] is None
    assert "log utilization.gpu together with the power, or mark the idle time" in str(idle_of(silent)["reason"])


def test_a_load_is_not_idle_because_it_is_the_lowest():
    power = np.where(TIME < 30, 347.0, 512.0) + NOISE
    for busy in (np.ones(TIME.size), None):
        frames = analyze_power(logs(power, busy), NO_MARKS, NO_LAUNCHES)
        table = frames["power_windows"]
        assert (table["kind"] != "idle").all()
        assert table["runtime_power_w"].isna().all()
        assert idle_of(frames)["value"] is None


def test_all_levels_at_which_the_board_rested_are_idle_however_much_it_drew():
    """A program that holds the board keeps its clock up, and its power; nothing runs all the same."""
    power = np.where(TIME < 20, 30.0, np.where(TIME < 40, 127.0, 400.0)) + NOISE
    frames = analyze_power(logs(power, np.where(TIME < 40.3, 0.0, 1.0)), NO_MARKS, NO_LAUNCHES)
    assert frames["power_windows"]["kind"].tolist() == ["run", "idle", "idle", "load"]


def test_without_a_word_of_the_board_a_level_far_below_all_else_is_taken_for_idle_and_that_is_said():
    power = np.where((TIME > 20) & (TIME < 40), 400.0, 80.0) + NOISE
    frames = analyze_power(logs(power), NO_MARKS, NO_LAUNCHES)
    assert frames["power_windows"]["kind"].tolist() == ["run", "idle", "load", "idle"]
    assert "idle_assumed" in flags_of(frames)
    assert idle_of(frames)["value"] == pytest.approx(80, abs=0.3)
    let_down = np.where((TIME > 20) & (TIME < 40), 1.98e9, 0.345e9)
    known = analyze_power(logs(power, clock=let_down), NO_MARKS, NO_LAUNCHES)
    assert known["power_windows"]["kind"].tolist() == ["run", "idle", "load", "idle"]
    assert "idle_assumed" not in flags_of(known)


def marks(*rows: tuple[str, float, float]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "name": [name for name, _, _ in rows],
            "domain": [name for name, _, _ in rows],
            "start_ns": [ORIGIN + round(begin * S) for _, begin, _ in rows],
            "duration_ns": [(end - begin) * S for _, begin, end in rows],
            "active_sms": pd.array([None] * len(rows), dtype="Int64"),
            "launches": pd.array([None] * len(rows), dtype="Int64"),
            "upload_id": 9,
            "clock": UTC,
        }
    )


def test_what_lies_outside_the_marked_loads_is_idle_only_if_nothing_ran_there():
    power = np.where(TIME < 10, 80.0, np.where(TIME < 30, 500.0, 250.0)) + NOISE
    marked = marks(("heavy", 30.5, 59.0))
    told = analyze_power(logs(power, np.where(TIME < 10, 0.0, 1.0)), marked, NO_LAUNCHES)
    assert idle_of(told)["value"] == pytest.approx(80, abs=0.3)
    silent = analyze_power(logs(power), marked, NO_LAUNCHES)
    assert idle_of(silent)["value"] is None
    assert "it contains an unmarked load" in str(idle_of(silent)["reason"])
    assert silent["power_windows"]["runtime_power_w"].isna().all()


@pytest.mark.parametrize("name", ["power.draw", "power.draw.instant"])
def test_the_mean_power_of_a_window_is_its_energy_over_its_time(name):
    """A sensor that averages tells less of the begin of a window; its mean and its energy tell the same less."""
    power = np.where((TIME > 20) & (TIME < 40), 400.0, 80.0) + NOISE
    averaged = np.convolve(np.concatenate((np.full(10, power[0]), power)), np.ones(10) / 10, "valid")[1:]
    read = made("power", name, TIME, averaged if name == "power.draw" else power, number=1)
    marked = marks(("idle", 1, 19), ("load", 20, 40), ("short", 40.5, 45))
    frames = analyze_power([read], marked, NO_LAUNCHES, Options())
    table = frames["power_windows"].astype({"energy_j": float, "mean_power_w": float, "settled_power_w": float})
    assert table["window"].tolist() == ["run", "idle", "load", "short"]
    np.testing.assert_allclose(table["mean_power_w"] * table["duration_s"].astype(float), table["energy_j"], rtol=1e-12)
    load = table.set_index("window").loc["load"]
    assert load["settled_power_w"] == pytest.approx(400, abs=0.2)
    if name == "power.draw":
        assert load["mean_power_w"] < 395
    runs = table["kind"] == "load"
    runtime = table["runtime_power_w"] * table["duration_s"] - table["runtime_energy_j"]
    assert np.abs(runtime[runs].astype(float)).max() < 1e-9
