"""Reports of nights made up: what stands in them, and that the same night again says the same."""

import pytest
from sqlalchemy import Engine

from profsvc import store
from profsvc.errors import NotFoundError, UsageError
from profsvc.pipeline.nightly import report_of_night
from profsvc.views.nightly import report as nightly
from tests.inputs.nights import day, put, quantities, report
from tests.pipeline.nightly.conftest import GEMM, QUIET, found, season


@pytest.fixture
def engine(quiet_month: Engine) -> Engine:
    return quiet_month


def test_a_quiet_night_is_one_line(engine, rng):
    first, second = season(engine, rng, 2)
    assert first["one_line"].startswith(f"nothing changed: {QUIET + 1} runs, 7 series")
    assert second["one_line"] == "nothing changed: 1 run, 7 series"
    assert second["since"] == {"report_id": first["report_id"], "night": first["night"]}
    assert not second["changed"]
    assert [run["name"] for run in second["runs"]] == ["night 31 2"]
    kept = {"nights": 0, "series": 0, "tonight": 0, "weekly": 0}
    assert second["series"] == {
        "looked_at": 7, "tested": 7, "short": 0, "needed": 0, "corrected": 2, "left_out": kept
    }  # fmt: skip


def test_a_spike_asks_for_another_run_and_never_alarms(engine, rng):
    made = season(engine, rng, 5, slower=[(1.3, 1.0), *[(1.0, 1.0)] * 4])
    assert [quantities(document["reruns"]) for document in made] == [[(GEMM, "duration")], *[[]] * 4]
    assert found(made) == []
    (asked,) = made[0]["reruns"]
    assert asked["value"] / asked["expected"] == pytest.approx(1.3, abs=0.03)
    assert asked["run"] == "night 30 2"
    assert "--project lab" in asked["command"]
    said = f"nothing certain: 1 suspected change (re-run wanted) in {QUIET + 1} runs: "
    assert made[0]["one_line"].startswith(said)


def test_reruns_of_the_same_night_make_it_sure(engine, rng):
    (asked,) = season(engine, rng, 1, slower=(1.05, 1.0))
    assert quantities(asked["reruns"]) == [(GEMM, "duration")]
    for hour in (3, 4):
        put(engine, QUIET, rng, slower=(1.05, 1.0), hour=hour)
    again = report(engine, QUIET)
    assert (again["report_id"], quantities(again["findings"]), again["reruns"]) == (
        asked["report_id"], [(GEMM, "duration")], [],
    )  # fmt: skip
    assert again["findings"][0]["run"] == "night 30 2"
    assert len(again["runs"]) == QUIET + 3


def test_the_same_night_again_is_the_same_report(regressed):
    made = nightly.report(regressed, "newest")
    assert quantities(made["findings"]) == [(GEMM, "duration")]
    before = [store.select(regressed, view) for view in ("v1_reports", "v1_findings")]
    assert report(regressed, QUIET + 2) == made
    assert [store.select(regressed, view) for view in ("v1_reports", "v1_findings")] == before
    assert report(regressed, QUIET + 2, dry_run=True)["one_line"] == made["one_line"]


def test_a_dry_run_stores_nothing(engine, rng):
    put(engine, QUIET, rng)
    tried = report(engine, QUIET, dry_run=True)
    assert tried["report_id"] is None
    assert store.select(engine, "v1_reports") == []
    kept = report(engine, QUIET)
    assert kept | {"report_id": None} == tried


def test_what_came_with_it_is_said(engine, rng):
    store.save_refusal(engine, "lab", None, "a.csv", "0" * 64, UsageError("line 3 is\0 nothing"))
    put(engine, QUIET, rng, rejected=2)
    made = report(engine, QUIET)
    assert [row["file_name"] for row in made["uploads"]["partial"]] == ["profile.csv"]
    assert made["uploads"]["rejected_lines"] == 2
    assert made["uploads"]["refused"] == []  # it was refused now, and that night is long over
    refused = store.select(engine, "v1_refusals")
    assert [(row["file_name"], row["code"], row["message"]) for row in refused] == [
        ("a.csv", "usage", "line 3 is\\x00 nothing")
    ]
    today = report_of_night(engine)
    assert today["one_line"] == f"nothing new: no runs since the report of {day(QUIET)}; 1 file refused"
    assert [row["message"] for row in today["uploads"]["refused"]] == ["line 3 is\\x00 nothing"]


def test_the_causes_of_a_change_stand_in_its_report(regressed, monkeypatch):
    causes = [
        {"cause": name, "title": title, "before_ns": 0.0, "after_ns": 1.0, "change_fraction": change}
        for name, title, change in (("barriers", "Barriers", 0.5), ("unexplained", "Unexplained time", 0.0))
    ]
    monkeypatch.setattr(
        "profsvc.pipeline.nightly.report.changed_causes",
        lambda engine, found, names: {str(row["series"]): causes for row in found if row["kind"] == "duration"},
    )
    (row,) = [row for row in report(regressed, QUIET + 2, dry_run=True)["findings"] if row["kind"] == "duration"]
    assert row["why"][-1].endswith("+50 %: of this, +50 % barriers")
    assert row["causes"] == causes


def test_a_night_without_a_run_has_a_report(engine):
    report(engine, QUIET - 1)
    made = report(engine, QUIET)
    assert made["one_line"] == f"nothing new: no runs since the report of {day(QUIET - 1)}"
    assert (made["runs"], made["findings"], made["series"]["looked_at"]) == ([], [], 0)


def test_an_upload_that_comes_after_one_with_a_higher_number_is_looked_at(engine, rng):
    """Its number was given before it was read, or by a host whose clock is ahead."""
    report(engine, QUIET - 1)
    ahead = put(engine, QUIET + 1, rng, name="clock ahead")
    put(engine, QUIET, rng, name="in time")
    first = report(engine, QUIET)
    assert [run["name"] for run in first["runs"]] == ["in time"]
    assert first["uploads"]["awaited"] == [[ahead, ahead]]
    assert report(engine, QUIET) == first
    second = report(engine, QUIET + 1)
    assert ([run["run_id"] for run in second["runs"]], second["uploads"]["received"]) == ([ahead], 1)
    silent = report(engine, QUIET + 2)
    assert (silent["runs"], silent["uploads"]["awaited"]) == ([], [])


def test_a_report_that_read_less_does_not_replace_one_that_was_stored_meanwhile(engine, rng, monkeypatch):
    for night in range(3):
        put(engine, QUIET + night, rng, slower=(1.05, 1.0))
    save, made = store.save_report, []

    def meanwhile(*asked: object) -> object:
        monkeypatch.setattr(store, "save_report", save)
        put(engine, QUIET + 2, rng, slower=(1.05, 1.0), name="late", hour=3)
        made.append(report(engine, QUIET + 2))
        return save(*asked)

    monkeypatch.setattr(store, "save_report", meanwhile)
    assert report(engine, QUIET + 2) == made[0]
    assert "late" in [run["name"] for run in made[0]["runs"]]
    assert [row["finding_id"] for row in store.select(engine, "v1_findings")] == [1]


def test_a_night_is_refused_where_a_later_one_is_stored_meanwhile(engine, monkeypatch):
    save = store.save_report

    def meanwhile(*asked: object) -> object:
        monkeypatch.setattr(store, "save_report", save)
        report(engine, QUIET)
        return save(*asked)

    monkeypatch.setattr(store, "save_report", meanwhile)
    with pytest.raises(UsageError, match="was already reported"):
        report(engine, QUIET - 1)


def test_projects_have_nights_of_their_own(engine, rng):
    for night in range(3):
        put(engine, QUIET + night, rng, project="other", slower=(9.0, 1.0))
    alone = report(engine, QUIET + 2, project="other")
    assert {run["project"] for run in alone["runs"]} == {"other"}
    assert alone["series"]["short"] == alone["series"]["looked_at"] == 7
    assert alone["series"]["needed"] == 5
    with pytest.raises(NotFoundError, match="did you mean 'other'"):
        report(engine, QUIET, project="othr")


def test_a_night_before_one_that_is_reported_is_only_tried(engine, rng):
    season(engine, rng, 2)
    with pytest.raises(UsageError, match=r"was already reported \(report 2\)"):
        report(engine, QUIET - 5)
    with pytest.raises(UsageError, match="was already reported"):
        report(engine, QUIET, project="lab")
    assert len(report(engine, QUIET - 5, dry_run=True)["runs"]) == QUIET - 4
