"""Commands that messages print to copy work in a shell as they are, whatever runs and files are called."""

import json
import shlex
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from profsvc.cli.application import app
from tests.conftest import ROOT

NAMES = ("2", "1", "it's $HOME `x`", "-q", "id:9", "a\nb")
"""Names of runs: the numbers of others, what a shell reads, an option, the way to give a number, and two lines."""


@pytest.fixture(scope="module")
def named_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a store where each run has a kernel of its own."""
    folder = tmp_path_factory.mktemp("named")
    (folder / "stored").mkdir()
    lines = (ROOT / "fixtures" / "ncu_raw" / "plain.csv").read_text()
    for number in range(1, len(NAMES) + 1):
        (folder / f"{number}.csv").write_text(lines.replace("saxpy", f"kernel_{number}"))
    uploads = [(number, "--run", name) for number, name in enumerate(NAMES, 1)]
    for number, *run in [*uploads, (1, "--run", "2", "--project", "other")]:
        words = ["--store", str(folder / "stored" / "store.sqlite"), "upload", str(folder / f"{number}.csv"), *run]
        done = CliRunner().invoke(app, words, env={"PROFSVC_URL": None})
        assert done.exit_code == 0, done.output
    return folder / "stored"


@pytest.fixture
def named(cli, named_store, store_file):
    """The command line on a copy of that store."""
    shutil.copytree(named_store, store_file.parent, dirs_exist_ok=True)
    return cli


@pytest.mark.parametrize("number", range(1, len(NAMES) + 1))
def test_what_comes_next_is_about_the_same_run(named, number: int) -> None:
    first = named("show", f"id:{number}")
    lines = first.out.partition("\nNext:\n")[2].replace("\\\n   ", "").splitlines()
    commands = [line.partition(" profsvc ")[2] for line in lines]
    assert len(commands) == 3
    for command in commands:
        shown = named(*shlex.split(command))
        assert shown.code == 0, (command, shown.err)
        assert f"kernel_{number}" in shown.out or command.startswith("explain"), command


def test_a_service_and_python_know_the_number_of_a_run_too(named) -> None:
    for number, name in enumerate(NAMES, 1):
        assert json.loads(named("show", f"id:{number}", "-o", "json").out)["run"]["name"] == name
    several = named("show", "2")
    assert (several.code, several.err) == (
        2, "Error: '2' names several runs: default/2 (id:1), other/2 (id:7); say which, such as id:1\n",
    )  # fmt: skip


def test_the_models_of_a_run_are_shown_by_commands_about_it(named) -> None:
    rows = json.loads(named("models", "id:2", "-o", "json").out)["rows"]
    commands = {row["command"] for row in rows if "show" in row["command"]}
    assert commands
    assert all("id:2" in shlex.split(command) for command in commands)


def test_a_name_that_begins_with_a_hyphen_is_told_where_to_stand(named) -> None:
    refused = named("show", "-q!")
    assert refused.code == 2
    assert "A name that begins with - stands behind --, as in: profsvc show -- NAME" in refused.err
    assert named("show", "--", "-q").out.startswith("Run -q (id 4, ")
    assert "stands behind" not in named("show", "--kernal", "0").err  # an option is meant


def test_they_name_the_store_that_was_given(cli, fixtures, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")  # a command stays on one line of a narrow terminal
    store = tmp_path / "the lab's.sqlite"
    named = f"profsvc --store {shlex.quote(str(store))}"
    stored = cli("--store", store, "upload", fixtures / "nvidia_smi" / "rejects.csv", "--run", "log")
    rejects = stored.err.splitlines()[-1]
    assert rejects.startswith(f"  why lines were rejected: {named} sql ")
    assert cli(*shlex.split(rejects.partition(" profsvc ")[2]), "-o", "csv").out.count("\n") == 5
    assert f"{named} power id:1\n" in cli("show", "log", "--all", "--store", store).out
    refused = cli("power", "log", "--heat-map", tmp_path / "map.svg", "--store", store)
    assert refused.code == 3
    assert "profsvc --store" not in cli("--store", store, "upload", tmp_path / "1.csv").err  # formats need no store


def test_the_newest_run_is_shown_though_another_has_its_number_for_a_name(named) -> None:
    assert named("show").out.startswith(f"Run 2 (id {len(NAMES) + 1}, project other)")
    named(
        "upload", "--run", str(len(NAMES) + 2), "-", stdin="timestamp, power.draw [W]\n2026/01/01 00:00:00.000, 5 W\n"
    )
    assert named("show").out.startswith(f"Run {len(NAMES) + 2} (id {len(NAMES) + 2}, ")
