"""Kernels that are renamed: their series go on under the new name, and what is ambiguous is refused."""

import pytest

from profsvc import store
from profsvc.errors import ProfsvcError
from profsvc.pipeline.nightly import report as nights
from profsvc.pipeline.nightly import report_of_night
from profsvc.store.queries.kernels.history import HistoryFilter
from profsvc.views import history as of_history
from profsvc.views.nightly import findings as of_findings
from profsvc.views.nightly import renames as of_renames
from tests.conftest import opened
from tests.inputs.uploads import ingest_all, without_analysis
from tests.pipeline.nightly.test_evidence import KERNEL, trace

QUIET = 10
SAXPY, GEMM = {}, {"kernel": "gemm(float *)", "grid": 256, "ns": 60_000}


def put(engine, night: int, *kernels: dict, report: bool = True) -> dict:
    at = f"2026-03-{night + 1:02}T02:00:00Z"
    run = store.RunInfo(name=f"night {night}", project="lab", started_at=at, at=at, commit_id=f"c{night:07}")
    with without_analysis():  # series of nights are of what the files say
        ingest_all(engine, [(trace(night, *kernels), "trace.csv")], run)
    return report_of_night(engine, "lab", at[:10]) if report else {}


@pytest.fixture(scope="module")
def quiet_file(tmp_path_factory):
    """A store with nights in which nothing changes, and a report on them."""
    file = tmp_path_factory.mktemp("quiet") / "store.sqlite"
    with opened(str(file)) as engine:
        for night in range(QUIET):
            put(engine, night, SAXPY, GEMM, report=night == QUIET - 1)
    return file


@pytest.fixture
def engine(quiet_month):
    return quiet_month


def changes(made: dict) -> list[tuple[str, str]]:
    return sorted((row["change"], row["kernel"]) for row in made["kernels"])


def test_a_kernel_that_is_renamed_and_slower_is_found_with_its_history(engine):
    """The names have nothing in common: grid, block, registers, shared memory and launches say that it is one."""
    slow = {"kernel": "axpy_fast(float *)", "ns": 105_000}
    made = [put(engine, QUIET + n, slow, GEMM) for n in range(3)]
    assert changes(made[0]) == [("renamed", "axpy_fast(float *)")]
    assert made[0]["kernels"][0]["text"].endswith(
        "history continues (same grid, block, launches per run, registers, static shared memory, dynamic shared memory)"
    )
    assert [changes(one) for one in made[1:]] == [[], []]
    (finding,) = made[-1]["findings"]
    assert (finding["kernel"], finding["points_before"]) == ("axpy_fast(float *)", QUIET)
    assert finding["cause"] == "name saxpy to axpy_fast"
    assert "axpy_fast duration +5." in made[-1]["one_line"]
    assert f"since c{QUIET:07} (name saxpy to axpy_fast)" in made[-1]["one_line"]
    assert finding["cost_ns"] == pytest.approx(5000, rel=0.1)
    # Seen again, it is the same: the night by itself, the finding by its series under both names.
    assert report_of_night(engine, "lab", f"2026-03-{QUIET + 3:02}") == made[-1]
    known = store.known_findings(engine, "lab", "9999-12-31")[0]
    names = [row["run"] for row in nights.series_of(engine, known, known["series"])]
    assert names == [f"night {night}" for night in range(QUIET + 3)]


def test_a_kernel_that_is_renamed_twice_and_back_keeps_its_series(engine):
    names = ["axpy_fast(float *)", "axpy_faster(float *)", KERNEL]
    made = [put(engine, QUIET + n, {"kernel": name}, GEMM) for n, name in enumerate(names)]
    assert [changes(one) for one in made] == [[("renamed", name)] for name in names]
    later = [put(engine, QUIET + 3 + n, {**SAXPY, "ns": 110_000}, GEMM) for n in range(3)]
    (finding,) = later[-1]["findings"]
    assert (finding["subject"], finding["points_before"], finding["cause"]) == ("saxpy", QUIET + 3, "")
    assert len(store.select(engine, "v1_kernel_renames")) == 3
    store.delete_report(engine, later[-1]["report_id"])
    store.delete_report(engine, made[0]["report_id"])
    assert len(store.select(engine, "v1_kernel_renames")) == 2


def test_an_open_finding_goes_on_under_the_new_name(engine):
    slow = [put(engine, QUIET + n, {**SAXPY, "ns": 110_000}, GEMM) for n in range(3)]
    number = slow[-1]["findings"][0]["finding_id"]
    made = put(engine, QUIET + 3, {"kernel": "axpy(float *)", "ns": 110_000}, GEMM)
    assert [(row["finding_id"], row["subject"], row["cost_ns"] > 0) for row in made["open"]] == [(number, "axpy", True)]
    made = [put(engine, QUIET + 4 + n, {"kernel": "axpy(float *)"}, GEMM) for n in range(3)]
    assert [(row["finding_id"], row["state"]) for one in made for row in one["moved"]][-1] == (number, "fixed")
    assert not [row for one in made for row in one["findings"]]


def test_two_kernels_that_fit_are_refused_with_their_names(engine):
    both = [{"kernel": "axpy_a(float *)"}, {"kernel": "axpy_b(float *)"}]
    made = put(engine, QUIET, *both, GEMM)
    assert changes(made) == [("appeared", "axpy_a(float *)"), ("appeared", "axpy_b(float *)"),
                             ("vanished", KERNEL)]  # fmt: skip
    assert "not taken for a renamed kernel: saxpy fits axpy_a and axpy_b equally well" in made["kernels"][0]["text"]
    assert put(engine, QUIET + 1, *both, GEMM)["kernels"] == []


def test_a_new_kernel_that_resembles_one_that_stays_is_new(engine):
    made = put(engine, QUIET, SAXPY, {"kernel": "axpy(float *)"}, GEMM)
    assert changes(made) == [("appeared", "axpy(float *)")]


def test_names_that_a_later_run_has_both_are_two_kernels(engine):
    put(engine, QUIET, {"kernel": "axpy(float *)"}, GEMM)
    made = put(engine, QUIET + 1, SAXPY, {"kernel": "axpy(float *)"}, GEMM)
    assert made["series"]["looked_at"] == put(engine, QUIET + 2, SAXPY, {"kernel": "axpy(float *)"}, GEMM)["series"][
        "looked_at"
    ]  # fmt: skip
    assert len(store.select(engine, "v1_kernel_renames")) == 1


def test_a_first_report_on_many_nights_sees_the_renames_among_them(tmp_path):
    with opened(str(tmp_path / "store.sqlite")) as engine:
        for night in range(10):
            name = SAXPY if night < 5 else {"kernel": f"axpy_{'ab'[night > 6]}(float *)", "ns": 108_000}
            made = put(engine, night, name, GEMM, report=night == 9)
        assert len(store.select(engine, "v1_kernel_renames")) == 2
    assert [(row["subject"], row["points_before"]) for row in made["findings"]] == [("axpy_b", 5)]


def decide(engine, act: str, old: str, new: str) -> dict:
    return of_renames.decide(engine, act, old, new, "ticket 17", "ada")


def test_a_person_links_what_is_ambiguous_and_undoes_it(engine):
    both = [{"kernel": "axpy_a(float *)", "ns": 110_000}, {"kernel": "axpy_b(float *)", "ns": 110_000}]
    for n in range(2):
        put(engine, QUIET + n, *both, GEMM)
    decide(engine, "link", "saxpy", "axpy_a")
    made = put(engine, QUIET + 2, *both, GEMM)
    (finding,) = [row for row in made["findings"] if row["quantity"] == "duration"]
    assert (finding["subject"], finding["points_before"]) == ("axpy_a", QUIET)
    assert len(of_history.history(engine, "axpy_a")["points"]) == QUIET + 3
    view = of_history.history(engine, "saxpy")
    assert (len(view["points"]), len(view["findings"])) == (QUIET + 3, 1)
    assert "with the runs under the kernel's other names: axpy_a(float *)" in view["notes"]
    page = of_history.history(engine, "axpy_a", asked=HistoryFilter(points=5))
    assert ([point["run"] for point in page["points"]], page["older"]) == (
        [f"night {QUIET + n}" for n in (-2, -1, 0, 1, 2)], page["points"][0]["run_id"]
    )  # fmt: skip
    older = of_history.history(engine, "axpy_a", asked=HistoryFilter(before=page["older"]))
    assert len(older["points"]) == QUIET - 2

    decide(engine, "undo", "saxpy", "axpy_a")
    assert len(of_history.history(engine, "axpy_a")["points"]) == 3
    again = report_of_night(engine, "lab", f"2026-03-{QUIET + 3:02}")
    assert not [row for row in again["findings"] if row["subject"] == "axpy_a"]


def test_a_person_refuses_a_rename_and_its_findings_stay(engine):
    slow = {"kernel": "axpy_fast(float *)", "ns": 110_000}
    made = [put(engine, QUIET + n, slow, GEMM) for n in range(3)]
    number = made[-1]["findings"][0]["finding_id"]
    (row,) = of_renames.renames(engine, "lab")["renames"]
    assert (row["state"], row["kernel"], row["not_applied"]) == ("found", "axpy_fast(float *)", None)
    # The names may be given in either order, and by number.
    decide(engine, "refuse", "axpy_fast", "saxpy")
    made = put(engine, QUIET + 3, slow, GEMM)
    assert (made["findings"], made["kernels"]) == ([], [])
    assert [row["finding_id"] for row in made["open"]] == [number]  # until somebody sets it
    view = of_findings.finding(engine, number)
    assert [point["run"] for point in view["points"]] == [f"night {QUIET + n}" for n in range(4)]
    assert len(of_history.history(engine, "axpy_fast")["points"]) == 4
    (row,) = of_renames.renames(engine)["renames"]
    assert (row["state"], row["said_by"], row["because"]) == ("refused", "ada", "ticket 17")
    decide(engine, "undo", KERNEL, "axpy_fast")
    assert len(of_findings.finding(engine, number)["points"]) == QUIET + 4
    (row,) = of_renames.renames(engine)["renames"]
    assert row["state"] == "found"


def test_a_refused_pair_is_not_found_and_a_linked_one_is_told_with_its_reason(engine):
    old = {"kernel": "axpy(float *)"}
    put(engine, QUIET, old, GEMM)
    decide(engine, "refuse", "saxpy", "axpy")
    made = report_of_night(engine, "lab", f"2026-03-{QUIET + 1:02}")
    assert changes(made) == [("appeared", "axpy(float *)"), ("vanished", KERNEL)]
    assert "not taken for a renamed kernel: refused by ada: ticket 17" in made["kernels"][0]["text"]
    decide(engine, "link", "saxpy", "axpy")
    made = report_of_night(engine, "lab", f"2026-03-{QUIET + 1:02}")
    assert changes(made) == [("renamed", "axpy(float *)")]
    assert "linked by ada: ticket 17" in made["kernels"][0]["text"]
    assert store.select(engine, "v1_kernel_renames") == []  # the report did not find it
    # A run that has both makes them two, and the list says which.
    put(engine, QUIET + 1, SAXPY, old, GEMM)
    (row,) = of_renames.renames(engine)["renames"]
    assert (row["state"], row["not_applied"]) == ("linked", f"night {QUIET + 1}")
    assert len(of_history.history(engine, "axpy")["points"]) == 2
    for act, names, words in (
        ("link", ("saxpy", "axpy"), "has both kernels"), ("link", ("saxpy", KERNEL), "both names are the kernel"),
        ("undo", ("saxpy", "gemm"), "no person linked or refused"), ("link", ("saxpy", "unknown"), "no kernel named"),
        ("join", ("saxpy", "axpy"), "choose one of link"),
    ):  # fmt: skip
        with pytest.raises(ProfsvcError, match=words):
            decide(engine, act, *names)


def test_decisions_that_contradict_each_other_are_refused_with_what_to_do(engine):
    for n, name in enumerate(("axpy_a(float *)", "axpy_b(float *)")):
        put(engine, QUIET + n, {"kernel": name}, GEMM, report=False)
    decide(engine, "link", "saxpy", "axpy_a")
    decide(engine, "link", "axpy_a", "axpy_b")
    with pytest.raises(
        ProfsvcError,
        match=r"are one series through other names; refuse one of: axpy_a.* and axpy_b.*; saxpy.* and axpy_a",
    ):
        decide(engine, "refuse", "axpy_b", "saxpy")
    decide(engine, "undo", "axpy_a", "axpy_b")
    decide(engine, "refuse", "axpy_b", "saxpy")
    with pytest.raises(ProfsvcError, match="were one series, which ada refused: ticket 17; undo that first"):
        decide(engine, "link", "axpy_a", "axpy_b")
    assert len(of_history.history(engine, "axpy_b")["points"]) == 1
    decide(engine, "undo", "saxpy", "axpy_b")
    decide(engine, "link", "axpy_b", "axpy_a")
    decide(engine, "link", "saxpy", "axpy_b")  # a circle of links is one series
    assert len(of_history.history(engine, "axpy_b")["points"]) == QUIET + 2


def test_a_name_without_runs_is_not_the_short_name_of_another_kernel(engine):
    for n, name in enumerate(("tiles", "void tiles<4>(float *)")):
        put(engine, QUIET + n, {"kernel": name}, report=False)
    decide(engine, "link", "tiles", "void tiles<4>(float *)")
    assert len(of_history.history(engine, "void tiles<4>(float *)")["points"]) == 2
    store.delete_run(engine, QUIET + 1)
    assert [row["not_applied"] for row in of_renames.renames(engine)["renames"]] == [None]
    assert len(of_history.history(engine, "void tiles<4>(float *)")["points"]) == 1
    with pytest.raises(ProfsvcError):  # the short name of the other
        decide(engine, "link", "tiles", "void tiles<4>(float *)")
    decide(engine, "undo", "void tiles<4>(float *)", "tiles")
    assert of_renames.renames(engine)["renames"] == []
    with pytest.raises(ProfsvcError, match="both names are the kernel"):
        decide(engine, "undo", "tiles", "void tiles<4>(float *)")
