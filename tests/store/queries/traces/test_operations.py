"""Operations of a trace: kernels and transfers in one order, each once."""

import io
from pathlib import Path

from profsvc import pipeline, store

TRACE = Path(__file__).parents[4] / "fixtures" / "nvprof" / "gpu_trace.csv"


def test_kernels_and_transfers_come_by_their_starts(engine) -> None:
    for name in ("a.csv", "again.csv"):  # the same bytes are one upload
        pipeline.ingest(engine, io.BytesIO(TRACE.read_bytes()), name, store.RunInfo(name="trace"))
    found = [*store.operations(engine, 1)]
    launches, transfers = (store.select(engine, f"v1_{name}", run_id=1) for name in ("launches", "transfers"))
    assert [one.start_ns for one in found] == sorted(row["start_ns"] for row in [*launches, *transfers])
    assert sorted(one.name for one in found if not one.is_transfer) == sorted(row["kernel_short"] for row in launches)
    assert sorted(one.name for one in found if one.is_transfer) == sorted(row["kind"] for row in transfers)
    assert sum(one.duration_ns for one in found) == sum(row["duration_ns"] for row in [*launches, *transfers])
    assert [*store.operations(engine, 2)] == []
