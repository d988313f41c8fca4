"""Missing counters: launches that lack the same ones, their names in a message, and how to collect them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from profsvc import specs
from profsvc.tables.on_demand import pd

BITS_PER_CODE = 62
# Of more counters than these the first few are named.
MAX_LISTED, SHOWN_OF_MANY = 6, 3


def group_identical_rows(lacks: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Return the rows that differ, in the order they come in, and which of them each row is.

    >>> group_identical_rows(np.array([[True, False], [False, False], [True, False]]))
    (array([[ True, False],
           [False, False]]), array([0, 1, 0]))
    """
    place = np.zeros(len(lacks), np.int64)
    for begin in range(0, lacks.shape[1], BITS_PER_CODE):
        bits = lacks[:, begin : begin + BITS_PER_CODE]
        codes = pd.factorize(bits @ (1 << np.arange(bits.shape[1])))[0]
        place = pd.factorize(place * len(lacks) + codes)[0]
    first = np.empty(int(place.max(initial=-1)) + 1, np.intp)
    first[place[::-1]] = np.arange(len(place))[::-1]
    return lacks[first], place


def list_counters(names: Sequence[str]) -> str:
    """Name a few; of many the first, and how many more there are.

    >>> list_counters(["a", "b"]), list_counters(list("abcdefgh"))
    ('a, b', 'a, b, c and 5 more counters')
    """
    return (
        ", ".join(names)
        if len(names) <= MAX_LISTED
        else f"{', '.join(names[:SHOWN_OF_MANY])} and {len(names) - SHOWN_OF_MANY} more counters"
    )


@cache
def collection_hint(tool: str, names: tuple[str, ...], capability: str | None) -> str:
    """Say how to collect counters: by one command, that of everything where there are many."""
    if tool not in ("ncu", "nvprof"):
        return ""
    ways = [specs.how_to_collect(tool, name, capability) for name in names]
    if len(names) > MAX_LISTED or None in ways:
        return f"; {specs.how_to_measure(tool)}"
    asked: dict[str, dict[str, None]] = {}
    for way in filter(None, ways):
        option, _, what = way.removeprefix(f"{tool} ").partition(" ")
        asked.setdefault(option, {}).update(dict.fromkeys(what.split(",")))
    sections = [f"--section {name}" for name in asked.pop("--section", {})]
    others = [f"{option} {','.join(what)}".strip() for option, what in asked.items()]
    return f"; collect with: {tool} {' '.join([*sections, *others])}"
