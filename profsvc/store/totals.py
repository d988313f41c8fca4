"""All launches of a kernel in a file, summed up: how many, how long in total, and how their durations are spread.

Percentiles need every duration, so these wait in a temporary file and are sorted a few kernels at a time: the memory
does not grow with the file, but with the launches of its busiest kernel beyond `AT_ONCE`.
"""

import tempfile
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

RECORD = np.dtype([("kernel", "<i8"), ("duration", "<f8")])
IN_MEMORY = 1 << 20
AT_ONCE = 1 << 19
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


class Totals:
    """Gathers the durations of launches, batch by batch."""

    def __init__(self) -> None:
        """Begin with no launches."""
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115
        self._launches: dict[int, int] = {}

    def add(self, kernels: Ints, durations: Floats) -> None:
        """Take the kernel and the duration in ns of each launch, NaN where there is none."""
        for kernel, count in zip(*np.unique(kernels, return_counts=True), strict=True):
            self._launches[int(kernel)] = self._launches.get(int(kernel), 0) + int(count)
        timed = ~np.isnan(durations)
        records = np.empty(int(timed.sum()), RECORD)
        records["kernel"], records["duration"] = kernels[timed], durations[timed]
        self._file.write(records.tobytes())

    def close(self) -> None:
        """Let go of the temporary file."""
        self._file.close()

    def rows(self) -> Iterator[Total]:
        """Yield a row a kernel, in the order of their numbers."""
        for group in self._groups():
            found = [part[(part["kernel"] >= group[0]) & (part["kernel"] <= group[-1])] for part in self._parts()]
            records = np.concatenate(found) if found else np.empty(0, RECORD)
            records = records[np.argsort(records["kernel"], kind="stable")]
            bounds = np.searchsorted(records["kernel"], [*group, group[-1] + 1])
            for kernel, begin, end in zip(group, bounds, bounds[1:], strict=False):
                yield _total(kernel, self._launches[kernel], np.sort(records["duration"][begin:end]))

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

    def _parts(self) -> Iterator[npt.NDArray[Any]]:
        self._file.seek(0)
        while block := self._file.read(IN_MEMORY // RECORD.itemsize * RECORD.itemsize):
            yield np.frombuffer(block, RECORD)


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
