"""Graphs of operations: visits, shares, and longest chains against a search of all."""

import numpy as np
import pytest

from profsvc.analysis.launches import run_graph
from profsvc.analysis.launches.run_graph import GraphSum

PIPELINE = [("HtoD", True, 0, 10), ("k", False, 10, 30), ("DtoH", True, 40, 5)]


def graph(operations):
    own = GraphSum()
    for name, is_transfer, stream, start, duration in sorted(operations, key=lambda one: one[3]):
        own.add(name, is_transfer, stream, start, duration)
    return own.result()


def test_a_loop_of_one_stream() -> None:
    found = graph(
        [(name, moved, 7, 50 * n + start, length) for n in range(4) for name, moved, start, length in PIPELINE]
    )
    assert {(node.name, node.times, node.total_ns) for node in found.nodes} == {
        ("HtoD", 4, 40), ("k", 4, 120), ("DtoH", 4, 20)
    }  # fmt: skip
    assert [node.visits for node in found.nodes] == pytest.approx([4, 4, 4])
    assert {(arc.source, arc.target): arc.share for arc in found.arcs} == {
        ("HtoD", "k"): 1, ("k", "DtoH"): 1, ("DtoH", "HtoD"): 0.75
    }  # fmt: skip
    assert (found.busy_ns, found.kernels_ns, found.transfers_ns, found.span_ns) == (180, 120, 60, 195)
    assert [(d.work_ns, d.stream_ns, d.order_ns) for d in found.depths] == [(180,) * 3, (120,) * 3, (150,) * 3]


def test_streams_that_overlap() -> None:
    found = graph([("k", False, 1, 0, 100), ("copy", True, 2, 10, 50), ("k", False, 2, 60, 20)])
    first = found.depths[0]
    assert (found.streams, found.busy_ns, found.transfers_ns) == (2, 100, 50)
    assert (first.work_ns, first.stream_ns, first.order_ns) == (170, 100, 100)
    assert {node.name: node.visits for node in found.nodes} == pytest.approx({"k": 1, "copy": 0.5})


def test_chains_are_the_longest_of_all() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        ends = [0.0] * 3
        operations = []
        for _ in range(40):
            stream = int(rng.integers(3))
            start, length = ends[stream] + float(rng.integers(0, 5)), float(rng.integers(0, 9))
            ends[stream] = start + length
            operations.append((f"k{rng.integers(4)}", bool(rng.integers(2)), stream, start, length))
        operations.sort(key=lambda one: one[3])
        longest: list[float] = []
        for n, (*_, start, length) in enumerate(operations):
            before = [longest[m] for m in range(n) if operations[m][3] + operations[m][4] <= start]
            longest.append(length + max(before, default=0.0))
        found = graph(operations)
        first = found.depths[0]
        assert first.order_ns == pytest.approx(max(longest))
        assert first.stream_ns <= first.order_ns <= first.work_ns
        for node in found.nodes:
            assert node.visits == pytest.approx(node.times / found.streams)


def test_many_kernels_keep_those_of_most_time(monkeypatch) -> None:
    monkeypatch.setattr(run_graph, "MAX_NODES", 2)
    found = graph([(f"k{n}", False, 1, 100 * n, 10 + n) for n in range(5)])
    assert [(node.name, node.times, node.total_ns) for node in found.nodes] == [
        ("k4", 1, 14), ("k3", 1, 13), ("others", 3, 33)
    ]  # fmt: skip
    assert sum(arc.times for arc in found.arcs) == 4


def test_no_operation_is_no_graph() -> None:
    assert GraphSum().result() is None
