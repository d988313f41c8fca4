"""A measured characterization of the device, from the upload to the numbers that it changes."""

import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sqlalchemy import Engine

from profsvc import analysis, pipeline, specs, store
from profsvc.analysis.launches.characterization import (
    Characterization,
    attainable_shares,
    device_characterization,
    measured_shares,
    peak_costs,
)
from profsvc.analysis.launches.criteria import launch_criteria, unit_time_shares
from profsvc.analysis.potential.latency import fill_ns
from profsvc.analysis.potential.launch_potential import ramp_ns
from profsvc.analysis.potential.peaks import peaks
from profsvc.analysis.potential.useful_time import Counts
from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.performance.operations import OPERATIONS, UNITS

DEMO = Path(__file__).parents[3] / "fixtures" / "demo" / "ncu_raw.csv.gz"
DOMAIN = specs.criteria()
Sweeps = dict[str, list[tuple[float, float]]]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A store with the run ``h200`` as analysed after F_DRAMThr, 0.92 at best, was uploaded under another name."""
    engine = store.open_store(str(tmp_path_factory.mktemp("measured") / "store.sqlite"), pooled=True)
    with DEMO.open("rb") as stream:
        pipeline.ingest(engine, stream, DEMO.name, store.RunInfo(name="h200"))
    put(engine, "old", "H200,F_DRAMThr,65536,0.5")
    put(engine, "new", "H200,F_DRAMThr,4096,0.4", "H200,F_DRAMThr,65536,0.92", "A100-PCIe-40GB,F_L2Thr,1,0.3")
    pipeline.analyze(engine, store.find_run(engine, "h200"))
    yield engine
    engine.dispose()


def put(engine: Engine, name: str, *lines: str) -> pipeline.ImportResult:
    data = "\n".join(["device,quantity,x,y", *lines, ""]).encode()
    return pipeline.ingest(engine, io.BytesIO(data), f"{name}.csv", store.RunInfo(name=name))


def launch(engine: Engine, kernel: str, view: str, **only: object) -> dict[str, object]:
    (found,) = store.select(engine, "v1_launches", kernel_short=kernel)
    return store.select(engine, view, launch_id=found["launch_id"], **only)[0]


def frame(sweeps: Sweeps, device: str = "NVIDIA H200") -> pd.DataFrame:
    rows = [(device, quantity, x, y) for quantity, points in sweeps.items() for x, y in points]
    return pd.DataFrame(rows, columns=["device", "quantity", "x", "y"])


def measured(sweeps: Sweeps) -> Characterization:
    return device_characterization(frame(sweeps), "NVIDIA H200", DOMAIN)


def criteria_of(demo: Engine, sweeps: Sweeps) -> pd.DataFrame:
    table = store.counters(demo, 1)
    figures, _ = peaks(table, specs.figures("NVIDIA H200", "9.0"))
    rows = launch_criteria(table, figures, measured(sweeps), DOMAIN["criterion"])
    return rows.set_index(["criterion", "launch_id"])


@pytest.mark.parametrize("kernel", ["saxpy", "reduce_v3_sequential"])
def test_a_measured_dram_changes_the_potential_of_what_it_bounds(engine: Engine, demo: Engine, kernel: str) -> None:
    before, after = (launch(store_, kernel, "v1_potential") for store_ in (demo, engine))
    useful = launch(engine, kernel, "v1_models", model="useful_work", quantity="dram")
    counters = store.counters(demo, 1)
    c = Counts(counters)
    (start,) = (ramp_ns(c) + fill_ns(c))[counters.index == before["launch_id"]]
    assert before["ideal_bound"] == after["ideal_bound"] == "dram"
    assert before["ideal_ns"] == pytest.approx(start + useful["value"] / 0.8, rel=1e-12)
    assert after["ideal_ns"] == pytest.approx(start + useful["value"] / np.sqrt(0.8 * 0.92), rel=1e-12)
    assert after["speedup"] == pytest.approx(after["duration_ns"] / after["ideal_ns"], rel=1e-12)


def test_the_published_ratio_stands_on_what_is_attainable(engine: Engine, demo: Engine) -> None:
    before, after = (launch(store_, "saxpy", "v1_potential") for store_ in (demo, engine))
    assert after["speedup_as_published"] == pytest.approx(0.92 * before["speedup_as_published"], rel=1e-12)


def test_models_say_what_was_measured(engine: Engine) -> None:
    rows = store.models(engine, 1)
    assert set(rows[rows["form"] == "measured"]["quantity"]) == {"dram"}
    assert "measured" not in set(rows[rows["quantity"] != "dram"]["form"])


def test_a_characterization_is_a_run_without_launches_that_says_what_to_recompute(engine: Engine) -> None:
    verdict = put(engine, "later", "a board,F_DRAMThr,1,0.9", "another,F_DRAMThr,1,0.9")
    assert verdict.message == "measured: a board, another; to recompute the runs on it, run: profsvc analyze --all"
    assert (verdict.format, verdict.launches, verdict.lines_stored) == ("characterization", 0, 2)
    assert pipeline.analyze(engine, verdict.run_id) == 0
    assert store.potential(engine, verdict.run_id).empty
    assert put(engine, "later", "a board,F_DRAMThr,1,0.9", "another,F_DRAMThr,1,0.9").known


def test_devices_are_matched_by_the_catalogue_else_by_the_letter() -> None:
    sweep = {"F_DRAMThr": [(1.0, 0.9)]}
    assert device_characterization(frame(sweep, "h200"), "NVIDIA H200", DOMAIN).sustained == {"dram": 0.9}
    assert device_characterization(frame(sweep, "a board"), "a board", DOMAIN).sustained == {"dram": 0.9}
    for one, other in (("A100-PCIe-40GB", "NVIDIA H200"), ("a board", "A board"), ("H200", "a board"), ("H200", None)):
        assert not device_characterization(frame(sweep, str(one)), other, DOMAIN).sustained
    assert not device_characterization(frame({}), "NVIDIA H200", DOMAIN).sustained


def test_of_two_names_of_a_device_the_last_counts() -> None:
    older = frame({"F_DRAMThr": [(1, 0.9)], "F_L2Thr": [(1, 0.6)]})
    rows = pd.concat([older, frame({"F_DRAMThr": [(1, 0.7)]}, "H200")])
    assert device_characterization(rows, "NVIDIA H200", DOMAIN).sustained == {"dram": 0.7, "l2": 0.6}


def test_repeats_are_smoothed_where_there_are_enough_points() -> None:
    few = pd.DataFrame({"quantity": "F_DRAMThr", "x": [1.0, 1.0], "y": [0.8, 0.9]})
    many = pd.DataFrame({"quantity": "F_DRAMThr", "x": [1.0, 2.0, 2.0, 2.0], "y": [0.3, 0.8, 0.99, 0.81]})
    assert measured_shares(DOMAIN, few) == {"dram": 0.9}
    assert measured_shares(DOMAIN, many) == {"dram": 0.81}
    assert measured_shares(DOMAIN, few.assign(y=1.2)) == {"dram": 1.0}


def test_kernels_sustain_what_lies_between_the_limits() -> None:
    least = DOMAIN["attainable"]["near_peak"]
    without = attainable_shares(DOMAIN, {})
    assert {without[unit] for unit in ("dram", "l2", "l1")} == {least}
    assert without["issue"] == without["fp32"] == pytest.approx(np.sqrt(least))
    known = attainable_shares(DOMAIN, {"dram": 0.94, "l2": 0.5, "fp32": 0.98})
    assert known["dram"] == pytest.approx(np.sqrt(least * 0.94))
    assert known["l2"] == 0.5
    assert known["fp32"] == pytest.approx(np.sqrt(least * 0.98))
    assert known["l1"] == least


def test_a_function_of_one_unit_goes_before_that_of_all() -> None:
    known = measured({"F_ArithThr": [(1, 0.9)], "F_ArithThr:fp32": [(1, 0.97)]}).sustained
    assert known == {"fp32": 0.97, **dict.fromkeys(("fp64", "tensor", "xu", "integer", "issue"), 0.9)}


def test_shared_memory_is_judged_at_its_own_conflict_degree(demo: Engine) -> None:
    sweep = {"F_SHMEM": [(1.0, 1.0), (2.0, 0.9), (16.0, 0.8)]}
    plain, ours = criteria_of(demo, {}).loc["shared_efficiency"], criteria_of(demo, sweep).loc["shared_efficiency"]
    counters = store.counters(demo, 1)
    degree = counters["shared_wavefronts_sass"] / counters["shared_wavefronts_ideal"]
    factor = ours["value"] / plain["value"]
    assert factor[degree > 16].round(9).unique().tolist() == [0.8]
    assert factor[degree.between(1.99, 2.01)].round(2).unique().tolist() == [0.9]
    assert (factor[degree.isna()] == 1).all()
    extrapolated = (ours["flags"] & int(Flag.EXTRAPOLATED)) != 0
    assert extrapolated[degree > 16].all()
    assert not extrapolated[degree <= 16].any()


def test_divergence_is_judged_at_its_own_share_of_control_statements(demo: Engine) -> None:
    sweep = {"F_Divergence": [(0.0, 1.0), (1.0, 0.5)]}
    plain, ours = criteria_of(demo, {}).loc["divergence"], criteria_of(demo, sweep).loc["divergence"]
    counters = store.counters(demo, 1)
    control = counters["branch_inst_warp"] / counters["inst_executed_warp"]
    assert np.allclose(ours["value"] / plain["value"], 1 - control / 2)
    unknown_first = measured({"F_Divergence": [(0.1, 0.9), (0.5, 0.6)]}).at("F_Divergence", [np.nan, 0.5])
    assert unknown_first.y.tolist() == [0.9, 0.6]


def test_occupancy_counts_less_beside_an_attainable_bandwidth(demo: Engine) -> None:
    plain = criteria_of(demo, {}).loc["throughput_occupancy"]
    ours = criteria_of(demo, {"F_DRAMThr": [(1.0, 0.92)]}).loc["throughput_occupancy"]
    occupancy, memory = (
        store.counters(demo, 1)[n] for n in ("theoretical_occupancy_fraction", "dram_throughput_fraction")
    )
    expected = 1 - (1 - occupancy) * (1 - np.minimum(memory / 0.92, 1))
    assert np.allclose(ours["value"], expected, equal_nan=True)
    assert (ours["value"] >= plain["value"]).all()


def figures(**changed: float) -> pd.DataFrame:
    table = pd.DataFrame({"duration_ns": [1.0]})
    return peaks(table, specs.figures("NVIDIA H200", "9.0"))[0].assign(**changed)


def test_costs_stand_over_those_at_peak_rate() -> None:
    h200 = specs.device("NVIDIA H200")
    sector = 32 * h200.boost_clock_hz / h200.dram_peak_bytes_per_s
    assert peak_costs(figures())["dram_load"].tolist() == [sector]
    assert peak_costs(figures(boost_clock_hz=np.nan, sm_clock_hz=1e9))["dram_load"].tolist() == [
        32e9 / h200.dram_peak_bytes_per_s
    ]
    known = measured(
        {
            "k_dram_load": [(np.nan, 2 * sector), (np.nan, 2 * sector), (np.nan, 9.0)], "F_DRAMThr": [(1, 0.8)],
            "k_double": [(np.nan, 0.6)], "k_l1_store": [(np.nan, 0.9)], "k_l2_load": [(np.nan, 3.0)],
        }
    )  # fmt: skip
    costs = {name: float(cost[0]) for name, cost in known.costs(figures()).items()}
    assert costs.pop("dram_load") == pytest.approx(2)
    assert costs.pop("dram_store") == 1.25  # no cost of its own: what the bandwidth says
    assert costs.pop("double") == pytest.approx(1.2)
    assert set(costs.values()) == {1.0}  # below the peak's, or without a known peak rate
    assert known.costs(figures(fp64_lanes_per_sm=np.nan))["double"].tolist() == [1.0]


def test_costs_scale_the_shares_of_the_time() -> None:
    table = pd.DataFrame(
        {
            "dram_throughput_fraction": [0.4, 0.4, 0.8], "dram_read_bytes": [3.0, np.nan, 1.0],
            "dram_write_bytes": [1.0, np.nan, 0.0], "sol_l2_fraction": [0.2, 0.2, 0.4],
        }
    )  # fmt: skip
    plain, ours = unit_time_shares(Counts(table), {}), unit_time_shares(Counts(table), {"dram_load": 2.0})
    assert np.allclose(plain["dram"], [0.4 * 2 / 3, 0.4 * 2 / 3, 0.8 * 2 / 3])
    busy = np.array([0.4 * 7 / 4, 0.4 * 3 / 2, 1.0])  # three loads of four, half of unknown, full
    assert np.allclose(ours["idle"], 1 - busy)
    assert np.allclose(ours["dram"], busy * busy / (busy + np.array([0.2, 0.2, 0.4])))
    assert np.allclose(sum(ours[name] for name in (*UNITS, "idle")), 1)


def test_costs_change_no_share_where_all_are_alike(demo: Engine) -> None:
    c = Counts(store.counters(demo, 1))
    alike = unit_time_shares(c, dict.fromkeys(OPERATIONS, 1.0))
    assert all(np.allclose(alike[name], share, equal_nan=True) for name, share in unit_time_shares(c, {}).items())


def test_a_run_without_launches_has_no_results() -> None:
    empty = pd.DataFrame(columns=["launch_id", "kernel", "device", "compute_capability"])
    assert list(analysis.analyze_launches(empty, [], frame({}), DOMAIN)) == []
