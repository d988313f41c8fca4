"""Findings of nights made up: which there are, what people say of them, and what becomes of them."""

import gzip
import io
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import Engine

from profsvc import pipeline, store
from profsvc.errors import NotFoundError, UsageError
from profsvc.pipeline.nightly.report import changed_causes
from profsvc.reports.nightly import formats as forms
from profsvc.reports.nightly.parts import parts
from profsvc.views.nightly import findings as of_findings
from profsvc.views.nightly import report as nightly
from tests.inputs import nights
from tests.inputs.nights import DEVICE, KERNELS, PER_C, put, quantities, report
from tests.pipeline.nightly.conftest import GEMM, QUIET, SAXPY, found, season

FIXTURES = Path(__file__).parents[3] / "fixtures"


@pytest.fixture
def engine(quiet_month: Engine) -> Engine:
    return quiet_month


def test_a_drift_of_temperature_alone_alarms_raw_power_but_not_the_corrected(engine, rng):
    warm = season(engine, rng, 5, temperature_c=[48 + 0.3 * n for n in range(5)])
    assert not {quantity for _, quantity in found(warm)} & {"power", "energy_per_launch", "raw_power"}
    assert found(warm) == [("whole run", "temperature")]  # which is said, for it is true
    explained = [row for document in warm for row in document["explained"] if row["quantity"] == "power"]
    assert explained
    assert explained[0]["raw_after"] - explained[0]["raw_before"] == pytest.approx(8.3 * PER_C, abs=2.0)
    assert abs(explained[0]["after"] - explained[0]["before"]) < 2.0


def test_a_regression_of_power_under_the_same_drift_is_found(engine, rng):
    drift = [48 + 0.3 * n for n in range(6)]
    made = season(engine, rng, 6, temperature_c=drift, more_w=[0.0, 0.0, *[9.0] * 4])
    nights_to_it = [n for n, document in enumerate(made) if ("gemm", "power") in quantities(document["findings"])]
    assert nights_to_it == [4]  # the third night with it
    finding = next(row for row in made[4]["findings"] if row["quantity"] == "power")
    assert finding["change"] == pytest.approx(0.03, abs=0.005)
    assert finding["worse"] == 1
    assert finding["raw_after"] / finding["raw_before"] > 1.06  # the drift comes on top
    assert finding["run"] == "night 32 2"
    assert finding["run_before"] == "night 31 2"
    assert finding["reference_temperature_c"] == 40.0
    assert any("as measured" in words for words in finding["why"])
    assert finding["compare"] == "profsvc compare id:32 id:33 --power"


def test_a_finding_is_made_once_confirmed_and_fixed(regressed, rng):
    made = []
    for number, slower in enumerate([1.05] * 4 + [1.0] * 5, 3):
        put(regressed, QUIET + number, rng, slower=(slower, 1.0))
        made.append(report(regressed, QUIET + number))
    assert found(made) == []
    moves = [(n, row["was"], row["state"]) for n, document in enumerate(made) for row in document["moved"]]
    assert [move[1:] for move in moves] == [("new", "confirmed"), ("confirmed", "fixed")]
    assert moves[0][0] <= 3 < moves[1][0] <= 7
    assert "1 fixed" in made[moves[1][0]]["one_line"]
    (row,) = store.select(regressed, "v1_findings")
    assert (row["state"], row["said_by"]) == ("fixed", None)
    assert [len(document["open"]) for document in made] == [
        0 if n in (moves[0][0], moves[1][0]) or n > moves[1][0] else 1 for n in range(9)
    ]


def test_an_accepted_change_begins_a_new_baseline(regressed, rng):
    of_findings.set_state(regressed, 1, "accepted", "wider tiles, ticket 17", "kim")
    for number in range(3, 14):
        put(regressed, QUIET + number, rng, slower=(1.05 if number < 11 else 1.10, 1.0))
    last = report(regressed, QUIET + 13)
    assert quantities(last["findings"]) == [(GEMM, "duration")]
    assert last["findings"][0]["change"] == pytest.approx(1.10 / 1.05 - 1, abs=0.01)
    assert last["findings"][0]["points_before"] == 11  # from the accepted change on
    assert (last["moved"], last["open"]) == ([], [])
    view = of_findings.finding(regressed, 1)
    assert (view["finding"]["state"], view["finding"]["said_by"]) == ("accepted", "kim")
    assert [one["finding_id"] for one in view["others"]] == [last["findings"][0]["finding_id"]]
    assert [point["run"] for point in view["points"]][-1] == "night 43 2"
    assert len(view["points"]) == QUIET + 14
    of_findings.set_state(regressed, 1, "new", "not so after all", "kim")
    assert store.select(regressed, "v1_findings")[0]["state"] == "new"
    assert [one["state"] for one in of_findings.finding(regressed, 1)["states"]] == ["accepted", "new"]


def test_what_people_said_stays_when_the_night_is_made_again(regressed, rng):
    of_findings.set_state(regressed, 1, "accepted", "known", "kim")
    assert report(regressed, QUIET + 2)["findings"][0]["finding_id"] == 1
    assert store.select(regressed, "v1_findings")[0]["state"] == "accepted"
    put(regressed, QUIET + 3, rng)
    assert report(regressed, QUIET + 3)["moved"] == []


def test_an_accepted_finding_leads_no_report_of_its_night(engine, rng):
    for night in range(QUIET, QUIET + 3):
        put(engine, night, rng, slower=(1.5, 1.1))
    first = report(engine, QUIET + 2)
    assert [row["subject"] for row in first["findings"]] == ["gemm", "saxpy"]
    of_findings.set_state(engine, first["findings"][0]["finding_id"], "accepted", "wider tiles", "kim")
    for again in (report(engine, QUIET + 2, dry_run=True), report(engine, QUIET + 2)):
        assert [(row["subject"], row["state"]) for row in again["findings"]] == [("saxpy", "new"), ("gemm", "accepted")]
        assert again["one_line"].startswith("1 regression, 1 accepted in ")
        assert "worst: saxpy duration +" in again["one_line"]
        assert again["counts"]["findings_new"] == 1
        assert "gemm duration (ncu, NVIDIA H200)" in forms.short(again)[1]
        assert forms.short(again)[1].endswith(", accepted")
    of_findings.set_state(engine, first["findings"][1]["finding_id"], "accepted", "so be it", "kim")
    last = report(engine, QUIET + 2)
    assert last["one_line"].startswith("2 accepted in ")
    assert "worst" not in last["one_line"]
    told = next(part.findings for part in parts(last) if part.findings)
    assert [len(one.commands) for one in told] == [1, 1]  # nothing is left to accept
    assert [one.head.endswith("%, accepted)") for one in told] == [True, True]
    of_findings.set_state(engine, first["findings"][0]["finding_id"], "new", "not so after all", "kim")
    assert report(engine, QUIET + 2)["findings"][0]["subject"] == "gemm"


def test_a_finding_that_is_gone_when_the_night_is_made_again_goes(regressed, rng):
    for hour in range(3, 11):
        put(regressed, QUIET + 2, rng, hour=hour)
    assert report(regressed, QUIET + 2)["findings"] == []
    assert store.select(regressed, "v1_findings") == []


def test_a_finding_stays_when_the_night_is_made_again_without_its_history(regressed):
    for run in store.runs(regressed)["run_id"].sort_values().tolist()[: QUIET - 2]:
        store.delete_run(regressed, run)
    for _ in range(2):
        again = report(regressed, QUIET + 2)
        assert again["findings"] == []
        assert [(row["finding_id"], row["subject"]) for row in again["open"]] == [(1, GEMM)]
        assert [row["state"] for row in store.select(regressed, "v1_findings")] == ["new"]
    store.delete_run(regressed, again["open"][0]["run_id"])  # without the run that it began with nothing is left of it
    assert report(regressed, QUIET + 2)["open"] == []
    assert store.select(regressed, "v1_findings") == []


@pytest.mark.parametrize(
    ("state", "because"), [("confirmed", "x"), ("gone", "x"), ("fixed", " "), ("fixed", "y" * 3000)]
)
def test_a_state_that_cannot_be_set_is_refused(regressed, state, because):
    with pytest.raises(UsageError):
        of_findings.set_state(regressed, 1, state, because, "kim")
    with pytest.raises(NotFoundError, match="no finding has number 77"):
        of_findings.set_state(regressed, 77, "fixed", "x", "kim")
    with pytest.raises(NotFoundError):
        of_findings.set_state(regressed, 1, "fixed", "x", "kim", project="other")
    assert of_findings.finding(regressed, 1)["states"] == []


def test_findings_are_filtered(regressed):
    def count(**only: object) -> int:
        return len(of_findings.findings(regressed, **only)["findings"])

    assert count() == count(states=["new"]) == count(states=["new", "fixed"]) == count(worse=True) == 1
    assert count(project="lab", quantity="duration", kernel="GEM", device=DEVICE) == 1
    assert count(states=["fixed"]) == count(worse=False) == count(project="other") == count(kernel="saxpy") == 0
    with pytest.raises(UsageError, match="'gone' is not a state"):
        count(states=["gone"])


def test_a_slower_kernel_says_which_cause_costs_more(tmp_path):
    engine = store.open_store(str(tmp_path / "profiles.sqlite"), pooled=True)
    lines = gzip.decompress((FIXTURES / "demo" / "ncu_raw.csv.gz").read_bytes()).decode().splitlines(keepends=True)
    strided = [line for line in lines if '"strided_copy' in line]
    for run, row in (("near", strided[0]), ("far", strided[3])):
        pipeline.ingest(engine, io.BytesIO("".join([*lines[:2], row]).encode()), "raw.csv", store.RunInfo(name=run))
    (kernel,) = store.kernels_of_run(engine, 1)
    finding = {"kind": "duration", "series": "s", "kernel": kernel, "run_before_id": 1, "run_id": 2}
    told = changed_causes(engine, [finding, finding | {"kind": "potential", "series": "p"}])
    old, new = (store.kernels_of_run(engine, run)[kernel]["mean_ns"] for run in (1, 2))
    assert sum(part["change_ns"] for part in told.pop("s")) == pytest.approx(new - old)
    assert told == {}
    assert changed_causes(engine, [finding])["s"][0]["cause"] == "uncoalesced_loads"
    assert changed_causes(engine, [finding | {"kernel": "another"}, finding | {"run_id": 99}]) == {}
    engine.dispose()


def test_another_report_of_the_night_makes_no_finding_twice(regressed):
    alone = report(regressed, QUIET + 2, project="lab")
    assert alone["findings"] == []
    assert [row["finding_id"] for row in alone["open"]] == [1]
    (group,) = alone["open_groups"]
    assert group["cost_ns"] == pytest.approx(0.05 * 800e3, rel=0.1)
    assert group["text"].startswith("since run night 30 2: 1 regression (+")
    assert "; 1 regression still open (#1 gemm duration +" in alone["one_line"]
    assert nightly.reports(regressed, "lab")["reports"][0]["report_id"] == alone["report_id"] == 4
    assert [row["project"] for row in nightly.reports(regressed)["reports"]] == ["lab", None, None, None]


def test_a_finding_outlives_its_runs(regressed, rng):
    for run_id in (QUIET, QUIET + 1):
        store.delete_run(regressed, run_id)
    (row,) = store.select(regressed, "v1_findings")
    assert (row["run_before_id"], row["run_id"], row["run"], row["run_before"]) == (QUIET, QUIET + 1, None, None)
    put(regressed, QUIET + 3, rng, slower=(1.05, 1.0))
    assert report(regressed, QUIET + 3)["findings"] == []


def test_an_open_finding_names_its_first_run_in_a_night_without_runs(regressed):
    silent = report(regressed, QUIET + 3)
    assert [row["run"] for row in silent["open"]] == ["night 30 2"]
    assert silent["one_line"].endswith("since run night 30 2)")
    store.delete_run(regressed, QUIET + 1)
    assert report(regressed, QUIET + 3)["one_line"].endswith("since a run that was deleted)")


def test_the_noise_of_one_binary_bounds_what_is_found(engine, rng):
    """Runs of one binary that scatter by as much as the newest runs differ make no change of these."""
    steady = [row["duration_ns"] for row in store.select(engine, "v1_launches", kernel=KERNELS[1])]
    assert np.std(steady) / np.mean(steady) == pytest.approx(nights.NOISE, rel=0.4)
    made = season(engine, rng, 3, slower=(1.0, 1.03), commit="b" * 7)
    assert found(made) == [(SAXPY, "duration")]
    assert any("changed from aaaaaaa to bbbbbbb" in words for words in made[-1]["findings"][0]["why"])
    assert {row["device"] for row in store.select(engine, "v1_findings")} == {DEVICE}
