"""``report nightly`` and ``findings`` as a person uses them."""

import json
from pathlib import Path

import numpy as np
import pytest

from profsvc import store
from profsvc.web.http.state import AppState
from tests.benchmarks.night_record import TRACE
from tests.conftest import opened
from tests.inputs.nights import DEVICE, KERNELS, day, put
from tests.web.conftest import running

NIGHTS = 12


@pytest.fixture(scope="module")
def nights_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of nights, in the last three of which a kernel takes longer."""
    file = tmp_path_factory.mktemp("nights") / "store.sqlite"
    engine, rng = store.open_store(str(file), pooled=True), np.random.default_rng(2)
    for night in range(NIGHTS):
        put(engine, night, rng, temperature_c=None, slower=(1.1 if night >= NIGHTS - 3 else 1.0, 1.0))
    engine.dispose()
    return file


@pytest.fixture(params=["store", "service"])
def asked(request, cli, store_file, nights_file, monkeypatch):
    """The command line on a store of nights, and on a service of one: both say the same."""
    store_file.write_bytes(nights_file.read_bytes())
    if request.param == "store":
        yield cli
        return
    engine = store.open_store(str(store_file), pooled=True)
    with running(AppState(engine, store.blob_store_of(engine))) as service:
        monkeypatch.setenv("PROFSVC_STORE", "nowhere/at/all")
        monkeypatch.setenv("PROFSVC_URL", service.url)
        yield cli
    engine.dispose()


def nightly(asked, night, *more):
    return asked("report", "nightly", "--date", day(night).isoformat(), *more)


def test_a_report_is_printed_written_and_kept(asked, tmp_path):
    made = nightly(asked, NIGHTS - 1, "--zone", "Europe/Berlin", "--out", tmp_path / "a" / "b")
    assert made.code == 0
    assert made.out.startswith("1 regression in 12 runs; worst: gemm duration +1")
    assert " Europe/Berlin\n" in made.out
    names = {f"nightly-{day(NIGHTS - 1)}.{form}" for form in ("txt", "md", "html", "json", "junit.xml", "sarif")}
    assert {path.name for path in (tmp_path / "a" / "b").iterdir()} == names
    assert made.err.count("written:") == 6
    document = json.loads((tmp_path / "a" / "b" / f"nightly-{day(NIGHTS - 1)}.json").read_text())
    assert document["findings"][0]["finding_id"] == 1
    again = json.loads(nightly(asked, NIGHTS - 1, "--zone", "Europe/Berlin", "-o", "json").out)
    assert again == document
    assert nightly(asked, NIGHTS - 1, "-o", "md").out.startswith("**1 regression")
    assert "<!doctype html>" in nightly(asked, NIGHTS - 1, "-o", "html").out


def test_trying_stores_nothing(asked, rows_sha):
    before = rows_sha()
    tried = nightly(asked, NIGHTS - 1, "--dry-run", "--fail-on", "worse")
    assert (tried.code, "nothing was stored" in tried.err) == (1, True)
    assert rows_sha() == before
    assert nightly(asked, NIGHTS - 4, "--dry-run", "--fail-on", "new").code == 0


def test_findings_are_listed_shown_and_set(asked, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    assert nightly(asked, NIGHTS - 1, "--fail-on", "new").code == 1
    rows = json.loads(asked("findings", "list", "-o", "json").out)["rows"]
    assert [(row["subject"], row["state"], row["worse"]) for row in rows] == [("gemm", "new", 1)]
    listed = asked("findings", "list").out
    assert "\u2026" not in listed
    assert "label" in listed.splitlines()[0]
    said = asked("findings", "set", 1, "accepted", "--because", "wider tiles")
    assert (said.code, said.err) == (0, "finding 1 (gemm duration) is accepted\n")
    again = json.loads(asked("findings", "set", 1, "accepted", "--because", "wider tiles", "--json").out)
    assert (again["ok"], again["finding_id"], again["state"], again["label"]) == (True, 1, "accepted", "gemm")
    none = asked("findings", "list", "--state", "new", "-o", "json")
    assert json.loads(none.out)["rows"] == []
    assert "No findings match" in none.err
    shown = asked("findings", "show", 1, "-o", "csv")
    assert len(shown.out.splitlines()) == NIGHTS + 1
    assert all(line.endswith(",ns") for line in shown.out.splitlines()[1:])
    assert shown.err.startswith("finding 1: gemm duration +10.")
    assert " in run night 9 2; accepted by " in shown.err
    assert "wider tiles" in shown.err
    assert json.loads(asked("findings", "show", 1, "-o", "json").out)["states"][0]["because"] == "wider tiles"
    assert "gemm" in asked("findings", "list", "--worse", "--quantity", "duration", "--kernel", "GEM").out


def test_names_are_linked_refused_listed_and_left_to_reports_again(asked, store_file):
    with opened(str(store_file)) as engine:
        put(engine, NIGHTS, np.random.default_rng(2), kernels=("void gemm_v2<16>(float *)", KERNELS[1]))
    assert "No kernel was renamed" in asked("renames", "list").err
    refused = asked("renames", "link", "gemm", "saxpy", "--because", "x")
    assert (refused.code, "has both kernels" in refused.err) == (2, True)
    for act, words in (("link", "are one series"), ("refuse", "are two series"), ("undo", "by nightly reports again")):
        said = asked("renames", act, "gemm", "gemm_v2", "--because", "ticket 17")
        assert (said.code, words in said.err) == (0, True), said.err
        rows = json.loads(asked("renames", "list", "-o", "json").out)["rows"]
        states = {"link": ["linked"], "refuse": ["refused"], "undo": []}[act]
        assert [(row["state"], row["kernel_before"]) for row in rows] == [(state, KERNELS[0]) for state in states]
    row = json.loads(asked("renames", "link", "gemm", "gemm_v2", "--because", "x", "--project", "lab", "--json").out)
    assert (row["decision"], row["because"]) == ("linked", "x")
    assert asked("renames", "undo", "gemm", "saxpy", "--because", "x").code == 2
    assert asked("renames", "link", "gemm", "gemm_v2", "--because", "x", "--project", "nothing").code == 3


def test_a_finding_stays_when_its_first_run_is_deleted(cli, store_file, nights_file):
    store_file.write_bytes(nights_file.read_bytes())
    nightly(cli, NIGHTS - 1)
    assert cli("delete", f"night {NIGHTS - 3} 2", "--all", "--yes").code == 0
    shown = cli("findings", "show", 1)
    assert " in a run that was deleted" in shown.err
    assert f"night {NIGHTS - 3} 2" not in shown.out
    # Two runs are left, which are too few for a finding: the same night again only suspects it.
    assert nightly(cli, NIGHTS - 1).out.startswith("nothing certain: 1 suspected change")
    assert cli("findings", "show", 1).code == 3


def test_a_service_lists_its_reports_and_sends_none_for_others(asked, monkeypatch):
    nightly(asked, NIGHTS - 1)
    listed = json.loads(asked("report", "nightly", "--list", "-o", "json").out)["reports"]
    assert [(row["report_id"], row["deliveries"]) for row in listed] == [(1, [])]
    assert asked("report", "nightly", "--list").out.startswith(f"{day(NIGHTS - 1)}  all  report 1: 1 regression")
    monkeypatch.setenv("PROFSVC_URL", "http://127.0.0.1:9")
    refused = asked("report", "nightly", "--channel", "team")
    assert (refused.code, "--channel needs a store" in refused.err) == (2, True)


def test_a_report_is_removed_after_it_is_listed(cli, store_file, nights_file):
    store_file.write_bytes(nights_file.read_bytes())
    nightly(cli, NIGHTS - 1)
    asked_first = cli("report", "delete", 1)
    assert (asked_first.code, "add --yes to skip the prompt" in asked_first.err) == (2, True)
    gone = cli("report", "delete", 1, "--yes")
    assert gone.code == 0
    assert (
        f"report 1 of all, night of {day(NIGHTS - 1)}, will be removed with:\n  1 finding, 0 of them with a comment"
        in gone.err
    )
    assert cli("report", "delete", 1, "--yes").code == 3
    assert nightly(cli, NIGHTS - 1).out.startswith("1 regression")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("report", "nightly", "--date", "tomorrow"), 2, "is not a date"),
        (("report", "nightly", "--zone", "Mars"), 2, "no time zone"),
        (("report", "nightly", "--project", "lba"), 3, "did you mean 'lab'"),
        (("report", "nightly", "-o", "pdf"), 2, "choose one of text, md, html, json"),
        (("report", "nightly", "--fail-on", "all"), 2, "new or worse"),
        (("report", "nightly", "--out", __file__), 2, "is a file"),
        (("findings", "set", "9", "accepted", "--because", "x"), 3, "no finding has number 9"),
        (("findings", "set", "1", "gone", "--because", "x"), 3, "no finding"),
        (("findings", "list", "--state", "gone"), 2, "is not a state"),
        (("findings", "show", "9"), 3, "no finding has number 9"),
    ],
)
def test_what_is_wrong_is_said(asked, arguments, code, words):
    got = asked(*arguments)
    assert got.code == code
    assert words in got.err


@pytest.mark.parametrize(("fail_on", "code"), [("worse", 1), ("", 5)])
def test_a_regression_comes_before_a_report_that_was_not_delivered(
    cli, store_file, nights_file, tmp_path, monkeypatch, fail_on, code
):
    store_file.write_bytes(nights_file.read_bytes())
    (tmp_path / "file").touch()
    (tmp_path / "c.toml").write_text(f'[out]\nkind = "file"\nfolder = "{tmp_path}/file"\n')
    monkeypatch.setenv("PROFSVC_CHANNELS", str(tmp_path / "c.toml"))
    told = nightly(cli, NIGHTS - 1, "--channel", "out", "--fail-on", fail_on)
    assert told.code == code
    assert "Error: the report is stored, but was not delivered to out" in told.err


def trace(folder, night, gemm_ns):
    """Return a file with launches of a kernel, and others of one that stays."""
    times = {"gemm": gemm_ns + night % 3, "saxpy": 25_000 + night % 2}
    rows = [
        f"{number * 10**6},{ns},{number + 1},64,1,1,256,1,1,32,0,0,,,,,{DEVICE} (0),1,7,{kernel}"
        for number, (kernel, ns) in enumerate(times.items())
    ]
    file = folder / f"night{night}.csv"
    file.write_text("\n".join([TRACE, *rows, ""]))
    return file


def test_a_finding_follows_files_that_are_uploaded_again_after_their_run_was_deleted(cli, tmp_path):
    for night in range(NIGHTS):
        file = trace(tmp_path, night, 800_000 if night < NIGHTS - 3 else 840_000)
        assert cli("upload", file, "--run", f"night {night}", "--at", f"{day(night)}T02:00:00Z").code == 0
        if night >= NIGHTS - 4:
            nightly(cli, night)
    first = f"night {NIGHTS - 3}"
    assert cli("delete", first, "--all", "--yes").code == 0
    assert "since a run that was deleted" in nightly(cli, NIGHTS).out
    again = cli("upload", tmp_path / f"night{NIGHTS - 3}.csv", "--run", first, "--at", f"{day(NIGHTS - 3)}T02:00:00Z")
    assert again.code == 0
    assert f"since run {first}" in nightly(cli, NIGHTS).out
    assert f"in run {first}" in cli("findings", "show", 1).err


def test_runs_of_a_host_whose_clock_was_set_back_are_named(cli, tmp_path):
    for night in range(NIGHTS):
        file, stands = trace(tmp_path, night, 800_000), day(night if night < NIGHTS - 1 else 3)
        assert cli("upload", file, "--run", f"night {night}", "--at", f"{stands}T03:00:00Z").code == 0
        if night >= NIGHTS - 2:
            said = nightly(cli, night).out
            assert ("Runs out of order" in said) == (night == NIGHTS - 1)
    told = said[said.index("Runs out of order") :].splitlines()
    assert told[2].split() == ["night", str(NIGHTS - 1), "default", f"{day(3)}T03:00:00Z", str(day(NIGHTS - 2))]
    # A second file of an old run is no run of an old night.
    log = tmp_path / "power.csv"
    log.write_text("\n".join(["t,P", *(f"{100 * row},{300_000 + row}" for row in range(30)), ""]))
    assert cli("upload", log, "--run", "night 0", "--column", "t=time:ms", "--column", "P=power:mW").code == 0
    assert "Runs out of order" not in nightly(cli, NIGHTS).out


def test_a_project_of_which_every_file_was_refused_has_a_report(cli, tmp_path):
    wrong = tmp_path / "wrong.csv"
    wrong.write_bytes(b"\x00 no profile")
    assert cli("upload", wrong, "--run", "night 0", "--project", "lab").code == 6
    made = cli("report", "nightly", "--project", "lab")
    assert (made.code, "1 file refused" in made.out.splitlines()[0], "wrong.csv" in made.out) == (0, True, True)
    assert cli("report", "nightly", "--project", "nothing").code == 3
