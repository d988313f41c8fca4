"""All launches of a kernel in a file, summed up: how many, how long in total, and how their durations are spread.

Percentiles need every duration, so these wait in a temporary file, in blocks that are sorted by kernel: a few kernels
at a time lie in one stretch of each block, and are read and sorted together. The memory does not grow with the file,
but with the kernels of each block, and with the launches of the busiest kernel beyond `AT_ONCE`.
"""

import tempfile
from collections.abc import Iterator
from typing import IO, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

IN_MEMORY = 1 << 20
IN_BLOCK = 1 << 17
AT_ONCE = 1 << 19
WIDTH = 8
SHARES = {"p50_ns": 0.5, "p95_ns": 0.95}

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Total(NamedTuple):
    """A kernel of a file; durations are null where no launch has one."""

    kernel_id: int
    launches: int
    timed: int
    total_ns: float | None = None
    min_ns: float | None = None
    p50_ns: float | None = None
    p95_ns: float | None = None
    max_ns: float | None = None


class _Block(NamedTuple):
    """Where the durations of kernels, in the order of their numbers, begin and end in the file."""

    kernels: Ints
    bounds: Ints


class Totals:
    """Gathers the durations of launches, batch by batch."""

    def __init__(self) -> None:
        """Begin with no launches."""
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115  # `close` closes it
        self._launches: dict[int, int] = {}
        self._waiting: list[tuple[Ints, Floats]] = []
        self._blocks: list[_Block] = []

    def add(self, kernels: Ints, durations: Floats) -> None:
        """Take the kernel and the duration in ns of each launch, NaN where there is none."""
        self._waiting.append((kernels, durations))
        if sum(len(waiting) for waiting, _ in self._waiting) >= IN_BLOCK:
            self._flush()

    def _flush(self) -> None:
        """Write what waits as a block."""
        if not self._waiting:
            return
        kernels, durations = map(np.concatenate, zip(*self._waiting, strict=True))
        self._waiting = []
        codes, found = pd.factorize(kernels, sort=True)
        for kernel, count in zip(found.tolist(), np.bincount(codes).tolist(), strict=True):
            self._launches[kernel] = self._launches.get(kernel, 0) + count
        timed = ~np.isnan(durations)
        codes, durations = codes[timed], durations[timed]
        # Few codes are sorted by their digits, which numpy does with narrow numbers.
        order = np.argsort(codes.astype(np.min_scalar_type(len(found))), kind="stable")
        begin = self._blocks[-1].bounds[-1] if self._blocks else 0
        bounds = np.concatenate(([0], np.cumsum(np.bincount(codes, minlength=len(found)))))
        self._blocks.append(_Block(found, begin + bounds))
        self._file.write(durations[order].tobytes())

    def close(self) -> None:
        """Let go of the temporary file."""
        self._file.close()

    def rows(self) -> Iterator[Total]:
        """Yield a row a kernel, in the order of their numbers."""
        self._flush()
        for group in self._groups():
            found: dict[int, list[Floats]] = {kernel: [] for kernel in group}
            for kernel, durations in self._parts(group[0], group[-1]):
                found[kernel].append(durations)
            for kernel, parts in found.items():
                yield _total(kernel, self._launches[kernel], np.sort(np.concatenate(parts)))

    def _groups(self) -> Iterator[list[int]]:
        """Yield kernels, as many at once as have few enough launches together, but at least one."""
        group: list[int] = []
        launches = 0
        for kernel in sorted(self._launches):
            if group and launches + self._launches[kernel] > AT_ONCE:
                yield group
                group, launches = [], 0
            group.append(kernel)
            launches += self._launches[kernel]
        if group:
            yield group

    def _parts(self, first: int, last: int) -> Iterator[tuple[int, Floats]]:
        """Yield the kernels from the first to the last with their durations, of each block."""
        for block in self._blocks:
            low, high = np.searchsorted(block.kernels, [first, last + 1])
            bounds = block.bounds[low : high + 1]
            self._file.seek(int(bounds[0]) * WIDTH)
            durations = np.frombuffer(self._file.read(int(bounds[-1] - bounds[0]) * WIDTH))
            yield from zip(block.kernels[low:high].tolist(), np.split(durations, bounds[1:-1] - bounds[0]), strict=True)


def _total(kernel: int, launches: int, durations: Floats) -> Total:
    """Sum up the sorted durations of a kernel; a percentile lies between two of them in proportion.

    >>> _total(7, 3, np.array([1.0, 2.0, 6.0]))
    Total(kernel_id=7, launches=3, timed=3, total_ns=9.0, min_ns=1.0, p50_ns=2.0, p95_ns=5.6, max_ns=6.0)
    """
    if not len(durations):
        return Total(kernel, launches, 0)
    with np.errstate(invalid="ignore"):  # between two infinite durations lies nothing
        spread = np.quantile(durations, list(SHARES.values()))
    middle, high = (None if np.isnan(value) else float(value) for value in spread)
    least, most = float(durations[0]), float(durations[-1])
    return Total(kernel, launches, len(durations), float(durations.sum()), least, middle, high, most)
