"""What the README and the fixtures' README say is held against the program."""

import importlib.metadata
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import typer
from sqlalchemy import Engine
from typer.testing import CliRunner

from profsvc import settings, store
from profsvc.cli import app
from profsvc.errors import ProfsvcError

ROOT = Path(__file__).parents[1]
FIXTURES = ROOT / "fixtures"
README = (ROOT / "README.md").read_text(encoding="utf-8")
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
MOST_LINES = 200
HELPS = (["--help"], ["sql", "--help"], ["serve", "--help"])


def fenced(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


def after(marker: str) -> str:
    """The fenced command after an HTML comment."""
    found = re.search(rf"<!-- {marker} -->\s*```sh\n(.*?)\n```", README, re.DOTALL)
    assert found, f"the README has no fenced command after <!-- {marker} -->"
    return found[1]


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name))


def views_table() -> str:
    """The table of the views as the README must show it."""
    lines = ["| view | what | columns |", "|---|---|---|"]
    histories = [view for view in store.VIEWS if view.endswith("_history")]
    of_files = [view for view in store.VIEWS if view.endswith("_all")]
    for view, (sentence, columns) in store.VIEWS.items():
        shown = ", ".join(columns)
        if view == "v1_counters":
            *others, last = columns
            shown = f"{', '.join(others)}, {last} and one column a counter"
        if view not in (*histories, *of_files):
            lines.append(f"| `{view}` | {sentence.removesuffix('.')} | {shown} |")
    for view in histories:
        assert [*store.VIEWS[view.removesuffix("_history")][1], "is_current"] == list(store.VIEWS[view][1])
    assert all(store.VIEWS[view.removesuffix("_all")][1].keys() == store.VIEWS[view][1].keys() for view in of_files)
    named = ", ".join(f"`{view}`" for view in of_files)
    lines.append(f"| {named} | The same with the rows of every file, also of launches that several tell of | those |")
    named = ", ".join(f"`{view}`" for view in histories)
    lines.append(f"| {named} | The same as every version of the analysis computed it | those and is_current |")
    return "\n".join(lines)


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
    assert len(README.splitlines()) <= MOST_LINES


@pytest.mark.parametrize("command", list(commands(typer.main.get_command(app))))
def test_every_command_is_named_in_the_readme(command):
    assert re.search(rf"(?:profsvc |`){command}(?=[\s`])", README)


@pytest.mark.parametrize("setting", settings.SETTINGS, ids=lambda setting: setting.name)
def test_every_setting_is_named_where_users_look(setting):
    variable = f"PROFSVC_{setting.name.upper()}"
    helps = [CliRunner().invoke(app, words).output for words in HELPS]
    assert any(variable in text for text in (README, *helps))


def test_the_exit_codes_are_those_of_the_errors():
    table = {int(code) for code in re.findall(r"^\| (\d) \| ", README, re.MULTILINE)}
    waiting = [ProfsvcError]
    while waiting:
        error = waiting.pop()
        assert error.exit_code in table
        waiting += error.__subclasses__()
    assert table == set(range(8))


def test_the_demo_and_test_commands_stand_after_their_markers():
    assert after("demo command").endswith("profsvc demo")
    test = after("test command")
    for tool in ("ruff check .", "ruff format --check .", "mypy", "pytest -n 2"):
        assert tool in test
    assert "\n" not in test


def test_ci_runs_the_test_command_of_the_readme():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    found = re.search(r"exec bash -c \"\$\(python3 - <<'PY'\n(.*?)\nPY\n\)\"", script, re.DOTALL)
    assert found
    done = subprocess.run([sys.executable, "-c", found[1]], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == after("test command")


def test_the_commands_of_the_readme_run(tmp_path, monkeypatch):
    shutil.copy(FIXTURES / "demo" / "ncu_raw.csv.gz", tmp_path / "raw.csv")
    shutil.copy(FIXTURES / "ncu_details" / "h200_three_launches.csv.gz", tmp_path / "details.csv")
    shutil.copy(FIXTURES / "nvidia_smi" / "units.csv", tmp_path / "smi.csv")
    shutil.copy(FIXTURES / "hioki" / "pw3335.csv", tmp_path / "meter.csv")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PROFSVC_STORE", str(tmp_path / "store.sqlite"))
    lines = [line for block in fenced("sh") for line in block.splitlines() if line.startswith("profsvc ")]
    assert len(lines) >= 5
    for line in lines:
        result = CliRunner().invoke(app, shlex.split(line, comments=True)[1:])
        assert result.exit_code == 0, (line, result.output)


def statements() -> list[str]:
    text = re.sub(r"--.*", "", "\n".join(fenced("sql")))
    return [statement.strip() for statement in text.split(";") if statement.strip()]


@pytest.mark.parametrize("statement", statements())
def test_the_sql_of_the_readme_runs(demo: Engine, statement):
    answer = store.query(demo, statement)
    assert answer.columns
    assert answer.rows or "v1_rules" in statement  # the demo holds no rules of the tool


def test_the_readme_lists_every_view_with_its_columns():
    assert views_table() in README


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
