"""The commands of the calculators, each made from its declaration, and ``models``."""

import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

from click import Context

from profsvc.cli.console.common import (
    OutputOption,
    open_reader,
    open_service,
    picture_format,
    print_message,
    print_view,
    write_picture,
)
from profsvc.cli.console.declaration import Argument, Group, Option
from profsvc.cli.power import clock_sweep
from profsvc.errors import InputError, UsageError
from profsvc.views.calculators.catalog import CALCULATORS, GROUPS
from profsvc.views.calculators.declaration import FILES, SUFFIXES, Calculator, Input, example_command, option_of

MAX_FILE_BYTES = 900_000
"""The names of commands and groups, for the panels of the help."""


def _options(one: Input) -> tuple[Any, Any]:
    """Return the annotation of an input and its default."""
    if one.kind in FILES:
        about = Argument(help=_help(one), metavar="FILE")
        return Annotated[str | None, about], None
    return Annotated[str | None, Option(option_of(one), help=_help(one), metavar=_metavar(one))], None


def _metavar(one: Input) -> str:
    if one.kind == "choice":
        return "|".join(one.choices) if len("|".join(one.choices)) <= 24 else "NAME"
    return {"integer": "N", "numbers": "A,B,..", "text": "NAME"}.get(one.kind, "NUMBER")


def _help(one: Input) -> str:
    unit = f" in {one.unit}" if one.unit else ""
    columns = f" (columns {', '.join(column.name for column in one.columns)})" if one.columns else ""
    end = "Required." if one.default is None else f"Default: {one.default}." if one.default else ""
    choices = f": {', '.join(one.choices)}" if one.kind == "choice" and _metavar(one) == "NAME" else ""
    file = f" as {SUFFIXES[one.kind].upper()}; - is stdin" if one.kind in FILES else ""
    return f"{one.help}{choices}{unit}{columns}{file}. {end}".strip()


def _command(calculator: Calculator) -> Callable[..., None]:
    """Return the command of a calculator, with the signature that declares its options."""

    def command(context: Context, output: str, example: bool, plot: Path | None = None, **given: Any) -> None:
        form = picture_format("--plot", plot)
        values = {one.name: _read(one, given[one.name]) for one in calculator.inputs if given[one.name] is not None}
        if example:
            values = dict(calculator.examples[0].values) | values
        _answer(context, calculator, values, output, plot, form)

    parameters = {one.name: _options(one) for one in calculator.inputs}
    parameters |= {"example": (Annotated[bool, Option("--example", help="Answer the first example.")], False)}
    if calculator.has_figure:
        about = Option(help="Plot it to FILE.svg or FILE.png.", metavar="FILE")
        parameters |= {"plot": (Annotated[Path | None, about], None)}
    parameters |= {"output": (OutputOption, "table")}
    keyword = inspect.Parameter.KEYWORD_ONLY
    signed = [inspect.Parameter("context", keyword, annotation=Context)]
    signed += [inspect.Parameter(name, keyword, default=start, annotation=kind)
               for name, (kind, start) in parameters.items()]  # fmt: skip
    command.__signature__ = inspect.Signature(signed)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in signed}
    command.__name__ = calculator.key.replace("-", "_")
    # Examples with different tables have the same command.
    commands = dict.fromkeys(example_command(calculator, one) for one in calculator.examples)
    examples = "\n\n".join(f"  {command}" for command in commands)
    command.__doc__ = (
        f"{calculator.title}.\n\n{calculator.question}\n\nSource: {calculator.source}.\n\nExamples:\n\n{examples}"
    )
    return command


def _read(one: Input, given: str) -> str:
    """Return the text of an input; that of a file for tables and documents."""
    if one.kind not in FILES:
        return given
    try:
        if given == "-":
            data = sys.stdin.buffer.read(MAX_FILE_BYTES + 1)
        else:
            with Path(given).open("rb") as stream:
                data = stream.read(MAX_FILE_BYTES + 1)
        if len(data) > MAX_FILE_BYTES:
            raise InputError(f"{given} has more than {MAX_FILE_BYTES} bytes; give a shorter {one.kind}")
        return data.decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"{given} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{given} is not UTF-8: byte {error.start} is {data[error.start]:#04x}") from None


def _answer(
    context: Context, calculator: Calculator, values: Mapping[str, str], output: str, plot: Path | None, form: str
) -> None:
    from profsvc.reports.text.models import index as models_text
    from profsvc.views.calculators.answers import calculate

    service = open_service(context)
    view = service.model(calculator.key, values) if service else calculate(calculator, values)
    if plot is not None:
        from profsvc.reports.plots import lines

        if view["figure"] is None:
            raise UsageError(f"--plot: this answer has no figure; {'; '.join(view['notes']) or 'give more values'}")
        write_picture(plot, lines.draw(view["figure"], form))
    print_view(view, output, models_text.answer, view["columns"], view["rows"])
    if output not in {"json", "table"}:
        for words in view["notes"]:
            print_message(f"note: {words}")


def models(
    context: Context,
    run: Annotated[str | None, Argument(help="Run by name or id: say which models it can answer.")] = None,
    output: OutputOption = "table",
) -> None:
    """List every model: the question that it answers, where, from which source, and how accurate it is.

    With a run, also whether that run can answer it, or which counter or log is missing. For the models of time, the
    accuracy is that on the device of the run in this store.

    Examples:

      profsvc models

      profsvc models today

      profsvc models today -o csv
    """
    from profsvc.reports.text.models import index as models_text
    from profsvc.views.models.index import index

    if service := open_service(context):
        view = service.models(run)
    else:
        view = index(open_reader(context) if run is not None else None, run)
    print_view(view, output, models_text.index, view["columns"], view["rows"])


def register(app: Group) -> None:
    """Add ``models`` and a command for each calculator, below its group where its name has two words."""
    app.function()(models)
    groups: dict[str, Group] = {}
    for calculator in CALCULATORS.values():
        group, _, name = calculator.name.rpartition(" ")
        if group and group not in groups:
            groups[group] = Group(help=GROUPS[group])
            app.add_group(groups[group], group)
        (groups[group] if group else app).function(name)(_command(calculator))
    clock_sweep.register(groups["energy"])
