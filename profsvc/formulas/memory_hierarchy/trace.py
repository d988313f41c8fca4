"""References of a kernel to memory, the machine they go to, and the lines that a warp asks for together."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from profsvc.formulas.memory_hierarchy.lru import Ints, by_key, dense

LOAD, STORE, ATOMIC = range(3)
AROUND, ALLOCATE = "around", "allocate"
MODULO, HASHED = "modulo", "hashed"
MAX_SECTORS = 8
"""Of a line: a bit each in eight."""
MAX_JOINED = 1 << 62
"""Of the numbers that stand for several keys."""


class Cache(NamedTuple):
    """Sets and lines of a set."""

    sets: int
    ways: int


class Hierarchy(NamedTuple):
    """SMs with an L1 each and one L2; ``slots`` blocks are resident on an SM; stores go around L1 or are kept there.

    A cache keeps tags of lines and fills them by sectors, 0 bytes for whole lines; DRAM gives L2 ``fetch_bytes`` at a
    time, 0 for a sector. The set of a line is its number modulo the sets, or the result of an unpublished hash.
    ``l1_least`` is what shared memory may leave of L1 where that is not known.
    """

    sms: int
    slots: int
    l1: Cache
    l2: Cache
    line_bytes: int = 128
    l1_stores: str = AROUND
    sector_bytes: int = 0
    fetch_bytes: int = 0
    placement: str = MODULO
    l1_least: Cache | None = None


class Trace(NamedTuple):
    """A reference a place: integers of one length. ``seq`` orders those of a warp; ``kind`` is LOAD, STORE or ATOMIC.

    ``site`` names the instruction. ``epoch`` is the number of barriers the warp has passed; ``sm`` says where a block
    ran, -1 or None where it is not known.
    """

    block: ArrayLike
    warp: ArrayLike
    seq: ArrayLike
    site: ArrayLike
    address: ArrayLike
    kind: ArrayLike
    size: ArrayLike = 4
    epoch: ArrayLike = 0
    sm: ArrayLike | None = None


class Requests(NamedTuple):
    """Lines that warps request, by block, warp and order: one per line and instruction, numbered by ``request``.

    Bit k of ``sectors`` stands for sector k of the line.
    """

    block: Ints
    warp: Ints
    epoch: Ints
    sm: Ints
    site: Ints
    kind: Ints
    line: Ints
    request: Ints
    sectors: NDArray[np.uint8]


def coalesce(trace: Trace, line_bytes: int = 128, sector_bytes: int = 0) -> Requests:
    """Lines that each instruction of a warp asks for, each once, in the order of the warp.

    References of threads that share block, warp, ``seq``, site and kind are one instruction. A reference across the end
    of a line asks for both.

    Source: [Kim2012] section 4.2.3; [Baghsorkhi2012].

    Args:
        trace: Trace.
        line_bytes: Bytes of a line [bytes].
        sector_bytes: Bytes of a sector [bytes]; 0 for the whole line.

    Returns: Requests.

    Range: at most twice the references.

    Errors: TypeError for numbers that are no integers, ValueError for lengths that differ, negative numbers, a size or
    a line of no byte, sectors that do not divide the line into eight at most, or an unknown kind.

    A warp of four lanes, in one line and in four:

    >>> lanes = np.arange(4)
    >>> one = Trace(0, 0, [0] * 4 + [1] * 4, 0, np.concatenate([4 * lanes, 128 * lanes]), LOAD)
    >>> coalesce(one).line.tolist()
    [0, 0, 1, 2, 3]

    Its first instruction needs the first of four sectors; one 32 bytes further needs the second:

    >>> coalesce(Trace(0, 0, [0, 1], 0, [0, 32], LOAD), 128, 32).sectors.tolist()
    [1, 2]
    """
    t = _checked(Trace(*trace), line_bytes)
    sector = check_sectors(line_bytes, sector_bytes)
    ends = t["address"] + t["size"] - 1
    first, last = t["address"] // line_bytes, ends // line_bytes
    begin, end = (t["address"] - first * line_bytes) // sector, (ends - last * line_bytes) // sector
    whole = line_bytes // sector - 1
    line, needed, place = first, _bits(begin, np.where(last > first, whole, end)), np.arange(first.size)
    if (extra := np.flatnonzero(last > first)).size:
        line, place = np.concatenate([first, last[extra]]), np.concatenate([place, extra])
        needed = np.concatenate([needed, _bits(np.zeros_like(extra), end[extra])])
    instruction = _joined([t[name] for name in ("block", "warp", "seq", "site", "kind")])[place]
    if not _in_order([instruction, line]):
        order = by_key(_joined([instruction, line]))
        instruction, line, needed, place = instruction[order], line[order], needed[order], place[order]
    apart = np.ones(line.size, dtype=np.bool_)
    apart[1:] = instruction[1:] != instruction[:-1]
    request = np.cumsum(apart) - 1
    apart[1:] |= line[1:] != line[:-1]
    at = np.flatnonzero(apart)
    together = np.bitwise_or.reduceat(needed, at) if needed.size else needed
    kept = {name: t[name][place[at]] for name in ("block", "warp", "epoch", "sm", "site", "kind")}
    return Requests(**kept, line=line[at], request=request[at], sectors=together)


def _joined(keys: list[Ints]) -> Ints:
    """One number per row that ascends as its keys do, the first before the second and so on; no key is negative."""
    joined, values = np.zeros(keys[0].size, dtype=np.int64), 1
    for key in keys:
        low, high = int(key.min(initial=MAX_JOINED)), int(key.max(initial=0))
        if low >= high:
            continue  # one value orders nothing
        if values * (high - low + 1) > MAX_JOINED:
            joined, key, values, low, high = dense(joined), dense(key), key.size, 0, key.size - 1
        joined = joined * (high - low + 1) + (key - low)
        values *= high - low + 1
    return joined


def check_sectors(line_bytes: int, sector_bytes: int) -> int:
    """Return the bytes of a sector.

    Source: definition; GPUs since Maxwell fill lines of 128 bytes by sectors of 32.

    Args:
        line_bytes: Bytes of a line [bytes].
        sector_bytes: Bytes of a sector [bytes]; 0 where a line has none.

    Returns: bytes of a sector, those of the line where it has none [bytes].

    Range: an eighth of the line to the whole.

    Errors: ValueError for what does not divide the line into eight sectors at most.

    >>> check_sectors(128, 32), check_sectors(128, 0)
    (32, 128)
    """
    sector = sector_bytes or line_bytes
    if sector < 1 or line_bytes % sector or line_bytes // sector > MAX_SECTORS:
        raise ValueError(
            f"sector_bytes is {sector_bytes} of lines of {line_bytes}; allowed: 0, or what divides a line into "
            f"{MAX_SECTORS} at most"
        )
    return sector


def _bits(first: Ints, last: Ints) -> NDArray[np.uint8]:
    """Bits first to last, both included."""
    return np.asarray((2 << last) - (1 << first)).astype(np.uint8)


def _in_order(keys: list[Ints]) -> bool:
    """Return whether rows ascend by the first key, then the second, and so on."""
    same = np.ones(max(0, keys[0].size - 1), dtype=np.bool_)
    for key in keys:
        if (same & (key[1:] < key[:-1])).any():
            return False
        same &= key[1:] == key[:-1]
    return True


def _checked(trace: Trace, line_bytes: int) -> dict[str, Ints]:
    """Fields of the trace as integers of one length."""
    fields: dict[str, NDArray[Any]] = {}
    for name, given in trace._replace(sm=-1 if trace.sm is None else trace.sm)._asdict().items():
        array = np.asarray(given)
        if array.dtype.kind not in "iub" and array.size:
            raise TypeError(f"{name} has dtype {array.dtype}; allowed: integers")
        fields[name] = array.astype(np.int64, copy=False)
    try:
        known = dict(zip(fields, np.broadcast_arrays(*fields.values()), strict=True))
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in fields.items())
        raise ValueError(f"the lengths differ: {shapes}") from None
    # One number for all references stays one: ravel would write it out.
    known = {name: array if array.ndim == 1 else array.ravel() for name, array in known.items()}
    for name, least in {**dict.fromkeys(known, 0), "sm": -1, "size": 1}.items():
        if known[name].size and fields[name].min() < least:
            raise ValueError(f"{name} holds {fields[name].min()}; allowed: {least} or more")
    if known["kind"].max(initial=0) > ATOMIC or line_bytes < 1:
        raise ValueError(
            f"kind holds {known['kind'].max(initial=0)}, line_bytes is {line_bytes}; allowed: 0, 1, 2; 1 on"
        )
    return known
