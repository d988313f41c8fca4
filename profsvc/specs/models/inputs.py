"""The models that answer about a run, and what performance models take of a launch.

An input is an expression over counters, the device and other inputs.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from profsvc.errors import DomainError
from profsvc.specs.criteria import criteria, single_figures
from profsvc.specs.hardware import Device
from profsvc.specs.metrics.expression import Alternative, Expression, parse
from profsvc.specs.metrics.vocabulary import counters
from profsvc.specs.models.timing import MemoryParameters
from profsvc.specs.published.references import references
from profsvc.specs.table_files import Row, rows_of, tables_of

FILE = "models/model_inputs.csv"
MODELS_FILE = "models/models.toml"
# ``machine`` is what the model of benefits takes of a device, ``peak_time`` the least times of single units.
MODELS = (
    "benefit", "latency_hiding", "machine", "mwp_cwp", "occupancy", "peak_time", "roofline", "ryoo", "throughput",
    "time_bound", "waves",
)  # fmt: skip
MEASURED, DERIVED, DEVICE, CHARACTERIZED, ASSUMED = "measured", "derived", "device", "characterized", "assumed"
ORIGINS = (MEASURED, DERIVED, DEVICE, CHARACTERIZED, ASSUMED)
# What the models compute for each other before it is an input.
COMPUTED = {"occupancy.blocks", "tensor.ops", "tensor.seconds"}


@dataclass(frozen=True)
class ModelInput:
    """An input under the formulas' name; ``models`` take it, ``source`` says where an assumed number is from."""

    name: str
    unit: str
    expression: Expression
    models: tuple[str, ...]
    meaning: str
    source: str

    @property
    def origins(self) -> tuple[str, ...]:
        """Where the value of each alternative comes from, one of ``ORIGINS``."""
        return tuple(origin(alternative) for alternative in self.expression.alternatives)


def origin(alternative: Alternative) -> str:
    """Tell where the value of an alternative comes from.

    >>> [origin(parse(text).alternatives[0]) for text in ("@sm_count", "@a / n", "device.sms", "memory.Mem_LD", "450")]
    ['measured', 'derived', 'device', 'device', 'assumed']
    """
    if not alternative.names:
        return ASSUMED
    if alternative.names == (alternative.text,):
        kind = alternative.text.partition(".")[0]
        kinds = {"device": DEVICE, "memory": DEVICE, "measured": CHARACTERIZED}
        return MEASURED if alternative.text.startswith("@") else kinds.get(kind, DERIVED)
    return CHARACTERIZED if any(name.startswith("measured.") for name in alternative.names) else DERIVED


def _known(before: Mapping[str, ModelInput]) -> set[str]:
    """Return the names that an expression may use after the inputs ``before``."""
    figures = {f"device.{known.name}" for known in dataclasses.fields(Device)}
    memory = {f"memory.{known.name}" for known in dataclasses.fields(MemoryParameters)}
    measured = {f"measured.{name}" for name in (*(unit["name"] for unit in criteria()["unit"]), *single_figures())}
    own = {f"@{name}" for name, counter in counters().items() if counter.kind == "number"}
    return {*before, *figures, *memory, *measured, *own, *COMPUTED}


def _input(row: Row, before: Mapping[str, ModelInput]) -> ModelInput:
    name, models = row["input"], tuple(row["models"].split())
    if not name or name in before:
        raise row.wrong(f"input must be a new name but is {name!r}")
    if not row["unit"] or not row["meaning"]:
        raise row.wrong(f"{name!r} needs a unit (1 if it has none) and a meaning")
    if set(models) - set(MODELS):
        raise row.wrong(f"models must be among {list(MODELS)} but is {row['models']!r}")
    try:
        expression = parse(row["expression"])
    except DomainError as error:
        raise row.wrong(str(error)) from None
    if stray := sorted(expression.names - _known(before)):
        raise row.wrong(f"{name!r} uses {stray}, which are not counters, device properties or inputs above it")
    made = ModelInput(name, row["unit"], expression, models, row["meaning"], row["source"])
    if ASSUMED in made.origins and not row["source"]:
        raise row.wrong(f"{name!r} may be assumed and needs a source")
    return made


def read_model_inputs(text: str | None = None) -> dict[str, ModelInput]:
    """Read ``model_inputs.csv``: name, then input; an expression uses counters, the device and inputs above it."""
    known: dict[str, ModelInput] = {}
    for row in rows_of(FILE, ("input", "unit", "expression", "models", "meaning", "source"), text):
        made = _input(row, known)
        known[made.name] = made
    return known


@cache
def model_inputs() -> Mapping[str, ModelInput]:
    """Return the inputs of the models by name, each after those it is computed from.

    >>> model_inputs()["Mem_LD"].origins, model_inputs()["N"].unit
    (('characterized', 'device', 'assumed'), 'count')
    """
    return MappingProxyType(read_model_inputs())


@dataclass(frozen=True)
class Model:
    """A model that answers about a run: what it answers, what it needs, and where its answers are.

    A performance model of a launch has a ``formula`` and a ``hint`` for reading its answers.
    """

    name: str
    title: str
    question: str
    reference: str
    """Key of a reference; empty: this project."""
    section: str
    needs: str
    """The files that it needs, and how to record them."""
    command: str
    """A command that shows its answers."""
    view: str
    page: str
    """The path of a page, with ``{run}`` and ``{launch}``."""
    functions: tuple[str, ...]
    """The functions behind it, below `profsvc.formulas`."""
    where: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Columns of the view whose values tell its rows from others."""
    value: str = "value"
    """Column of the view that is NULL where it has no answer."""
    subject: str = ""
    """Column of the view that is counted, such as ``launch_id``; empty: rows."""
    accuracy: str = ""
    """Errors on measurements; empty: none on record."""
    formula: str = ""
    hint: str = ""

    @property
    def source(self) -> str:
        """The reference and the place in it.

        >>> models()["time_bound"].source
        'Lemeire2017, performance'
        """
        place = f"section {self.section}" if self.section[0].isdigit() else self.section
        return ", ".join(filter(None, (self.reference, place)))


def read_models(text: str | None = None) -> dict[str, Model]:
    """Read ``models.toml``: name, then model."""
    fields = [field.name for field in dataclasses.fields(Model)]
    required = set(fields[: fields.index("where")]) - {"name", "reference"}
    known = {}
    for name, entry in tables_of(MODELS_FILE, text).items():
        if missing := sorted(required - {key for key, value in entry.items() if value}):
            raise DomainError(f"{MODELS_FILE} [{name}]: {missing} missing or empty")
        if unknown := sorted(set(entry) - set(fields)):
            raise DomainError(f"{MODELS_FILE} [{name}]: {unknown} not known; there is {sorted(fields)}")
        if (reference := entry.get("reference", "")) and reference not in references():
            raise DomainError(f"{MODELS_FILE} [{name}]: there is no reference {reference!r}")
        if bool(entry.get("formula")) != bool(entry.get("hint")):
            raise DomainError(f"{MODELS_FILE} [{name}]: a formula needs a hint, and a hint a formula")
        known[name] = Model(name=name, **{"reference": "", **entry, "functions": tuple(entry["functions"])})
    return known


@cache
def all_models() -> Mapping[str, Model]:
    """Return the models that answer about a run by name.

    >>> all_models()["components"].command
    'profsvc power RUN --ipp'
    """
    return MappingProxyType(read_models())


@cache
def models() -> Mapping[str, Model]:
    """Return the performance models of a launch by name.

    >>> models()["waves"].title, models()["benefit"].reference
    ('Waves of blocks', 'Kim2012')
    """
    return MappingProxyType({name: model for name, model in all_models().items() if model.formula})
