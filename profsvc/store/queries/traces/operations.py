"""Kernels and transfers of a run in the order of their starts."""

from collections.abc import Iterator
from typing import NamedTuple

from profsvc.store.connection.sql import Engine
from profsvc.store.queries.traces.timelines import chunks


class Operation(NamedTuple):
    """A kernel or a transfer of a trace, with the device and stream that it ran on."""

    upload_id: int
    process_id: int | None
    device_index: int | None
    context: int | None
    stream: int | None
    is_transfer: bool
    name: str
    start_ns: int
    duration_ns: float


_COLUMNS = "upload_id, process_id, device_index, context, stream"
_TIMED = "run_id = :run_id AND start_ns IS NOT NULL AND duration_ns IS NOT NULL"


def operations(engine: Engine, run_id: int) -> Iterator[Operation]:
    """Yield the kernels and transfers that have a start and a duration, each once, in the order of their starts."""
    query = (
        f"SELECT {_COLUMNS}, 0 AS is_transfer, kernel_short AS name, start_ns, duration_ns FROM v1_launches"
        f" WHERE {_TIMED} UNION ALL SELECT {_COLUMNS}, 1, kind, start_ns, duration_ns FROM v1_transfers WHERE {_TIMED}"
        " ORDER BY start_ns"
    )
    for rows in chunks(engine, query, run_id=run_id):
        for row in rows:
            one = Operation(*row)
            yield one._replace(is_transfer=bool(one.is_transfer), name=one.name or "")
