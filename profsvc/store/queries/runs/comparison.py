"""What two runs are compared by: sums over the launches of each kernel, never the launches themselves."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from profsvc.specs.advice.causes import ALTERNATIVE
from profsvc.store.connection.sql import Engine, dicts_of, text
from profsvc.store.connection.transactions import reading
from profsvc.store.schema.column_types import IDS_PER_UPLOAD
from profsvc.store.schema.view_definition import FLAGS, UPLOAD_ID_RANGE_SQL

Row = dict[str, Any]


def _bit(flag: str) -> int:
    return 1 << FLAGS.index(flag)


MAX_ASKED_OF_SHAPE = 20
"""Launches of each shape whose registers are read, spread evenly over those of the run."""
MAX_CLOCKED = 500
"""Longest launches of a run of which the clocks are read."""
_KERNELS = """
    SELECT kernel, kernel_short, CAST(sum(launches) AS BIGINT) AS launches, sum(total_ns) AS total_ns,
           CASE WHEN sum(timed) > 0 THEN sum(total_ns) / sum(timed) END AS mean_ns, min(min_ns) AS min_ns
    FROM v1_kernel_totals WHERE run_id = :run_id
    GROUP BY kernel, kernel_short ORDER BY coalesce(sum(total_ns), 0) DESC, kernel
"""
_SUMMED = """
    SELECT kernel, kernel_short, CAST(sum(calls) AS BIGINT) AS launches, sum(total_ns) AS total_ns,
           sum(total_ns) / sum(calls) AS mean_ns, min(min_ns) AS min_ns
    FROM v1_kernel_summaries WHERE run_id = :run_id AND category = 'kernel' AND calls > 0
    GROUP BY kernel, kernel_short ORDER BY coalesce(sum(total_ns), 0) DESC, kernel
"""
# Tables and not a view: it looks for the names of each launch.
_POTENTIAL = f"""
    SELECT k.kernel, g.predicted, g.upper, g.lower, b.text AS bound, g.bound_id <> g.other_id AS differs
    FROM (SELECT h.kernel_id, sum(c.duration_ns) / sum(c.ideal_ns) AS predicted, min(c.bound_id) AS bound_id,
                 max(c.bound_id) AS other_id, max(c.flags & {_bit("UPPER_BOUND")}) AS upper,
                 max(c.flags & {_bit("LOWER_BOUND")}) AS lower
          FROM runs r JOIN potential c ON c.run_id = r.run_id AND c.version_id = r.version_id
          JOIN launches l ON l.launch_id = c.launch_id JOIN shapes h ON h.shape_id = l.shape_id
          WHERE r.run_id = :run_id AND c.speedup IS NOT NULL GROUP BY 1) g
    JOIN kernels k ON k.kernel_id = g.kernel_id LEFT JOIN texts b ON b.text_id = g.bound_id
"""
_TOTALS = "FROM runs r JOIN {} t ON t.run_id = r.run_id AND t.version_id = r.version_id"
_CRITERIA = f"""
    SELECT k.kernel, x.text AS criterion, t.value {_TOTALS.format("criterion_totals")}
    JOIN kernels k ON k.kernel_id = t.kernel_id JOIN texts x ON x.text_id = t.criterion_id WHERE r.run_id = :run_id
"""
_ESTIMATES = """
    WITH best AS (
      SELECT r.launch_id, r.kernel, max(r.estimated_saving_fraction) AS saving
      FROM v1_rules r WHERE r.run_id = :run_id AND r.kind = 'global' AND r.estimated_saving_fraction < 1
      GROUP BY r.launch_id, r.kernel
    )
    SELECT b.kernel, sum(l.duration_ns) / sum(l.duration_ns * (1 - b.saving)) AS estimate
    FROM best b JOIN v1_launches l ON l.launch_id = b.launch_id AND l.run_id = :run_id
    WHERE l.duration_ns > 0 GROUP BY b.kernel
"""
# Each launch with causes has one row for its limit, so the rows of limits count the launches.
_CAUSES = f"""
    SELECT k.kernel, q.cause, q.kind, t.saving_ns, t.launches {_TOTALS.format("cause_totals")}
    JOIN cause_names q ON q.cause_id = t.cause_id JOIN kernels k ON k.kernel_id = t.kernel_id WHERE r.run_id = :run_id
"""
_SHAPES = f"""
    SELECT k.kernel,
           {", ".join(f"min(t.min_{c}) AS {c}, max(t.max_{c}) AS {c}_most" for c in ("grid_x", "grid_y", "grid_z"))},
           {", ".join(f"min(h.{c}) AS {c}, max(h.{c}) AS {c}_most" for c in ("block_x", "block_y", "block_z"))},
           min(h.registers_per_thread) AS registers, max(h.registers_per_thread) AS registers_most
    FROM uploads u JOIN shape_totals t ON t.upload_id = u.upload_id JOIN shapes h ON h.shape_id = t.shape_id
    JOIN kernels k ON k.kernel_id = h.kernel_id
    WHERE u.run_id = :run_id AND u.same_as IS NULL GROUP BY k.kernel
"""
# The registers of a page of metrics are a counter, and the same for all launches of a kernel unless it was compiled
# several times. Looking a counter up takes longer than all else here, so few launches of each shape are asked.
_REGISTERS = f"""
    SELECT k.kernel, min(c.value) AS least, max(c.value) AS most
    FROM (SELECT l.launch_id, h.kernel_id, row_number() OVER (PARTITION BY l.shape_id ORDER BY l.launch_id) AS place,
                 count(*) OVER (PARTITION BY l.shape_id) AS launches
          FROM uploads u JOIN launches l ON l.launch_id / {IDS_PER_UPLOAD} = u.upload_id
          AND l.launch_id {UPLOAD_ID_RANGE_SQL} JOIN shapes h ON h.shape_id = l.shape_id
          WHERE u.run_id = :run_id AND u.same_as IS NULL AND h.registers_per_thread IS NULL
          AND EXISTS (SELECT 1 FROM counters o WHERE o.launch_id {UPLOAD_ID_RANGE_SQL})) g
    JOIN kernels k ON k.kernel_id = g.kernel_id JOIN counters c ON c.launch_id = g.launch_id
    AND c.counter_id = (SELECT x.text_id FROM texts x WHERE x.text = 'registers_per_thread')
    WHERE (g.place - 1) % ((g.launches + {MAX_ASKED_OF_SHAPE - 1}) / {MAX_ASKED_OF_SHAPE}) = 0 AND c.value IS NOT NULL
    GROUP BY k.kernel
"""
_ARCHIVED = """
    SELECT k.kernel, x.text AS criterion, v.value FROM archived_values v
    JOIN kernels k ON k.kernel_id = v.kernel_id LEFT JOIN texts x ON x.text_id = v.criterion_id
    WHERE v.run_id = :run_id AND v.value IS NOT NULL
"""
_PREVIOUS = """
    SELECT p.run_id, p.name, b.value AS branch
    FROM runs r LEFT JOIN run_tags b ON b.run_id = r.run_id AND b.key = 'branch'
    JOIN runs p ON p.project = r.project AND p.run_id < r.run_id
    AND (p.device_id = r.device_id OR (p.device_id IS NULL AND r.device_id IS NULL))
    WHERE r.run_id = :run_id AND coalesce(b.value, '') =
        coalesce((SELECT t.value FROM run_tags t WHERE t.run_id = p.run_id AND t.key = 'branch'), '')
    ORDER BY p.run_id DESC LIMIT 1
"""
_CLOCKS = f"""
    SELECT x.text AS counter, sum(c.value * g.duration_ns) / sum(g.duration_ns) AS mean
    FROM (SELECT l.launch_id, l.duration_ns FROM uploads u JOIN launches l
          ON l.launch_id / {IDS_PER_UPLOAD} = u.upload_id AND l.launch_id {UPLOAD_ID_RANGE_SQL}
          WHERE u.run_id = :run_id AND u.same_as IS NULL AND l.duration_ns > 0
          ORDER BY l.duration_ns DESC LIMIT {MAX_CLOCKED}) g
    CROSS JOIN (SELECT text_id, text FROM texts WHERE text IN ('sm_clock_hz', 'dram_clock_hz')) x
    JOIN counters c ON c.launch_id = g.launch_id AND c.counter_id = x.text_id
    WHERE c.value IS NOT NULL GROUP BY x.text
"""


def kernels_of_run(engine: Engine, run_id: int) -> dict[str, Row]:
    """Return the kernels of a run by name, those that took most time first, with what can be compared of each.

    launches, total_ns, mean_ns, min_ns; predicted, predicted_flags (LOWER_BOUND, UPPER_BOUND or both, as of any of
    its launches) and bound (None where its launches differ) from the potential;
    estimate from the tool's own rules; criteria by name, weighted by time; causes by name, the time that each
    costs a launch [ns]; shape, the least and the greatest grid, block and registers, these of at most
    `MAX_ASKED_OF_SHAPE` launches of a shape. What a run does not hold is None.
    """
    with reading(engine) as connection:

        def rows(query: str) -> list[Row]:
            return dicts_of(connection.execute(text(query), {"run_id": run_id}))

        kernels = {row["kernel"]: row | _nothing_known() for row in rows(_KERNELS) or rows(_SUMMED)}
        for query, add in _PARTS.items():
            for row in rows(query):
                if kernel := kernels.get(row["kernel"]):
                    add(kernel, row)
        causes = rows(_CAUSES)
    _add_causes(kernels, causes)
    return kernels


def _nothing_known() -> Row:
    nothing = {"predicted": None, "predicted_flags": None, "bound": None, "estimate": None}
    return nothing | {"criteria": {}, "causes": {}, "shape": {}}


def _add_potential(kernel: Row, row: Row) -> None:
    flags = [f"{name.upper()}_BOUND" for name in ("lower", "upper") if row[name]]
    kernel["predicted"], kernel["predicted_flags"] = row["predicted"], " ".join(flags) or None
    kernel["bound"] = None if row["differs"] else row["bound"]


def _add_estimate(kernel: Row, row: Row) -> None:
    kernel["estimate"] = row["estimate"]


def _add_criterion(kernel: Row, row: Row) -> None:
    kernel["criteria"][row["criterion"]] = row["value"]


def _add_archived(kernel: Row, row: Row) -> None:
    if row["criterion"] is None:
        kernel["predicted"] = row["value"]
    else:
        _add_criterion(kernel, row)


def _add_shape(kernel: Row, row: Row) -> None:
    kernel["shape"] = row


def _add_registers(kernel: Row, row: Row) -> None:
    if shape := kernel["shape"]:
        known = [value for value in (shape["registers"], shape["registers_most"]) if value is not None]
        shape["registers"] = min([row["least"], *known])
        shape["registers_most"] = max([row["most"], *known])


_PARTS: dict[str, Callable[[Row, Row], None]] = {
    _POTENTIAL: _add_potential,
    _ESTIMATES: _add_estimate,
    _CRITERIA: _add_criterion,
    _ARCHIVED: _add_archived,
    _SHAPES: _add_shape,
    _REGISTERS: _add_registers,
}
"""Query with one row a kernel or more -> what adds a row to its kernel, in this order."""


def _add_causes(kernels: Mapping[str, Row], rows: Sequence[Row]) -> None:
    """Add the time that each cause costs a launch, over all launches of the kernel that were analysed."""
    analysed = Counter[str]()
    for row in rows:
        if row["kind"] == "limit":
            analysed[row["kernel"]] += row["launches"]
    for row in rows:
        if row["kind"] not in ("limit", ALTERNATIVE) and row["saving_ns"] is not None and row["kernel"] in kernels:
            kernels[row["kernel"]]["causes"][row["cause"]] = row["saving_ns"] / analysed[row["kernel"]]


def previous_run(engine: Engine, run_id: int) -> dict[str, Any] | None:
    """Return the run before this one of the same project, device and branch (tag ``branch``); None if it is the first.

    run_id, name and branch, which is None without that tag.
    """
    with reading(engine) as connection:
        row = connection.execute(text(_PREVIOUS), {"run_id": run_id}).mappings().first()
    return None if row is None else dict(row)


def clocks_of_run(engine: Engine, run_id: int) -> dict[str, float]:
    """Return the mean SM and DRAM clock [Hz] of the longest launches of a run, weighted by time, where it is known."""
    with reading(engine) as connection:
        found = connection.execute(text(_CLOCKS), {"run_id": run_id}).mappings()
        return {row["counter"]: row["mean"] for row in found if row["mean"] is not None}
