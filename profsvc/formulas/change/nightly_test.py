"""Nightly test of many series: newest value, noise floor, false-discovery rate and reporting threshold."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from profsvc.formulas.change.levels.series_length import MIN_SEGMENT
from profsvc.formulas.change.levels.stretches import Stretches
from profsvc.formulas.change.noise.siblings import NoisePrior
from profsvc.formulas.change.steps.newest_step import ALPHA, newest_step
from profsvc.formulas.numerics.arrays import Array, Bools, Mask, flat_floats, floats, mask, numbers
from profsvc.formulas.numerics.distributions import student_tail
from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.numerics.series import (
    MAD_TO_SD,
    MEAN_DEVIATION_TO_SD,
    Series,
    autocorrelation,
    codes_of,
    gather,
    in_units_of_sd,
    lengths,
    mean_variance,
    medians,
    moments_between,
    read_series,
    running_sums,
    without_spikes,
)

MIN_HISTORY = 5  # values before the newest one
MAD_EFFICIENCY = 0.37  # a median absolute deviation knows as much as a standard deviation of 0.37 times the values
MEDIAN_VARIANCE = np.pi / 2  # variance of the median of normal values over that of their mean
RERUN_P = 0.01
MAX_FALSE_DISCOVERY_RATE = 0.05
# A night on fewer series counts as one on so many: one finding alone needs p <= 0.0063. The p of a quiet series is as
# small for the first time in 0.3 to 3.0 of 1000 nights, after 10 to 400 of them, with autocorrelations of 0 to 0.6.
MIN_TESTS = 8


class NewestValue(NamedTuple):
    """The newest value of each series beside what its history expects, one entry per group."""

    p: Array  # probability of a value as far out, NaN: not enough history or no newest value
    expected: Array
    sd: Array  # of a new value about the expected one
    points: NDArray[np.int64]  # in the history
    needed: NDArray[np.int64]  # further values until there is enough
    autocorrelation: Array
    flags: Mask


class NoiseFloor(NamedTuple):
    """Standard deviation between runs of the same binary, one entry per group."""

    sd: Array
    df: NDArray[np.int64]
    flags: Mask


class Discovery(NamedTuple):
    """Tests that found something, and the false-discovery rate of each."""

    adjusted: Array  # the false share at which each would just be found
    found: Bools


class Effect(NamedTuple):
    """Size of a change, and whether it is above the reporting threshold."""

    absolute: Array
    relative: Array
    material: Bools


class NightlyVerdict(NamedTuple):
    """Verdict of one night on each series, one entry per group."""

    found: Bools
    rerun_wanted: Bools
    p: Array
    adjusted: Array
    at: NDArray[np.int64]
    before: Array
    after: Array
    points_after: NDArray[np.int64]
    needed: NDArray[np.int64]
    newest_p: Array
    flags: Mask


def newest_value(
    value: ArrayLike, group: ArrayLike | None = None, standard_error: ArrayLike | None = None
) -> NewestValue:
    r"""Distance of the newest value of a series from its history.

    .. math:: t = \frac{x - \mathrm{med}}{s \sqrt{1 + \frac{\pi}{2} v(\hat\rho, n)}}, \qquad
              s = 1.4826\, \frac{n}{n - 0.8}\, \mathrm{MAD}, \quad \nu = 0.37\, (n_{eff} - 1)

    v is the variance of the mean of n values with autocorrelation rho, in units of theirs, and n_eff = 1/v. Where
    most values are equal, so that the median deviation is 0, the mean deviation takes its place. Spikes in the
    history do not count.

    Source: own model; the bias of the autocorrelation after [MarriottPope1954].

    Args:
        value: Values of the series in order, the newest last, flat [any]; NaN where one is missing.
        group: Id of the series of each value; None: one series.
        standard_error: Standard error of each value, or one for all [as the value]; None, NaN or 0: unknown. It
            bounds the sd from below, and widens it for a newest value that is less sure than its history.

    Returns: NewestValue.

    Range: p in [0, 1], two-sided. Fewer than 5 values before it: NaN, with the number ``needed``. A newest value that
    is missing gives NaN, with NOT_APPLICABLE. History constant: p is 1 or 0, with ZERO_DENOM.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    >>> tonight = newest_value([10.1, 9.9, 10.0, 10.2, 10.0, 9.8, 10.1, 9.9, 10.0, 13.0])
    >>> bool(tonight.p < 0.01), float(tonight.expected), round(float(tonight.sd), 2), int(tonight.points)
    (True, 10.0, 0.18, 9)
    >>> int(newest_value([10.1, 9.9, 10.0]).needed)
    3
    """
    x, error, groups = read_series(value, group, standard_error)
    whole = gather(x, error, groups, np.ones(x.size, dtype=np.bool_))
    last = np.where(lengths(whole) > 0, whole.stop - 1, 0)
    newest, newest_error = (np.append(part, np.nan)[last] for part in (whole.x, whole.error))
    older = np.ones(x.size, dtype=np.bool_)
    older[whole.place[last[lengths(whole) > 0]]] = False
    history = without_spikes(gather(x, error, groups, older & ~np.isnan(x)))
    n, codes, size = lengths(history), codes_of(history), history.start.size
    center = medians(history.x, codes, size)
    spread = np.maximum(_spread(history, center), np.nan_to_num(medians(history.error, codes, size)))
    extra = np.maximum(newest_error**2 - np.nan_to_num(medians(history.error, codes, size)) ** 2, 0.0)
    rho = _autocorrelation(history)
    known = (n >= MIN_HISTORY) & ~np.isnan(newest)
    with np.errstate(all="ignore"):
        v = mean_variance(rho, np.maximum(n, 1.0))
        sd = np.sqrt(spread**2 * (1.0 + MEDIAN_VARIANCE * v) + extra)
        away = np.abs(newest - center)
        t = np.where(away > 0, away / sd, 0.0)
        p = 2.0 * student_tail(t, np.maximum(MAD_EFFICIENCY * (1.0 / v - 1.0), 1.0))
    results = (
        np.where(known, p, np.nan),
        center,
        np.where(n >= MIN_HISTORY, sd, np.nan),
        n,
        np.maximum(MIN_HISTORY + 1 - n - ~np.isnan(newest), 0),
        rho,
        mask((Flag.NOT_APPLICABLE, np.isnan(newest)), (Flag.ZERO_DENOM, known & (sd == 0))),
    )
    return NewestValue(*groups.shaped(*results))


def _spread(series: Series, center: Array) -> Array:
    """Standard deviation of each series from its median deviation; from the mean deviation where that is 0."""
    n, codes = lengths(series), codes_of(series)
    away = np.abs(series.x - center[codes])
    middle = MAD_TO_SD * medians(away, codes, n.size)
    with np.errstate(all="ignore"):
        mean = MEAN_DEVIATION_TO_SD * np.bincount(codes, away, n.size) / n
        return np.where(middle > 0, middle, mean) * n / (n - 0.8)


def _autocorrelation(series: Series) -> Array:
    rho = np.zeros(series.start.size)
    several = lengths(series) > 1
    if several.any():
        sums = running_sums(in_units_of_sd(series).x)
        a, b = series.start[several], series.stop[several]
        _, square, product = moments_between(sums, a, b)
        rho[several] = autocorrelation(product, square, (b - a).astype(np.float64), 1)
    return rho


def noise_floor(value: ArrayLike, binary: ArrayLike, group: ArrayLike | None = None) -> NoiseFloor:
    r"""Noise of a series that no change of the program explains: the spread of runs of the same binary.

    .. math:: s = 1.4826\, \mathrm{median}_{b,i} \left| x_{bi} - \bar x_b \right| \sqrt{\frac{n_b}{n_b - 1}}

    Source: own model.

    Args:
        value: Values of the series, flat [any]; NaN where one is missing.
        binary: Id of the binary of each run; a binary that ran once says nothing.
        group: Id of the series of each value; None: one series.

    Returns: NoiseFloor; ``df`` counts the values less the binaries.

    Range: sd >= 0; NaN, with NOT_APPLICABLE, where no binary ran twice.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    Two runs each of three binaries, 0.1 apart, however far apart the binaries are:

    >>> floor = noise_floor([10.0, 10.1, 12.0, 11.9, 9.0, 9.1], [1, 1, 2, 2, 3, 3])
    >>> round(float(floor.sd), 3), int(floor.df)
    (0.105, 3)
    """
    x, _, groups = read_series(value, group, None)
    ids = np.broadcast_to(numbers("binary", binary), x.shape)
    keep = ~np.isnan(x)
    series = gather(x, np.zeros(x.size), groups, keep)
    codes = codes_of(series)
    binaries, runs = np.unique(np.stack((codes, np.unique(ids, return_inverse=True)[1].ravel()[series.place])), axis=1,
                               return_inverse=True)  # fmt: skip
    count = np.bincount(runs, minlength=binaries.shape[1])
    repeated = count[runs] > 1
    with np.errstate(all="ignore"):
        away = series.x - (np.bincount(runs, series.x, count.size) / count)[runs]
        scaled = np.abs(away) * np.sqrt(count / (count - 1.0))[runs]
    n = series.start.size
    sd = MAD_TO_SD * medians(scaled[repeated], codes[repeated], n)
    df = np.bincount(codes[repeated], minlength=n) - np.bincount(binaries[0][count > 1].astype(np.intp), minlength=n)
    return NoiseFloor(*groups.shaped(sd, df.astype(np.int64), mask((Flag.NOT_APPLICABLE, np.isnan(sd)))))


def false_discovery(
    p: ArrayLike, share: float = MAX_FALSE_DISCOVERY_RATE, dependent: bool = False, least: int = 1
) -> Discovery:
    r"""Findings of many tests at a limited false-discovery rate.

    .. math:: \tilde p_{(i)} = \min_{j \ge i} \min\left(1, \frac{\max(M, L)}{j} c\, p_{(j)}\right), \qquad
              c = 1 \text{ or } \sum_{k=1}^{M} \frac{1}{k}

    Source: [BenjaminiHochberg1995]; with the factor c for any dependence [BenjaminiYekutieli2001].

    Args:
        p: Probability of each result without an effect, flat [1]; NaN where no test could be made: it does not count.
        share: False findings over all findings that may be expected at most [1].
        dependent: Whether to hold the share under any dependence of the tests; series that rise together are no
            reason, for independent and positively dependent tests need no factor.
        least: Tests that there are at least, L, as if the others had found nothing: it limits the error of few tests.

    Returns: Discovery; of a missing p the adjusted one is NaN and nothing is found.

    Range: adjusted in [p, 1]. Values outside [0, 1] count as missing.

    Errors: TypeError for a wrong dtype, ValueError for an array that is not flat.

    >>> [round(float(a), 3) for a in false_discovery([0.01, 0.04, 0.02, float("nan")]).adjusted]
    [0.03, 0.04, 0.03, nan]
    """
    (given,) = flat_floats(p=p)
    known = (given >= 0) & (given <= 1)
    order = np.argsort(given[known], kind="stable")
    m = order.size
    c = float(np.sum(1.0 / np.arange(1, m + 1))) if dependent else 1.0
    steps = given[known][order] * (max(m, least) * c) / np.arange(1, m + 1)
    adjusted = np.full(given.size, np.nan)
    adjusted[np.flatnonzero(known)[order]] = np.minimum(np.minimum.accumulate(steps[::-1])[::-1], 1.0)
    return Discovery(adjusted, adjusted <= share)


def effect(before: ArrayLike, after: ArrayLike, relative: ArrayLike = 0.0, absolute: ArrayLike = 0.0) -> Effect:
    r"""Size of a change, and whether it reaches both of the smallest changes that matter.

    .. math:: |\Delta| \ge r\, |x_{before}| \quad \text{and} \quad |\Delta| \ge a

    Source: own model.

    Args:
        before: Level before [any].
        after: Level after [as before].
        relative: Smallest share of the level that matters, r [1].
        absolute: Smallest difference that matters, a [as before]: what the instrument can show.

    Returns: Effect.

    Range: relative is NaN where the level before is 0; there only the absolute one decides. A level that is NaN is
    not material.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    10 to 11 ms is material at 2 %; 2 to 3 us is half as much again, but less than the timer shows:

    >>> effect([10e-3, 2e-6], [11e-3, 3e-6], 0.02, 2e-6).material.tolist()
    [True, False]
    """
    x0, x1, r, a = floats(before=before, after=after, relative=relative, absolute=absolute)
    with np.errstate(all="ignore"):
        difference = x1 - x0
        share = np.where(x0 != 0, difference / np.abs(x0), np.nan)
        enough = (np.abs(difference) >= r * np.abs(x0)) & (np.abs(difference) >= a) & (difference != 0)
    return Effect(difference, share, enough)


def nightly_verdict(
    value: ArrayLike,
    group: ArrayLike | None = None,
    standard_error: ArrayLike | None = None,
    *,
    relative: ArrayLike = 0.0,
    absolute: ArrayLike = 0.0,
    share: float = MAX_FALSE_DISCOVERY_RATE,
    alpha: float = ALPHA,
    prior: NoisePrior | None = None,
    stretches: Stretches | None = None,
    shortest: ArrayLike = MIN_SEGMENT,
    fresh: ArrayLike = 1,
    runs: ArrayLike = 1,
) -> NightlyVerdict:
    r"""Series that changed in a night, and series that need another run first.

    .. math:: \text{found} = (p \le \alpha) \land (\tilde p \le q) \land \text{material}

    p is that of `newest_step`, its adjusted value that of `false_discovery` over all series of the night. A series that
    is not found, but whose newest value is improbable, or whose step is although it may depend on one value, wants a
    re-run: two or three more values tell a change from a spike the same night, where waiting takes one a night.

    Source: own model.

    Args:
        value: Values of the series in order, flat [any], each since its last baseline: since the first value after
            the newest change that is found already.
        group: Id of the series of each value; None: one series.
        standard_error: Standard error of each value, or one for all, or the noise floor [as the value].
        relative: Smallest share of the level that matters, one a group in ascending order of ids, or one for all [1].
        absolute: Smallest difference that matters, likewise [as the value].
        share: False findings over all findings of the night that may be expected at most [1].
        alpha: Probability of error of a series, for a night with few of them [1].
        prior: Noise of each series, as `newest_step` takes it.
        stretches: How often siblings leave their level, as `newest_step` takes it.
        shortest: Values that make a level, likewise.
        fresh: Newest values that no look has seen yet, likewise.
        runs: Values of a night, likewise.

    Returns: Night.

    Range: as `newest_step` and `newest_value`. What cannot be tested is not found, with the number of values
    ``needed``.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    Two kernels; the second became 10 % slower three nights ago:

    >>> steady = [10.1, 9.9, 10.0, 10.2, 10.0, 9.8, 10.1, 9.9, 10.0]
    >>> values, ids = steady + [10.1, 9.9, 10.0] + steady + [11.1, 10.9, 11.0], [1] * 12 + [2] * 12
    >>> night = nightly_verdict(values, ids, relative=0.02)
    >>> night.found.tolist(), night.at.tolist()[1], float(night.after[1])
    ([False, True], 21, 11.0)
    """
    step = newest_step(value, group, standard_error, prior, stretches, shortest, fresh, runs)
    newest = newest_value(value, group, standard_error)
    p, newest_p = np.atleast_1d(step.p), np.atleast_1d(newest.p)
    family = false_discovery(p, share, least=MIN_TESTS)
    material = effect(step.before, step.after, relative, absolute).material
    found = (p <= alpha) & family.found & material
    rerun = ~found & ((newest_p <= RERUN_P) | ((np.atleast_1d(step.p_suspected) <= RERUN_P) & material))
    one = step.p.ndim == 0
    shaped = [x[0] if one else x for x in (found, rerun, family.adjusted)]
    return NightlyVerdict(
        np.asarray(shaped[0]), np.asarray(shaped[1]), step.p, np.asarray(shaped[2]), step.at, step.before, step.after,
        step.points_after, np.asarray(np.maximum(step.needed, newest.needed)), newest.p,
        np.asarray(step.flags | newest.flags),
    )  # fmt: skip
