"""What is left of a step without one value, computed anew from the others: a second method, one series at a time."""

import numpy as np
from scipy import special

from profsvc.formulas._arrays import Groups
from profsvc.formulas._series import gather, in_units_of_sd, without_spikes
from profsvc.formulas.steps import APART_SD, MIN_HISTORY, REST, WINDOWS


def counted(x: np.ndarray) -> np.ndarray:
    """Return the places of the values of a series that are no spikes."""
    known = ~np.isnan(x)
    return np.sort(without_spikes(gather(x, np.zeros(x.size), Groups(None, x.size), known)).place)


def p_of_others(x: np.ndarray, left_out: int) -> float:
    """Return the p that a series, without spikes, has without one value, by the surest of the same windows."""
    return _surest(x, left_out)[0]


def p_by_definition(x: np.ndarray) -> float:
    """Return the p of the newest step of a series without spikes, value by value."""
    p, sign, m, share = _surest(x, None)
    if p >= 1 / REST:
        return p
    left = (min(2 * tail_of_others(sign * x, one, x.size - m) / share, 1.0) for one in range(x.size))
    in_sd = in_units_of_sd(gather(x, np.zeros(x.size), Groups(None, x.size), np.ones(x.size, dtype=np.bool_))).x
    return max(p, *(rest / (1.0 if far > APART_SD else REST) for rest, far in zip(left, _apart(in_sd, m), strict=True)))


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
        (min(2 * tail_of_others(sign * x, left_out, x.size - m) / share, 1.0), sign, m, share)
        for m, share in WINDOWS
        if x.size - m >= MIN_HISTORY
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


def _tail(before: np.ndarray, after: np.ndarray) -> float:
    m, n = after.size, before.size
    about = [part - part.mean() for part in (before, after)]
    square = sum(part @ part for part in about)
    rho = 0.0
    if square > 0:
        product = sum(part[1:] @ part[:-1] for part in about)
        rho = float(np.clip(((m + n) * product / square + 2) / (m + n), 0.0, 0.95))
    lag = np.abs(np.subtract.outer(np.arange(m + n), np.arange(m + n)))
    correlation = rho**lag
    weight = np.r_[np.full(n, -1 / n), np.full(m, 1 / m)]
    within = (correlation[:n, :n].sum() / n, correlation[n:, n:].sum() / m)
    with np.errstate(all="ignore"):
        t = (after.mean() - before.mean()) / np.sqrt(square / (m + n - sum(within)) * (weight @ correlation @ weight))
    return float(special.stdtr(max((m + n) * (1 - rho) / (1 + rho) - 2, 1.0), -t))
