"""The series that a night is judged by: the values of their baselines, and what siblings say of their noise."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from profsvc import specs
from profsvc.analysis.changes.board_conditions import of_other_conditions
from profsvc.analysis.changes.explanations.drifts import after_drifts
from profsvc.analysis.changes.explanations.families import families
from profsvc.analysis.changes.explanations.weekly_parts import weekly_parts
from profsvc.analysis.changes.series.baselines import earlier_parts, in_baseline
from profsvc.analysis.changes.series.calm_nights import CalmNights, as_loud_as_newest, calm_nights, with_noise_of_newest
from profsvc.analysis.changes.series.night_values import night_numbers, night_values, with_nights
from profsvc.analysis.changes.series.run_series import with_texts
from profsvc.formulas.change import nightly_test
from profsvc.formulas.change.findings import FIXED
from profsvc.formulas.change.levels.stretches import Stretches, stretches_of_siblings
from profsvc.formulas.change.noise.older_values import constant_begins
from profsvc.formulas.change.noise.siblings import NoisePrior
from profsvc.formulas.change.steps.newest_step import noise_prior
from profsvc.formulas.numerics.series import codes_of, gather, medians, read_series

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
MIN_STRETCH_SHARE = 0.5  # of the reporting threshold: nearer values are at the same level


class NightSeries(NamedTuple):
    """Series up to a night, one row per point or per group; values are NaN where they do not count."""

    points: pd.DataFrame  # with the values of nights, without what the day of the week adds
    heads: pd.DataFrame  # the first point of each series
    family: npt.NDArray[np.intp]  # number of the family of each series
    least: tuple[Floats, Floats]  # reporting thresholds of each series, relative and absolute
    weekly: Bools  # which points the day of the week moved
    calm: CalmNights
    every: Floats  # values of the baselines, with those of nights that are left out
    value: Floats  # values of the baselines, with the noise of the newest ones
    whole: Floats  # with the excursions that findings ended with
    earlier: dict[int, list[Floats]]  # values of before the baselines, by group, in parts between changes
    error: Floats  # standard error of each value
    prior: NoisePrior
    fresh: Ints  # how many values of each series no report has looked at yet


def night_series(
    points: pd.DataFrame, known: Sequence[Mapping[str, Any]], tonight: Collection[int] | None, zone: str
) -> NightSeries:
    """Return what the verdict on a night is about; the arguments are those of `find_changes`."""
    points = night_values(with_nights(points, zone))
    heads = with_texts(points.drop_duplicates("group").reset_index(drop=True))
    family = families(heads)
    weekly = weekly_parts(points, family)
    if weekly.any():
        points = points.assign(value=points["value"] - weekly)
    calm = calm_nights(points, family)
    raw, group = calm.value, points["group"].to_numpy(np.int64)
    told_before = [*known, *of_other_conditions(points, heads, raw, known)]
    kept = in_baseline(points, raw, told_before)
    value = np.where(kept, raw, np.nan)
    lasting = after_drifts(value, group, family)
    value[~lasting] = np.nan
    value = _without_constant_begins(as_loud_as_newest(value, points, family), group)
    value = with_noise_of_newest(value, points, family)
    floor = nightly_test.noise_floor(value, _binaries(points["build"]), group).sd
    changes = [one for one in told_before if one["state"] != FIXED]
    return NightSeries(
        points=points,
        heads=heads,
        family=family,
        least=_reporting_thresholds(heads),
        weekly=weekly != 0,
        calm=calm,
        every=np.where(kept & lasting, points["value"].to_numpy(np.float64), np.nan),
        value=value,
        whole=np.where(in_baseline(points, raw, changes) & lasting, raw, np.nan),
        earlier=earlier_parts(points, raw, changes),
        error=np.fmax(points["error"].to_numpy(np.float64), floor[group]),
        prior=noise_prior(value, group, family, night_numbers(points)),
        fresh=_fresh(points, value, tonight),
    )


def verdict_on(night: NightSeries) -> nightly_test.NightlyVerdict:
    """Return the verdict on each series before other explanations of its step."""
    points, value = night.points, night.value
    return nightly_test.nightly_verdict(
        value, points["group"].to_numpy(np.int64), night.error, relative=night.least[0], absolute=night.least[1],
        prior=night.prior, stretches=_stretches(night), shortest=night.calm.shortest, fresh=night.fresh,
        runs=_runs_of_nights(points, value),
    )  # fmt: skip


def _reporting_thresholds(heads: pd.DataFrame) -> tuple[Floats, Floats]:
    least = [specs.smallest_change(kind) for kind in heads["kind"]]
    return np.array([one.relative for one in least]), np.array([one.absolute for one in least])


def _without_constant_begins(value: Floats, group: Ints) -> Floats:
    """Return the values without those of before a series began to scatter, which say nothing of its noise."""
    x, error, groups = read_series(value, group, None)
    series = gather(x, error, groups, ~np.isnan(x))
    out = value.copy()
    out[series.place[constant_begins(series)]] = np.nan
    return out


def _binaries(build: pd.Series) -> Ints:
    """Return a number for each binary; of a run that does not say which, one of its own."""
    codes, _ = pd.factorize(build)
    return np.where(codes < 0, -1 - np.arange(len(codes)), codes).astype(np.int64)


def _fresh(points: pd.DataFrame, value: Floats, tonight: Collection[int] | None) -> Ints:
    """Return how many values of each series no report has looked at yet; one at least."""
    group = points["group"].to_numpy(np.int64)
    new = points["run_id"].isin(list(tonight or ())).to_numpy() & ~np.isnan(value)
    return np.maximum(np.bincount(group, new, int(group[-1]) + 1).astype(np.int64), 1)


def _runs_of_nights(points: pd.DataFrame, value: Floats) -> Ints:
    """Return how many values of each series a night has: the mean, and one at least."""
    known = ~np.isnan(value)
    group, size = points["group"].to_numpy(np.int64), int(points["group"].iloc[-1]) + 1
    of_night = np.unique(np.stack((group[known], night_numbers(points)[known])), axis=1)[0]
    values, nights = np.bincount(group[known], minlength=size), np.bincount(of_night, minlength=size)
    return np.maximum(np.rint(values / np.maximum(nights, 1)), 1).astype(np.int64)


def _stretches(night: NightSeries) -> Stretches:
    """Return how often series and their siblings leave their level and come back."""
    x, error, groups = read_series(night.whole, night.points["group"].to_numpy(np.int64), None)
    series = gather(x, error, groups, ~np.isnan(x))
    center = np.nan_to_num(medians(series.x, codes_of(series), len(night.heads)))
    relative, absolute = night.least
    least = np.maximum(relative * np.abs(center), absolute) * MIN_STRETCH_SHARE
    return stretches_of_siblings(series, night.family, least)
