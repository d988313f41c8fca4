"""What of the launches of a trace must be kept for criterion A, so that no launch need be: they come in pieces."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Timeline(NamedTuple):
    """Sums over launches that came in the order of their start; all times in ns, all but ``first_ns`` count from it.

    ``span_ns`` is the end of the launch that ends last, ``last_end_ns`` of the launch that begins last; ``busy_ns`` is
    the length of the union of all launches, ``total_ns`` the sum of their durations.
    """

    first_ns: int
    span_ns: float
    busy_ns: float
    last_start_ns: int
    last_end_ns: float
    total_ns: float
    overlapped: bool = False
    suspected: bool = False


def is_in_order(line: Timeline | None, start: NDArray[np.int64]) -> bool:
    """Tell whether launches that begin at ``start`` are in order, and none begins before the last one of ``line``.

    >>> is_in_order(None, np.array([3, 5, 5])), is_in_order(None, np.array([5, 3]))
    (True, False)
    """
    if not start.size:
        return True
    return (line is None or int(start[0]) - line.first_ns >= line.last_start_ns) and bool(
        (start[1:] >= start[:-1]).all()
    )


def append_launches(line: Timeline | None, start: NDArray[np.int64], duration: NDArray[np.float64]) -> Timeline | None:
    """Return ``line`` with launches put behind it, which must follow; None for no launch at all.

    >>> line = append_launches(None, np.array([0, 5]), np.array([10.0, 15.0]))
    >>> line = append_launches(line, np.array([30]), np.array([10.0]))
    >>> line.busy_ns, line.span_ns, line.total_ns, line.overlapped
    (30.0, 40.0, 35.0, True)
    """
    if not start.size:
        return line
    if line is None:
        line = Timeline(int(start[0]), -np.inf, 0.0, 0, -np.inf, 0.0)
    # Modulo 2**64 the difference to the earliest is exact for all pairs of 64-bit integers.
    t = (start.astype(np.uint64) - np.int64(line.first_ns).astype(np.uint64)).astype(np.float64)
    with np.errstate(all="ignore"):
        end = t + duration
        latest = np.maximum.accumulate(np.concatenate(([line.span_ns], end)))
        before = latest[:-1]
        alone = np.maximum(0.0, end - np.maximum(t, before))
        # A launch's end and the next start are both rounded.
        began = np.concatenate(([float(line.last_start_ns)], t[:-1]))
        # Of launches that begin together the longer one counts as the later, whatever order they came in.
        later = np.where((t == began) & np.isfinite(before), np.maximum(end, before), end)
        overlaps = np.minimum(end, before) - t > 4 * np.spacing(later)
    last = int(start[-1]) - line.first_ns
    tie = line.last_end_ns if last == line.last_start_ns else -np.inf
    return Timeline(
        line.first_ns,
        float(latest[-1]),
        line.busy_ns + float(alone.sum()),
        last,
        max(tie, float(end[start == start[-1]].max())),
        line.total_ns + float(duration.sum()),
        line.overlapped or bool(overlaps.any()),
        line.suspected or not bool((np.isfinite(duration) & (duration >= 0)).all()),
    )
