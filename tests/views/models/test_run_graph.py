"""The graph of a run: of a trace, of counters, and where neither is there."""

from pathlib import Path

import pytest

from profsvc import pipeline, store
from profsvc.errors import NotFoundError
from profsvc.reports.text.models.index import answer
from profsvc.views.models import run_graph

TRACE = Path(__file__).parents[3] / "fixtures" / "nvprof" / "gpu_trace.csv"


def test_a_trace_has_nodes_and_arcs(engine) -> None:
    with TRACE.open("rb") as stream:
        pipeline.ingest(engine, stream, TRACE.name, store.RunInfo(name="trace"))
    launches, transfers = (len(store.select(engine, f"v1_{name}", run_id=1)) for name in ("launches", "transfers"))
    nodes = run_graph.run_graph(engine, "trace")
    times = {kind: sum(row["times"] for row in nodes["rows"] if row["kind"] == kind) for kind in ("kernel", "transfer")}
    assert times == {"kernel": launches, "transfer": transfers}
    assert sum(row["share"] for row in nodes["rows"]) == pytest.approx(1)
    arcs = run_graph.run_graph(engine, "trace", "arcs")["rows"]
    streams = len({row["stream"] for row in store.select(engine, "v1_launches", run_id=1)})
    assert 0 < sum(row["times"] for row in arcs) <= launches + transfers - streams
    assert "available parallelism" in answer(nodes)


def test_average_warps_of_real_kernels_stand_beside_the_measured_time(demo) -> None:
    view = run_graph.run_graph(demo, "h200", "warps", None)
    assert len(view["rows"]) == 34
    assert all(row["ratio"] == pytest.approx(row["predicted_us"] / row["measured_us"]) for row in view["rows"])
    assert {row["bound"] for row in view["rows"]} == {"issue", "latency", "bandwidth"}
    assert any("off by a factor of 1.19 in the median and 3.27 at worst, over 34 launches" in n for n in view["notes"])
    few = run_graph.run_graph(demo, "h200", "warps", 3)
    assert "only the longest 3 launches" in few["notes"]


def test_what_is_not_there_is_said(engine, demo) -> None:
    with pytest.raises(NotFoundError, match="has no kernels or transfers with start and duration"):
        run_graph.run_graph(demo, "h200")
    with pytest.raises(NotFoundError, match="no part of the graph named 'node'; did you mean 'nodes'"):
        run_graph.run_graph(demo, "h200", "node")
    with TRACE.open("rb") as stream:
        pipeline.ingest(engine, stream, TRACE.name, store.RunInfo(name="trace"))
    view = run_graph.run_graph(engine, "trace", "warps")
    assert all(row["predicted_us"] is None for row in view["rows"])
    assert any("their exports lack: " in note for note in view["notes"])
