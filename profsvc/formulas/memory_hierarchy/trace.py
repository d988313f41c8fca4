"""References of a kernel to memory, the machine they go to, and the lines that a warp asks for together."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from profsvc.formulas.memory_hierarchy.cache import Ints

LOAD, STORE, ATOMIC = range(3)
AROUND, ALLOCATE = "around", "allocate"


class Cache(NamedTuple):
    """Sets and lines of a set."""

    sets: int
    ways: int


class Hierarchy(NamedTuple):
    """SMs with an L1 each and one L2; ``slots`` blocks are resident on an SM; stores go around L1 or are kept there."""

    sms: int
    slots: int
    l1: Cache
    l2: Cache
    line_bytes: int = 128
    l1_stores: str = AROUND


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
    """Lines that warps asked for, by block, warp and order: one a line and instruction, which ``request`` numbers."""

    block: Ints
    warp: Ints
    epoch: Ints
    sm: Ints
    site: Ints
    kind: Ints
    line: Ints
    request: Ints


def coalesce(trace: Trace, line_bytes: int = 128) -> Requests:
    """Lines that each instruction of a warp asks for, each once, in the order of the warp.

    References of threads that share block, warp, ``seq``, site and kind are one instruction. A reference across the end
    of a line asks for both.

    Source: [Kim2012] section 4.2.3; [Baghsorkhi2012].

    Args:
        trace: Trace.
        line_bytes: Bytes of a line [bytes].

    Returns: Requests.

    Range: at most twice the references.

    Errors: TypeError for numbers that are no integers, ValueError for lengths that differ, negative numbers, a size or
    a line of no byte, or an unknown kind.

    A warp of four lanes, in one line and in four:

    >>> lanes = np.arange(4)
    >>> one = Trace(0, 0, [0] * 4 + [1] * 4, 0, np.concatenate([4 * lanes, 128 * lanes]), LOAD)
    >>> coalesce(one).line.tolist()
    [0, 0, 1, 2, 3]
    """
    t = _checked(trace, line_bytes)
    first, last = t["address"] // line_bytes, (t["address"] + t["size"] - 1) // line_bytes
    extra = np.flatnonzero(last > first)
    row = np.concatenate([np.arange(first.size), extra])
    line = np.concatenate([first, last[extra]])
    names = ("block", "warp", "seq", "site", "kind")
    order = np.lexsort((line, *(t[name][row] for name in reversed(names))))
    row, line = row[order], line[order]
    apart = np.zeros((2, row.size), dtype=np.bool_)
    apart[:, :1] = True
    for name in names:
        apart[0, 1:] |= t[name][row][1:] != t[name][row][:-1]
    apart[1, 1:] = apart[0, 1:] | (line[1:] != line[:-1])
    number = np.cumsum(apart[0]) - 1
    kept, row = apart[1], row[apart[1]]
    rest = [t[name][row] for name in ("block", "warp", "epoch", "sm", "site", "kind")]
    return Requests(*rest, *(x[kept] for x in (line, number)))


def _checked(trace: Trace, line_bytes: int) -> dict[str, Ints]:
    """Fields of the trace as integers of one length."""
    fields: dict[str, NDArray[Any]] = {}
    for name, given in trace._replace(sm=-1 if trace.sm is None else trace.sm)._asdict().items():
        array = np.asarray(given)
        if array.dtype.kind not in "iub" and array.size:
            raise TypeError(f"{name} has dtype {array.dtype}; allowed: integers")
        fields[name] = array.astype(np.int64)
    try:
        known = dict(zip(fields, np.broadcast_arrays(*fields.values()), strict=True))
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in fields.items())
        raise ValueError(f"the lengths differ: {shapes}") from None
    known = {name: array.ravel() for name, array in known.items()}
    for name, least in {**dict.fromkeys(known, 0), "sm": -1, "size": 1}.items():
        if known[name].size and known[name].min() < least:
            raise ValueError(f"{name} holds {known[name].min()}; allowed: {least} or more")
    if known["kind"].max(initial=0) > ATOMIC or line_bytes < 1:
        raise ValueError(
            f"kind holds {known['kind'].max(initial=0)}, line_bytes is {line_bytes}; allowed: 0, 1, 2; 1 on"
        )
    return known
