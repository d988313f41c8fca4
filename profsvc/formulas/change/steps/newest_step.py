"""Steps in the level of a series: how surely there is one, where, and from what to what."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from profsvc.formulas.change.levels.level_visits import visit_probability
from profsvc.formulas.change.levels.series_length import MIN_HISTORY, MIN_SEGMENT
from profsvc.formulas.change.levels.stretches import Stretches
from profsvc.formulas.change.noise.older_values import scatter_probability
from profsvc.formulas.change.noise.siblings import AUTOCORRELATIONS, NoisePrior, sibling_noise
from profsvc.formulas.change.steps.newest_values import newest_splits
from profsvc.formulas.change.steps.surest_step import MAX_LEAVE_ONE_OUT_RATIO, OUTLYING_SD, SurestStep, surest_step
from profsvc.formulas.change.steps.two_level_test import fitted, side
from profsvc.formulas.numerics.arrays import Array, Bools, Mask, mask
from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.numerics.series import (
    Index,
    Series,
    codes_of,
    difference_sd,
    gather,
    in_units_of_sd,
    lengths,
    medians,
    read_series,
    running_sums,
    sd_units,
    subseries,
    without_spikes,
)

ALPHA = 0.01
VALUE_COMPARISON_SD = 3.0  # levels further apart are compared value by value


class NewestStep(NamedTuple):
    """The surest step of each series, one entry per group."""

    p: Array  # probability of such a step, or a surer one, in a series without; NaN: not enough history
    p_suspected: Array  # the same, although it may depend on a single value
    at: NDArray[np.int64]  # place in the argument of the first value after it, -1: none
    before: Array  # median since the series began
    after: Array  # median since the step
    points_before: NDArray[np.int64]
    points_after: NDArray[np.int64]
    needed: NDArray[np.int64]  # further values until a step can be seen at all
    flags: Mask


def newest_step(
    value: ArrayLike,
    group: ArrayLike | None = None,
    standard_error: ArrayLike | None = None,
    prior: NoisePrior | None = None,
    stretches: Stretches | None = None,
    shortest: ArrayLike = MIN_SEGMENT,
    fresh: ArrayLike = 1,
    runs: ArrayLike = 1,
) -> NewestStep:
    r"""Probability that the level of a series did not change, with the weight on the newest values.

    .. math:: p = \max\left(\min_m \frac{2 p_m}{w_m},\ \max_i \frac{2 p_{m,-i}}{r_i w_m},\ p_{visit}\right), \qquad
              p_m = \sum_\rho \pi(\rho \mid a)\, T_{N-2}\!\left(\frac{\hat\delta_\rho}{s_\rho(\hat\delta_\rho)}\right)

    The newest m values are held against the n before them, for m of 3, 5, 8, 13, ... nights, with weights w. a are
    normal scores of the ranks in the whole series, so that neither heavy tails nor one outlier make a step; ties are
    broken by place. Where all m values lie beyond all n the ranks can say no more, and t is taken of the values; but p
    is never below the chance that the m largest of n + m values come last. delta is the difference of the two levels by
    generalised least squares in autoregressive noise. The autocorrelation is never known well from few values, so the
    tail of Student's distribution T is averaged over all autocorrelations rho, as probable as the residuals make them:
    a short series in which they may depend on each other needs a larger step, or more values.

    Siblings say how far values scatter: with them ``prior`` knows the variance with d degrees of freedom more, and a
    short series sees nearly as much as a long one. Then a are the values themselves, for scores of ranks have one
    variance whatever that of the values is. Heavy tails of the siblings make d small: then it remains with ranks.

    A series that goes to another level and comes back, as clocks do, has not changed when it is there again: where the
    new level was visited before, p is at least p_visit, the probability to be there and for as long, in a chain of two
    states that stays as it stayed so far.

    No step depends on one value: the surest window is tested again without each of its values in turn. The remaining
    step must still be improbable, although up to r = 5 times less so. Where the others show nothing at 5 %, no single
    value whatever makes a finding at 1 %; and where a value lies more than 2.5 sd from the others on its side, as a
    spike would, they must show the step without it (r = 1). This is near the optimum: of all rules that find a step of
    2 sd within five values in 90 %, the one that raises fewest for a spike of 3 sd among them, which by Neyman and
    Pearson is the ratio of likelihoods, still does in 1 %.

    Nor does one depend on fewer values than make a level: those that are nearer to the level before, and 2.5 sd from
    the other ones since, are at the level before still or again. Without as many as ``shortest`` beside them p is 1.

    After a constant level, which says nothing of the noise, p is at least that of the values since by their own
    scatter, unless siblings know it.

    Values that tower above both adjacent ones are spikes and left out; so is the newest one while it does, until the
    next value shows whether it lasts. Where a standard error is known (of the value, or the noise floor of runs of
    the same binary), a difference that it explains is not a step either.

    Source: own model; autoregressive errors after [PraisWinsten1954], their posterior after [Zellner1971].

    Args:
        value: Values of the series in order, flat [any]; NaN where one is missing.
        group: Id of the series of each value; None: one series.
        standard_error: Standard error of each value, or one for all [as the value]; None, NaN or 0: unknown.
        prior: Noise of each series as `noise_prior` has it of siblings; None: any autocorrelation and any variance.
            Where siblings know the variance better, the values are tested themselves, and not their scores.
        stretches: How often the siblings of each series leave their level and come back; None: unknown. Where a step
            of 6 sd leaves a gap of half of it, p is at least the probability that a stretch as long begins, instead of
            the chance of the places.
        shortest: Values that make a level, of each series or one for all.
        fresh: Newest values that no look has seen yet, of each series or one for all. Of a backlog the likeliest split
            is a window too, and half of the weights is spread over the looks that were not made.
        runs: Values of a night, of each series or one for all.

    Returns: NewestStep.

    Range: p in [0, 1]. Fewer than 8 values: NaN, with the number ``needed``. A series that is constant but for a step
    gives p = 0, with ZERO_DENOM: whether the step matters is not a question of probability. Infinite values count as
    missing, with INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    Nine nights at 10 ms, then three at 11 ms:

    >>> nights = [10.1, 9.9, 10.0, 10.2, 10.0, 9.8, 10.1, 9.9, 10.0, 11.1, 10.9, 11.0]
    >>> step = newest_step(nights)
    >>> bool(step.p < 1e-2), int(step.at), float(step.before), float(step.after)
    (True, 9, 10.0, 11.0)

    One outlier is not a step, and four values are too few:

    >>> bool(newest_step(nights[:9] + [99.0, 10.1, 9.9]).p > 0.5), int(newest_step(nights[:4]).needed)
    (True, 4)
    """
    x, error, groups = read_series(value, group, standard_error)
    series = gather(x, error, groups, ~np.isnan(x))
    n = lengths(series)
    every, series = series, without_spikes(series)
    scaled = in_units_of_sd(series)
    least, new, each = (np.broadcast_to(np.asarray(one, dtype=np.intp), n.shape) for one in (shortest, fresh, runs))
    best = surest_step(
        scaled,
        doubt=True,
        prior=None if prior is None else prior.in_units(sd_units(series)),
        stretches=stretches,
        shortest=least,
        fresh=new,
        runs=each,
    )
    best = best._replace(p=_with_visit_probability(scaled, best))
    known = ~np.isnan(best.p)
    split = np.where(known, best.split, series.start)
    alone = known if prior is None else known & ~prior.by_value  # siblings say no more than the series
    best = best._replace(p=np.where(alone, np.fmax(best.p, scatter_probability(series, split)), best.p))
    sides = 2 * codes_of(series) + (np.arange(series.x.size) >= split[codes_of(series)])
    levels = medians(series.x, sides, 2 * n.size).reshape(-1, 2)
    wild = known & (levels[:, 0] == levels[:, 1])  # one wild value in a constant series
    shown = _values_that_show(series, split, levels) >= least
    p = np.where(wild | (known & ~shown), 1.0, best.p)
    results = (
        p,
        np.where(wild, 1.0, best.p_suspected),
        np.where(known, _first_place(every, series, split, levels, known), -1),
        np.where(known, levels[:, 0], np.nan),
        np.where(known, levels[:, 1], np.nan),
        np.where(known, split - series.start, 0),
        np.where(known, series.stop - split, 0),
        np.maximum(MIN_SEGMENT + MIN_HISTORY - lengths(series), 0),
        mask((Flag.ZERO_DENOM, p == 0), (Flag.INPUT_SUSPECT, groups.any(_is_infinite(value, x)))),
    )
    return NewestStep(*groups.shaped(*results))


def noise_prior(value: ArrayLike, group: ArrayLike | None, family: ArrayLike, night: Index | None = None) -> NoisePrior:
    r"""Noise of each series, as its siblings say, for `newest_step`.

    A change of the newest values is no sign of dependence: they may have a level of their own, by `newest_splits`.

    Source: own model; `sibling_noise` of the residuals about the levels of `newest_step`.

    Args:
        value: Values of the series in order, flat [any]; NaN where one is missing.
        group: Id of the series of each value; None: one series.
        family: Number, from 0, of the family of each series, in ascending order of ids.
        night: Number of the night of each value; None: its place from the end of its series.

    Returns: NoisePrior; that of `flat_noise` for families of fewer than ten series.

    Range: rows add up to 1. A series with fewer than 8 values says nothing, and has what its siblings say.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    Twelve short series of independent noise say together what none says alone:

    >>> x = np.random.default_rng(1).standard_normal((12, 20))
    >>> prior = noise_prior(x.ravel(), np.repeat(np.arange(12), 20), np.zeros(12, dtype=np.int64))
    >>> bool(prior.weight[0, prior.rho < 0.25].sum() > 0.8)
    True
    """
    x, error, groups = read_series(value, group, None)
    series = without_spikes(gather(x, error, groups, ~np.isnan(x)))
    unit, n = sd_units(series), lengths(series)
    level = np.nan_to_num(medians(series.x, codes_of(series), n.size))
    left, constant = (np.full((n.size, len(AUTOCORRELATIONS)), np.nan) for _ in range(2))
    some = np.flatnonzero(n >= MIN_SEGMENT + MIN_HISTORY)
    of_family = np.asarray(family, dtype=np.intp).ravel()
    if some.size:
        part = subseries(in_units_of_sd(series), series.start[some], series.stop[some])
        split = newest_splits(part, of_family[some], None if night is None else night[part.place])
        sums = running_sums(part.x)
        sides = side(sums, part.start, split), side(sums, split, part.stop)
        for number, rho in enumerate(AUTOCORRELATIONS):
            fit = fitted(*sides, rho)
            left[some, number], constant[some, number] = fit.left * unit[some] ** 2, fit.constant
    return sibling_noise(left, constant, np.asarray(n - 2.0, dtype=np.float64), level, of_family)


def _values_that_show(series: Series, split: Index, levels: Array) -> Index:
    """Return how many values since the split of each series are no longer at the level before it.

    A large step of one or two values makes a window of more of them improbable. So does one that is over. The values
    that are nearer to the level before, and far from the other ones since, are still or again at it.
    """
    codes, size = codes_of(series), series.start.size
    later = np.arange(series.x.size) >= split[codes]
    rise = (levels[:, 1] - levels[:, 0])[codes]
    high = np.sign(rise) * (series.x - levels[:, 0][codes])  # above the level before, in the direction of the step
    upper = later & (high >= np.abs(rise) / 2)
    new = medians(high[upper], codes[upper], size)[codes]
    back = (high < new - high) & (new - high > OUTLYING_SD * difference_sd(series)[codes])
    return np.asarray(np.bincount(codes, later & ~back, size), dtype=np.intp)


AT_LEVEL = 0.5  # of a step: values that are nearer to its new level are at it


def _first_place(every: Series, kept: Series, split: Index, levels: Array, known: Bools) -> Index:
    """Return the place of the first value at the new level of each series: one that was left out may be it.

    The first value of a step that overshoots looks like a spike, and was left out of ``kept``.
    """
    first = np.append(kept.place, -1)[split]
    inside = known & (split > kept.start)
    position = np.zeros(int(every.place.max(initial=0)) + 1, dtype=np.intp)
    position[every.place] = np.arange(every.place.size)
    gap = np.where(inside, position[first] - position[np.append(kept.place, 0)[split - 1]], 0)
    for one in np.flatnonzero(inside & (gap > 1)):
        at = position[first[one]]
        for x in every.x[at - gap[one] + 1 : at][::-1]:
            if abs(x - levels[one, 1]) >= AT_LEVEL * abs(levels[one, 1] - levels[one, 0]):
                break
            at -= 1
        first[one] = every.place[at]
    return first


def _is_infinite(value: ArrayLike, x: Array) -> Bools:
    return np.isnan(x) & ~np.isnan(np.broadcast_to(np.asarray(value, dtype=np.float64), x.shape))


def _with_visit_probability(series: Series, best: SurestStep) -> Array:
    """Return p, or more where the series was at the new level before: the probability to be there and for as long."""
    out = best.p.copy()
    asked = np.flatnonzero(best.p < 1 / MAX_LEAVE_ONE_OUT_RATIO)
    if asked.size:
        part = subseries(series, series.start[asked], series.stop[asked])
        split = part.start + best.split[asked] - series.start[asked]
        out[asked] = np.maximum(out[asked], visit_probability(part, split, VALUE_COMPARISON_SD))
    return out
