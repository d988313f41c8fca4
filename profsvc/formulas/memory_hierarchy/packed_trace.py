"""Requests of a long trace in few bytes per line: pieces of warps between barriers, and of each line what differs."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from profsvc.formulas.memory_hierarchy.lru import Ints
from profsvc.formulas.memory_hierarchy.trace import Requests, Trace, coalesce
from profsvc.formulas.numerics.arrays import Bools

BY_LINE = ("line", "kind", "site", "first", "sectors")
BY_PIECE = ("starts", "block", "warp", "epoch", "sm")


class Packed(NamedTuple):
    """Lines by block, warp and order; ``first`` begins a request; ``site`` is a place in ``sites``.

    ``sectors`` are those of the line that are needed, a bit each. A piece is what a warp asks for between two barriers,
    from ``starts`` on; ``block`` to ``sm`` are those of the pieces, the SM -1 where it is not known. ``left_out`` are
    the blocks, the last ones, that did not fit.
    """

    line: Ints
    kind: NDArray[np.int8]
    site: NDArray[np.int32]
    first: Bools
    sectors: NDArray[np.uint8]
    starts: Ints
    block: Ints
    warp: Ints
    epoch: Ints
    sm: Ints
    sites: Ints
    left_out: int


def pack(parts: Iterable[Trace], line_bytes: int = 128, most: int | None = None, sector_bytes: int = 0) -> Packed:
    """Requests of a trace that comes in parts, so that no more than one part at a time takes the memory that it needs.

    Source: [Kim2012] section 4.2.3; [Baghsorkhi2012].

    Args:
        parts: Parts of a trace, each of whole warps; blocks ascend over all of them, and warps inside a block.
        line_bytes: Bytes of a line [bytes].
        most: Lines to keep, about; the blocks behind are left out. None keeps all.
        sector_bytes: Bytes of a sector [bytes]; 0 for whole lines.

    Returns: Packed, about 15 bytes per line.

    Range: at most twice as many lines as references.

    Errors: those of `coalesce`; ValueError for warps that do not ascend over the parts, for a block on two SMs, and for
    barriers that a warp passes backwards.

    Two warps, each of which loads a line twice:

    >>> packed = pack([Trace(0, 0, [0, 1], 7, [0, 0], 0), Trace(0, 1, [0, 1], 7, [128, 128], 0)])
    >>> packed.line.tolist(), packed.starts.tolist(), packed.sites.tolist()
    ([0, 0, 1, 1], [0, 2], [7])
    """
    kept: dict[str, list[NDArray[Any]]] = {name: [] for name in (*BY_LINE, *BY_PIECE)}
    codes: dict[int, int] = {}
    _keep(kept, coalesce(Trace([], [], [], [], [], []), line_bytes, sector_bytes), 0, codes)
    lines, blocks, end, last = 0, 0, -1, (-1, -1)
    for given in parts:
        r = coalesce(Trace(*given), line_bytes, sector_bytes)
        first, final = _span(r, last)
        blocks += int((np.diff(r.block) > 0).sum()) + (first != last[0])
        if most is None or lines < most:
            _keep(kept, r, lines, codes)
            lines, end = lines + r.line.size, final[0]
        elif first == end:
            end = -1  # the last block that is kept goes on here
        last = final
    columns = {name: np.concatenate(kept.pop(name)) for name in (*BY_LINE, *BY_PIECE)}
    of = Packed(**columns, sites=np.array(list(codes), dtype=np.int64), left_out=0)
    if ((of.block[1:] == of.block[:-1]) & (of.sm[1:] != of.sm[:-1])).any():
        raise ValueError("a block has several sm; allowed: one, on which it ran")
    of = _by_site(_without_last(of) if end < 0 < lines else of)
    return of._replace(left_out=blocks - int(np.unique(of.block).size))


def _span(r: Requests, last: tuple[int, int]) -> tuple[int, tuple[int, int]]:
    """The first block, and the last block and warp of a part, which must come behind those of the part before."""
    if not r.line.size:
        return last[0], last
    (first, begin), (block, warp) = ((int(r.block[k]), int(r.warp[k])) for k in (0, -1))
    if (first, begin) <= last:
        raise ValueError(f"block {first}, warp {begin} follow {last}; allowed: parts of warps that ascend")
    return first, (block, warp)


def _keep(kept: dict[str, list[NDArray[Any]]], r: Requests, before: int, codes: dict[int, int]) -> None:
    """Add what is kept of some warps; ``codes`` number the sites as they come."""
    apart = np.zeros(r.line.size, dtype=np.bool_)
    apart[:1] = True
    for x in (r.block, r.warp):
        apart[1:] |= x[1:] != x[:-1]
    if (~apart[1:] & (r.epoch[1:] < r.epoch[:-1])).any():
        raise ValueError("epoch falls within a warp; allowed: barriers in the order of seq")
    if (~apart[1:] & (r.sm[1:] != r.sm[:-1])).any():
        raise ValueError("a block has several sm; allowed: one, on which it ran")
    apart[1:] |= r.epoch[1:] != r.epoch[:-1]
    starts = np.flatnonzero(apart)
    first = np.ones(r.line.size, dtype=np.bool_)
    first[1:] = r.request[1:] != r.request[:-1]
    found, place = np.unique(r.site, return_inverse=True)
    number = np.array([codes.setdefault(int(site), len(codes)) for site in found], dtype=np.int32)
    columns: list[NDArray[Any]] = [r.line.copy(), r.kind.astype(np.int8), number[place.ravel()], first, r.sectors]
    columns += [starts + before, *(x[starts].copy() for x in (r.block, r.warp, r.epoch, r.sm))]
    for name, column in zip(kept, columns, strict=True):
        kept[name].append(column)


def _by_site(of: Packed) -> Packed:
    """Number the sites in their order, those that are left."""
    used = np.flatnonzero(np.bincount(of.site, minlength=of.sites.size))
    order = used[np.argsort(of.sites[used])]
    place = np.zeros(of.sites.size, dtype=np.int32)
    place[order] = np.arange(order.size)
    return of._replace(site=place[of.site], sites=of.sites[order])


def _without_last(of: Packed) -> Packed:
    """All but the last block, unless it is the only one."""
    piece = int(np.searchsorted(of.block, of.block[-1]))
    if not piece:
        return of
    line = int(of.starts[piece])
    cut = {name: getattr(of, name)[:line] for name in BY_LINE}
    return of._replace(
        **cut, **{name: getattr(of, name)[:piece] for name in ("starts", "block", "warp", "epoch", "sm")}
    )
