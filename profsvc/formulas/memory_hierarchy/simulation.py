"""Hit ratios of a memory hierarchy over random orders of the references of its warps."""

import math
from typing import NamedTuple

import numpy as np

from profsvc.formulas.memory_hierarchy.lru import Cached, Ints, Sectors, by_key
from profsvc.formulas.memory_hierarchy.packed_trace import Packed, pack
from profsvc.formulas.memory_hierarchy.placement import set_of
from profsvc.formulas.memory_hierarchy.trace import (
    ALLOCATE,
    AROUND,
    HASHED,
    LOAD,
    MODULO,
    STORE,
    Cache,
    Hierarchy,
    Trace,
    check_sectors,
)
from profsvc.formulas.memory_hierarchy.warp_streams import MAX_STREAMS_AT_ONCE, RATE, UNIFORM, draw, sorted_by, streams
from profsvc.formulas.numerics.arrays import Array, Bools
from profsvc.formulas.numerics.flags import Flag, check_form

MIN_RUNS = 30
MIN_RUNS_OF_LARGE_TRACE = 3
MAX_REFERENCES = 30_000_000
QUANTILES = (0.05, 0.5, 0.95)
LEVELS = ("l1_load", "l1_store", "l2_load", "l2_store")
"""The order of the hit ratios on the first axis."""


class Distribution(NamedTuple):
    """Of each hit ratio, and of what DRAM moves, over the runs; ``reliable`` where the order hardly matters."""

    mean: Array
    sd: Array
    se: Array
    quantiles: Array
    reliable: Bools
    converged: Bools


class Sites(NamedTuple):
    """Each instruction of the source: requests of warps, lines of one, and the mean hit ratios of its lines."""

    site: Ints
    requests: Ints
    lines_per_request: Array
    l1_ratio: Array
    l2_ratio: Array


class HierarchyRuns(NamedTuple):
    """Result of `hierarchy_mc`: ratios of each run in the order of LEVELS, lines DRAM moved, and what was simulated."""

    ratios: Array
    dram_lines: Array
    distribution: Distribution
    sites: Sites
    lines: int
    runs: int
    flags: int


def hierarchy_mc(
    trace: Trace,
    hierarchy: Hierarchy,
    runs: int = MIN_RUNS,
    seed: int = 0,
    order: str = RATE,
    tolerance: float = 0.05,
    budget: int = MAX_REFERENCES,
) -> HierarchyRuns:
    r"""Distribution of the hit ratios of L1 and L2 over random orders of what warps do at the same time.

    Each run draws an order (see `merge_order`), takes the lines of each SM through its L1, and what misses there, with
    stores that go around and atomics, through the L2. Lines of a request are one after another. Where lines have
    sectors, a reference brings in those that it needs, and ratios count sectors. A wide distribution means that no
    order is typical, and that no mean should be trusted.

    What is not known of the caches is drawn as well: where sets are hashed, every second run spreads lines as evenly as
    a hash can, and the others by a random function (see `set_of`); with ``l1_least``, two runs of four have that L1.

    Source: [Kim2012] section 4.2.3, [Baghsorkhi2012]. The source defines neither which orders are valid nor what enters
    L2 in which order: here all of an SM's misses keep the places they had. Requests in flight are not merged and
    nothing is timed, so that ratios are all there is.

    Args:
        trace: References.
        hierarchy: SMs, blocks resident on each, caches. A block without an SM runs on block modulo sms.
        runs: Orders to draw [count].
        seed: Seed of the draws.
        order: ``rate`` or ``uniform``, see `merge_order`.
        tolerance: Width of the middle 90 % of a ratio below which it is reliable; its standard error has converged
            below a tenth of that, after 30 runs [1].
        budget: Lines to simulate over all runs [count]. Above it fewer runs are made, but three at least: the more
            references there are, the less their order matters.

    Returns: HierarchyRuns; ``lines`` of each of ``runs`` orders.

    Range: ratios in [0, 1]; NaN where a level sees no such reference. Nothing at all: NOT_APPLICABLE. One warp
    leaves no order to draw: zero spread. Fewer runs than asked for: EXTRAPOLATED.

    Errors: those of `coalesce`; ValueError for an unknown order or way of stores, for barriers that a warp passes
    backwards, or without an SM, slot, set, way or run.

    Two blocks on one SM read the same line twice:

    >>> trace = Trace([0, 0, 1, 1], 0, [0, 1, 0, 1], [0, 2, 0, 2], [0, 0, 0, 0], LOAD)
    >>> once = hierarchy_mc(trace, Hierarchy(1, 2, Cache(64, 4), Cache(1024, 16)))
    >>> once.distribution.mean[0], float(once.distribution.sd[0]), once.dram_lines.max()
    (np.float64(0.75), 0.0, np.float64(1.0))
    """
    hierarchy = _is_known(hierarchy)
    _check(hierarchy, runs, order)
    packed = pack([Trace(*trace)], hierarchy.line_bytes, sector_bytes=hierarchy.sector_bytes)
    return hierarchy_of(packed, hierarchy, runs, seed, order, tolerance, budget)


def hierarchy_of(
    packed: Packed,
    hierarchy: Hierarchy,
    runs: int = MIN_RUNS,
    seed: int = 0,
    order: str = RATE,
    tolerance: float = 0.05,
    budget: int = MAX_REFERENCES,
) -> HierarchyRuns:
    """Distribution of the hit ratios of L1 and L2 of a trace that came in parts.

    Source: as `hierarchy_mc`, which says what is drawn and simulated.

    Args:
        packed: Result of `pack`, with the ``line_bytes`` and ``sector_bytes`` of the hierarchy.
        hierarchy: As in `hierarchy_mc`, like all that follow.
        runs: Orders to draw [count].
        seed: Seed of the draws.
        order: ``rate`` or ``uniform``; ``uniform`` takes several times the memory.
        tolerance: Width of the middle 90 % of a ratio below which it is reliable [1].
        budget: Lines to simulate over all runs [count].

    Returns: HierarchyRuns. An order takes 16 bytes per line beside the packed trace, and what a million lines need.

    Range: as in `hierarchy_mc`; EXTRAPOLATED also where blocks were left out.

    Errors: those of `hierarchy_mc`.

    >>> part = Trace([0, 0, 1, 1], 0, [0, 1, 0, 1], [0, 2, 0, 2], [0, 0, 0, 0], LOAD)
    >>> float(hierarchy_of(pack([part]), Hierarchy(1, 2, Cache(64, 4), Cache(1024, 16))).ratios[0, 0])
    0.75
    """
    hierarchy = _is_known(hierarchy)
    _check(hierarchy, runs, order)
    n = packed.line.size
    generator = np.random.Generator(np.random.Philox(seed))
    done = max(min(runs, MIN_RUNS_OF_LARGE_TRACE), min(runs, budget // max(1, n)))
    counts = np.zeros((done, 2, 2, 2))  # run, level, load or store, reference or hit
    per_site, dram = np.zeros((4, packed.sites.size)), np.zeros(done)
    if n:
        sm = np.where(packed.sm < 0, packed.block, packed.sm) % hierarchy.sms
        of = streams(packed.starts, n, packed.block, packed.epoch, _slots(packed.block, sm, hierarchy))
        home = np.repeat(sm.astype(np.min_scalar_type(hierarchy.sms)), of.counts)
        for run in range(done):
            at = sorted_by(draw(of, generator, order))
            dram[run] = _one_run(packed, home, at, hierarchy, run, counts[run], per_site)
    ratios, distribution = _distribution(counts, dram, tolerance)
    partly = done < runs or packed.left_out
    flags = Flag.NOT_APPLICABLE if not n else Flag.EXTRAPOLATED if partly else 0
    return HierarchyRuns(ratios, dram, distribution, _sites(packed, per_site), n, done, int(flags))


def _is_known(hierarchy: Hierarchy) -> Hierarchy:
    known = Hierarchy(*hierarchy)
    least = None if known.l1_least is None else Cache(*known.l1_least)
    return known._replace(l1=Cache(*known.l1), l2=Cache(*known.l2), l1_least=least)


def _check(h: Hierarchy, runs: int, order: str) -> None:
    check_form(order, (RATE, UNIFORM))
    check_form(h.l1_stores, (AROUND, ALLOCATE))
    check_form(h.placement, (MODULO, HASHED))
    numbers = {"sms": h.sms, "slots": h.slots, "runs": runs, "line_bytes": h.line_bytes}
    for level, cache in (("l1", h.l1), ("l2", h.l2), ("l1_least", h.l1_least or h.l1)):
        numbers |= {f"{level} sets": cache.sets, f"{level} ways": cache.ways}
    if none := [f"{name} {n}" for name, n in numbers.items() if n < 1]:
        raise ValueError(f"{', '.join(none)}; allowed: 1 or more")
    sector = check_sectors(h.line_bytes, h.sector_bytes)
    if h.fetch_bytes % sector or h.line_bytes % (h.fetch_bytes or sector):
        raise ValueError(f"fetch_bytes is {h.fetch_bytes}; allowed: 0, or sectors of {sector} that divide the line")


def _slots(block: Ints, sm: Ints, h: Hierarchy) -> Ints:
    """Slot of each line's block, over all SMs: the blocks of an SM take its slots in turn."""
    blocks, first, back = np.unique(block, return_index=True, return_inverse=True)
    home = sm[first]
    order = by_key(home)
    starts = np.searchsorted(home[order], home[order])
    turn = np.empty(blocks.size, dtype=np.int64)
    turn[order] = np.arange(blocks.size) - starts
    return np.asarray((home * h.slots + turn % h.slots)[back.ravel()])


def _one_run(packed: Packed, home: Ints, at: Ints, h: Hierarchy, run: int, counts: Array, per_site: Array) -> float:
    """Take one order through both levels, some lines at a time; add up sectors and hits, by kind and by site.

    Returns the lines' worth of sectors that DRAM gave.
    """
    first = h.l1 if h.l1_least is None or run // 2 % 2 == 0 else h.l1_least
    drawn = 0 if run % 2 == 0 else run
    l1, l2 = Cached(first.ways), Cached(h.l2.ways)
    given, whole = 0, h.line_bytes // check_sectors(h.line_bytes, h.sector_bytes)
    for begin in range(0, at.size, MAX_STREAMS_AT_ONCE):
        some = at[begin : begin + MAX_STREAMS_AT_ONCE]
        line, kind, sm, site = packed.line[some], packed.kind[some], home[some].astype(np.int64), packed.site[some]
        needed = packed.sectors[some]
        loads = kind == LOAD
        inside = np.flatnonzero(loads | ((kind == STORE) & (h.l1_stores == ALLOCATE)))
        place = sm[inside] * first.sets + set_of(line[inside], first.sets, h.placement, drawn)
        found = needed[inside] & l1.present(line[inside], place, needed[inside])
        # A store that L1 keeps still goes on to L2; only a load is answered by it.
        wanted = needed.copy()
        wanted[inside] &= ~np.where(loads[inside], found, 0).astype(np.uint8)
        onward = np.flatnonzero(wanted)
        asked, place = wanted[onward], set_of(line[onward], h.l2.sets, h.placement, drawn)
        fetched = _fetched(asked, h, whole)
        there = l2.present(line[onward], place, fetched)
        # What is fetched along with a sector that L2 has already is not fetched.
        given += int(np.bitwise_count(_fetched(asked & ~there, h, whole) & ~there).sum())
        levels = ((inside, needed[inside], found), (onward, asked, asked & there))
        for level, (places, sectors, hit) in enumerate(levels):
            asked_for, answered = np.bitwise_count(sectors), np.bitwise_count(hit)
            for load, chosen in enumerate((loads[places], ~loads[places])):
                counts[level, load] += asked_for[chosen].sum(dtype=float), answered[chosen].sum(dtype=float)
            for row, values in ((0, asked_for), (1, answered)):
                per_site[2 * level + row] += np.bincount(site[places], values, minlength=per_site.shape[1])
    return given / whole


def _fetched(asked: Sectors, h: Hierarchy, whole: int) -> Sectors:
    """Return the sectors that DRAM transfers for the requested ones."""
    together = max(1, h.fetch_bytes * whole // h.line_bytes)
    if together == 1:
        return asked
    fetched = np.zeros_like(asked)
    group = (1 << together) - 1
    for begin in range(0, whole, together):
        fetched |= np.where(asked >> begin & group, group << begin, 0).astype(np.uint8)
    return fetched


def _distribution(counts: Array, dram: Array, tolerance: float) -> tuple[Array, Distribution]:
    runs = counts.shape[0]
    with np.errstate(all="ignore"):
        ratios = np.moveaxis(counts[..., 1] / counts[..., 0], 0, -1).reshape(4, -1)
        values = np.vstack([ratios, dram])
        width = np.quantile(values, QUANTILES, axis=-1).T
        sd = values.std(axis=-1, ddof=1) if runs > 1 else np.full(5, np.nan)
        se, mean = sd / math.sqrt(runs), values.mean(axis=-1)
        # What DRAM moves is judged against its mean, ratios as they are.
        scale = tolerance * np.where(np.arange(5) < 4, 1.0, np.maximum(mean, 1e-300))
        reliable, converged = width[:, 2] - width[:, 0] < scale, (se < scale / 10) & (runs >= MIN_RUNS)
    return ratios, Distribution(mean, sd, se, width, reliable, converged)


def _sites(packed: Packed, per_site: Array) -> Sites:
    """Sums over the lines of each instruction."""
    number = packed.sites.size
    requests = np.bincount(packed.site[packed.first], minlength=number)
    with np.errstate(all="ignore"):
        lines = np.bincount(packed.site, minlength=number) / requests
        return Sites(packed.sites, requests, lines, per_site[1] / per_site[0], per_site[3] / per_site[2])
