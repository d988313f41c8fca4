"""The steps of the GitHub Action and of the GitLab template, run as a shell runs them, with summaries to compare."""

import gzip
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from sqlalchemy import Engine

from profsvc import pipeline, store
from profsvc.web.http.state import AppState
from tests.environment.resident import resident
from tests.web.conftest import running

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / ".github/actions/profsvc/action.yml").read_text(encoding="utf-8"))
GITLAB = yaml.safe_load((ROOT / ".gitlab/profsvc.yml").read_text(encoding="utf-8"))[".profsvc"]
SUMMARIES = Path(__file__).with_name("summaries")
LINES = gzip.decompress((ROOT / "fixtures" / "demo" / "ncu_raw.csv.gz").read_bytes()).splitlines(keepends=True)
FAST, SLOW = (b"".join([*LINES[:2], LINES[number - 1]]) for number in (11, 12))
EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")


class Job(NamedTuple):
    """A checkout of a branch that left the main branch, and the store with a measurement of where it left."""

    folder: Path
    fork_point: str
    environment: dict[str, str]

    def run(self, script: str, **more: str) -> tuple[int, str]:
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
            cwd=self.folder, env=self.environment | more, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode, done.stdout + done.stderr

    def play(self, program: str, script: str) -> None:
        """Let a program of the job be a script."""
        file = self.folder.with_name("bin") / program
        file.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        file.chmod(0o755)

    def retry_soon(self) -> None:
        """Let the program wait no more than a moment for a service that does not answer."""
        hasty = "from profsvc.client import connection; connection.RETRY_DELAYS_S = (0.01,) * 4"
        self.play("profsvc", f"""exec "{sys.executable}" -c '{hasty}; from profsvc.cli import main; main()' "$@"\n""")


def git(folder: Path, *arguments: str) -> str:
    person = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in
              (("NAME", "ci"), ("EMAIL", "ci@example.org"), ("DATE", "2026-10-24T03:00:00Z"))}  # fmt: skip
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1", **person}
    done = subprocess.run(["git", *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture(scope="module")
def program() -> Iterator[str]:
    """How a script calls the program."""
    with resident() as line:
        yield line


@pytest.fixture
def job(tmp_path: Path, empty: Path, program: str) -> Job:
    folder = tmp_path / "checkout"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch", "main")
    for message in ("first", "second"):
        git(folder, "commit", "--quiet", "--allow-empty", "--message", message)
    fork_point = git(folder, "rev-parse", "HEAD")
    git(folder, "checkout", "--quiet", "-b", "change")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "a change")
    shutil.copy(empty, tmp_path / "store.sqlite")
    programs = tmp_path / "bin"
    programs.mkdir()
    environment = {
        "PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(tmp_path), "PYTHONPATH": str(ROOT),
        "PROFSVC_STORE": str(tmp_path / "store.sqlite"), "CHECK_SUMMARY": str(tmp_path / "summary.md"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "step.md"), "OPENBLAS_NUM_THREADS": "1",
    }  # fmt: skip
    job = Job(folder, fork_point, environment)
    job.play("profsvc", program)
    job.play("python3", f'exec "{sys.executable}" "$@"')
    return job


def measured(job: Job, content: bytes) -> None:
    """Store what the fork point measured."""
    engine = store.open_store(job.environment["PROFSVC_STORE"])
    info = store.RunInfo(project="kernels", name="main", commit_id=job.fork_point, tags={"branch": "main"})
    with (job.folder / "main.csv").open("w+b") as file:
        file.write(content)
        file.seek(0)
        pipeline.ingest(engine, file, "main.csv", info)
    engine.dispose()


def step(**inputs: str) -> tuple[str, dict[str, str]]:
    """Return the script of the step that compares, and its environment with the expressions filled in."""
    known = {f"inputs.{name}": str(one.get("default", "")) for name, one in ACTION["inputs"].items()}
    known |= {f"inputs.{name.replace('_', '-')}": value for name, value in inputs.items() if name != "fork"}
    known |= {
        "github.head_ref || github.ref_name": "change",
        "github.base_ref || github.event.repository.default_branch": "main",
        "github.event.pull_request.head.repo.fork || false": inputs.get("fork", "false"),
    }
    found = next(one for one in ACTION["runs"]["steps"] if one["name"] == "Upload and compare")
    values = {name: EXPRESSION.sub(lambda m: known[m[1]], text) for name, text in found["env"].items()
              if name != "CHECK_SUMMARY"}  # fmt: skip
    return found["run"], {name: value for name, value in values.items() if value}


CASES: dict[str, tuple[bytes | None, bytes, dict[str, str], int]] = {
    "regression": (FAST, SLOW, {}, 1),
    "improvement": (SLOW, FAST, {}, 0),
    "nothing": (FAST, FAST, {}, 0),
    "no_baseline": (None, FAST, {}, 0),
    "broken_file": (FAST, b"no profile\n", {}, 6),
    "fork": (FAST, SLOW, {"fork": "true"}, 0),
    "server_away": (FAST, SLOW, {"url": "http://127.0.0.1:9"}, 0),
}


def check_summary(job: Job, name: str) -> None:
    """Compare the summary with the stored one; PROFSVC_WRITE_SUMMARIES=1 writes it."""
    text = Path(job.environment["CHECK_SUMMARY"]).read_text(encoding="utf-8")
    assert Path(job.environment["GITHUB_STEP_SUMMARY"]).read_text(encoding="utf-8") == text
    golden = SUMMARIES / f"{name}.md"
    if os.environ.get("PROFSVC_WRITE_SUMMARIES"):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", CASES)
def test_the_action(name: str, job: Job) -> None:
    before, content, inputs, expected = CASES[name]
    if before:
        measured(job, before)
    (job.folder / "raw.csv").write_bytes(content)
    if name == "server_away":
        job.retry_soon()
    script, environment = step(files="raw.c*", project="kernels", **inputs)
    code, said = job.run(script, **environment)
    assert code == expected, said
    check_summary(job, name)


def test_a_job_that_uses_the_action_twice_says_each_once(job: Job) -> None:
    (job.folder / "it's raw.csv").write_bytes(FAST)
    branch = """it's "a" $(touch ran) `touch ran`; b|*"""
    for project in ("one's", 'the "other"'):
        script, environment = step(files="it*.csv", project=project)
        code, said = job.run(script, **environment | {"CHECK_BRANCH": branch})
        assert code == 0, said
    words = ["### profsvc: no baseline yet", "", "No commit of main before this one was measured. Run {} is stored."]
    lines = [line.format(run) for run in (1, 2) for line in words]
    for file in ("CHECK_SUMMARY", "GITHUB_STEP_SUMMARY"):
        assert Path(job.environment[file]).read_text(encoding="utf-8").splitlines() == lines
    assert not (job.folder / "ran").exists()


BASES = {
    "main": "main", "release/1.2-rc": "release/1.2-rc", "a_b_c": "a\\_b\\_c", "`code`": "\\`code\\`",
    "<b>&lt;": "&lt;b>&amp;lt;", "@team/#1!": "\\@team/\\#1\\!", "a]|b": "a\\]\\|b",
    "$(touch ran)": "$(touch ran)", "a\\b*[c](d)": "a\\\\b\\*\\[c\\](d)",
}  # fmt: skip


def test_the_name_of_the_base_branch_is_no_markup(job: Job) -> None:
    """The program is played by a script, for which no name waits; ``no_baseline`` shows that it says the same."""
    job.play("profsvc", 'case $1 in upload) printf "file,run,run_id\\nraw.csv,change,1\\n";; runs) echo run_id;; esac')
    (job.folder / "raw.csv").write_bytes(FAST)
    script, environment = step(files="raw.csv", project="kernels")
    for base, shown in BASES.items():
        code, said = job.run(script, **environment | {"CHECK_BASE": base})
        assert code == 0, said
        summary = Path(job.environment["CHECK_SUMMARY"])
        said = summary.read_text(encoding="utf-8").splitlines()[2]
        assert said == f"No commit of {shown} before this one was measured. Run 1 is stored."
        assert not (job.folder / "ran").exists()
        summary.unlink()


def test_the_action_with_a_token_that_may_not_upload(job: Job, engine: Engine) -> None:
    (job.folder / "raw.csv").write_bytes(FAST)
    token = store.create_token(engine, "reader", ["read"])
    with running(AppState(engine, store.blob_store_of(engine))) as service:
        script, environment = step(files="raw.csv", project="kernels", url=service.url, token=token)
        code, said = job.run(script, **environment)
    assert code == 4, said
    check_summary(job, "failed_upload")


def test_the_action_through_a_service(job: Job, engine: Engine) -> None:
    token = store.create_token(engine, "ci", ["read", "upload"], "kernels")
    with running(AppState(engine, store.blob_store_of(engine))) as service:
        script, environment = step(files="raw.csv", project="kernels", url=service.url, token=token)
        for branch, content, expected in (("main", FAST, 0), ("change", SLOW, 1)):
            git(job.folder, "checkout", "--quiet", branch)
            (job.folder / "raw.csv").write_bytes(content)
            code, said = job.run(script, **environment | {"CHECK_BRANCH": branch})
            assert code == expected, said
    assert "* strided\\_copy: duration up 6.6 %, allowed 5 %" in Path(job.environment["CHECK_SUMMARY"]).read_text()


def test_the_gitlab_template(job: Job) -> None:
    measured(job, FAST)
    (job.folder / "raw.csv").write_bytes(SLOW)
    lines = [line for line in GITLAB["script"] if "pip install" not in line and "git fetch" not in line]
    assert len(lines) == len(GITLAB["script"]) - 2
    given = {"CI_PROJECT_NAME": "kernels", "CI_COMMIT_REF_NAME": "change", "CI_DEFAULT_BRANCH": "main"}
    variables = {name: re.sub(r"\$(CI_\w+)", lambda m: given[m[1]], text) for name, text in GITLAB["variables"].items()}
    del variables["CHECK_SUMMARY"]
    code, said = job.run("\n".join(lines), **given, **variables, CHECK_FILES="raw.csv")
    assert code == 1, said
    golden = (SUMMARIES / "regression.md").read_text(encoding="utf-8")
    assert Path(job.environment["CHECK_SUMMARY"]).read_text(encoding="utf-8") == golden
    other = given | {"CI_PROJECT_ID": "1", "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "2"}
    code, said = job.run("\n".join(lines), **other, **variables, CHECK_FILES="raw.csv")
    assert code == 0, said


def test_a_service_that_is_away_may_fail_the_job(job: Job) -> None:
    (job.folder / "raw.csv").write_bytes(FAST)
    job.retry_soon()
    script, environment = step(files="raw.csv", url="http://127.0.0.1:9", when_away="fail")
    assert job.run(script, **environment)[0] == 5


def test_scripts_take_no_expression_and_are_whole() -> None:
    """An expression inside of a script would run what a branch is called."""
    scripts = [one["run"] for one in ACTION["runs"]["steps"]]
    assert not [script for script in scripts if EXPRESSION.search(script)]
    check = (ROOT / "profsvc/data/ci/check.sh").read_text(encoding="utf-8")
    for script in (*scripts, "\n".join(GITLAB["script"]), check):
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    assert all(one["shell"] == "bash" for one in ACTION["runs"]["steps"])
