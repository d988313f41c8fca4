"""Commands from functions: the annotation of a parameter says what it is on the command line.

``Annotated[int, Option(help="Maximum number of rows.", min=0)] = 0`` is an option, with `Argument` an argument. Its
name is that of the parameter unless it is given, as that of a flag is. It is a ``str``, ``int``, ``float``, ``bool`` or
``Path``, or a list of them if it may be repeated; ``None`` may stand for one that is left out.

Every command has the options ``--store``, ``--quiet`` and ``--verbose`` too, and ``--json`` where rows are printed.
"""

import inspect
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_origin

import click
from click import Context
from click.core import ParameterSource

from profsvc.cli.console import verbosity
from profsvc.errors import UsageError

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

Function = TypeVar("Function", bound=Callable[..., Any])


class Option:
    """An option as a function declares it; ``callback`` checks or changes its value."""

    def __init__(
        self,
        *names: str,
        help: str,  # noqa: A002  # named as it is in click
        metavar: str | None = None,
        min: float | None = None,  # noqa: A002
        max: float | None = None,  # noqa: A002
        callback: Callable[[Any], Any] | None = None,
    ) -> None:
        """Keep what is declared."""
        self.names, self.help, self.metavar, self.callback = names, help, metavar, callback
        self.min, self.max = min, max


class Argument(Option):
    """An argument as a function declares it."""


Store = Annotated[str, Option("--store", help="Store: a path or a database URL (or PROFSVC_STORE).", metavar="STORE")]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Print only data and errors.")]
Verbose = Annotated[bool, Option("--verbose", "-v", help="Print more about what is done.")]
Json = Annotated[bool, Option("--json", help="The same as -o json.")]


# No database and no array holds more.
_MAX_INTEGER = 2**63 - 1


class _Number(click.FloatRange):
    """A number between limits, which not-a-number is not."""

    name = "number"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Read the number."""
        if math.isnan(number := super().convert(value, param, ctx)):
            self.fail(f"{value!r} is not a valid number.", param, ctx)
        return number


class _Argument(click.Argument):
    """An argument with a line of help, which older versions of click do not know."""

    help = ""

    def get_help_record(self, ctx: Context) -> tuple[str, str]:
        """Return its name and meaning."""
        default = self.default if isinstance(self.default, str) else ""
        extra = "  [required]" if self.required else f"  [default: {default}]" if default else ""
        return str(self.metavar), self.help + extra

    def make_metavar(self, ctx: Context | None = None) -> str:
        """Return its name as the usage shows it."""
        name = str(self.metavar) if self.required else f"[{self.metavar}]"
        return name + ("..." if self.nargs != 1 and not name.endswith("..") else "")

    def process_value(self, ctx: Context, value: Any) -> Any:
        """Return the value; if it is missing, the error says what is allowed."""
        try:
            return super().process_value(ctx, value)
        except click.MissingParameter:
            raise click.MissingParameter(self.help, ctx=ctx, param=self) from None


class Command(click.Command):
    """A command made from a function, with the options that every command has."""

    def __init__(self, function: Callable[..., Any], name: str, **settings: Any) -> None:
        """Read the signature and the documentation of the function."""
        text = inspect.getdoc(function) or ""
        short = " ".join(text.partition("\n\n")[0].split()).removesuffix(".")
        shared = {"store_option": Store, "quiet_option": Quiet, "verbose_option": Verbose}
        own = inspect.signature(function).parameters
        shared |= {"json_option": Json} if "output" in own else {}
        params = [_parameter(one.name, one.annotation, one.default) for one in own.values() if not _is_context(one)]
        params += [_parameter(name, kind, "" if kind is Store else False) for name, kind in shared.items()]
        self.contexts = [one.name for one in own.values() if _is_context(one)]
        super().__init__(
            name,
            callback=function,
            params=params,
            help=text.replace("\n\n  ", "\n\n\b\n  "),  # examples keep their lines
            short_help=short,
            **settings,
        )

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Read the words of a call; an unknown option may be a name that begins with a hyphen."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            takes_names = any(isinstance(one, click.Argument) for one in self.params)
            if error.option_name.startswith("--") or error.possibilities or not takes_names:
                raise
            hint = f"A name that begins with - stands behind --, as in: {ctx.command_path} -- NAME"
            raise click.NoSuchOption(error.option_name, f"{error.message} {hint}", ctx=error.ctx) from None

    def invoke(self, ctx: Context) -> Any:
        """Apply the options of every command, and call the function."""
        given = dict(ctx.params)
        if store := given.pop("store_option"):
            ctx.obj["store"] = store
        verbosity.set_verbosity(given.pop("quiet_option"), given.pop("verbose_option"))
        if given.pop("json_option", False):
            is_default = ctx.get_parameter_source("output") is ParameterSource.DEFAULT
            if not is_default and given["output"] != "json":
                raise UsageError(f"--json and -o {given['output']} exclude each other; give one of them")
            given["output"] = "json"
        assert self.callback is not None
        return ctx.invoke(self.callback, **given, **dict.fromkeys(self.contexts, ctx))

    def format_options(self, ctx: Context, formatter: click.HelpFormatter) -> None:
        """Write arguments, the options of this command, and the options of every command."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": [], "Options of every command": []}
        for parameter in self.get_params(ctx):
            if (record := parameter.get_help_record(ctx)) is None:
                continue
            if isinstance(parameter, click.Argument):
                sections["Arguments"].append(record)
            else:
                is_shared = not set(parameter.opts).isdisjoint(SHARED)
                sections["Options of every command" if is_shared else "Options"].append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def format_arguments(self, ctx: Context, formatter: click.HelpFormatter) -> None:
        """Write nothing: arguments stand with the options."""


class Group(click.Group):
    """A group of commands, each made from a function."""

    def __init__(self, name: str | None = None, **settings: Any) -> None:
        """Keep the settings; without arguments the help is printed."""
        super().__init__(name, no_args_is_help=True, **settings)
        self.short_help = (self.help or "").removesuffix(".")

    def list_commands(self, ctx: Context) -> list[str]:
        """Return the names in the order in which the commands were added."""
        return list(self.commands)

    def function(self, name: str = "", **settings: Any) -> Callable[[Function], Function]:
        """Return what adds a function as a command, under its own name unless one is given."""

        def added(function: Function) -> Function:
            own = name or function.__name__.replace("_", "-")
            self.add_command(Command(function, own, **settings))
            return function

        return added

    def add_group(self, group: "Group", name: str, epilog: str | None = None) -> None:
        """Add a group of commands."""
        group.name, group.epilog = name, epilog
        self.add_command(group)


def parameters_of(function: Callable[..., Any]) -> list[click.Parameter]:
    """Return the options that a function declares."""
    own = inspect.signature(function).parameters.values()
    return [_parameter(one.name, one.annotation, one.default) for one in own if not _is_context(one)]


def _is_context(parameter: inspect.Parameter) -> bool:
    return parameter.annotation is Context


def _parameter(name: str, annotation: Any, default: Any) -> click.Parameter:
    """Return the parameter of click that an annotation declares."""
    kind, about = get_args(annotation)
    repeated = next((inner for inner in (kind, *get_args(kind)) if get_origin(inner) is list), None)
    plain = set(_plain_types(kind))
    required = default is inspect.Parameter.empty
    settings: dict[str, Any] = {
        "type": _type(plain, about),
        "required": required,
        "callback": _callback(about, repeated, default),
    }
    if not (required or repeated):
        settings["default"] = default
    if isinstance(about, Argument):
        metavar = about.metavar or METAVARS.get(name, name.removesuffix("s").upper())
        argument = _Argument([name], metavar=metavar, nargs=-1 if repeated else 1, **settings)
        argument.help = about.help
        return argument
    if bool in plain:
        return click.Option([name, *about.names], help=about.help, is_flag=True, show_default=True, **settings)
    by_type = next((shown for one, shown in METAVARS_BY_TYPE.items() if one in plain), "TEXT")
    metavar = about.metavar or METAVARS.get(name, by_type)
    names = about.names or (f"--{name.replace('_', '-')}",)
    shows = not (required or repeated or default in ("", None))
    return click.Option(
        [name, *names], help=about.help, metavar=metavar, multiple=bool(repeated), show_default=shows, **settings
    )


def _plain_types(kind: Any) -> Iterator[Any]:
    inner = get_args(kind)
    for one in inner:
        yield from _plain_types(one)
    if not inner:
        yield kind


def _type(plain: set[Any], about: Option) -> click.ParamType[Any] | None:
    """Return the type of the values."""
    limits = (about.min, about.max)
    if Path in plain:
        return click.Path(path_type=Path)
    if int in plain:
        least, most = (None if one is None else int(one) for one in limits)
        return click.INT if limits == (None, None) else click.IntRange(least, most)
    if float in plain:
        return click.FLOAT if limits == (None, None) else _Number(*limits)
    return None if bool in plain else click.STRING


def _callback(about: Option, repeated: Any, default: Any) -> Callable[[Context, click.Parameter, Any], Any]:
    """Return what gives a function the value that it declares."""

    def value_of(_context: Context, _parameter: click.Parameter, value: Any) -> Any:
        for one in value if repeated else (value,):
            if isinstance(one, int) and not -_MAX_INTEGER <= one <= _MAX_INTEGER:
                raise click.BadParameter(f"{one} is not an integer of 64 bits.", _context, _parameter)
        if repeated:
            value = list(value) or (None if default is None else [])
        return about.callback(value) if about.callback else value

    return value_of
