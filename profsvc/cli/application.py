"""The application: commands in panels of the help, options that all commands share, and how errors end a command."""

import io
import os
import sys
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from profsvc.cli import (
    characterize,
    compare,
    demo,
    documentation,
    findings,
    graph,
    history,
    models,
    plot,
    query,
    settings_command,
    show,
    upload,
)
from profsvc.cli.console.common import print_message
from profsvc.cli.console.options import Quiet, Store, Verbose, add_shared_options, set_verbosity
from profsvc.cli.launch import antipatterns, versions, what_if
from profsvc.cli.maintenance import db, delete, doctor
from profsvc.cli.power import clock_sweep, components, cores, thermal
from profsvc.cli.power import windows as power
from profsvc.cli.report import commands as report
from profsvc.cli.service import remote, schedule, serve, token, watch
from profsvc.errors import DISK_ERROR_CODES, ProfsvcError, disk_error

PANELS = {
    "Load data": ("demo", "upload", "watch", "sync", "analyze", "reparse", "characterize"),
    "Look at results": (
        *("runs", "show", "compare", "history", "power", "components", "thermal", "cores"),
        *("whatif", "antipatterns", "versions", "graph", "plot", "explain", "sql", "devices"),
    ),
    "Models": models.TOP_LEVEL,
    "Nightly reports": ("report", "findings", "schedule", "scheduler", "channels"),
    "Service": ("serve", "token"),
    "Store": ("db", "doctor", "delete", "undelete"),
    "Help": ("help", "formats", "settings"),
}
MODULES = (
    *(demo, upload, watch, show, compare, history, plot, models, report, findings, query),
    *(what_if, antipatterns, versions, graph, power, components, thermal, cores, clock_sweep),
    *(characterize, serve, schedule, token, remote, delete, db, doctor, documentation, settings_command),
)


class Commands(TyperGroup):
    """The commands of profsvc. Every error ends as one message on stderr and the exit code of its kind."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; no traceback reaches a user unless PROFSVC_DEBUG is set."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()  # a full disk is noticed here, while it can still be reported
            return result
        except ProfsvcError as error:
            print_message(f"Error: {error}", kind="error")
            raise typer.Exit(error.exit_code) from None
        except BrokenPipeError:
            _discard_output()
            raise typer.Exit(0) from None
        except OSError as error:
            if error.errno not in DISK_ERROR_CODES or os.environ.get("PROFSVC_DEBUG"):
                raise
            _discard_output()
            reported = disk_error(error, str(error.filename or "the output"))
            print_message(f"Error: {reported}", kind="error")
            raise typer.Exit(reported.exit_code) from None
        except Exception as error:
            if isinstance(error, (typer.Exit, typer.Abort)) or os.environ.get("PROFSVC_DEBUG"):
                raise
            if type(error).__module__.startswith(("typer", "click")):
                raise
            print_message(
                f"Error: internal error (nothing was partially stored): {type(error).__name__}: {error}\n"
                "Run it again with PROFSVC_DEBUG=1 and report the traceback.",
                kind="error",
            )
            raise typer.Exit(5) from None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands in their panels."""
        for panel, names in PANELS.items():
            known = [(name, command) for name in names if (command := self.get_command(ctx, name)) is not None]
            limit = formatter.width - 6 - max(len(name) for name, _ in known)
            with formatter.section(panel):
                formatter.write_dl([(name, command.get_short_help_str(limit)) for name, command in known])


def _discard_output() -> None:
    """Discard what is still to be written to a standard output that is closed or full."""
    sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  # open to the end of the process


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Load what GPU profilers export; see what limits each kernel, how much faster it could be, and what to do.",
    epilog="Start with: profsvc demo. Exit codes: profsvc help reference/exit-codes.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from profsvc import settings

        typer.echo(f"profsvc {settings.version()}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    store: Store = "",
    quiet: Quiet = False,
    verbose: Verbose = False,
    version: bool = typer.Option(
        False, "--version", help="Show the version and exit.", callback=_print_version, is_eager=True
    ),
) -> None:
    """Keep the options that are valid for every command."""
    context.obj = {"store": store}
    set_verbosity(quiet, verbose, reset=True)


for module in MODULES:
    module.register(app)
add_shared_options(app, PANELS)


def main() -> None:
    """Run the command line; what it prints is UTF-8 whatever the terminal's or the pipe's default is."""
    # The matrices of a log are many and small: one thread per core costs more processor time and saves none.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    app(prog_name="profsvc")
