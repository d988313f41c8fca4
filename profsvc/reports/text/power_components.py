"""The power of each unit of a device as text for a terminal."""

from collections.abc import Mapping
from typing import Any

from profsvc.errors import counted
from profsvc.reports.rows import cell, render, visible
from profsvc.reports.text.cells import middle

UNITS = {
    "unit": "unit",
    "max_power_w": "W at full utilization",
    "interval": "range with one kernel left out",
    "meaning": "meaning",
}
KERNELS = {
    "run": "run", "kernel": "kernel", "mean_power_w": "W", "predicted_w": "W predicted", "error_w": "error W",
    "constant_error_w": "error W of the mean",
}  # fmt: skip


def components(view: Mapping[str, Any], width: int | None = None, *, with_kernels: bool = False) -> str:
    """Return the power of the units, the error of the fit and, on request, the kernels."""
    rows = [row | {"interval": f"{cell(row['low'])} to {cell(row['high'])}"} for row in view["units"]]
    lines = [f"{view['device']}: {counted(view['runs'], 'kernel')} with power and counters", ""]
    lines += _table(UNITS, rows, width)
    errors = [f"{view[f'{who}_rms_w']:.1f} W ({100 * view[f'{who}_share']:.1f} %)" for who in ("left_out", "constant")]
    lines += ["", f"error for a kernel left out: {errors[0]}; of the mean of the others: {errors[1]}"]
    lines += [f"condition number {view['condition']:.3g}", view["verdict"]]
    if view["left_out_windows"]:
        lines.append(f"left out: {counted(view['left_out_windows'], 'window')} with a throttled clock")
    if with_kernels:
        rows = [row | {"kernel": middle(str(row["kernel"]), 40)} for row in view["kernels"]]
        lines += ["", *_table(KERNELS, rows, width)]
    return "\n".join(visible(line) for line in lines) + "\n"


def _table(heads: Mapping[str, str], rows: list[dict[str, Any]], width: int | None) -> list[str]:
    named = [{title: row[name] for name, title in heads.items()} for row in rows]
    return str(render(list(heads.values()), named, "table", width=width)).splitlines()
