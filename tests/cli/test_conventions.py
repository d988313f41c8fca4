"""What every command has in common: help, panels, shared options, examples, exit codes."""

import json
import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from profsvc.cli.application import PANELS
from profsvc.cli.console.exit_codes import EXIT_CODES
from profsvc.errors import error_kinds
from tests.cli.conftest import COMMANDS


def commands(group: Any = COMMANDS, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


EVERY = dict(commands())


def test_every_command_is_in_one_panel() -> None:
    listed = [name for names in PANELS.values() for name in names]
    assert sorted(listed) == sorted(COMMANDS.commands)


def test_the_help_lists_commands_in_their_panels(cli) -> None:
    shown = cli("--help").out
    assert [line[:-1] for line in shown.splitlines() if re.fullmatch(r"[A-Z][\w ]+:", line)][1:] == list(PANELS)


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_help_names_what_is_meant_and_shows_examples(cli, words: tuple[str, ...]) -> None:
    shown = cli(*words, "--help").out
    assert not re.search(r"\b(TEXT|PATH|INTEGER|FLOAT)\b|<(str|int|path|float|list)", shown.partition("Arguments:")[2])
    assert "--store" in shown
    assert ("--json" in shown) == ("--output" in shown)
    if not EVERY[words].hidden:
        assert "Example" in shown


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_examples_are_accepted_by_their_command(words: tuple[str, ...]) -> None:
    command, found = EVERY[words], 0
    for line in (command.help or "").replace("\b\n", "").splitlines():
        text = line.strip().partition("| ")[2] or line.strip() if " | profsvc " in line else line.strip()
        if not line.startswith("  ") or "profsvc " not in text:
            continue
        example = shlex.split(text[text.index("profsvc ") :].partition("; done")[0])[1:]
        while example[0].startswith("--"):  # options before the command
            example = example[2:]
        if tuple(example[: len(words)]) != words:
            continue
        found += 1
        context = COMMANDS.make_context("profsvc", ["--help"], resilient_parsing=True)
        command.make_context(words[-1], example[len(words) :], parent=context, resilient_parsing=False)
    assert found or command.hidden, "no example of this command"


def test_the_store_is_accepted_before_and_after_the_command(cli, demo) -> None:
    file = demo.url.database
    before = cli("--store", file, "runs", "--json")
    assert json.loads(before.out)["rows"]
    assert cli("runs", "--store", file, "-o", "json").out == before.out


def test_json_is_the_same_as_its_form(on_demo) -> None:
    for words in (
        ["runs"],
        ["show", "h200"],
        ["explain", "divergence"],
        ["formats"],
        ["settings"],
        ["sql", "select 1 as x"],
    ):
        assert on_demo(*words, "--json").out == on_demo(*words, "-o", "json").out
    refused = on_demo("runs", "--json", "-o", "csv")
    assert (refused.code, "exclude each other" in refused.err) == (2, True)


def test_quiet_leaves_data_and_errors(cli, fixtures) -> None:
    file = fixtures / "ncu_raw" / "plain.csv"
    assert cli("upload", file, "-q").err == ""
    assert "already stored" in cli("upload", file).err
    assert "no run named" in cli("-q", "show", "nothing").err
    assert cli("runs", "-q", "-v").code == 2


UNKNOWN = {
    "run": ["show", "xyzzy"],
    "kernel": ["show", "h200", "--kernel", "xyzzy"],
    "number": ["explain", "xyzzy"],
    "format": ["formats", "xyzzy"],
    "topic": ["help", "xyzzy"],
    "example": ["sql", "--example", "xyzzy"],
    "plot": ["plot", "h200", "xyzzy"],
    "quantity": ["history", "saxpy", "--quantity", "xyzzy"],
    "history kernel": ["history", "xyzzy"],
    "compared run": ["compare", "h200", "xyzzy"],
    "power run": ["power", "xyzzy"],
    "sensor": ["power", "h200", "--sensor", "xyzzy"],
    "whatif device": ["whatif", "h200", "--device", "xyzzy"],
    "components device": ["components", "--device", "xyzzy"],
    "finding": ["findings", "show", "999"],
    "report": ["report", "delete", "999", "--yes"],
    "schedule": ["schedule", "remove", "999"],
    "schedule kind": ["schedule", "add", "xyzzy", "--cron", "0 6 * * *"],
    "channel": ["channels", "test", "xyzzy"],
    "token": ["token", "revoke", "xyzzy"],
    "upload": ["undelete", "999"],
    "deleted run": ["delete", "xyzzy", "--all", "--yes"],
    "reparsed upload": ["reparse", "--upload", "999"],
    "analyzed run": ["analyze", "xyzzy"],
    "file": ["upload", "xyzzy"],
    "upload format": ["upload", "--format", "xyzzy", "pyproject.toml"],
    "folder": ["watch", "xyzzy"],
}


@pytest.mark.parametrize("words", UNKNOWN.values(), ids=UNKNOWN)
def test_a_mistyped_name_is_not_found(on_demo, words: list[str]) -> None:
    refused = on_demo(*words)
    assert (refused.code, refused.out) == (3, ""), refused.err


WRONG = {
    "command": ["xyzzy"],
    "option": ["runs", "--xyzzy"],
    "output": ["runs", "-o", "xyzzy"],
    "scope": ["token", "create", "a", "--scope", "xyzzy"],
    "state": ["findings", "list", "--state", "xyzzy"],
    "nightly limit": ["report", "nightly", "--fail-on", "xyzzy"],
    "formula": ["sql", "select 1", "--formula", "xyzzy"],
    "time zone": ["report", "nightly", "--zone", "xyzzy"],
}


@pytest.mark.parametrize("words", WRONG.values(), ids=WRONG)
def test_a_value_outside_a_fixed_list_is_a_bad_request(on_demo, words: list[str]) -> None:
    refused = on_demo(*words)
    assert (refused.code, refused.out) == (2, ""), refused.err


def test_the_table_has_every_exit_code() -> None:
    assert {kind.exit_code for kind in error_kinds()} | {0, 1, 130} == set(EXIT_CODES)


def test_what_is_interrupted_does_not_end_as_a_regression_does(cli, monkeypatch) -> None:
    def interrupted(*_arguments, **_given):
        raise KeyboardInterrupt

    monkeypatch.setattr("profsvc.store.select", interrupted)
    told = cli("runs")
    assert (told.code, told.out, "interrupted" in told.err) == (130, "", True)
