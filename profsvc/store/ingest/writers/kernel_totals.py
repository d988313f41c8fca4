"""Totals per kernel and file: number of launches, total duration, and percentiles.

Percentiles need every duration, so durations are spooled to a temporary file, in blocks sorted by kernel. A few kernels
at a time are read from all blocks and sorted together. The memory does not grow with the file, but with the number of
kernels, and with the launches of the most frequent kernel beyond `LAUNCHES_IN_MEMORY`.
"""

import tempfile
from collections.abc import Iterator
from typing import IO, NamedTuple

import numpy as np
import numpy.typing as npt

from profsvc.store.ingest.inserts.column_values import factorize_numbers

MAX_MEMORY_BYTES = 1 << 20
LAUNCHES_PER_BLOCK = 1 << 17
LAUNCHES_IN_MEMORY = 1 << 19
DURATION_BYTES = 8
PERCENTILES = {"p50_ns": 0.5, "p95_ns": 0.95}

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class KernelTotal(NamedTuple):
    """The totals of a kernel in a file; durations are null if no launch has one."""

    kernel_id: int
    launches: int
    timed: int
    total_ns: float | None = None
    min_ns: float | None = None
    p50_ns: float | None = None
    p95_ns: float | None = None
    max_ns: float | None = None


class _Block(NamedTuple):
    """Begin and end of the durations of each kernel in the temporary file, ordered by kernel number."""

    kernels: Ints
    bounds: Ints


class KernelTotals:
    """Collects the durations of launches, batch by batch."""

    def __init__(self) -> None:
        """Begin without launches."""
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=MAX_MEMORY_BYTES)  # noqa: SIM115  # `close` closes it
        self._launches: dict[int, int] = {}
        self._waiting: list[tuple[Ints, Floats]] = []
        self._blocks: list[_Block] = []

    def add(self, kernels: Ints, durations: Floats) -> None:
        """Add the kernel and duration in ns of each launch, NaN if unknown."""
        self._waiting.append((kernels, durations))
        if sum(len(waiting) for waiting, _ in self._waiting) >= LAUNCHES_PER_BLOCK:
            self._flush()

    def _flush(self) -> None:
        """Write the pending durations as a block."""
        if not self._waiting:
            return
        kernels, durations = map(np.concatenate, zip(*self._waiting, strict=True))
        self._waiting = []
        codes, found = factorize_numbers(kernels)
        for kernel, count in zip(found.tolist(), np.bincount(codes).tolist(), strict=True):
            self._launches[kernel] = self._launches.get(kernel, 0) + count
        timed = ~np.isnan(durations)
        codes, durations = codes[timed], durations[timed]
        # numpy uses radix sort for narrow integers, which suffice for few codes.
        order = np.argsort(codes.astype(np.min_scalar_type(len(found))), kind="stable")
        begin = self._blocks[-1].bounds[-1] if self._blocks else 0
        bounds = np.concatenate(([0], np.cumsum(np.bincount(codes, minlength=len(found)))))
        self._blocks.append(_Block(found, begin + bounds))
        self._file.write(durations[order].tobytes())

    def close(self) -> None:
        """Close the temporary file."""
        self._file.close()

    def rows(self) -> Iterator[KernelTotal]:
        """Yield one row per kernel, in the order of their numbers."""
        self._flush()
        for group in self._groups():
            found: dict[int, list[Floats]] = {kernel: [] for kernel in group}
            for kernel, durations in self._parts(group[0], group[-1]):
                found[kernel].append(durations)
            for kernel, parts in found.items():
                yield _total(kernel, self._launches[kernel], np.sort(np.concatenate(parts)))

    def _groups(self) -> Iterator[list[int]]:
        """Yield groups of at least one kernel whose launches fit into memory together."""
        group: list[int] = []
        launches = 0
        for kernel in sorted(self._launches):
            if group and launches + self._launches[kernel] > LAUNCHES_IN_MEMORY:
                yield group
                group, launches = [], 0
            group.append(kernel)
            launches += self._launches[kernel]
        if group:
            yield group

    def _parts(self, first: int, last: int) -> Iterator[tuple[int, Floats]]:
        """Yield the kernels of a range with their durations, for each block."""
        for block in self._blocks:
            low, high = np.searchsorted(block.kernels, [first, last + 1])
            bounds = block.bounds[low : high + 1]
            self._file.seek(int(bounds[0]) * DURATION_BYTES)
            durations = np.frombuffer(self._file.read(int(bounds[-1] - bounds[0]) * DURATION_BYTES))
            yield from zip(block.kernels[low:high].tolist(), np.split(durations, bounds[1:-1] - bounds[0]), strict=True)


def _total(kernel: int, launches: int, durations: Floats) -> KernelTotal:
    """Return the totals of the sorted durations of a kernel, with linearly interpolated percentiles.

    >>> _total(7, 3, np.array([1.0, 2.0, 6.0]))
    KernelTotal(kernel_id=7, launches=3, timed=3, total_ns=9.0, min_ns=1.0, p50_ns=2.0, p95_ns=5.6, max_ns=6.0)
    """
    if not len(durations):
        return KernelTotal(kernel, launches, 0)
    middle, high = (percentile(durations, share) for share in PERCENTILES.values())
    least, most = float(durations[0]), float(durations[-1])
    return KernelTotal(kernel, launches, len(durations), float(durations.sum()), least, middle, high, most)


def percentile(ordered: Floats, share: float) -> float | None:
    """Return a percentile of sorted numbers as `numpy.quantile`, which imports what takes longer than many of them.

    None between infinite numbers, where it is not a number.

    >>> percentile(np.array([1.0, 2.0, 6.0]), 0.95), percentile(np.array([np.inf, np.inf]), 0.5)
    (5.6, None)
    """
    place = (len(ordered) - 1) * share
    below = int(place)
    part = place - below
    low, high = float(ordered[below]), float(ordered[min(below + 1, len(ordered) - 1)])
    # From the nearer end, so that the result does not lie outside.
    found = low + (high - low) * part if part < 0.5 else high - (high - low) * (1 - part)
    return None if found != found else found
