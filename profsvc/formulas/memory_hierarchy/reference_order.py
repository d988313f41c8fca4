"""Random orders of the references of many warps that keep the order of each, its barriers, and the blocks of a slot."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from profsvc.formulas.memory_hierarchy.lru import Ints
from profsvc.formulas.memory_hierarchy.warp_streams import RATE, UNIFORM, draw, sorted_by, streams
from profsvc.formulas.numerics.flags import check_form


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
    apart = np.r_[True, (b[1:] != b[:-1]) | (w[1:] != w[:-1]) | (e[1:] != e[:-1])]
    starts = np.flatnonzero(apart)
    of = streams(starts, b.size, b[starts], e[starts], s[starts])
    generator = np.random.Generator(np.random.Philox(seed))
    return np.stack([sorted_by(draw(of, generator, order)) for _ in range(runs)])
