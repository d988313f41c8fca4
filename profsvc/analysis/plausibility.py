"""What a file says that cannot be: cells outside the range of their quantity become unknown, and keep what they said.

Such a cell is null in its table, so that no sum, mean or criterion takes it in. What stood there is kept as a metric of
the launch or of the file, named after table and column, with the text, the line and the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from profsvc import specs
from profsvc.tables import TABLES, Batch, Table, Wide, as_frames, frame, frame_of, numbers_of
from profsvc.tables.on_demand import pd


def without_implausible_values(batch: Batch) -> tuple[Batch, list[str]]:
    """Return the batch without the values that cannot be, and a reason for each of them.

    >>> kept, reasons = without_implausible_values(Batch({"kernel_summaries": frame("kernel_summaries", {
    ...     "category": ["kernel"], "kernel": ["k"], "calls": [2], "total_ns": [-5e6], "line": [7]})}))
    >>> reasons, kept.tables["kernel_summaries"]["total_ns"].isna().all(), kept.tables["metrics"]["raw_text"].tolist()
    (['kernel_summaries.total_ns -5e+06 ns is implausible; the range is 0 to 3.2e+19 ns (a thousand years)'],
     np.True_, ['-5000000.0'])
    """
    tables, found, reasons = dict(batch.given), [], []
    for name, table in batch.given.items():
        if name == "metrics":
            tables[name], said = _check_metrics(table)
            reasons += said
            continue
        for column in TABLES[name]:
            limits = _column_range(name, column.name)
            if limits is None or not column.nullable or not len(table):
                continue
            value = numbers_of(table[column.name])
            outside = (value < limits.low) | (value > limits.high)
            if outside.any():
                said, rows = [limits.reason(x) for x in value[outside].tolist()], frame_of(table)
                found.append(_original_values(name, column.name, limits.unit, rows[outside], value[outside], said))
                tables[name] = frame_of(tables[name]).assign(**{column.name: rows[column.name].mask(outside)})
                reasons += said
    if found:
        metrics = frame_of(tables.get("metrics", frame("metrics", {})))
        tables["metrics"] = pd.concat([metrics, *found], ignore_index=True).astype(metrics.dtypes.to_dict())
    wide, said = (None, []) if batch.wide is None else _check_wide_metrics(batch.wide)
    return replace(batch, tables=as_frames(tables), wide=wide), reasons + said


def _column_range(table: str, column: str) -> specs.PlausibleRange | None:
    """The range of a column, whatever its unit is."""
    return next((one for one in specs.ranges() if one.of == f"{table}.{column}"), None)


def _original_values(
    name: str, column: str, unit: str, rows: pd.DataFrame, value: npt.NDArray[np.float64], reasons: list[str]
) -> pd.DataFrame:
    """What stood in the cells of some rows, as metrics without a value."""
    count = len(rows)
    own: Mapping[str, Any] = {key: rows[key].tolist() for key in ("launch_index", "kernel", "line") if key in rows}
    launch = [None if pd.isna(x) else int(x) for x in own.get("launch_index", [None] * count)]
    kernels = own.get("kernel", [None] * count)
    return frame("metrics", {
        "launch_index": launch,
        "kernel": [None if number is not None else kernel for number, kernel in zip(launch, kernels, strict=True)],
        "metric": [f"{name}.{column}"] * count, "raw_text": [repr(x) for x in value.tolist()], "unit": [unit] * count,
        "reason": reasons, "line": [int(x) for x in own["line"]],
    })  # fmt: skip


def _check_metrics(table: Table) -> tuple[Table, list[str]]:
    """A table of metrics whose times that cannot be have no value."""
    limits = specs.range_of("metrics.value", "s")
    if limits is None or not len(table):
        return table, []
    value = numbers_of(table["value"])
    outside = (np.asarray(table["si_unit"], object) == "s") & ((value < limits.low) | (value > limits.high))
    if not outside.any():
        return table, []
    reasons, table = [limits.reason(x) for x in value[outside].tolist()], frame_of(table)
    reason = table["reason"].to_numpy(object).copy()
    reason[outside] = reasons
    return table.assign(value=np.where(outside, np.nan, value), reason=pd.Series(reason, table.index, dtype=object)), (
        reasons
    )


def _check_wide_metrics(wide: Wide) -> tuple[Wide, list[str]]:
    """The same of the cells of a wide page."""
    limits = specs.range_of("metrics.value", "s")
    times = np.array([unit == "s" for unit in wide.columns.si_units], np.bool_)
    if limits is None or not times.any():
        return wide, []
    outside = times & ((wide.values < limits.low) | (wide.values > limits.high))
    if not outside.any():
        return wide, []
    cells = [(int(i), int(k)) for i, k in zip(*np.nonzero(outside), strict=True)]
    reasons = {cell: limits.reason(float(wide.values[cell])) for cell in cells}
    values = np.where(outside, np.nan, wide.values)
    return replace(wide, values=values, reasons={**wide.reasons, **reasons}), list(reasons.values())
