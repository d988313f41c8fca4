"""Perfetto's trace processor reads an export as the store has it: as many events, as long, by name."""

import io

import pytest

from profsvc import pipeline, store
from profsvc.views.traces.export import write_perfetto
from tests.conftest import ROOT
from tests.environment.trace_processor import trace_processor

pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")


@pytest.mark.parametrize("trace", ["gpu_trace.csv", "mixed_traces_old.csv"])
def test_the_trace_processor_reads_as_many_events_and_as_long(engine, chromium, trace):
    file = ROOT / "fixtures" / "nvprof" / trace
    with file.open("rb") as stream:
        pipeline.ingest(engine, stream, file.name, store.RunInfo(name="traced"))
    content = io.BytesIO()
    written = write_perfetto(engine, "traced", content)["written"]
    with trace_processor(chromium) as processor:
        processor.load(content.getvalue())
        found = processor.query("SELECT count(*), sum(dur) FROM slice")
        names = processor.query("SELECT DISTINCT name FROM slice")
        damaged = processor.query("SELECT name FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0")
    events = [one for one in written.values() if one.events]
    assert found == [(sum(one.events for one in events), sum(one.total_ns for one in events))]
    kernels = {row["kernel_short"] for row in store.select(engine, "v1_launches")}
    assert kernels <= {name for (name,) in names}
    assert damaged == []
