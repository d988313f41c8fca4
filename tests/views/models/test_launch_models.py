"""Models side by side where a launch is opened, and an answer walked back to the lines of the file."""

import json

import numpy as np
import pytest
from sqlalchemy import Engine

from profsvc import specs, store, views
from profsvc.analysis.models.inputs import formula_arguments
from profsvc.formulas.mwp_cwp import exec_cycles
from profsvc.reports.text.launches import details as launch_text
from profsvc.reports.text.models.launch_models import model_lines
from profsvc.views.explain.numbers import explain
from profsvc.views.models.launch_models import inputs_of, side_by_side

SAXPY = "7"


@pytest.fixture(scope="module")
def opened(demo: Engine) -> dict:
    (one,) = views.launch(demo, "h200", SAXPY)["launches"]
    return one


def test_models_of_one_question_stand_beside_each_other(demo, opened):
    view = opened["models"]
    assert json.loads(json.dumps(view, allow_nan=False)) == view
    assert [row["model"] for row in view["times"]] == ["mwp_cwp", "benefit", "throughput"]
    assert [row["model"] for row in view["speedups"]] == ["potential", "benefit"]
    ratios = [row["ratio"] for row in view["times"]]
    assert view["agreement"]["time_spread"] == pytest.approx(max(ratios) / min(ratios))
    assert view["agreement"]["time_ratio"] == pytest.approx(np.exp(np.log(ratios).mean()))
    assert view["agreement"]["bound"] == "memory"
    assert {row["bound"] for row in view["bounds"]} == {"memory", "too few warps"}
    assert view["missing"] == []
    assert "ilp 1" in view["assumed"]


def test_the_agreement_of_models_is_not_called_their_uncertainty(demo, opened):
    page = launch_text.launches(views.launch(demo, "h200", SAXPY))
    assert "predicted time, measured 219.3 us" in page
    assert f"agreement: the predicted times differ by x{opened['models']['agreement']['time_spread']:.2f}" in page
    assert "uncertainty" not in page
    for row in opened["models"]["times"]:
        assert f"typical error x{row['record']['factor']:.2f}" in page
    assert "other kernels limited by latency on NVIDIA H200" in page or "limited by memory on NVIDIA H200" in page
    assert "all models say memory-bound" in page
    assert "assumed (no counter available): n_sync 0" in page


def test_a_launch_without_models_prints_nothing_about_them():
    assert list(model_lines(side_by_side([], None, None), None)) == []


def test_a_model_without_an_answer_prints_why(demo):
    rows = store.select(demo, "v1_models", model="mwp_cwp")[:1]
    rows[0] |= {"value": None, "reason": "the export has no x", "form": "consistent"}
    assert list(model_lines(side_by_side(rows, 1.0, None), 1.0)) == [
        "   predicted time: none",
        "   Memory and computation warps: the export has no x",
    ]


def test_inputs_of_a_launch_give_its_rows_again(demo, opened):
    inputs, figures = inputs_of(demo, opened["launch"])
    assert figures["key"] == "H200"
    cycles = exec_cycles(**formula_arguments("mwp_cwp", inputs.values)).cycles_with_sync
    time_ns = float(np.ravel(cycles / inputs.values["freq"] * 1e9)[0])
    assert time_ns == pytest.approx(opened["models"]["times"][0]["time_ns"], rel=1e-12)
    stored = store.select(demo, "v1_models", launch_id=opened["launch"]["launch_id"], model="inputs")
    for row in stored:
        if row["quantity"] in inputs.values:
            assert float(np.ravel(inputs.values[row["quantity"]])[0]) == pytest.approx(row["value"]), row["quantity"]


@pytest.mark.parametrize("model", list(specs.models()))
def test_every_model_is_explained(model):
    view = explain(None, model, None, None)
    assert (view["kind"], view["name"]) == ("result", model)
    assert view["formula"]
    assert view["source"]


def test_an_answer_is_walked_to_its_inputs_counters_and_lines(demo):
    rows = explain(demo, "mwp_cwp", "h200", SAXPY)["trace"]
    named = {row["name"]: row for row in rows if row["name"]}
    assert named["N_pw"]["value"] == pytest.approx(128, rel=0.01)  # two loads of each of 64 warps
    assert 64 < named["mwp_cwp.MWP"]["value"] < 128
    assert named["mwp_cwp.case"]["from"].endswith("too few warps")
    assert named["n_comp"]["from"] == "derived: insts_all - n_coal - n_uncoal"
    assert named["Mem_LD"] | {"launch": 7} == {
        "launch": 7, "name": "Mem_LD", "value": 689.0, "unit": "cycle", "from": "device: memory.Mem_LD",
    }  # fmt: skip
    assert named["n_sync"]["from"] == "assumed 0 when barriers are not counted"
    assert named["inst_executed_warp"]["from"] == "smsp__inst_executed.sum"
    cells = [row for row in rows if row.get("metric") == "smsp__inst_executed.sum"]
    assert cells[0]["line"] > 2


def test_an_input_is_explained_by_its_expression(demo):
    view = explain(demo, "issue_cycles", "h200", SAXPY)
    assert (view["kind"], view["formula"], view["unit"]) == ("input", "warp / SIMD_width", "cycle")
    assert view["hint"] == "input of latency_hiding, mwp_cwp, throughput"
    assert [row["name"] for row in view["trace"] if row["name"]][:3] == ["issue_cycles", "warp", "SIMD_width"]


def test_the_share_of_a_kernel_in_the_run_is_explained_by_kernel(demo):
    rows = [row for row in explain(demo, "amdahl", "h200", SAXPY)["trace"] if row["name"].startswith("amdahl")]
    assert {row["name"] for row in rows} == {"amdahl.share", "amdahl.speedup"}
    (found,) = store.select(demo, "v1_models", model="amdahl", quantity="share", kernel_short="saxpy")
    assert found["launch_id"] is None
    assert found["value"] in [row["value"] for row in rows]
