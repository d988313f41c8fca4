"""When a board rested: by what it says of itself, where its log has that, and never by its power alone where that lies.

The lowest level of a log is not idle because it is the lowest: a board may have worked all the time. The share of time
in which kernels ran tells it; a clock that was let down tells rest, and one that was not tells nothing.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from profsvc.analysis.power_logs import Floats
from profsvc.analysis.power_sensor import Measured
from profsvc.analysis.power_sums import each

# Mean share of time with a kernel, up to which a stretch is rest: a desktop or a tool that looks on takes so much.
AT_REST = 0.05
# A clock below this share of the log's highest was let down.
LET_DOWN = 0.5
# Without a word of the board: a level so little above the lowest is a pause, in shares of the highest above it, ...
IDLE_SHARE = 0.1
# ... if the lowest is so small a share of the highest. A load that is lighter than another seldom draws less than half.
LIGHT = 0.5
LATE_S = 1.0
UNKNOWN, BUSY, RESTED = -1, 0, 1


def told(own: Measured, begin_s: Floats, end_s: Floats) -> npt.NDArray[np.int64]:
    """Return what the board says of each stretch of time: it rested, it was busy, or nothing."""
    said = np.full(len(begin_s), UNKNOWN)
    if not len(begin_s):
        return said
    clock = own.companions.get("clock")
    if clock is not None and clock.value.size:
        median = each(clock, begin_s, end_s, np.median)
        said[median < LET_DOWN * float(clock.value.max())] = RESTED
    busy = own.companions.get("utilization")
    if busy is not None:
        # A reading is about the second before it: what still tells of the stretch before does not count.
        mean = each(busy, np.minimum(begin_s + LATE_S, end_s), end_s, np.mean)
        known = np.isfinite(mean)
        said[known] = np.where(mean[known] < AT_REST, RESTED, BUSY)
    return said


def resting(own: Measured, begin_s: Floats, end_s: Floats, level_w: Floats, every_w: Floats) -> npt.NDArray[np.bool_]:
    """Tell which levels of a log are idle time; ``every_w`` has those as well at which the power did not stay.

    Where the board says nothing, the lowest levels are taken for it, if all else lies far above; that is said.
    """
    said = told(own, begin_s, end_s)
    rests: npt.NDArray[np.bool_] = said == RESTED
    unknown = said == UNKNOWN
    if not unknown.any() or rests.any():
        return rests
    low, high = float(np.min(every_w)), float(np.max(every_w))
    near = level_w <= low + IDLE_SHARE * (high - low)
    guessed: npt.NDArray[np.bool_] = unknown & near & np.bool_(low < LIGHT * high)
    if guessed.any():
        words = f"nothing in the log says that the board rested at {np.min(level_w):.4g} W: it is taken for idle, as"
        more = "all else draws more than twice as much; log utilization.gpu beside the power, or mark the idle time"
        own.beware("idle_assumed", f"{words} {more}", float(np.min(level_w)), "W")
    return guessed


def quiet(own: Measured) -> tuple[Floats, Floats] | None:
    """Return the stretches in which the board says that no kernel ran; None where it says nothing."""
    busy = own.companions.get("utilization")
    if busy is None or not busy.value.size:
        return None
    rests = np.concatenate(([False], busy.value < AT_REST, [False]))
    edges = np.flatnonzero(np.diff(rests.astype(np.int8)))
    return busy.time_s[edges[::2]], busy.time_s[edges[1::2] - 1]


def meeting(some: Sequence[Floats], others: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Stretches that lie in one of each kind.

    >>> meeting((np.array([0.0, 9.0]), np.array([5.0, 12.0])), (np.array([4.0]), np.array([10.0])))
    (array([4., 9.]), array([ 5., 10.]))
    """
    begin = np.maximum(some[0][:, np.newaxis], others[0]).ravel()
    end = np.minimum(some[1][:, np.newaxis], others[1]).ravel()
    return begin[begin < end], end[begin < end]
