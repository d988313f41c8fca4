"""Choose the launches of a long file that pages show: those at the ends of an order, of the file and of each kernel.

The orders are by duration and by number. Equal durations are ordered by number, and launches without a duration come
last, as in `profsvc.store.queries.launches.ordered`. A file with many kernels keeps fewer launches of each, so the
memory is bounded.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from profsvc.store.connection.sql import Connection
from profsvc.store.ingest.inserts.column_values import factorize_numbers
from profsvc.store.ingest.inserts.row_insert import insert_rows
from profsvc.store.schema.column_types import WHOLE_RUN_ID

MIN_LAUNCHES = 100_000
"""All launches of a shorter file are read when they are asked for, which takes some milliseconds."""
DEPTH = 1024
"""Number of launches of a file at each end of an order."""
KERNEL_DEPTH = 100
"""The same for each kernel."""
MAX_KERNEL_LAUNCHES = 100_000
"""Maximum of the number of kernels times their depth."""
LAUNCHES_PER_BLOCK = 1 << 17
MAX_WANTED_SHARE = 0.1
"""With more candidates in a block than this share of it, its own ends are looked at first."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class _Launches(NamedTuple):
    """Launches in the order of their numbers, with the group of each."""

    numbers: Ints
    groups: Ints
    durations: Floats

    def at(self, rows: Ints | Mask) -> "_Launches":
        """Return some of them."""
        return _Launches(self.numbers[rows], self.groups[rows], self.durations[rows])

    def before(self, others: "_Launches") -> "_Launches":
        """Return these and others."""
        both = zip(self, others, strict=True)
        numbers, groups, durations = (np.concatenate(columns) for columns in both)
        return _Launches(numbers, groups, durations)


class _Ends:
    """The launches at the ends of the orders of each group."""

    def __init__(self, *, by_number: bool) -> None:
        """Begin without launches; ``by_number``: the first and the last are kept as well."""
        self.kept = _Launches(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
        self._by_number = by_number
        # Of each group, the durations that a launch must reach to be one of the longest or shortest.
        self._long, self._short = np.empty(0), np.empty(0)

    def add(self, new: _Launches, depth: int, groups: int) -> None:
        """Add launches with groups below ``groups``; keep ``depth`` at each end."""
        if (new.numbers[1:] < new.numbers[:-1]).any():
            new = new.at(np.argsort(new.numbers, kind="stable"))
        wanted = self._candidates(new, depth, groups)
        found = self.kept.before(new.at(wanted))
        found = found.at(np.argsort(found.numbers, kind="stable"))
        wanted = np.zeros(len(found.numbers), np.bool_)
        orders = [np.arange(len(found.numbers)), np.arange(len(found.numbers))[::-1]] if self._by_number else []
        for order in orders:
            wanted[_leading(found.groups, order, depth, groups)[0]] = True
        # Only launches that reach the limits are sorted: no other is among the longest or the shortest.
        rows = np.flatnonzero(~(found.durations < self._long[found.groups]))
        rows, last = _leading(found.groups, rows[np.argsort(-found.durations[rows], kind="stable")], depth, groups)
        wanted[rows] = True
        self._long = _limits(found.durations, last, -np.inf)
        rows = np.flatnonzero(~(found.durations > self._short[found.groups]))
        rows, last = _leading(found.groups, rows[np.argsort(found.durations[rows], kind="stable")], depth, groups)
        wanted[rows] = True
        self._short = _limits(found.durations, last, np.inf)
        self.kept = found.at(wanted)

    def _candidates(self, new: _Launches, depth: int, groups: int) -> Mask:
        """Return which launches, in the order of their numbers, may be among those to keep."""
        missing = groups - len(self._long)
        self._long = np.concatenate((self._long, np.full(missing, -np.inf)))
        self._short = np.concatenate((self._short, np.full(missing, np.inf)))
        grouped, begins, counts = _grouped(new.groups, groups)
        wanted = self._reaches(new)
        if np.count_nonzero(wanted) > len(wanted) * MAX_WANTED_SHARE and not np.isnan(new.durations).any():
            for group in np.flatnonzero(counts > 2 * depth).tolist():
                own = new.durations[grouped[begins[group] : begins[group] + counts[group]]]
                ends = np.partition(own, (depth - 1, len(own) - depth))
                self._short[group] = min(self._short[group], ends[depth - 1])
                self._long[group] = max(self._long[group], ends[-depth])
            wanted = self._reaches(new)
        if self._by_number:
            place = np.arange(len(grouped)) - np.repeat(begins, counts)
            wanted[grouped[(place < depth) | (place >= np.repeat(counts - depth, counts))]] = True
        return wanted

    def _reaches(self, new: _Launches) -> Mask:
        """Return which launches are as long or as short as those that are kept, or have no duration."""
        reaches: Mask = ~(new.durations < self._long[new.groups]) | ~(new.durations > self._short[new.groups])
        return reaches


def _grouped(codes: Ints, groups: int) -> tuple[Ints, Ints, Ints]:
    """Return the rows group by group in their order, and the begin and the size of each group."""
    # numpy uses radix sort for narrow integers, which suffice for few groups.
    counts = np.bincount(codes, minlength=groups)
    return np.argsort(codes.astype(np.min_scalar_type(groups)), kind="stable"), np.cumsum(counts) - counts, counts


def _leading(codes: Ints, order: Ints, depth: int, groups: int) -> tuple[Ints, Ints]:
    """Return the first ``depth`` rows of each group in an order of some, and the last of these, -1 with fewer.

    >>> _leading(np.array([0, 1, 0, 0]), np.array([3, 2, 1, 0]), 2, 2)
    (array([3, 2, 1]), array([ 2, -1]))
    """
    rows, begins, counts = _grouped(codes[order], groups)
    grouped = order[rows]
    place = np.arange(len(order)) - np.repeat(begins, counts)
    last = np.full(groups, -1)
    full = counts >= depth
    last[full] = grouped[begins[full] + depth - 1]
    return grouped[place < depth], last


def _limits(durations: Floats, rows: Ints, otherwise: float) -> Floats:
    """Return the durations of rows; ``otherwise`` for a row -1 or without a duration."""
    found = np.where(rows < 0, otherwise, durations[rows]) if len(durations) else np.full(len(rows), otherwise)
    return np.where(np.isnan(found), otherwise, found)


class ListedLaunches:
    """Collects launches, batch by batch, and forgets those that begin no order."""

    def __init__(self) -> None:
        """Begin without launches."""
        self._of_file, self._of_kernels = _Ends(by_number=False), _Ends(by_number=True)
        self._waiting: list[tuple[Ints, Ints, Floats]] = []
        self._codes: dict[int, int] = {}
        self._launches = 0

    def add(self, numbers: Ints, kernels: Ints, durations: Floats) -> None:
        """Add the number, kernel and duration in ns of launches, NaN if unknown."""
        self._waiting.append((numbers, kernels, durations))
        self._launches += len(numbers)
        # What is kept is sorted with each block, so the blocks grow with it.
        size = max(LAUNCHES_PER_BLOCK, 2 * len(self._of_kernels.kept.numbers))
        if sum(len(waiting) for waiting, *_ in self._waiting) >= size:
            self.select()

    def select(self) -> None:
        """Choose among the pending launches."""
        if not self._waiting:
            return
        numbers, kernels, durations = (np.concatenate(parts) for parts in zip(*self._waiting, strict=True))
        self._waiting = []
        codes, found = factorize_numbers(kernels)
        own = np.array([self._codes.setdefault(kernel, len(self._codes)) for kernel in found.tolist()], np.int64)
        self._of_file.add(_Launches(numbers, np.zeros(len(numbers), np.int64), durations), DEPTH, 1)
        self._of_kernels.add(_Launches(numbers, own[codes], durations), self._kernel_depth(), len(self._codes))

    def _kernel_depth(self) -> int:
        return min(KERNEL_DEPTH, MAX_KERNEL_LAUNCHES // max(1, len(self._codes)))

    def save(self, connection: Connection, upload_id: int) -> None:
        """Write the chosen launches of a whole upload; none for a short file."""
        if self._launches < MIN_LAUNCHES:
            return
        self.select()
        insert_rows(
            connection, "launch_lists", ("upload_id", "depth", "kernel_depth"),
            [(upload_id, DEPTH, self._kernel_depth())],
        )  # fmt: skip
        columns = ("upload_id", "kernel_id", "launch_id", "duration_ns")
        for ends, kernels in ((self._of_file, [WHOLE_RUN_ID]), (self._of_kernels, list(self._codes))):
            insert_rows(
                connection, "listed_launches", columns, _rows(upload_id, ends.kept, np.array(kernels, np.int64))
            )


def _rows(upload_id: int, kept: _Launches, kernels: Ints) -> Iterator[tuple[int, int, int, float | None]]:
    """Yield the rows of launches in the order of their key; their groups are places in ``kernels``."""
    order = np.argsort(kernels[kept.groups], kind="stable")
    found = (kernels[kept.groups[order]], kept.numbers[order], kept.durations[order])
    for kernel_id, launch_id, duration in zip(*(column.tolist() for column in found), strict=True):
        yield upload_id, kernel_id, launch_id, None if duration != duration else duration
