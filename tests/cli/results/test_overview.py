"""The first screen, as `demo` and `show` print it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TITLE_ROW = "Most time can be saved in"


def environment(**more: str) -> dict[str, str]:
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PROFSVC_", "NO_COLOR", "FORCE_"))
    }
    return kept | {"PYTHONPATH": str(ROOT)} | more


def profsvc(folder: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "profsvc", *words]
    return subprocess.run(command, cwd=folder, env=environment(**more), capture_output=True, text=True, check=True)


def fits(out: str, err: str, width: int) -> list[str]:
    """Hold the answers of the demo to one screen; return the commands that it names."""
    assert len((out + err).splitlines()) <= 30
    screen, _, next_part = out.partition("Next:\n")
    assert max(map(len, screen.splitlines())) <= width
    rows = re.findall(r"^ [1-5] .*", screen, re.MULTILINE)
    assert 3 <= len(rows) <= 5
    assert len({len(row) for row in [*rows, *re.findall(rf"^.*{TITLE_ROW}.*", screen, re.MULTILINE)]}) == 1
    commands = next_part.replace("\\\n", " ").splitlines()
    assert len(commands) == 3
    return commands


def test_the_demo_fits_one_screen_and_its_commands_work(tmp_path: Path) -> None:
    shown = profsvc(tmp_path, "demo", "--keep", str(tmp_path / "d"), COLUMNS="80")
    for command in fits(shown.stdout, shown.stderr, 80):
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (command, done.stderr)
        assert done.stdout


def test_the_demo_fits_a_wider_screen(cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    shown = cli("demo", "--keep", tmp_path / "d")
    assert shown.code == 0
    fits(shown.out, shown.err, 100)


def test_kernels_are_ordered_by_the_time_they_can_save(on_demo) -> None:
    shown = on_demo("show", "h200").out
    names = re.findall(r"^ \d (\S+)", shown, re.MULTILINE)
    assert names[:3] == ["shared_conflict<32>", "gemm_naive", "shared_conflict<16>"]
    sentence = "Shared memory bank conflicts (554 M wavefronts, 17.3 M without conflicts) cost 1.98 ms of 2.12 ms"
    assert sentence in " ".join(shown.split())
    assert "published" not in shown


def test_published_values_are_one_option_away(on_demo) -> None:
    assert "published" not in on_demo("show", "h200", "--kernel", "28").out
    assert "as published 1000x+" in on_demo("show", "h200", "--kernel", "28", "--published").out


def test_conditional_values_are_one_option_away(on_demo) -> None:
    shown = on_demo("show", "h200", "--kernel", "28", "--conditional").out
    assert "speedup  conditional" in shown
    assert "published" not in shown


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize(
    "words",
    [
        ["--all"],
        ["--limit", "5"],
        ["--kernel", "28"],
        ["--kernel", "28", "--published"],
        ["--kernel", "28", "--conditional"],
    ],
)
def test_no_row_is_wider_than_the_terminal(
    on_demo, monkeypatch: pytest.MonkeyPatch, width: int, words: list[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = on_demo("show", "h200", *words).out.splitlines()
    commands = [line for line in lines if "profsvc " in line]
    assert max(len(line) for line in lines if line not in commands) <= width
    if words == ["--all"]:
        assert sum(bool(re.match(r" ?\d+  \S", line)) for line in lines) == 34


@pytest.mark.parametrize(
    ("more", "is_colored"),
    [({}, False), ({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False)],
)
def test_colours_follow_the_environment(on_demo, monkeypatch: pytest.MonkeyPatch, more, is_colored: bool) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in more.items():
        monkeypatch.setenv(name, value)
    assert ("\x1b[" in on_demo("show", "h200").out) == is_colored


def test_a_run_without_potential_says_why(cli, fixtures) -> None:
    cli("upload", fixtures / "nvprof" / "gpu_trace.csv", "--run", "trace")
    shown = cli("show", "trace")
    assert shown.code == 0
    assert "No potential speedup: the export lacks" in " ".join(shown.out.split())


def test_totals_of_kernels_are_shown_where_no_launch_is_known(cli, fixtures) -> None:
    assert cli("upload", str(fixtures / "nvprof" / "summary.csv"), "--run", "totals").code == 0
    shown = cli("show", "totals").out
    assert "totals per kernel and no single launches" in shown
    head, first, *_ = shown[shown.index("   Most time is spent in") :].splitlines()
    assert head.split()[-4:] == ["launches", "take", "mean", "share"]
    assert first.startswith(" 1 ")
    assert cli("upload", str(fixtures / "nvprof" / "api_trace.csv"), "--run", "calls").code == 0
    assert "This run has no kernel launches. It has other lines: " in cli("show", "calls").out
