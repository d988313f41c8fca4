"""What was simulated of the memory traces of a run."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from profsvc.store.connection.sql import Engine
from profsvc.store.queries.rows import select


class StoredTrace(NamedTuple):
    """A trace as ``v1_traces`` has it, and its draws as ``v1_trace_draws`` has them."""

    about: Mapping[str, Any]
    draws: Sequence[Mapping[str, Any]]


def traces_of_run(engine: Engine, run_id: int) -> list[StoredTrace]:
    """Return the traces of a run that were simulated, or refused, in the order of their files."""
    found = sorted(select(engine, "v1_traces", run_id=run_id), key=lambda row: int(row["upload_id"]))
    return [
        StoredTrace(
            one,
            sorted(select(engine, "v1_trace_draws", upload_id=one["upload_id"]), key=lambda row: int(row["draw"])),
        )
        for one in found
    ]
