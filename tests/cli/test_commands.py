"""What holds for every command: help with an example, exit codes of the process, words and data apart."""

import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from profsvc.cli.application import MODULES, TRIED, app
from profsvc.errors import ServiceError

ROOT = Path(__file__).parents[2]


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command of the application with the words that call it."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            if not command.hidden:
                yield (*path, name), command


COMMANDS = dict(commands(app))


def process(*arguments: object, stdin: bytes = b"", **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "profsvc", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        check=False,
        cwd=ROOT,
        env=os.environ | environment,
        timeout=60,
    )


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example(cli, path):
    result = cli(*path, "--help")
    assert (result.code, result.err) == (0, "")
    assert f"Usage: profsvc {' '.join(path)}" in result.out
    example = rf"Examples?:\n\n\s+.*\bprofsvc .*\b{' '.join(path)}\b"
    assert re.search(example, result.out), result.out
    assert cli(*path, "-h").out == result.out
    # Each example stands on one line, to be copied.
    paragraphs = inspect.getdoc(COMMANDS[path].callback).split("\n\n")
    written = [line for paragraph in paragraphs if paragraph.startswith("  ") for line in paragraph.splitlines()]
    shown = result.out.splitlines()
    assert written
    assert [line for line in written if f"  {line}" not in shown] == []


def test_lists_say_what_a_command_does_to_the_end(cli):
    for path in ((), *{path[:1] for path in COMMANDS if len(path) > 1}):
        assert "..." not in cli(*path, "--help").out.partition("Commands:")[2], path


def test_every_option_has_help():
    options = [(path, param) for path, command in COMMANDS.items() for param in command.params]
    assert [f"{' '.join(path)} {param.name}" for path, param in options if not param.help] == []


def test_help_lists_every_command(cli):
    words = cli("--help").out
    for path in COMMANDS:
        assert re.search(rf"^  {path[0]}\s", words, re.MULTILINE)
    assert cli().code == 2  # no command is a wrong question, answered with the help
    assert cli("db", "--help").out.rstrip().endswith("profsvc db current")


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("import", "did you mean 'profsvc upload FILE'?"),
        ("list", "did you mean 'profsvc runs'?"),
        ("uplaod", "did you mean 'upload'"),
        ("raw.csv", "to upload a file: profsvc upload FILE"),
    ],
)
def test_a_word_that_is_no_command_is_answered_with_the_one_that_is_meant(cli, word, told):
    refused = cli(word)
    assert (refused.code, refused.out) == (2, "")
    assert f"no command named {word!r}; {told}" in refused.err


def test_what_is_tried_first_is_no_command_and_stands_for_one():
    assert not {*TRIED} & {*MODULES}
    meant = {told.split()[0] for told in TRIED.values()} - {"--version"}
    assert meant <= {*MODULES}


def test_help_of_a_command_is_what_it_says_itself(cli):
    assert cli("help", "upload").out == cli("upload", "--help").out
    assert cli("help", "settings").out.startswith("# Settings")  # a page comes first


def test_the_process_says_the_same(tmp_path, empty):
    store, fixtures = str(shutil.copy(empty, tmp_path / "store.sqlite")), ROOT / "fixtures" / "ncu_raw"
    good, bad = fixtures / "plain.csv", fixtures / "bad_contradicting_numbers.csv"
    for arguments, code in [
        (["--help"], 0),
        (["nonsense"], 2),
        (["--store", ROOT / "README.md", "runs"], 5),
        (["upload", bad, good], 7),
    ]:
        done = process(*arguments, PROFSVC_STORE=store)
        assert (done.returncode, arguments) == (code, arguments), done.stderr
        assert b"Traceback" not in done.stderr
        assert (done.stdout != b"") == (code == 0)
    piped = process("upload", "-", "--run", "piped", "-o", "json", stdin=good.read_bytes(), PROFSVC_STORE=store)
    assert (piped.returncode, json.loads(piped.stdout)["rows"][0]["known"]) == (0, False)


def test_output_is_utf8_whatever_the_locale(demo):
    done = process("--store", demo.url.database, "show", "h200", "--kernel", "0", PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert "█" in done.stdout.decode("utf-8")


def test_a_reader_that_leaves_early_is_no_error(demo):
    query = "with recursive n(i) as (select 1 union all select i + 1 from n limit 9999) select i, hex(i) from n"
    command = [sys.executable, "-m", "profsvc", "--store", str(demo.url.database), "sql", query, "-o", "csv"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT) as done:
        assert done.stdout is not None
        assert done.stderr is not None
        assert done.stdout.readline() == b"i,hex(i)\n"
        done.stdout.close()
        assert done.stderr.read() == b""
    assert done.returncode == 0


@pytest.mark.parametrize("arguments", [["--help"], ["upload", "--help"], ["sql", "--help"], ["work-depth", "--help"]])
def test_help_loads_neither_pandas_nor_sqlalchemy(arguments):
    code = f"""
import sys
from profsvc.cli.application import MODULES, TRIED, app
try:
    app({arguments!r})
except SystemExit as end:
    heavy = {{"pandas", "sqlalchemy", "numpy", "rich", "alembic"}} & set(sys.modules)
    sys.exit(str(heavy) if heavy or end.code else 0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=ROOT, check=False, timeout=60)
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize("asked", [None, "2"])
def test_small_sums_take_one_thread_unless_more_are_asked_for(asked):
    code = """
import os, sys
from profsvc.cli import main
sys.argv = ["profsvc", "--help"]
try:
    main()
except SystemExit:
    import numpy
    print(os.environ["OPENBLAS_NUM_THREADS"], len(os.listdir("/proc/self/task")))
"""
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    environment |= {} if asked is None else {"OPENBLAS_NUM_THREADS": asked}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=ROOT, env=environment, check=True)
    wanted, threads = done.stdout.decode().split()[-2:]
    assert wanted == (asked or "1")
    assert asked or threads == "1"


def test_a_defect_is_a_sentence_unless_it_is_looked_for(store_file, monkeypatch):
    from click.testing import CliRunner

    from profsvc import store

    def broken(*_: object, **_options: object) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(store, "open_reader", broken)
    result = CliRunner().invoke(app, ["runs"])
    assert result.exit_code == ServiceError.exit_code
    assert result.stderr.startswith("Error: internal error (nothing was partially stored)")
    assert "ZeroDivisionError: by zero" in result.stderr
    monkeypatch.setenv("PROFSVC_DEBUG", "1")
    assert isinstance(CliRunner().invoke(app, ["runs"]).exception, ZeroDivisionError)


def test_the_demo_prints_its_answers_and_writes_the_report(cli, tmp_path):
    folder = tmp_path / "new" / "demo"
    result = cli("demo", "--keep", folder)
    assert result.code == 0
    for words in ("shared_conflict<32>", "gemm_naive", "34 launches, 17.06 ms", "Most time can be saved in"):
        assert words in result.out
    assert f"Report: {folder / 'report.html'}" in result.err
    assert (folder / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    again = cli("demo", "--keep", folder, "--verbose")
    assert "already stored" in again.err
    assert again.out == result.out
    asked = cli("--store", folder / "demo.sqlite", "runs", "-o", "json")
    assert json.loads(asked.out)["rows"][0]["launches"] == 34


@pytest.mark.parametrize("asked", ["--version", "--help"])
def test_what_cannot_be_written_is_said(asked):
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run([sys.executable, "-m", "profsvc", asked], stdout=full, stderr=subprocess.PIPE, cwd=ROOT)
    assert (done.returncode, b"no space is left" in done.stderr) == (5, True)
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    "words", [["help", "--man", "{file}"], ["--store", "a" * 3000, "runs"], ["db", "backup", "a" * 3000]]
)
def test_a_path_that_cannot_be_used_is_a_message_and_no_traceback(cli, tmp_path, words):
    file = tmp_path / "file"
    file.touch()
    cli("db", "upgrade")
    result = cli(*(word.format(file=file) for word in words))
    assert result.code == 2
    assert re.search(r"cannot be used: File (exists|name too long); give another file or folder$", result.err.strip())
    assert len(result.err) < 600
