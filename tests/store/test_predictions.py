"""Predictions: what was foretold of a run, and the pairs of runs that say what came of it."""

from typing import Any

import pandas as pd
import pytest
from sqlalchemy import Engine

from profsvc import store
from profsvc.errors import AccessError, NotFoundError
from tests.store.conftest import KERNELS, batches, info

FIRST, SECOND, THIRD = 1_000_000_001, 1_000_000_002, 1_000_000_003


@pytest.fixture
def pair(engine: Engine) -> Engine:
    """Two runs of the same program: launches 1 and 3 of the first are of one kernel, 1250 and 1251 ns long."""
    for number, name in enumerate(("before", "after")):
        run = store.RunInfo(name=name, project="lab")
        store.write_upload(engine, info(name), run, batches(**sizes(number)))
    bounds = {
        "launch_id": [FIRST, THIRD, SECOND],
        "speedup": [2.0, 4.0, None],
        "speedup_ceiling": [4.0, 8.0, None],
        "duration_ns": [1250.0, 1251.0, 1250.5],
    }
    of_launch = {"launch_id": [FIRST, SECOND], "criterion": ["divergence"] * 2, "value": [0.5, 0.25]}
    models = {
        "launch_id": [FIRST] * 3,
        "model": ["roofline", "benefit", "roofline"],
        "quantity": ["time_ns", "B_fp", "ridge"],
        "value": [625.0, 0.2, 9.0],
        "form": ["consistent"] * 3,
    }
    found = {
        "potential": pd.DataFrame(bounds),
        "criteria": pd.DataFrame({**of_launch, "speedup": [2.0, float("inf")]}),
        "models": pd.DataFrame(models),
    }
    store.save_results(engine, 1, [found], "7")
    return engine


def sizes(number: int) -> dict[str, Any]:
    return {name: [1 + number] * 2 for name in ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")}


def prediction(**changes: Any) -> dict[str, Any]:
    return {
        "kernel_before": KERNELS[0], "kernel_after": KERNELS[1], "device": "NVIDIA H200", "source": "profsvc",
        "kind": "criterion", "criterion": "divergence", "predicted": 2.0, "achieved": 1.5, "value_before": 0.5,
        "value_after": 0.75, "before_ns": 1250.0, "after_ns": 833.0, "matched_by": "map", "same_work": "map",
        "scored": 1, "reason": None, "analysis_version": "7",
    } | changes  # fmt: skip


def test_a_speedup_of_a_kernel_is_that_of_all_its_time(pair: Engine) -> None:
    told = {(row["kernel"], row["kind"], row["criterion"]): row for row in store.foretold(pair, 1)}
    overall = told[KERNELS[0], "overall", "overall"]
    assert overall["predicted"] == pytest.approx(2501 / (1250 / 2 + 1251 / 4))
    assert (overall["source"], overall["analysis_version"], overall["value"]) == ("profsvc", "7", None)
    assert told[KERNELS[0], "ceiling", "ceiling"]["predicted"] == pytest.approx(2501 / (1250 / 4 + 1251 / 8))
    of_one = told[KERNELS[0], "criterion", "divergence"]
    assert (of_one["predicted"], of_one["value"]) == (2, 0.5)
    assert told[KERNELS[0], "model", "roofline"]["predicted"] == 2
    assert told[KERNELS[0], "model", "B_fp"]["predicted"] == pytest.approx(1.25)
    assert {key[0] for key in told} == {KERNELS[0]}  # what is not known, or without end, is not there
    assert store.foretold(pair, 2) == []


def test_of_kernels_with_means_alone_the_means_count_and_launches_come_before_them(engine: Engine) -> None:
    store.write_upload(engine, info(), store.RunInfo(name="means"), batches())
    ids = pd.Series([FIRST, None, None], dtype="Int64")
    kernels = {"launch_id": ids, "kernel": [None, KERNELS[0], KERNELS[1]]}
    found = {
        "potential": pd.DataFrame({**kernels, "speedup": [2.0, 9.0, 3.0], "duration_ns": [1250.0, 1.0, 1.0]}),
        "criteria": pd.DataFrame({**kernels, "criterion": ["divergence"] * 3, "value": [0.5, 0.1, 0.25],
                                  "speedup": [1.5, 9.0, 4.0]}),
    }  # fmt: skip
    store.save_results(engine, 1, [found], "7")
    told = {(row["kernel"], row["criterion"]): row["predicted"] for row in store.foretold(engine, 1)}
    assert told == {(KERNELS[0], "overall"): 2, (KERNELS[1], "overall"): 3, (KERNELS[0], "divergence"): 1.5,
                    (KERNELS[1], "divergence"): 4}  # fmt: skip
    values = store.criteria_of_kernels(engine, 1)
    assert values == {(KERNELS[0], "divergence"): 0.5, (KERNELS[1], "divergence"): 0.25}


def test_the_work_of_a_kernel_is_its_threads_its_device_and_its_tool(pair: Engine) -> None:
    works = [store.work_of_kernels(pair, run_id)[KERNELS[0]] for run_id in (1, 2)]
    threads = [(work["least_threads"], work["most_threads"], work["unknown"]) for work in works]
    assert threads == [(1, 1, 0), (64, 64, 0)]
    assert {(work["device"], work["other_device"]) for work in works} == {("NVIDIA H200", "NVIDIA H200")}


def test_a_pair_made_anew_replaces_what_it_had(pair: Engine) -> None:
    store.save_predictions(pair, 1, 2, [prediction(), prediction(criterion="overall", kind="overall")])
    store.save_predictions(pair, 2, 1, [prediction(achieved=0.7)])
    store.save_predictions(pair, 1, 2, [prediction(reason="why", scored=0, device=None, value_after=None)])
    rows = store.select(pair, "v1_predictions")
    assert [(row["run_before"], row["run_after"], row["achieved"]) for row in rows] == [(2, 1, 0.7), (1, 2, 1.5)]
    newest = rows[1]
    assert {name: newest[name] for name in prediction()} == prediction(
        reason="why", scored=0, device=None, value_after=None
    )
    assert (newest["project"], newest["name_before"], newest["name_after"]) == ("lab", "before", "after")
    assert newest["made_at"].startswith("20")
    store.save_predictions(pair, 1, 2, [])
    assert [row["run_before"] for row in store.select(pair, "v1_predictions")] == [2]
    with pytest.raises(NotFoundError, match="no run has the number 9"):
        store.save_predictions(pair, 1, 9, [prediction()])


def test_those_that_count_come_newest_last(pair: Engine) -> None:
    store.save_predictions(pair, 1, 2, [prediction(), prediction(source="ncu"), prediction(scored=0)])
    rows, recorded = store.scored_predictions(pair)
    assert ([row["source"] for row in rows], recorded) == (["profsvc", "ncu"], 3)
    rows, recorded = store.scored_predictions(pair, most=1)
    assert ([row["source"] for row in rows], recorded) == (["ncu"], 3)
    assert store.scored_predictions(pair, "lab", "ncu")[1] == 1
    assert store.scored_predictions(pair, "other")[1] == 0
    assert store.sources_of_predictions(pair) == ["ncu", "profsvc"]


def test_predictions_go_with_what_they_came_from(pair: Engine) -> None:
    for run_id in (1, 2):
        store.save_predictions(pair, 1, 2, [prediction()])
        upload = store.select(pair, "v1_uploads", run_id=run_id)[0]["upload_id"]
        store.delete_upload(pair, upload)
        assert store.select(pair, "v1_predictions") == []
    store.save_predictions(pair, 1, 2, [prediction()])
    store.delete_run(pair, 2)
    assert store.select(pair, "v1_predictions") == []


def test_a_project_sees_pairs_of_its_own_runs_alone(pair: Engine) -> None:
    store.write_upload(pair, info("x"), store.RunInfo(name="x", project="other"), batches())
    for before, after in ((1, 2), (1, 3), (3, 1)):
        store.save_predictions(pair, before, after, [prediction()])
    seen = [store.list_view(pair, "v1_predictions", project=project).rows for project in (None, "lab", "other")]
    assert [len(rows) for rows in seen] == [3, 1, 0]
    with pytest.raises(AccessError, match="tells of every project"):
        store.list_view(pair, "v1_devices", project="lab")
