"""Reader of measured device characterizations: a CSV with one point of a function, or one cost, per line."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import BinaryIO

from profsvc.errors import BrokenInputError, NotFoundError, wrong_cell_count
from profsvc.formats.native.annotated_csv import AnnotatedCsvReader, first_cells
from profsvc.formats.parsing.ledger import with_table
from profsvc.formats.parsing.line_reader import read_lines
from profsvc.formats.parsing.numbers import NumberFormat, Numbers
from profsvc.specs.criteria import COST, FUNCTION, measured_figures, quantities
from profsvc.tables import Batch

NAME = "characterization"
PAGE = """\
A measured characterization of a device: a CSV of attained throughput, to replace data-sheet values.

Create it on the machine with the GPU: profsvc characterize. Or write the figures of your own microbenchmarks, one line
per measurement, under the header
    device,quantity,x,y,unit,method
The columns may be in any order; unit and method are optional. Numbers have a decimal point and no thousands separators.
Empty lines and lines that begin with # are skipped and counted.

device    product name as the profiler prints it, or its name in the catalogue (profsvc devices --catalogue)
quantity  a function: y is the attained fraction of the peak, in (0, 1.5], at the point x of a sweep
              F_DRAMThr, F_L2Thr, F_L1Thr  bandwidth of a memory unit; x = bytes exchanged or in flight
              F_ArithThr                   rate of all arithmetic pipes, F_ArithThr:fp32 of one; x = load
              F_SHMEM                      d t(1)/t(d) of shared memory; x = conflict degree d
              F_Divergence                 throughput(x)/throughput(0); x = fraction of control statements
          or a cost: y is the cycles per operation at saturation, x may be empty
              k_dram_load, k_l2_store, k_l1_load, k_shared_load, k_integer, k_single, k_special, k_double, ...
          or a figure: y has a unit of its own, x may be empty
              latency_dram, bandwidth_l2_read, rate_tensor_bf16, departure_coalesced, cost_barrier, time_launch, ...
unit      unit of y: cycle for a cost, 1 for a function, that of the figure, or empty
method    description of the measurement

Stored: every line. A line with an unknown quantity or an invalid number is rejected, with the reason. The median is
used for repeated x. If several uploads have the same device and quantity, the newest is used.

Example:
    # triad over 1 GiB, boost clock
    device,quantity,x,y,unit,method
    NVIDIA H200,F_DRAMThr,4096,0.41,1,bytes in flight per SM
    NVIDIA H200,F_DRAMThr,65536,0.92,1,bytes in flight per SM
    NVIDIA H200,k_shared_load,,1.02,cycle,chain of loads
"""

REQUIRED_COLUMNS = ("device", "quantity", "x", "y")
OPTIONAL_COLUMNS = ("unit", "method")
MAX_SHARE = 1.5
COST_UNITS = {"", "cycle", "cycles"}
FUNCTION_UNITS = {"", "1"}
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
    if x is not None and x < 0:
        raise ValueError(f"x is {cells['x']}, but must be 0 or more")
    if not 0 < y <= (MAX_SHARE if kind == FUNCTION else float("inf")):
        allowed = f"in (0, {MAX_SHARE}], a fraction of the peak, not a percentage" if kind == FUNCTION else "above 0"
        raise ValueError(f"y is {cells['y']}, but {quantity} must be {allowed}")
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
