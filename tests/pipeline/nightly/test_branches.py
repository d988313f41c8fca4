"""Runs of a branch beside those of the main one: each is its own history."""

import numpy as np
from sqlalchemy import Engine

from profsvc import store
from profsvc.pipeline.nightly.document import _place as place
from profsvc.pipeline.nightly.report import series_of
from profsvc.reports.nightly.parts import parts
from profsvc.store.results.findings import series_of_finding
from profsvc.views.history import history
from profsvc.views.nightly import findings as of_findings
from tests.inputs.nights import put, quantities, report

BRANCH = 'feature/<b>"x", 30 % | slower\n'
CALM, NIGHTS = (1.0, 1.0), 12


def two_branches(engine: Engine, nights: range, *, main: tuple[float, float], branch: tuple[float, float]) -> None:
    rng = np.random.default_rng(nights.start)
    for night in nights:
        # Those of the main branch name it in three ways.
        put(engine, night, rng, temperature_c=None, slower=main, branch=("main", "", "master")[night % 3])
        put(engine, night, rng, temperature_c=None, slower=branch, branch=BRANCH, hour=5)


def test_a_slow_branch_is_no_change_of_the_main_one(engine: Engine) -> None:
    two_branches(engine, range(NIGHTS), main=CALM, branch=(1.3, 0.8))
    made = report(engine, NIGHTS - 1)
    assert made["findings"] == made["reruns"] == made["told"] == []
    assert {row["branch"] for row in made["runs"]} == {None, BRANCH}


def test_each_branch_has_its_findings_and_says_which_it_is(engine: Engine) -> None:
    two_branches(engine, range(NIGHTS), main=CALM, branch=CALM)
    report(engine, NIGHTS - 1)
    two_branches(engine, range(NIGHTS, NIGHTS + 3), main=(1.06, 1.0), branch=(1.0, 1.12))
    made = report(engine, NIGHTS + 2)
    assert [(*one, row["branch"]) for one, row in zip(quantities(made["findings"]), made["findings"], strict=True)] == [
        ("gemm", "duration", None),
        ("saxpy", "duration", BRANCH),
    ]  # by the time that they cost
    gemm, saxpy = made["findings"]
    assert saxpy["label"] == f"saxpy on branch {BRANCH}"
    assert gemm["label"] == "gemm"
    assert (gemm["points_before"], gemm["points_after"]) == (NIGHTS, 3)
    (runs,) = (part for part in parts(made) if part.title == "Runs")
    assert "branch" in runs.heads
    # The points of a finding are those of its branch, and so are its findings in SQL.
    known = of_findings.found(engine, saxpy["finding_id"])
    points = series_of(engine, known, series_of_finding(engine, saxpy["finding_id"]))
    assert len(points) == NIGHTS + 3
    assert store.select(engine, "v1_findings", branch=BRANCH)[0]["finding_id"] == saxpy["finding_id"]


def test_a_kernel_that_only_a_branch_has_is_neither_new_nor_vanished(engine: Engine) -> None:
    rng = np.random.default_rng(3)
    for night in range(5):
        put(engine, night, rng, temperature_c=None)
    put(engine, 4, rng, temperature_c=None, branch=BRANCH, hour=6)
    assert report(engine, 4)["kernels"] == []


def test_a_history_has_a_series_for_each_branch(engine: Engine) -> None:
    two_branches(engine, range(NIGHTS), main=CALM, branch=(1.3, 0.8))
    view = history(engine, "gemm")
    assert [(one["branch"], one["points"]) for one in view["series"]] == [(None, NIGHTS), (BRANCH, NIGHTS)]
    assert view["steps"] == []


def test_findings_list_shows_the_branch(engine: Engine) -> None:
    two_branches(engine, range(NIGHTS), main=CALM, branch=CALM)
    report(engine, NIGHTS - 1)
    two_branches(engine, range(NIGHTS, NIGHTS + 3), main=CALM, branch=(1.2, 1.0))
    report(engine, NIGHTS + 2)
    (row,) = of_findings.findings(engine)["findings"]
    assert row["branch"] == BRANCH


def test_a_report_of_two_projects_says_which_one_changed(engine: Engine) -> None:
    rng = np.random.default_rng(4)
    for night in range(NIGHTS + 3):
        for hour, project in ((2, "lab"), (3, "home")):
            slower = (1.06, 1.0) if project == "home" and night >= NIGHTS else CALM
            put(engine, night, rng, temperature_c=None, slower=slower, project=project, hour=hour)
    made = report(engine, NIGHTS + 2)
    assert "worst: gemm of home duration +" in made["one_line"]
    assert report(engine, NIGHTS + 2, project="home")["one_line"].count("home") == 0


def test_a_change_of_all_kernels_says_which_project_and_branch_it_is_of() -> None:
    first = {"project": "home", "device": "H200", "branch": "b\n"}
    made = {"findings": [first], "project": None, "runs": [first, {"project": "lab", "device": "H200"}]}
    assert place({"members": [0], "kind": "together"}, made) == " (project home, branch b\\n)"
    assert place({"members": [0], "kind": "shift"}, made) == ""
    made["runs"] = [first]
    assert place({"members": [0], "kind": "together"}, made) == " (branch b\\n)"
