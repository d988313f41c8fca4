"""Iterations of a program, from the ranges that it marked."""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

_NUMBER = re.compile(r"#?\d+")
_PROFILER_STEP = "ProfilerStep#"
_STEP_WORDS = re.compile(r"(?<![a-z])(?:step|iter|iteration|batch|epoch)(?![a-z])", re.IGNORECASE)


RangeTotal = tuple[int, str, int | None, int, float]
"""Number, name and process of ranges, how many there are, and their total time."""


class RangeGroup(NamedTuple):
    """Ranges of one process whose names differ by numbers only; ``name`` has # for each number."""

    name: str
    process: int | None
    names: list[int]
    ranges: int
    total_ns: float


def without_numbers(name: str) -> str:
    """Return a name with # for each number, or for # and a number.

    >>> without_numbers("step 12 of 100")
    'step # of #'
    >>> without_numbers("ProfilerStep#7")
    'ProfilerStep#'
    """
    return _NUMBER.sub("#", name)


def range_groups(totals: Iterable[RangeTotal]) -> list[RangeGroup]:
    """Return the groups of ranges that could be the iterations, the likeliest first.

    Steps of the PyTorch profiler come first, then names with a word for an iteration, each by the time that they
    cover. Other ranges are no iterations, as a range that repeats may as well be a layer or a call.

    >>> rows = [(1, "forward", 7, 4, 9.0), (2, "step 1", 7, 1, 5.0), (3, "step 2", 7, 1, 5.0)]
    >>> [(group.name, group.ranges, group.total_ns) for group in range_groups(rows)]
    [('step #', 2, 10.0)]
    """
    groups: dict[tuple[str, int | None], RangeGroup] = {}
    for number, name, process, ranges, total_ns in totals:
        alike = without_numbers(name)
        if alike == _PROFILER_STEP or _STEP_WORDS.search(alike):
            one = groups.setdefault((alike, process), RangeGroup(alike, process, [], 0, 0.0))
            groups[alike, process] = one._replace(
                names=[*one.names, number], ranges=one.ranges + ranges, total_ns=one.total_ns + total_ns
            )
    several = [group for group in groups.values() if group.ranges > 1]
    return sorted(several, key=lambda group: (group.name != _PROFILER_STEP, -group.total_ns, group.name))


def follow_each_other(ranges: Sequence[tuple[int, int, int]]) -> bool:
    """Tell whether ranges (start, end, name), in the order of their starts, do not overlap, as iterations do.

    >>> follow_each_other([(0, 5, 1), (5, 9, 2)]), follow_each_other([(0, 5, 1), (4, 9, 1)])
    (True, False)
    """
    return all(before[1] <= after[0] for before, after in pairwise(ranges))
