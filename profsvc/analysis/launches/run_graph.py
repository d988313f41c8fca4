"""The work-flow graph of a run: its kernels and transfers as nodes, and what follows what on each stream.

Operations come one at a time in the order of their starts, so that memory does not grow with a trace.
"""

import heapq
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from profsvc.formulas.memory_hierarchy.work_flow import wfg_visits

MAX_NODES = 200
"""Nodes that are kept apart, those of most time; what is left is one node more."""
OTHERS = "others"
SCENARIOS = {"as it is": (1.0, 1.0), "kernels in half the time": (0.5, 1.0), "transfers in half the time": (1.0, 0.5)}
"""Factors of the durations of kernels and transfers."""


class Node(NamedTuple):
    """A kernel or a kind of transfer: how often it ran, for how long, and how often an average stream visits it."""

    name: str
    is_transfer: bool
    times: int
    total_ns: float
    visits: float


class Arc(NamedTuple):
    """A node that follows another on a stream; ``share`` of the visits of ``source`` go this way."""

    source: str
    target: str
    times: int
    share: float


class Depth(NamedTuple):
    """The work of a scenario [ns] and its longest chains: of one stream, and in the order that was measured."""

    scenario: str
    work_ns: float
    stream_ns: float
    order_ns: float


class RunGraph(NamedTuple):
    """The graph of a device, and how long its work takes in chains.

    Operations of one stream wait for each other. What other waits there are a trace does not tell: the other chain of
    `Depth` is the longest if each operation waited for all that had ended before it began. ``busy_ns`` is the length of
    the union of all operations, ``kernels_ns`` and ``transfers_ns`` those of each kind.
    """

    nodes: Sequence[Node]
    arcs: Sequence[Arc]
    streams: int
    busy_ns: float
    kernels_ns: float
    transfers_ns: float
    span_ns: float
    depths: Sequence[Depth]


class _Union:
    """The length of the union of intervals that come in the order of their starts."""

    def __init__(self) -> None:
        self.length = 0.0
        self.end = -np.inf

    def add(self, start: float, end: float) -> None:
        self.length += max(0.0, end - max(start, self.end))
        self.end = max(self.end, end)


class GraphSum:
    """Adds up the operations of a device, which must come in the order of their starts."""

    def __init__(self) -> None:
        """Begin without operations."""
        self._counts: Counter[str] = Counter()
        self._times: dict[str, float] = {}
        self._transfers: dict[str, bool] = {}
        self._arcs: Counter[tuple[str | None, str]] = Counter()
        self._last: dict[Hashable, str] = {}
        self._streams: dict[Hashable, list[float]] = {}
        self._unions = (_Union(), _Union(), _Union())
        self._ended = [0.0] * len(SCENARIOS)
        self._longest = [0.0] * len(SCENARIOS)
        self._going_on: list[tuple[float, list[float]]] = []
        self._first: float | None = None

    def add(self, name: str, is_transfer: bool, stream: Hashable, start: float, duration: float) -> None:
        """Add an operation of a stream."""
        end = start + duration
        self._first = start if self._first is None else self._first
        self._counts[name] += 1
        self._times[name] = self._times.get(name, 0.0) + duration
        self._transfers[name] = is_transfer
        self._arcs[self._last.get(stream), name] += 1
        self._last[stream] = name
        self._streams.setdefault(stream, [0.0, 0.0])[is_transfer] += duration
        self._unions[2].add(start, end)
        self._unions[is_transfer].add(start, end)
        while self._going_on and self._going_on[0][0] <= start:
            self._ended = [*map(max, self._ended, heapq.heappop(self._going_on)[1])]
        chain = [before + x[is_transfer] * duration for before, x in zip(self._ended, SCENARIOS.values(), strict=True)]
        self._longest = [*map(max, self._longest, chain)]
        heapq.heappush(self._going_on, (end, chain))

    def result(self) -> RunGraph | None:
        """Return the graph; None without operations."""
        if self._first is None:
            return None
        kept = heapq.nlargest(MAX_NODES, self._times, key=self._times.__getitem__)
        names = [*kept, *[OTHERS] * (len(self._times) > len(kept))]
        place = {name: number for number, name in enumerate(names, 1)}
        arcs: Counter[tuple[int, int]] = Counter()
        for (source, target), count in self._arcs.items():
            begin = 0 if source is None else place.get(source, len(names))
            arcs[begin, place.get(target, len(names))] += count
        visits = _visits(arcs, len(names) + 1)
        nodes = []
        for name in names:
            own = [name] if name != OTHERS else [other for other in self._times if other not in place]
            nodes.append(
                Node(name, all(self._transfers[one] for one in own), sum(self._counts[one] for one in own),
                     float(sum(self._times[one] for one in own)), visits[place[name]])
            )  # fmt: skip
        found = [
            Arc(names[a - 1], names[b - 1], count, count / nodes[a - 1].times)
            for (a, b), count in arcs.most_common()
            if a
        ]
        kernels, transfers, busy = (one.length for one in self._unions)
        span = self._unions[2].end - self._first
        return RunGraph(nodes, found, len(self._streams), busy, kernels, transfers, span, self._depths())

    def _depths(self) -> Sequence[Depth]:
        found = []
        for (name, (kernels, transfers)), order in zip(SCENARIOS.items(), self._longest, strict=True):
            each = [kernels * own[0] + transfers * own[1] for own in self._streams.values()]
            found.append(Depth(name, sum(each), max(each), order))
        return found


def _visits(arcs: Mapping[tuple[int, int], int], nodes: int) -> Sequence[float]:
    """Return how often an average stream visits each node, the entry first: the solution of the graph.

    A stream that ends with a node leaves it by no arc, so the shares of a node may add up to less than 1.
    """
    pairs = np.array([*arcs], dtype=np.intp).reshape(-1, 2)
    count = np.array([*arcs.values()], dtype=np.float64)
    entered = np.bincount(pairs[:, 1], count, minlength=nodes)
    entered[0] = count[pairs[:, 0] == 0].sum()
    found = wfg_visits(pairs[:, 0], pairs[:, 1], count / entered[pairs[:, 0]], nodes)
    return [float(x) for x in found.value]
