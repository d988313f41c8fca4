"""The wall time of a device: every instant in exactly one category, so that the parts add up to the whole."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from profsvc.formulas.numerics.intervals import topmost, union_lengths

Ints = NDArray[np.int64]


class WallTime(NamedTuple):
    """Times of each category, in the unit of the intervals, and the pieces of time on which they rest.

    ``exposed`` is the budget of the categories; with ``uncovered``, the time that no interval covers, it adds up to
    the wall time. ``active`` is the length of the union of a category: what is in it beside ``exposed`` is hidden
    behind categories of a lower number. The pieces, which make up ``exposed``, do not cross the end of any event.
    """

    exposed: Ints
    active: Ints
    uncovered: int
    piece_start: Ints
    piece_length: Ints
    piece_top: Ints


def wall_time(
    start: ArrayLike, end: ArrayLike, category: ArrayLike, categories: int, begin: int, stop: int
) -> WallTime:
    r"""Split the wall time [begin, stop) by what went on; an instant counts for the lowest category active in it.

    .. math:: E_c = \Bigl|U_c \setminus \bigcup_{b < c} U_b\Bigr| \qquad U_c = \bigcup_{i:\; c_i = c} [start_i, end_i)
              \qquad \sum_c E_c + R = stop - begin

    Source: interval arithmetic over busy time; exposed communication as in Holistic Trace Analysis, for any number of
    categories. What removing a category could save is at most its exposed time, as all else goes on behind the rest.

    Args:
        start: First instant of each event [ns], integers; what lies outside [begin, stop) is cut off.
        end: First instant behind it; an event that does not end after its start covers nothing.
        category: Category of each event, 0 to ``categories`` - 1, the most useful first: kernels, copies, calls.
        categories: Number of categories.
        begin: First instant of the wall time.
        stop: First instant behind it.

    Returns: WallTime; ``piece_top`` is the event that each piece counts for, the one that starts last of its category.

    Range: ``exposed`` in [0, ``active``], ``active`` in [0, stop - begin]. A wall time that is no longer than 0: all 0.

    Errors: TypeError unless all are integers, ValueError for shapes that differ.

    A kernel from 0 to 60, a copy from 40 to 100 and a synchronization of the host from 0 to 130, of 150 ns:

    >>> found = wall_time([0, 40, 0], [60, 100, 130], [0, 1, 2], 3, 0, 150)
    >>> found.exposed.tolist(), found.uncovered, found.active.tolist()
    ([60, 40, 30], 20, [60, 60, 130])
    """
    stop = max(begin, stop)
    s, e = (np.clip(np.asarray(x), begin, stop) for x in (start, end))
    codes = np.asarray(category)
    rank = np.empty(codes.size, np.int64)
    rank[np.lexsort((np.asarray(start), -codes))] = np.arange(codes.size)  # also of what began before ``begin``
    segments = topmost(s, e, rank)
    length, top = segments.end - segments.start, segments.top
    covered = top >= 0
    length, top = length[covered], top[covered]
    exposed = np.zeros(categories, np.int64)
    if length.size:
        np.add.at(exposed, codes[top], length)
    active = union_lengths(s, e, codes, categories)
    uncovered = stop - begin - int(exposed.sum())
    return WallTime(exposed, active, uncovered, segments.start[covered], length, top)
