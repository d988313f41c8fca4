"""Steps in the level of a series: how surely there is one, where, and from what to what."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from profsvc.formulas.change.level_visits import largest_last_probability, visit_probability
from profsvc.formulas.change.siblings import flat_prior, sibling_prior
from profsvc.formulas.change.stretches import Stretches, stretch_probability
from profsvc.formulas.change.two_level_test import (
    Tail,
    autocorrelation_likelihood,
    noise_tail,
    plain_tail,
    ranks,
    side,
    step_tail,
    without_each,
)
from profsvc.formulas.numerics.arrays import Array, Bools, Mask, mask
from profsvc.formulas.numerics.distributions import normal_quantiles
from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.numerics.series import (
    Index,
    Series,
    Sums,
    codes_of,
    gather,
    in_units_of_sd,
    lengths,
    medians,
    read_series,
    running_sums,
    subseries,
    without_spikes,
)

MIN_SEGMENT = 3  # values that make a level, unless said otherwise; one or two may be a spike
MIN_HISTORY = 5  # values before a step
ALPHA = 0.01

# Numbers of newest values that are held against all before them, and the share of the error that each may make. Most
# goes to five: a change shall be known within a week of nights. Long ones need little, for they have much evidence. The
# shares add up to 1.35, for what no single value may bring about makes the whole err less: half of what they say. Two
# values count only where those of other nights between them were left out.
WINDOWS = (
    (2, 0.05), (3, 0.13), (4, 0.05), (5, 0.95), (6, 0.01), (7, 0.01), (8, 0.05), (13, 0.04), (21, 0.03), (34, 0.025),
    (55, 0.02), (89, 0.015), (144, 0.01), (233, 0.005), (377, 0.0025), (610, 0.0025),
)  # fmt: skip
DOUBT_WEIGHT_FACTOR = 1.35  # doubt about the autocorrelation lowers the error rate further, by about this
SPLIT_OF_LIKELIHOOD = 5  # newest values that may have another level when siblings say how much values depend
# newest values left out, to see steps that were later reversed
LOOKBACK_LENGTHS = (0, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610)
MAX_LEAVE_ONE_OUT_RATIO = 5.0  # factor on alpha for the step without any one value
CLEAR_STEP_SD = 6.0  # a step of so many sd, with a gap between both sides of half of it, is held against siblings
CLEAR_GAP = 0.5
VALUE_COMPARISON_SD = 3.0  # levels further apart are compared value by value,
OUTLYING_SD = 2.5  # unless one value lies further than this from the others on its side


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


class Steps(NamedTuple):
    """The steps that were found, one entry per step, by group and then in order."""

    group: NDArray[np.int64]
    at: NDArray[np.int64]
    p: Array
    before: Array
    after: Array


class _Best(NamedTuple):
    p: Array
    p_suspected: Array
    up: Bools
    split: Index  # position in the flat series


class _How(NamedTuple):
    """How the tail of a step is taken."""

    tail: Tail
    doubt: bool  # that the noise has a law
    factor: Array  # on the weights of the windows, of each series
    prior: Array | None  # of the autocorrelation of each series
    shortest: Index  # values that make a level, of each series
    stretches: Stretches | None = None  # away from their level and back, of each series and its siblings


def newest_step(
    value: ArrayLike,
    group: ArrayLike | None = None,
    standard_error: ArrayLike | None = None,
    prior: ArrayLike | None = None,
    stretches: Stretches | None = None,
    shortest: ArrayLike = MIN_SEGMENT,
) -> NewestStep:
    r"""Probability that the level of a series did not change, with the weight on the newest values.

    .. math:: p = \max\left(\min_m \frac{2 p_m}{w_m},\ \max_i \frac{2 p_{m,-i}}{r_i w_m},\ p_{visit}\right), \qquad
              p_m = \sum_\rho \pi(\rho \mid a)\, T_{N-2}\!\left(\frac{\hat\delta_\rho}{s_\rho(\hat\delta_\rho)}\right)

    The newest m values are held against the n before them, for m = 3, 5, 8, 13, ..., with weights w. a are normal
    scores of the ranks in the whole series, so that neither heavy tails nor one outlier make a step; ties are broken
    by place. Where all m values lie beyond all n the ranks can say no more, and t is taken of the values themselves;
    but p is never below the chance that the m largest of n + m values come last. delta is the difference of the two
    levels by generalised least squares in autoregressive noise. The autocorrelation is never known well from few
    values, so the tail of Student's distribution T is averaged over all autocorrelations rho, as probable as the
    residuals make them: a short series in which they may depend on each other needs a larger step, or more values.

    A series that goes to another level and comes back, as clocks do, has not changed when it is there again: where the
    new level was visited before, p is at least p_visit, the probability to be there and for as long, in a chain of two
    states that stays as it stayed so far.

    No step depends on one value: the surest window is tested again without each of its values in turn. The remaining
    step must still be improbable, although up to r = 5 times less so. Where the others show nothing at 5 %, no single
    value whatever makes a finding at 1 %; and where a value lies more than 2.5 sd from the others on its side, as a
    spike would, they must show the step without it (r = 1). This is near the optimum: of all rules that find a step of
    2 sd within five values in 90 %, the one that raises fewest for a spike of 3 sd among them, which by Neyman and
    Pearson is the ratio of likelihoods, still does in 1 %.

    Values that tower above both adjacent ones are spikes and left out; so is the newest one while it does, until the
    next value shows whether it lasts. Where a standard error is known (of the value, or the noise floor of runs of
    the same binary), a difference that it explains is not a step either.

    Source: own model; autoregressive errors after [PraisWinsten1954], their posterior after [Zellner1971].

    Args:
        value: Values of the series in order, flat [any]; NaN where one is missing.
        group: Id of the series of each value; None: one series.
        standard_error: Standard error of each value, or one for all [as the value]; None, NaN or 0: unknown.
        prior: Probability of each autocorrelation of each series, of shape (groups, autocorrelations) or one row for
            all, as `autocorrelation_prior` has it of siblings [1]; None: all are equally probable.
        stretches: How often the siblings of each series leave their level and come back; None: unknown. Where a step
            of 6 sd leaves a gap of half of it, p is at least the probability that a stretch as long begins, instead of
            the chance of the places.
        shortest: Values that make a level, of each series or one for all.

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
    series = without_spikes(series)
    scaled = in_units_of_sd(series)
    least = np.broadcast_to(np.asarray(shortest, dtype=np.intp), n.shape)
    best = _best_step(
        scaled, doubt=True, prior=None if prior is None else _rows(prior, n.size), stretches=stretches, shortest=least
    )
    best = best._replace(p=_with_visit_probability(scaled, best))
    known = ~np.isnan(best.p)
    split = np.where(known, best.split, series.start)
    sides = 2 * codes_of(series) + (np.arange(series.x.size) >= split[codes_of(series)])
    levels = medians(series.x, sides, 2 * n.size).reshape(-1, 2)
    wild = known & (levels[:, 0] == levels[:, 1])  # one wild value in a constant series
    p = np.where(wild, 1.0, best.p)
    results = (
        p,
        np.where(wild, 1.0, best.p_suspected),
        np.where(known, np.append(series.place, -1)[split], -1),
        np.where(known, levels[:, 0], np.nan),
        np.where(known, levels[:, 1], np.nan),
        np.where(known, split - series.start, 0),
        np.where(known, series.stop - split, 0),
        np.maximum(MIN_SEGMENT + MIN_HISTORY - lengths(series), 0),
        mask((Flag.ZERO_DENOM, p == 0), (Flag.INPUT_SUSPECT, groups.any(_is_infinite(value, x)))),
    )
    return NewestStep(*groups.shaped(*results))


def autocorrelation_prior(value: ArrayLike, group: ArrayLike | None, family: ArrayLike) -> Array:
    r"""Probability of each autocorrelation of each series, as its siblings say, for `newest_step`.

    A change of the newest values is no sign of dependence: they may have a level of their own.

    Source: own model; `sibling_prior` of the likelihoods of `newest_step`.

    Args:
        value: Values of the series in order, flat [any]; NaN where one is missing.
        group: Id of the series of each value; None: one series.
        family: Number, from 0, of the family of each series, in ascending order of ids.

    Returns: the probabilities, of shape (groups, autocorrelations); flat for families of fewer than ten series.

    Range: rows add up to 1. A series with fewer than 8 values says nothing, and has what its siblings say.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    Twelve short series of independent noise say together what none says alone:

    >>> x = np.random.default_rng(1).standard_normal((12, 20))
    >>> prior = autocorrelation_prior(x.ravel(), np.repeat(np.arange(12), 20), np.zeros(12, dtype=np.int64))
    >>> bool(prior[0, :3].sum() > 0.8)
    True
    """
    x, error, groups = read_series(value, group, None)
    series = in_units_of_sd(without_spikes(gather(x, error, groups, ~np.isnan(x))))
    n, families = lengths(series), np.asarray(family, dtype=np.intp).ravel()
    likelihood = np.full((n.size, flat_prior(1).shape[1]), np.nan)
    some = np.flatnonzero(n >= MIN_SEGMENT + MIN_HISTORY)
    if some.size:
        part = subseries(series, series.start[some], series.stop[some])
        split = part.stop - np.minimum(lengths(part) // 2, SPLIT_OF_LIKELIHOOD)
        sums = running_sums(part.x)
        sides = side(sums, part.start, split), side(sums, split, part.stop)
        varies = sides[0].square + sides[1].square > 0
        both = autocorrelation_likelihood(*sides)
        likelihood[some[varies]] = both[varies]
    return sibling_prior(likelihood, families)


def _rows(prior: ArrayLike, groups: int) -> Array:
    given = np.asarray(prior, dtype=np.float64)
    return np.broadcast_to(given, (groups, given.shape[-1]))


def _is_infinite(value: ArrayLike, x: Array) -> Bools:
    return np.isnan(x) & ~np.isnan(np.broadcast_to(np.asarray(value, dtype=np.float64), x.shape))


def all_steps(
    value: ArrayLike,
    group: ArrayLike | None = None,
    standard_error: ArrayLike | None = None,
    alpha: float = ALPHA,
) -> Steps:
    r"""All steps of long histories: the surest one, then the same in the parts before and after it.

    .. math:: E \min_e p_e \le \alpha

    A part is tested by `newest_step` as it is, and as it was without its newest 5, 8, 13, ... values: so a step that
    was taken back later is seen too, unless no view ends near it. With E such views each p is
    multiplied by E, the bound of Bonferroni. A level that was there before makes a step too: this tells what happened,
    and not whether it is new. Nights as they come need only `newest_step`, with the series since the last step.

    Source: own model; binary segmentation with the test of `newest_step`.

    Args:
        value: Values of the series in order, flat [any]; NaN where one is missing.
        group: Id of the series of each value; None: one series.
        standard_error: Standard error of each value, or one for all [as the value]; None, NaN or 0: unknown.
        alpha: Probability of error, of each part [1].

    Returns: Steps; ``before`` and ``after`` are the medians of the levels on both sides.

    Range: at least 5 values before each step and 3 after.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    >>> up_and_down = [1.0, 1.1, 0.9, 1.0, 1.1, 0.9] * 2 + [3.0, 3.1, 2.9, 3.0, 3.1, 2.9] + [1.0, 1.1, 0.9, 1.0, 1.1]
    >>> found = all_steps(up_and_down)
    >>> found.at.tolist(), found.before.tolist(), found.after.tolist()
    ([12, 18], [1.0, 3.0], [3.0, 1.0])
    """
    x, error, groups = read_series(value, group, standard_error)
    series = without_spikes(gather(x, error, groups, ~np.isnan(x)))
    splits, sure = [np.empty(0, dtype=np.intp)], [np.empty(0)]
    start, stop = series.start, series.stop
    while start.size:
        split, p = _step_at_any_end(series, start, stop)
        found = p <= alpha
        splits.append(split[found])
        sure.append(p[found])
        start, stop = np.append(start[found], split[found]), np.append(split[found], stop[found])
    at, p = np.concatenate(splits), np.concatenate(sure)
    order = np.argsort(at)
    at, p = at[order], p[order]
    level = np.zeros(series.x.size + 1, dtype=np.intp)
    level[at] = 1
    level[series.start[1:]] = 1
    codes = np.cumsum(level)[:-1]
    levels = medians(series.x, codes, int(level.sum()) + 1)
    before, after = levels[codes[at] - 1], levels[codes[at]]
    columns = (groups.ids[codes_of(series)[at]], series.place[at], p, before, after)
    return Steps(*(column[before != after] for column in columns))


def _step_at_any_end(series: Series, start: Index, stop: Index) -> tuple[Index, Array]:
    """Split and p of the surest step in each part, as seen from its end or from earlier nights."""
    cuts = np.array(LOOKBACK_LENGTHS)
    part, view = np.nonzero((stop - start)[:, np.newaxis] - cuts >= MIN_SEGMENT + MIN_HISTORY)
    n = stop[part] - cuts[view] - start[part]
    seen = subseries(series, start[part], start[part] + n)
    best = _best_step(in_units_of_sd(seen), doubt=False)
    looks = np.bincount(part, minlength=start.size)
    order = np.lexsort((best.p, part))
    first = order[np.cumsum(looks)[looks > 0] - looks[looks > 0]]
    split, p = start.copy(), np.full(start.size, np.nan)
    split[looks > 0] = (best.split - seen.start + start[part])[first]
    p[looks > 0] = np.minimum(best.p[first] * looks[looks > 0], 1.0)
    return split, p


def _best_step(
    series: Series,
    *,
    doubt: bool,
    prior: Array | None = None,
    stretches: Stretches | None = None,
    shortest: Index | None = None,
) -> _Best:
    """Return the surest step of each series, which is in units of sd.

    With ``doubt`` the autocorrelation is not taken as known, nor that the noise has a law. In histories with several
    steps the others look like autocorrelation: there it is estimated.
    """
    N = lengths(series)
    if not series.x.size or N.max() < MIN_SEGMENT + MIN_HISTORY:
        unknown = np.full(N.size, np.nan)
        return _Best(unknown, unknown, np.zeros(N.size, dtype=np.bool_), series.start)
    ranked = tuple(running_sums(_rank_scores(series, sign)) for sign in (1.0, -1.0))
    unknown = np.ones(N.size, dtype=np.bool_) if prior is None else (prior == flat_prior(1)).all(axis=1)
    factor = np.where(unknown & doubt, DOUBT_WEIGHT_FACTOR, 1.0)
    least = np.full(N.size, MIN_SEGMENT) if shortest is None else shortest
    how = _How(step_tail if doubt else plain_tail, doubt, factor, prior, least, stretches)
    p, clear, window = _p_of_windows(series, ranked, how)
    up = p[0] <= p[1]
    suspected = np.where(N >= MIN_SEGMENT + MIN_HISTORY, np.minimum(p[0], p[1]), np.nan)
    upheld = _leave_one_out_p(series, suspected, up, np.where(up, window[0], window[1]), how)
    split = _likeliest_split(series, ranked, up, np.where(up, clear[0], clear[1]), least)
    return _Best(upheld, suspected, up, split)


def _with_visit_probability(series: Series, best: _Best) -> Array:
    """Return p, or more where the series was at the new level before: the probability to be there and for as long."""
    out = best.p.copy()
    asked = np.flatnonzero(best.p < 1 / MAX_LEAVE_ONE_OUT_RATIO)
    if asked.size:
        part = subseries(series, series.start[asked], series.stop[asked])
        split = part.start + best.split[asked] - series.start[asked]
        out[asked] = np.maximum(out[asked], visit_probability(part, split, VALUE_COMPARISON_SD))
    return out


def _rank_scores(series: Series, sign: float) -> Array:
    """Normal scores of the ranks in each series."""
    n = np.repeat(lengths(series), lengths(series))
    return normal_quantiles((ranks(series._replace(x=sign * series.x)) + 1.0) / (n + 1))


def _p_of_windows(series: Series, ranked: tuple[Sums, ...], how: _How) -> tuple[Array, Bools, Index]:
    """Weighted p of a step up and of one down, of shape (2, series), whether values alone make it clear, its window."""
    windows = [(m, w) for m, w in WINDOWS[::-1] if m + MIN_HISTORY <= lengths(series).max()]
    width = np.array([m for m, _ in windows])  # widest first: so the starts of the windows ascend
    weight = np.array([w for _, w in windows]) * how.factor[:, np.newaxis]
    prior = None if how.prior is None else how.prior[:, np.newaxis]
    a, b = series.start[:, np.newaxis], series.stop[:, np.newaxis]
    inside = b - a >= width + MIN_HISTORY
    fits = inside & (width >= how.shortest[:, np.newaxis])
    k = np.where(inside, b - width, a + 1)  # those that do not fit yield what is not used
    short = b - a < 2
    a, k, b = (np.where(short, edge, x) for edge, x in ((0, a), (1, k), (2, b)))
    sums, error = running_sums(series.x), running_sums(series.error**2).total
    sides = side(sums, a, k), side(sums, k, b)
    noise = noise_tail(*sides, error[k] - error[a], error[b] - error[k])
    noisy = sides[0].square + sides[1].square > 0
    by_place = largest_last_probability(sides[1].n, sides[0].n)
    rise = np.abs(sides[1].mean - sides[0].mean)
    of_siblings = by_place if how.stretches is None else stretch_probability(how.stretches, sides[1].n)
    p, clear, best = [], [], []
    for sign, scores, gap in zip((1.0, -1.0), ranked, _gaps(series.x, a, np.where(inside, k, a)), strict=True):
        beyond = gap > 0
        ranks_tail = how.tail(side(scores, a, k), side(scores, k, b), prior=prior)
        one_sided = np.where(beyond, how.tail(*sides, sign, prior=prior), ranks_tail)
        each = np.where(fits, np.minimum(2 * np.fmax(one_sided, noise) / weight, 1.0), 1.0)
        if how.doubt:
            far = (rise >= CLEAR_STEP_SD) & (gap >= CLEAR_GAP * rise)
            chance = np.where(far, np.minimum(by_place, of_siblings), by_place)
            each = np.where(beyond & fits & noisy, np.fmax(each, chance), each)
        p.append(each.min(axis=1))
        clear.append((beyond & fits).any(axis=1))
        best.append(len(windows) - 1 - each.argmin(axis=1))
    return np.array(p), np.array(clear), np.array(best)


def _leave_one_out_p(series: Series, p: Array, up: Bools, window: Index, how: _How) -> Array:
    """Return p, or more where too little is left of the step without the value that it needs most."""
    asked = np.flatnonzero(p < 1 / MAX_LEAVE_ONE_OUT_RATIO)  # the others are far from a step
    if not asked.size:
        return p
    width, weight = (np.array(column)[window[asked]] for column in zip(*WINDOWS, strict=True))
    part = subseries(series, series.start[asked], series.stop[asked])
    upward = part._replace(x=part.x * np.repeat(np.where(up[asked], 1.0, -1.0), lengths(part)))
    prior = None if how.prior is None else how.prior[asked]
    tails, apart = without_each(upward, part.stop - width, how.tail, prior)
    weight = weight * how.factor[asked]
    left = np.minimum(2 * tails / weight[codes_of(part)], 1.0) / np.where(
        apart > OUTLYING_SD, 1.0, MAX_LEAVE_ONE_OUT_RATIO
    )
    out = p.copy()
    out[asked] = np.maximum(p[asked], np.maximum.reduceat(left, part.start))
    return out


def _gaps(x: Array, a: Index, k: Index) -> tuple[Array, Array]:
    """Return how far all values of a window lie above, and how far below, all before it; the windows are nested."""
    edges = np.concatenate((a, k), axis=1)
    flat = np.minimum(edges, x.size - 1).ravel()
    low, high = (extreme.reduceat(x, flat).reshape(edges.shape) for extreme in (np.minimum, np.maximum))
    low_before, high_before = np.minimum.accumulate(low, axis=1), np.maximum.accumulate(high, axis=1)
    low_after = np.minimum.accumulate(low[:, ::-1], axis=1)[:, ::-1]
    high_after = np.maximum.accumulate(high[:, ::-1], axis=1)[:, ::-1]
    return low_after[:, 1:] - high_before[:, :-1], low_before[:, :-1] - high_after[:, 1:]


def _likeliest_split(series: Series, ranked: tuple[Sums, ...], up: Bools, clear: Bools, shortest: Index) -> Index:
    """Return the split of each series after which the scores are highest, in units of their spread.

    Where all values after a split lie beyond all before, it is the values themselves: ranks would take what was high by
    chance before a large step for a part of it.
    """
    position, N = np.arange(series.x.size), lengths(series)
    start, stop, n = np.repeat(series.start, N), np.repeat(series.stop, N), np.repeat(N, N)
    rising, by_value = np.repeat(up, N), np.repeat(clear, N)
    m = stop - position
    inside = (m >= np.repeat(shortest, N)) & (n - m >= MIN_HISTORY)
    after = np.where(rising, *(sums.total[stop] - sums.total[position] for sums in ranked))
    total = running_sums(series.x).total
    above = total[stop] - total[position] - m * (total[stop] - total[start]) / n
    after = np.where(by_value, np.where(rising, above, -above), after)
    height = np.where(inside, after / np.sqrt(np.where(inside, m * (n - m) / n, 1.0)), -np.inf)
    filled = N > 0
    top = np.full(N.size, np.inf)
    top[filled] = np.maximum.reduceat(height, series.start[filled])
    highest = np.flatnonzero(height == np.repeat(top, N))
    split = series.start.copy()
    codes = codes_of(series)[highest]
    split[codes[::-1]] = highest[::-1]  # of equal ones the first
    return split
