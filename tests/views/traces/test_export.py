"""A trace for Perfetto holds the events of the store: as many, as long, in their streams."""

import io
from collections import defaultdict

import pytest

from profsvc import pipeline, store
from profsvc.errors import NotFoundError
from profsvc.reports.perfetto import Writer, report
from profsvc.views.traces.export import write_perfetto
from tests.conftest import ROOT
from tests.views.traces.test_timeline import BEGIN_NS, ingest, power_log, session

schema = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
TRACE = ROOT / "fixtures" / "nvprof" / "gpu_trace.csv"


def slices(content):
    """Return name, start and duration of the slices of each track, as Perfetto pairs them, and counters."""
    trace = schema.Trace.FromString(content)
    tracks = {p.track_descriptor.uuid: p.track_descriptor.name for p in trace.packet if p.HasField("track_descriptor")}
    names, events = {}, []
    for packet in trace.packet:
        names |= {one.iid: one.name for one in packet.interned_data.event_names}
        if packet.HasField("track_event"):
            events.append((packet.timestamp, packet.track_event))
    stacks, found, counters = defaultdict(list), [], []
    for time, event in sorted(events, key=lambda one: one[0]):
        if event.type == schema.TrackEvent.TYPE_SLICE_BEGIN:
            stacks[event.track_uuid].append((names[event.name_iid], time))
        elif event.type == schema.TrackEvent.TYPE_SLICE_END:
            name, start = stacks[event.track_uuid].pop()
            found.append((tracks[event.track_uuid], name, start, time - start))
        else:
            counters.append((tracks[event.track_uuid], time, event.double_counter_value))
    assert not any(stacks.values())
    return found, counters


def test_a_trace_has_the_events_of_the_store(engine):
    with TRACE.open("rb") as stream:
        pipeline.ingest(engine, stream, TRACE.name, store.RunInfo(name="traced"))
    content = io.BytesIO()
    view = write_perfetto(engine, "traced", content)
    found, _ = slices(content.getvalue())
    for kind, name in (("kernels", "v1_launches"), ("transfers", "v1_transfers")):
        rows = [row for row in store.select(engine, name) if row["start_ns"] is not None]
        own = [one for one in found if one[0].endswith({"kernels": "kernels", "transfers": "copies"}[kind])]
        assert len(own) == len(rows) == view["written"][kind].events > 0
        assert sum(one[3] for one in own) == sum(round(row["duration_ns"]) for row in rows)
        assert sum(one[3] for one in own) == view["written"][kind].total_ns
        assert {one[1] for one in own} == {row["kernel_short" if kind == "kernels" else "kind"] for row in rows}
    assert view["untimed"]["kernels"] == 0
    assert report(view["written"], view["untimed"], view["readings"])[0].endswith("ns in all")


def test_events_that_overlap_stand_on_several_tracks():
    content = io.BytesIO()
    rows = [
        (0, 7, "a", 0, 10.0, None),
        (0, 7, "b", 2, 3.0, None),
        (0, 7, "c", 5, 9.0, None),
        (0, None, "d", 20, None, 1),
    ]
    written = Writer(content).events("kernels", rows)
    found, _ = slices(content.getvalue())
    assert written == (4, 22)
    assert sorted((name, start, length) for _, name, start, length in found) == [
        ("a", 0, 10), ("b", 2, 3), ("c", 5, 9), ("d", 20, 0),
    ]  # fmt: skip


def test_ranks_stand_where_they_began_with_the_power_of_that_time(engine, tmp_path):
    for rank in (0, 1):
        ingest(engine, session(tmp_path, f"rank{rank}", BEGIN_NS + rank * 2_000_000, rank))
    ingest(engine, power_log(tmp_path, BEGIN_NS))
    content = io.BytesIO()
    view = write_perfetto(engine, "ranks", content)
    found, counters = slices(content.getvalue())
    starts = sorted(start for _, name, start, _ in found if name == "step")
    assert starts[1] - starts[0] == 2_000_000
    assert starts[0] >= BEGIN_NS
    assert len(counters) == view["readings"] > 3


def test_readings_are_counters():
    content = io.BytesIO()
    assert Writer(content).samples([(1, "power.draw", "W", 5, 300.5), (1, "power.draw", "W", 6, 301.0)]) == 2
    assert slices(content.getvalue())[1] == [("power.draw (W)", 5, 300.5), ("power.draw (W)", 6, 301.0)]


def test_a_run_without_times_says_what_to_upload(demo):
    with pytest.raises(NotFoundError, match="upload a trace"):
        write_perfetto(demo, "h200", io.BytesIO())
