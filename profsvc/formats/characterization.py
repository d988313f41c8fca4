"""Reader of measured characterizations of devices: a CSV, each line a point of a function or a cost."""

from collections.abc import Iterator, Mapping, Sequence
from typing import BinaryIO

from profsvc.errors import BrokenInputError, NotFoundError, unfit
from profsvc.formats.head import head_lines
from profsvc.formats.ncu import Ledger, numbered
from profsvc.formats.ncu_lines import HEADER, REJECT, ROW, SKIP, TEXT_LIMIT, Record, split_cells
from profsvc.formats.numbers import NumberFormat, Numbers
from profsvc.formats.stream import Text, ends_inside
from profsvc.specs.guidance import COST, quantities
from profsvc.tables import Batch, frame

NAME = "characterization"
PAGE = """\
A measured characterization of a device: a CSV of what it attains, instead of what its data sheet promises.

Make it with microbenchmarks of the device, a line a measurement, under the header
    device,quantity,x,y,unit,method
whose columns may stand in any order; unit and method may be left out. Numbers have a decimal point and no thousands.
Empty lines and lines that begin with # are skipped and counted.

device    product name as the profiler prints it, or the catalogue's name of it (profsvc devices --catalogue)
quantity  a function: y is the share of the peak that is attained, in (0, 1.5], at the place x of a sweep
              F_DRAMThr, F_L2Thr, F_L1Thr  bandwidth of a memory unit; x = bytes exchanged or in flight
              F_ArithThr                   rate of every arithmetic pipe, F_ArithThr:fp32 of one; x = load
              F_SHMEM                      d t(1)/t(d) of shared memory; x = conflict degree d
              F_Divergence                 throughput(x)/throughput(0); x = share of control statements
          or a cost: y is the cycles an operation takes at saturation, x may be empty
              k_dram_load, k_l2_store, k_l1_load, k_shared_load, k_integer, k_single, k_special, k_double, ...
unit      unit of y: cycle for a cost, 1 for a function, or nothing
method    how it was measured, in words

Taken: every line. A line with an unknown quantity or a bad number is rejected, with the reason. Repeats of an x are
kept, and their median counts. Of several uploads the newest counts, for each device and quantity.

Example:
    # triad over 1 GiB, boost clock
    device,quantity,x,y,unit,method
    NVIDIA H200,F_DRAMThr,4096,0.41,1,bytes in flight an SM
    NVIDIA H200,F_DRAMThr,65536,0.92,1,bytes in flight an SM
    NVIDIA H200,k_shared_load,,1.02,cycle,chain of loads
"""

MUST = ("device", "quantity", "x", "y")
MAY = ("unit", "method")
HIGHEST_SHARE = 1.5
COST_UNITS = {"", "cycle", "cycles"}
SHARE_UNITS = {"", "1"}
BATCH_ROWS = 10_000


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in split_cells(line)]


def _is_empty(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


def sniff(head: bytes) -> bool:
    """Tell whether the first line in ``head`` that is no comment has the columns of a characterization."""
    first = next((line for line in head_lines(head) if not _is_empty(line)), "")
    return set(MUST) <= set(_cells(first))


def _header(line: int, text: str) -> list[str]:
    cells = _cells(text)
    wrong = [f"lacks {name}" for name in MUST if name not in cells]
    wrong += [f"has {name!r} twice" for name in dict.fromkeys(cells) if cells.count(name) > 1]
    wrong += [f"has an unknown column {name!r}" for name in dict.fromkeys(cells) if name not in (*MUST, *MAY)]
    if wrong:
        raise BrokenInputError(
            f"line {line}: the header {', '.join(wrong)}; a characterization has {', '.join((*MUST, *MAY))}"
        )
    return cells


def _number(numbers: Numbers, name: str, cell: str) -> float:
    value = numbers[cell] if "(" not in cell else float("nan")
    if value != value:
        raise ValueError(f"{name} is {cell!r}, not a number with a decimal point")
    return value


def _row(cells: Mapping[str, str], numbers: Numbers) -> dict[str, object]:
    """Return a measurement; raise `ValueError` with the reason if it cannot be one."""
    device, quantity, known = cells["device"], cells["quantity"], quantities()
    if not device:
        raise ValueError("no device is named")
    if quantity not in known:
        raise ValueError(str(NotFoundError.near("quantity", quantity, known)))
    is_cost = known[quantity] == COST
    unit, units = cells.get("unit", ""), COST_UNITS if is_cost else SHARE_UNITS
    if unit not in units:
        kind = "a cost is in cycles" if is_cost else "a function is a share of the peak, without a unit"
        raise ValueError(f"unit is {unit!r}, but {kind}")
    x = _number(numbers, "x", cells["x"]) if cells["x"] else None
    y = _number(numbers, "y", cells["y"])
    if x is None and not is_cost:
        raise ValueError(f"x is empty, but {quantity} is a function of it")
    if x is not None and x < 0:
        raise ValueError(f"x is {cells['x']}, but must not be negative")
    if not 0 < y <= (float("inf") if is_cost else HIGHEST_SHARE):
        allowed = "above 0" if is_cost else f"in (0, {HIGHEST_SHARE}], a share of the peak and no percentage"
        raise ValueError(f"y is {cells['y']}, but {quantity} must lie {allowed}")
    method = cells.get("method") or None
    return {"device": device, "quantity": quantity, "x": x, "y": y, "unit": unit or None, "method": method}


class _File:
    """Sorts the lines of one file, and gathers measurements until they are worth a batch."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.numbers = Numbers(NumberFormat())
        self.header: list[str] = []
        self.rows: list[dict[str, object]] = []
        self.seen: dict[str, set[str]] = {"device": set(), "quantity": set()}
        self.first_reason = ""

    def add(self, line: int, text: str) -> None:
        """Account for a line, and take the measurement on it."""
        cells, kind, reason = _cells(text), ROW, ""
        if _is_empty(text):
            kind = SKIP
        elif not self.header:
            self.header, kind = _header(line, text), HEADER
        elif cells == self.header:
            kind = HEADER
        else:
            try:
                self._take(line, text, cells)
            except ValueError as error:
                kind, reason = REJECT, str(error)
                self.first_reason = self.first_reason or f"line {line}: {reason}"
        self.ledger.take(Record(kind, line, 1, text[:TEXT_LIMIT].rstrip("\r\n"), [], reason))

    def _take(self, line: int, text: str, cells: Sequence[str]) -> None:
        if text.count('"') % 2:
            raise ValueError("a quote is not closed on its line")
        if len(cells) != len(self.header):
            raise ValueError(unfit(len(cells), len(self.header)))
        if ends_inside(text, cells[-1]):
            raise ValueError("the file ends inside this line")
        row = _row(dict(zip(self.header, cells, strict=True)), self.numbers)
        for name, values in self.seen.items():
            values.add(str(row[name]))
        self.rows.append({**row, "line": line})

    def batch(self) -> Batch:
        """Hand on what was gathered."""
        rows, self.rows = self.rows, []
        columns = {name: [row[name] for row in rows] for name in rows[0]} if rows else {}
        return self.ledger.batch({NAME + "s": frame(NAME + "s", columns)} if rows else {})

    def last(self, encoding: str) -> Batch:
        """Hand on the rest and the facts of the file; refuse a file without a measurement."""
        if not self.seen["quantity"]:
            raise BrokenInputError(
                f"the file holds no measurement; {self.first_reason or 'it has no line below its header'}; "
                "see: profsvc formats characterization"
            )
        rest = self.batch()
        facts = {
            "encoding": encoding,
            "devices": str(len(self.seen["device"])),
            "quantities": ", ".join(sorted(self.seen["quantity"])),
        }
        return Batch(rest.tables, rest.lines_stored, rest.lines_skipped, rest.lines_rejected, facts)


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a characterization in one walk over the file."""
    with Text(stream) as text:
        file = _File()
        for line, content in numbered(text):
            file.add(line, content)
            if len(file.rows) >= BATCH_ROWS or file.ledger.full:
                yield file.batch()
        yield file.last(text.encoding)
