"""Pieces of warps between barriers, and keys that sort their references into a random valid order."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from profsvc.formulas.memory_hierarchy.lru import Ints

Floats = NDArray[np.float64]
RATE, UNIFORM = "rate", "uniform"
MIN_GAP = 1e-6  # keeps the keys of a warp apart after a sum of ten million
MAX_STREAMS_AT_ONCE, MAX_PIECES_AT_ONCE = 1 << 20, 1 << 14  # what is worked on beside the keys


class Streams(NamedTuple):
    """Pieces of warps between barriers, one after another, and the chain of a slot's blocks and epochs."""

    starts: Ints  # of each piece
    counts: Ints  # references of each piece
    unit: Ints  # block and epoch of each piece, in the order of a slot
    slot: Ints  # of each unit


def streams(starts: Ints, references: int, block: Ints, epoch: Ints, slot: Ints) -> Streams:
    """Pieces that lie by block and warp in order, with their block and epoch and the slot of the block."""
    units, unit = np.unique(np.stack([slot, block, epoch], axis=1), axis=0, return_inverse=True)
    return Streams(starts, np.diff(np.r_[starts, references]), unit.ravel(), units[:, 0])


def draw(of: Streams, generator: np.random.Generator, order: str) -> Floats:
    """Keys that sort the references into a random valid order."""
    return _rates(of, generator) if order == RATE else _uniform(of, generator)


def sorted_by(key: Floats) -> Ints:
    """Places in the order of keys that are not negative, which are used up; equal ones stay as they are.

    As whole numbers with the places beside them keys sort several times as fast; the rounding, to less than one part in
    2^30, leaves the order inside a warp as it is.
    """
    bits = max(1, int(key.size - 1).bit_length())
    key *= (1 << (60 - bits)) / max(float(key.max(initial=0.0)), MIN_GAP)
    packed = key.view(np.int64)
    for begin in range(0, key.size, MAX_STREAMS_AT_ONCE):
        part = slice(begin, begin + MAX_STREAMS_AT_ONCE)
        packed[part] = (key[part].astype(np.int64) << bits) | np.arange(
            begin, min(begin + MAX_STREAMS_AT_ONCE, key.size)
        )
    packed.sort()
    packed &= (1 << bits) - 1
    return packed


def _rates(of: Streams, generator: np.random.Generator) -> Floats:
    """Every warp issues at one rate; a barrier waits for the last warp of the block, a block for that before it."""
    total = generator.standard_exponential(int(of.counts.sum()))
    total += MIN_GAP
    np.cumsum(total, out=total)
    ends = total[of.starts + of.counts - 1]
    before = np.r_[0.0, ends[:-1]]
    duration = np.zeros(of.slot.size)
    np.maximum.at(duration, of.unit, ends - before)
    until = np.cumsum(duration)
    first = np.flatnonzero(np.r_[True, of.slot[1:] != of.slot[:-1]])
    begin = until - duration - np.repeat((until - duration)[first], np.diff(np.r_[first, of.slot.size]))
    shift = begin[of.unit] - before
    for piece in range(0, of.starts.size, MAX_PIECES_AT_ONCE):
        some = slice(piece, piece + MAX_PIECES_AT_ONCE)
        moved = np.repeat(shift[some], of.counts[some])
        total[of.starts[piece] : of.starts[piece] + moved.size] += moved
    return total


def _uniform(of: Streams, generator: np.random.Generator) -> Floats:
    """Every valid order is as likely: warps merge inside a unit, units follow each other, slots merge."""
    piece = np.repeat(np.arange(of.starts.size), of.counts)
    key = generator.random(piece.size)
    key = key[np.lexsort((key, piece))]
    unit = of.unit[piece]
    chain = np.lexsort((key, unit))  # units lie in the order of their slots
    slot, key = of.slot[unit[chain]], generator.random(piece.size)
    keys = np.empty(piece.size)
    keys[chain] = key[np.lexsort((key, slot))]
    return keys
