"""``help``: the documentation in the terminal, and manual pages."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from click import Context, echo

from profsvc.cli.console.common import OutputOption, print_message, print_rows
from profsvc.cli.console.declaration import Argument, Group, Option
from profsvc.errors import NotFoundError, UsageError


def show_help(
    context: Context,
    topic: Annotated[str, Argument(help="Page to show, such as settings; without it, list the pages.")] = "",
    man: Annotated[Path | None, Option(help="Write manual pages of all commands into this folder.")] = None,
    output: OutputOption = "",
) -> None:
    """List the pages of the documentation, or show one.

    A page is shown in a pager on a terminal, and printed as Markdown otherwise. Of a command, its help is shown.

    Examples:

      profsvc help

      profsvc help settings

      profsvc help --man man1
    """
    if man is not None:
        if topic:
            raise UsageError(f"--man writes the pages of all commands; leave {topic!r} out")
        print_message(f"{_write_man_pages(context, man)} manual pages written to {man}")
    elif topic:
        text = _page_or_command(context, topic)
        if sys.stdout.isatty():
            import click

            click.echo_via_pager(text)
        else:
            echo(text, nl=False)
    else:
        from profsvc import docs

        rows = [{"topic": one.name, "title": one.title} for one in docs.topics().values()]
        print_rows(["topic", "title"], rows, output or "table")


def _page_or_command(context: Context, topic: str) -> str:
    """Return a page of the documentation, or the help of the command with that name."""
    from profsvc import docs

    root = context.find_root()
    application: Any = root.command
    command = application.get_command(root, topic)
    try:
        return docs.topic(topic).text
    except NotFoundError:
        if command is None:
            raise
        return f"{command.get_help(type(root)(command, info_name=topic, parent=root))}\n"


def _write_man_pages(context: Context, folder: Path) -> int:
    """Write one manual page per command, as ``profsvc-upload.1``; return how many."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = dict(_man_pages(context.find_root().command, context.find_root(), ("profsvc",)))
    for name, text in pages.items():
        (folder / f"{name}.1").write_text(text, encoding="utf-8")
    return len(pages)


def _man_pages(command: Any, context: Any, words: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of the manual page of a command and of each command below it."""
    from profsvc import settings

    name = "-".join(words)
    text = (command.help or "").replace("\b\n", "")
    first, _, rest = text.partition("\n\n")
    first = " ".join(first.split()).removesuffix(".")
    lines = [
        f'.TH "{name.upper()}" 1 "" "profsvc {settings.version()}"',
        *(".SH NAME", f"{_roff(name)} \\- {_roff(first)}"),
        *(".SH SYNOPSIS", ".B " + _roff(" ".join(words)), _roff(" ".join(command.collect_usage_pieces(context)))),
    ]
    for title, part in (("DESCRIPTION", rest), ("NOTES", command.epilog or "")):
        if part:
            lines += [f".SH {title}", *_paragraphs(part)]
    if records := [record for param in command.params if (record := param.get_help_record(context))]:
        lines.append(".SH OPTIONS")
        for option, meaning in records:
            lines += [".TP", f".B {_roff(option)}", _roff(meaning)]
    below = getattr(command, "commands", {})
    if below:
        lines.append(".SH COMMANDS")
    for own, one in below.items():
        short = " ".join((one.help or "").partition("\n\n")[0].split())
        lines += [".TP", f".B {_roff(f'{name}-{own}')}(1)", _roff(short)]
    yield name, "\n".join(lines) + "\n"
    for own, one in below.items():
        yield from _man_pages(one, type(context)(one, info_name=own, parent=context), (*words, own))


def _paragraphs(text: str) -> Iterator[str]:
    """Yield the lines of roff for paragraphs; indented ones are examples and keep their lines."""
    for paragraph in text.split("\n\n"):
        lines = [_roff(line.strip()) for line in paragraph.splitlines() if line.strip()]
        if paragraph.startswith("  "):
            yield from (".PP", ".nf", ".RS", *lines, ".RE", ".fi")
        else:
            yield from (".PP", *lines)


def _roff(text: str) -> str:
    """Escape what roff would take for a command.

    >>> _roff("--all, .gz"), _roff(".gz")
    ('\\\\-\\\\-all, .gz', '\\\\&.gz')
    """
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text.startswith((".", "'")) else text


def register(app: Group) -> None:
    """Add the command of this file."""
    app.function("help")(show_help)
