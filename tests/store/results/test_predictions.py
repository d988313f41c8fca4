"""Predictions: those of a run, and the pairs of runs that show what was achieved."""

from typing import Any

import pandas as pd
import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import Engine

from profsvc import store
from profsvc.errors import AccessError, NotFoundError
from profsvc.formulas.numerics.flags import Flag
from profsvc.store.maintenance import migrations, readiness
from tests.conftest import COUNTERS
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
        "speedup_as_published": [2.0, 3.0, None],
        "duration_ns": [1250.0, 1251.0, 1250.5],
        "flags": [int(Flag.LOWER_BOUND), 0, int(Flag.UPPER_BOUND)],
        "ceiling_flags": [0, int(Flag.UPPER_BOUND), 0],
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
        "criteria": pd.DataFrame({**of_launch, "speedup": [2.0, float("inf")], "flags": [int(Flag.UPPER_BOUND), 0]}),
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
        "scored": 1, "reason": None, "analysis_version": "7", "changed": 1, "changed_because": "it was said",
    } | changes  # fmt: skip


def test_a_speedup_of_a_kernel_is_that_of_all_its_time(pair: Engine) -> None:
    told = {(row["kernel"], row["kind"], row["criterion"]): row for row in store.predicted_speedups(pair, 1)}
    overall = told[KERNELS[0], "overall", "overall"]
    assert overall["predicted"] == pytest.approx(2501 / (1250 / 2 + 1251 / 4))
    assert (overall["source"], overall["analysis_version"], overall["value"]) == ("profsvc", "7", None)
    assert told[KERNELS[0], "ceiling", "ceiling"]["predicted"] == pytest.approx(2501 / (1250 / 4 + 1251 / 8))
    of_one = told[KERNELS[0], "criterion", "divergence"]
    assert (of_one["predicted"], of_one["value"]) == (2, 0.5)
    sides = {key[1:]: (row["is_floor"], row["is_ceiling"]) for key, row in told.items()}
    assert sides == {
        ("overall", "overall"): (1, 0), ("ceiling", "ceiling"): (0, 1), ("overall", "overall_as_published"): (0, 0),
        ("criterion", "divergence"): (0, 1), ("model", "roofline"): (0, 0), ("model", "B_fp"): (0, 0),
    }  # fmt: skip
    assert told[KERNELS[0], "model", "roofline"]["predicted"] == 2
    assert told[KERNELS[0], "model", "B_fp"]["predicted"] == pytest.approx(1.25)
    assert {key[0] for key in told} == {KERNELS[0]}  # what is not known, or without end, is not there
    assert store.predicted_speedups(pair, 2) == []


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
    told = {(row["kernel"], row["criterion"]): row["predicted"] for row in store.predicted_speedups(engine, 1)}
    assert told == {(KERNELS[0], "overall"): 2, (KERNELS[1], "overall"): 3, (KERNELS[0], "divergence"): 1.5,
                    (KERNELS[1], "divergence"): 4}  # fmt: skip
    values = store.criteria_of_kernels(engine, 1)
    assert values == {(KERNELS[0], "divergence"): 0.5, (KERNELS[1], "divergence"): 0.25}


def test_the_work_of_a_kernel_is_its_threads_its_device_and_its_tool(pair: Engine) -> None:
    works = [store.kernel_work(pair, run_id)[KERNELS[0]] for run_id in (1, 2)]
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
    whole = {"kind": "overall", "criterion": "overall"}
    told = [prediction(**whole, **more) for more in ({}, {"source": "ncu"}, {"scored": 0})]
    store.save_predictions(pair, 1, 2, told)
    rows, recorded = store.scored_predictions(pair)
    assert ([row["source"] for row in rows], recorded) == (["profsvc", "ncu"], {None: 2, "not comparable": 1})
    rows, recorded = store.scored_predictions(pair, most=1)
    assert ([row["source"] for row in rows], recorded) == (["ncu"], {None: 2, "not comparable": 1})
    assert store.scored_predictions(pair, "lab", "ncu")[1] == {None: 1}
    assert store.scored_predictions(pair, "other")[1] == {}
    assert store.prediction_sources(pair) == ["ncu", "profsvc"]


def test_the_view_says_why_a_pair_does_not_count(pair: Engine) -> None:
    cases = {
        None: {}, "not comparable": {"scored": 0, "reason": "other work", "changed": 0},
        "unchanged": {"changed": 0, "changed_because": "the same"},
        "unknown": {"changed": None, "changed_because": "nothing says"},
    }  # fmt: skip
    whole = {"kind": "overall", "criterion": "overall"}
    told = [prediction(source=why or "counts", **whole, **more) for why, more in cases.items()]
    store.save_predictions(pair, 1, 2, [*told, *(prediction(kind=kind, source=kind) for kind in store.PARTIAL_KINDS)])
    parts = store.select(pair, "v1_predictions", left_out="part")
    assert {row["source"]: (row["scored"], row["reason"]) for row in parts} == dict.fromkeys(
        store.PARTIAL_KINDS, (0, store.PARTIAL_REASON)
    )
    store.save_predictions(pair, 1, 2, told)
    found = {row["left_out"]: row for row in store.select(pair, "v1_predictions")}
    assert {why: (row["source"], row["scored"], row["changed"], row["reason"]) for why, row in found.items()} == {
        None: ("counts", 1, 1, None), "not comparable": ("not comparable", 0, 0, "other work"),
        "unchanged": ("unchanged", 0, 0, "the same"), "unknown": ("unknown", 0, None, "nothing says"),
    }  # fmt: skip
    rows, recorded = store.scored_predictions(pair, unchanged=True)
    assert {row["source"] for row in rows} == {"counts", "unchanged", "unknown"}
    assert recorded == dict.fromkeys(cases, 1)


def test_the_traits_of_a_kernel_are_the_ends_of_its_launches(pair: Engine) -> None:
    counted = {"launch_id": [FIRST, THIRD, SECOND], "counter": ["inst_executed_warp"] * 3,
               "value": [9.0, 7.0, None], "expression": ["inst", "rounded", "inst"]}  # fmt: skip
    store.save_results(pair, 1, [{"counters": pd.DataFrame(counted)}], "8")
    traits = store.kernel_properties(pair, 1, ["inst_executed_warp", "l2_bytes"])
    known = {("inst_executed_warp", "inst"): (9, 9), ("inst_executed_warp", "rounded"): (7, 7), ("grid_x", ""): (1, 1),
             ("block_z", ""): (1, 1)}  # fmt: skip
    assert {name: number for name, (number, _) in traits.items()} == dict.fromkeys(KERNELS, 2)
    assert known.items() <= traits[KERNELS[0]][1].items()
    assert not {name for name, _ in traits[KERNELS[1]][1]} & {"inst_executed_warp", "registers_per_thread"}


def rows_of(engine: Engine) -> list[dict[str, Any]]:
    return [{name: row[name] for name in ("run_before", "run_after", "kernel_after", "left_out", "changed")}
            for row in store.select(engine, "v1_predictions")]  # fmt: skip


def test_predictions_of_an_older_schema_are_looked_at(pair: Engine) -> None:
    for name, more in (("c", {"tags": {"binary": "x"}}), ("d", {"tags": {"binary": "x"}}), ("e", {"commit_id": "1"}),
                       ("f", {"commit_id": "2"})):  # fmt: skip
        store.write_upload(pair, info(name), store.RunInfo(name=name, project="lab", **more), batches())
    executed = {1: 64.0, 2: 64.0, 3: 48.0}
    for run_id, value in executed.items():
        counted = {"launch_id": [run_id * 10**9 + 1], "counter": ["inst_executed_warp"], "value": [value],
                   "expression": ["inst"]}  # fmt: skip
        store.save_results(pair, run_id, [{"counters": pd.DataFrame(counted)}], "8")
    same = {"kernel_after": KERNELS[0], "matched_by": "name"}
    expected = {(1, 2): 1, (3, 4): 0, (4, 3): 0, (5, 6): 1, (5, 5): 0, (4, 6): None, (3, 1): 1}
    for runs, changed in expected.items():
        store.save_predictions(pair, *runs, [prediction(**same, changed=changed)])
    store.save_predictions(pair, 2, 1, [prediction(changed=1)])  # by --map, to another kernel
    before = rows_of(pair)
    config = Config()
    config.set_main_option("script_location", str(readiness.migrations_folder()))
    with migrations.changing_schema(pair) as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, "0014")
    assert migrations.upgrade(pair, COUNTERS) == store.latest_revision()
    assert rows_of(pair) == before
    assert all(row["changed_because"] for row in store.select(pair, "v1_predictions"))


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
