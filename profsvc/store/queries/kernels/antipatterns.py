"""What anti-parallel patterns cost the kernels of a run, and the instructions that tell of its loops."""

from typing import Any

from profsvc.store.connection.sql import Engine, dicts_of, text
from profsvc.store.connection.transactions import reading

_LOST = text("""
    SELECT m.quantity AS pattern, l.kernel_short, count(m.value) AS known, count(*) AS launches,
           sum(l.duration_ns) AS total_ns,
           sum(CASE WHEN m.value IS NOT NULL THEN l.duration_ns END) AS known_ns,
           sum(m.value * l.duration_ns) AS lost_ns, min(m.reason) AS reason
    FROM v1_models m JOIN v1_launches l ON l.launch_id = m.launch_id
    WHERE m.run_id = :run_id AND m.model = 'antiparallel'
    GROUP BY m.quantity, l.kernel_short
""")
_SAVED = text("""
    SELECT q.cause, sum(t.saving_ns) AS saving_ns
    FROM runs r JOIN cause_totals t ON t.run_id = r.run_id AND t.version_id = r.version_id
    JOIN cause_names q ON q.cause_id = t.cause_id
    WHERE r.run_id = :run_id GROUP BY q.cause
""")
_INSTRUCTIONS = text("""
    SELECT address, sass, instructions, thread_instructions FROM v1_source_lines
    WHERE run_id = :run_id AND launch_id = :launch_id AND kind = 'instruction' AND repeated = 0
      AND instructions > 0
    ORDER BY line_id
""")


def lost_of_kernels(engine: Engine, run_id: int) -> list[dict[str, Any]]:
    """Return per pattern and kernel of a run: launches, their time, and the sum of lost share x time."""
    with reading(engine) as connection:
        return dicts_of(connection.execute(_LOST, {"run_id": run_id}))


def saved_by_cause(engine: Engine, run_id: int) -> dict[str, float]:
    """Return the time that removing each cause would save over all launches of a run."""
    with reading(engine) as connection:
        return {row.cause: float(row.saving_ns or 0.0) for row in connection.execute(_SAVED, {"run_id": run_id})}


def executed_instructions(engine: Engine, run_id: int, launch_id: int) -> list[dict[str, Any]]:
    """Return the instructions of a launch that its source page counts, each once."""
    with reading(engine) as connection:
        values = {"run_id": run_id, "launch_id": launch_id}
        return dicts_of(connection.execute(_INSTRUCTIONS, values))
