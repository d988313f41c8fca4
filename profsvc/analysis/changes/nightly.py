"""Nightly evaluation of all series: new changes, new states of older findings, and runs to repeat.

Every earlier finding that is not fixed starts a new baseline of its series. For a fixed finding, the values between the
change and the return are excluded. Later values confirm a finding or mark it as fixed.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from profsvc import specs
from profsvc.analysis.changes.board_conditions import without_other_conditions
from profsvc.analysis.changes.events import Siblings
from profsvc.analysis.changes.explanations.explained import explained
from profsvc.analysis.changes.open_findings import series_ranges, state_changes, without_returns
from profsvc.analysis.changes.other_state_steps import with_steps_in_other_state
from profsvc.analysis.changes.second_steps import with_second_steps
from profsvc.analysis.changes.series.calm_nights import left_out_counts
from profsvc.analysis.changes.series.night_series import NightSeries, night_series, verdict_on
from profsvc.analysis.changes.series.night_siblings import siblings_of_found
from profsvc.analysis.changes.series.run_series import IDENTITY, with_texts
from profsvc.formulas.change import nightly_test
from profsvc.formulas.change.findings import FIXED
from profsvc.formulas.change.steps.newest_step import ALPHA, newest_step

Row = dict[str, Any]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
MAX_AUTOCORRELATION = 0.9
RERUNS = 2  # a re-run is requested where so many values more, at the suspected level, would make a finding
MAX_RERUN_SHARE = 0.05  # of the series of a night; the surest of them


class NightlyFindings(NamedTuple):
    """The verdict on a night."""

    found: list[Row]  # new findings
    moves: list[Row]  # finding_id, state, because, said_at
    seen: dict[int, str]  # finding -> time of the newest run that was looked at for it
    reruns: list[Row]
    explained: list[Row]  # raw power that changed where the corrected one did not
    tested: int
    short: int  # series with too few runs
    needed: int  # runs that the shortest of them lacks
    told: list[Row]  # steps that have another explanation: drift, levels that are visited, too close dependence
    left_out: Row  # what `left_out_counts` says
    siblings: Sequence[Siblings] = ()  # what `siblings_of_found` says


def find_changes(
    points: pd.DataFrame,
    known: Sequence[Mapping[str, Any]],
    tonight: Collection[int] | None = None,
    zone: str = "UTC",
) -> NightlyFindings:
    """Return the verdict on series, given as `profsvc.analysis.changes.series.run_series.to_series` arranges them.

    ``known``: the findings so far, with ``state`` and ``said_at``. ``tonight``: the runs that no report has looked at
    yet; None: the newest of each series. ``zone``: in which a night is a date. Column ``build`` of the points names the
    binary.
    """
    if points.empty:
        return NightlyFindings([], [], {}, [], [], 0, 0, 0, [], {})
    night = night_series(points, known, tonight, zone)
    verdict, value, before, told = _judged(night, [one for one in known if one["state"] != FIXED])
    points, heads = night.points, night.heads
    known_p = ~np.isnan(verdict.p)
    needed = verdict.needed[~known_p]
    found = without_other_conditions(_new_findings(points, heads, value, before, verdict), points)
    moves, seen = state_changes(points, night.calm.value, known)
    return NightlyFindings(
        *without_returns(found, moves, known),
        seen,
        _requested_reruns(night, value, verdict),
        _temperature_changes(night, value, verdict),
        int(known_p.sum()),
        int((~known_p).sum()),
        int(needed[needed > 0].min()) if (needed > 0).any() else 0,
        [_identity(heads, one) | row for one, row in told.items()],
        left_out_counts(points, night.calm.left_out) | {"weekly": int(points["group"][night.weekly].nunique())},
        siblings_of_found(night, found),
    )


class _Judged(NamedTuple):
    verdict: nightly_test.NightlyVerdict
    value: Floats  # that show it
    before: nightly_test.NewestValue  # how the values before each step behave
    told: dict[int, Row]  # by group, what explains the others


def _judged(night: NightSeries, unfixed: Sequence[Mapping[str, Any]]) -> _Judged:
    """Return the verdict on each series; ``unfixed``: the findings that are open."""
    verdict = verdict_on(night)
    before = _values_before(night, verdict)
    verdict, told = explained(night, verdict, before)
    verdict, before = with_second_steps(
        night.calm.value, night.value, series_ranges(night.points), unfixed, verdict, before, night.least
    )
    verdict, value = with_steps_in_other_state(
        night.points, night.every, night.calm.left_out, night.value, night.family, verdict, night.least
    )
    return _Judged(verdict, value, before, told)


def _values_before(night: NightSeries, verdict: nightly_test.NightlyVerdict) -> nightly_test.NewestValue:
    """Return how the values before each step that may be one behave."""
    group, place = night.points["group"].to_numpy(np.int64), np.arange(len(night.points))
    likely = verdict.p <= ALPHA
    first = np.where(likely, verdict.at, 0)[group]
    return nightly_test.newest_value(np.where(place < first, night.value, np.nan), group, night.error)


def _identity(heads: pd.DataFrame, one: int) -> Row:
    return {name: heads[name].iloc[one] for name in ("series", *IDENTITY, "kind", "unit")}


def _new_findings(
    points: pd.DataFrame,
    heads: pd.DataFrame,
    value: Floats,
    before: nightly_test.NewestValue,
    verdict: nightly_test.NightlyVerdict,
) -> list[Row]:
    if not verdict.found.any():
        return []
    starts = np.append(np.flatnonzero(np.diff(points["group"].to_numpy(np.int64), prepend=-1)), len(points))
    rho = np.clip(np.nan_to_num(before.autocorrelation), 0.0, MAX_AUTOCORRELATION)
    noise = before.sd * np.sqrt((1 + rho) / (1 - rho))
    rows, raw = [], points["raw"].to_numpy(np.float64)
    for one in np.flatnonzero(verdict.found).tolist():
        own = starts[one] + np.flatnonzero(~np.isnan(value[starts[one] : starts[one + 1]]))
        at = int(verdict.at[one])
        sides = own[own < at], own[own >= at]
        old, new = float(verdict.before[one]), float(verdict.after[one])
        changed, newest = points.iloc[at], points.iloc[int(starts[one + 1]) - 1]
        levels = [_median(raw[side]) for side in sides]
        rows.append(
            _identity(heads, one)
            | {
                "worse": _worse(str(heads["kind"][one]), new - old),
                "before": old,
                "after": new,
                "raw_before": levels[0],
                "raw_after": levels[1],
                "p": float(verdict.p[one]),
                "adjusted_p": float(verdict.adjusted[one]),
                "noise": _number(noise[one]),
                "reference_temperature_c": _number(changed["reference_c"]),
                "points_before": len(sides[0]),
                "points_after": len(sides[1]),
                "run_before_id": int(points["run_id"].iloc[sides[0][-1]]),
                "run_id": int(changed["run_id"]),
                "changed_at": str(changed["at"]),
                "found_at": str(newest["until"]),
                "seen_at": str(newest["until"]),
            }
        )
    return rows


def _median(values: Floats) -> float | None:
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) else None


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _worse(kind: str, difference: float) -> int | None:
    direction = specs.smallest_change(kind).worse
    return None if direction == "neither" else int((difference > 0) == (direction == "up"))


def _requested_reruns(night: NightSeries, value: Floats, verdict: nightly_test.NightlyVerdict) -> list[Row]:
    """The newest run of series that may have changed and of which a few runs more decide, the surest first."""
    rows, points, heads = [], night.points, night.heads
    starts = np.append(np.flatnonzero(np.diff(points["group"].to_numpy(np.int64), prepend=-1)), len(points))
    tests = max(int(np.isfinite(verdict.p).sum()), nightly_test.MIN_TESTS)
    # So sure must one finding more be, beside the others of the night.
    enough = min(ALPHA, nightly_test.MAX_FALSE_DISCOVERY_RATE * (1 + int(verdict.found.sum())) / tests)
    asked, more = list[tuple[int, Ints, float]](), list[Floats]()
    for one in np.flatnonzero(verdict.rerun_wanted).tolist():
        own = starts[one] + np.flatnonzero(~np.isnan(value[starts[one] : starts[one + 1]]))
        newest, expected = float(value[own[-1]]), float(np.median(value[own[:-1]]))
        least = night.least[0][one], night.least[1][one]
        stepped = nightly_test.effect(verdict.before[one], verdict.after[one], *least).material
        if not (nightly_test.effect(expected, newest, *least).material or stepped):
            continue
        suspected = newest if verdict.newest_p[one] <= nightly_test.RERUN_P else float(verdict.after[one])
        asked.append((one, own, expected))
        more.append(np.append(value[own], [suspected] * RERUNS))
    if not asked:
        return []
    errors = [np.append(night.error[own], [night.error[own[-1]]] * RERUNS) for _, own, _ in asked]
    number = np.repeat(np.arange(len(asked)), [len(one) for one in more])
    then = newest_step(
        np.concatenate(more), number, np.concatenate(errors), night.prior.of(np.array([one for one, _, _ in asked]))
    )
    for (one, own, expected), p in zip(asked, np.atleast_1d(then.p).tolist(), strict=True):
        if p > enough:
            continue
        run, newest = with_texts(points.iloc[own[-1:]]).iloc[0], float(value[own[-1]])
        rows.append(
            _identity(heads, one)
            | {"run_id": int(run["run_id"]), "run": run["run"], "value": newest, "expected": expected}
            | {"worse": _worse(str(heads["kind"][one]), newest - expected)}
            | {"p": _number(np.fmin(verdict.newest_p[one], verdict.p[one])), "p_with_reruns": p}
        )
    most = max(1, int(MAX_RERUN_SHARE * np.isfinite(verdict.p).sum()))
    return sorted(rows, key=lambda row: (row["p_with_reruns"], row["p"]))[:most]


def _temperature_changes(night: NightSeries, value: Floats, verdict: nightly_test.NightlyVerdict) -> list[Row]:
    """Power and energy that changed as they were measured, and did not at one temperature."""
    points, (relative, absolute) = night.points, night.least
    raw = np.where(np.isnan(value), np.nan, points["raw"].to_numpy(np.float64))
    both = ~np.isnan(raw)
    if not both.any():
        return []
    groups = np.unique(points["group"].to_numpy(np.int64)[both])
    least = {"relative": relative[groups], "absolute": absolute[groups]}
    asked = nightly_test.nightly_verdict(raw[both], points["group"].to_numpy(np.int64)[both], **least)
    rows = []
    for place in np.flatnonzero(asked.found & ~verdict.found[groups]).tolist():
        one = int(groups[place])
        own = np.flatnonzero((points["group"].to_numpy(np.int64) == one) & both)
        split = own >= np.flatnonzero(both)[int(asked.at[place])]
        rows.append(
            _identity(night.heads, one)
            | {"raw_before": float(asked.before[place]), "raw_after": float(asked.after[place])}
            | {"before": _median(value[own[~split]]), "after": _median(value[own[split]])}
            | {"p": float(asked.p[place])}
        )
    return rows


def series_of_tonight(points: pd.DataFrame, tonight: Collection[int]) -> pd.DataFrame:
    """Return the points of the series that a run of tonight has one of, renumbered from 0."""
    fresh = points["run_id"].isin(list(tonight))
    inside = points["group"].isin(points.loc[fresh, "group"].unique())
    if inside.all():
        return points
    kept = points[inside].reset_index(drop=True)
    return kept.assign(group=pd.factorize(kept["group"])[0])
