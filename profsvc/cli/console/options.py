"""Options that every command has: ``--store``, ``--quiet``, ``--verbose``, and ``--json`` where rows are printed.

They are added to the signature of each command, so typer parses them after the name of the command too.
"""

import functools
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from typer.core import TyperCommand

from profsvc.cli.console import common
from profsvc.errors import UsageError

Store = Annotated[
    str, typer.Option("--store", help="Store: a path or a database URL (or PROFSVC_STORE).", metavar="STORE")
]
Json = Annotated[bool, typer.Option("--json", help="The same as -o json.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only data and errors.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Print more about what is done.")]
METAVARS = {
    "kernel": "NAME", "project": "NAME", "device": "NAME", "channel": "NAME", "sensor": "NAME", "name": "NAME",
    "temperature_sensor": "NAME", "quantity": "NAME", "source": "NAME", "state": "STATE", "run": "RUN", "minus": "RUN",
    "idle": "RUN", "calibration": "RUN", "rotated": "RUN",
    "runs": "RUN", "paths": "FILE", "commit": "COMMIT", "timezone": "ZONE", "zone": "ZONE",
    "tag": "KEY=VALUE", "keep_tagged": "KEY[=VALUE]", "param": "KEY=VALUE", "setting": "KEY=VALUE", "mapped": "OLD=NEW",
    "at": "TIME", "date": "DATE", "form": "FORMAT", "column": "NAME=QUANTITY:UNIT", "position": "NAME=X,Y",
    "fail_on": "LIMIT", "example": "NAME", "formula": "KIND", "host": "ADDRESS", "root_path": "PREFIX",
    "allowed_host": "HOST", "trusted_proxy": "ADDRESS", "older_than": "AGE", "because": "REASON", "cron": "CRON",
    "scope": "SCOPE", "port": "PORT", "days": "DAYS", "seconds": "SECONDS", "every": "SECONDS", "offset": "SECONDS",
    "clock_offset": "SECONDS", "rc_s": "SECONDS", "angle": "DEGREES", "host_power": "WATTS", "keep": "FOLDER",
    "reference_temperature": "CELSIUS", "man": "FOLDER", "out": "FILE",
}  # fmt: skip
METAVARS_BY_TYPE = {Path: "FILE", int: "N", float: "NUMBER"}


SHARED = ("--store", "--quiet", "--verbose", "--json", "--help")


class Command(TyperCommand):
    """A command whose help names arguments by their meaning and lists shared options last."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the arguments without the braces that typer puts around required ones."""
        return [piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, the options of this command, and the options of every command."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": [], "Options of every command": []}
        for parameter in self.get_params(ctx):
            if (record := parameter.get_help_record(ctx)) is None:
                continue
            if parameter.param_type_name == "argument":
                sections["Arguments"].append((re.sub(r" <.*>$", "", record[0]), record[1]))
            else:
                is_shared = not set(parameter.opts).isdisjoint(SHARED)
                sections["Options of every command" if is_shared else "Options"].append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def set_verbosity(quiet: bool, verbose: bool, *, reset: bool = False) -> None:
    """Set how much is printed to stderr; without ``reset``, options that are not given change nothing."""
    if quiet and verbose:
        raise UsageError("--quiet and --verbose exclude each other; give one of them")
    if reset or quiet or verbose:
        common.verbosity = common.QUIET if quiet else common.VERBOSE if verbose else common.NORMAL


def add_shared_options(app: typer.Typer) -> None:
    """Give every command the shared options, and its help as it is written."""
    for command in app.registered_commands:
        assert command.callback is not None
        text = inspect.getdoc(command.callback) or ""
        command.help = text.replace("\n\n  ", "\n\n\b\n  ")
        command.short_help = " ".join(text.partition("\n\n")[0].split()).removesuffix(".")
        command.cls = Command
        command.callback = _with_shared_options(command.callback)
    for group in app.registered_groups:
        assert group.typer_instance is not None
        group.typer_instance.info.short_help = str(group.typer_instance.info.help).removesuffix(".")
        add_shared_options(group.typer_instance)


def _with_shared_options(command: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(command)
    own = list(signature.parameters.values())
    for parameter in own:
        _set_metavar(parameter)
    contexts = [one.name for one in own if one.annotation is typer.Context]
    added: dict[str, Any] = {} if contexts else {"context": typer.Context}
    added |= {"store_option": Store, "quiet_option": Quiet, "verbose_option": Verbose}
    has_output = "output" in signature.parameters
    added |= {"json_option": Json} if has_output else {}
    defaults = {"context": inspect.Parameter.empty, "store_option": ""}
    more = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=defaults.get(name, False), annotation=kind)
        for name, kind in added.items()
    ]

    @functools.wraps(command)
    def run(**given: Any) -> Any:
        context = given[contexts[0]] if contexts else given.pop("context")
        if store := given.pop("store_option"):
            context.obj["store"] = store
        set_verbosity(given.pop("quiet_option"), given.pop("verbose_option"))
        if has_output and given.pop("json_option"):
            is_default = context.get_parameter_source("output").name == "DEFAULT"
            if not is_default and given["output"] != "json":
                raise UsageError(f"--json and -o {given['output']} exclude each other; give one of them")
            given["output"] = "json"
        return command(**given)

    run.__signature__ = signature.replace(parameters=[*own, *more])  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in (*own, *more)}
    return run


def _set_metavar(parameter: inspect.Parameter) -> None:
    """Name what an option takes by its meaning, not by its type in Python."""
    kind, *rest = get_args(parameter.annotation) or (parameter.annotation,)
    kinds = {kind, *get_args(kind), *(inner for one in get_args(kind) for inner in get_args(one))}
    for info in (*rest, parameter.default):
        if getattr(info, "metavar", "") is not None or bool in kinds:
            continue
        by_type = next((name for one, name in METAVARS_BY_TYPE.items() if one in kinds), "TEXT")
        if type(info).__name__ == "ArgumentInfo":
            by_type = parameter.name.removesuffix("s").upper()
        info.metavar = METAVARS.get(parameter.name, by_type)
