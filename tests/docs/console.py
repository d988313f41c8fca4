"""Blocks of the pages: found, run in a folder of their own, and compared with what they print.

A block ``console`` has commands after ``$ `` with what they print below; ``sh`` has commands alone. ``...`` inside a
printed line stands for any text, and a line of ``...`` alone for any lines. Commands of profsvc run in this process,
as a process for each would take minutes; everything else runs in bash.
"""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from click.testing import CliRunner

from profsvc.cli.application import app

FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE)
LOOP = re.compile(r"for (?P<name>\w+) in (?P<values>[^;]+); do (?P<command>.*); done")
HEAD = re.compile(r"(?P<command>.*?) \| head -n (?P<lines>\d+)")
CODE = re.compile(r"(?P<command>.*); echo \"exit code \$\?\"")
VARIABLES = re.compile(r"export (?P<name>\w+)=(?P<value>\S*)")
SHELL = re.compile(r"[|<>;&$*`]")
# What differs from one time to the next: times (but not those that the pages give in October 2026), tokens, folders.
CHANGING = re.compile(
    r"(?!2026-10-)\d{4}-\d\d-\d\dT[\d:.]+(?:Z|\+00:00)?|pst_\w+|(?<=in )[\d.]+ m?s\b|/tmp/[\w/.-]+|/dev/shm/[\w/.-]+"
)
ANY = "..."
NAMED = re.compile(r"^# file: (\S+)\n")
MARKED = re.compile(r"<!-- \w+ command -->\s*\Z")
ROOT = Path(__file__).parents[2]
README, FIXTURES = ROOT / "README.md", ROOT / "fixtures"
# The files that the pages name.
FILES = {
    "raw.csv": "demo/ncu_raw.csv.gz",
    "details.csv": "ncu_details/h200_three_launches.csv.gz",
    "smi.csv": "nvidia_smi/units.csv",
    "phases.csv": "marks/h200.csv",
    "meter.csv": "hioki/pw3335.csv",
    "notes.txt": "README.md",
    "ambiguous.csv": "ncu_raw/bad_undecidable_numbers.csv",
    "truncated.csv": "ncu_raw/truncated_row.csv",
}


class Block(NamedTuple):
    """A fenced block of a page."""

    info: str
    body: str
    start: int
    end: int


class Step(NamedTuple):
    """A command of a block, and what stands below it."""

    command: str
    printed: str


def blocks(text: str) -> list[Block]:
    """Return the fenced blocks of a page; the marked ones of the README install the program, which tests do not."""
    return [
        Block(
            m["info"].strip() + " no-run: it installs" * bool(MARKED.search(text[: m.start()])),
            *(m["body"], m.start("body"), m.end("body")),
        )
        for m in FENCE.finditer(text)
    ]


def prepare(folder: Path, text: str) -> None:
    """Put the files that pages name, and those that this page shows, into a folder."""
    for name, source in FILES.items():
        shutil.copy(FIXTURES / source, folder / name)
    for block in blocks(text):
        if found := NAMED.match(block.body):
            (folder / found[1]).write_text(block.body[found.end() :], encoding="utf-8")


def steps(block: Block) -> Iterator[Step]:
    """Yield the commands of a block; a backslash at the end of a line continues it."""
    if block.info != "console":
        for line in block.body.replace("\\\n", "").splitlines():
            if line.strip() and not line.startswith("#"):
                yield Step(line, "")
        return
    for part in re.split(r"^\$ ", block.body, flags=re.MULTILINE)[1:]:
        command, _, printed = part.partition("\n")
        yield Step(command, printed)


class Shell:
    """Runs the commands of a page in a folder, one after the other."""

    def __init__(self, folder: Path, replaced: Mapping[str, str] | None = None) -> None:
        self.folder, self.replaced = folder, replaced or {}
        self.environment = {"PROFSVC_STORE": str(folder / ".store" / "profsvc.sqlite"), "COLUMNS": "160", "TZ": "UTC"}
        (folder / ".store").mkdir()

    def run(self, command: str) -> str:
        """Run a line and return what it prints; a failure that the page does not show is an error."""
        for shown, real in self.replaced.items():
            command = command.replace(shown, real)
        if loop := LOOP.fullmatch(command):
            name = re.escape(loop["name"])
            each = [re.sub(rf"\$(?:{name}\b|{{{name}}})", value, loop["command"]) for value in loop["values"].split()]
            return "".join(self.run(one) for one in each)
        if variable := VARIABLES.fullmatch(command):
            self.environment[variable["name"]] = variable["value"]
            return ""
        if coded := CODE.fullmatch(command):
            code, printed = self._call(coded["command"])
            return f"{printed}exit code {code}\n"
        if cut := HEAD.fullmatch(command):
            code, printed = self._call(cut["command"])
            printed = "".join(printed.splitlines(keepends=True)[: int(cut["lines"])])
        else:
            code, printed = self._call(command)
        assert code == 0, f"{command}\n{printed}"
        return printed

    def _call(self, command: str) -> tuple[int, str]:
        before = Path.cwd()
        if not command.startswith("profsvc ") or SHELL.search(re.sub(r'"[^"$`]*"', "", command)):
            done = subprocess.run(
                ["bash", "-c", command], cwd=self.folder, env=os.environ | self.environment, text=True, check=False,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
            )  # fmt: skip
            return done.returncode, done.stdout
        os.chdir(self.folder)
        try:
            words = shlex.split(command, comments=True)[1:]
            with mock.patch("profsvc.cli.results.show.program_in_shell", return_value="profsvc"):
                result = CliRunner().invoke(app, words, env=self.environment, prog_name="profsvc")
        finally:
            os.chdir(before)
        assert "Traceback" not in result.output, result.output
        return result.exit_code, result.output


def plain(printed: str) -> str:
    """Return what a command prints as a page shows it: no spaces at ends of lines, ``...`` for what changes."""
    text = "\n".join(line.rstrip() for line in CHANGING.sub(ANY, printed).splitlines())
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n") + "\n" if text.strip() else ""


def agrees(shown: str, printed: str) -> bool:
    """Tell whether a page shows what a command prints.

    >>> agrees("a ... c\\n", "a b c\\n"), agrees("...\\nz\\n", "x\\ny\\nz\\n"), agrees("a\\n", "b\\n")
    (True, True, False)
    """
    lines = [
        r"(?:.*\n)*" if line == ANY else re.escape(line).replace(re.escape(ANY), ".*") + r"\n"
        for line in shown.rstrip("\n").splitlines()
    ]
    text = plain(printed)
    return re.fullmatch("".join(lines), text) is not None or shown.rstrip() == text.rstrip()


def run_page(text: str, shell: Shell) -> tuple[str, list[str]]:
    """Run the blocks of a page in order; return it with what they print now, and where that differs."""
    wrong, pieces, place = [], [], 0
    for block in blocks(text):
        if block.info not in {"console", "sh"}:
            continue
        written = []
        for step in steps(block):
            printed = shell.run(step.command)
            if block.info == "console" and not agrees(step.printed, printed):
                wrong.append(f"$ {step.command}\nthe page shows:\n{step.printed}\nprinted now:\n{plain(printed)}")
                step = Step(step.command, plain(printed))
            written.append(f"$ {step.command}\n{step.printed}")
        pieces += [text[place : block.start], "".join(written) if block.info == "console" else block.body]
        place = block.end
    return "".join([*pieces, text[place:]]), wrong


def with_example(readme: str, shell: Shell) -> str:
    """Return the README with the first lines of ``profsvc show today`` in its first block."""
    shown = plain(shell.run("profsvc show today")).splitlines()
    first = blocks(readme)[0]
    assert first.info == "text"
    rows = "\n".join(shown[:14])
    return f"{readme[: first.start]}$ profsvc show today\n{rows}\n{readme[first.end :]}"
