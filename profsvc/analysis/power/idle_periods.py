"""When a board rested: by what it says of itself, where its log has that, and never by its power alone where that lies.

The lowest level of a log is not idle because it is the lowest: a board may have worked all the time. The share of time
in which kernels ran tells it; a clock that was let down tells rest, and one that was not tells nothing.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from profsvc.analysis.power.logs import Floats
from profsvc.analysis.power.sensor import PowerSensor
from profsvc.analysis.power.window_sums import window_statistic

# Mean share of time with a kernel, up to which a stretch is rest: a desktop or a tool that looks on takes so much.
MAX_IDLE_UTILIZATION = 0.05
# A clock below this share of the log's highest was let down.
MAX_IDLE_CLOCK_SHARE = 0.5
# Without a word of the board: a level so little above the lowest is a pause, in shares of the highest above it, ...
MAX_IDLE_LEVEL_SHARE = 0.1
# ... if the lowest is so small a share of the highest. A lighter load seldom consumes less than half.
MAX_LOWEST_TO_HIGHEST = 0.5
UTILIZATION_DELAY_S = 1.0
UNKNOWN, BUSY, IDLE = -1, 0, 1


def board_states(own: PowerSensor, begin_s: Floats, end_s: Floats) -> npt.NDArray[np.int64]:
    """Return what the board says of each stretch of time: it rested, it was busy, or nothing."""
    said = np.full(len(begin_s), UNKNOWN)
    if not len(begin_s):
        return said
    clock = own.companions.get("clock")
    if clock is not None and clock.value.size:
        median = window_statistic(clock, begin_s, end_s, np.median)
        said[median < MAX_IDLE_CLOCK_SHARE * float(clock.value.max())] = IDLE
    busy = own.companions.get("utilization")
    if busy is not None:
        # A reading is about the second before it: what still tells of the stretch before does not count.
        mean = window_statistic(busy, np.minimum(begin_s + UTILIZATION_DELAY_S, end_s), end_s, np.mean)
        known = np.isfinite(mean)
        said[known] = np.where(mean[known] < MAX_IDLE_UTILIZATION, IDLE, BUSY)
    return said


def idle_levels(
    own: PowerSensor, begin_s: Floats, end_s: Floats, level_w: Floats, every_w: Floats
) -> npt.NDArray[np.bool_]:
    """Tell which levels of a log are idle time; ``every_w`` has those as well at which the power did not stay.

    Where the board says nothing, the lowest levels are taken for it, if all else lies far above; that is said.
    """
    said = board_states(own, begin_s, end_s)
    rests: npt.NDArray[np.bool_] = said == IDLE
    unknown = said == UNKNOWN
    if not unknown.any() or rests.any():
        return rests
    low, high = float(np.min(every_w)), float(np.max(every_w))
    near = level_w <= low + MAX_IDLE_LEVEL_SHARE * (high - low)
    guessed: npt.NDArray[np.bool_] = unknown & near & np.bool_(low < MAX_LOWEST_TO_HIGHEST * high)
    if guessed.any():
        words = f"the log has no idle indicator; {np.min(level_w):.4g} W is assumed to be idle because"
        more = "all other levels are more than twice as high; log utilization.gpu as well, or mark the idle time"
        own.warn("idle_assumed", f"{words} {more}", float(np.min(level_w)), "W")
    return guessed


def idle_stretches(own: PowerSensor) -> tuple[Floats, Floats] | None:
    """Return the stretches in which the board says that no kernel ran; None where it says nothing."""
    busy = own.companions.get("utilization")
    if busy is None or not busy.value.size:
        return None
    rests = np.concatenate(([False], busy.value < MAX_IDLE_UTILIZATION, [False]))
    edges = np.flatnonzero(np.diff(rests.astype(np.int8)))
    return busy.time_s[edges[::2]], busy.time_s[edges[1::2] - 1]


def intersect_stretches(some: Sequence[Floats], others: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Stretches that lie in one of each kind.

    >>> intersect_stretches((np.array([0.0, 9.0]), np.array([5.0, 12.0])), (np.array([4.0]), np.array([10.0])))
    (array([4., 9.]), array([ 5., 10.]))
    """
    begin = np.maximum(some[0][:, np.newaxis], others[0]).ravel()
    end = np.minimum(some[1][:, np.newaxis], others[1]).ravel()
    return begin[begin < end], end[begin < end]
