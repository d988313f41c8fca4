"""Facts of runs and of their kernels that may explain a change: launch shapes, counters, copies, clocks, tools."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from profsvc.store.connection.sql import Connection, Engine, bindparam, dicts_of, text
from profsvc.store.connection.transactions import reading
from profsvc.store.queries.nightly_series import BINARY_TAG

COLUMNS = ("run_id", "kernel", "fact", "basis", "value", "text")
DIMENSIONS = ("grid", "block")
PLAIN = ("registers_per_thread", "shared_mem_static_bytes", "shared_mem_dynamic_bytes")
COMPILER_TAG = "compiler"
TAG_FACTS = (BINARY_TAG, COMPILER_TAG)
"""Tags that are facts under their own names."""
FILE_FACTS = {
    "driver_version": "driver_version", "driver": "driver_version", "vbios_version": "vbios_version",
    "cuda_version": "cuda_version", "ecc": "ecc", "mig": "mig",
}  # fmt: skip
"""Facts that files state -> their names here."""
_NAMES = [f"{what}_{axis}" for what in DIMENSIONS for axis in "xyz"] + list(PLAIN)
_SHAPES = f"""
    SELECT run_id, kernel, count(*) AS launches,
           {", ".join(f"min({c}) AS least_{c}, max({c}) AS most_{c}" for c in _NAMES)}
    FROM v1_launches WHERE run_id IN :runs AND kernel IN :kernels GROUP BY run_id, kernel
"""
_COUNTERS = """
    SELECT c.run_id, l.kernel, c.counter, coalesce(c.expression, '') AS basis,
           CASE WHEN sum(l.duration_ns) > 0 THEN sum(c.value * l.duration_ns) / sum(l.duration_ns)
                ELSE avg(c.value) END AS value
    FROM v1_counter_values c JOIN v1_launches l ON l.launch_id = c.launch_id AND l.run_id = c.run_id
    WHERE c.run_id IN :runs AND l.run_id IN :runs AND l.kernel IN :kernels AND c.counter IN :counters
      AND c.value IS NOT NULL
    GROUP BY c.run_id, l.kernel, c.counter, c.expression
"""
_LAUNCHES = """
    SELECT run_id, kernel, CAST(max(launches) AS BIGINT) AS value FROM v1_kernel_totals
    WHERE run_id IN :runs AND kernel IN :kernels GROUP BY run_id, kernel
"""
_COPIES = """
    SELECT run_id, kind, sum(bytes) AS value FROM v1_transfers
    WHERE run_id IN :runs AND kind IS NOT NULL AND bytes IS NOT NULL GROUP BY run_id, kind
"""
_POWER = """
    SELECT run_id, 'log_clock_hz' AS fact, avg(mean_clock_hz) AS value FROM v1_power
    WHERE run_id IN :runs AND kind = 'run' AND mean_clock_hz IS NOT NULL GROUP BY run_id
    UNION ALL
    SELECT run_id, 'temperature_c', avg(mean_temperature_c) FROM v1_power
    WHERE run_id IN :runs AND kind = 'run' AND mean_temperature_c IS NOT NULL GROUP BY run_id
    UNION ALL
    SELECT run_id, 'throttled', avg(CASE WHEN quality LIKE '%throttled%' THEN 1.0 ELSE 0.0 END) FROM v1_power
    WHERE run_id IN :runs AND kind <> 'idle' GROUP BY run_id
    UNION ALL
    SELECT run_id, CASE quantity WHEN 'limit' THEN 'power_limit_w' ELSE 'log_utilization' END, avg(value)
    FROM v1_samples WHERE run_id IN :runs AND value IS NOT NULL
      AND (quantity = 'limit' AND unit = 'W' AND name LIKE '%power%'
           OR quantity = 'utilization' AND name LIKE '%gpu%')
    GROUP BY run_id, quantity
"""
COMMON_C = 50.0
"""Temperature that powers are held against each other at; runs are corrected to temperatures of their own."""
_KERNEL_POWER = f"""
    SELECT p.run_id, k.kernel, CASE WHEN p.corrected_power_w IS NULL THEN 'measured' ELSE 'corrected' END AS basis,
           avg(coalesce(p.corrected_power_w + p.coefficient_w_per_c * ({COMMON_C} - p.reference_temperature_c),
                        p.mean_power_w)) AS value
    FROM v1_power p JOIN kernels k
      ON k.kernel = p.kernel OR (p.kernel IS NULL AND p.source = 'marks' AND k.kernel_short = p.load)
    WHERE p.run_id IN :runs AND k.kernel IN :kernels AND p.kind <> 'run' AND p.mean_power_w IS NOT NULL
    GROUP BY 1, 2, 3
"""
_RUNS = "SELECT run_id, device, host, tags FROM v1_runs WHERE run_id IN :runs"
_FILES = "SELECT run_id, tool, tool_version, facts FROM v1_uploads WHERE run_id IN :runs ORDER BY upload_id"
_KERNELS = """
    SELECT run_id, kernel, sum(total_ns) AS total_ns FROM v1_kernel_totals WHERE run_id IN :runs AND launches > 0
    GROUP BY run_id, kernel
"""
Fact = tuple[int, str | None, str, str, float | None, str | None]


def facts_of_runs(
    engine: Engine, run_ids: Sequence[int], kernels: Iterable[str], counters: Iterable[str]
) -> pd.DataFrame:
    """Return the facts of runs and of these kernels in them, as rows of `COLUMNS`.

    A fact has a ``value`` or a ``text``; ``kernel`` is None for one of the whole run. Facts of one ``basis`` can be
    compared: counters by the same expression, shapes of launches that differ by the same number of launches.
    """
    asked = {"runs": list(run_ids), "kernels": list(kernels), "counters": list(counters)}
    found: list[Fact] = []
    if run_ids:
        with reading(engine) as connection:
            found = [*_run_facts(connection, asked), *_kernel_facts(connection, asked)]
    return pd.DataFrame(found, columns=list(COLUMNS)).astype({"value": "float64"})


def time_by_kernel(engine: Engine, run_ids: Sequence[int]) -> pd.DataFrame:
    """Return the time of every kernel of runs: run_id, kernel, total_ns."""
    with reading(engine) as connection:
        return pd.DataFrame(_rows(connection, _KERNELS, {"runs": list(run_ids)}),
                            columns=["run_id", "kernel", "total_ns"])  # fmt: skip


def commits_of_runs(engine: Engine, run_ids: Sequence[int]) -> dict[int, str]:
    """Return the commits that runs name."""
    query = "SELECT run_id, commit_id FROM v1_runs WHERE run_id IN :runs AND commit_id IS NOT NULL"
    with reading(engine) as connection:
        return {int(row["run_id"]): str(row["commit_id"]) for row in _rows(connection, query, {"runs": list(run_ids)})}


def names_of_runs(engine: Engine, run_ids: Sequence[int]) -> dict[int, str]:
    """Return the names of runs; one that was deleted has none."""
    query = "SELECT run_id, name FROM v1_runs WHERE run_id IN :runs"
    with reading(engine) as connection:
        return {int(row["run_id"]): str(row["name"]) for row in _rows(connection, query, {"runs": list(run_ids)})}


def _rows(connection: Connection, query: str, asked: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    own = {name: values for name, values in asked.items() if f":{name}" in query}
    prepared = text(query).bindparams(*(bindparam(name, expanding=True) for name in own))
    return dicts_of(connection.execute(prepared, own))


def _run_facts(connection: Connection, asked: Mapping[str, Any]) -> Iterator[Fact]:
    for row in _rows(connection, _RUNS, asked):
        run_id = int(row["run_id"])
        yield from ((run_id, None, name, "", None, row[name]) for name in ("device", "host") if row[name])
        for key, value in json.loads(row["tags"] or "{}").items():
            yield run_id, None, key if key in TAG_FACTS else f"tag:{key}", "", None, value
    told: dict[tuple[int, str, str], str] = {}
    for row in _rows(connection, _FILES, asked):
        if row["tool"] and row["tool_version"]:
            told[int(row["run_id"]), "tool_version", row["tool"]] = f"{row['tool']} {row['tool_version']}"
        for key, value in json.loads(row["facts"] or "{}").items():
            if key in FILE_FACTS and value:
                told.setdefault((int(row["run_id"]), FILE_FACTS[key], ""), str(value))
    yield from ((run_id, None, fact, basis, None, value) for (run_id, fact, basis), value in told.items())
    for row in _rows(connection, _COPIES, asked):
        yield int(row["run_id"]), None, f"copied:{row['kind']}", "", float(row["value"]), None
    for row in _rows(connection, _POWER, asked):
        yield int(row["run_id"]), None, row["fact"], "", float(row["value"]), None


def _kernel_facts(connection: Connection, asked: Mapping[str, Any]) -> Iterator[Fact]:
    if not asked["kernels"]:
        return
    for row in _rows(connection, _SHAPES, asked):
        run_id, kernel, launches = int(row["run_id"]), row["kernel"], int(row["launches"])
        for what in DIMENSIONS:
            ends = [[row[f"{end}_{what}_{axis}"] for axis in "xyz"] for end in ("least", "most")]
            if ends[0][0] is not None:
                least, most = ("x".join(str(size or 1) for size in end) for end in ends)
                same = least == most
                said = least if same else f"{least} to {most} in {launches} launches"
                yield run_id, kernel, what, "" if same else str(launches), None, said
        for name in PLAIN:
            least, most = row[f"least_{name}"], row[f"most_{name}"]
            if least is not None:
                yield run_id, kernel, name, "" if least == most else str(launches), (least + most) / 2, None
    for row in _rows(connection, _LAUNCHES, asked):
        yield int(row["run_id"]), row["kernel"], "launches", "", float(row["value"]), None
    for row in _rows(connection, _KERNEL_POWER, asked):
        yield int(row["run_id"]), row["kernel"], "power_w", row["basis"], float(row["value"]), None
    for row in _rows(connection, _COUNTERS, asked):
        yield int(row["run_id"]), row["kernel"], row["counter"], row["basis"], float(row["value"]), None
