"""Time constants of a temperature that relaxes: one estimate, with its interval, under noise that remembers.

A model is linear in all but the logarithms of its constants. Least squares find them, Gauss and Newton move them on to
where the noise models (`profsvc.formulas._wander`) put them, and value and interval are quantiles of one mixture.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from profsvc.formulas import _wander
from profsvc.formulas._arrays import Array

Codes = NDArray[np.intp]
# What each constant changes the temperature by, of parameters and linear part.
Changes = Callable[[Array, Array], Array]

LADDER_S = np.geomspace(0.1, 400.0, 15)  # where the search begins
GROWTH = 0.15  # of the blocks with the time since the last step
SHORTEST_S = 0.1
MOST = 400  # blocks
LONGEST_SHARE = 1 / 150  # of a log, of one block
POINTS = 6  # of each block at which the model stands for its mean
WORTH = 10.0  # by how much AIC must prefer one more constant
APART = 2.0  # two constants that lie closer are one
USEFUL = 3.0  # a fit none of whose intervals is narrower, as a factor, is none
TOLD = 10.0  # a constant beside such a one is given where its interval is narrower
STILL = 0.05  # of a step: means of blocks that differ by less show the same value
LONG = 0.1  # of a log, during which they do
SURE = 5.0  # standard errors of what a fast constant changes the temperature by
UNKNOWN = 1e4  # an interval whose ends differ by more says nothing
FAST = 10.0  # times the distance of two readings
LEAST_PART = 0.02  # of all that the temperature changes by; a smaller part is none
MOST_PARTS = 4
DAMPED = 0.7
FARTHEST = np.log(3.0)  # of the way from least squares to where the noise models put the constants
ROUNDS = 12
FASTEST = 0.5  # times the distance of two readings; there a faster one is looked at
SLOWEST = 2.0  # times the log
SLOPE = 1e-3


class Rows(NamedTuple):
    """Means of a temperature over blocks that are short after a step and long later."""

    time: Array
    temperature: Array
    size: Array  # readings of each
    point: Array  # times of some readings of each block, in the order of the blocks
    first: Codes  # of each block's points
    interval: float  # typical distance of two readings
    noise: _wander.Models

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

    rows: Rows
    columns: Callable[[Array], Array]


class Estimate(NamedTuple):
    """Parameters, the linear part, what is left, and the fit around them under every noise model."""

    p: Array
    linear: Array
    design: Array
    moved: Array
    rest: Array
    found: _wander.Wander


def rows_of(time: Array, temperature: Array, steps: Array, interval_s: float = 0.0) -> Rows:
    """Blocks of the readings, beginning anew at each step; what drives them is read at the least every interval."""
    order = np.argsort(time, kind="stable")
    begins = np.unique(np.append(steps, time.min()))
    stretch = np.searchsorted(begins, time[order], side="right") - 1
    age = time[order] - begins[np.maximum(stretch, 0)]
    span = float(np.ptp(time))
    interval = max(float(np.median(np.diff(np.unique(time)))), interval_s)
    shortest, longest = max(interval, SHORTEST_S), max(span * LONGEST_SHARE, SHORTEST_S, interval)
    while True:
        place = np.searchsorted(_edges(shortest, longest, span), age, side="right")
        new = np.flatnonzero((np.diff(place, prepend=-1) != 0) | (np.diff(stretch, prepend=-9) != 0))
        if new.size <= MOST or shortest > longest:
            break
        shortest, longest = shortest * 2, longest * 1.1
    size = np.diff(np.append(new, time.size))
    means = (np.add.reduceat(x[order], new) / size for x in (time, temperature))
    at, T = (np.asarray(x) for x in means)
    take = np.minimum(size, POINTS)
    first = np.cumsum(take) - take
    k = np.arange(take.sum()) - np.repeat(first, take)
    which = np.repeat(new, take) + ((k + 0.5) * np.repeat(size / take, take)).astype(np.intp)
    noise = _wander.models(at, size.astype(np.float64), longest)
    return Rows(at, T, size.astype(np.float64), time[order][which], first, interval, noise)


def _edges(shortest: float, longest: float, span: float) -> Array:
    """Ends of the blocks after a step."""
    equal = np.arange(1, max(int(1 / GROWTH), 1) + 1) * shortest
    grown = equal[-1] * (1 + GROWTH) ** np.arange(1, max(int(np.log(longest / shortest) / np.log1p(GROWTH)) + 1, 1))
    late = np.arange(grown[-1] if grown.size else equal[-1], span + longest, longest)[1:]
    return np.concatenate([equal, grown, late])


def _weights(rows: Rows) -> Array:
    """Square roots: as much wander as noise, to begin with."""
    return np.asarray(1 / np.sqrt(0.5 + 0.5 * rows.size.mean() / rows.size))


def _left(rows: Rows, design: Array) -> Array:
    """What is left of the temperature after the best linear combination of the columns, on the first axis the tries."""
    W = _weights(rows)
    q, _ = np.linalg.qr(design * W[:, np.newaxis])
    y = rows.temperature * W
    return np.asarray(y - (q @ (q.swapaxes(-1, -2) @ y)[..., np.newaxis])[..., 0])


def best_of(problem: Problem, tried: Array, changes: Changes) -> Array:
    """The parameters among these that leave least, of those whose parts go one way if there are any."""
    design = problem.columns(tried)
    order = np.argsort((_left(problem.rows, design) ** 2).sum(axis=-1), kind="stable")
    W = _weights(problem.rows)
    for k in order.tolist():
        linear = np.linalg.lstsq(design[k] * W[:, np.newaxis], problem.rows.temperature * W, rcond=None)[0]
        if sound(tried[k], changes(tried[k], linear)):
            return np.asarray(tried[k])
    return np.asarray(tried[order[0]])


def refined(problem: Problem, p: Array) -> Array:
    """Least squares by Levenberg and Marquardt."""
    damping = 1e-2
    rest, J = _slopes(problem, p)
    for _ in range(ROUNDS):
        normal = J.T @ J
        step = np.linalg.solve(normal + damping * np.diag(np.diagonal(normal) + 1e-12), -J.T @ rest)
        tried = np.clip(p + np.clip(step, -0.7, 0.7), *_within(problem))
        new, slopes = _slopes(problem, tried)
        if new @ new < rest @ rest:
            gained = 1 - (new @ new) / (rest @ rest)
            p, rest, J, damping = tried, new, slopes, damping / 5
            if gained < 1e-5:
                break
        else:
            damping *= 10
    return p


def _within(problem: Problem) -> tuple[float, float]:
    """Logarithms that a parameter may have: what takes longer than the log is a drift, whatever it is."""
    rows = problem.rows
    return float(np.log(FASTEST * min(rows.interval, 1.0))), float(np.log(SLOWEST * np.ptp(rows.time)))


def _slopes(problem: Problem, p: Array) -> tuple[Array, Array]:
    """Rest at p, and its slope by every parameter."""
    left = _left(problem.rows, problem.columns(np.vstack([p, p + SLOPE * np.eye(p.size)])))
    return left[0], np.asarray((left[1:] - left[0]).T / SLOPE)


def judged(problem: Problem, p: Array, linear: Array | None = None) -> Estimate:
    """The fit around p under noise that remembers."""
    designs, T = problem.columns(np.vstack([p, p + SLOPE * np.eye(p.size)])), problem.rows.temperature
    if linear is None:
        W = _weights(problem.rows)
        linear = np.asarray(np.linalg.lstsq(designs[0] * W[:, np.newaxis], T * W, rcond=None)[0])
    moved = np.asarray(((designs[1:] - designs[0]) @ linear).T / SLOPE)
    rest = T - designs[0] @ linear
    found = _wander.fit(problem.rows.noise, rest, np.column_stack([moved, designs[0]]))
    return Estimate(p, linear, designs[0], moved, rest, found)


def centred(problem: Problem, p: Array) -> Estimate:
    """Moved on until the noise models, weighed together, want the parameters where they are; never far."""
    start, n, now = p, p.size, judged(problem, p)
    for _ in range(ROUNDS):
        C = now.found.covariance[now.found.best()]
        wanted = now.found.weight @ now.found.estimate
        moved = np.clip(now.p + np.clip(DAMPED * wanted[:n], -0.4, 0.4), start - FARTHEST, start + FARTHEST)
        moved = np.clip(moved, *_within(problem))
        step = moved - now.p
        if (np.abs(step) < 0.1 * np.sqrt(np.diagonal(C)[:n])).all():
            break
        linear = wanted[n:] - C[n:, :n] @ np.linalg.solve(C[:n, :n], wanted[:n] - step)  # where p stays behind
        now = judged(problem, moved, now.linear + linear)
    return now


def sound(p: Array, parts: Array) -> bool:
    """Whether the constants lie apart, and each takes its part, the same way as the others."""
    apart = np.diff(np.sort(p[p.size - parts.size :]))
    share = parts / max(float(np.abs(parts).sum()), 1e-300)
    return bool((apart > np.log(APART)).all() and abs(share.sum()) > 1 - 1e-9 and np.abs(share).min() > LEAST_PART)


def preferred(now: Estimate, before: Estimate) -> bool:
    """Whether the likelihood wants one more constant; it costs two parameters."""
    return bool(2 * (now.found.likelihood.max() - before.found.likelihood.max()) - 4 > WORTH)


def intervals(now: Estimate, directions: Array, unseen: list[Array], noise: _wander.Models) -> Array:
    """Middle and ends of sums of the logarithms; `unseen` are errors of the temperature that leave no trace."""
    both = np.zeros((len(directions), now.found.estimate.shape[1]))
    both[:, : directions.shape[1]] = directions
    errors = np.column_stack([np.zeros_like(now.rest), *unseen])
    hidden = ((both @ _wander.moves(noise, errors, np.column_stack([now.moved, now.design]))) ** 2).sum(axis=2)
    ends = [_wander.quantiles(_wander.along(now.found, d), 0, h) for d, h in zip(both, hidden.T, strict=True)]
    return np.asarray(np.exp(np.clip(np.array(ends) + (directions @ now.p)[:, np.newaxis], -30, 30)))


def creeping(rows: Rows, step: float) -> list[Array]:
    """Errors of a rounded temperature that shows one value for long: it may have crept through all of its step."""
    if step == 0:
        return []
    change = np.abs(np.diff(rows.temperature, prepend=np.inf)) > step * STILL
    begin = np.flatnonzero(change)
    end = np.append(begin[1:], rows.time.size)
    errors = []
    for a, b in zip(begin.tolist(), end.tolist(), strict=True):
        length = rows.time[b - 1] - rows.time[a]
        if length > LONG * np.ptp(rows.time):
            tilt = np.zeros_like(rows.time)
            tilt[a:b] = (rows.time[a:b] - rows.time[a]) / length - 0.5
            errors.append(tilt * step / np.sqrt(3))  # ends uniform over half a step to either side
    return errors


def forward(problem: Problem, first: Array, more: Callable[[Array], Array], changes: Changes) -> Estimate:
    """As many constants as the likelihood wants, one after the other; `more` foretells where the next may lie."""
    p = refined(problem, best_of(problem, first, changes))
    found = [judged(problem, p)]
    while len(found) < MOST_PARTS:
        p = refined(problem, best_of(problem, more(p), changes))
        now = judged(problem, p)
        if not (sound(now.p, changes(now.p, now.linear)) and preferred(now, found[-1])):
            break
        found.append(now)
    for best in found[:0:-1]:
        now = centred(problem, best.p)
        if sound(now.p, changes(now.p, now.linear)):
            return now
    return centred(problem, found[0].p)


def pairs(tried: Array) -> Array:
    """All pairs of the constants of the ladder, as logarithms."""
    i, j = np.triu_indices(tried.size, 1)
    return np.column_stack([tried[i], tried[j]])


def said(ends: Array, interval_s: float, span_s: float) -> Array:
    """Middle, low and high on the last axis as they may be said; NaN is what the readings do not tell.

    What is faster than readings follow each other, or may be, is said to lie below the high end. Such a constant moves
    the readings in proportion to itself and not to its logarithm. One far longer than the log has no high end.
    """
    middle, low, high = np.moveaxis(ends, -1, 0)
    two_sided = (high < TOLD * low) & (middle >= interval_s) & (low >= FASTEST * interval_s)
    fast = ~two_sided & (low < interval_s) & (middle < FAST * interval_s)
    at = np.maximum(middle, FASTEST * interval_s)
    below = np.maximum(at * (1 + np.log(high / at)), interval_s)
    high = np.where(fast, below, np.where(high < FAST * span_s, high, np.nan))
    low = np.where(fast, 0.0, np.where(two_sided | (low >= interval_s), np.minimum(low, SLOWEST * span_s), np.nan))
    return np.stack([np.where(two_sided & np.isfinite(high), middle, np.nan), low, high], axis=-1)


def refusal(now: Estimate, order: Codes, ends: Array, told: Array) -> str:
    """Empty where one constant at the least is known well enough, or is fast and sure to be there."""
    best, n = now.found.best(), now.p.size
    error = np.sqrt(np.diagonal(now.found.covariance[best]))[n:][order]
    fast = (told[:, 1] == 0) & (np.abs(now.linear[order]) > SURE * error)
    if (fast | (ends[:, 2] < USEFUL * ends[:, 1])).any():
        return ""
    if not (ends[:, 2] < UNKNOWN * ends[:, 1]).any():
        return "the log does not tell a time constant"
    wide = ", ".join(f"{low:.3g} and {high:.3g} s" for _, low, high in ends.tolist())
    return f"the time constant lies between {wide}: too wide"
