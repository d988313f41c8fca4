"""Cost of the addresses of a warp: bank conflicts, transactions, and load of memory partitions.

Addresses are integers, the lanes that access together on the last axis. ``active`` leaves out lanes that are off.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from profsvc.formulas.numerics.arrays import Array, Bools, Flagged, Mask, arrays, flagged, floats, is_implausible, mask
from profsvc.formulas.numerics.flags import Flag, check_form

STRICT, RELAXED = "strict", "relaxed"
ADD, MULTIPLY = "add", "multiply"


class Accesses(NamedTuple):
    """A number of accesses one after another, without the axis of the lanes."""

    value: Array
    flags: Mask


class PartitionLoad(NamedTuple):
    """Requests of each partition, on the last axis, and the largest over the mean."""

    requests: NDArray[np.int64]
    load: Array
    flags: Mask


def _lanes(address: ArrayLike, active: ArrayLike | None) -> tuple[NDArray[np.int64], Bools, Bools]:
    """Addresses, which lanes take part, and where an address is none."""
    given = np.asarray(address)
    if given.dtype.kind not in "iu":
        raise TypeError(f"address has dtype {given.dtype}; allowed: integers")
    if given.ndim == 0:
        raise ValueError("address has shape (); allowed: lanes along the last axis")
    on: NDArray[Any] = np.asarray(True if active is None else active)
    if on.dtype != np.bool_:
        raise TypeError(f"active has dtype {on.dtype}; allowed: booleans")
    if np.broadcast_shapes(on.shape, given.shape) != given.shape:
        raise ValueError(f"active has shape {on.shape}; allowed: {given.shape}, or what broadcasts to it")
    on = np.broadcast_to(on, given.shape)
    return given.astype(np.int64), on, ((given < 0) & on).any(axis=-1)


def _result(value: NDArray[Any], on: Bools, bad: Bools) -> Accesses:
    flags = mask((Flag.INPUT_SUSPECT, bad), (Flag.NOT_APPLICABLE, ~on.any(axis=-1)))
    return Accesses(*arrays(np.where(bad, np.nan, value), flags))


def bank_degree(address: ArrayLike, banks: int = 32, bank_bytes: int = 4, active: ArrayLike | None = None) -> Accesses:
    r"""Ways of a bank conflict: how often the busiest bank of shared memory must answer.

    .. math:: \max_b \bigl|\{word_i : word_i \bmod banks = b\}\bigr| \qquad word = \lfloor address/bytes \rfloor

    Source: [Lemeire2017], local memory banks; 16 banks for half a warp there, 32 for a warp since.

    Args:
        address: Byte addresses of the lanes that access together, on the last axis [bytes].
        banks: Banks of the memory [count].
        bank_bytes: Width of a bank [bytes].
        active: Which lanes take part, booleans; all if not given.

    Returns: Accesses; lanes that read the same word are answered together.

    Range: from 1, no conflict, to the number of lanes. No lane active: 0, NOT_APPLICABLE. A negative address: NaN,
    INPUT_SUSPECT.

    Errors: TypeError for addresses that are no integers, ValueError for shapes that do not fit.

    Half a warp on 16 banks: adjacent words, every second one, all the same one:

    >>> lane = np.arange(16)
    >>> bank_degree(4 * np.array([lane, 2 * lane, 0 * lane]), banks=16).value.tolist()
    [1.0, 2.0, 1.0]
    """
    a, on, bad = _lanes(address, active)
    word = a // bank_bytes
    same = (word[..., :, np.newaxis] == word[..., np.newaxis, :]) & on[..., np.newaxis, :]
    first = on & ~np.tril(same, -1).any(axis=-1)  # of the lanes with the same word
    bank = word % banks
    together = (bank[..., :, np.newaxis] == bank[..., np.newaxis, :]) & first[..., np.newaxis, :]
    ways = np.where(on, together.sum(axis=-1), 0).max(axis=-1, initial=0)
    return _result(ways, on, bad)


def transactions(
    address: ArrayLike,
    size: int,
    segment: int = 32,
    rule: str = RELAXED,
    active: ArrayLike | None = None,
) -> Accesses:
    r"""Transactions that the lanes of one request make.

    .. math:: \bigl|\{\lfloor address_i/segment \rfloor, \lfloor (address_i + size - 1)/segment \rfloor\}\bigr|

    Source: [Lemeire2017], memory coalescing; [Ryoo2008] section 5 for the 16 words the first devices insist on; 32
    bytes is the sector of NVIDIA's devices since.

    Args:
        address: Byte addresses of the lanes that coalesce, on the last axis: half a warp on devices of compute
            capability 1, a warp since [bytes].
        size: Bytes that a lane accesses [bytes].
        segment: Aligned bytes a transaction moves [bytes].
        rule: ``relaxed`` counts the segments touched; ``strict`` is one transaction if lane k accesses element k from
            an aligned start, and else one for each lane.
        active: Which lanes take part, booleans; all if not given.

    Returns: Accesses.

    Range: from 1 to twice the number of lanes. No lane active: 0, NOT_APPLICABLE. A negative address: NaN,
    INPUT_SUSPECT.

    Errors: TypeError for addresses that are no integers, ValueError for shapes that do not fit, a size that is not
    positive or above the segment, or an unknown rule.

    Floats of half a warp, aligned and shifted by one, by both rules:

    >>> shifted = 4 * np.arange(16) + [[0], [4]]
    >>> transactions(shifted, 4, 64).value.tolist(), transactions(shifted, 4, 64, "strict").value.tolist()
    ([1.0, 2.0], [1.0, 16.0])
    """
    check_form(rule, (STRICT, RELAXED))
    if not 0 < size <= segment:
        raise ValueError(f"size is {size} bytes; allowed: 1 to the {segment} of the segment")
    a, on, bad = _lanes(address, active)
    if rule == STRICT:
        start = a - size * np.arange(a.shape[-1])
        base = np.where(on, start, -1).max(axis=-1, initial=-1)
        in_order = (~on | (start == base[..., np.newaxis])).all(axis=-1) & (base % (size * a.shape[-1] or 1) == 0)
        return _result(np.where(in_order & on.any(axis=-1), 1, on.sum(axis=-1)), on, bad)
    touched = np.concatenate((a // segment, (a + size - 1) // segment), axis=-1)
    touched = np.sort(np.where(np.concatenate((on, on), axis=-1), touched, -1), axis=-1)
    begins = np.concatenate((touched[..., :1] >= 0, np.diff(touched, axis=-1) > 0), axis=-1)
    return _result((begins & (touched >= 0)).sum(axis=-1), on, bad)


def chain_stride(loaded: ArrayLike, operand: ArrayLike, operation: str = ADD) -> Flagged:
    r"""Elements between the loads of a chain, in which each adds what it computes from its data to the index.

    .. math:: stride = loaded + operand \quad \text{or} \quad loaded \cdot operand

    Such a chain loads what the one before it decides, so that a benchmark made of it waits for memory as long as its
    data are set to give one stride for all.

    Source: [Hong2012] figure 117: the data of five benchmarks of bandwidth, which all give 16384.

    Args:
        loaded: Value that every element is set to [elements].
        operand: What it is added to, or multiplied by: a constant, or the value of a second load [elements].
        operation: ``add`` or ``multiply``.

    Returns: Valued [elements].

    Range: 0 or more. A number that is negative, NaN or inf: NaN, INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast or an unknown operation.

    >>> chain_stride([5000, 8192], [11384, 8192]).value.tolist(), float(chain_stride(128, 128, "multiply").value)
    ([16384.0, 16384.0], 16384.0)
    """
    check_form(operation, (ADD, MULTIPLY))
    x, y = floats(loaded=loaded, operand=operand)
    with np.errstate(all="ignore"):
        return flagged(x + y if operation == ADD else x * y, is_implausible(x, y))


def partition_load(
    address: ArrayLike, partitions: int = 8, width: int = 256, active: ArrayLike | None = None
) -> PartitionLoad:
    r"""Imbalance of requests over the partitions of the memory.

    .. math:: partition = \lfloor address/width \rfloor \bmod partitions \qquad load = \frac{\max_p n_p}{\bar n}

    Source: [Lemeire2017], partition camping: 8 partitions of 256 bytes in the 10 and 200 series.

    Args:
        address: Byte addresses of requests that are under way together, on the last axis [bytes].
        partitions: Partitions of the memory [count].
        width: Consecutive bytes of a partition [bytes].
        active: Which requests count, booleans; all if not given.

    Returns: PartitionLoad, without the axis of the requests.

    Range: load from 1, even, to the number of partitions, all on one. No request: load 1, NOT_APPLICABLE. A negative
    address: NaN, INPUT_SUSPECT.

    Errors: TypeError for addresses that are no integers, ValueError for shapes that do not fit.

    Rows of 2048 bytes that are walked down a column, and the same with a pad of 256 bytes:

    >>> row = np.arange(32)
    >>> partition_load(np.array([2048 * row, 2304 * row])).load.tolist()
    [8.0, 1.0]
    """
    a, on, bad = _lanes(address, active)
    of = np.where(on, a // width % partitions, partitions)
    n = (of[..., np.newaxis] == np.arange(partitions)).sum(axis=-2)
    total = n.sum(axis=-1)
    with np.errstate(all="ignore"):
        load = np.where(total == 0, 1.0, n.max(axis=-1) * partitions / total)
    flags = mask((Flag.INPUT_SUSPECT, bad), (Flag.NOT_APPLICABLE, total == 0))
    return PartitionLoad(n, *arrays(np.where(bad, np.nan, load), flags))
