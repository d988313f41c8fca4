"""The series of the nightly report: one value per run for every kernel, power window and file, in a few queries.

A duration is the median over the launches of a kernel in a file, separately for each tool, because profilers may lock
the clocks and tracers do not. If several files of a run contain the kernel, the file with most launches counts.
Criteria and potential are averages over the launches of the kernel, weighted by time, or those of the kernel average if
a run has no launches of it. The device of a kernel is that of its run.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from profsvc.store.connection.sql import Connection, Engine, bindparam, dicts_of, text
from profsvc.store.connection.transactions import reading
from profsvc.store.schema.contents.run_views import ALL_BRANCHES, BRANCH_SQL

# The tag that says which binary ran; without it the commit does.
BINARY_TAG = "binary"
RUNS_PER_QUERY = 500
"""Runs whose numbers stand in one query."""
ROWS_AT_ONCE = 10_000

# Numbers are given before a file is read, so one that takes long comes after files with higher numbers.
_NEW = "(upload_id > :since OR upload_id IN :late)"
_RUNS = f"""
    SELECT run_id, project, run, device, branch, build, at, version, is_new FROM (
      SELECT s.*, row_number() OVER (PARTITION BY project, device, branch ORDER BY at DESC, run_id DESC) AS place,
             max(is_new) OVER (PARTITION BY project, device, branch) AS some_new
      FROM (
        SELECT r.run_id, r.project, r.name AS run, coalesce(v.device, v.devices) AS device, {BRANCH_SQL} AS branch,
               (SELECT x.text FROM texts x WHERE x.text_id = r.version_id) AS version,
               coalesce((SELECT t.value FROM run_tags t WHERE t.run_id = r.run_id AND t.key = :binary), r.commit_id)
                 AS build,
               coalesce(r.started_at, u.received_at) AS at, u.is_new
        FROM runs r JOIN v1_runs v ON v.run_id = r.run_id
        JOIN (SELECT run_id, min(received_at) AS received_at, max(CASE WHEN {_NEW} THEN 1 ELSE 0 END) AS is_new
              FROM uploads WHERE received_at < :until GROUP BY run_id) u ON u.run_id = r.run_id
        WHERE :project IN ('', r.project)
      ) s
    ) t WHERE place <= :most AND some_new = 1 AND :branch IN ('{ALL_BRANCHES}', coalesce(branch, ''))
    ORDER BY at, run_id
"""
_FILES = "SELECT upload_id, run_id, sha256 FROM uploads WHERE run_id IN :runs AND received_at < :until"
_OF_RUNS = {
    "durations": """
        SELECT u.run_id, k.kernel, k.kernel_short, u.format, t.p50_ns AS value
        FROM uploads u JOIN kernel_totals t ON t.upload_id = u.upload_id JOIN kernels k ON k.kernel_id = t.kernel_id
        WHERE u.run_id IN :runs AND u.same_as IS NULL AND t.timed > 0
        ORDER BY u.run_id, k.kernel, t.timed DESC, u.upload_id
    """,
    "means": """
        SELECT s.run_id, s.kernel, s.kernel_short, sum(s.total_ns) / sum(s.calls) AS value
        FROM v1_kernel_summaries s WHERE s.run_id IN :runs AND s.category = 'kernel' AND s.calls > 0
        GROUP BY s.run_id, s.kernel, s.kernel_short ORDER BY s.run_id, s.kernel
    """,
    "criteria": """
        SELECT c.run_id, k.kernel, k.kernel_short, x.text AS criterion,
               sum(c.value * l.duration_ns) / sum(l.duration_ns) AS value, 0 AS place
        FROM runs r JOIN criteria c ON c.run_id = r.run_id AND c.version_id = r.version_id
        JOIN launches l ON l.launch_id = c.launch_id JOIN shapes h ON h.shape_id = l.shape_id
        JOIN kernels k ON k.kernel_id = h.kernel_id JOIN texts x ON x.text_id = c.criterion_id
        WHERE r.run_id IN :runs AND c.value IS NOT NULL AND l.duration_ns > 0
        GROUP BY c.run_id, k.kernel, k.kernel_short, x.text
        UNION ALL
        SELECT v.run_id, k.kernel, k.kernel_short, x.text, v.value, 0
        FROM archived_values v JOIN kernels k ON k.kernel_id = v.kernel_id
        JOIN texts x ON x.text_id = v.criterion_id
        WHERE v.run_id IN :runs AND v.value IS NOT NULL
        UNION ALL
        SELECT c.run_id, k.kernel, k.kernel_short, x.text, c.value, 1
        FROM runs r JOIN criteria c ON c.run_id = r.run_id AND c.version_id = r.version_id AND c.launch_id = 0
        JOIN kernels k ON k.kernel_id = c.kernel_id JOIN texts x ON x.text_id = c.criterion_id
        WHERE r.run_id IN :runs AND c.value IS NOT NULL
        ORDER BY 1, 2, 4, 6
    """,
    "whole": """
        SELECT c.run_id, x.text AS criterion, c.value
        FROM runs r JOIN criteria c ON c.run_id = r.run_id AND c.version_id = r.version_id
        JOIN texts x ON x.text_id = c.criterion_id
        WHERE r.run_id IN :runs AND c.launch_id = 0 AND c.kernel_id = 0 AND c.value IS NOT NULL
        ORDER BY c.run_id, x.text
    """,
    "potential": """
        SELECT p.run_id, k.kernel, k.kernel_short, sum(p.duration_ns) / sum(p.ideal_ns) AS value, 0 AS place
        FROM runs r JOIN potential p ON p.run_id = r.run_id AND p.version_id = r.version_id
        JOIN launches l ON l.launch_id = p.launch_id JOIN shapes h ON h.shape_id = l.shape_id
        JOIN kernels k ON k.kernel_id = h.kernel_id
        WHERE r.run_id IN :runs AND p.speedup IS NOT NULL AND p.ideal_ns > 0
        GROUP BY p.run_id, k.kernel, k.kernel_short
        UNION ALL
        SELECT v.run_id, k.kernel, k.kernel_short, v.value, 0
        FROM archived_values v JOIN kernels k ON k.kernel_id = v.kernel_id
        WHERE v.run_id IN :runs AND v.criterion_id = 0 AND v.value IS NOT NULL
        UNION ALL
        SELECT p.run_id, k.kernel, k.kernel_short, p.speedup, 1
        FROM runs r JOIN potential p ON p.run_id = r.run_id AND p.version_id = r.version_id AND p.launch_id = 0
        JOIN kernels k ON k.kernel_id = p.kernel_id WHERE r.run_id IN :runs AND p.speedup IS NOT NULL
        ORDER BY 1, 2, 5
    """,
    "power": """
        SELECT run_id, "window", kind, source, kernel, launches, sensor, gpu_index, device, temperature_sensor,
               duration_s, mean_power_w, mean_temperature_c, mean_clock_hz, reference_temperature_c,
               coefficient_w_per_c, coefficient_low, coefficient_high, corrected_power_w, corrected_power_low_w,
               corrected_power_high_w, energy_j, corrected_energy_j, corrected_energy_low_j, corrected_energy_high_j,
               reason
        FROM v1_power WHERE run_id IN :runs ORDER BY run_id, item
    """,
    "lines": """
        SELECT run_id, CAST(sum(lines_rejected) AS DOUBLE PRECISION) / sum(lines) AS value FROM uploads
        WHERE run_id IN :runs GROUP BY run_id HAVING sum(lines) > 0 ORDER BY run_id
    """,
    "missing": """
        SELECT c.run_id,
               CAST(sum(CASE WHEN c.value IS NULL THEN 1 ELSE 0 END) AS DOUBLE PRECISION) / count(*) AS value
        FROM runs r JOIN criteria c ON c.run_id = r.run_id AND c.version_id = r.version_id
        WHERE r.run_id IN :runs AND c.launch_id > 0 GROUP BY c.run_id
        UNION ALL
        SELECT v.run_id, v.value FROM archived_values v
        WHERE v.run_id IN :runs AND v.kernel_id = 0 AND v.criterion_id = 0
        ORDER BY 1
    """,
}
_UPLOADS = f"""
    SELECT upload_id, project, u.run_id, r.name AS run, file_name, status, lines, lines_rejected, message
    FROM uploads u JOIN runs r ON r.run_id = u.run_id
    WHERE {_NEW} AND received_at < :until AND :project IN ('', project) ORDER BY upload_id
"""
_NUMBERS = """
    SELECT upload_id FROM uploads u JOIN runs r ON r.run_id = u.run_id
    WHERE upload_id BETWEEN :first AND :last AND (received_at < :until OR :project NOT IN ('', project))
"""
MAX_UPLOADS_BACK = 10_000
"""How many numbers before the newest one a report looks for uploads that took longer than later ones."""
_REFUSED = """
    SELECT refusal_id, project, run, file_name, code, message, refused_at FROM refusals
    WHERE refusal_id > :since AND refused_at < :until AND :project IN ('', project) ORDER BY refusal_id
"""


def nightly_runs(
    engine: Engine, project: str, until: str, since: int, most: int, branch: str | None = ALL_BRANCHES,
    late: Collection[int] = (),
) -> pd.DataFrame:  # fmt: skip
    """Return the newest runs of each history that an upload after ``since``, or one of ``late``, came for, in order of
    time.

    A history is of a project, a device and a branch, which is None for a main one. Columns: run_id, project, run,
    device, branch, build (tag `BINARY_TAG`, else the commit), at, version (of its analysis), is_new (1 if such an
    upload is its own), and repeats: the run of the same history whose files it holds again and no others, else None.
    Uploads from ``until`` (UTC) on do not count; an empty ``project`` is every one. At most ``most`` runs of each
    history.
    """
    values = {"project": project, "until": until, "since": since, "most": most, "binary": BINARY_TAG}
    with reading(engine) as connection:
        result = connection.execute(_with_late(_RUNS), values | {"branch": branch or "", "late": list(late)})
        found = pd.DataFrame(result.all(), columns=list(result.keys()), dtype=object)
        found = found.astype({"run_id": "int64", "is_new": "int64"})
        found["repeats"] = pd.Series(_repeated(connection, found, until), found.index, dtype=object)
    return found


def _repeated(connection: Connection, runs: pd.DataFrame, until: str) -> list[str | None]:
    """Return for each run that run of its history which has all of its files from an earlier upload, if there is one.

    A second measurement hardly has the bytes of the first, so those files were probably measured once.
    """
    run_ids = runs["run_id"].tolist()
    history = dict(zip(run_ids, zip(runs["project"], runs["device"], runs["branch"], strict=True), strict=True))
    names = dict(zip(run_ids, runs["run"], strict=True))
    asked = text(_FILES).bindparams(bindparam("runs", expanding=True))
    first: dict[tuple[Any, str], int] = {}
    holders: dict[int, list[int]] = {}
    files = [
        tuple(row)
        for begin in range(0, len(run_ids), RUNS_PER_QUERY)
        for row in connection.execute(asked, {"runs": run_ids[begin : begin + RUNS_PER_QUERY], "until": until})
    ]
    for _, run_id, sha256 in sorted(files):
        holder = first.setdefault((history[run_id], sha256), run_id)
        holders.setdefault(run_id, []).append(holder)
    return [
        None if run_id in holders[run_id] or len({*holders[run_id]}) > 1 else names[holders[run_id][0]]
        for run_id in run_ids
    ]


def series_of_runs(
    engine: Engine, run_ids: Sequence[int], names: Collection[str] = tuple(_OF_RUNS)
) -> Mapping[str, pd.DataFrame]:
    """Return what is watched of these runs, a frame a kind; see the queries for their columns.

    Of kinds that are not among ``names`` the frames are empty.
    """
    found = {}
    with reading(engine) as connection:
        for name, query in _OF_RUNS.items():
            asked = text(query).bindparams(bindparam("runs", expanding=True))
            wanted = list(run_ids) if name in names else []
            columns: _Columns | None = None
            for begin in range(0, max(len(wanted), 1), RUNS_PER_QUERY):
                result = connection.execute(asked, {"runs": wanted[begin : begin + RUNS_PER_QUERY]})
                columns = columns or _Columns(list(result.keys()))
                for part in result.partitions(ROWS_AT_ONCE):
                    columns.add(part)
            found[name] = columns.frame() if columns else pd.DataFrame()
    return found


class _Codes(dict[str | None, int]):
    """Texts as numbers in the order in which they come; a missing one is -1."""

    def __init__(self) -> None:
        super().__init__({None: -1})

    def __missing__(self, text: str) -> int:
        self[text] = code = len(self) - 1
        return code


class _Columns:
    """Rows as columns, some rows at a time: texts as numbers of equal ones, as each kernel is in every run."""

    def __init__(self, names: list[str]) -> None:
        self.parts: dict[str, list[np.ndarray]] = {name: [] for name in names}
        self.codes: dict[str, _Codes] = {}

    def add(self, rows: Sequence[Any]) -> None:
        """Add rows."""
        for (name, parts), cells in zip(self.parts.items(), zip(*rows, strict=True), strict=True):
            first = next((cell for cell in cells if cell is not None), None)
            if isinstance(first, str):
                codes = self.codes.setdefault(name, _Codes())
                parts.append(np.array([*map(codes.__getitem__, cells)], dtype=np.int32))
            else:
                parts.append(pd.Series(cells, dtype=object if first is None else None).to_numpy())

    def frame(self) -> pd.DataFrame:
        """Return the rows; a column without a value in some of them has NaN there if the others are numbers."""
        return pd.DataFrame({name: self._joined(name) for name in [*self.parts]}, copy=False)

    def _joined(self, name: str) -> "pd.Series[Any]":
        parts = self.parts.pop(name)
        if name in self.codes:
            codes = [np.full(part.size, -1) if part.dtype == object else part for part in parts]
            texts = pd.Index([*self.codes.pop(name)][1:], dtype=object)
            return pd.Series(pd.Categorical.from_codes(np.concatenate(codes), texts))
        if any(part.dtype != object for part in parts):
            parts = [part.astype(np.float64) if part.dtype == object else part for part in parts]
        joined = np.concatenate(parts) if parts else np.empty(0, dtype=object)
        return pd.Series(joined, dtype=joined.dtype)


def uploads_between(
    engine: Engine, project: str, since: int, until: str, late: Collection[int] = ()
) -> list[dict[str, Any]]:
    """Return the uploads after the number ``since``, or among ``late``, and before the time ``until``."""
    with reading(engine) as connection:
        values = {"project": project, "since": since, "until": until, "late": list(late)}
        return dicts_of(connection.execute(_with_late(_UPLOADS), values))


def _with_late(query: str) -> Any:
    return text(query).bindparams(bindparam("late", expanding=True))


def uploads_of_spans(
    engine: Engine, project: str, spans: Sequence[Sequence[int]], until: str
) -> tuple[list[int], list[list[int]]]:
    """Return which numbers of some spans, each a first and a last one, uploads have that a report of a project until
    then looks at, or that are of other projects; and the spans that are left without them.
    """
    if not spans:
        return [], []
    asked = {"first": min(first for first, _ in spans), "last": max(last for _, last in spans)}
    with reading(engine) as connection:
        rows = connection.execute(text(_NUMBERS), asked | {"until": until, "project": project})
        numbers = sorted(int(number) for (number,) in rows)
    there, left = list[int](), list[list[int]]()
    for first, last in spans:
        own = numbers[bisect_left(numbers, first) : bisect_right(numbers, last)]
        there += own
        edges = zip([first - 1, *own], [*own, last + 1], strict=True)
        left += [[before + 1, after - 1] for before, after in edges if after - before > 1]
    return there, left


def refusals_between(engine: Engine, project: str, since: int, until: str) -> list[dict[str, Any]]:
    """Return the files refused after the number ``since`` and before the time ``until``."""
    with reading(engine) as connection:
        values = {"project": project, "since": since, "until": until}
        return dicts_of(connection.execute(text(_REFUSED), values))


def predictions_of_runs(engine: Engine, run_ids: Sequence[int]) -> list[dict[str, Any]]:
    """Return the predictions for changes to these runs, with the achieved speedups."""
    query = text("SELECT * FROM v1_predictions WHERE run_after IN :runs").bindparams(bindparam("runs", expanding=True))
    found: list[dict[str, Any]] = []
    with reading(engine) as connection:
        for begin in range(0, len(run_ids), RUNS_PER_QUERY):
            asked = {"runs": list(run_ids[begin : begin + RUNS_PER_QUERY])}
            found += dicts_of(connection.execute(query, asked))
    return found


def projects(engine: Engine) -> list[str]:
    """Return the names of the projects that have runs."""
    with reading(engine) as connection:
        return list(connection.execute(text("SELECT DISTINCT project FROM runs ORDER BY project")).scalars())
