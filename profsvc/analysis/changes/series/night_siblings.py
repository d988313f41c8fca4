"""What the siblings of changed kernels did since the same nights, though none of them for sure."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from profsvc.analysis.changes.events import MIN_TOGETHER, Siblings
from profsvc.analysis.changes.series.night_series import NightSeries
from profsvc.analysis.changes.series.night_values import night_numbers

NEAR_NIGHTS = 2  # by which noise moves the begin of a step
BEFORE, SINCE = 20, 5  # values of each series before the run, and since
MIN_VALUES = 3
MAX_ASKED = 1000  # series
Board = tuple[Any, Any]
"""Project and device."""


def siblings_of_found(night: NightSeries, found: Sequence[Mapping[str, Any]]) -> list[Siblings]:
    """Return by how much the other durations changed where three findings or more begin within two nights of one run.

    The changes are relative, of the medians of up to 20 values before that run and five since. A new driver that makes
    all kernels 1 % slower is sure in some of them before the others, and noise moves the begin of each.
    """
    runs = night.points["run_id"].to_numpy(np.int64)
    first_of_run, place = np.unique(runs, return_index=True)
    number = dict(zip(first_of_run.tolist(), night_numbers(night.points)[place].tolist(), strict=True))
    of_board = dict[Board, list[Mapping[str, Any]]]()
    for row in found:
        if row["kind"] == "duration":
            of_board.setdefault((row["project"], row["device"]), []).append(row)
    out = list[Siblings]()
    for board, rows in of_board.items():
        began = np.array([number[int(row["run_id"])] for row in rows])
        left = np.ones(began.size, dtype=np.bool_)
        while left.any():
            count = np.bincount(began[left], minlength=len(number) + 1)
            near = np.convolve(count, np.ones(2 * NEAR_NIGHTS + 1), mode="same") * (count > 0)
            center = int(np.lexsort((count, near))[-1])  # of those with as many near them, where most begin
            if near[center] < MIN_TOGETHER:
                break
            inside = left & (np.abs(began - center) <= NEAR_NIGHTS)
            own = [rows[one] for one in np.flatnonzero(inside)]
            changes = _changes_of_others(night, board, own, center)
            out.append(Siblings(board, tuple(sorted({int(row["run_id"]) for row in own})), changes))
            left &= ~inside
    return out


def _changes_of_others(night: NightSeries, board: Board, rows: Sequence[Mapping[str, Any]], begun: int) -> list[float]:
    """Return the changes of durations without one of these findings since a night, at most of some of them."""
    heads, group = night.heads, night.points["group"].to_numpy(np.int64)
    own = (heads["kind"] == "duration") & (heads["project"] == board[0]) & (heads["device"] == board[1])
    others = np.flatnonzero(own & ~heads["series"].isin([row["series"] for row in rows]))
    since, known = night_numbers(night.points) >= begun, ~np.isnan(night.value)
    edges, changes = np.searchsorted(group, np.arange(len(heads) + 1)), list[float]()
    for one in others[:: max(1, -(-others.size // MAX_ASKED))].tolist():
        inside = slice(edges[one], edges[one + 1])
        x, later = night.value[inside][known[inside]], since[inside][known[inside]]
        before, after = x[~later][-BEFORE:], x[later][:SINCE]
        if min(before.size, after.size) >= MIN_VALUES and np.median(before) > 0:
            changes.append(float(np.median(after) / np.median(before) - 1.0))
    return changes
