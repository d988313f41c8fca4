"""The pytest plugin: the fixture ``profsvc`` uploads what a test produced and fails on a regression.

::

    def test_reduction(profsvc, tmp_path):
        export = tmp_path / "raw.csv"
        subprocess.run(["ncu", "--csv", "--page", "raw", "--log-file", export, "./reduction"], check=True)
        profsvc.check(export)

Nothing of the program but this module is imported until a test uses the fixture. PROFSVC_URL and PROFSVC_TOKEN, or
PROFSVC_STORE, name the service or the store, as on the command line.
"""

import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import pytest

if TYPE_CHECKING:
    from profsvc.api import LocalStore
    from profsvc.client import Client

Params = ParamSpec("Params")
Returned = TypeVar("Returned")
NO_BASELINE = "no baseline yet"
DEFAULT_FAIL_ON = ("duration=5%",)
# Variables of CI systems, in this order, before git is asked.
COMMIT_VARIABLES = ("PROFSVC_COMMIT", "GITHUB_SHA", "CI_COMMIT_SHA")
BRANCH_VARIABLES = ("PROFSVC_BRANCH", "GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options and their entries of the configuration file."""
    group = parser.getgroup("profsvc", "upload profiles and fail on regressions")
    group.addoption("--profsvc-project", metavar="NAME", help="Project of the runs; default: pytest.")
    group.addoption(
        "--profsvc-baseline",
        metavar="RUN",
        help="Run to compare with: TAG=VALUE (newest run of the same test with this tag; default: branch=main), "
        "commit=SHA, or the name or id of a run.",
    )
    group.addoption(
        "--profsvc-fail-on",
        action="append",
        metavar="LIMIT",
        help="Limit, such as duration=5%% (the default) or divergence=0.05; repeatable.",
    )
    parser.addini("profsvc_project", "project of the runs", default="pytest")
    parser.addini("profsvc_baseline", "run to compare with: TAG=VALUE, commit=SHA, or a run", default="branch=main")
    parser.addini("profsvc_fail_on", "limits, one per line", type="linelist", default=list(DEFAULT_FAIL_ON))


def _shown_at_the_test(act: Callable[Params, Returned]) -> Callable[Params, Returned]:
    """Let errors of the program show the line of the test, without frames of the program."""

    @wraps(act)
    def run(*arguments: Params.args, **options: Params.kwargs) -> Returned:
        from profsvc.errors import ProfsvcError

        __tracebackhide__ = True
        try:
            return act(*arguments, **options)
        except ProfsvcError as error:
            raise error.with_traceback(None) from None

    return run


class Profiles:
    """What the fixture gives: `upload` stores files in the run of this test, `check` also compares it."""

    def __init__(
        self, target: "LocalStore | Client", test: str, project: str, baseline: str, fail_on: Sequence[str]
    ) -> None:
        """Prepare the run of one test; it is created by its first file."""
        self.target, self.test, self.project, self.baseline, self.fail_on = target, test, project, baseline, fail_on
        self.run_id: int | None = None
        self.comparison: dict[str, Any] | None = None
        self.outcome = ""

    @_shown_at_the_test
    def upload(self, *paths: str | os.PathLike[str], **options: Any) -> int:
        """Upload files to the run of this test and return its id; ``options`` such as ``device`` or ``timezone``."""
        if not paths:
            raise ValueError("name at least one file that the test has written")
        branch = _branch()
        commit = _first_set(COMMIT_VARIABLES) or _git("rev-parse", "HEAD")
        tags = {"test": self.test} | ({"branch": branch} if branch else {})
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        for path in paths:
            where: dict[str, Any] = {"run_id": self.run_id} if self.run_id else {"run": f"{self.test} {now}"}
            where |= {"project": self.project, "tag": [f"{key}={tags[key]}" for key in tags]} | options
            said = self.target.submit(Path(path), commit=commit, **where)
            self.run_id = int(said["run_id"])
        self.outcome = self.outcome or "uploaded"
        return self.run_id or 0

    @_shown_at_the_test
    def check(
        self,
        *paths: str | os.PathLike[str],
        fail_on: str | Sequence[str] = (),
        baseline: str = "",
        mapped: Mapping[str, str] | None = None,
        **options: Any,
    ) -> dict[str, Any] | None:
        """Upload files, compare the run with its baseline, and fail the test beyond a limit.

        Return the comparison, as `profsvc.client.Client.compare` does; None without a baseline, which is no failure.
        """
        __tracebackhide__ = True
        from profsvc.views.comparison.two_runs import check_limits

        limits = [fail_on] if isinstance(fail_on, str) else list(fail_on) or list(self.fail_on)
        check_limits(limits)  # the first session, which has no baseline, refuses a wrong one too
        run_id = self.upload(*paths, **options)
        before = self._baseline(baseline or self.baseline, run_id)
        if before is None:
            self.outcome = f"{NO_BASELINE} ({baseline or self.baseline})"
            if not _branch():
                self.outcome += "; this run has no branch to be found by, as git names none: set PROFSVC_BRANCH"
            return None
        view = self.comparison = self.target.compare(before, run_id, mapped, limits)
        broken = [*view["failures"], *view["unjudged"]]
        speedup = view["geometric_mean_speedup"]
        self.outcome = f"{'failed' if broken else 'ok'} against run {before}"
        self.outcome += f", {speedup:.3f}x as fast" if speedup else ""
        if broken:
            causes = [line for row in view["kernels"] for line in _cause_lines(row)]
            command = f"profsvc compare id:{before} id:{run_id}"
            pytest.fail("\n".join([*broken, *causes, f"details: {command}"]), pytrace=False)
        return view

    def _baseline(self, text: str, run_id: int) -> int | None:
        """Return the id of the run to compare with; None if there is none yet."""
        from profsvc import api

        key, sign, value = text.partition("=")
        if not sign:
            return int(self.target.run(int(text) if text.isdigit() else text, limit=1)["run"]["run_id"])
        tags = {"test": self.test} | ({} if key == "commit" else {key: value})
        commits = [value] if key == "commit" else []
        found = api.matching_runs(self.target, self.project, tags, commits, before=run_id)
        return found[0]["run_id"] if found else None


def _cause_lines(row: Mapping[str, Any]) -> Iterator[str]:
    """Yield the main causes why the mean time of a kernel changed."""
    for cause in row["causes"][:3]:
        yield f"  {row['kernel_after']}: {100 * cause['change_fraction']:+.1f} % {cause['title'].lower()}"


def _first_set(variables: Sequence[str]) -> str:
    return next((value for name in variables if (value := os.environ.get(name, ""))), "")


def _branch() -> str:
    """Return the branch of the working copy; empty if it is unknown, as in a checkout of a commit."""
    branch = _first_set(BRANCH_VARIABLES) or _git("rev-parse", "--abbrev-ref", "HEAD")
    return "" if branch == "HEAD" else branch


def _git(*arguments: str) -> str:
    """Return what git answers; empty outside of a repository."""
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


@pytest.fixture(scope="session")
def _profsvc_target() -> Iterator["LocalStore | Client"]:
    from profsvc import api
    from profsvc.errors import ProfsvcError

    try:
        connected = api.connect()
    except ProfsvcError as error:
        pytest.fail(str(error), pytrace=False)
    with connected as target:
        yield target


@pytest.fixture
def profsvc(request: pytest.FixtureRequest, _profsvc_target: "LocalStore | Client") -> Iterator[Profiles]:
    """Upload the profile that a test produced: ``profsvc.check(path)`` fails the test on a regression."""
    config = request.config
    made = Profiles(
        _profsvc_target,
        request.node.nodeid,
        config.getoption("--profsvc-project") or config.getini("profsvc_project"),
        config.getoption("--profsvc-baseline") or config.getini("profsvc_baseline"),
        config.getoption("--profsvc-fail-on") or config.getini("profsvc_fail_on"),
    )
    yield made
    if made.run_id is not None:
        line = f"{made.test}: run {made.run_id}, {made.outcome}"
        request.node.user_properties.append(("profsvc", line))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """List the runs that were uploaded, each with the outcome of its comparison."""
    lines = [
        value
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", "") == "teardown"
        for name, value in getattr(report, "user_properties", ())
        if name == "profsvc"
    ]
    if lines:
        terminalreporter.section("profsvc")
        for line in lines:
            terminalreporter.write_line(line)
