"""What a series does without being changed: excursions to other levels and back."""

import numpy as np

from profsvc.formulas.change.noise.siblings import MIN_SIBLINGS
from profsvc.formulas.change.steps.surest_step import WINDOWS
from profsvc.formulas.numerics.arrays import Array, Bools
from profsvc.formulas.numerics.distributions import normal_tail
from profsvc.formulas.numerics.series import (
    MAD_TO_SD,
    Index,
    Series,
    codes_of,
    difference_sd,
    difference_variance_ratio,
    lengths,
    medians,
    subseries,
)

# A habit: the probability that an excursion begins after a night, and the one that it ends. Those that never end are
# steps, and no excursions.
BEGIN_RATES = np.array([0.0, 0.0005, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4])
END_RATES = np.array([0.0, 0.05, 0.1, 0.2, 0.35, 0.6, 0.8, 1.0])
BEGINS, ENDS = (part.ravel() for part in np.meshgrid(BEGIN_RATES, END_RATES, indexing="ij"))
# Distances from the level, in units of its noise: what lies beyond the last one before half of a step is far.
BOUNDS = np.array([3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0])
NEAR_SD = 2.0  # values nearer to a level are at it
APART_SD = 3.0  # the smallest change that matters is so many times the least noise that counts
EARLY = 5  # values of a sibling that say what its level is: the median of all would be the level that lasts longest
NEWEST = 5  # values of a sibling that may have a level of their own, and say nothing of a habit: a third at most
MAX_BEGINS_IN_A_NIGHT = 3  # more than this, and four times the usual number, have one cause
MIN_STEPS = 5  # excursions without a return, of series that may all have several levels,
MIN_STEPPING_SHARE = 0.1  # of the series
MAD_EFFICIENCY = 0.37  # a median absolute deviation knows as much as a standard deviation of 0.37 times the values
MIN_STAYS = 5  # at either level since a split, from which the share of one of them is near normal
MAX_ROUNDS = 400  # of the estimate of how frequent each habit is


def excursion_probability(
    series: Series,
    asked: Index,
    split: Index,
    smallest: Array | float = 0.0,
    night: Index | None = None,
    fresh: Index | int = 1,
) -> Array:
    r"""Probability that an excursion begins in a night which is as far, and lasts as long, as the step of a series.

    .. math:: P = d \sum_{a, b} \pi(a, b \mid x)\, P(a, b)\, \frac{1 - (1 - b)^f}{b}, \qquad
              \pi(a, b \mid x) \propto w_{ab}\, a^{k} (1 - a)^{n} \, b^{e} (1 - b)^{s}

    The older values of a series and of its siblings are near their level or away from it: beyond half of the step, in
    units of their own noise. Such a series is a chain of two states that goes away with a probability a and comes back
    with a probability b, which follow from how often it stayed near (n), went away (k), stayed away (s) and came back
    (e). How usual each pair is among siblings, w, is the one that makes the values of all of them most probable: so
    series with excursions say little of those with a long history that had none, and a short history is taken to have
    what its siblings have. P(a, b) is the probability that an excursion begins of which as many of the first nights are
    away as of the step. Heavy tails have far values too, but come back at once: b near 1 makes P small.

    A report that looks at f nights for the first time sees all excursions that became as long within them: those that
    began in the night of the step, and longer ones.

    Over many nights a series with such habits is at the far level more often than before, by chance alone. Where the
    newest values are far in part only, P is no less than what `share_probability` says of how often they are.

    d is the share of the excursions that go where the step goes, or 1 if that is the more frequent side: other work on
    the board makes kernels slower, and a step down is none of it. What begins in one night in far more series than
    usual is one event of all of them, and no habit of each. Series that never come back have no excursions but steps;
    where more than a tenth of the siblings have them, other levels are a habit as well.

    Source: own model; nonparametric maximum likelihood after [Laird1978].

    Args:
        series: Values of a series and its siblings.
        asked: Which series are asked for.
        split: Position of the first value after the step of each of them.
        smallest: The smallest change that matters, of each series [as the value].
        night: Number of the night of each value by its ``place``; None: the place.
        fresh: Newest values f that no look has seen yet, of each series that is asked for or one for all.

    Returns: the probability for each series that is asked for [1].

    Range: 0 to 1.

    Two hundred nights of two of twenty series had three excursions of three nights each. For such a series one more is
    usual, and for one of the others it is not:

    >>> x = np.tile([0.1, -0.1, 0.0, 0.1, -0.1], (20, 40))
    >>> for night in (30, 80, 130):
    ...     x[:2, night : night + 3] += 9.0
    >>> x[[0, 19], 197:] += 9.0
    >>> every = Series(x.ravel(), x.ravel() * 0, np.arange(4000), np.arange(0, 4000, 200), np.arange(200, 4001, 200))
    >>> own, other = excursion_probability(every, np.array([0, 19]), np.array([197, 3997]))
    >>> bool(own > 0.004), bool(other < 0.0005)
    (True, True)
    """
    older, before, away = _distances(series, asked, split, smallest)
    when, own_when = (part.place if night is None else night[part.place] for part in (older, before))
    nights = 1 + max(int(part.max(initial=0)) for part in (when, own_when))
    newest = [away[a:b] for a, b in zip(split, series.stop[asked], strict=True)]
    height = np.array([np.median(one) for one in newest])
    bound = BOUNDS[np.maximum(np.searchsorted(BOUNDS, np.abs(height) / 2, side="right") - 1, 0)]
    out, new = np.zeros(asked.size), np.broadcast_to(np.asarray(fresh), asked.shape)
    begun = series.place[split] if night is None else night[series.place[split]]
    for least, since in np.unique(np.stack((bound, begun)), axis=1).T.tolist():
        crowd = _crowds(older, least, when, nights)
        moves, rising = _moves(older, least, crowd[when])
        same = np.flatnonzero(begun == since)
        own = _moves(before, least, crowd[own_when])[0][same]
        moves[asked[same]] = own
        weight = habit_weights(moves)
        shares = habit_shares(weight, own) * _is_habit(weight, moves)
        sides = direction_share(int(moves[:, 1].sum()), rising, height[same] > 0)
        for number, share, side in zip(same.tolist(), shares, sides, strict=True):
            if bound[number] != least:
                continue
            values = np.sign(height[number]) * newest[number]
            # A step of less than twice the least bound has no value half way, and counts as if all were away.
            far = int((values >= least).sum()) if np.abs(height[number]) >= 2 * BOUNDS[0] else values.size
            excursion = side * share @ (_lasting(far, values.size) * _longer(int(new[number])))
            earlier = np.sign(height[number]) * before.x[before.start[number] : before.stop[number]]
            high = [part >= np.abs(height[number]) / 2 for part in (earlier, values)]
            often = 0.0 if high[1].all() else share @ share_probability(*high)
            out[number] = max(excursion, often)
    return np.minimum(out, 1.0)


def _distances(series: Series, asked: Index, split: Index, smallest: Array | float) -> tuple[Series, Series, Array]:
    """Return older values of all series, those before the steps, and all values, as distances from their level in sd.

    Of a step the values before it say what the level is. What siblings say of a habit ends for all of them at the same
    time: if it ended with the step of each, the excursions that last would be missing. Steps of one night are judged
    together, and say nothing of how usual they are themselves.
    """
    cut = series.stop - np.minimum(lengths(series) // 3, NEWEST)
    stop = cut.copy()
    stop[asked] = split
    older, size = subseries(series, series.start, stop), series.start.size
    codes = codes_of(older)
    settled = np.isin(codes, asked) | (np.arange(older.x.size) - older.start[codes] < EARLY)
    center = medians(older.x[settled], codes[settled], size)
    apart = np.abs(older.x - center[codes])
    # Levels that are kept long make distances from one of them large, those that are left at once differences.
    spreads = difference_sd(older), MAD_TO_SD * medians(apart, codes, size)
    sd = np.where(np.fmin(*spreads) > 0, np.fmin(*spreads), np.fmax(*spreads))
    sd = np.fmax(_as_siblings(sd, np.abs(center), lengths(older)), np.asarray(smallest) / APART_SD)
    near = apart <= NEAR_SD * sd[codes]
    center = np.where(np.bincount(codes, near, size) > 0, medians(older.x[near], codes[near], size), center)
    owner = np.zeros(series.x.size, dtype=np.intp)
    owner[np.concatenate([np.arange(a, b) for a, b in zip(series.start, series.stop, strict=True)])] = codes_of(series)
    with np.errstate(all="ignore"):
        away = np.nan_to_num((series.x - center[owner]) / sd[owner])
    scaled = series._replace(x=away)
    return subseries(scaled, series.start, cut), subseries(scaled, series.start[asked], split), away


def _as_siblings(sd: Array, level: Array, n: Index) -> Array:
    """Return the noise of each series, of n values, nearer to that of its siblings the less it knows of its own.

    The noise of siblings is as large for all of them or in proportion to their level, whichever is more alike. How much
    it differs among them is what the errors of estimate leave of its variance: empirical Bayes after [Smyth2004].
    """
    said = (sd > 0) & (level > 0) & (n > 1)
    if said.sum() < MIN_SIBLINGS:
        return sd
    error = 0.5 / (MAD_EFFICIENCY * (n[said] - 1.0))
    logs = [np.log(sd[said]), np.log(sd[said] / level[said])]
    away = min((own - np.median(own) for own in logs), key=lambda own: float(np.median(np.abs(own))))
    variance = (MAD_TO_SD * float(np.median(np.abs(away)))) ** 2 - float(error.mean())
    out = sd.copy()
    out[said] *= np.exp(-away * error / (max(variance, 0.0) + error))
    return out


def _crowds(older: Series, bound: float, when: Index, nights: int) -> Bools:
    """Return in which nights far more series than usual went away: what they share is no habit of each."""
    far, first = np.abs(older.x) >= bound, _first(older)
    started = np.bincount(when[_begins(far, first)], minlength=nights)
    usual = np.median(started[: int(when.max(initial=0)) + 1])
    return np.asarray(started > 4 * usual + MAX_BEGINS_IN_A_NIGHT)


def _moves(older: Series, bound: float, crowded: Bools) -> tuple[Index, int]:
    """Return how often each series stayed near, went away, came back and stayed away; and how often all went up.

    What began in such a night does not count. Nor has a series gone away that is far from its level as it begins.
    """
    codes, size, first = codes_of(older), older.start.size, _first(older)
    far = np.abs(older.x) >= bound
    run = np.cumsum(first | np.diff(far, prepend=False))
    far &= ~np.isin(run, run[_begins(far, first) & crowded])
    move = 2 * np.r_[False, far[:-1]][: far.size] + far
    near_before = np.maximum.accumulate(np.where(far, -1, np.arange(far.size)))
    seen = ~first & (np.r_[-1, near_before[:-1]][: far.size] >= older.start[codes])
    moves = np.bincount((4 * codes + move)[seen], minlength=4 * size).reshape(size, 4)
    return moves, int((_begins(far, first) & (older.x > 0)).sum())


def _first(series: Series) -> Bools:
    """Return which values are the first of their series."""
    codes = codes_of(series)
    return np.asarray(np.r_[True, codes[1:] != codes[:-1]][: codes.size])


def _begins(far: Bools, first: Bools) -> Bools:
    """Return which values that are far follow one that is near."""
    return np.asarray(far & ~np.r_[False, far[:-1]][: far.size] & ~first)


def habit_weights(moves: Index) -> Array:
    """Return how usual each habit is among siblings: the shares that make the moves of all of them most probable.

    Source: nonparametric maximum likelihood [Laird1978], by expectation and maximization.

    Args:
        moves: Numbers of nights after which a series stayed near its level, went away, came back and stayed away, of
            shape (series, 4).

    Returns: the shares, of shape (habits,) [1].

    Range: they add up to 1.

    Of ten series five go away, ten times each, and come back the next night:

    >>> weight = habit_weights(np.array([[100, 0, 0, 0]] * 5 + [[80, 10, 10, 0]] * 5))
    >>> float(weight[BEGINS < 0.01].sum().round(1)), round(float(weight[(BEGINS == 0.1) & (ENDS == 1)].sum()), 1)
    (0.5, 0.5)
    """
    rows, often = np.unique(moves, axis=0, return_counts=True)
    likelihood = _likelihood(rows)
    weight = np.full(likelihood.shape[1], 1.0 / likelihood.shape[1])
    for _ in range(MAX_ROUNDS):
        gain = (often / (likelihood @ weight)) @ likelihood / often.sum()
        weight = weight * gain
    # A habit that each series makes a little less probable declines by the same share in each further round. So many
    # rounds as there are series compare it with the others by the nights of all of them.
    weight = weight * np.fmin(gain, 1.0) ** max(int(often.sum()) - MAX_ROUNDS, 0)
    return np.asarray(weight / weight.sum())


def habit_shares(weight: Array, moves: Index) -> Array:
    """Return how probable each habit is for each of some series, as its own moves and those of its siblings say.

    Source: own model; Bayes' rule with the weights of the siblings.

    Args:
        weight: How usual each habit is, of shape (habits,) [1].
        moves: Moves of these series, as `habit_weights` takes them.

    Returns: the probabilities, of shape (series, habits) [1].

    Range: rows add up to 1.

    Of ten series one goes away and comes back, ten times each:

    >>> moves = np.tile([100, 0, 0, 0], (10, 1))
    >>> moves[9] = 80, 10, 10, 0
    >>> shares = habit_shares(habit_weights(moves), moves[[0, 9]])
    >>> (shares @ BEGINS).round(2).tolist(), (shares[1] @ ENDS).round(2).tolist()
    ([0.0, 0.1], 1.0)
    """
    share = _likelihood(moves) * weight
    return np.asarray(share / share.sum(axis=1, keepdims=True))


def _likelihood(moves: Index) -> Array:
    """Return how probable each habit makes each row of moves, in units of the most probable one."""
    near, begun, back, away = moves.T[:, :, np.newaxis]
    likelihood = (
        _log_power(1.0 - BEGINS, near) + _log_power(BEGINS, begun)
        + _log_power(ENDS, back) + _log_power(1.0 - ENDS, away)
    )  # fmt: skip
    return np.asarray(np.exp(likelihood - likelihood.max(axis=1, keepdims=True)))


def _log_power(rates: Array, k: Index) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(k > 0, k * np.log(rates), 0.0)


def _is_habit(weight: Array, moves: Index) -> Bools:
    """Return which habits are excursions: those that end, and all where so many siblings stay away for ever."""
    rows, often = np.unique(moves, axis=0, return_counts=True)
    ever = habit_shares(weight, rows)[:, ENDS == 0].sum(axis=1)
    stayed = float(often @ (ever * np.maximum(rows[:, 1] - rows[:, 2], 0)))
    return np.asarray((ENDS > 0) | (stayed >= max(MIN_STEPS, MIN_STEPPING_SHARE * len(moves))))


def share_probability(before: Bools, since: Bools) -> Array:
    r"""Return for each habit how probable it is that values are far so much more often than those before them.

    .. math:: P = 2 W\, \Phi\left(-\frac{f_1 - f_0}{\sqrt{\pi (1 - \pi)\, v_{mn}(\lambda)}}\right), \qquad
              \pi = \frac{a}{a + b}, \quad \lambda = 1 - a - b

    f are the shares of values that are far, v is the variance of the difference of two adjoining means with
    autocorrelation lambda, in units of that of a value, and W the number of windows that may be the surest one.

    Source: own model; moments of a chain of two states, bound of Bonferroni.

    Args:
        before: Which of the n values before a split are far.
        since: Which of the m values since it are.

    Returns: the probability by each habit, of shape (habits,) [1].

    Range: 0 to 1; 0 for series that never go away, never come back, or moved fewer than five times since the split:
    the mean of so few stays is not near normal.

    Where each level is left once in ten nights, 70 of 100 nights at one of them after 90 of 300 say little:

    >>> before, since = np.arange(300) < 90, np.arange(100) < 70
    >>> at = (BEGINS == 0.1) & (ENDS == 0.1), (BEGINS == 0.1) & (ENDS == 0.8)
    >>> [round(float(share_probability(before, since)[one][0]), 2) for one in at]
    [0.3, 0.0]
    """
    with np.errstate(all="ignore"):
        away, held = BEGINS / (BEGINS + ENDS), 1.0 - BEGINS - ENDS
        m, n = np.array(float(since.size)), np.array(float(before.size))
        v = difference_variance_ratio(held, m, n) * (1.0 / m + 1.0 / n)
        z = (since.mean() - before.mean()) / np.sqrt(away * (1.0 - away) * v)
        p = 2.0 * len(WINDOWS) * normal_tail(z)
    several = since.size * (BEGINS + ENDS) >= MIN_STAYS
    return np.where((BEGINS > 0) & (ENDS > 0) & several, np.minimum(np.nan_to_num(p), 1.0), 0.0)


def direction_share(n: int, rising: int, up: Bools) -> Array:
    r"""Return the share of the excursions that go where a step goes, or 1 if that is not the less frequent side.

    .. math:: P(\text{side} \mid k, n) = \frac{k + 1/2}{n + 1}

    Source: own model; the mean of a probability after k of n events with Jeffreys' prior.

    Args:
        n: Excursions.
        rising: How many of them go up.
        up: Whether each step goes up.

    Returns: the share of each step [1].

    Range: 0 to 1; 1 for the side that most excursions go to, and for both where as many go to each.

    >>> direction_share(5, 5, np.array([True, False])).round(3).tolist()
    [1.0, 0.083]
    """
    k = np.where(up, rising, n - rising)
    return np.where(2 * k >= n, 1.0, (k + 0.5) / (n + 1.0))


def _longer(nights: int) -> Array:
    """Return for each habit how many excursions last 0 to ``nights`` - 1 nights longer, for one that lasts so long."""
    return np.asarray(np.where(ENDS > 0, (1.0 - (1.0 - ENDS) ** nights) / np.where(ENDS > 0, ENDS, 1.0), nights))


def _lasting(far: int, nights: int) -> Array:
    """Return the probability by each habit that an excursion begins with as many of the first nights far as given."""
    away, near = np.zeros((2, BEGINS.size, nights + 1))
    away[:, 1] = BEGINS
    begin, end = BEGINS[:, np.newaxis], ENDS[:, np.newaxis]
    for _ in range(nights - 1):
        staying = away * (1.0 - end) + near * begin
        near = away * end + near * (1.0 - begin)
        away = np.roll(staying, 1, axis=1)
    return np.asarray((away + near)[:, far:].sum(axis=1))
