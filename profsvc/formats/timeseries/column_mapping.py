"""Columns that the user maps to a quantity and a unit, for a log that does not name them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from profsvc.errors import BrokenInputError, NotFoundError, UsageError
from profsvc.formats.timeseries.dates import DATE_ORDERS
from profsvc.formats.timeseries.labels import TEMPERATURE_SHIFTS, Channel, split_label, unit_of
from profsvc.formats.timeseries.tables.multiplexed import GPU, NAME
from profsvc.specs import units

TOOL = "meter"
TIME, SKIP = "time", "skip"
# Pseudo quantities of a column that identifies the GPU, or another object, of each row.
KEY_QUANTITIES = (GPU, NAME)
# Quantities of sensors that share a unit with another.
_ALSO = {"clock": "frequency", "utilization": "fraction"}
_WITHOUT_UNIT = {"power_factor", "fraction", "humidity", "utilization"}
_LABELS_SHOWN = 12


def quantities() -> list[str]:
    """Return the valid quantities of a column.

    >>> {"power", "temperature", "time", "skip"} <= set(quantities())
    True
    """
    return sorted({unit.dimension for unit in units(TOOL).values()} | {*_ALSO, TIME, SKIP, *KEY_QUANTITIES})


@dataclass(frozen=True)
class NamedColumn:
    """The mapping of one column, given by its label, or by ``#3`` for the third."""

    label: str
    quantity: str
    unit: str | None = None

    @property
    def place(self) -> int | None:
        """The place, from 0, of a column that is given by its number."""
        number = self.label[1:]
        return int(number) - 1 if self.label[:1] == "#" and number.isdecimal() and 0 < int(number) < 10_000 else None

    @property
    def is_value(self) -> bool:
        """Whether the column becomes a sensor."""
        return self.quantity not in (TIME, SKIP, *KEY_QUANTITIES)

    @property
    def tells(self) -> bool:
        """Whether the column identifies the GPU, or another object, of each row."""
        return self.quantity in KEY_QUANTITIES

    def channel(self, label: str) -> Channel:
        """Return the channel of this column with the header ``label``; refuse a column without a unit."""
        name, printed = split_label(label)
        token = self.unit
        if token is None and printed is not None and _fits(printed, self.quantity):
            token = printed
        if token is None and self.quantity in _WITHOUT_UNIT:
            token = "1"
        if token is None:
            raise BrokenInputError(
                f"column {label[:60]!r} has no unit of {self.quantity}; add it: "
                f"--column '{self.label}={self.quantity}:UNIT', such as {_example(self.quantity)}"
            )
        unit = None if token == "1" else unit_of(token)
        if unit is None:
            return Channel(name, self.quantity, "1")
        return Channel(name, self.quantity, unit.si_unit, unit.factor, TEMPERATURE_SHIFTS.get(unit.token, 0.0))


def _example(quantity: str) -> str:
    dimension = _ALSO.get(quantity, quantity)
    return " or ".join([unit.token for unit in units(TOOL).values() if unit.dimension == dimension][:2])


def _fits(token: str, quantity: str) -> bool:
    if quantity == TIME and token in DATE_ORDERS:
        return True
    if token == "1":
        return quantity in _WITHOUT_UNIT
    unit = unit_of(token)
    return unit is not None and unit.dimension in (quantity, _ALSO.get(quantity))


def read_columns(texts: Iterable[str]) -> tuple[NamedColumn, ...]:
    """Parse values of ``--column``: NAME=QUANTITY or NAME=QUANTITY:UNIT; raise `UsageError` for another form.

    >>> read_columns(["Main=power:mW", "#1=time:s"])
    (NamedColumn(label='Main', quantity='power', unit='mW'), NamedColumn(label='#1', quantity='time', unit='s'))
    """
    found = [_read(text) for text in texts]
    for number, one in enumerate(found):
        if one.label in {other.label for other in found[:number]}:
            raise UsageError(f"--column names {one.label!r} twice; give it once")
    return tuple(found)


def _read(text: str) -> NamedColumn:
    label, sign, meaning = text.rpartition("=")
    quantity, colon, unit = (part.strip() for part in meaning.partition(":"))
    label = label.strip()
    if not sign or not label or not quantity or (colon and not unit):
        raise UsageError(
            f"--column {text!r} must look like NAME=QUANTITY or NAME=QUANTITY:UNIT, such as --column Main=power:mW"
        )
    if quantity not in quantities():
        raise UsageError(f"--column {text!r}: {NotFoundError.near('quantity', quantity, quantities())}")
    if unit and (quantity in (SKIP, *KEY_QUANTITIES) or not _fits(unit, quantity)):
        known = [one.token for one in units(TOOL).values() if one.dimension == _ALSO.get(quantity, quantity)]
        known += list(DATE_ORDERS) if quantity == TIME else []
        raise UsageError(
            f"--column {text!r}: {unit!r} is not a unit of {quantity}; give one of {', '.join(known) or '1'}"
        )
    return NamedColumn(label, quantity, unit or None)


def column_places(columns: Sequence[NamedColumn], cells: Sequence[str]) -> list[int | None]:
    """Return the place of each column in a header of ``cells``; None for a missing column."""
    found: list[int | None] = []
    for one in columns:
        if one.place is not None:
            found.append(one.place if one.place < len(cells) else None)
            continue
        places = [place for place, cell in enumerate(cells) if cell == one.label]
        places = places or [place for place, cell in enumerate(cells) if cell.lower() == one.label.lower()]
        if len(places) > 1:
            numbers = " or ".join(f"#{place + 1}" for place in places)
            raise BrokenInputError(
                f"{len(places)} columns are named {one.label!r}; give the column by its number, {numbers}"
            )
        found.append(places[0] if places else None)
    return found


def missing_columns_message(columns: Sequence[NamedColumn], nearest: Sequence[str]) -> str:
    """Return the message that no line has all columns; ``nearest`` are the cells of the line that has the most."""
    missing = [one for one, place in zip(columns, column_places(columns, nearest), strict=True) if place is None]
    names = ", ".join(repr(one.label) for one in missing or columns)
    if not nearest:
        return f"no line of the file is a header with {names} of --column; use the names in the file"
    shown = ", ".join(map(repr, nearest[:_LABELS_SHOWN])) + (", ..." if len(nearest) > _LABELS_SHOWN else "")
    return f"the file has no column {names} of --column; it has {shown}; use these names, or #1, #2"
