"""Pieces of warps between barriers, and keys that sort their references into a random valid order."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from profsvc.formulas.memory_hierarchy._lru import Ints, by_key

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


def sorted_by(key: NDArray[np.float64]) -> Ints:
    """Places in the order of keys that are not negative; equal ones stay as they are.

    As whole numbers with the places beside them keys sort several times as fast; the rounding, to less than one part in
    2^30, leaves the order inside a warp as it is.
    """
    steps = 1 << (60 - max(1, int(key.size - 1).bit_length()))
    return by_key((key * (steps / max(float(key.max(initial=0.0)), LEAST_GAP))).astype(np.int64))


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
