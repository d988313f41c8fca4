"""The application: commands in panels of the help, options that all commands share, and how errors end a command.

A command's module is imported when that command runs, so that a question does not wait for what it does not use.
"""

import functools
import importlib
import os
import sys
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from click import Context, HelpFormatter, echo
from click.exceptions import Abort, Exit

from profsvc.cli.console.common import print_message
from profsvc.cli.console.declaration import Group, Quiet, Store, Verbose, parameters_of
from profsvc.cli.console.exit_codes import INTERRUPTED
from profsvc.cli.console.verbosity import set_verbosity
from profsvc.errors import DISK_ERROR_CODES, NotFoundError, ProfsvcError, ServiceError, UsageError, disk_error

MAX_NAME_CHARS = 200
MODELS = (
    "models",
    "work-depth",
    "balance",
    "cache-growth",
    "near-field",
    "work-flow",
    "cache-sizes",
    "energy",
    "fit",
    "instruction-power",
    "sm-count",
    "temperature",
    "leakage",
    "reference-power",
    "placement",
    "one-block",
    "tpc-effect",
    "next-optimization",
    "idle-gaps",
    "kernel",
    "pattern",
    "occupancy-limits",
    "tiles",
    "instruction-mix",
    "elements",
    "latency-hiding",
    "simt-usage",
    "load-balance",
    "speedup-chain",
    "amdahl-parts",
    "application-speedup",
)
PANELS = {  # the commands of each panel of the help, and the module of each
    "Load data": {
        "demo": "load.demo", "upload": "load.upload", "ingest": "load.ingest", "record": "load.record",
        "watch": "service.watch",
        "sync": "service.remote", "analyze": "load.upload", "reparse": "maintenance.delete",
        "characterize": "load.characterize",
    },
    "Look at results": {
        "runs": "results.show", "show": "results.show", "compare": "results.compare", "history": "results.history",
        "power": "power.windows",
        "components": "power.components", "thermal": "power.thermal", "cores": "power.cores",
        "whatif": "launch.what_if", "antipatterns": "launch.antipatterns", "versions": "launch.versions",
        "graph": "results.graph", "plot": "results.plot", "explain": "results.explain", "sql": "results.query",
        "export": "results.export",
        "devices": "results.devices",
    },
    "Models": dict.fromkeys(MODELS, "models"),
    "Nightly reports": {
        "report": "report.commands", "findings": "report.findings", "renames": "report.renames",
        "bisect": "report.bisect",
        "schedule": "service.schedule", "scheduler": "service.schedule", "channels": "service.schedule",
    },
    "Service": {"serve": "service.serve", "mcp": "service.mcp", "token": "service.token"},
    "Store": {
        "db": "maintenance.db", "doctor": "maintenance.doctor", "delete": "maintenance.delete",
        "undelete": "maintenance.delete",
    },
    "Help": {"help": "documentation", "formats": "results.explain", "settings": "settings_command"},
}  # fmt: skip
# What people try first, and the command for it.
TRIED = {
    "import": "upload FILE", "add": "upload FILE", "load": "upload FILE", "store": "upload FILE",
    "ls": "runs", "list": "runs", "run": "show RUN", "view": "show RUN", "info": "show RUN", "analyse": "analyze",
    "kernels": "show RUN --all", "launches": "show RUN --all",
    "diff": "compare BEFORE AFTER", "query": "sql QUERY", "nightly": "report nightly", "why": "explain NAME",
    "rm": "delete RUN", "remove": "delete RUN", "server": "serve", "web": "serve", "ui": "serve",
    "status": "doctor", "docs": "help", "doc": "help", "man": "help", "version": "--version",
}  # fmt: skip
MODULES = {name: module for commands in PANELS.values() for name, module in commands.items()}


@contextmanager
def _reported_errors() -> Iterator[None]:
    """End a command that fails with one message and the exit code of its kind; PROFSVC_DEBUG=1 keeps the traceback."""
    try:
        yield
        sys.stdout.flush()  # a full disk is noticed here, while it can still be reported
    except ProfsvcError as error:
        print_message(f"Error: {error}", kind="error")
        raise Exit(error.exit_code) from None
    except BrokenPipeError:
        _discard_output()
        raise Exit(0) from None
    except (KeyboardInterrupt, Abort):  # click's own code for it is 1, that of a regression
        print_message("interrupted; a file is stored whole or not at all", kind="error")
        raise Exit(INTERRUPTED) from None
    except Exception as error:
        if isinstance(error, Exit) or os.environ.get("PROFSVC_DEBUG") or type(error).__module__.startswith("click"):
            raise
        if isinstance(error, OSError) and error.errno in DISK_ERROR_CODES:
            _discard_output()
        reported = _explained(error)
        print_message(f"Error: {reported}", kind="error")
        raise Exit(reported.exit_code) from None


def _explained(error: Exception) -> ProfsvcError:
    """Return what to say of an error that no command expects: of the disk, of a path that was given, or a defect."""
    if isinstance(error, OSError) and (error.filename or error.errno in DISK_ERROR_CODES):
        name = str(error.filename or "the output")
        name = name if len(name) <= MAX_NAME_CHARS else f"{name[:MAX_NAME_CHARS]}..."
        if error.errno in DISK_ERROR_CODES:
            return disk_error(error, name)
        return UsageError(f"{name} cannot be used: {error.strerror or error}; give another file or folder")
    return ServiceError(
        f"internal error (nothing was partially stored): {type(error).__name__}: {error}\n"
        "Run it again with PROFSVC_DEBUG=1 and report the traceback."
    )


@functools.cache
def _commands_of(module: str) -> dict[str, Any]:
    """Return the commands of a module of this package by name."""
    part = Group()
    importlib.import_module(f"profsvc.cli.{module}").register(part)
    return dict(part.commands)


def _unknown_command(word: str) -> str:
    """Return what to say of a word that is no command.

    >>> _unknown_command("ls")
    "no command named 'ls'; did you mean 'profsvc runs'?"
    >>> _unknown_command("serv")
    "no command named 'serv'; did you mean 'serve'?"
    """
    if word in TRIED:
        return f"no command named {word!r}; did you mean 'profsvc {TRIED[word]}'?"
    if Path(word).suffix or "/" in word:
        return f"no command named {word!r}; to upload a file: profsvc upload FILE"
    return str(NotFoundError.near("command", word, MODULES))


class Commands(Group):
    """The commands of profsvc, each imported when it is first asked for."""

    @property
    def commands(self) -> MutableMapping[str, Any]:
        """Return every command by name; this imports them all."""
        return {name: _commands_of(module)[name] for name, module in MODULES.items()}

    @commands.setter
    def commands(self, _: MutableMapping[str, Any]) -> None:
        """Ignore what click sets: no command is registered at the start."""

    def list_commands(self, ctx: Context) -> list[str]:
        """Return the names of the commands in the order of the help."""
        return list(MODULES)

    def get_command(self, ctx: Context, cmd_name: str) -> Any:
        """Return a command, None where there is none of this name."""
        return _commands_of(MODULES[cmd_name])[cmd_name] if cmd_name in MODULES else None

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the command that the first word calls; refuse another word with what may be meant."""
        word = args[0]
        if word not in MODULES and not word.startswith("-") and not ctx.resilient_parsing:
            raise click.UsageError(_unknown_command(word), ctx)
        return super().resolve_command(ctx, args)

    def make_context(self, *args: Any, **given: Any) -> Context:
        """Read the arguments; ``--help`` and ``--version`` print here."""
        with _reported_errors():
            return super().make_context(*args, **given)

    def invoke(self, ctx: Context) -> Any:
        """Run the command; no traceback reaches a user unless PROFSVC_DEBUG is set."""
        with _reported_errors():
            return super().invoke(ctx)

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the commands in their panels."""
        for panel, names in PANELS.items():
            known = [(name, command) for name in names if (command := self.get_command(ctx, name)) is not None]
            limit = formatter.width - 6 - max(len(name) for name, _ in known)
            with formatter.section(panel):
                formatter.write_dl([(name, command.get_short_help_str(limit)) for name, command in known])


def _discard_output() -> None:
    """Discard what is still to be written to a standard output that is closed or full."""
    sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  # open to the end of the process


def _print_version() -> None:
    from profsvc import settings

    echo(f"profsvc {settings.version()}")


def _install_completion() -> None:
    from profsvc.cli.console import completion

    print_message(completion.install(app))


def _show_completion() -> None:
    from profsvc.cli.console import completion

    echo(completion.script(app, completion.current_shell()))


def _flag(name: str, about: str, act: Callable[[], None]) -> click.Option:
    """Return an option that acts instead of a command."""

    def acted(context: Context, _parameter: click.Parameter, wanted: bool) -> None:
        if wanted and not context.resilient_parsing:
            act()
            context.exit()

    return click.Option([name], is_flag=True, is_eager=True, expose_value=False, help=about, callback=acted)


@click.pass_context
def _shared_options(context: Context, store: Store = "", quiet: Quiet = False, verbose: Verbose = False) -> None:
    """Keep the options that are valid for every command."""
    context.obj = {"store": store}
    set_verbosity(quiet, verbose, reset=True)


app = Commands(
    "profsvc",
    callback=_shared_options,
    params=[
        *parameters_of(_shared_options),
        _flag("--version", "Show the version and exit.", _print_version),
        _flag("--install-completion", "Install completion for the current shell.", _install_completion),
        _flag(
            "--show-completion",
            "Show completion for the current shell, to copy it or customize the installation.",
            _show_completion,
        ),
    ],
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Load what GPU profilers export; see what limits each kernel, how much faster it could be, and what to do.",
    epilog="Start with: profsvc demo. Exit codes: profsvc help reference/exit-codes.",
)
