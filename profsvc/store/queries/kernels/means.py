"""Metrics that an export averages over the launches of a kernel, and further data of these kernels."""

from typing import Any

import pandas as pd

from profsvc.store.connection.sql import Engine, text
from profsvc.store.connection.transactions import reading
from profsvc.store.queries.kernels.presence import ROWS_OF_MEANS, TOOL
from profsvc.store.schema.column_types import IDS_PER_UPLOAD

SHAPE = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "registers_per_thread",
         "shared_mem_static_bytes", "shared_mem_dynamic_bytes")  # fmt: skip
_METRICS = text(
    "SELECT u.upload_id, m.kernel_id, k.kernel, k.kernel_short, n.section, n.metric, n.statistic, m.invocations,"
    f" m.value {ROWS_OF_MEANS} ORDER BY u.upload_id, m.item"
)
_TRACED = text(
    "SELECT kernel, kernel_id, sum(launches) AS launches, sum(total_ns) / NULLIF(sum(timed), 0) AS mean_ns,"
    " sum(total_ns) AS total_ns FROM v1_kernel_totals WHERE run_id = :run_id"
    " GROUP BY kernel, kernel_id"
)
_SUMMED = text(
    "SELECT kernel, sum(calls) AS launches, sum(total_ns) / NULLIF(sum(calls), 0) AS mean_ns, sum(total_ns) AS total_ns"
    " FROM v1_kernel_summaries WHERE run_id = :run_id AND category = 'kernel' GROUP BY kernel"
)
_SIZES = {name: (f"t.min_{name}", f"t.max_{name}") for name in SHAPE if name.startswith("grid") or "dynamic" in name}
_ENDS = {name: _SIZES.get(name, (f"h.{name}", f"h.{name}")) for name in SHAPE}
_SHAPES = text(
    "SELECT h.kernel_id,"
    f" {', '.join(f'min({least}) AS {c}, max({most}) AS most_{c}' for c, (least, most) in _ENDS.items())}"
    " FROM uploads u JOIN shape_totals t ON t.upload_id = u.upload_id JOIN shapes h ON h.shape_id = t.shape_id"
    " WHERE u.run_id = :run_id AND u.same_as IS NULL GROUP BY h.kernel_id"
)


def kernel_metrics(engine: Engine, run_id: int) -> pd.DataFrame:
    """Return the means by kernel that nvprof gives of a run, in the order of its files; ``section`` is the device.

    In the summaries of other tools a section is a section, and their metrics have other names.
    Columns: upload_id, kernel_id, kernel, kernel_short, section, metric, statistic, invocations, value (SI).
    """
    return _frame(engine, _METRICS, run_id=run_id, step=IDS_PER_UPLOAD, tool=TOOL)


def kernel_times(engine: Engine, run_id: int) -> pd.DataFrame:
    """Return one row per kernel, from the traces of a run, or from its totals if no trace contains the kernel.

    Columns: kernel, launches, mean_ns (of those with a time), total_ns.
    """
    traced, summed = (_frame(engine, query, run_id=run_id) for query in (_TRACED, _SUMMED))
    parts = [traced.drop(columns="kernel_id"), summed[~summed["kernel"].isin(traced["kernel"])]]
    return pd.concat([part for part in parts if len(part)] or [summed], ignore_index=True)


def kernel_shapes(engine: Engine, run_id: int) -> pd.DataFrame:
    """Return grid, block, registers and shared memory, one row per kernel_id.

    A value is null if the launches of the kernel differ.
    """
    found = _frame(engine, _SHAPES, run_id=run_id).set_index("kernel_id")
    return pd.DataFrame({c: found[c].where(found[c] == found[f"most_{c}"]) for c in SHAPE}).astype("float64")


def _frame(engine: Engine, query: Any, **values: Any) -> pd.DataFrame:
    with reading(engine) as connection:
        result = connection.execute(query, values)
        return pd.DataFrame(result.all(), columns=list(result.keys()))
