"""Random orders of the references of many warps that keep the order of each, its barriers, and the blocks of a slot."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from profsvc.formulas.flags import check_form
from profsvc.formulas.memory_hierarchy.cache import Ints

RATE, UNIFORM = "rate", "uniform"
LEAST_GAP = 1e-6  # keeps the keys of a warp apart after a sum of ten million


class Streams(NamedTuple):
    """Pieces of warps between barriers, one after another, and the chain of a slot's blocks and epochs."""

    piece: Ints  # of each reference
    starts: Ints  # of each piece
    unit: Ints  # block and epoch of each piece, in the order of a slot
    slot: Ints  # of each unit


def streams(block: Ints, warp: Ints, epoch: Ints, slot: Ints) -> Streams:
    """Pieces of references that lie by block and warp in order; ``slot`` is that of the reference's block."""
    apart = np.zeros(block.size, dtype=np.bool_)
    apart[:1] = True
    for x in (block, warp, epoch):
        apart[1:] |= x[1:] != x[:-1]
    starts = np.flatnonzero(apart)
    rows = np.stack([slot[starts], block[starts], epoch[starts]], axis=1)
    units, unit = np.unique(rows, axis=0, return_inverse=True)
    return Streams(np.cumsum(apart) - 1, starts, unit.ravel(), units[:, 0])


def draw(of: Streams, generator: np.random.Generator, order: str) -> NDArray[np.float64]:
    """Keys that sort the references into a random valid order."""
    return _rates(of, generator) if order == RATE else _uniform(of, generator)


def _rates(of: Streams, generator: np.random.Generator) -> NDArray[np.float64]:
    """Every warp issues at one rate; a barrier waits for the last warp of the block, a block for that before it."""
    gaps = generator.standard_exponential(of.piece.size) + LEAST_GAP
    total = np.cumsum(gaps)
    before = total[of.starts] - gaps[of.starts]
    length = np.diff(np.r_[before, total[-1:]])
    duration = np.zeros(of.slot.size)
    np.maximum.at(duration, of.unit, length)
    until = np.cumsum(duration)
    first = np.flatnonzero(np.r_[True, of.slot[1:] != of.slot[:-1]])
    begin = until - duration - np.repeat((until - duration)[first], np.diff(np.r_[first, of.slot.size]))
    return np.asarray(total + np.repeat(begin[of.unit] - before, np.diff(np.r_[of.starts, of.piece.size])))


def _uniform(of: Streams, generator: np.random.Generator) -> NDArray[np.float64]:
    """Every valid order is as likely: warps merge inside a unit, units follow each other, slots merge."""
    n = of.piece.size
    key = generator.random(n)
    key = key[np.lexsort((key, of.piece))]
    unit = of.unit[of.piece]
    chain = np.lexsort((key, unit))  # units lie in the order of their slots
    slot, key = of.slot[unit[chain]], generator.random(n)
    keys = np.empty(n)
    keys[chain] = key[np.lexsort((key, slot))]
    return keys


def merge_order(
    block: ArrayLike,
    warp: ArrayLike,
    epoch: ArrayLike = 0,
    slot: ArrayLike | None = None,
    runs: int = 1,
    seed: int = 0,
    order: str = RATE,
) -> Ints:
    """Random orders in which the references of many warps may reach memory.

    Valid is what keeps the order inside a warp, lets no warp of a block pass a barrier before the others reach it, and
    starts a block of a slot when the one before has ended.

    Source: [Kim2012] section 4.2.3 and [Baghsorkhi2012], whose orders are random and valid; how they are drawn is ours.

    Args:
        block: Block of each reference; references lie by block, and there by warp in the warp's order.
        warp: Warp in the block.
        epoch: Barriers passed before it.
        slot: Slot in which the block runs, over all SMs, blocks by their numbers; None for one each, all at a time.
        runs: Orders to draw [count].
        seed: Seed of the draws.
        order: ``rate``: all warps issue at one rate; ``uniform``: each valid order is as likely.

    Returns: places of the references in the order drawn, of shape (runs, references).

    Range: permutations; the same seed gives the same.

    Errors: TypeError for numbers that are no integers, ValueError for lengths that differ, references that do not lie
    in order, or an unknown order.

    Two warps that meet at a barrier after one reference each:

    >>> drawn = merge_order([0] * 4, [0, 0, 1, 1], [0, 1, 0, 1], runs=100)
    >>> sorted({tuple(run) for run in drawn.tolist()})
    [(0, 2, 1, 3), (0, 2, 3, 1), (2, 0, 1, 3), (2, 0, 3, 1)]
    """
    check_form(order, (RATE, UNIFORM))
    given: list[NDArray[Any]] = [np.asarray(x) for x in (block, warp, epoch, block if slot is None else slot)]
    for name, x in zip(("block", "warp", "epoch", "slot"), given, strict=True):
        if x.dtype.kind not in "iu" and x.size:
            raise TypeError(f"{name} has dtype {x.dtype}; allowed: integers")
    b, w, e, s = (np.atleast_1d(x).astype(np.int64) for x in np.broadcast_arrays(*given))
    later = (b[1:] > b[:-1]) | ((b[1:] == b[:-1]) & ((w[1:] > w[:-1]) | ((w[1:] == w[:-1]) & (e[1:] >= e[:-1]))))
    if b.ndim > 1 or not later.all():
        raise ValueError("the references do not lie by block, warp and epoch; allowed: one axis, in order")
    if not b.size:
        return np.zeros((runs, 0), dtype=np.int64)
    of, generator = streams(b, w, e, s), np.random.Generator(np.random.Philox(seed))
    return np.stack([np.argsort(draw(of, generator, order), kind="stable") for _ in range(runs)]).astype(np.int64)
