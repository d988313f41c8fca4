"""Answers of the models as rows: the formulas' own numbers, how far they differ, and why there is none."""

import numpy as np
import pandas as pd
import pytest

from profsvc import specs
from profsvc.analysis.models import evaluation as models
from profsvc.analysis.models import unseen_work
from profsvc.analysis.models.agreement import agreement
from profsvc.analysis.models.answer import Answer
from profsvc.analysis.models.evaluation import Machine, amdahl_rows, model_rows
from profsvc.analysis.models.inputs import formula_arguments, model_inputs
from profsvc.formulas.benefit import Machine as OfMachine
from profsvc.formulas.benefit import benefit
from profsvc.formulas.mwp_cwp import exec_cycles
from profsvc.formulas.performance.speedup import amdahl
from tests.analysis.models.test_inputs import COPY, H200

MEMORY = specs.memory_table("H200")
WHOLE = COPY.assign(
    pipe_xu_elapsed_fraction=0.0,
    elapsed_cycles=[19800.0, 158400.0],
    flop_count_sp_add=2.0**20,
    flop_count_sp_mul=0.0,
    flop_count_sp_fma=0.0,
    flop_count_dp_add=0.0,
    flop_count_dp_mul=0.0,
    flop_count_dp_fma=0.0,
    l1_hit_fraction=0.0,
    l2_bytes=2.0**23,
    l2_utilization_fraction=0.1,
    registers_per_thread=16.0,
    shared_mem_static_bytes=0.0,
    shared_mem_dynamic_bytes=0.0,
    shared_wavefronts_sass=0.0,
    shared_wavefronts_ideal=0.0,
)
MACHINE = Machine(H200, MEMORY, {}, "ncu", "9.0")


def bounds(counters: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame({"speedup": 1.5, "bound": "dram"}, index=counters.index)


def rows(counters: pd.DataFrame = WHOLE, machine: Machine = MACHINE) -> pd.DataFrame:
    return pd.concat(model_rows(counters, machine, bounds(counters)), ignore_index=True)


def unanswered(found: pd.DataFrame) -> pd.DataFrame:
    """Rows of models without an answer; each pattern has a reason of its own, see test_antipatterns."""
    return found[found["value"].isna() & (found["model"] != "antiparallel")]


def value(found: pd.DataFrame, launch: int, model: str, quantity: str, form: str = "consistent") -> float:
    one = found[(found["launch_id"] == launch) & (found["model"] == model) & (found["quantity"] == quantity)]
    return float(one[one["form"] == form]["value"].item())


@pytest.mark.parametrize("form", ["consistent", "as_published"])
def test_rows_hold_what_the_formulas_say(form: str) -> None:
    found, inputs = rows(), model_inputs(WHOLE, H200, MEMORY)
    freq = 1.98e9
    cycles = exec_cycles(**formula_arguments("mwp_cwp", inputs.values), form=form)
    parts = benefit(
        **formula_arguments("benefit", inputs.values),
        machine=OfMachine(**formula_arguments("machine", inputs.values)),
        form=form,
    )
    for place, launch in enumerate(WHOLE.index):
        expected = cycles.cycles_with_sync[place] / freq * 1e9
        assert value(found, launch, "mwp_cwp", "time_ns", form) == pytest.approx(expected)
        assert value(found, launch, "benefit", "time_ns", form) == pytest.approx(parts.T_exec[place] / freq * 1e9)


def test_every_model_answers_once_a_launch_and_quantity() -> None:
    found = rows()
    assert set(found["model"]) == set(specs.models()) - {"amdahl"} | {"inputs"}
    assert unanswered(found).empty
    assert not found.duplicated(["launch_id", "model", "quantity", "form"]).any()
    assert found["flags"].ge(0).all()
    coded = found[found["quantity"].isin(["bound", "case", "category", "limiter", "ceiling", "best"])]
    assert coded["label"].notna().all()
    assert len(found) / len(WHOLE) < 125


def test_a_time_of_the_throughput_model_is_its_work_over_its_performance() -> None:
    found = rows()
    for launch, flop in zip(WHOLE.index, [2.0**20] * 2, strict=True):
        perf = value(found, launch, "throughput", "flop_per_s")
        assert flop / perf * 1e9 == pytest.approx(value(found, launch, "throughput", "time_ns"))


def test_a_roofline_of_a_copy_is_its_traffic_at_the_lowest_bandwidth() -> None:
    found = rows()
    expected = 2.0**23 / H200["dram_peak_bytes_per_s"] * 1e9
    assert value(found, 7, "roofline", "time_ns") == pytest.approx(expected)
    assert value(found, 7, "roofline", "intensity_dram") == 2.0**20 / 2.0**23
    kinds = found[(found["launch_id"] == 7) & (found["model"] == "roofline")].set_index("quantity")["label"]
    assert (kinds["bound"], kinds["ceiling"]) == ("memory", "dram")


def test_blocks_of_launches_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    many = pd.concat([WHOLE] * 3).set_index(pd.Index(range(6), name="launch_id"))
    whole = rows(many)
    monkeypatch.setattr(models, "LAUNCHES_PER_BLOCK", 4)
    order = ["launch_id", "model", "quantity", "form"]
    parts = rows(many).sort_values(order).reset_index(drop=True)
    pd.testing.assert_frame_equal(parts, whole.sort_values(order).reset_index(drop=True), check_dtype=False)


def test_inputs_are_rows_with_the_way_they_came() -> None:
    found = rows()
    own = found[(found["launch_id"] == 7) & (found["model"] == "inputs")].set_index("quantity")
    assert (own.loc["n_comp", "value"], own.loc["n_comp", "form"]) == (10.0, "derived: insts_all - n_coal - n_uncoal")
    assert "Mem_LD 689" in own.loc["device", "label"]
    assert "ilp 1" in own.loc["assumed", "label"]
    assert own.loc["assumed", "value"] == own.loc["assumed", "label"].count(",") + 1
    assert "blocks" not in own.index  # a counter, as it is


def test_a_model_without_its_counters_says_which_and_how_to_collect_them() -> None:
    found = rows(WHOLE.drop(columns=["dram_bytes", "registers_per_thread"]))
    none = unanswered(found).query("launch_id == 7").set_index("model")
    assert set(none.index) == {"benefit", "mwp_cwp", "throughput", "roofline", "time_bound", "latency_hiding",
                               "occupancy"}  # fmt: skip
    assert none.loc["time_bound", "reason"].startswith("the export has no dram_bytes; collect with: ncu --")
    assert none.loc["occupancy", "reason"].startswith("the export has no registers_per_thread; collect with: ncu --")
    assert none.loc["occupancy", "quantity"] == "occupancy"
    assert value(found, 7, "waves", "waves") == 4.0  # what needs neither has its answer


def test_launches_that_lack_different_counters_have_their_own_reasons() -> None:
    found = rows(WHOLE.assign(dram_bytes=[np.nan, 2.0**26]))
    none = unanswered(found)
    assert set(none["launch_id"]) == {7}
    assert value(found, 8, "time_bound", "t_min_ns") > 0


def test_an_unknown_device_is_said_to_be_unknown() -> None:
    found = rows(WHOLE, Machine({}, {}, {}))
    reason = found[found["value"].isna() & (found["launch_id"] == 7)].set_index("model")["reason"]
    assert "dram_peak_bytes_per_s" in reason["time_bound"]
    assert reason["occupancy"] == models.UNKNOWN_SM_LIMITS


def test_matrix_work_that_nobody_counted_is_refused_by_all_models_of_time() -> None:
    found = rows(WHOLE.assign(inst_tensor_warp=[0.0, 1e4]))
    none = unanswered(found)
    counting = {"throughput", "roofline", "time_bound", "ryoo"}
    assert set(zip(none["launch_id"], none["model"], strict=True)) == {
        (8, model) for model in (*counting, *unseen_work.WARP_MODELS)
    }
    assert set(none[none["model"].isin(counting)]["reason"]) == {models.UNCOUNTED_MATRIX_OPS}
    assert set(none[~none["model"].isin(counting)]["reason"]) == {unseen_work.NO_MATRIX_COST}


def test_a_model_of_warps_refuses_what_it_cannot_see() -> None:
    crossed = 2.0**16 * unseen_work.MAX_REQUEST_BYTES
    found = rows(WHOLE.assign(l2_to_l1_read_bytes=[crossed, 1.01 * crossed], l1_to_l2_write_bytes=0.0))
    none = unanswered(found)
    assert set(zip(none["launch_id"], none["model"], strict=True)) == {
        (8, model) for model in ("throughput", *unseen_work.WARP_MODELS)
    }
    assert set(none["reason"]) == {unseen_work.UNEXPLAINED_TRAFFIC}
    bulk = rows(WHOLE.assign(tma_load_inst_warp=[0.0, 5.0], tma_load_bytes=[0.0, 5e6], l2_to_l1_read_bytes=[0.0, 5e6]))
    none = unanswered(bulk)
    assert set(zip(none["launch_id"], none["model"], strict=True)) == {(8, model) for model in unseen_work.WARP_MODELS}
    assert set(none["reason"]) == {unseen_work.NO_BULK_COPIES}


def test_models_that_agree_have_no_spread() -> None:
    v = {"duration_s": np.array([1e-6])}
    alike = {name: [Answer("time_ns", np.array([500.0]), "ns")] for name in ("mwp_cwp", "benefit", "throughput")}
    said = {one.quantity: one for one in agreement(alike, v, np.array([1.0]), np.array([2.0]))}
    assert (said["time_ratio"].value.item(), said["time_spread"].value.item()) == (pytest.approx(0.5), 1.0)
    assert (said["bound"].names[int(said["bound"].value[0])], said["memory_votes"].value.item()) == ("memory", 1.0)
    assert np.isnan(said["speedup_spread"].value).all()  # one answer has no spread


def test_models_that_differ_are_disputed() -> None:
    v = {"duration_s": np.array([1e-6, 1e-6])}
    found = {
        "mwp_cwp": [Answer("time_ns", np.array([500.0, np.nan]), "ns"), Answer("case", np.array([2.0, 1.0]))],
        "benefit": [Answer("time_ns", np.array([2000.0, np.nan]), "ns"), Answer("bound", np.array([0.0, 0.0])),
                    Answer("speedup", np.array([4.0, 1.0]))],
        "roofline": [Answer("time_ns", np.array([500.0, 1e-9]), "ns"), Answer("bound", np.array([1.0, np.nan]))],
    }  # fmt: skip
    said = {one.quantity: np.asarray(one.value) for one in agreement(found, v, None, np.array([1.0, 1.0]))}
    assert said["time_ratio"][0] == pytest.approx(1.0)
    assert np.isnan(said["time_ratio"][1])
    assert said["time_spread"][0] == 4.0
    assert (said["bound"].tolist(), said["memory_votes"].tolist()) == ([2.0, 0.0], [pytest.approx(2 / 3), 0.0])
    assert (said["speedup_low"][0], said["speedup_high"][0]) == (1.0, 4.0)
    assert said["speedup_high"][1] == 1.0  # a roofline of next to nothing promises nothing


def test_a_kernel_alone_speeds_up_the_run_by_its_share() -> None:
    launches = pd.DataFrame(
        {"kernel": ["a", "b", "a", "c"], "duration_ns": [30.0, 40.0, 20.0, 5.0], "ideal_ns": [10.0, 40.0, 15.0, np.nan]}
    )
    found = amdahl_rows(launches, others_ns=5.0).set_index(["kernel", "quantity"])["value"]
    assert found["a", "share"] == 0.5
    assert found["a", "speedup"] == pytest.approx(float(amdahl(0.5, 0.5)))
    assert found["b", "speedup"] == 1.0
    assert ("c", "share") not in found.index
    assert amdahl_rows(launches.assign(ideal_ns=np.nan)).empty


def test_one_command_collects_what_a_model_lacks() -> None:
    reason = rows(WHOLE.drop(columns=["duration_ns", "dram_bytes"]))
    (found,) = reason[reason["value"].isna() & (reason["launch_id"] == 7) & (reason["model"] == "time_bound")]["reason"]
    assert found == (
        "the export has no duration_ns, dram_bytes; collect with: ncu --section SpeedOfLight --metrics dram__bytes.sum"
    )
    (found,) = rows(WHOLE.drop(columns=["l2_bytes", "l2_utilization_fraction", "registers_per_thread"])).query(
        "launch_id == 7 and model == 'occupancy' and value.isna()"
    )["reason"]
    assert found.startswith("the export has no registers_per_thread; collect with: ncu --page raw")


def test_where_an_option_is_not_known_everything_is_collected() -> None:
    found = rows(WHOLE.drop(columns=["block_threads"]), MACHINE._replace(tool="nvprof", capability="6.0"))
    reason = found[found["value"].isna() & (found["launch_id"] == 7)].set_index("model")["reason"]
    assert reason["occupancy"].startswith("the export has no block_threads; to collect them, run: ")
    assert "--print-gpu-trace" in reason["occupancy"]
    traced = rows(WHOLE.drop(columns=["block_threads"]), MACHINE._replace(tool="rocprof"))
    assert set(traced[traced["model"] == "occupancy"]["reason"].dropna()) == {"the export has no block_threads"}
