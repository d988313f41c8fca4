"""Columns that the user names: which quantity in which unit stands where, for a log that does not say it itself."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from profsvc.errors import BrokenInputError, NotFoundError, UsageError
from profsvc.formats.meter_clock import ORDERS
from profsvc.formats.readings import SHIFTS, Channel, split_label, unit_of
from profsvc.formats.turns import GPU, NAME
from profsvc.specs import units

TOOL = "meter"
TIME, SKIP = "time", "skip"
# What is no quantity: the column tells of which GPU, or of what else, each row is.
TELLING = (GPU, NAME)
# Quantities of sensors that share a unit with another.
_ALSO = {"clock": "frequency", "utilization": "fraction"}
_WITHOUT_UNIT = {"power_factor", "fraction", "humidity", "utilization"}
_LABELS_SHOWN = 12


def quantities() -> list[str]:
    """Return what a column may be.

    >>> {"power", "temperature", "time", "skip"} <= set(quantities())
    True
    """
    return sorted({unit.dimension for unit in units(TOOL).values()} | {*_ALSO, TIME, SKIP, *TELLING})


@dataclass(frozen=True)
class Named:
    """What the user says of one column: its label, or ``#3`` for the third."""

    label: str
    quantity: str
    unit: str | None = None

    @property
    def place(self) -> int | None:
        """The place of a column that is named by its number, from 0."""
        number = self.label[1:]
        return int(number) - 1 if self.label[:1] == "#" and number.isdecimal() and 0 < int(number) < 10_000 else None

    @property
    def is_value(self) -> bool:
        """Whether the column becomes a sensor."""
        return self.quantity not in (TIME, SKIP, *TELLING)

    @property
    def tells(self) -> bool:
        """Whether the column tells of which GPU, or of what else, each row is."""
        return self.quantity in TELLING

    def channel(self, label: str) -> Channel:
        """Return the channel of this column, which is headed ``label``; refuse one whose unit nobody gives."""
        name, printed = split_label(label)
        token = self.unit
        if token is None and printed is not None and _fits(printed, self.quantity):
            token = printed
        if token is None and self.quantity in _WITHOUT_UNIT:
            token = "1"
        if token is None:
            raise BrokenInputError(
                f"column {label[:60]!r} names no unit of {self.quantity}; say it: "
                f"--column '{self.label}={self.quantity}:UNIT', such as {_example(self.quantity)}"
            )
        unit = None if token == "1" else unit_of(token)
        if unit is None:
            return Channel(name, self.quantity, "1")
        return Channel(name, self.quantity, unit.si_unit, unit.factor, SHIFTS.get(unit.token, 0.0))


def _example(quantity: str) -> str:
    dimension = _ALSO.get(quantity, quantity)
    return " or ".join([unit.token for unit in units(TOOL).values() if unit.dimension == dimension][:2])


def _fits(token: str, quantity: str) -> bool:
    if quantity == TIME and token in ORDERS:
        return True
    if token == "1":
        return quantity in _WITHOUT_UNIT
    unit = unit_of(token)
    return unit is not None and unit.dimension in (quantity, _ALSO.get(quantity))


def read_columns(texts: Iterable[str]) -> tuple[Named, ...]:
    """Read the values of ``--column``: NAME=QUANTITY or NAME=QUANTITY:UNIT; raise `UsageError` for any other.

    >>> read_columns(["Main=power:mW", "#1=time:s"])
    (Named(label='Main', quantity='power', unit='mW'), Named(label='#1', quantity='time', unit='s'))
    """
    found = [_read(text) for text in texts]
    for number, one in enumerate(found):
        if one.label in {other.label for other in found[:number]}:
            raise UsageError(f"--column names {one.label!r} twice; say once what it is")
    return tuple(found)


def _read(text: str) -> Named:
    label, sign, meaning = text.rpartition("=")
    quantity, colon, unit = (part.strip() for part in meaning.partition(":"))
    label = label.strip()
    if not sign or not label or not quantity or (colon and not unit):
        raise UsageError(
            f"--column {text!r} must look like NAME=QUANTITY or NAME=QUANTITY:UNIT, such as --column Main=power:mW"
        )
    if quantity not in quantities():
        raise UsageError(f"--column {text!r}: {NotFoundError.near('quantity', quantity, quantities())}")
    if unit and (quantity in (SKIP, *TELLING) or not _fits(unit, quantity)):
        known = [one.token for one in units(TOOL).values() if one.dimension == _ALSO.get(quantity, quantity)]
        known += list(ORDERS) if quantity == TIME else []
        raise UsageError(f"--column {text!r}: {unit!r} is no unit of {quantity}; give one of {', '.join(known) or '1'}")
    return Named(label, quantity, unit or None)


def places_of(columns: Sequence[Named], cells: Sequence[str]) -> list[int | None]:
    """Return where each of the columns stands in a header of ``cells``, None for one that is not there."""
    found: list[int | None] = []
    for one in columns:
        if one.place is not None:
            found.append(one.place if one.place < len(cells) else None)
            continue
        places = [place for place, cell in enumerate(cells) if cell == one.label]
        places = places or [place for place, cell in enumerate(cells) if cell.lower() == one.label.lower()]
        if len(places) > 1:
            numbers = " or ".join(f"#{place + 1}" for place in places)
            raise BrokenInputError(f"{one.label!r} heads {len(places)} columns; name it by its number, {numbers}")
        found.append(places[0] if places else None)
    return found


def refusal(columns: Sequence[Named], nearest: Sequence[str]) -> str:
    """Say that no line of a file names all of the columns; ``nearest`` are the cells of the line that names most."""
    lacking = [one for one, place in zip(columns, places_of(columns, nearest), strict=True) if place is None]
    names = ", ".join(repr(one.label) for one in lacking or columns)
    if not nearest:
        return f"no line of the file is a header with {names}, which --column names; name columns as the file does"
    shown = ", ".join(map(repr, nearest[:_LABELS_SHOWN])) + (", ..." if len(nearest) > _LABELS_SHOWN else "")
    return f"the file has no column {names}, which --column names; it has {shown}; name columns as it does, or #1, #2"
