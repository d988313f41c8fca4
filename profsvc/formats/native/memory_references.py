"""Memory references as columns: the valid values of each column, and the order of the rows."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from profsvc.errors import BrokenInputError
from profsvc.formulas.memory_hierarchy import ATOMIC, LOAD, STORE, Trace

REQUIRED_COLUMNS = ("block", "seq", "site", "address", "kind")
WARP, THREAD = "warp", "thread"
# Optional column -> its value in all rows if it is missing.
OPTIONAL_COLUMNS: Mapping[str, int] = {"size": 4, "epoch": 0, "sm": -1}
COLUMNS = (*REQUIRED_COLUMNS, WARP, THREAD, *OPTIONAL_COLUMNS)
MIN_VALUES = {"sm": -1, "size": 1}
MAX_VALUES = {"size": 128, "block": 2**31 - 1, WARP: 2**15 - 1, THREAD: 2**20 - 1, "epoch": 2**31 - 1, "sm": 2**15 - 1}
MAX_VALUE = 2**62
WARP_SIZE = 32
KINDS = {"load": LOAD, "store": STORE, "atomic": ATOMIC}
KINDS |= {"l": LOAD, "s": STORE, "a": ATOMIC, "0": LOAD, "1": STORE, "2": ATOMIC}
MAX_SITES = 100_000
PART_REFERENCES = 1 << 18
# Compact data types of the fields of a trace.
_COMPACT_DTYPES = (np.int32, np.int16, np.int64, np.int32, np.int64, np.int8, np.int16, np.int32, np.int16)


class Sites(dict[str, int]):
    """The number of each site in the source, in order of appearance."""

    def __missing__(self, site: str) -> int:
        """Number a new site."""
        if len(self) == MAX_SITES:
            raise BrokenInputError(
                f"a trace has at most {MAX_SITES:,} sites; write the instructions of the source as site"
            )
        return self.setdefault(site, len(self))


def check_columns(names: Sequence[str], where: str) -> None:
    """Refuse a file with missing or unknown columns; ``where`` names their place."""
    wrong = [f"lacks {name}" for name in REQUIRED_COLUMNS if name not in names]
    wrong += ["has neither warp nor thread"] if not {WARP, THREAD} & set(names) else []
    wrong += ["has both warp and thread"] if {WARP, THREAD} <= set(names) else []
    wrong += [f"has {name!r} twice" for name in dict.fromkeys(names) if list(names).count(name) > 1]
    wrong += [f"has an unknown column {name!r}" for name in dict.fromkeys(names) if name not in COLUMNS]
    if wrong:
        raise BrokenInputError(
            f"{where} {', '.join(wrong)}; the columns of a trace are {', '.join(REQUIRED_COLUMNS)}, warp or thread, "
            f"and optionally {', '.join(OPTIONAL_COLUMNS)}; see: profsvc formats memory-trace"
        )


def out_of_range(name: str, values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which values of a column are invalid."""
    found: npt.NDArray[np.bool_] = (values < MIN_VALUES.get(name, 0)) | (values > MAX_VALUES.get(name, MAX_VALUE))
    return found


def range_of(name: str) -> str:
    """Return the valid values of a column as text."""
    return f"{MIN_VALUES.get(name, 0)} to {MAX_VALUES.get(name, MAX_VALUE)}"


def trace_of(columns: Mapping[str, npt.NDArray[Any]]) -> Trace:
    """Return columns of whole numbers as a trace, with the default values of missing columns."""
    warp = columns[WARP] if WARP in columns else columns[THREAD] // WARP_SIZE
    rest = {name: columns.get(name, value) for name, value in OPTIONAL_COLUMNS.items()}
    return Trace(warp=warp, **{name: columns[name] for name in REQUIRED_COLUMNS}, **rest)


class ReferenceOrder:
    """Whether references are sorted by block and warp, and how many there are."""

    def __init__(self) -> None:
        """Start before the first reference."""
        self.by_warp = True
        self.references = 0
        self._last = -1

    def add(self, trace: Trace) -> None:
        """Add the next references."""
        key = (np.asarray(trace.block, dtype=np.int64) << 16) | np.asarray(trace.warp, dtype=np.int64)
        self.references += key.size
        if key.size:
            self.by_warp &= int(key[0]) >= self._last and bool((key[1:] >= key[:-1]).all())
            self._last = int(key[-1])


def _columns(part: Trace) -> list[npt.NDArray[Any]]:
    """Return the fields of a trace as arrays of equal length."""
    known = part._replace(sm=OPTIONAL_COLUMNS["sm"] if part.sm is None else part.sm)
    return list(np.broadcast_arrays(*(np.atleast_1d(np.asarray(x)) for x in known)))


def whole_warps(parts: Iterator[Trace], min_references: int) -> Iterator[Trace]:
    """Yield references sorted by block and warp in parts of whole warps, each with at least ``min_references``."""
    waiting: list[list[npt.NDArray[Any]]] = []
    size, needed = 0, min_references
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
        needed = min_references if cut else 2 * size  # a warp longer than a part is not copied repeatedly
    if size:
        yield Trace(*(np.concatenate(column) for column in zip(*waiting, strict=True)))


def sorted_by_warp(parts: Iterator[Trace]) -> Iterator[Trace]:
    """Yield unsorted references by block, warp and sequence number; all are held in memory, 40 bytes each."""
    kept: list[list[npt.NDArray[Any]]] = [[np.zeros(0, dtype)] for dtype in _COMPACT_DTYPES]
    for part in parts:
        for column, values, dtype in zip(kept, _columns(part), _COMPACT_DTYPES, strict=True):
            column.append(values.astype(dtype))
    whole = [np.concatenate(kept.pop(0)) for _ in _COMPACT_DTYPES]
    order = np.lexsort((whole[2], whole[1], whole[0]))
    for begin in range(0, order.size, PART_REFERENCES):
        some = order[begin : begin + PART_REFERENCES]
        yield Trace(*(column[some] for column in whole))
