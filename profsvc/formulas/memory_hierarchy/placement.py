"""The set of a cache that a line goes to."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from profsvc.formulas.memory_hierarchy.lru import Ints
from profsvc.formulas.memory_hierarchy.trace import HASHED, MODULO
from profsvc.formulas.numerics.flags import check_form


def set_of(line: ArrayLike, sets: int, placement: str = MODULO, draw: int = 0) -> Ints:
    r"""Set of each line: its number modulo the sets, or the result of a hash.

    .. math:: modulo:\; l \bmod s \qquad hashed,\; draw\; 0:\; \Big(\sum_i d_i\Big) \bmod s,\; l = \sum_i d_i s^i

    GPUs since Maxwell hash, and no maker says how. Function 0 adds the digits of the line in base s: lines in a row and
    lines any power of two apart fill all sets evenly. The others are random functions, under which some sets get more
    lines than others. Real hashes lie between: on an H200, lines 2^k apart fill L1 as function 0 says, and 33 lines
    apart as a random function into 128 sets of 16 does.

    Source: [Jia2018], who find the modulo refuted on Maxwell and later; the two functions are ours.

    Args:
        line: Line numbers.
        sets: Sets of the cache [count].
        placement: ``modulo`` or ``hashed``.
        draw: Number of the hash.

    Returns: sets, from 0 to ``sets`` - 1.

    Range: any line from 0 on.

    Errors: ValueError for an unknown placement.

    Lines 128 apart in 128 sets share one by modulo, and none by the digits:

    >>> lines = np.arange(128) * 128
    >>> np.unique(set_of(lines, 128)).size, np.unique(set_of(lines, 128, HASHED)).size
    (1, 128)
    """
    check_form(placement, (MODULO, HASHED))
    lines = np.asarray(line, dtype=np.int64)
    if placement == MODULO or sets == 1:
        return np.asarray(lines % sets)
    if draw:
        return np.asarray((_mixed(lines, draw) % np.uint64(sets)).astype(np.int64))
    rest, total = lines // sets, lines % sets
    while rest.any():
        total, rest = total + rest % sets, rest // sets
    return np.asarray(total % sets)


def _mixed(x: Ints, draw: int) -> NDArray[np.uint64]:
    """The finalizer of SplitMix64 over the numbers of a draw."""
    mixed = x.astype(np.uint64) + np.uint64(draw * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))
