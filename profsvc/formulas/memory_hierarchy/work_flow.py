"""The work-flow graph: the control flow of a kernel as an average warp runs it, with the uses of what it loads."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from profsvc.formulas.numerics.arrays import Array, Bools, Mask, arrays, floats, is_implausible, mask
from profsvc.formulas.numerics.flags import Flag

ENTRY, EXIT, COMPUTE, GLOBAL, SHARED, BARRIER = range(6)
ISSUE, LATENCY, BANDWIDTH = range(3)


class Graph(NamedTuple):
    """Nodes of a kernel, transitions between them, and loads with their uses; numbers of nodes count from 0.

    ``transactions`` of global and ``bank_degree`` of shared memory, ``cycles`` a warp loses at a barrier. ``prob`` is
    the share of the warps at ``src`` that go on to ``dst``; where a warp parts, both count and exceed 1 together.
    """

    kind: ArrayLike
    n_insts: ArrayLike
    src: ArrayLike
    dst: ArrayLike
    prob: ArrayLike
    load: ArrayLike = ()
    use: ArrayLike = ()
    transactions: ArrayLike = 1.0
    bank_degree: ArrayLike = 1.0
    cycles: ArrayLike = 0.0


class Visits(NamedTuple):
    """Times an average warp visits each node."""

    value: Array
    flags: Mask


class Costs(NamedTuple):
    """Cycles of a visit of each node: to issue, of which bank conflicts, and of waiting for earlier instructions."""

    issue: Array
    conflicts: Array
    gap: Array
    flags: Mask


class WorkFlow(NamedTuple):
    """Result of `wfg_evaluate`; ``stalls`` (data, structural, control) a warp, on the last axis."""

    T_1: Array
    T_W: Array
    bound: NDArray[np.int8]
    stalls: Array
    balance: Array
    flags: Mask


def wfg_visits(src: ArrayLike, dst: ArrayLike, prob: ArrayLike, nodes: int, entry: int = 0) -> Visits:
    r"""Times an average warp visits each node.

    .. math:: v = e_{entry} + P^T v

    A loop of k trips goes back with probability (k - 1)/k.

    Source: [Kim2012] section 4.2.2, after [Baghsorkhi2010]; the equation is ours.

    Args:
        src: Node that each transition leaves.
        dst: Node it goes to.
        prob: Share of the warps that take it [1].
        nodes: Nodes [count].
        entry: Node where warps start.

    Returns: Visits [count], one a node.

    Range: 0 or more. A loop that no warp leaves: NaN, ZERO_DENOM. A share that is negative, NaN or inf: NaN,
    INPUT_SUSPECT, of all; above 1: the flag alone.

    Errors: TypeError for a wrong dtype, ValueError for arcs of different length or nodes that are not there.

    A loop of four trips:

    >>> wfg_visits([0, 1, 1], [1, 1, 2], [1, 0.75, 0.25], 3).value.tolist()
    [1.0, 4.0, 1.0]
    """
    a, b = _nodes("src", src, nodes), _nodes("dst", dst, nodes)
    (p,) = floats(prob=np.atleast_1d(prob))
    if not a.shape == b.shape == p.shape or not 0 <= entry < nodes:
        raise ValueError(f"src {a.shape}, dst {b.shape}, prob {p.shape}, entry {entry}; allowed: one length, a node")
    bad = bool(is_implausible(p).any())
    system = np.eye(nodes)
    np.subtract.at(system, (b, a), np.where(is_implausible(p), 0.0, p))
    value = np.full(nodes, np.nan)
    # Nodes that cannot be reached may go in circles; they are not visited.
    reached = _reached(a, b, p, nodes, entry)
    inner = np.ix_(reached, reached)
    start = np.eye(nodes)[entry][reached]
    if np.linalg.cond(system[inner]) < 1e12:
        value = np.zeros(nodes)
        value[reached] = np.linalg.solve(system[inner], start)
    endless = bool(np.isnan(value).any() or (value < -1e-9).any())
    value = np.full(nodes, np.nan) if bad or endless else np.maximum(value, 0.0)
    flags = mask(
        (Flag.INPUT_SUSPECT, np.full(nodes, bad or bool((p > 1).any()))), (Flag.ZERO_DENOM, endless and not bad)
    )
    return Visits(*arrays(value, flags))


def _nodes(name: str, given: ArrayLike, nodes: int) -> NDArray[np.intp]:
    array: NDArray[Any] = np.atleast_1d(np.asarray(given))
    if array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"{name} has dtype {array.dtype}; allowed: integers")
    if array.size and not (array.min() >= 0 and array.max() < nodes):
        raise ValueError(f"{name} holds {array.min()} to {array.max()}; allowed: 0 to {nodes - 1}")
    return array.astype(np.intp)


def _reached(a: NDArray[np.intp], b: NDArray[np.intp], p: Array, nodes: int, entry: int) -> NDArray[np.intp]:
    there: Bools = np.arange(nodes) == entry
    for _ in range(nodes):
        there[b[there[a] & (p > 0)]] = True
    return np.flatnonzero(there)


def wfg_costs(graph: Graph, warps: ArrayLike, issue: float = 1.0, pipe_latency: float = 0.0, ilp: float = 1.0) -> Costs:
    r"""Cycles of a visit of each node.

    .. math:: issue\, n, \qquad issue\, n\, transactions, \qquad issue\, n\, degree, \qquad
              gap = \frac{n}{ILP} \max(0, latency - issue \cdot ILP \cdot W)

    Source: [Kim2012] section 4.2.2, whose graph is specialised by the numbers of the machine; the equations are ours.

    Args:
        graph: Graph.
        warps: Warps resident on an SM, W; its shape precedes that of the nodes in ``gap`` [count].
        issue: Cycles to issue an instruction of a warp [cycles].
        pipe_latency: Latency of an instruction of computation [cycles].
        ilp: Instructions of a warp that do not need each other [1].

    Returns: Costs [cycles]; the gap is once for all resident warps, which fill it together.

    Range: 0 or more. A number that is negative, NaN or inf: NaN, INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    >>> graph = Graph([ENTRY, COMPUTE, SHARED, EXIT], [0, 10, 1, 0], [0, 1, 2], [1, 2, 3], [1, 1, 1], bank_degree=4)
    >>> costs = wfg_costs(graph, warps=2, pipe_latency=8)
    >>> costs.issue.tolist(), costs.conflicts.tolist(), costs.gap.tolist()
    ([0.0, 10.0, 4.0, 0.0], [0.0, 0.0, 3.0, 0.0], [0.0, 60.0, 0.0, 0.0])
    """
    graph = Graph(*graph)
    k, n, tr, deg, at = floats(
        kind=graph.kind, n_insts=graph.n_insts, transactions=graph.transactions, bank_degree=graph.bank_degree,
        cycles=graph.cycles,
    )  # fmt: skip
    W, c, lat, i = (x[..., np.newaxis] for x in floats(warps=warps, issue=issue, pipe_latency=pipe_latency, ilp=ilp))
    bad = is_implausible(k, n, tr, deg, at) | is_implausible(W, c, lat, i) | (i == 0)
    with np.errstate(all="ignore"):
        times = np.select([k == GLOBAL, k == SHARED, (k == ENTRY) | (k == EXIT)], [tr, deg, np.zeros_like(n)], 1.0)
        own = c * n * times + np.where(k == BARRIER, at, 0.0)
        conflicts = np.where(k == SHARED, c * n * (deg - 1), 0.0)
        gap = np.where(k == COMPUTE, n / i * np.maximum(0.0, lat - c * i * W), 0.0)
    one = bad.any(axis=tuple(range(bad.ndim - 1)))
    flat = (x.reshape(-1, n.size)[0] if x.size else np.zeros(n.size) for x in (own, conflicts))
    known = (np.where(one, np.nan, x) for x in flat)
    return Costs(*arrays(*known, np.where(bad, np.nan, gap), mask((Flag.INPUT_SUSPECT, bad))))


def wfg_evaluate(
    graph: Graph,
    warps: ArrayLike,
    memory_latency: float,
    bytes_per_cycle: float,
    transaction_bytes: float = 128.0,
    issue: float = 1.0,
    pipe_latency: float = 0.0,
    ilp: float = 1.0,
) -> WorkFlow:
    r"""Cycles of one warp alone and of all resident warps of an SM, and which of three bounds sets them.

    .. math:: T_1 = \sum v_n c_n + \sum v_u s_u, \qquad
              T_W = \max\Bigl(W \sum v_n c_n + \sum v_n g_n,\; T_1,\; \frac{W\, bytes}{B}\Bigr)

    with visits v, cycles to issue c, gaps g, and at each use u of a load the part s of the latency that the way from
    the load does not cover; of several loads the longest.

    Source: [Kim2012] sections 4.2.1 and 4.2.2, after [Baghsorkhi2010]; the equations are ours.

    Args:
        graph: Graph, with one node of kind ENTRY.
        warps: Warps resident on an SM [count].
        memory_latency: Latency of a load from global memory [cycles].
        bytes_per_cycle: Bandwidth of an SM, of its clock [bytes/cycle].
        transaction_bytes: Bytes of a transaction [bytes].
        issue: As in `wfg_costs`.
        pipe_latency: As in `wfg_costs`.
        ilp: As in `wfg_costs`.

    Returns: WorkFlow, of the shape of ``warps``; ``bound`` is ISSUE, LATENCY or BANDWIDTH, -1 where not known.
    ``stalls`` are cycles of a warp by data (gaps and uses), structure (bank conflicts) and control (paths of a warp
    that parts); ``balance`` is computation over memory time, 1 where a kernel is balanced.

    Range: T_W is at least T_1, and rises with the warps. No global memory: balance inf. No
    warps, no bandwidth, or a loop without an end: NaN, ZERO_DENOM. A number that is negative, NaN or inf: NaN,
    INPUT_SUSPECT.

    Errors: those of `wfg_visits` and `wfg_costs`; ValueError for another number of entries.

    A load of 100 cycles and ten instructions that need it, issued by 1, 8 and 20 warps:

    >>> graph = Graph([ENTRY, GLOBAL, COMPUTE, EXIT], [0, 1, 9, 0], [0, 1, 2], [1, 2, 3], [1, 1, 1], [1], [2])
    >>> flow = wfg_evaluate(graph, [1, 8, 20], 100.0, 128.0)
    >>> flow.T_W.tolist(), flow.bound.tolist()
    ([110.0, 110.0, 200.0], [1, 1, 0])
    """
    graph = Graph(*graph)
    kind = np.atleast_1d(np.asarray(graph.kind))
    entries = np.flatnonzero(kind == ENTRY)
    if entries.size != 1:
        raise ValueError(f"kind holds {entries.size} of ENTRY; allowed: 1")
    visits = wfg_visits(graph.src, graph.dst, graph.prob, kind.size, int(entries[0]))
    together = wfg_visits(graph.src, graph.dst, _joined(graph, kind.size), kind.size, int(entries[0])).value
    W, M, B, size = floats(
        warps=warps, memory_latency=memory_latency, bytes_per_cycle=bytes_per_cycle,
        transaction_bytes=transaction_bytes,
    )  # fmt: skip
    costs, alone = (wfg_costs(graph, w, issue, pipe_latency, ilp) for w in (W, 1.0))
    moved = np.where(kind == GLOBAL, np.asarray(graph.transactions) * np.asarray(graph.n_insts), 0.0)
    v = visits.value
    with np.errstate(all="ignore"):
        wait = _waiting(graph, costs.issue, M, kind.size) @ v
        issued, gaps = v @ costs.issue, costs.gap @ v
        bytes_ = (v @ moved) * size
        bounds = np.stack(
            np.broadcast_arrays(W * issued + gaps, issued + alone.gap @ v + wait, W * bytes_ / B), axis=-1
        )
        computed = bounds[..., ISSUE]
        balance = np.where(bytes_ == 0, np.inf, computed / bounds[..., BANDWIDTH])
        stalls = np.stack(np.broadcast_arrays(gaps + wait, v @ costs.conflicts, (v - together) @ costs.issue), axis=-1)
    bad = is_implausible(W, M, B, size) | np.asarray((costs.flags & Flag.INPUT_SUSPECT).any(axis=-1), dtype=np.bool_)
    bad = bad | bool(np.isnan(v).any() and not (visits.flags & Flag.ZERO_DENOM).any())
    zero = ((W == 0) | (B == 0) | bool((visits.flags & Flag.ZERO_DENOM).any())) & ~bad
    none = bad | zero
    flags = mask((Flag.INPUT_SUSPECT, bad | bool((visits.flags & Flag.INPUT_SUSPECT).any())), (Flag.ZERO_DENOM, zero))
    bound = np.where(none, -1, bounds.argmax(axis=-1)).astype(np.int8)
    T = [np.where(none, np.nan, x) for x in (bounds[..., LATENCY], bounds.max(axis=-1))]
    stalls = np.where(none[..., np.newaxis], np.nan, stalls)
    return WorkFlow(*arrays(*T, bound, stalls, np.where(none, np.nan, balance), flags))


def _joined(graph: Graph, nodes: int) -> Array:
    """Shares of the transitions as if no warp parted: those of a node add up to 1 at most."""
    (p,) = floats(prob=np.atleast_1d(graph.prob))
    total = np.bincount(_nodes("src", graph.src, nodes), p, minlength=nodes)
    return np.asarray(p / np.maximum(1.0, total[_nodes("src", graph.src, nodes)]))


def _waiting(graph: Graph, cost: Array, latency: Array, nodes: int) -> Array:
    """Cycles that each node waits for the loads it uses, on the last axis."""
    load, use = _nodes("load", graph.load, nodes), _nodes("use", graph.use, nodes)
    if load.shape != use.shape:
        raise ValueError(f"load has shape {load.shape}, use {use.shape}; allowed: one length")
    src, dst = _nodes("src", graph.src, nodes), _nodes("dst", graph.dst, nodes)
    taken = np.atleast_1d(np.asarray(graph.prob)) > 0
    covered = np.full(load.size, np.inf)
    for k in range(load.size):
        # From the load on: what lies between it and the use, on the shortest way.
        reach = np.full(nodes, np.inf)
        after = dst[taken & (src == load[k])]
        reach[after] = 0.0
        for _ in range(nodes):
            np.minimum.at(reach, dst[taken], reach[src[taken]] + cost[src[taken]])
        covered[k] = reach[use[k]]
    waits = np.zeros((*latency.shape, nodes))
    for k in range(load.size):
        stall = np.maximum(0.0, latency - covered[k])
        waits[..., use[k]] = np.maximum(waits[..., use[k]], stall)
    return waits
