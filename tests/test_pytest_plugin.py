"""The pytest plugin in sessions of its own: a baseline, a regression, an improvement, no store, and its imports."""

import gzip
import importlib.metadata
import os
import shutil
import sys
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from _pytest.pytester import SysModulesSnapshot
from sqlalchemy import Engine

from profsvc import pytest_plugin, store
from profsvc.web.http.state import AppState
from tests.web.conftest import running

pytest_plugins = "pytester"
ROOT = Path(__file__).parents[1]
LINES = gzip.decompress((ROOT / "fixtures" / "demo" / "ncu_raw.csv.gz").read_bytes()).splitlines(keepends=True)
FAST, SLOW = 11, 12  # lines of strided_copy: every number, every second number
PLUGIN = "profsvc.pytest_plugin"
TEST = """
def test_copy(profsvc):
    profsvc.check({arguments})
"""
Session = Callable[..., pytest.RunResult]


@pytest.fixture
def session(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Session:
    """Run a session of pytest in this process, or ``apart`` in one that finds the plugin as an installed one."""
    info = pytester.mkdir("site") / "profsvc-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: profsvc\nVersion: 0\n")
    points = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]["pytest11"]
    (info / "entry_points.txt").write_text(
        "[pytest11]\n" + "".join(f"{name} = {place}\n" for name, place in points.items())
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(info.parent), str(ROOT)]))
    for name in (*pytest_plugin.COMMIT_VARIABLES, *pytest_plugin.BRANCH_VARIABLES, "PROFSVC_URL", "PROFSVC_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PROFSVC_STORE", str(pytester.path / "store.sqlite"))
    # Modules of the program that a session here imported stay: imported once more, they would be others.
    monkeypatch.setattr(SysModulesSnapshot, "restore", lambda _: sys.modules.pop("test_kernels", None))

    def run(
        number: int, *options: str, branch: str = "main", arguments: str = "'raw.csv'", apart: bool = False
    ) -> pytest.RunResult:
        (pytester.path / "raw.csv").write_bytes(b"".join([*LINES[:2], LINES[number - 1]]))
        pytester.makepyfile(test_kernels=TEST.format(arguments=arguments))
        monkeypatch.setenv("PROFSVC_BRANCH", branch)
        monkeypatch.setenv("PROFSVC_COMMIT", f"c-{branch}")
        if apart:
            return pytester.runpytest_subprocess("-p", "no:cacheprovider", *options)
        installed = any(one.value == PLUGIN for one in importlib.metadata.entry_points(group="pytest11"))
        plugin = () if installed else ("-p", PLUGIN)
        # At its end a session searches all of this process for garbage, five times.
        return pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:unraisableexception", *plugin, *options)

    return run


@pytest.fixture(scope="module")
def stored_first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the store of `baseline` is kept, to be copied."""
    return tmp_path_factory.mktemp("baseline") / "stored"


@pytest.fixture
def baseline(session: Session, pytester: pytest.Pytester, stored_first: Path) -> None:
    """Store a first run of the main branch: that of the first test, of which the others have a copy."""
    if not stored_first.exists():
        session(FAST).assert_outcomes(passed=1)
        stored_first.mkdir()
        for found in pytester.path.glob("store.sqlite*"):
            (shutil.copytree if found.is_dir() else shutil.copy)(found, stored_first / found.name)
    else:
        shutil.copytree(stored_first, pytester.path, dirs_exist_ok=True)


def rows(pytester: pytest.Pytester, view: str, columns: Sequence[str]) -> list[tuple[object, ...]]:
    engine = store.open_store(str(pytester.path / "store.sqlite"))
    found = [tuple(row[name] for name in columns) for row in store.select(engine, view)]
    engine.dispose()
    return found


def test_the_first_run_is_the_baseline_of_the_next(session: Session, pytester: pytest.Pytester) -> None:
    first = session(FAST, apart=True)
    first.assert_outcomes(passed=1)
    first.stdout.fnmatch_lines(["*test_kernels.py::test_copy: run 1, no baseline yet (branch=main)"])
    slower = session(SLOW, branch="change")
    slower.assert_outcomes(failed=1)
    slower.stdout.fnmatch_lines(
        [
            "strided_copy: duration up 6.6 %, allowed 5 %",
            "*strided_copy: +* % uncoalesced global loads",
            "details: profsvc compare id:1 id:2",
            "*test_kernels.py::test_copy: run 2, failed against run 1, 0.938x as fast",
        ]
    )
    assert "Traceback" not in slower.stdout.str()
    same = session(FAST, branch="change")  # the baseline is still that of the main branch
    same.assert_outcomes(passed=1)
    same.stdout.fnmatch_lines(["*run 3, ok against run 1, 1.000x as fast"])
    stored = rows(pytester, "v1_runs", ["project", "commit_id", "tags"])
    assert stored[1] == ("pytest", "c-change", '{"branch":"change","test":"test_kernels.py::test_copy"}')


@pytest.mark.parametrize(
    ("options", "arguments", "fails"),
    [
        (["--profsvc-fail-on", "duration=10%"], "'raw.csv'", False),
        (["-o", "profsvc_fail_on=duration=10%"], "'raw.csv'", False),
        ([], "'raw.csv', fail_on='duration=10%'", False),
        (["--profsvc-fail-on", "duration=10%", "--profsvc-fail-on", "l1_granularity=0.1"], "'raw.csv'", True),
        (["--profsvc-baseline", "commit=c-main"], "'raw.csv'", True),
        (["--profsvc-baseline", "1"], "'raw.csv'", True),
        (["--profsvc-baseline", "commit=other"], "'raw.csv'", False),
        (["--profsvc-project", "other"], "'raw.csv'", False),
    ],
)
@pytest.mark.usefixtures("baseline")
def test_limits_and_baselines(session: Session, options: list[str], arguments: str, fails: bool) -> None:
    result = session(SLOW, *options, branch="change", arguments=arguments)
    result.assert_outcomes(failed=int(fails), passed=int(not fails))


def test_a_wrong_limit_fails_though_there_is_no_baseline(session: Session, pytester: pytest.Pytester) -> None:
    result = session(FAST, "--profsvc-fail-on", "durations=5%")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*UsageError: 'durations=5%' is not a limit; write NAME=NUMBER, such as duration=5%*"])
    result.stdout.no_fnmatch_line("* --fail-on *")  # the option of another program
    assert rows(pytester, "v1_runs", ["run_id"]) == []


def test_a_run_of_no_branch_says_why_it_will_be_no_baseline(session: Session) -> None:
    for _ in range(2):
        result = session(FAST, branch="")
        result.assert_outcomes(passed=1)
        result.stdout.fnmatch_lines(["*, no baseline yet (branch=main); this run has no branch *: set PROFSVC_BRANCH"])


@pytest.mark.usefixtures("baseline")
def test_a_limit_that_nothing_can_be_judged_by_fails(session: Session) -> None:
    result = session(FAST, "--profsvc-fail-on", "power=5%", branch="change")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["limit power not checked: the runs have no window of power in common"])


def test_an_improvement_passes(session: Session) -> None:
    session(SLOW).assert_outcomes(passed=1)
    faster = session(FAST, branch="change")
    faster.assert_outcomes(passed=1)
    faster.stdout.fnmatch_lines(["*run 2, ok against run 1, 1.066x as fast"])


def test_a_refused_file_fails_the_test_and_says_why(session: Session, pytester: pytest.Pytester) -> None:
    (pytester.path / "broken.csv").write_text("no profile\n")
    result = session(FAST, arguments="'broken.csv'")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*UnknownFormatError: *"])
    result.stdout.no_fnmatch_line("*formats*.py:*")  # no frame of the program, only the line of the test
    result.stdout.fnmatch_lines([">*profsvc.check(*"])


def test_a_store_that_cannot_be_opened_is_said_without_a_traceback(
    session: Session, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    (pytester.path / "taken").write_text("a file, no folder")
    monkeypatch.setenv("PROFSVC_STORE", str(pytester.path / "taken" / "store.sqlite"))
    result = session(FAST)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*store.sqlite: *"])
    result.stdout.no_fnmatch_line("*profsvc*.py:*")
    result.stdout.no_fnmatch_line("*raise *")


def test_it_uploads_to_a_service(session: Session, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(AppState(engine, store.blob_store_of(engine))) as service:
        monkeypatch.setenv("PROFSVC_URL", service.url)
        session(FAST).assert_outcomes(passed=1)
        result = session(SLOW, branch="change")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["strided_copy: duration up 6.6 %, allowed 5 %"])
    assert [row["commit_id"] for row in store.select(engine, "v1_runs")] == ["c-main", "c-change"]


def test_tests_without_the_fixture_import_nothing_of_the_program(session: Session, pytester: pytest.Pytester) -> None:
    test = """
    import sys

    def test_imports():
        mine = sorted(name for name in sys.modules if name.partition(".")[0] == "profsvc")
        assert mine == ["profsvc", "profsvc.pytest_plugin"]
        assert not {"numpy", "pandas", "sqlalchemy", "httpx", "click"} & sys.modules.keys()
    """
    pytester.makepyfile(test_imports=test)
    result = session(FAST, "test_imports.py", apart=True)
    result.assert_outcomes(passed=1)
    assert "= profsvc =" not in result.stdout.str()


def test_the_options_are_in_the_help(session: Session) -> None:
    text = session(FAST, "--help").stdout.str()
    for option in ("--profsvc-project", "--profsvc-baseline", "--profsvc-fail-on", "profsvc_fail_on"):
        assert option in text
