"""The README is short and names the version and the commands that CI runs; the README of the fixtures is complete."""

import importlib.metadata
import itertools
import re
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FIXTURES = ROOT / "fixtures"
README = (ROOT / "README.md").read_text(encoding="utf-8")
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
MAX_LINES, MAX_BYTES = 150, 9_000


def after(marker: str) -> str:
    """The fenced command after an HTML comment."""
    found = re.search(rf"<!-- {marker} -->\s*```sh\n(.*?)\n```", README, re.DOTALL)
    assert found, f"the README has no fenced command after <!-- {marker} -->"
    return found[1]


def test_the_version_is_the_newest_heading_under_changes():
    headings = re.findall(r"^### (\S+)$", README.split("\n## Changes\n")[1], re.MULTILINE)
    pattern = PYPROJECT["tool"]["hatch"]["version"]["pattern"]
    found = re.search(pattern, README)
    assert found
    assert found["version"] == headings[0]
    numbers = [tuple(map(int, heading.split("."))) for heading in headings]
    assert numbers == sorted(numbers, reverse=True)


def test_the_version_is_the_one_installed():
    try:
        installed = importlib.metadata.version("profsvc")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("profsvc is not installed here, only imported from the checkout")
    found = re.search(PYPROJECT["tool"]["hatch"]["version"]["pattern"], README)
    assert found
    assert found["version"] == installed


def test_the_readme_is_short():
    assert len(README.splitlines()) <= MAX_LINES
    assert len(README.encode()) <= MAX_BYTES


def test_the_demo_and_test_commands_stand_after_their_markers():
    assert after("demo command").endswith("profsvc demo")
    test = after("test command")
    for tool in ("ruff check .", "ruff format --check .", "mypy", "pytest -n 3"):
        assert tool in test
    assert "\n" not in test


def test_the_test_command_fails_where_one_of_its_tools_does():
    test, tool = after("test command"), r"(?:python3|\.venv/bin/)[^&;]*"

    def code(failing):
        count = itertools.count()
        words = re.sub(tool, lambda _: "false " if next(count) == failing else "true ", test)
        return subprocess.run(["sh", "-c", words], check=False).returncode

    assert len(re.findall(tool, test)) == 6
    assert [code(n) for n in range(7)] == [1] * 6 + [0]


def test_ci_runs_the_test_command_of_the_readme():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    found = re.search(r"^bash -c \"\$\(python3 - <<'PY'\n(.*?)\nPY\n\)\"", script, re.DOTALL | re.MULTILINE)
    assert found
    done = subprocess.run([sys.executable, "-c", found[1]], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == after("test command")


def test_ci_runs_what_reads_and_stores_files_without_the_compiled_modules():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8").replace("\\\n", "")
    found = re.search(r"^PROFSVC_SPLITTER=0 \.venv/bin/python -m pytest (.*)$", script, re.MULTILINE)
    assert found
    places = [word for word in found[1].split() if word.startswith("tests/")]
    assert places
    assert all((ROOT / place).exists() for place in places)


def test_the_readme_of_the_fixtures_mentions_every_file():
    text = (FIXTURES / "README.md").read_text(encoding="utf-8")
    globs = [word for word in re.findall(r"[\w./*-]+", text) if "*" in word]
    missing = []
    for path in sorted(path for path in FIXTURES.rglob("*") if path.is_file() and path.name != "README.md"):
        name = path.relative_to(FIXTURES).as_posix()
        stem = path.name.split(".")[0]
        if not re.search(rf"(?<!\w){re.escape(stem)}(?!\w)", text) and not any(fnmatch(name, glob) for glob in globs):
            missing.append(name)
    assert missing == []
    folders = {path.name for path in FIXTURES.iterdir() if path.is_dir()}
    assert folders - set(re.findall(r"`(\w+)/", text)) == set()
