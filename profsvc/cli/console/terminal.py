"""The terminal: its width, whether it shows colours, and how a shell there calls this program."""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO

from click import Group, echo, get_current_context, style

from profsvc.errors import without_password

DEFAULT_WIDTH = 160
WITHOUT_STORE = {"demo", "formats", "help", "settings"}
STYLES: dict[str, dict[str, Any]] = {
    "title": {"bold": True},
    "heading": {"bold": True},
    "row": {"fg": "green"},
    "command": {"fg": "cyan"},
    "error": {"fg": "red"},
    "warning": {"fg": "yellow"},
}


def _has_width() -> bool:
    """Tell whether stdout is a terminal, or its width is set by COLUMNS."""
    return sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdecimal()


def table_width() -> int:
    """Return how many columns a table may take: those of the terminal or of COLUMNS, else a fixed number."""
    if _has_width():
        return shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns
    return DEFAULT_WIDTH


def has_color(stream: TextIO) -> bool:
    """Tell whether to print colours: NO_COLOR forbids them, FORCE_COLOR demands them, else a terminal gets them."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (stream.isatty() and os.environ.get("TERM") != "dumb")


def colored(text: str, kind: str, stream: TextIO) -> str:
    """Return a text in the colour of its kind where the stream shows colours."""
    return style(text, **STYLES[kind]) if kind in STYLES and has_color(stream) else text


def print_lines(lines: Iterable[tuple[str, str]]) -> None:
    """Print lines of (kind, text) to stdout, each kind in its colour."""
    echo("\n".join(colored(text, kind, sys.stdout) for kind, text in lines), color=has_color(sys.stdout))


def with_store(text: str) -> str:
    """Return a text whose commands to copy have the ``--store`` that was given to this one."""
    context = get_current_context(silent=True)
    root = context.find_root() if context else None
    if not (root and root.obj and root.obj["store"] and isinstance(root.command, Group)):
        return text
    commands = "|".join(sorted({*root.command.list_commands(root)} - WITHOUT_STORE))
    program = shlex.join(["profsvc", "--store", without_password(root.obj["store"])])
    return re.sub(rf"\bprofsvc(?= (?:{commands})\b)", lambda _: program, text)


def wrapped(page: str) -> str:
    """Return a page whose long sentences continue on further lines of a terminal, indented a little more.

    A command to copy, which follows a colon, stays on one line.
    """
    from profsvc.reports.text import cells

    page = with_store(page)
    if not _has_width():
        return page
    width = table_width()
    return "\n".join(
        line if len(line) <= width else "\n".join(cells.wrapped(line, width, _indent(line) + "   "))
        for line in page.split("\n")
    )


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def program_in_shell(store: str) -> str:
    """Return the words that call this program in the user's shell, with ``--store`` where one was given.

    A password is not repeated: what is printed may go to a log.
    """
    called = Path(sys.argv[0])
    if called.name == "profsvc":
        on_path = shutil.which("profsvc")
        is_first = on_path is not None and Path(on_path).resolve() == called.resolve()
        words = ["profsvc"] if is_first else [str(called.resolve())]
    else:
        words = ["python" if shutil.which("python") == sys.executable else sys.executable, "-m", "profsvc"]
    return shlex.join([*words, *(["--store", without_password(store)] if store else [])])
