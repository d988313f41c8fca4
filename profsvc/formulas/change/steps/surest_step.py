"""The surest step of a series: its newest values held against all before them, window by window."""

from collections.abc import Iterator
from typing import NamedTuple, Self

import numpy as np

from profsvc.formulas.change.levels.level_visits import largest_last_probability
from profsvc.formulas.change.levels.series_length import MIN_HISTORY, MIN_SEGMENT
from profsvc.formulas.change.levels.stretches import Stretches, stretch_probability
from profsvc.formulas.change.noise.siblings import NoisePrior, flat_noise
from profsvc.formulas.change.steps.two_level_test import (
    Tail,
    noise_tail,
    plain_tail,
    ranks,
    side,
    some_tails,
    step_tail,
    without_each,
)
from profsvc.formulas.numerics.arrays import Array, Bools
from profsvc.formulas.numerics.distributions import normal_quantiles
from profsvc.formulas.numerics.series import Index, Series, Sums, codes_of, lengths, running_sums, subseries

# Numbers of newest nights that are held against all before them, and the share of the error that each may make. Most
# goes to five: a change shall be known within a week of nights. Long ones need little, for they have much evidence. The
# shares add up to 1.35, for what no single value may bring about makes the whole err less: half of what they say. One
# night counts only where it has three runs, and two where they have, or where those of other nights between them were
# left out.
WINDOWS = (
    (1, 0.02), (2, 0.05), (3, 0.13), (4, 0.05), (5, 0.95), (6, 0.01), (7, 0.01), (8, 0.05), (13, 0.04), (21, 0.03),
    (34, 0.025), (55, 0.02), (89, 0.015), (144, 0.01), (233, 0.005), (377, 0.0025), (610, 0.0025),
)  # fmt: skip
SIBLING_WEIGHT_FACTOR = 1.2  # where the values are tested, no single value may bring about still less
MAX_LEAVE_ONE_OUT_RATIO = 5.0  # factor on alpha for the step without any one value
CLEAR_STEP_SD = 6.0  # a step of so many sd, with a gap between both sides of half of it, is held against siblings
CLEAR_GAP = 0.5
MAX_VALUES_AT_ONCE = 2**15
OUTLYING_SD = 2.5  # of a value from the others on its side, from which the step must stand as it is without it


class SurestStep(NamedTuple):
    """The surest step of each series."""

    p: Array
    p_suspected: Array
    up: Bools
    split: Index  # position in the flat series


class _How(NamedTuple):
    """How the tail of a step is taken."""

    tail: Tail
    doubt: bool  # that the noise has a law
    factor: Array  # on the weights of the windows, of each series
    prior: NoisePrior  # of the noise of each series, in units of its sd
    shortest: Index  # values that make a level, of each series
    fresh: Index  # newest values of each series that no look has seen yet
    runs: Index  # values of a night, of each series
    stretches: Stretches | None = None  # away from their level and back, of each series and its siblings

    def of(self, some: slice) -> Self:
        """Return the same for some of the series."""
        away = None if self.stretches is None else Stretches(*(part[some] for part in self.stretches))
        return self._replace(
            factor=self.factor[some], prior=self.prior.of(some), shortest=self.shortest[some], fresh=self.fresh[some],
            runs=self.runs[some], stretches=away,
        )  # fmt: skip


def surest_step(
    series: Series,
    *,
    doubt: bool,
    prior: NoisePrior | None = None,
    stretches: Stretches | None = None,
    shortest: Index | None = None,
    fresh: Index | None = None,
    runs: Index | None = None,
) -> SurestStep:
    """Return the surest step of each series, which is in units of sd.

    ``fresh``: newest values of each series that are looked at for the first time, by default one. ``runs``: values of
    a night, by default one.

    With ``doubt`` the autocorrelation is not taken as known, nor that the noise has a law. In histories with several
    steps the others look like autocorrelation: there it is estimated.
    """
    N = lengths(series)
    prior = flat_noise(N.size) if prior is None else prior
    factor = np.where(prior.by_value, SIBLING_WEIGHT_FACTOR, 1.0)
    least = np.full(N.size, MIN_SEGMENT) if shortest is None else shortest
    new = np.ones(N.size, dtype=np.intp) if fresh is None else np.clip(fresh, 1, np.maximum(N - MIN_HISTORY, 1))
    each = np.ones(N.size, dtype=np.intp) if runs is None else runs
    how = _How(step_tail if doubt else plain_tail, doubt, factor, prior, least, new, each, stretches)
    parts = []
    for some in _blocks(series):
        block = subseries(series, series.start[some], series.stop[some])
        step = _surest_step(block, how.of(some))
        parts.append(step._replace(split=step.split + series.start[some.start]))
    return SurestStep(*(np.concatenate(own) for own in zip(*parts, strict=True))) if parts else _unknown(series)


def _blocks(series: Series) -> Iterator[slice]:
    """Yield series that are tested together: so many that what is known of each value needs little memory."""
    first = 0
    while first < series.start.size:
        last = int(np.searchsorted(series.stop, series.start[first] + MAX_VALUES_AT_ONCE, side="right"))
        yield slice(first, max(last, first + 1))
        first = max(last, first + 1)


def _unknown(series: Series) -> SurestStep:
    unknown = np.full(series.start.size, np.nan)
    return SurestStep(unknown, unknown, np.zeros(unknown.size, dtype=np.bool_), series.start)


def _surest_step(series: Series, how: _How) -> SurestStep:
    N, least = lengths(series), how.shortest
    if not series.x.size or N.max() < MIN_SEGMENT + MIN_HISTORY:
        return _unknown(series)
    ranked = tuple(running_sums(rank_scores(series, sign)) for sign in (1.0, -1.0))
    p, clear, window, weight = _p_of_windows(series, ranked, how)
    up = p[0] <= p[1]
    suspected = np.where(N >= MIN_SEGMENT + MIN_HISTORY, np.minimum(p[0], p[1]), np.nan)
    width, share = np.where(up, window[0], window[1]), np.where(up, weight[0], weight[1])
    upheld = _leave_one_out_p(series, suspected, up, width, share, how)
    by_value = np.where(up, clear[0], clear[1]) | how.prior.by_value
    split = _likeliest_split(series, ranked, up, by_value, least)
    return SurestStep(upheld, suspected, up, split)


def rank_scores(series: Series, sign: float = 1.0) -> Array:
    """Normal scores of the ranks in each series."""
    n = np.repeat(lengths(series), lengths(series))
    return normal_quantiles((ranks(series._replace(x=sign * series.x)) + 1.0) / (n + 1))


def _widths(series: Series, ranked: tuple[Sums, ...], how: _How) -> Index:
    """Return the windows of each series, widest first: with the likeliest one, where several values are fresh."""
    n = lengths(series)
    usual = [m for m, _ in WINDOWS[::-1] if m + MIN_HISTORY <= n.max()]
    every = np.array(usual) * how.runs[:, np.newaxis]
    if (how.fresh <= how.runs).all():
        return every
    ways = (np.full(n.size, up) for up in (True, False))
    never = np.zeros(n.size, dtype=np.bool_)
    own = [series.stop - _likeliest_split(series, ranked, up, never, how.shortest) for up in ways]
    own = [np.where((how.fresh > how.runs) & (m + MIN_HISTORY <= n), m, MIN_SEGMENT) for m in own]
    return np.asarray(np.sort(np.concatenate((every, np.stack(own, axis=1)), axis=1), axis=1)[:, ::-1])


def _shares(width: Index, fresh: Index) -> Array:
    """Return the share of the error of windows: half as every night, half spread over the looks that were not made.

    Both are numbers of nights. A look at k fresh ones errs as often as one at the newest: the step may have been seen
    up to k - 1 nights ago, so the windows of those nights, which have grown since, share half of the error.
    """
    table = np.zeros(max(int(width.max()), WINDOWS[-1][0]) + 1)
    for m, share in WINDOWS:
        table[m] = share
    total = np.cumsum(table)
    spread = (total[width] - total[np.maximum(width - fresh, 0)]) / fresh
    return np.asarray((table[width] + spread) / 2)


def _p_of_windows(series: Series, ranked: tuple[Sums, ...], how: _How) -> tuple[Array, Bools, Index, Array]:
    """Weighted p of a step up and of one down, of shape (2, series), and whether values alone make it clear.

    Beside them the width and the weight of the window of each.
    """
    width = _widths(series, ranked, how)  # widest first: so the starts of the windows ascend
    nights = [-(-values // how.runs[:, np.newaxis]) for values in (width, how.fresh[:, np.newaxis])]
    weight = _shares(*nights) * how.factor[:, np.newaxis]
    by_value = how.prior.by_value[:, np.newaxis]
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
    p, clear, best, shares = [], [], [], []
    gaps = _gaps(series.x, a, np.where(inside, k, a))
    apart = gaps[0] > 0, gaps[1] > 0
    number = np.broadcast_to(np.arange(len(fits))[:, np.newaxis], fits.shape)
    of_values = some_tails(how.tail, sides, fits & (apart[0] | apart[1] | by_value), how.prior, number)
    for beyond, scores, gap, own in zip(apart, ranked, gaps, of_values, strict=True):
        asked = fits & ~(beyond | by_value)
        of_ranks = some_tails(how.tail, (side(scores, a, k), side(scores, k, b)), asked, how.prior, number)[0]
        one_sided = np.where(beyond | by_value, own, of_ranks)
        with np.errstate(divide="ignore"):
            each = np.where(fits, np.minimum(2 * np.fmax(one_sided, noise) / weight, 1.0), 1.0)
        if how.doubt:
            far = (rise >= CLEAR_STEP_SD) & (gap >= CLEAR_GAP * rise)
            chance = np.where(far, np.minimum(by_place, of_siblings), by_place)
            each = np.where(beyond & fits & noisy, np.fmax(each, chance), each)
        p.append(each.min(axis=1))
        clear.append((beyond & fits).any(axis=1))
        surest = each.argmin(axis=1)[:, np.newaxis]
        best.append(np.take_along_axis(width, surest, axis=1)[:, 0])
        shares.append(np.take_along_axis(weight, surest, axis=1)[:, 0])
    return np.array(p), np.array(clear), np.array(best), np.array(shares)


def _leave_one_out_p(series: Series, p: Array, up: Bools, width: Index, weight: Array, how: _How) -> Array:
    """Return p, or more where too little is left of the step without the value that it needs most."""
    asked = np.flatnonzero(p < 1 / MAX_LEAVE_ONE_OUT_RATIO)  # the others are far from a step
    if not asked.size:
        return p
    part = subseries(series, series.start[asked], series.stop[asked])
    upward = part._replace(x=part.x * np.repeat(np.where(up[asked], 1.0, -1.0), lengths(part)))
    tails, apart = without_each(upward, part.stop - width[asked], how.tail, how.prior.of(asked))
    left = np.minimum(2 * tails / weight[asked][codes_of(part)], 1.0) / np.where(
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

    Where all values after a split lie beyond all before, or where the values were tested, it is the values themselves:
    ranks would take what was high by chance before a large step for a part of it.
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
