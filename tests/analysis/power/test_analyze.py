"""Power of a run, from logs whose truth is known: windows, correction to one temperature, models, what is refused."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest

from profsvc.analysis.power.analyze import FRAMES, analyze_power
from profsvc.analysis.power.logs import ELAPSED, UTC, Log
from profsvc.analysis.power.options import Options
from profsvc.errors import NotFoundError
from tests.analysis.power.made_logs import NO_LAUNCHES, NO_MARKS, ORIGIN, S, launches_at, made
from tests.formulas.thermal import synthetic_logs

Frames = Mapping[str, pd.DataFrame]


def logs_of(one: synthetic_logs.Log, *, clock: str = UTC) -> list[Log]:
    """The logs of a synthetic board; the two clocks put right where they are one."""
    shift = one.truth.shift_s if clock == UTC else 0.0
    return [
        made("power", "board.instant", one.power_time_s, one.power_w - one.fan_w, number=1, clock=clock),
        made("temperature", "temperature.gpu", one.temperature_time_s - shift, one.temperature_c, number=2,
             upload=1 if clock == UTC else 2, unit="degC", clock=clock),
        made("clock", "clocks.current.sm", one.power_time_s, one.clock_mhz * 1e6, number=3, unit="Hz", clock=clock),
    ]  # fmt: skip


def marks_of(one: synthetic_logs.Log) -> pd.DataFrame:
    names = ["idle" if load == 0 else f"load {load}" for load in one.load]
    return pd.DataFrame(
        {
            "name": names,
            "domain": names,
            "start_ns": ORIGIN + np.round(one.start_s * 1e9).astype(np.int64),
            "duration_ns": np.round((one.end_s - one.start_s) * 1e9),
            "active_sms": pd.array([None] * len(names), dtype="Int64"),
            "launches": pd.array([None] * len(names), dtype="Int64"),
            "upload_id": 9,
            "clock": UTC,
        }
    )


@pytest.fixture(scope="module")
def boards() -> list[synthetic_logs.Log]:
    return synthetic_logs.simulate(7, 12)


@pytest.fixture(scope="module")
def analyzed(boards) -> list[Frames]:
    return [analyze_power(logs_of(one), marks_of(one), NO_LAUNCHES) for one in boards]


def test_the_coefficient_is_the_true_one_within_its_interval(boards, analyzed):
    inside = fitted = 0
    for one, frames in zip(boards, analyzed, strict=True):
        rows = frames["power_coefficients"]
        at_load = rows["clock_hz"] == rows["clock_hz"].max()  # an idle board runs at another clock, and leaks less
        for row in rows[(rows["used"] == 1) & at_load].to_dict("records"):
            fitted += 1
            inside += row["coefficient_low"] <= one.truth.sigma_w_per_c <= row["coefficient_high"]
    assert fitted >= 8
    assert inside >= fitted - 2


def test_corrected_loads_are_closer_together_than_the_measured_ones(boards, analyzed):
    """Windows of one load differ by how warm the board was; at one temperature they do not."""
    before, after = [], []
    for one, frames in zip(boards, analyzed, strict=True):
        table = frames["power_windows"]
        for _, group in table[(table["kind"] == "load") & table["corrected_power_w"].notna()].groupby("load"):
            warmth = np.ptp(group["mean_temperature_c"].astype(float))
            if one.truth.sigma_w_per_c * warmth > 2.5:
                before.append(np.ptp(group["mean_power_w"].astype(float)))
                after.append(np.ptp(group["corrected_power_w"].astype(float)))
    assert len(before) >= 3
    assert max(after) < 0.5 * min(before)


def test_a_corrected_plateau_does_not_slope(analyzed):
    slopes = []
    for frames in analyzed:
        table = frames["power_windows"]
        own = table[(table["kind"] == "load") & table["corrected_power_w"].notna() & (table["duration_s"] > 60)]
        slopes += (own["corrected_slope_w_per_s"] / own["corrected_slope_se_w_per_s"]).astype(float).tolist()
        steeper = (
            own["slope_w_per_s"].astype(float).abs().mean() > own["corrected_slope_w_per_s"].astype(float).abs().mean()
        )
        assert steeper or not len(own)
    assert len(slopes) >= 15
    assert np.mean(np.abs(slopes) < 2.5) > 0.8


def test_intervals_hold_their_values_and_energies_go_with_powers(analyzed):
    for frames in analyzed:
        table = frames["power_windows"]
        own = table[table["corrected_power_w"].notna()].astype({"corrected_power_w": float})
        assert (own["corrected_power_low_w"] <= own["corrected_power_w"]).all()
        assert (own["corrected_power_w"] <= own["corrected_power_high_w"]).all()
        known = own.dropna(subset=["energy_j"])
        shift = (known["energy_j"] - known["corrected_energy_j"]).astype(float)
        power = ((known["mean_power_w"] - known["corrected_power_w"]) * known["duration_s"]).astype(float)
        np.testing.assert_allclose(shift, power, rtol=1e-6, atol=1e-6)


def test_the_idle_power_is_the_true_one(boards, analyzed):
    off = []
    for one, frames in zip(boards, analyzed, strict=True):
        rows = frames["power_models"]
        found = rows[(rows["model"] == "idle") & (rows["quantity"] == "idle_power_w")]["value"].dropna()
        off += [abs(float(value) - one.truth.idle_power_w) for value in found]
    assert len(off) >= 8
    assert np.median(off) < 1.0


def test_nothing_runs_in_idle_windows_and_so_nothing_is_above_idle(analyzed):
    for frames in analyzed:
        table = frames["power_windows"]
        is_idle = table["kind"] == "idle"
        assert is_idle.any()
        for name in ("runtime_power_w", "runtime_energy_j"):
            assert table.loc[is_idle, name].isna().all()
            assert (table.loc[table["kind"] == "load", name].dropna() > 0).all()


@pytest.mark.parametrize("kind", ["constant", "noise"])
def test_what_holds_no_information_is_refused_with_the_figure(kind):
    """But for windows that next to nothing would move, whatever the coefficient is."""
    for one in synthetic_logs.simulate(11, 3, kind):
        frames = analyze_power(logs_of(one), marks_of(one), NO_LAUNCHES)
        table = frames["power_windows"]
        moved = table[table["corrected_power_w"].notna()].astype({"corrected_power_w": float, "mean_power_w": float})
        assert (np.abs(moved["corrected_power_w"] / moved["mean_power_w"] - 1) < 0.005).all()
        assert table.loc[table["corrected_power_w"].isna(), "reason"].notna().all()
        assert (frames["power_coefficients"]["used"] == 0).all()
        loads = table.loc[(table["kind"] == "load") & table["corrected_power_w"].isna(), "reason"]
        assert loads.str.contains(r"\d").all()


def test_a_degree_or_two_is_answered_with_an_interval_that_holds_the_truth():
    inside = []
    for one in synthetic_logs.simulate(11, 8, "small"):
        rows = analyze_power(logs_of(one), marks_of(one), NO_LAUNCHES)["power_coefficients"]
        known = rows[(rows["used"] == 1) & (rows["clock_hz"] == rows["clock_hz"].max())]
        inside += (
            (known["coefficient_low"] <= one.truth.sigma_w_per_c)
            & (one.truth.sigma_w_per_c <= known["coefficient_high"])
        ).tolist()
    assert len(inside) >= 3
    assert np.mean(inside) >= 0.8


def test_the_reference_is_the_users_else_the_median_of_the_loads(boards):
    one = boards[0]
    own, given = (
        analyze_power(logs_of(one), marks_of(one), NO_LAUNCHES, options)["power_windows"]
        for options in (Options(), Options(reference_temperature_c=40.0))
    )
    loads = own[own["kind"] == "load"]
    assert loads["reference_temperature_c"].iloc[0] == pytest.approx(loads["mean_temperature_c"].astype(float).median())
    assert given.loc[given["kind"] == "load", "reference_temperature_c"].iloc[0] == 40.0


def test_logs_of_two_clocks_are_laid_over_each_other_by_their_steps(boards):
    found = []
    for one in boards[:4]:
        frames = analyze_power(logs_of(one, clock=ELAPSED), NO_MARKS, NO_LAUNCHES)
        rows = frames["power_models"]
        row = rows[(rows["model"] == "join") & (rows["quantity"] == "offset_s")].iloc[0]
        if row["value"] is None:
            reason = frames["power_windows"]["reason"].iloc[0]
            assert "the offset cannot be determined: " in reason
            if "it is between " in reason:
                assert "give it with --offset, or record more loads; " in reason
                ends = (float(row[end]) + one.temperature_time_s[0] - one.power_time_s[0] for end in ("low", "high"))
                low, high = (end - one.truth.shift_s for end in ends)
                assert low - 0.1 < 0 < high + 0.1
            continue
        # The clocks begin with their logs: what is left between them is what the estimate finds.
        begin = one.temperature_time_s[0] - one.power_time_s[0]
        found.append(float(row["value"]) + begin - one.truth.shift_s)
        assert "offset_estimated" in frames["power_windows"]["quality"].iloc[0]
    assert len(found) >= 2
    assert np.max(np.abs(found)) < 0.3


def test_without_marks_the_levels_of_the_power_are_the_windows(boards):
    one = boards[1]
    table = analyze_power(logs_of(one), NO_MARKS, NO_LAUNCHES)["power_windows"]
    assert set(table["source"]) == {"log", "change_points"}
    assert 1 <= (table["kind"] == "load").sum() <= len(one.load) + 2


def test_marks_on_another_clock_say_nothing_and_that_is_said(boards):
    one = boards[2]
    table = analyze_power(logs_of(one), marks_of(one).assign(clock="local"), NO_LAUNCHES)
    assert set(table["power_windows"]["source"]) == {"log", "change_points"}
    message = table["power_quality"].set_index("flag").loc["marks_on_another_clock", "message"]
    assert message.endswith("use a different clock (local) than board.instant (utc)")
    later = marks_of(one).assign(start_ns=lambda marks: marks["start_ns"] + 10**15)
    elsewhere = analyze_power(logs_of(one), later, NO_LAUNCHES)["power_quality"]
    assert "marks_elsewhere" in set(elsewhere["flag"])


def test_kernels_of_a_trace_on_the_same_clock_are_windows(boards):
    one = boards[1]  # its first load has no gap
    first = int(np.flatnonzero(one.load)[0])
    start = ORIGIN + round(one.start_s[first] * 1e9)
    each = np.arange(start, ORIGIN + round(one.end_s[first] * 1e9), S // 100)
    launches = launches_at(each, 0.009)
    table = analyze_power(logs_of(one), NO_MARKS, launches)["power_windows"]
    row = table[table["kind"] == "kernel"].iloc[0]
    assert (row["window"], row["kernel"], row["launches"]) == ("k", "void k<1>(int)", len(each))
    assert row["energy_per_launch_j"] == pytest.approx(row["energy_j"] / len(each))


def test_a_sensor_without_temperature_has_its_windows_and_the_reason(boards):
    frames = analyze_power(logs_of(boards[0])[:1], marks_of(boards[0]), NO_LAUNCHES)
    table = frames["power_windows"]
    assert table["energy_j"].notna().any()
    assert set(table["reason"]) == {"no temperature sensor with readings matches board.instant"}
    thermal = frames["power_models"].set_index("model").loc["thermal"]
    assert "no temperature sensor" in str(thermal["reason"])


def test_a_log_of_three_readings_says_so_and_other_sensors_go_on(boards):
    short = made("power", "short", [0.0, 1.0, 2.0], [1.0, 2.0, 3.0], number=9)
    frames = analyze_power([short, *logs_of(boards[0])], NO_MARKS, NO_LAUNCHES)
    row = frames["power_quality"].set_index("flag").loc["too_few_readings"]
    assert (row["sensor_id"], row["message"]) == (9, "3 readings of short; at least 4 are needed")
    assert set(frames["power_windows"]["sensor_id"]) == {1}


def test_a_log_without_times_says_that_it_lacks_them(boards):
    untimed = made("power", "POWER", [], [], number=9)
    frames = analyze_power([untimed, *logs_of(boards[0])], NO_MARKS, NO_LAUNCHES)
    row = frames["power_quality"].set_index("flag").loc["too_few_readings"]
    assert row["message"] == "no reading of POWER has a time; record the log with a time, for energies and means"


def test_an_unknown_sensor_is_named_and_no_power_gives_empty_frames(boards):
    logs = logs_of(boards[0])
    with pytest.raises(NotFoundError, match="no sensor named 'bord'"):
        analyze_power(logs, NO_MARKS, NO_LAUNCHES, Options(sensor="bord"))
    empty = analyze_power(logs[1:], NO_MARKS, NO_LAUNCHES)
    assert list(empty) == list(FRAMES)
    assert all(frame.empty for frame in empty.values())


def test_the_host_is_taken_off_what_the_meter_reads(boards):
    one = boards[0]
    whole, less = (
        analyze_power(logs_of(one), marks_of(one), NO_LAUNCHES, Options(sensor="board.instant", host_power_w=host))
        for host in (None, 20.0)
    )
    off = whole["power_windows"]["mean_power_w"] - less["power_windows"]["mean_power_w"]
    np.testing.assert_allclose(off.dropna().astype(float), 20.0, atol=1e-9)


def test_the_same_logs_give_the_same_frames(boards):
    one = boards[0]
    first, again = (analyze_power(logs_of(one), marks_of(one), NO_LAUNCHES) for _ in range(2))
    for name in FRAMES:
        pd.testing.assert_frame_equal(first[name], again[name])
