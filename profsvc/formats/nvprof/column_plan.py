"""Which columns of an nvprof trace can be read in blocks, and their units."""

from collections.abc import Mapping
from dataclasses import dataclass

from profsvc.formats.nvprof.lines import TRACE, Layout
from profsvc.formats.nvprof.values import Values
from profsvc.specs import units

AXES = [f"{what} {axis}" for what in ("Grid", "Block") for axis in "XYZ"]
INTEGER_COLUMNS = ["Context", "Stream", "Correlation_ID", "Registers Per Thread", *AXES]
SIZE_COLUMNS = {"Size": "bytes", "Static SMem": "shared_mem_static_bytes", "Dynamic SMem": "shared_mem_dynamic_bytes"}
TIME_COLUMNS = ["Start", "Duration"]
TEXT_COLUMNS = ["Device", "SrcMemType", "DstMemType", "Name"]
UNUSED_COLUMNS = ["Throughput", "Unified Memory", "Virtual Address"]


@dataclass(frozen=True)
class ColumnPlan:
    """How to split and scale the columns of a layout."""

    layout: Layout
    times: Mapping[str, tuple[float, int]]
    sizes: Mapping[str, float | None]
    decimal: str

    def has(self, column: str) -> bool:
        """Return whether the layout has a column."""
        return column in self.layout.columns


def column_plan(layout: Layout | None, values: Values) -> ColumnPlan | None:
    """Return how to read blocks of rows of ``layout``; None if only line by line is possible."""
    if layout is None or layout.kind != TRACE or not {*TIME_COLUMNS, "Name"} <= set(layout.columns):
        return None
    if not set(layout.columns) <= {*INTEGER_COLUMNS, *SIZE_COLUMNS, *TIME_COLUMNS, *TEXT_COLUMNS, *UNUSED_COLUMNS}:
        return None
    unit = dict(zip(layout.columns, layout.units, strict=True))
    if any(unit[name] not in ("s", "ms", "us", "ns") for name in TIME_COLUMNS) or any(
        unit.get(name) for name in INTEGER_COLUMNS
    ):
        return None
    factors = {name: units("nvprof")[unit[name]].factor for name in TIME_COLUMNS}
    times = {name: (factor, round(factor * 1e9)) for name, factor in factors.items()}
    sizes: dict[str, float | None] = {}
    for name in SIZE_COLUMNS:
        scale = values.scales[unit[name]] if unit.get(name) else (None, "byte")
        if scale is None or scale[1] != "byte":
            return None
        sizes[name] = scale[0]
    return ColumnPlan(layout, times, sizes, values.number_format.decimal)
