"""References to memory as columns: what each may hold, and the rows that hold something else."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from profsvc.errors import BrokenInputError
from profsvc.formulas.memory_hierarchy import ATOMIC, LOAD, STORE, Trace

MUST = ("block", "seq", "site", "address", "kind")
WARP, THREAD = "warp", "thread"
# Columns that may be left out, and what they hold then.
MAY: Mapping[str, int] = {"size": 4, "epoch": 0, "sm": -1}
COLUMNS = (*MUST, WARP, THREAD, *MAY)
LEAST = {"sm": -1, "size": 1}
MOST = {"size": 128, "block": 2**31 - 1, WARP: 2**15 - 1, THREAD: 2**20 - 1, "epoch": 2**31 - 1, "sm": 2**15 - 1}
LARGEST = 2**62
WARP_SIZE = 32
KINDS = {"load": LOAD, "store": STORE, "atomic": ATOMIC}
KINDS |= {"l": LOAD, "s": STORE, "a": ATOMIC, "0": LOAD, "1": STORE, "2": ATOMIC}
MOST_SITES = 100_000
AT_ONCE = 1 << 18
# Of the fields of a trace, in few bytes.
_NARROW = (np.int32, np.int16, np.int64, np.int32, np.int64, np.int8, np.int16, np.int32, np.int16)


class Sites(dict[str, int]):
    """Number of each place in the source, in the order they come."""

    def __missing__(self, site: str) -> int:
        """Number a new one."""
        if len(self) == MOST_SITES:
            raise BrokenInputError(f"a trace has at most {MOST_SITES:,} sites; name instructions of the source by them")
        return self.setdefault(site, len(self))


def check_columns(names: Sequence[str], where: str) -> None:
    """Refuse a file whose columns are not those of a trace."""
    wrong = [f"lacks {name}" for name in MUST if name not in names]
    wrong += ["has neither warp nor thread"] if not {WARP, THREAD} & set(names) else []
    wrong += ["has both warp and thread"] if {WARP, THREAD} <= set(names) else []
    wrong += [f"has {name!r} twice" for name in dict.fromkeys(names) if list(names).count(name) > 1]
    wrong += [f"has an unknown column {name!r}" for name in dict.fromkeys(names) if name not in COLUMNS]
    if wrong:
        raise BrokenInputError(
            f"{where} {', '.join(wrong)}; a memory trace has {', '.join(MUST)}, warp or thread, and may have "
            f"{', '.join(MAY)}; see: profsvc formats memory-trace"
        )


def out_of_range(name: str, values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return where a column holds what it may not."""
    found: npt.NDArray[np.bool_] = (values < LEAST.get(name, 0)) | (values > MOST.get(name, LARGEST))
    return found


def range_of(name: str) -> str:
    """Return what a column may hold, in words."""
    return f"{LEAST.get(name, 0)} to {MOST.get(name, LARGEST)}"


def trace_of(columns: Mapping[str, npt.NDArray[Any]]) -> Trace:
    """Return columns of whole numbers as a trace; those that are left out hold what they mean then."""
    warp = columns[WARP] if WARP in columns else columns[THREAD] // WARP_SIZE
    rest = {name: columns.get(name, value) for name, value in MAY.items()}
    must = {name: columns[name] for name in ("block", "seq", "site", "address", "kind")}
    return Trace(warp=warp, **must, **rest)


class Order:
    """Whether references come by block and warp, and how many blocks there are where they do."""

    def __init__(self) -> None:
        """Begin before the first reference."""
        self.by_warp = True
        self.references = 0
        self._last = -1

    def see(self, trace: Trace) -> None:
        """Look at the next references."""
        key = (np.asarray(trace.block, dtype=np.int64) << 16) | np.asarray(trace.warp, dtype=np.int64)
        self.references += key.size
        if key.size:
            self.by_warp &= int(key[0]) >= self._last and bool((key[1:] >= key[:-1]).all())
            self._last = int(key[-1])


def _columns(part: Trace) -> list[npt.NDArray[Any]]:
    """Return the fields of a trace as arrays of one length."""
    known = part._replace(sm=MAY["sm"] if part.sm is None else part.sm)
    return list(np.broadcast_arrays(*(np.atleast_1d(np.asarray(x)) for x in known)))


def whole_warps(parts: Iterator[Trace], at_once: int) -> Iterator[Trace]:
    """Cut references that come by block and warp where a warp ends, after at least so many."""
    waiting: list[list[npt.NDArray[Any]]] = []
    size, needed = 0, at_once
    for part in parts:
        columns = _columns(part)
        waiting.append(columns)
        size += columns[0].size
        if size < needed:
            continue
        whole = [np.concatenate(column) for column in zip(*waiting, strict=True)]
        apart = np.flatnonzero((whole[0][1:] != whole[0][:-1]) | (whole[1][1:] != whole[1][:-1]))
        cut = int(apart[-1]) + 1 if apart.size else 0
        if cut:
            yield Trace(*(column[:cut] for column in whole))
        waiting = [[column[cut:] for column in whole]]
        size = whole[0].size - cut
        needed = at_once if cut else 2 * size  # a warp longer than a part is not copied again and again
    if size:
        yield Trace(*(np.concatenate(column) for column in zip(*waiting, strict=True)))


def sorted_by_warp(parts: Iterator[Trace]) -> Iterator[Trace]:
    """Yield references of any order by block, warp and order; all of them stand in the memory, 40 bytes each."""
    kept: list[list[npt.NDArray[Any]]] = [[np.zeros(0, dtype)] for dtype in _NARROW]
    for part in parts:
        for column, values, dtype in zip(kept, _columns(part), _NARROW, strict=True):
            column.append(values.astype(dtype))
    whole = [np.concatenate(kept.pop(0)) for _ in _NARROW]
    order = np.lexsort((whole[2], whole[1], whole[0]))
    for begin in range(0, order.size, AT_ONCE):
        some = order[begin : begin + AT_ONCE]
        yield Trace(*(column[some] for column in whole))
