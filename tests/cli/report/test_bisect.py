"""The search for the commit of a finding: with noise, after a kill, and with commits that cannot be measured."""

import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from profsvc import pipeline, store
from profsvc.errors import UsageError
from profsvc.pipeline.commits import commits_between, merge_of
from profsvc.pipeline.nightly import report_of_night
from profsvc.pipeline.nightly.blame import blame
from profsvc.views.nightly import findings as of_findings
from tests.conftest import opened
from tests.inputs.uploads import without_analysis

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

COMMITS, FIRST_BAD = 64, 41
LEVELS = (100_000, 103_000)
HEAD = "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB),"
HEAD += "Throughput (MBps),SrcMemKd,DstMemKd,Device,Ctx,Strm,Name"
MEASURE = f"""
import os, random
level = int(open("level.txt").read())
ns = round(level * (1 + 0.01 * random.Random(os.urandom(4)).gauss(0, 1)))
print({HEAD!r})
print(f"0,{{ns}},1,64,1,1,128,1,1,40,0.004,0.000,,,,,NVIDIA H200 (0),1,7,saxpy(float *)")
"""


def git(repository: Path, *arguments: str, stdin: str = "") -> str:
    names = {"GIT_AUTHOR_NAME": "Ada B", "GIT_AUTHOR_EMAIL": "a@b.c", "GIT_COMMITTER_NAME": "Ada B"}
    environment = os.environ | names | {"GIT_COMMITTER_EMAIL": "a@b.c"}
    done = subprocess.run(["git", "-C", str(repository), *arguments], env=environment, capture_output=True, check=True,
                          input=stdin, encoding="utf-8")  # fmt: skip
    return done.stdout.strip()


@pytest.fixture(scope="module")
def repository(tmp_path_factory) -> tuple[Path, list[str]]:
    """A program of 65 commits of which number `FIRST_BAD` of the last 64 is slower; and their hashes."""
    folder = tmp_path_factory.mktemp("repository")
    git(folder, "init", "-q")
    branch, stream = git(folder, "symbolic-ref", "HEAD"), ""
    for number in range(-1, COMMITS):
        files = {
            "level.txt": str(LEVELS[number >= FIRST_BAD]),
            "notes.txt": f"change {number}\n",
            "measure.py": MEASURE,
        }
        stream += f"commit {branch}\ncommitter Ada B <a@b.c> {1_790_000_000 + number} +0000\n"
        stream += f"data {len(f'change {number}')}\nchange {number}\n"
        stream += "".join(f"M 644 inline {name}\ndata {len(text)}\n{text}\n" for name, text in files.items())
    # One process for all commits instead of three for each.
    git(folder, "fast-import", "--quiet", stdin=stream)
    git(folder, "reset", "-q", "--hard")
    return folder, git(folder, "rev-list", "--reverse", "HEAD").split()


def trace(ns: float) -> bytes:
    row = f"0,{round(ns)},1,64,1,1,128,1,1,40,0.004,0.000,,,,,NVIDIA H200 (0),1,7,saxpy(float *)"
    return f"{HEAD}\n{row}\n".encode()


def put(engine, night: int, ns: float, commit: str) -> None:
    at = f"2026-03-{night + 1:02}T02:00:00Z"
    run = store.RunInfo(name=f"night {night}", project="lab", started_at=at, at=at, commit_id=commit)
    with without_analysis():
        pipeline.ingest(engine, io.BytesIO(trace(ns)), "trace.csv", run)


@pytest.fixture(scope="module")
def nights_file(tmp_path_factory, repository) -> Path:
    """A store of nights before and since the slower commits, each of the latter with its report."""
    file = tmp_path_factory.mktemp("nights") / "store.sqlite"
    _, hashes = repository
    offsets = [0.012, -0.008, 0.003, -0.011, 0.009, -0.002, 0.013, -0.012, 0.001, 0.006, -0.007, -0.004, 0.008, -0.01]
    with opened(str(file)) as engine:
        for night in range(22):
            level = LEVELS[night >= 14]
            put(engine, night, level * (1 + offsets[night % 14]), hashes[0] if night < 14 else hashes[-1])
            if night >= 13:  # the first report covers all nights before it
                report_of_night(engine, "lab", f"2026-03-{night + 1:02}")
    return file


@pytest.fixture
def found(store_file, nights_file) -> dict:
    """The one finding of the nights, in the store of this test."""
    shutil.copy(nights_file, store_file)
    engine = store.open_store(str(store_file), pooled=True)
    rows = of_findings.findings(engine, kernel="saxpy", quantity="duration")["findings"]
    engine.dispose()
    assert len(rows) == 1
    return rows[0]


def test_the_range_of_commits_shrinks_with_runs_in_between(found, store_file, repository):
    folder, hashes = repository
    engine = store.open_store(str(store_file), pooled=True)
    row = of_findings.found(engine, found["finding_id"])
    wide = blame(engine, row, folder)
    assert (len(wide["candidates"]), wide["good"], wide["bad"]) == (COMMITS, hashes[0], hashes[-1])
    assert {one["author"] for one in wide["candidates"]} == {"Ada B"}
    assert wide["measure"] in (hashes[32], hashes[33])
    for night, (number, level) in enumerate(((30, 0), (30, 0), (45, 1), (45, 1)), 22):
        put(engine, night, LEVELS[level], hashes[1 + number][:10])
    narrow = blame(engine, row, folder)
    assert narrow["suspects"] < 20 < wide["suspects"]
    assert hashes.index(narrow["first_suspect"]) > 30
    with pytest.raises(UsageError, match="no ancestor"):
        commits_between(folder, hashes[-1], hashes[0])
    with pytest.raises(UsageError, match="same commit"):
        commits_between(folder, hashes[3], hashes[3])
    with pytest.raises(UsageError, match="'--help' was not found"):
        commits_between(folder, "--help", hashes[3])
    engine.dispose()


def test_names_and_subjects_are_as_git_has_them(tmp_path):
    git(tmp_path, "init", "-q")
    authors = ["first", "Zo\u00eb \u00dcnal", "sep\x1fname", "tab\tname", "\u540d\u524d"]
    for author in authors:
        git(tmp_path, "commit", "-q", "--allow-empty", f"--author={author} <a@b.c>", "-m", f"a\x1f{author}\x1b[1m")
    git(tmp_path, "config", "i18n.logOutputEncoding", "latin1")
    found = commits_between(tmp_path, "HEAD~4", "HEAD")
    assert [one.author for one in found] == authors[1:]
    assert [one.subject for one in found] == [f"a\x1f{author}\x1b[1m" for author in authors[1:]]


def test_a_merge_says_what_it_brought(tmp_path):
    git(tmp_path, "init", "-q", "-b", "main")
    for words in ("root", "first"):
        git(tmp_path, "commit", "-q", "--allow-empty", "-m", words)
    base = git(tmp_path, "rev-parse", "HEAD")
    git(tmp_path, "checkout", "-q", "-b", "side")
    for words in ("one", "two", "three"):
        git(tmp_path, "commit", "-q", "--allow-empty", "-m", words)
    tip = git(tmp_path, "rev-parse", "HEAD")
    git(tmp_path, "checkout", "-q", "main")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "beside")
    git(tmp_path, "merge", "-q", "--no-ff", "-m", "merge", "side")
    assert [one.subject for one in commits_between(tmp_path, base, "HEAD")] == ["beside", "merge"]
    assert merge_of(tmp_path, "HEAD") == (base, tip, 3)
    assert [one.subject for one in commits_between(tmp_path, base, tip)] == ["one", "two", "three"]
    assert (merge_of(tmp_path, tip), merge_of(tmp_path, "HEAD~1")) == (None, None)
    root = git(tmp_path, "rev-list", "--max-parents=0", "HEAD")
    assert merge_of(tmp_path, root) is None


def test_a_search_that_was_killed_goes_on_and_finds_the_commit(found, store_file, repository, tmp_path, cli):
    folder, hashes = repository
    told = cli("bisect", found["finding_id"], "--repo", folder)
    assert "measure next: " in told.err
    assert told.code == 0
    # The third run kills the search.
    count = tmp_path / "count"
    fatal = f"echo x >> {count}; test $(wc -l < {count}) -eq 3 && kill -9 $PPID; {sys.executable} measure.py"
    command = [sys.executable, "-m", "profsvc", "bisect", str(found["finding_id"]), "--repo", str(folder)]
    environment = os.environ | {"TMPDIR": str(tmp_path)}  # it leaves its folders
    killed = subprocess.run([*command, "--run", fatal], capture_output=True, env=environment, check=False)
    assert killed.returncode == -9
    engine = store.open_store(str(store_file), pooled=True)
    assert len(store.select(engine, "v1_runs", project="lab bisect")) == 2
    done = cli("bisect", found["finding_id"], "--repo", folder, "--run", f"{sys.executable} measure.py", "-o", "json")
    assert done.code == 0
    assert hashes[1 + FIRST_BAD] in done.out
    runs = store.select(engine, "v1_runs", project="lab bisect")
    assert len({row["commit_id"] for row in runs}) <= 9
    assert all(len(row["commit_id"]) == 40 for row in runs)
    assert git(folder, "worktree", "list").count("\n") <= 1  # that of the killed search at most
    assert git(folder, "status", "--porcelain") == ""
    engine.dispose()


def test_a_commit_that_cannot_be_measured_is_left_out(found, repository, cli):
    folder, _ = repository
    run = "false"
    told = cli("bisect", found["finding_id"], "--repo", folder, "--run", run, "--max-runs", 2)
    assert told.code == 6
    assert told.err.count("is left out: the command ended with exit code 1") == 2
    assert "no commit could be measured" in told.err


def test_a_search_that_is_interrupted_says_how_it_goes_on(found, repository, cli, monkeypatch):
    def interrupted(*_arguments, **_given):
        raise KeyboardInterrupt

    monkeypatch.setattr("profsvc.cli.report.bisect._run_once", interrupted)
    before = git(repository[0], "worktree", "list")
    told = cli("bisect", found["finding_id"], "--repo", repository[0], "--run", "true")
    assert told.code == 130
    assert "the same command goes on" in told.err
    assert git(repository[0], "worktree", "list") == before


def test_what_is_slow_at_the_commit_before_the_change_too_is_no_commits_fault(found, store_file, repository, cli):
    folder, hashes = repository
    engine = store.open_store(str(store_file), pooled=True)
    row = of_findings.found(engine, found["finding_id"])

    def measured(number: int) -> dict:
        count = len(store.select(engine, "v1_runs"))
        run = store.RunInfo(name=f"search {count}", project="lab bisect", commit_id=hashes[number])
        with without_analysis():
            pipeline.ingest(engine, io.BytesIO(trace(LEVELS[1] + 7 * count)), "trace.csv", run)
        return blame(engine, row, folder)

    for _ in range(4):
        state = measured(1)
    assert (state["found"], state["measure"]) == (False, hashes[0])  # the first commit alone does not tell
    for _ in range(4):
        state = measured(0)
    assert (state["found"], state["best"]["commit"]) == (True, hashes[0])
    assert "no commit changed saxpy" in cli("bisect", found["finding_id"], "--repo", folder).err
    driver = "INSERT INTO finding_differences (finding_id, item, fact, part, title, unit, before_text, after_text)"
    driver += f" VALUES ({found['finding_id']}, 1, 'driver_version', 'context', 'driver', '', '570', '580')"
    with engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM finding_differences")
        connection.exec_driver_sql(driver)
    for one in store.select(engine, "v1_runs", project="lab bisect"):
        store.delete_run(engine, one["run_id"])
    assert blame(engine, row, folder)["measure"] == hashes[0]
    told = cli("bisect", found["finding_id"], "--repo", folder)
    assert "the code may not be the cause: driver 570 to 580; " in told.err
    engine.dispose()


def test_a_clone_without_its_history_and_a_commit_that_is_gone_say_what_to_do(repository, tmp_path):
    folder, hashes = repository
    git(tmp_path, "clone", "-q", "--depth", "3", f"file://{folder}", "shallow")
    with pytest.raises(UsageError, match="the clone is shallow: git fetch --unshallow"):
        commits_between(tmp_path / "shallow", hashes[0], hashes[-1])
    with pytest.raises(UsageError, match=r"a rebase or a forced push .* --good or --bad"):
        commits_between(folder, "f" * 40, hashes[-1])
