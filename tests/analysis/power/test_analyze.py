"""Power of a run, from logs whose truth is known: windows, correction to one temperature, models, what is refused."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from profsvc.analysis.power.analyze import FRAMES, Options, analyze_power
from profsvc.analysis.power.logs import ELAPSED, UTC, Log
from profsvc.errors import NotFoundError
from tests.formulas.thermal import synthetic_logs

Frames = Mapping[str, pd.DataFrame]
S = 10**9
ORIGIN = 1_795_180_576 * S
NO_MARKS = pd.DataFrame(
    {n: [] for n in ("name", "domain", "start_ns", "duration_ns", "active_sms", "launches", "upload_id", "clock")}
)
NO_LAUNCHES = pd.DataFrame(
    {n: [] for n in ("kernel", "start_ns", "duration_ns", "device_index", "host", "upload_id", "clock")}
)


def made(
    quantity: str, name: str, time_s, value, *, number: int, upload: int = 1, unit: str = "W", clock: str = UTC
) -> Log:
    time_ns = ORIGIN + np.round(np.asarray(time_s) * 1e9).astype(np.int64)
    return Log(number, upload, quantity, name, unit, 0, "NVIDIA H200", clock, time_ns, np.asarray(value, dtype=float))


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


def launches_at(start_ns: np.ndarray, duration_s: float, device: int = 0, host: str = "") -> pd.DataFrame:
    columns = {"kernel": "void k<1>(int)", "start_ns": start_ns, "duration_ns": duration_s * S}
    return pd.DataFrame({**columns, "device_index": device, "host": host, "clock": UTC, "upload_id": 1})


def flat(gpu: int | None, power_w: float, number: int, seconds: tuple[float, float] = (0.0, 60.0)) -> Log:
    """A log of one GPU with ten readings a second, whose last digit moves."""
    time_s = np.arange(*seconds, 0.1)
    own = made("power", "power.draw.instant", time_s, power_w + 0.25 * (np.arange(time_s.size) % 3), number=number)
    return replace(own, gpu_index=gpu)


KERNELS = ORIGIN + np.arange(10, 30) * S
"""Twenty launches of a second each."""


@pytest.mark.parametrize("seconds", [(20.0, 60.0), (0.0, 20.0), (15.0, 25.0)], ids=["end", "begin", "middle"])
def test_a_kernel_that_the_log_covers_in_part_is_one_window_without_energy(seconds):
    frames = analyze_power([flat(0, 500.0, 1, seconds)], NO_MARKS, launches_at(KERNELS, 0.999))
    row = frames["power_windows"].set_index("window").loc["k"]
    assert (row["duration_s"], row["launches"]) == (pytest.approx(19.999), 20)
    assert row["mean_power_w"] == pytest.approx(500.25, abs=0.01)
    assert row["energy_j"] is None
    assert "part_of_window" in row["quality"]


def loads_of(logs: list[Log], launches: pd.DataFrame) -> tuple[set[object], set[str]]:
    """Return the sensors whose power the launches are given, and the flags."""
    frames = analyze_power(logs, NO_MARKS, launches)
    table = frames["power_windows"]
    return {*table[table["kind"] == "kernel"]["sensor_id"]}, {*frames["power_quality"].get("flag", [])}


def test_a_kernel_is_given_the_power_of_the_gpu_on_which_it_ran():
    both = [flat(0, 77.0, 1), flat(1, 500.0, 2)]
    sensors, flags = loads_of(both, launches_at(KERNELS, 0.999, device=1))
    assert sensors == {2}
    assert "launches_of_another_device" in flags
    every = pd.concat([launches_at(KERNELS, 0.999), launches_at(KERNELS, 0.999, device=1)])
    assert loads_of(both, every)[0] == {1, 2}


def test_ranks_that_each_see_one_gpu_are_given_no_power_of_several():
    """Two files say device 0 for launches at the same time: which of the two GPUs ran which is unknown."""
    both = [flat(0, 77.0, 1), flat(1, 500.0, 2)]
    ranks = [launches_at(KERNELS + moved, 0.999).assign(upload_id=number) for number, moved in ((7, 0), (8, S // 2))]
    frames = analyze_power(both, NO_MARKS, pd.concat(ranks))
    assert not {*frames["power_windows"]["kind"]} & {"kernel"}
    said = frames["power_quality"].set_index("flag").loc["device_ambiguous"]
    assert said["value"].tolist() == [39, 39]
    message = said["message"].iloc[0]
    assert "uploads 7, 8 have launches of device 0 at the same time and not all name one host" in message
    assert "and the log is of GPU 0, 1" in message
    # A board of another number than that of both shows it too.
    assert loads_of([flat(1, 500.0, 2)], pd.concat(ranks)) == (set(), {"device_ambiguous"})
    # One after the other they may be of one GPU; with a device number of its own, each is known.
    later = ranks[1].assign(start_ns=ranks[1]["start_ns"] + 20 * S)
    assert loads_of(both, pd.concat([ranks[0], later]))[0] == {1}
    assert loads_of(both, pd.concat([ranks[0], ranks[1].assign(device_index=1)]))[0] == {1, 2}


def test_boards_of_two_hosts_with_one_number_give_no_launch_their_power():
    """Rank 0 and rank 1 ran on hosts whose only GPU has the number 0, each with a log of it."""
    hosts = [flat(0, 77.0, 1), replace(flat(0, 500.0, 2), upload_id=2)]
    ranks = [launches_at(KERNELS + moved, 0.999).assign(upload_id=number) for number, moved in ((7, 0), (8, S // 2))]
    for launches in (pd.concat(ranks), ranks[0]):
        frames = analyze_power(hosts, NO_MARKS, launches)
        assert not {*frames["power_windows"]["kind"]} & {"kernel"}
        said = frames["power_quality"].set_index("flag").loc["device_ambiguous"]
        assert said["message"].iloc[0].startswith("uploads 1, 2 log a GPU 0 each at the same time")
    # One log after the other may be of one board, and other channels of one GPU are.
    later = replace(flat(0, 77.0, 2, (60.0, 90.0)), upload_id=2)
    assert loads_of([hosts[0], later], ranks[0])[0] == {1}
    assert loads_of([hosts[0], replace(hosts[1], name="power.draw.average")], ranks[0])[0] == {1, 2}


def ranks_on(*hosts: str, moved: int = S // 2) -> pd.DataFrame:
    """Launches of two files on device 0 of these hosts, one of them ``moved`` behind the other."""
    both = zip((0, moved), hosts, (7, 8), strict=True)
    return pd.concat([launches_at(KERNELS + by, 0.999, host=host).assign(upload_id=n) for by, host, n in both])


@pytest.mark.parametrize("hosts", [("", ""), ("node1", ""), ("localhost", "localhost"), ("10.0.0.1", "10.0.0.1")])
def test_files_that_do_not_name_one_host_do_not_share_its_gpu(hosts):
    frames = analyze_power([flat(0, 500.0, 1)], NO_MARKS, ranks_on(*hosts))
    assert not {*frames["power_windows"]["kind"]} & {"kernel"}
    said = frames["power_quality"].set_index("flag").loc["device_ambiguous"]
    assert said["value"] == 39
    assert said["message"].startswith(
        "uploads 7, 8 have launches of device 0 at the same time and not all name one host"
    )


def test_files_of_one_host_share_its_gpu_and_that_is_said():
    for hosts in (("node1", "node1"), ("node1", "Node1.cluster")):
        assert loads_of([flat(0, 500.0, 1)], ranks_on(*hosts)) == ({1}, {"device_shared"})
    assert loads_of([flat(1, 500.0, 1)], ranks_on("node1", "node1")) == (set(), {"device_ambiguous"})


@pytest.mark.parametrize("gpu", [0, None], ids=["numbered", "a meter"])
@pytest.mark.parametrize("moved", [S // 2, 25 * S], ids=["together", "one after the other"])
def test_the_log_of_an_unknown_host_gives_launches_of_several_no_power(gpu, moved):
    frames = analyze_power([flat(gpu, 500.0, 1)], NO_MARKS, ranks_on("node1", "node2", moved=moved))
    assert not {*frames["power_windows"]["kind"]} & {"kernel"}
    said = frames["power_quality"].set_index("flag").loc["device_ambiguous"]
    assert (said["value"], said["message"].split(",")[:2]) == (40, ["the launches are of the hosts node1", " node2"])


def test_a_log_that_names_its_host_gives_power_to_the_launches_of_that_host():
    logs = [replace(flat(0, 100.0 * n, n), upload_id=n, host=host) for n, host in ((1, "node1:9400"), (2, "node2"))]
    frames = analyze_power(logs, NO_MARKS, ranks_on("node1", "node2"))
    table = frames["power_windows"]
    kernels = table[table["kind"] == "kernel"].set_index("sensor_id")
    assert kernels["begin_ns"].to_dict() == {1: KERNELS[0], 2: KERNELS[0] + S // 2}
    assert frames["power_quality"].empty
    assert loads_of(logs[:1], ranks_on("node2", "node2")) == (set(), {"launches_of_another_device"})
    assert loads_of(logs, ranks_on("", "")) == (set(), {"device_ambiguous"})


def test_marks_of_a_trace_are_of_the_gpus_that_ran_its_launches():
    """The step of a rank on an unknown or another GPU is no load of this one; a log of marks alone is."""
    step = {"name": "step", "domain": None, "start_ns": KERNELS[0], "duration_ns": 20.0 * S, "active_sms": pd.NA}
    marks = pd.DataFrame([step | {"launches": pd.NA, "upload_id": n, "clock": UTC} for n in (7, 8)])
    for launches in (ranks_on("", ""), ranks_on("node1", "node2")):
        frames = analyze_power([flat(0, 500.0, 1)], marks, launches)
        assert not {*frames["power_windows"]["source"]} & {"marks"}
        assert (frames["power_quality"]["flag"] == "device_ambiguous").sum() == 1
        table = analyze_power([flat(0, 500.0, 1)], marks.assign(upload_id=9), launches)["power_windows"]
        assert (table["source"] == "marks").sum() == 2
    apart = ranks_on("", "")
    apart["device_index"] = apart["upload_id"] - 7
    table = analyze_power([flat(0, 77.0, 1), flat(1, 500.0, 2)], marks, apart)["power_windows"]
    assert table[table["source"] == "marks"]["sensor_id"].tolist() == [1, 2]


def test_launches_of_no_named_device_are_given_no_power_of_several_gpus():
    both = [flat(0, 77.0, 1), flat(1, 500.0, 2)]
    unnamed, named = (launches_at(KERNELS, 0.999, device) for device in (-1, 1))
    frames = analyze_power(both, NO_MARKS, unnamed)
    assert not {*frames["power_windows"]["kind"]} & {"kernel"}
    said = frames["power_quality"].set_index("flag").loc["device_unknown"]
    assert said["value"].tolist() == [20, 20]
    assert "20 launches name no device, and the log is of GPU 0, 1" in said["message"].iloc[0]
    sensors, flags = loads_of(both, pd.concat([unnamed, named]))
    assert (sensors, flags & {"device_unknown"}) == ({2}, {"device_unknown"})
    # Beside the log of one GPU they can only be of that one, and a meter measures all of them.
    assert loads_of([both[0]], unnamed)[0] == {1}
    assert loads_of([flat(None, 577.0, 3)], unnamed)[0] == {3}


def test_the_one_gpu_of_a_log_ran_the_launches_of_the_one_device_and_that_is_said():
    sensors, flags = loads_of([flat(3, 500.0, 1)], launches_at(KERNELS, 0.999))
    assert sensors == {1}
    assert "device_renumbered" in flags


@pytest.mark.parametrize(("gpu", "device"), [(None, 1), (3, -1)], ids=["a meter", "a trace without devices"])
def test_what_is_not_numbered_is_taken_as_before(gpu, device):
    sensors, flags = loads_of([flat(gpu, 500.0, 1)], launches_at(KERNELS, 0.999, device=device))
    assert sensors == {1}
    assert not flags & {"device_renumbered", "launches_of_another_device"}


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
