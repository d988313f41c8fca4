"""A run as a trace for Perfetto."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

from profsvc import store
from profsvc.errors import NotFoundError
from profsvc.reports.perfetto import Writer, Written

if TYPE_CHECKING:
    from sqlalchemy import Engine


@store.snapshot
def write_perfetto(engine: "Engine", run_name: str | int, stream: BinaryIO) -> dict[str, Any]:
    """Write the kernels, copies, API calls, ranges and sensor readings of a run as a trace; return what it contains.

    Readings are those between the first start and the last end of the events. Times are UTC if that of each file is
    known. ``untimed`` are events without a start,
    which no trace can show. Durations are rounded to whole nanoseconds.
    """
    run_id = store.find_run(engine, run_name)
    store.require_rows_of(engine, run_id, "a trace consists of")
    untimed = {kind: store.untimed_events(engine, run_id, kind) for kind in store.EVENT_KINDS}
    recordings = store.recordings(engine, run_id)
    titles = store.titles_of_recordings(recordings or [])
    writer, span = Writer(stream), [2**63, 0]

    def events_of(kind: str) -> Iterator[tuple[Any, ...]]:
        """Yield the events of a kind, recording by recording in UTC where it is known."""
        for one in [None] if recordings is None else recordings:
            begin_ns, number = (0, None) if one is None else (one.begin_ns, one.upload_id)
            for lane, thread, name, start_ns, duration_ns, argument in store.trace_events(engine, run_id, kind, number):
                begin = start_ns + begin_ns
                span[0] = min(span[0], begin)
                span[1] = max(span[1], begin + round(duration_ns or 0))
                yield f"{lane}{titles[one] if one else ''}", thread, name, begin, duration_ns, argument

    written: dict[str, Written] = {kind: writer.events(kind, events_of(kind)) for kind in store.EVENT_KINDS}
    if not any(one.events for one in written.values()):
        raise NotFoundError(
            f"run {run_name} has no event with a start time; upload a trace of it (nsys, nvprof, PyTorch or rocprof)"
        )
    readings = writer.samples(store.samples_between(engine, run_id, span[0], span[1]))
    return {"run_id": run_id, "written": written, "untimed": untimed, "readings": readings}
