"""Runs of nights, their figures, reports and findings, on every kind of database."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest
from sqlalchemy import Engine

from profsvc import store
from profsvc.errors import InputError, NotFoundError, UsageError
from profsvc.pipeline.nightly import period
from profsvc.pipeline.nightly import report as of_night
from profsvc.store.connection.transactions import reading, writing
from profsvc.store.ingest import refusals
from profsvc.store.maintenance import migrations
from profsvc.tables import Batch
from profsvc.views.nightly import findings as of_findings
from profsvc.views.nightly import report as nightly
from tests.inputs.nights import DEVICE, KERNELS, MICROSECONDS, SECONDS, day, put, quantities, report
from tests.store.conftest import COUNTERS
from tests.store.maintenance.test_backfill import lower

LATER = "2027-01-01T00:00:00Z"


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(3)


def ids(frame: pd.DataFrame) -> list[int]:
    return frame["run_id"].tolist()


def test_runs_come_in_the_order_of_their_times(engine: Engine, rng: np.random.Generator) -> None:
    for night in (5, 2, 9):
        put(engine, night, rng, temperature_c=None, commit="c" * 7)
    put(engine, 3, rng, temperature_c=None, project="other")
    found = store.nightly_runs(engine, "", LATER, 0, 10)
    assert ids(found) == [2, 4, 1, 3]
    assert found["device"].tolist() == [DEVICE] * 4
    assert found["build"].tolist() == ["c" * 7, None, "c" * 7, "c" * 7]
    assert found["at"].iloc[0] == "2026-01-03T02:00:00Z"
    assert ids(store.nightly_runs(engine, "lab", LATER, 0, 10)) == [2, 1, 3]
    assert ids(store.nightly_runs(engine, "", LATER, 0, 2)) == [4, 1, 3]  # two of each project at most
    assert ids(store.nightly_runs(engine, "", LATER, 3, 10)) == [4]  # nothing new came for the other
    assert ids(store.nightly_runs(engine, "", "2026-01-07T00:00:00Z", 0, 10)) == [2, 4, 1]
    assert store.projects(engine) == ["lab", "other"]


def test_a_run_that_only_has_the_files_of_an_earlier_one_names_it(engine: Engine) -> None:
    files = {"first": "ab", "again": "a", "same": "ba", "more": "bc", "lab first": "a", "x first": "b"}
    for number, (name, contents) in enumerate(files.items(), 1):
        project, tags = "lab" if "lab" in name else "default", {"branch": "x"} if "x " in name else {}
        run = store.RunInfo(project=project, name=name, started_at=f"2026-01-0{number}T00:00:00Z", tags=tags)
        for content in contents:
            info = store.UploadInfo(f"{content}.csv", content * 64, 1, "ncu-raw", received_at=run.started_at)
            store.write_upload(engine, info, run, iter([Batch(lines_skipped=1)]))
    found = store.nightly_runs(engine, "", LATER, 0, 10)
    assert dict(zip(found["run"], found["repeats"], strict=True)) == {
        "first": None, "again": "first", "same": "first", "more": None, "lab first": None, "x first": None
    }  # fmt: skip
    # What is not there yet, or not any more, is no earlier one.
    assert set(store.nightly_runs(engine, "", "2026-01-02T00:00:00Z", 0, 10)["repeats"]) == {None}
    store.delete_run(engine, 1)
    found = store.nightly_runs(engine, "default", LATER, 0, 10)
    assert dict(zip(found["run"], found["repeats"], strict=True)) == {
        "again": None, "same": None, "more": None, "x first": None
    }  # fmt: skip


def test_each_branch_is_a_history_of_its_own(engine: Engine, rng: np.random.Generator) -> None:
    branches = ("main", "", "x", "x", "trunk", "*")
    for night, branch in enumerate(branches, 1):
        put(engine, night, rng, temperature_c=None, branch=branch)
    found = store.nightly_runs(engine, "", LATER, 0, 10)
    assert found["branch"].tolist() == [None, None, "x", "x", None, "*"]
    assert ids(store.nightly_runs(engine, "", LATER, 0, 2)) == [2, 3, 4, 5, 6]  # two of each branch at most
    assert ids(store.nightly_runs(engine, "", LATER, 3, 10)) == [1, 2, 3, 4, 5, 6]
    assert ids(store.nightly_runs(engine, "", LATER, 4, 10)) == [1, 2, 5, 6]  # nothing new came for x
    assert ids(store.nightly_runs(engine, "", LATER, 0, 10, None)) == [1, 2, 5]
    assert ids(store.nightly_runs(engine, "", LATER, 0, 10, "x")) == [3, 4]


def test_findings_of_branches_get_their_own_series(engine: Engine, rng: np.random.Generator) -> None:
    for night in range(1, 18):
        for branch in ("main", "x"):
            put(engine, night, rng, temperature_c=None, slower=(1.1, 1.0) if night > 14 else (1.0, 1.0), branch=branch)
    report(engine, 17)
    columns = "SELECT finding_id, branch, series FROM findings ORDER BY finding_id"
    with reading(engine) as connection:
        wanted = connection.exec_driver_sql(columns).all()
    assert {row.branch for row in wanted} == {None, "x"}
    lower(engine, "0036")
    with reading(engine) as connection:  # as the store was: of both branches in one series
        old = connection.exec_driver_sql("SELECT finding_id, series, subject FROM findings ORDER BY finding_id").all()
    assert [row.series for row in old] == [wanted[0 if wanted[0].branch is None else 1].series] * 2
    migrations.upgrade(engine, COUNTERS)
    with reading(engine) as connection:
        assert connection.exec_driver_sql(columns).all() == wanted


def test_the_binary_is_the_tag_else_the_commit(engine: Engine, rng: np.random.Generator) -> None:
    run_id = put(engine, 1, rng, temperature_c=None, commit="c" * 7)
    with writing(engine) as connection:
        connection.exec_driver_sql(f"INSERT INTO run_tags (run_id, key, value) VALUES ({run_id}, 'binary', 'b1')")
    assert store.nightly_runs(engine, "", LATER, 0, 10)["build"].tolist() == ["b1"]


def test_figures_are_those_of_the_views(engine: Engine, rng: np.random.Generator) -> None:
    runs = [put(engine, night, rng, rejected=night) for night in range(2)]
    found = store.series_of_runs(engine, runs)
    durations = found["durations"]
    assert durations["kernel"].tolist() == sorted(KERNELS) * 2
    assert durations["kernel_short"].tolist() == ["saxpy", "gemm"] * 2
    assert durations["value"].tolist() == pytest.approx([1e3 * us for us in MICROSECONDS[::-1]] * 2, rel=0.02)
    assert sorted(durations["value"]) == sorted(row["duration_ns"] for row in store.select(engine, "v1_launches"))
    power = found["power"]
    assert power["window"].tolist() == ["run", "gemm"] * 2
    assert power["temperature_sensor"].tolist() == ["temperature.gpu"] * 4
    assert power["energy_j"].iloc[1] == pytest.approx(power["mean_power_w"].iloc[1] * SECONDS)
    assert found["lines"]["value"].tolist() == [0.0, pytest.approx(1 / 41)]
    empty = store.series_of_runs(engine, runs, ["lines"])
    assert {name: len(frame) for name, frame in empty.items()} == dict.fromkeys(found, 0) | {"lines": 2}
    assert all(list(empty[name]) == list(found[name]) for name in found)
    assert all(frame.empty for frame in store.series_of_runs(engine, []).values())


def test_a_season_is_kept(engine: Engine, rng: np.random.Generator) -> None:
    for night in range(12):
        put(engine, night, rng, slower=(1.0, 1.0) if night < 9 else (1.2, 1.0))
    first, second = report(engine, 8), report(engine, 11)
    assert quantities(second["findings"]) == [("gemm", "duration")]
    assert (first["report_id"], second["report_id"], second["since"]["report_id"]) == (1, 2, 1)
    assert nightly.report(engine, "newest") == nightly.report(engine, 2) == second
    assert report(engine, 11) == second
    (row,) = store.select(engine, "v1_findings")
    assert (row["kernel"], row["subject"], row["device"], row["state"]) == (KERNELS[0], "gemm", DEVICE, "new")
    assert row["change"] == pytest.approx(0.2, abs=0.02)
    assert (row["run_before"], row["run"], row["night"]) == ("night 8 2", "night 9 2", day(11).isoformat())
    said = of_findings.set_state(engine, row["finding_id"], "fixed", "a revert \u2603", "kim")
    assert (said["state"], said["because"], said["said_by"]) == ("fixed", "a revert \u2603", "kim")
    listed = store.list_view(engine, "v1_reports", order=["-night"], columns=["night", "findings_new"])
    assert [tuple(one.values()) for one in listed.rows] == [(day(11).isoformat(), 1), (day(8).isoformat(), 0)]
    with pytest.raises(UsageError, match="was already reported"):
        report(engine, 10)
    view = of_findings.finding(engine, row["finding_id"])
    assert [point["run_id"] for point in view["points"]] == list(range(1, 13))
    assert view["smallest"]["relative"] == 0.008


def test_several_reports_of_a_night_at_once_are_one(engine: Engine, rng: np.random.Generator) -> None:
    for night in range(12):
        put(engine, night, rng, temperature_c=None, slower=(1.0, 1.0) if night < 9 else (1.2, 1.0))
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: report(engine, 11), range(4)))
        assert all(one == made[0] for one in made)
        states = ["accepted", "new"] * 4
        list(pool.map(lambda state: of_findings.set_state(engine, 1, state, "x", "kim"), states))
    assert len(store.select(engine, "v1_reports")) == len(store.select(engine, "v1_findings")) == 1
    assert sorted(one["state"] for one in of_findings.finding(engine, 1)["states"]) == sorted(states)


def test_reports_of_one_project_are_seen_alone(engine: Engine, rng: np.random.Generator) -> None:
    put(engine, 1, rng, temperature_c=None)
    every, alone = report(engine, 1), report(engine, 1, project="lab")
    assert nightly.report(engine, alone["report_id"], "lab")["project"] == "lab"
    for number, project in ((every["report_id"], "lab"), (alone["report_id"], "other"), ("newest", "other")):
        with pytest.raises(NotFoundError, match="create one with: profsvc report nightly"):
            nightly.report(engine, number, project)
    with pytest.raises(NotFoundError, match="no report named 'two'"):
        nightly.report(engine, "two")


def test_refused_files_are_noted_up_to_a_number(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals, "MAX_REFUSALS", 3)
    for number in range(5):
        store.save_refusal(engine, "lab", "r", f"{number}\0\ud800.csv", "0" * 64, InputError("x" * 5000))
    found = store.select(engine, "v1_refusals")
    assert [row["file_name"] for row in found] == [f"{number}\\x00\\ud800.csv" for number in (2, 3, 4)]
    assert {(row["code"], len(row["message"])) for row in found} == {("input", refusals.MAX_MESSAGE_CHARS)}
    assert len(store.refusals_between(engine, "", 0, LATER)) == 3
    assert len(store.refusals_between(engine, "lab", 4, LATER)) == 1
    assert store.refusals_between(engine, "other", 0, LATER) == []
    assert store.refusals_between(engine, "lab", 0, found[0]["refused_at"]) == []


def test_a_report_made_while_the_clock_stood_in_the_future_blocks_no_night(
    engine: Engine, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    for night in range(12):
        put(engine, night, rng, temperature_c=None, slower=(1.0, 1.0) if night < 9 else (1.2, 1.0))
    future = period.report_period("2099-01-05", "UTC", datetime(2099, 1, 6, tzinfo=UTC))
    with monkeypatch.context() as patch:
        patch.setattr(of_night, "report_period", lambda *_: future)
        ahead = of_night.report_of_night(engine)
    assert quantities(ahead["findings"]) == [("gemm", "duration")]
    made = report(engine, 11)
    assert quantities(made["findings"]) == [("gemm", "duration")]
    (row,) = store.select(engine, "v1_findings")
    assert (row["night"], row["report_id"]) == (day(11).isoformat(), made["report_id"])
    put(engine, 12, rng, temperature_c=None, slower=(1.2, 1.0))
    assert report(engine, 12)["findings"] == []
    assert [one["finding_id"] for one in report(engine, 12)["open"]] == [row["finding_id"]]


def test_a_report_is_removed_with_what_it_found_and_the_night_can_be_reported_again(
    engine: Engine, rng: np.random.Generator
) -> None:
    for night in range(13):
        put(engine, night, rng, temperature_c=None, slower=(1.0, 1.0) if night < 9 else (1.2, 1.0))
    report(engine, 8)
    last = report(engine, 12)
    (row,) = last["findings"]
    of_findings.set_state(engine, row["finding_id"], "accepted", "wider tiles", "kim")
    with pytest.raises(UsageError, match=f"profsvc report delete {last['report_id']}"):
        report(engine, 11)
    held = store.report_contents(engine, last["report_id"])
    assert (held["findings"], held["said"], held["moves"], held["deliveries"]) == (1, 1, 0, 0)
    store.delete_report(engine, last["report_id"])
    assert store.select(engine, "v1_findings") == []
    assert [one["night"] for one in store.select(engine, "v1_reports")] == [day(8).isoformat()]
    assert quantities(report(engine, 11)["findings"]) == [("gemm", "duration")]
    with pytest.raises(NotFoundError, match="no report has the number 99"):
        store.delete_report(engine, store.report_contents(engine, 99)["report_id"])
