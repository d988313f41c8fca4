"""The command line; one file a group of commands. stdout is data, stderr is words.

Exit codes: 0 ok, 1 a regression or failed criterion (only with --fail-on), 2 usage, 3 not found, 4 auth,
5 server or network, 6 input refused, 7 partly stored.
"""

import inspect
import io
import os
import sys
from typing import Any

import typer
from typer.core import TyperGroup

from profsvc.cli import (
    compare,
    components,
    db,
    delete,
    demo,
    doctor,
    findings,
    history,
    look,
    plot,
    power,
    query,
    remote,
    report,
    schedule,
    serve,
    token,
    upload,
    watch,
    what_if,
)
from profsvc.cli.common import say
from profsvc.errors import OF_DISKS, ProfsvcError, disk_error


class Commands(TyperGroup):
    """Turns every error into one sentence on stderr and the exit code of its kind."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; no traceback reaches a user unless PROFSVC_DEBUG is set."""
        try:
            done = super().invoke(ctx)
            sys.stdout.flush()  # else a full disk would be noticed when nobody can say so any more
            return done
        except ProfsvcError as error:
            say(f"Error: {error}")
            raise typer.Exit(error.exit_code) from None
        except BrokenPipeError:
            sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115  # open to the end of the process
            raise typer.Exit(0) from None
        except OSError as error:
            if error.errno not in OF_DISKS or os.environ.get("PROFSVC_DEBUG"):
                raise
            sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115  # as above
            said = disk_error(error, str(error.filename or "the output"))
            say(f"Error: {said}")
            raise typer.Exit(said.exit_code) from None
        except Exception as error:
            if isinstance(error, (typer.Exit, typer.Abort)) or os.environ.get("PROFSVC_DEBUG"):
                raise
            if type(error).__module__.startswith(("typer", "click")):
                raise
            say(
                f"Error: this is a defect of profsvc, nothing was stored half: {type(error).__name__}: {error}\n"
                "Run it again with PROFSVC_DEBUG=1 and report the traceback."
            )
            raise typer.Exit(5) from None


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Upload what your GPU profiler prints; get the bottleneck, the potential speedup and what to do first.",
    epilog="Start with: profsvc demo",
)


def _tell_version(wanted: bool) -> None:
    if wanted:
        from profsvc import settings

        typer.echo(f"profsvc {settings.version()}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    store: str = typer.Option("", "--store", help="Store to use: a path or a database URL (or PROFSVC_STORE)."),
    version: bool = typer.Option(
        False, "--version", help="Show the version and exit.", callback=_tell_version, is_eager=True
    ),
) -> None:
    """Keep the options that hold for every command."""
    context.obj = {"store": store}


GROUPS = (
    *(demo, upload, watch, look, compare, history, what_if, plot, report, findings, power, components, query),
    *(serve, schedule, token, remote, delete, db, doctor),
)
for group in GROUPS:
    group.register(app)


def _tell(known: typer.Typer) -> None:
    """Have examples stand as they are written, to be copied, and what a command does be said whole in lists."""
    for command in known.registered_commands:
        text = inspect.getdoc(command.callback) or ""
        command.help = text.replace("\n\n  ", "\n\n\b\n  ")
        command.short_help = " ".join(text.partition("\n\n")[0].split()).removesuffix(".")
    for one in known.registered_groups:
        assert one.typer_instance is not None
        one.typer_instance.info.short_help = str(one.typer_instance.info.help).removesuffix(".")
        _tell(one.typer_instance)


_tell(app)


def main() -> None:
    """Run the command line; what it prints is UTF-8 whatever the terminal's or the pipe's default is."""
    # The matrices of a log are many and small: with a thread a core they take more processor, and no less time.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    app(prog_name="profsvc")
