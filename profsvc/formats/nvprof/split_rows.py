"""Columns of a block of an nvprof trace, split by the compiled splitter."""

import math

import numpy as np
import numpy.typing as npt

from profsvc.formats.columnar.arrow_columns import NullableInts
from profsvc.formats.columnar.csv_columns import Codes, cells_at, object_column
from profsvc.formats.columnar.line_blocks import Block, Floats, require_plain
from profsvc.formats.nvprof.column_plan import INTEGER_COLUMNS, SIZE_COLUMNS, ColumnPlan
from profsvc.formats.nvprof.values import MAX_BYTES, MAX_TIME_S
from profsvc.formats.parsing.numbers import MAX_EXACT_INT
from profsvc.formats.parsing.timestamps import Flags, Int64s
from profsvc.formats.splitter.rows import INTEGER, NUMBERED, REAL, SKIP, TEXT, WHOLE, Cells, Kind, split

# Times so near their limit are left to the other readers, which decide it by another product.
_NEARLY = 0.999


class SplitRows:
    """The columns of a block; raises `IrregularBlockError` if a row is not plain."""

    def __init__(self, block: Block, plan: ColumnPlan) -> None:
        """Split the block."""
        names = plan.layout.columns
        lines, self.rows, cells, _ = split(block, [_kind(name, plan) for name in names], ",", plan.decimal)
        require_plain(0 < self.rows == lines)
        self.columns = dict(zip(names, cells, strict=True))
        self.names: Cells = self.columns["Name"]
        require_plain("" not in self.names.texts)

    def _ints(self, column: str) -> NullableInts:
        cells = self.columns[column]
        return NullableInts(cells.values, ~cells.missing)

    def whole(self, column: str) -> NullableInts:
        """Return a column of integers."""
        return self._ints(column)

    def size(self, column: str) -> NullableInts:
        """Return a column of sizes in bytes."""
        return self._ints(column)

    def starts_ns(self) -> NullableInts:
        """Return when each row began."""
        return self._ints("Start")

    def durations_ns(self) -> tuple[Floats, Flags]:
        """Return how long each row took, and where that is known."""
        cells = self.columns["Duration"]
        return cells.values, ~cells.missing

    def texts(self, column: str) -> tuple[list[str], Codes]:
        """Return the distinct texts of a column, and the code of each row."""
        cells = self.columns[column]
        return cells.texts, cells.values

    def is_copy(self) -> Flags:
        """Return which rows have a name that begins with a bracket."""
        flags: Flags = np.array([name.startswith("[") for name in self.names.texts])[self.names.values]
        return flags

    def call_numbers(self) -> NullableInts:
        """Return the numbers in brackets at the ends of the names."""
        return NullableInts(self.names.extra, ~self.names.missing)

    def kernels(self) -> tuple[list[str], Codes]:
        """Return the distinct names without their numbers, except those of calls, and the code of each row."""
        return self.names.texts, self.names.values

    def whole_names(self, where: Int64s | None) -> npt.NDArray[np.object_]:
        """Return the whole names of some rows, which are calls."""
        numbers, texts = ~cells_at(self.names.missing, where), self.names.texts
        codes = cells_at(self.names.values, where)
        # A number that was taken off a name may have had zeros before it.
        require_plain(all(texts[code].endswith("])") for code in np.unique(codes[numbers]).tolist()))
        return object_column(texts, codes)


def _kind(name: str, plan: ColumnPlan) -> Kind:
    """Return how a column is read."""
    if name == "Name":
        return Kind(NUMBERED)
    if name in INTEGER_COLUMNS:
        return Kind(INTEGER, least=0, most=MAX_EXACT_INT - 1)
    if name in plan.times:
        factor, scale = plan.times[name]
        most = _NEARLY * MAX_TIME_S / factor * scale
        return Kind(WHOLE if name == "Start" else REAL, float(scale), 0.0, most, rounded=True)
    if name in SIZE_COLUMNS:
        size = plan.sizes[name]
        # A size without a unit is not plain: no number is large enough.
        return Kind(WHOLE, 0.0, 0.0, -1.0) if size is None else Kind(WHOLE, size, 0.0, math.nextafter(MAX_BYTES, 0))
    return Kind(TEXT if name in ("Device", "SrcMemType", "DstMemType") else SKIP)
