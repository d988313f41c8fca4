"""What a calculator declares: its inputs, its answer, and examples of its source."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

INF = float("inf")
KINDS = ("number", "integer", "numbers", "choice", "text", "table", "document")
"""``numbers`` are separated by commas, a ``table`` is CSV, a ``document`` is TOML."""
FILES = ("table", "document")
"""Kinds that the command line reads from a file."""
SUFFIXES = {"table": "csv", "document": "toml"}
Values = Mapping[str, Any]
"""Checked inputs by name. A table is a list of rows by column, a document is a dict; None: optional and not given."""


class Input(NamedTuple):
    """An input, or a column of a table."""

    name: str
    help: str
    kind: str = "number"
    unit: str = ""
    """Unit of ``values``; numbers may be given with another prefix of it, such as 1.2 GHz for MHz."""
    default: str | None = None
    """As a user writes it; None: the input is required; an empty text: it is optional."""
    choices: tuple[str, ...] = ()
    minimum: float = -INF
    maximum: float = INF
    """Of a table: the number of its rows."""
    above: float = -INF
    """A number must be larger than this."""
    columns: tuple["Input", ...] = ()
    """Columns of a table."""
    more_columns: str = ""
    """What further columns of numbers mean; empty: there must be none."""


class Example(NamedTuple):
    """Inputs with a known answer."""

    text: str
    """Where they come from, and what the source says of them."""
    values: Mapping[str, str]


class Answer(NamedTuple):
    """The answer: rows, notes, and the data of a figure for `profsvc.reports.plots.lines`."""

    rows: Sequence[Mapping[str, Any]]
    columns: Sequence[str]
    notes: Sequence[str] = ()
    figure: Mapping[str, Any] | None = None


class Calculator(NamedTuple):
    """A model with its inputs."""

    name: str
    """The words of its command, such as ``energy split``."""
    title: str
    question: str
    source: str
    """Key of a reference and the place in it: ``Kim2012, section 2.2``."""
    inputs: tuple[Input, ...]
    answer: Callable[[Values], Answer]
    examples: tuple[Example, ...]
    functions: tuple[str, ...]
    """The functions behind it, below `profsvc.formulas`: ``performance.work_depth.brent_time``."""
    accuracy: str = ""
    """Error on measurements, with what was measured; empty: none on record."""
    has_figure: bool = False

    @property
    def key(self) -> str:
        """Its name in paths.

        >>> from profsvc.views.calculators.catalog import CALCULATORS
        >>> CALCULATORS["work-depth"].key
        'work-depth'
        """
        return self.name.replace(" ", "-")


QUANTITIES = ("quantity", "value", "unit", "meaning")
"""Columns of an answer that is a list of single numbers."""


def quantity(name: str, value: Any, unit: str, meaning: str) -> dict[str, Any]:
    """Return a row of `QUANTITIES`."""
    return {"quantity": name, "value": value, "unit": unit, "meaning": meaning}


def option_of(one: Input) -> str:
    """Return the option of an input on the command line."""
    return f"--{one.name.replace('_', '-')}"


def example_command(calculator: Calculator, example: Example) -> str:
    """Return the command line of an example; a file has the name of its input.

    >>> from profsvc.views.calculators.catalog import CALCULATORS
    >>> example_command(CALCULATORS["work-depth"], CALCULATORS["work-depth"].examples[0])
    'profsvc work-depth --work 31 --depth 5 --processors 1,6'
    """
    words = ["profsvc", *calculator.name.split()]
    for one in calculator.inputs:
        if one.name in example.values:
            value = example.values[one.name]
            words += [f"{one.name}.{SUFFIXES[one.kind]}"] if one.kind in FILES else [option_of(one), value]
    return shlex.join(words)
