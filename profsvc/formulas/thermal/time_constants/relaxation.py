"""Time constants of a temperature that relaxes, with their intervals, under autocorrelated noise.

A model is linear in all but the logarithms of its constants. Least squares find them, Gauss and Newton move them on to
where the noise models (`profsvc.formulas.thermal.noise.autocorrelated_fit`) put them, and value and interval are
quantiles of one mixture.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from profsvc.formulas.numerics.arrays import Array
from profsvc.formulas.thermal.noise import autocorrelated_fit

Codes = NDArray[np.intp]
# What each constant changes the temperature by, of parameters and linear part.
PartContributions = Callable[[Array, Array], Array]

TIME_CONSTANT_GRID_S = np.geomspace(0.1, 400.0, 15)  # start values of the search
BLOCK_GROWTH = 0.15  # growth of blocks with the time since the last step
MIN_BLOCK_S = 0.1
MAX_BLOCKS = 400  # blocks of a log
MAX_BLOCK_SHARE = 1 / 150  # longest block, as a share of the log
POINTS_PER_BLOCK = 6  # points at which the model is averaged over a block
MIN_AIC_GAIN = 10.0  # improvement of AIC that supports one more constant
MIN_CONSTANT_RATIO = 2.0  # closer constants count as one
MAX_FIT_INTERVAL_RATIO = 3.0  # a fit needs one interval whose ends differ by less, as a factor
MAX_INTERVAL_RATIO = 10.0  # further constants of such a fit are given if their interval is narrower than this factor
PLATEAU_STEP_SHARE = 0.05  # share of a rounding step: blocks that differ by less show the same value
MIN_PLATEAU_SHARE = 0.1  # share of the log that a plateau of equal values must last
MIN_STANDARD_ERRORS = 5.0  # standard errors of the temperature change that proves a fast constant
UNBOUNDED_RATIO = 1e4  # an interval whose ends differ by more, as a factor, is unbounded
FAST_SAMPLE_INTERVALS = 10.0  # sampling intervals below which a constant counts as fast
MIN_PART_SHARE = 0.02  # smallest share of the temperature change that counts as a part
MAX_PARTS = 4
DAMPING = 0.7  # share of each step taken
MAX_LOG_STEP = np.log(3.0)  # largest shift from least squares to the fit under noise models
MAX_ROUNDS = 12
MIN_CONSTANT_INTERVALS = 0.5  # shortest constant, in sampling intervals
MAX_CONSTANT_SPANS = 2.0  # longest constant, in lengths of the log
DIFFERENCE_STEP = 1e-3


class BlockMeans(NamedTuple):
    """Means of a temperature over blocks that are short after a step and long later."""

    time: Array
    temperature: Array
    size: Array  # readings of each
    point: Array  # times of some readings of each block, in the order of the blocks
    first: Codes  # of each block's points
    interval: float  # typical distance of two readings
    noise: autocorrelated_fit.NoiseModels

    @property
    def segment(self) -> Codes:
        """All are one."""
        return np.zeros(self.time.size, dtype=np.intp)

    def mean(self, at_points: Array) -> Array:
        """Mean over the points of each block, along the first axis."""
        count = np.diff(np.append(self.first, self.point.size)).reshape(-1, *[1] * (at_points.ndim - 1))
        return np.asarray(np.add.reduceat(at_points, self.first, axis=0) / count)


class Problem(NamedTuple):
    """Rows, and the design of logarithms of constants: (tries, parameters) to (tries, rows, columns)."""

    rows: BlockMeans
    columns: Callable[[Array], Array]


class Estimate(NamedTuple):
    """Parameters, the linear part, what is left, and the fit around them under every noise model."""

    p: Array
    linear: Array
    design: Array
    moved: Array
    rest: Array
    found: autocorrelated_fit.AutocorrelatedFit


def block_means(time: Array, temperature: Array, steps: Array, interval_s: float = 0.0) -> BlockMeans:
    """Return means over blocks of the readings. Blocks begin at each step and are at least one interval long."""
    order = np.argsort(time, kind="stable")
    begins = np.unique(np.append(steps, time.min()))
    stretch = np.searchsorted(begins, time[order], side="right") - 1
    age = time[order] - begins[np.maximum(stretch, 0)]
    span = float(np.ptp(time))
    interval = max(float(np.median(np.diff(np.unique(time)))), interval_s)
    shortest, longest = max(interval, MIN_BLOCK_S), max(span * MAX_BLOCK_SHARE, MIN_BLOCK_S, interval)
    while True:
        place = np.searchsorted(_block_edges(shortest, longest, span), age, side="right")
        new = np.flatnonzero((np.diff(place, prepend=-1) != 0) | (np.diff(stretch, prepend=-9) != 0))
        if new.size <= MAX_BLOCKS or shortest > longest:
            break
        shortest, longest = shortest * 2, longest * 1.1
    size = np.diff(np.append(new, time.size))
    means = (np.add.reduceat(x[order], new) / size for x in (time, temperature))
    at, T = (np.asarray(x) for x in means)
    take = np.minimum(size, POINTS_PER_BLOCK)
    first = np.cumsum(take) - take
    k = np.arange(take.sum()) - np.repeat(first, take)
    which = np.repeat(new, take) + ((k + 0.5) * np.repeat(size / take, take)).astype(np.intp)
    noise = autocorrelated_fit.noise_models(at, size.astype(np.float64), longest)
    return BlockMeans(at, T, size.astype(np.float64), time[order][which], first, interval, noise)


def _block_edges(shortest: float, longest: float, span: float) -> Array:
    """Ends of the blocks after a step."""
    equal = np.arange(1, max(int(1 / BLOCK_GROWTH), 1) + 1) * shortest
    grown = equal[-1] * (1 + BLOCK_GROWTH) ** np.arange(
        1, max(int(np.log(longest / shortest) / np.log1p(BLOCK_GROWTH)) + 1, 1)
    )
    late = np.arange(grown[-1] if grown.size else equal[-1], span + longest, longest)[1:]
    return np.concatenate([equal, grown, late])


def _weights(rows: BlockMeans) -> Array:
    """Return the square roots of the initial weights: equal parts of correlated and white noise."""
    return np.asarray(1 / np.sqrt(0.5 + 0.5 * rows.size.mean() / rows.size))


def _residuals(rows: BlockMeans, design: Array) -> Array:
    """Return the residuals after the best linear combination of the columns, one row per try."""
    W = _weights(rows)
    q, _ = np.linalg.qr(design * W[:, np.newaxis])
    y = rows.temperature * W
    return np.asarray(y - (q @ (q.swapaxes(-1, -2) @ y)[..., np.newaxis])[..., 0])


def best_start(problem: Problem, tried: Array, changes: PartContributions) -> Array:
    """The parameters among these that leave least, of those whose parts go one way if there are any."""
    design = problem.columns(tried)
    order = np.argsort((_residuals(problem.rows, design) ** 2).sum(axis=-1), kind="stable")
    W = _weights(problem.rows)
    for k in order.tolist():
        linear = np.linalg.lstsq(design[k] * W[:, np.newaxis], problem.rows.temperature * W, rcond=None)[0]
        if is_valid(tried[k], changes(tried[k], linear)):
            return np.asarray(tried[k])
    return np.asarray(tried[order[0]])


def levenberg_marquardt(problem: Problem, p: Array) -> Array:
    """Least squares by Levenberg and Marquardt."""
    damping = 1e-2
    rest, J = _residuals_and_jacobian(problem, p)
    for _ in range(MAX_ROUNDS):
        normal = J.T @ J
        step = np.linalg.solve(normal + damping * np.diag(np.diagonal(normal) + 1e-12), -J.T @ rest)
        tried = np.clip(p + np.clip(step, -0.7, 0.7), *_parameter_range(problem))
        new, slopes = _residuals_and_jacobian(problem, tried)
        if new @ new < rest @ rest:
            gained = 1 - (new @ new) / (rest @ rest)
            p, rest, J, damping = tried, new, slopes, damping / 5
            if gained < 1e-5:
                break
        else:
            damping *= 10
    return p


def _parameter_range(problem: Problem) -> tuple[float, float]:
    """Logarithms that a parameter may have: what takes longer than the log is a drift, whatever it is."""
    rows = problem.rows
    return float(np.log(MIN_CONSTANT_INTERVALS * min(rows.interval, 1.0))), float(
        np.log(MAX_CONSTANT_SPANS * np.ptp(rows.time))
    )


def _residuals_and_jacobian(problem: Problem, p: Array) -> tuple[Array, Array]:
    """Rest at p, and its slope by every parameter."""
    left = _residuals(problem.rows, problem.columns(np.vstack([p, p + DIFFERENCE_STEP * np.eye(p.size)])))
    return left[0], np.asarray((left[1:] - left[0]).T / DIFFERENCE_STEP)


def fit_with_noise(problem: Problem, p: Array, linear: Array | None = None) -> Estimate:
    """Return the linearised fit around p under autocorrelated noise."""
    designs, T = problem.columns(np.vstack([p, p + DIFFERENCE_STEP * np.eye(p.size)])), problem.rows.temperature
    if linear is None:
        W = _weights(problem.rows)
        linear = np.asarray(np.linalg.lstsq(designs[0] * W[:, np.newaxis], T * W, rcond=None)[0])
    moved = np.asarray(((designs[1:] - designs[0]) @ linear).T / DIFFERENCE_STEP)
    rest = T - designs[0] @ linear
    found = autocorrelated_fit.fit(problem.rows.noise, rest, np.column_stack([moved, designs[0]]))
    return Estimate(p, linear, designs[0], moved, rest, found)


def centre_under_noise(problem: Problem, p: Array) -> Estimate:
    """Return the fit moved to where the weighted noise models put the parameters, within a limited distance."""
    start, n, now = p, p.size, fit_with_noise(problem, p)
    for _ in range(MAX_ROUNDS):
        C = now.found.covariance[now.found.best()]
        wanted = now.found.weight @ now.found.estimate
        moved = np.clip(now.p + np.clip(DAMPING * wanted[:n], -0.4, 0.4), start - MAX_LOG_STEP, start + MAX_LOG_STEP)
        moved = np.clip(moved, *_parameter_range(problem))
        step = moved - now.p
        if (np.abs(step) < 0.1 * np.sqrt(np.diagonal(C)[:n])).all():
            break
        linear = wanted[n:] - C[n:, :n] @ np.linalg.solve(C[:n, :n], wanted[:n] - step)  # where p stays behind
        now = fit_with_noise(problem, moved, now.linear + linear)
    return now


def is_valid(p: Array, parts: Array) -> bool:
    """Return whether the constants differ enough, and each part is large enough and of the same sign."""
    apart = np.diff(np.sort(p[p.size - parts.size :]))
    share = parts / max(float(np.abs(parts).sum()), 1e-300)
    return bool(
        (apart > np.log(MIN_CONSTANT_RATIO)).all()
        and abs(share.sum()) > 1 - 1e-9
        and np.abs(share).min() > MIN_PART_SHARE
    )


def is_preferred(now: Estimate, before: Estimate) -> bool:
    """Return whether the likelihood supports one more constant, which costs two parameters."""
    return bool(2 * (now.found.likelihood.max() - before.found.likelihood.max()) - 4 > MIN_AIC_GAIN)


def intervals(now: Estimate, directions: Array, unseen: list[Array], noise: autocorrelated_fit.NoiseModels) -> Array:
    """Middle and ends of sums of the logarithms; `unseen` are errors of the temperature that leave no trace."""
    both = np.zeros((len(directions), now.found.estimate.shape[1]))
    both[:, : directions.shape[1]] = directions
    errors = np.column_stack([np.zeros_like(now.rest), *unseen])
    hidden = ((both @ autocorrelated_fit.influence(noise, errors, np.column_stack([now.moved, now.design]))) ** 2).sum(
        axis=2
    )
    ends = [
        autocorrelated_fit.quantiles(autocorrelated_fit.fit_along_direction(now.found, d), 0, h)
        for d, h in zip(both, hidden.T, strict=True)
    ]
    return np.asarray(np.exp(np.clip(np.array(ends) + (directions @ now.p)[:, np.newaxis], -30, 30)))


def rounding_drift_errors(rows: BlockMeans, step: float) -> list[Array]:
    """Errors of a rounded temperature that shows one value for long: it may have crept through all of its step."""
    if step == 0:
        return []
    change = np.abs(np.diff(rows.temperature, prepend=np.inf)) > step * PLATEAU_STEP_SHARE
    begin = np.flatnonzero(change)
    end = np.append(begin[1:], rows.time.size)
    errors = []
    for a, b in zip(begin.tolist(), end.tolist(), strict=True):
        length = rows.time[b - 1] - rows.time[a]
        if length > MIN_PLATEAU_SHARE * np.ptp(rows.time):
            tilt = np.zeros_like(rows.time)
            tilt[a:b] = (rows.time[a:b] - rows.time[a]) / length - 0.5
            errors.append(tilt * step / np.sqrt(3))  # ends uniform over half a step to either side
    return errors


def forward_selection(
    problem: Problem, first: Array, more: Callable[[Array], Array], changes: PartContributions
) -> Estimate:
    """Return the fit with as many constants as the likelihood supports; `more` gives starts for the next one."""
    p = levenberg_marquardt(problem, best_start(problem, first, changes))
    found = [fit_with_noise(problem, p)]
    while len(found) < MAX_PARTS:
        p = levenberg_marquardt(problem, best_start(problem, more(p), changes))
        now = fit_with_noise(problem, p)
        if not (is_valid(now.p, changes(now.p, now.linear)) and is_preferred(now, found[-1])):
            break
        found.append(now)
    for best in found[:0:-1]:
        now = centre_under_noise(problem, best.p)
        if is_valid(now.p, changes(now.p, now.linear)):
            return now
    return centre_under_noise(problem, found[0].p)


def constant_pairs(tried: Array) -> Array:
    """All pairs of the constants of the ladder, as logarithms."""
    i, j = np.triu_indices(tried.size, 1)
    return np.column_stack([tried[i], tried[j]])


def reportable_interval(ends: Array, interval_s: float, span_s: float) -> Array:
    """Return middle, low and high on the last axis as they may be reported; NaN where the readings do not determine
    them.

    What is faster than readings follow each other, or may be, is said to lie below the high end. Such a constant moves
    the readings in proportion to itself and not to its logarithm. One far longer than the log has no high end.
    """
    middle, low, high = np.moveaxis(ends, -1, 0)
    two_sided = (
        (high < MAX_INTERVAL_RATIO * low) & (middle >= interval_s) & (low >= MIN_CONSTANT_INTERVALS * interval_s)
    )
    fast = ~two_sided & (low < interval_s) & (middle < FAST_SAMPLE_INTERVALS * interval_s)
    at = np.maximum(middle, MIN_CONSTANT_INTERVALS * interval_s)
    below = np.maximum(at * (1 + np.log(high / at)), interval_s)
    high = np.where(fast, below, np.where(high < FAST_SAMPLE_INTERVALS * span_s, high, np.nan))
    low = np.where(
        fast, 0.0, np.where(two_sided | (low >= interval_s), np.minimum(low, MAX_CONSTANT_SPANS * span_s), np.nan)
    )
    return np.stack([np.where(two_sided & np.isfinite(high), middle, np.nan), low, high], axis=-1)


def refusal_reason(now: Estimate, order: Codes, ends: Array, reported: Array) -> str:
    """Return the reason to refuse; empty where at least one constant is known well enough, or is certain but fast."""
    best, n = now.found.best(), now.p.size
    error = np.sqrt(np.diagonal(now.found.covariance[best]))[n:][order]
    fast = (reported[:, 1] == 0) & (np.abs(now.linear[order]) > MIN_STANDARD_ERRORS * error)
    if (fast | (ends[:, 2] < MAX_FIT_INTERVAL_RATIO * ends[:, 1])).any():
        return ""
    if not (ends[:, 2] < UNBOUNDED_RATIO * ends[:, 1]).any():
        return "the log does not determine a time constant"
    wide = ", ".join(f"{low:.3g} and {high:.3g} s" for _, low, high in ends.tolist())
    return f"the time constant lies between {wide}: too wide"
