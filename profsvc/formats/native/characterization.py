"""Reader of measured device characterizations: a CSV with one point of a function, or one cost, per line."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import BinaryIO

from profsvc.errors import BrokenInputError, NotFoundError, wrong_cell_count
from profsvc.formats.native.annotated_csv import AnnotatedCsvReader, first_cells
from profsvc.formats.parsing.ledger import with_table
from profsvc.formats.parsing.line_reader import read_lines
from profsvc.formats.parsing.numbers import NumberFormat, Numbers
from profsvc.specs.criteria import COST, FUNCTION, criteria, measured_figures, quantities
from profsvc.tables import Batch

NAME = "characterization"

REQUIRED_COLUMNS = ("device", "quantity", "x", "y")
OPTIONAL_COLUMNS = ("unit", "method")
MAX_SHARE = 1.5
COST_UNITS = {"", "cycle", "cycles"}
FUNCTION_UNITS = {"", "1"}
# What no device is near of, in the unit of a quantity: beyond it a value is in another unit, such as GB/s or ns.
PLAUSIBLE = {
    "cycle": (1e-6, 1e6), "B/s": (1e8, 1e17), "1/s": (1e3, 1e16), "op/cycle": (1e-2, 1e7), "s": (1e-10, 1.0),
    "Hz": (1e7, 1e11), "": (1e-6, 1e6),
}  # fmt: skip
MOST_X = 1e18
BATCH_ROWS = 10_000


def sniff(head: bytes) -> bool:
    """Tell whether the first line in ``head`` that is not a comment has the columns of a characterization."""
    return set(REQUIRED_COLUMNS) <= set(first_cells(head))


def _number(numbers: Numbers, name: str, cell: str) -> float:
    value = numbers[cell] if "(" not in cell else float("nan")
    if value != value:
        raise ValueError(f"{name} is {cell!r}, not a number with a decimal point")
    return value


def _units(quantity: str, kind: str) -> tuple[set[str], str]:
    """Return the allowed units of a quantity, and what its unit is in words."""
    if kind == COST:
        return COST_UNITS, "a cost is in cycles"
    if kind == FUNCTION:
        return FUNCTION_UNITS, "a function is a fraction of the peak, without a unit"
    unit = measured_figures()[quantity].unit
    return {"", unit}, f"{quantity} is in {unit}"


@cache
def _most_x(quantity: str) -> float:
    """Return the largest x that a quantity has: shares end at 1, conflicts at the lanes of a warp."""
    name = quantity.partition(":")[0]
    return next((float(one["most_x"]) for one in criteria()["characterization"]
                 if one["name"] == name and "most_x" in one), MOST_X)  # fmt: skip


def _measurement(cells: Mapping[str, str], numbers: Numbers) -> dict[str, object]:
    """Return the measurement of a row; raise `ValueError` with the reason to reject the row."""
    device, quantity, known = cells["device"], cells["quantity"], quantities()
    if not device:
        raise ValueError("device is empty")
    if quantity not in known:
        raise ValueError(str(NotFoundError.near("quantity", quantity, known)))
    kind = known[quantity]
    unit, units, said = cells.get("unit", ""), *_units(quantity, kind)
    if unit not in units:
        raise ValueError(f"unit is {unit!r}, but {said}")
    x = _number(numbers, "x", cells["x"]) if cells["x"] else None
    y = _number(numbers, "y", cells["y"])
    if x is None and kind == FUNCTION:
        raise ValueError(f"x is empty, but {quantity} is a function of it")
    if x is not None and not 0 <= x <= _most_x(quantity):
        raise ValueError(f"x is {cells['x']}, but must be 0 to {_most_x(quantity):g} for {quantity}")
    if kind == FUNCTION and not 0 < y <= MAX_SHARE:
        allowed = f"in (0, {MAX_SHARE}], a fraction of the peak, not a percentage"
        raise ValueError(f"y is {cells['y']}, but {quantity} must be {allowed}")
    if kind != FUNCTION:
        least, most_y = PLAUSIBLE[measured_figures()[quantity].unit if kind != COST else "cycle"]
        if not least <= y <= most_y:
            raise ValueError(f"y is {cells['y']}, but a plausible value is {least:g} to {most_y:g}: {said}")
    method = cells.get("method") or None
    return {"device": device, "quantity": quantity, "x": x, "y": y, "unit": unit or None, "method": method}


class _Reader(AnnotatedCsvReader):
    """Gathers the measurements of one file."""

    def __init__(self) -> None:
        super().__init__(NAME, "measurement")
        self.numbers = Numbers(NumberFormat())
        self.rows: list[dict[str, object]] = []
        self.devices: set[str] = set()
        self.quantities: set[str] = set()

    def columns_of(self, cells: list[str], line: int | None = None) -> list[str]:
        """Return the columns of a header; refuse one with missing or unknown columns on a given ``line``."""
        known = (*REQUIRED_COLUMNS, *OPTIONAL_COLUMNS)
        wrong = [f"lacks {name}" for name in REQUIRED_COLUMNS if name not in cells]
        wrong += [f"has {name!r} twice" for name in dict.fromkeys(cells) if cells.count(name) > 1]
        wrong += [f"has an unknown column {name!r}" for name in dict.fromkeys(cells) if name not in known]
        if wrong and line is not None:
            raise BrokenInputError(
                f"line {line}: the header {', '.join(wrong)}; the columns of a characterization are {', '.join(known)}"
            )
        return cells

    def add_row(self, number: int, cells: list[str]) -> None:
        """Add a measurement."""
        if len(cells) != len(self.header):
            raise ValueError(wrong_cell_count(len(cells), len(self.header)))
        row = _measurement(dict(zip(self.header, cells, strict=True)), self.numbers)
        self.devices.add(str(row["device"]))
        self.quantities.add(str(row["quantity"]))
        self.rows.append({**row, "line": number})

    @property
    def full(self) -> bool:
        """Whether there are enough measurements for a batch."""
        return len(self.rows) >= BATCH_ROWS or self.ledger.full

    def batch(self) -> Batch:
        """Return the measurements since the last batch."""
        rows, self.rows = self.rows, []
        return with_table(self.ledger.batch({}), "characterizations", rows)

    def last(self, encoding: str) -> Iterator[Batch]:
        """Yield the rest and the facts of the file; refuse a file without a measurement."""
        if not self.quantities:
            self.refuse_empty()
        facts = {
            "encoding": encoding,
            "devices": str(len(self.devices)),
            "quantities": ", ".join(sorted(self.quantities)),
        }
        yield replace(self.batch(), facts=facts)


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a characterization in one pass over the file."""
    return read_lines(stream, lambda _: _Reader())
