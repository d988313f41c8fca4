"""The formulas on logs as they were recorded: one GPU's own, and public ones; energies that others computed."""

import csv
import io
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

from profsvc import formats
from profsvc.formulas.sensors.averaging import averaging_window
from profsvc.formulas.sensors.energy_windows import counter_energy, counter_ratio, window_energy
from profsvc.formulas.sensors.idle_power import fit_idle, idle_windows
from profsvc.formulas.sensors.log_quality import stuck, update_period
from profsvc.formulas.sensors.plateaus import change_points
from profsvc.formulas.thermal.clock_offset.two_logs import estimate_offset
from profsvc.formulas.thermal.time_constants.rc_fit_under_load import fit_load
from profsvc.formulas.thermal.time_constants.rc_fits import fit_decay, fit_rise

SHARED = Path(__file__).parents[4] / "shared"
CAPTURES, CORPUS = SHARED / "captures" / "h200", SHARED / "corpus"
needs_captures = pytest.mark.skipif(not CAPTURES.is_dir(), reason=f"the captures are not at {CAPTURES}")
needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason=f"the public logs are not at {CORPUS}")
ORIGIN_NS = 1_795_180_576_000_000_000

YANG, YQG = "4_smi/JimZeyuYang__GPU_Power_Benchmark__", "4_smi/yqg9651__cuda_test__"
KALAPONTSAI = "5_meters/kalapontsai__Electric-appliance-energy-efficiency-record__"
# file, sensor, energy in J and its tolerance: by trapezoids as the index of the public logs has it, or by the meter
ENERGIES = [
    (f"{YANG}TR_4090_gpudata.csv", "power.draw", 2843.768, 6e-4),
    (f"{YANG}results_gpudata_old.csv", "power.draw", 727.394, 6e-4),
    ("4_smi/PranavDani__Flame__fluidsGL-smi.csv", "power.draw", 1908.462, 6e-4),
    ("4_smi/PranavDani__Flame__torch-ex-smi.csv", "power.draw", 322.32, 6e-3),
    ("4_smi/amitadate__GPU_Power_Model__20250320_033129_strategy_0_metrics.csv", "power.draw", 3389.494, 6e-4),
    (f"{YQG}h100_350w_pcie_fp16_half_allzero.csv", "power.draw", 717.55, 6e-3),
    (f"{YQG}h100_350w_pcie_fp16_half_allzero.csv", "power.draw.instant", 787.42, 6e-3),
    (f"{YQG}h800_700w_sxm_allzero_gemm_fp32.csv", "power.draw", 35916.575, 6e-4),
    (f"{YQG}period_lgc.csv", "power.draw.instant", 50191.344, 6e-4),
    ("5_meters/mlcommons__power-dev__testing_spl.txt", "Watts", 38.64436 * 132.019, 6.0),
    ("7_traces/ml-energy__zeus__zeus_monitor_sample.csv", "Power", 32.347474 * 0.958481625, 0.06),
]
# file, sensors of power and of energy: the meter counts itself; relative, what steps between two readings may cost
METERS = [
    ("5_meters/anivegesana__WT310__wt310_11V83.csv", "Active Power", "Accumulated Energy", 5e-4),
    ("5_meters/anivegesana__WT310__wt310_offset3W.csv", "Active Power", "Accumulated Energy", 5e-3),
    (f"{KALAPONTSAI}power_hioki_pw3335.csv", "P", "WP", 2e-3),
    (f"{KALAPONTSAI}sample_v1_temp_and_power.csv", "W", "WH", 2e-3),
]
PERIODS = [
    (f"{YANG}TR_4090_gpudata.csv", "power.draw", 0.1),
    (f"{YQG}h100_350w_pcie_fp16_half_allzero.csv", "power.draw.instant", 0.1),
    (f"{YQG}period_lgc.csv", "power.draw.instant", 0.1),
]


class Log(NamedTuple):
    """Stamps since an origin, and readings."""

    t: np.ndarray
    v: np.ndarray


def sensors(path: Path, origin: int | None = None) -> dict[tuple[str, int | None], Log]:
    """The sensors of a file as the formulas take them, by name and GPU."""
    batches = list(formats.read(io.BytesIO(path.read_bytes()))[1])
    heads = pd.concat([b.tables["sensors"] for b in batches if "sensors" in b.tables])
    samples = pd.concat([b.tables["samples"] for b in batches if "samples" in b.tables])
    found = {}
    for index, name, gpu in zip(heads["sensor_index"], heads["name"], heads["gpu_index"], strict=True):
        own = samples[samples["sensor_index"] == index]
        clock = next((c for c in ("time_ns", "local_ns", "elapsed_ns") if own[c].notna().all()), None)
        if clock:
            ns = own[clock].to_numpy(np.int64)
            t = (ns - (ns[0] if origin is None else origin)) / 1e9
            found[name, None if pd.isna(gpu) else int(gpu)] = Log(t, own["value"].to_numpy(np.float64))
    return found


def one(path: Path, name: str) -> Log:
    (log,) = (log for (own, _), log in sensors(path).items() if own == name)
    return log


class Session(NamedTuple):
    """Logs of one GPU over one session, and the marks of its loads."""

    instant: Log
    averaged: Log
    temperature: Log
    counter: Log
    power_50ms: Log
    kinds: list[str]
    begin: np.ndarray
    end: np.ndarray


@pytest.fixture(scope="module")
def h200() -> Session:
    board, nvml = (sensors(CAPTURES / name, ORIGIN_NS) for name in ("smi_100ms.csv", "nvml_energy.csv"))
    with (CAPTURES / "phases.csv").open(encoding="utf-8", newline="") as file:
        marks = list(csv.DictReader(file))
    begins, ends = ([mark for mark in marks if mark["mark"] == which] for which in ("begin", "end"))

    def named(logs: dict[tuple[str, int | None], Log], name: str) -> Log:
        (log,) = (log for (own, _), log in logs.items() if own == name)
        return log

    return Session(
        *(named(board, name) for name in ("power.draw.instant", "power.draw.average", "temperature.gpu")),
        *(named(nvml, name) for name in ("energy_mj", "power_mw")),
        [mark["type"] for mark in begins],
        *(np.array([float(mark["unix_s"]) - ORIGIN_NS / 1e9 for mark in which]) for which in (begins, ends)),
    )


def loads(h200: Session) -> np.ndarray:
    return np.array([kind != "idle" for kind in h200.kinds])


@needs_captures
def test_the_sensors_of_the_board(h200: Session) -> None:
    for log in (h200.counter, h200.power_50ms):
        found = update_period(*log)
        assert found.resolved
        assert found.period_s == pytest.approx(0.1, abs=0.001)
        assert found.polls_per_update == pytest.approx(2.0, abs=0.01)
    assert not update_period(*h200.instant).resolved
    for log in (h200.instant, h200.averaged, h200.temperature):
        assert stuck(*log).begin_s.size == 0


@needs_captures
def test_the_time_constants_of_the_board_have_intervals(h200: Session) -> None:
    """A die of one second on what is slower, and a part faster than the readings; windows and whole log agree."""
    whole = fit_load(*h200.instant, *h200.temperature, offset_error_s=0.04)
    offset = estimate_offset(*h200.instant, *h200.temperature)
    assert (whole.refusal, whole.rc_rise_s.size) == ("", 3)
    for constants, low, high in (
        (offset.rc_rise_s, whole.rc_rise_low_s, whole.rc_rise_high_s),
        (offset.rc_decay_s, whole.rc_decay_low_s, whole.rc_decay_high_s),
    ):
        assert ((low <= constants) & (constants <= high)).all()
    time, T = h200.temperature
    for k, fit in ((1, fit_rise), (2, fit_decay)):
        inside = (time >= h200.begin[k]) & (time <= h200.end[k])
        found = fit(time[inside] - h200.begin[k], T[inside])
        assert found.refusal == ""
        known = np.isfinite(found.rc_s)
        assert known[1]
        assert (found.low_s[known] < found.rc_s[known]).all()
        assert (found.rc_s[known] < found.high_s[known]).all()


@needs_captures
def test_the_average_is_over_a_second_and_half_a_second_late(h200: Session) -> None:
    found = averaging_window(*h200.instant, *h200.averaged)
    assert abs(found.window_s - 1.0) < 2 * found.window_se_s < 0.08
    assert abs(found.lag_s) < 2 * found.lag_se_s < 0.08
    assert found.late_s == pytest.approx(0.5, abs=0.02)
    assert found.explained > 0.9998
    quiet = h200.instant.t < 20
    assert np.isnan(averaging_window(h200.instant.t[quiet], h200.instant.v[quiet], *h200.averaged).window_s)


@needs_captures
def test_the_energies_of_the_loads(h200: Session) -> None:
    b, e = h200.begin[loads(h200)], h200.end[loads(h200)]
    counted = counter_energy(*h200.counter, b, e)
    assert counted.period_s == pytest.approx(0.1, abs=0.001)
    assert (counted.error_j < 0.03 * counted.energy_j).all()
    instant = window_energy(*h200.instant, b, e)
    ratio = counter_ratio(instant.energy_j, counted.energy_j, counted.error_j)
    assert ratio.agrees.all()
    assert np.abs(ratio.ratio - 1).max() < 0.005
    averaged = window_energy(*h200.averaged, b, e)
    late = counter_ratio(averaged.energy_j, counted.energy_j, counted.error_j)
    assert late.agrees.tolist() == [True] + [False] * 6  # only the load of 150 s outlasts half a second
    shifted = window_energy(*h200.averaged, b + 0.5, e + 0.5)
    assert np.abs(shifted.energy_j / counted.energy_j - 1).max() < 0.02  # an eighth of the window at each edge is left


@needs_captures
def test_the_means_of_the_loads(h200: Session) -> None:
    b, e = h200.begin[loads(h200)], h200.end[loads(h200)]
    instant = window_energy(*h200.instant, b, e)
    averaged = window_energy(*h200.averaged, b, e, averaging_s=1.0)
    np.testing.assert_allclose(instant.mean_w, [534, 143, 233, 303, 401, 452, 474], rtol=0.005)
    np.testing.assert_allclose(averaged.mean_w, instant.mean_w, rtol=0.004)
    unguarded = window_energy(*h200.averaged, b, e)
    assert (unguarded.mean_w[1:] < 0.98 * instant.mean_w[1:]).all()


@needs_captures
def test_the_plateaus_are_the_loads(h200: Session) -> None:
    found = change_points(*h200.instant)
    assert found.level_w[1] == pytest.approx(534, abs=2)
    marks = loads(h200)
    for begin, end in zip(h200.begin[marks], h200.end[marks], strict=True):
        k = int(np.argmin(np.abs(found.begin_s - begin)))
        assert abs(found.begin_s[k] - begin) < 0.2
        assert 0 < found.end_s[k] - end < 0.55  # what stands between two loads for 0.3 s is no plateau
        assert found.steady[k]
    late = change_points(*h200.averaged)
    np.testing.assert_allclose(late.begin_s[1:9] - found.begin_s[1:9], 0.5, atol=0.45)
    assert late.begin_s[1] - found.begin_s[1] == pytest.approx(0.5, abs=0.05)


@needs_captures
def test_idle_power(h200: Session) -> None:
    marks = loads(h200)
    windows = idle_windows(h200.begin[marks], h200.end[marks], h200.instant.t[0], h200.instant.t[-1], rc_s=40.0)
    assert windows.begin_s.size == 1  # the pause of 130 s after the long load is shorter than five time constants
    for log in (h200.instant, h200.averaged):
        found = fit_idle(*log, windows.begin_s, windows.end_s, *h200.temperature)
        assert found.temperature_c == 31.0
        assert found.power_w == pytest.approx(79.5, abs=0.15)
        assert 0 < found.high_w - found.low_w < 0.5


@needs_captures
def test_logs_of_one_clock_have_no_offset_and_shifted_ones_theirs(h200: Session) -> None:
    own = estimate_offset(*h200.instant, *h200.temperature)
    assert abs(own.offset_s) < 0.1 + 2 * own.se_s < 0.2  # one update of the board's sensors
    assert own.refused == ""
    late = averaging_window(*h200.instant, *h200.averaged)
    averaged = estimate_offset(*h200.averaged, *h200.temperature)
    both = np.hypot(own.se_s, averaged.se_s)
    assert own.offset_s - averaged.offset_s == pytest.approx(late.late_s, abs=2.5 * np.hypot(both, late.window_se_s))
    t, T = h200.temperature
    slow = estimate_offset(h200.instant.t[3::10], h200.instant.v[3::10], t[::10] - 4.0, T[::10])
    assert slow.refused == "uncertain"  # one reading per second, and a part of the board that is faster than that
    assert slow.low_s < -4.0 + own.offset_s < slow.high_s
    flat = (h200.instant.t > 45) & (h200.instant.t < 175)
    assert estimate_offset(h200.instant.t[flat], h200.instant.v[flat], t[flat], T[flat]).refused == "no_step"


@needs_corpus
@pytest.mark.parametrize(("name", "sensor", "joules", "tolerance"), ENERGIES)
def test_energies_of_public_logs(name: str, sensor: str, joules: float, tolerance: float) -> None:
    t, v = one(CORPUS / name, sensor)
    found = window_energy(t, v, t[0], t[-1])
    assert found.energy_j == pytest.approx(joules, abs=tolerance)
    assert found.covered_s == pytest.approx(t[-1] - t[0])


@needs_corpus
@pytest.mark.parametrize(("name", "power", "energy", "tolerance"), METERS)
def test_power_meters_count_what_their_power_adds_up_to(name: str, power: str, energy: str, tolerance: float) -> None:
    found = sensors(CORPUS / name)
    (t, p), (u, c) = (next(log for (own, _), log in found.items() if own == wanted) for wanted in (power, energy))
    known = np.isfinite(p)
    b, e = t[known][1], t[known][-2]
    counted = counter_energy(u, c, b, e)
    ratio = counter_ratio(window_energy(t, p, b, e).energy_j, counted.energy_j, counted.error_j)
    assert ratio.ratio == pytest.approx(1.0, abs=tolerance)


@needs_corpus
def test_energies_of_eight_boards() -> None:
    found = sensors(CORPUS / "4_smi" / "4179e1__dcgm_test__result_us.csv")
    assert len(found) == 8
    for t, v in found.values():
        energy = window_energy(t, v, t[0], t[-1]).energy_j
        assert energy == pytest.approx(np.trapezoid(v, t), rel=1e-12)
        assert energy / (t[-1] - t[0]) == pytest.approx(71.1, abs=1.6)


@needs_corpus
@pytest.mark.parametrize(("name", "sensor", "period"), PERIODS)
def test_boards_polled_faster_than_they_update(name: str, sensor: str, period: float) -> None:
    found = update_period(*one(CORPUS / name, sensor))
    assert found.resolved
    assert found.period_s == pytest.approx(period, rel=0.02)
    assert found.polls_per_update > 10
