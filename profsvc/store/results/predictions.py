"""Predicted speedups of the kernels of a run, evidence about their work, and predictions for pairs of runs."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from profsvc.store.connection.sql import Connection, Engine, bindparam, dicts_of, text
from profsvc.store.connection.timestamps import now
from profsvc.store.connection.transactions import lock_existing_row, reading, writing
from profsvc.store.ingest.inserts.row_insert import insert_rows
from profsvc.store.schema.results.predictions import TEXT_COLUMNS
from profsvc.store.schema.view_definition import UPLOAD_ID_RANGE_SQL

# A speedup of a kernel is that of all its time: of launches of 2 and 1 ms with speedups 2 and 1 it is 3 ms over 2 ms.
# On which sides its flags make a speedup a bound; of a kernel those of one of its launches do.
_SIDE = "CASE WHEN {} LIKE '%{}_BOUND%' THEN 1 ELSE 0 END"
_NO_SIDES = "0 AS is_floor, 0 AS is_ceiling"


def _sides(of: str, flags: str | None = "flags") -> str:
    """Return SQL for both sides by a column of flags, ``of`` one row ("{}") or of many ("max({})")."""
    if flags is None:
        return _NO_SIDES
    floor, ceiling = (of.format(_SIDE.format(flags, side)) for side in ("LOWER", "UPPER"))
    return f"{floor} AS is_floor, {ceiling} AS is_ceiling"


_OWN, _ANY = "{}", "max({})"
_CRITERIA = f"""
    WITH one AS (
      SELECT l.kernel, c.criterion, c.value, c.speedup, c.flags, c.analysis_version, l.duration_ns
      FROM v1_criteria c JOIN v1_launches l ON l.launch_id = c.launch_id
      WHERE c.run_id = :run_id AND c.launch_id IS NOT NULL AND c.speedup > 0 AND l.duration_ns > 0
    )
    SELECT kernel, 'profsvc' AS source, 'criterion' AS kind, criterion,
           sum(duration_ns) / nullif(sum(duration_ns / speedup), 0) AS predicted,
           sum(value * duration_ns) / sum(duration_ns) AS value, max(analysis_version) AS analysis_version,
           {_sides(_ANY)}
    FROM one GROUP BY kernel, criterion
"""
_POTENTIAL = """
    WITH one AS (
      SELECT l.kernel, p.duration_ns, p.speedup, p.speedup_as_published, p.speedup_ceiling, p.flags,
             p.ceiling_flags, p.analysis_version
      FROM v1_potential p JOIN v1_launches l ON l.launch_id = p.launch_id
      WHERE p.run_id = :run_id AND p.launch_id IS NOT NULL AND p.speedup > 0 AND p.duration_ns > 0
    )
    SELECT kernel, 'profsvc' AS source, '{kind}' AS kind, '{criterion}' AS criterion,
           sum(duration_ns) / nullif(sum(duration_ns / {speedup}), 0) AS predicted, NULL AS value,
           max(analysis_version) AS analysis_version, {sides}
    FROM one WHERE {speedup} > 0 GROUP BY kernel
"""
_MODELS = f"""
    WITH said AS (
      SELECT m.launch_id, m.flags, m.analysis_version,
             CASE WHEN m.quantity IN ('time_ns', 't_min_ns', 'speedup') THEN m.model ELSE m.quantity END AS criterion,
             CASE WHEN m.model <> 'benefit' THEN m.value WHEN m.quantity = 'speedup' THEN 1 / nullif(m.value, 0)
             ELSE 1 - m.value END AS share_or_ns, m.model
      FROM v1_models m
      WHERE m.run_id = :run_id AND m.launch_id IS NOT NULL AND m.form = 'consistent'
        AND (m.model = 'benefit' AND m.quantity IN ('speedup', 'B_itilp', 'B_memlp', 'B_fp', 'B_serial')
             OR m.model = 'roofline' AND m.quantity = 'time_ns' OR m.model = 'time_bound' AND m.quantity = 't_min_ns')
    ), one AS (
      SELECT l.kernel, m.criterion, m.flags, m.analysis_version, l.duration_ns,
             m.share_or_ns * CASE m.model WHEN 'benefit' THEN l.duration_ns ELSE 1 END AS left_ns
      FROM said m JOIN v1_launches l ON l.launch_id = m.launch_id WHERE m.share_or_ns > 0 AND l.duration_ns > 0
    )
    SELECT kernel, 'profsvc' AS source, 'model' AS kind, criterion,
           sum(duration_ns) / nullif(sum(left_ns), 0) AS predicted, NULL AS value,
           max(analysis_version) AS analysis_version, {_sides(_ANY)}
    FROM one GROUP BY kernel, criterion
"""
# A launch on which a rule says nothing would gain nothing by it, if the tool says anything of the launch.
_RULES = f"""
    WITH said AS (
      SELECT l.launch_id AS first, l.kernel, r.tool, max(l.duration_ns) AS duration_ns, r.kind,
             r.rule, max(r.estimated_saving_fraction) AS saving
      FROM v1_rules r JOIN v1_launches l ON l.launch_id = r.launch_id
      WHERE r.run_id = :run_id AND r.estimated_saving_fraction < 1 AND l.duration_ns > 0
        AND r.kind IN ('global', 'local')
      GROUP BY l.launch_id, l.kernel, r.tool, r.kind, r.rule
    ), timed AS (
      SELECT kernel, tool, sum(duration_ns) AS duration_ns
      FROM (SELECT DISTINCT first, kernel, tool, duration_ns FROM said) t GROUP BY kernel, tool
    ), best AS (
      SELECT kernel, tool, 'overall' AS kind, 'overall' AS criterion, duration_ns * max(saving) AS saved_ns
      FROM said WHERE kind = 'global' GROUP BY first, kernel, tool, duration_ns
      UNION ALL SELECT kernel, tool, kind, rule, duration_ns * saving FROM said
    )
    SELECT b.kernel, b.tool AS source, b.kind, b.criterion,
           max(t.duration_ns) / nullif(max(t.duration_ns) - sum(b.saved_ns), 0) AS predicted, NULL AS value,
           NULL AS analysis_version, {_NO_SIDES}
    FROM best b JOIN timed t ON t.kernel = b.kernel AND t.tool = b.tool GROUP BY b.kernel, b.tool, b.kind, b.criterion
"""
# Kind and criterion of a prediction -> the columns of v1_potential that hold it and its flags; those of the potential
# are not about the published form, which rests on other counts.
_OVERALL = {
    ("overall", "overall"): ("speedup", "flags"),
    ("overall", "overall_as_published"): ("speedup_as_published", None),
    ("ceiling", "ceiling"): ("speedup_ceiling", "ceiling_flags"),
}
# Of some kernels only means are known: the results are theirs, and of no launch.
_OF_MEANS = """
    SELECT kernel, 'profsvc' AS source, '{kind}' AS kind, {criterion} AS criterion, {speedup} AS predicted,
           {value} AS value, analysis_version, {sides}
    FROM {view} WHERE run_id = :run_id AND launch_id IS NULL AND kernel IS NOT NULL AND {speedup} > 0
"""
_CRITERIA_OF_MEANS = _OF_MEANS.format(
    kind="criterion", criterion="criterion", speedup="speedup", value="value", view="v1_criteria", sides=_sides(_OWN)
)
CRITERIA_SQL = (_CRITERIA, _CRITERIA_OF_MEANS)
PREDICTIONS_SQL = (
    *(_POTENTIAL.format(kind=kind, criterion=name, speedup=column, sides=_sides(_ANY, flags))
      for (kind, name), (column, flags) in _OVERALL.items()),
    *(_OF_MEANS.format(kind=kind, criterion=f"'{name}'", speedup=column, value="NULL", view="v1_potential",
                       sides=_sides(_OWN, flags))
      for (kind, name), (column, flags) in _OVERALL.items()),
    *(*CRITERIA_SQL, _MODELS, _RULES),
)  # fmt: skip
MAX_PREDICTIONS = 200_000
SCORE_COLUMNS = (
    "prediction_id", "run_before", "run_after", "kernel_before", "kernel_after", "source", "kind", "criterion",
    "predicted", "achieved", "value_before", "value_after", "before_ns", "after_ns",
)  # fmt: skip
# Why a prediction does not count, of those that would if all pairs did of which nothing says that the kernel changed.
UNCHANGED_REASONS = ("unchanged", "unknown")
# What a tool is called in formats and so as a source.
TOOL_NAMES = {"Nsight Compute": "ncu"}
_WORK = """
    SELECT l.kernel, min(l.threads) AS least_threads, max(l.threads) AS most_threads,
           CAST(count(*) - count(l.threads) AS BIGINT) AS unknown, min(l.device) AS device,
           max(l.device) AS other_device, min(l.tool) AS tool, max(l.tool) AS other_tool
    FROM (
      SELECT kernel, device, tool,
             CAST(grid_x AS DOUBLE PRECISION) * grid_y * grid_z * block_x * block_y * block_z AS threads
      FROM v1_launches WHERE run_id = :run_id
    ) l
    GROUP BY l.kernel
"""

_SHAPE = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "registers_per_thread",
          "shared_mem_static_bytes", "shared_mem_dynamic_bytes")  # fmt: skip
_SHAPES = f"""
    SELECT kernel, count(*) AS launches, {", ".join(f"min({c}) AS least_{c}, max({c}) AS most_{c}" for c in _SHAPE)}
    FROM v1_launches WHERE run_id = :run_id GROUP BY kernel
"""
_COUNTERS = f"""
    SELECT k.kernel, x.text AS counter, coalesce(e.text, '') AS expression, min(c.value) AS least, max(c.value) AS most
    FROM uploads u JOIN launches l ON l.launch_id {UPLOAD_ID_RANGE_SQL}
    JOIN shapes h ON h.shape_id = l.shape_id JOIN kernels k ON k.kernel_id = h.kernel_id
    JOIN counters c ON c.launch_id = l.launch_id JOIN texts x ON x.text_id = c.counter_id
    LEFT JOIN texts e ON e.text_id = c.expression_id
    WHERE u.run_id = :run_id AND x.text IN :counters AND c.value IS NOT NULL GROUP BY k.kernel, x.text, e.text
"""


def predicted_speedups(engine: Engine, run_id: int) -> list[dict[str, Any]]:
    """Return the speedups predicted for the kernels of a run, by this program and by the rules of tools.

    kernel, source, kind, criterion, predicted, value (of a criterion), analysis_version (None of a tool's rules);
    is_floor, is_ceiling: 1 if the speedup is a lower or upper bound of the prediction for a launch. Unknown speedups
    are omitted.
    """
    return list(_known_predictions(engine, run_id, PREDICTIONS_SQL).values())


def criteria_of_kernels(engine: Engine, run_id: int) -> dict[tuple[str, str], float]:
    """Return the value of each criterion of the kernels of a run, by kernel and criterion."""
    told = _known_predictions(engine, run_id, CRITERIA_SQL).values()
    return {(row["kernel"], row["criterion"]): row["value"] for row in told}


def _known_predictions(engine: Engine, run_id: int, queries: Iterable[str]) -> dict[tuple[str, ...], dict[str, Any]]:
    """Return what the queries give that is known, once each: what launches say comes before what means do."""
    kept: dict[tuple[str, ...], dict[str, Any]] = {}
    with reading(engine) as connection:
        for query in queries:
            for row in connection.execute(text(query), {"run_id": run_id}).mappings():
                source = TOOL_NAMES.get(row["source"], row["source"])
                if row["predicted"] is not None and math.isfinite(row["predicted"]):
                    key = (row["kernel"], source, row["kind"], row["criterion"])
                    kept.setdefault(key, {**row, "source": source})
    return kept


def kernel_work(engine: Engine, run_id: int) -> dict[str, dict[str, Any]]:
    """Return of each kernel of a run the least and the most threads of a launch, its device and the tool it is from.

    ``unknown`` is how many launches have no known number of threads; ``other_device`` and ``other_tool`` differ from
    ``device`` and ``tool`` where there are several.
    """
    with reading(engine) as connection:
        rows = connection.execute(text(_WORK), {"run_id": run_id}).mappings()
        return {row["kernel"]: dict(row) for row in rows}


def kernel_properties(
    engine: Engine, run_id: int, counters: Sequence[str]
) -> dict[str, tuple[int, dict[tuple[str, str], tuple[float, float]]]]:
    """Return of each kernel of a run how many launches it has, and the least and the most of what is known of them:
    grid, block, registers and shared memory, and these counters, each with the expression that it was computed by.
    """
    found: dict[str, tuple[int, dict[tuple[str, str], tuple[float, float]]]] = {}
    asked = text(_COUNTERS).bindparams(bindparam("counters", expanding=True))
    with reading(engine) as connection:
        for row in connection.execute(text(_SHAPES), {"run_id": run_id}).mappings():
            ends = {(name, ""): (row[f"least_{name}"], row[f"most_{name}"]) for name in _SHAPE}
            known = {name: pair for name, pair in ends.items() if pair[0] is not None}
            found[row["kernel"]] = int(row["launches"]), known
        for row in connection.execute(asked, {"run_id": run_id, "counters": list(counters)}).mappings():
            if row["kernel"] in found:
                found[row["kernel"]][1][row["counter"], row["expression"]] = row["least"], row["most"]
    return found


def scored_predictions(
    engine: Engine,
    project: str | None = None,
    source: str | None = None,
    most: int = MAX_PREDICTIONS,
    *,
    unchanged: bool = False,
    parts: bool = False,
) -> tuple[list[dict[str, Any]], dict[str | None, int]]:
    """Return the newest ``most`` scored predictions, oldest first, and the number of predictions by ``left_out``.

    The key None counts the scored ones. The columns are `SCORE_COLUMNS` of ``v1_predictions``. ``unchanged`` includes
    pairs left out for a reason of `UNCHANGED_REASONS`; ``parts`` includes predictions of a part of the change.
    """
    asked = {name: value for name, value in (("project", project), ("source", source)) if value is not None}
    where = "".join(f" AND {name} = :{name}" for name in asked)
    more = [*(UNCHANGED_REASONS if unchanged else ()), *(("part",) if parts else ())]
    too = f" OR left_out IN ({', '.join(map(repr, more))})" if more else ""
    with reading(engine) as connection:
        query = f"SELECT left_out, count(*) FROM v1_predictions WHERE 1 = 1{where} GROUP BY left_out"
        recorded = {name: int(number) for name, number in connection.execute(text(query), asked).all()}
        query = f"SELECT {', '.join(SCORE_COLUMNS)} FROM v1_predictions WHERE (left_out IS NULL{too}){where}"
        query += " ORDER BY prediction_id DESC LIMIT :most"
        rows = dicts_of(connection.execute(text(query), {**asked, "most": most}))
    return rows[::-1], recorded


def prediction_sources(engine: Engine) -> list[str]:
    """Return the sources of all predictions."""
    with reading(engine) as connection:
        query = text("SELECT DISTINCT source FROM v1_predictions ORDER BY source")
        return list(connection.execute(query).scalars())


def save_predictions(engine: Engine, before: int, after: int, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write the predictions of a pair of runs, in place of those that the pair has."""
    found, pair = list(rows), {"run_before": before, "run_after": after}
    of_pair = "FROM predictions WHERE run_before = :run_before AND run_after = :run_after"
    if not found:
        with reading(engine) as connection:
            if connection.execute(text(f"SELECT 1 {of_pair} LIMIT 1"), pair).first() is None:
                return  # nothing to write: no turn is waited for
    with writing(engine) as connection:
        for run_id in pair.values():
            lock_existing_row(connection, "runs", "run_id", run_id)
        connection.execute(text(f"DELETE {of_pair}"), pair)
        if found:
            _insert(connection, pair, found)


def _insert(connection: Connection, pair: Mapping[str, int], rows: list[Mapping[str, Any]]) -> None:
    from profsvc.store.ingest.inserts.dictionaries import Names  # which needs SQLAlchemy

    kernels, texts = Names(connection, "kernels"), Names(connection, "texts")
    columns: dict[str, list[Any]] = {name: [number] * len(rows) for name, number in pair.items()}
    for name in ("kernel_before", "kernel_after"):
        columns[f"{name}_id"] = kernels.column([(row[name],) for row in rows])
    for name in TEXT_COLUMNS:
        columns[f"{name}_id"] = texts.column([None if row[name] is None else (row[name],) for row in rows])
    for name in ("predicted", "achieved", "value_before", "value_after", "before_ns", "after_ns", "scored", "changed"):
        columns[name] = [row[name] for row in rows]
    columns["made_at"] = [now()] * len(rows)
    insert_rows(connection, "predictions", list(columns), zip(*columns.values(), strict=True))
