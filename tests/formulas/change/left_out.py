"""Probability of a step without one value, recomputed from the others: a second method, one series at a time."""

import itertools

import numpy as np
from scipy import special

from profsvc.formulas.change.levels.level_visits import MAX_VISIT_DISTANCE_SD
from profsvc.formulas.change.levels.series_length import MIN_HISTORY, MIN_SEGMENT
from profsvc.formulas.change.noise.siblings import AUTOCORRELATIONS
from profsvc.formulas.change.steps.newest_step import VALUE_COMPARISON_SD
from profsvc.formulas.change.steps.surest_step import MAX_LEAVE_ONE_OUT_RATIO, OUTLYING_SD, WINDOWS
from profsvc.formulas.numerics.arrays import Groups
from profsvc.formulas.numerics.series import gather, in_units_of_sd, without_spikes


def counted(x: np.ndarray) -> np.ndarray:
    """Return the places of the values of a series that are no spikes."""
    known = ~np.isnan(x)
    return np.sort(without_spikes(gather(x, np.zeros(x.size), Groups(None, x.size), known)).place)


def p_of_others(x: np.ndarray, left_out: int) -> float:
    """Return the p that a series, without spikes, has without one value, by the surest of the same windows."""
    return _surest(x, left_out)[0]


def p_by_definition(x: np.ndarray, split: int) -> float:
    """Return the p of the newest step of a series without spikes, value by value; ``split`` is where it is put."""
    p, sign, m, share = _surest(x, None)
    if p >= 1 / MAX_LEAVE_ONE_OUT_RATIO:
        return p
    left = (min(2 * tail_of_others(sign * x, one, x.size - m) / share, 1.0) for one in range(x.size))
    in_sd = in_units_of_sd(gather(x, np.zeros(x.size), Groups(None, x.size), np.ones(x.size, dtype=np.bool_))).x
    rests = (
        rest / (1.0 if far > OUTLYING_SD else MAX_LEAVE_ONE_OUT_RATIO)
        for rest, far in zip(left, _apart(in_sd, m), strict=True)
    )
    return max(p, visited(x, split), *rests)


def _apart(x: np.ndarray, m: int) -> list[float]:
    """Return how far each value lies from the others of the newest m, or of those before, in sd of that distance."""
    found = []
    for one in range(x.size):
        side = np.arange(x.size)[x.size - m :] if one >= x.size - m else np.arange(x.size - m)
        others = x[side[side != one]]
        found.append(float(abs(x[one] - others.mean()) / np.sqrt(1 + 1 / others.size)))
    return found


def _surest(x: np.ndarray, left_out: int | None) -> tuple[float, float, int, float]:
    return min(
        (
            max(
                min(2 * tail_of_others(sign * x, left_out, x.size - m) / share, 1.0),
                0.0 if left_out is not None or sign * (x[-1] - x[0]) < 0 else by_place(x, x.size - m),
            ),
            sign,
            m,
            share,
        )
        for m, share in WINDOWS
        if m >= MIN_SEGMENT and x.size - m >= MIN_HISTORY
        for sign in (1.0, -1.0)
    )


def tail_of_others(x: np.ndarray, left_out: int | None, split: int) -> float:
    """Return the one-sided tail of a step up before ``split``, of all values but one, or of all."""
    place = np.arange(x.size)
    order = np.lexsort((place * (np.sqrt(5) - 1) / 2 % 1, x))  # equal values keep the order they had with all
    others = order[order != (-1 if left_out is None else left_out)]
    value, score = np.full((2, x.size), np.nan)
    value[others] = x[others]
    score[others] = special.ndtri(np.arange(1, others.size + 1) / (others.size + 1))
    lies_beyond = np.nanmin(value[split:]) > np.nanmax(value[:split])
    before, after = (part[~np.isnan(part)] for part in np.split(value if lies_beyond else score, [split]))
    return _tail(before, after)


def by_place(x: np.ndarray, split: int) -> float:
    """Return the chance that the largest of all values, or the smallest, come last, where they do; 0 without noise."""
    before, after = x[:split], x[split:]
    apart = after.min() > before.max() or after.max() < before.min()
    return 1 / float(special.binom(x.size, after.size)) if apart and (before.std() or after.std()) else 0.0


def _tail(before: np.ndarray, after: np.ndarray) -> float:
    """Return the tail by matrices: of every autocorrelation by least squares, weighted by its restricted likelihood."""
    y, N = np.concatenate((before, after)), before.size + after.size
    later = np.arange(N) >= before.size
    if not sum(np.sum((part - part.mean()) ** 2) for part in (before, after)) > 1e-20 * np.sum(y**2):
        return 0.0 if after.mean() > before.mean() else 0.5 if after.mean() == before.mean() else 1.0
    design, lag = np.stack((~later, later), axis=1) * 1.0, np.abs(np.subtract.outer(np.arange(N), np.arange(N)))
    tails, logs = [], []
    for rho in AUTOCORRELATIONS:
        inverse = np.linalg.inv(rho**lag / (1 - rho**2))
        information = design.T @ inverse @ design
        levels = np.linalg.solve(information, design.T @ inverse @ y)
        left = y - design @ levels
        squares = left @ inverse @ left
        contrast = np.array([-1.0, 1.0])
        t = contrast @ levels / np.sqrt(squares / (N - 2) * (contrast @ np.linalg.solve(information, contrast)))
        tails.append(special.stdtr(N - 2, -t))
        determinants = np.linalg.slogdet(inverse)[1] - np.linalg.slogdet(information)[1]
        logs.append(0.5 * determinants - 0.5 * (N - 2) * np.log(squares))
    rho, weight = np.array(AUTOCORRELATIONS), np.exp(np.array(logs) - max(logs))
    weight *= np.exp(-200 * rho / N)
    more = (1 + (24 / N) ** 4) * np.exp(110 * rho / N)
    return float((weight * more) @ np.array(tails) / weight.sum())


def visited(x: np.ndarray, split: int) -> float:
    """Return the probability that a series which was at the level after a step before is there for as long."""
    before, after = x[:split], x[split:]
    old, new = np.median(before), np.median(after)
    same_sign = np.sign(new - old)
    sd = 1.482602218505602 / np.sqrt(2) * np.median(np.abs(np.diff(x)))
    if abs(new - old) < VALUE_COMPARISON_SD * sd:
        return 0.0
    runs = [[one for _, one in group] for near, group in itertools.groupby(
        enumerate(before), lambda one: same_sign * (new - one[1]) < abs(new - old) / 2) if near]  # fmt: skip
    runs = [run for run in runs if min(same_sign * (new - one) for one in run) <= MAX_VISIT_DISTANCE_SD * sd]
    v, k, m = sum(map(len, runs)), len(runs), after.size
    if not runs:
        return 0.0
    long = np.exp(special.betaln(v - k + m - 0.5, k + 0.5) - special.betaln(v - k + 0.5, k + 0.5))
    return float((v + 0.5) / (split + 1) * long)
