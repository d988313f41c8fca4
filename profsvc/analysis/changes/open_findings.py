"""Findings that are open: what later values say of them, and changes that end them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from profsvc.formulas.change.findings import FIXED, evidence, is_back, next_state

Row = dict[str, Any]
Floats = npt.NDArray[np.float64]
OPEN_STATES = ("new", "confirmed")
# Noise of a finding is taken for this share of its change at least: a series that never varied has none.
MIN_NOISE_SHARE = 0.1
STATE_REASONS = {
    "confirmed": "later runs are at the new level",
    "fixed": "the newest runs are back at the level before the change",
}


def series_ranges(points: pd.DataFrame) -> dict[str, range]:
    """Where the points of each series stand; those of one stand together."""
    group = points["group"].to_numpy(np.int64)
    starts = np.flatnonzero(np.r_[True, group[1:] != group[:-1]])
    stops = np.append(starts[1:], len(group))
    names = points["series"].iloc[starts].to_numpy(object)
    return {str(name): range(a, b) for name, a, b in zip(names, starts.tolist(), stops.tolist(), strict=True)}


def without_returns(
    found: Sequence[Row], moves: Sequence[Row], known: Sequence[Mapping[str, Any]]
) -> tuple[list[Row], list[Row]]:
    """A change back to the level before an open finding ends that one, and is none of its own."""
    latest = {str(one["series"]): one for one in known if one["state"] in OPEN_STATES}
    kept, ended = [], {}
    for row in found:
        old = latest.get(str(row["series"]))
        if old is None or not _ends(row, old):
            kept.append(row)
            continue
        move = {
            "finding_id": int(old["finding_id"]),
            "state": FIXED,
            "was": old["state"],
            "because": STATE_REASONS[FIXED],
        }
        ended[move["finding_id"]] = move | {"said_at": row["found_at"]}
    return kept, [move for move in moves if move["finding_id"] not in ended] + list(ended.values())


def _ends(row: Row, old: Mapping[str, Any]) -> bool:
    """Tell whether a change goes back to the level before an open finding: half of the way is a change of its own."""
    before, after, level = float(old["before"]), float(old["after"]), float(row["after"])
    sd = max(float(old["noise"] or 0.0), MIN_NOISE_SHARE * abs(after - before))
    nearer = abs(level - before) < abs(level - after)
    return nearer and bool(is_back(level, before, after, sd, float(row["points_after"])))


def state_changes(
    points: pd.DataFrame, value: Floats, known: Sequence[Mapping[str, Any]]
) -> tuple[list[Row], dict[int, str]]:
    """What the values since they were found say of the findings that are open."""
    span, at, until = series_ranges(points), points["at"].to_numpy(object), points["until"].to_numpy(object)
    alive = [one for one in known if one["state"] in OPEN_STATES and str(one["series"]) in span]
    if not alive:
        return [], {}
    since, groups = [], []
    for number, finding in enumerate(alive):
        own = np.arange(span[str(finding["series"])].start, span[str(finding["series"])].stop)
        later = own[at[own] > finding["found_at"]]
        # One at least for each, so that every finding has its verdict.
        since += [np.nan, *value[later].tolist()]
        groups += [number] * (1 + len(later))
    before, after = (np.array([one[name] for one in alive], dtype=np.float64) for name in ("before", "after"))
    noise = np.array([one["noise"] for one in alive], dtype=np.float64)
    sd = np.fmax(noise, MIN_NOISE_SHARE * np.abs(after - before))
    said = evidence(np.array(since), before, after, sd, np.array(groups))
    moves, seen = [], {}
    for number, finding in enumerate(alive):
        newest = str(until[span[str(finding["series"])].stop - 1])
        seen[int(finding["finding_id"])] = newest
        state = next_state(str(finding["state"]), bool(said.holds[number]), bool(said.returned[number]))
        if state != finding["state"]:
            move = {"finding_id": int(finding["finding_id"]), "state": state, "was": finding["state"]}
            moves.append(move | {"because": STATE_REASONS[state], "said_at": newest})
    return moves, seen
