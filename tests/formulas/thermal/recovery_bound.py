r"""How well offset and time constants can be known at best, from what made the logs and not from a way to estimate it.

.. math:: F = \sum_i I(\mu_i, s)\, \nabla\mu_i \nabla\mu_i^T + W, \qquad \sigma_d^2 = d^T F^{-1} d

the bound of Cramer and Rao, with Fisher's information I of a reading in whole degrees. Known are the noise s, how many
parts the board has, and the power but for when it stepped. Not known are the offset, the time constants, their ratio,
the resistances, the level, what each part held at the begin, and where each step lies between two readings of the power
(W). An estimate of the rest from the logs as well is less accurate. A prior that a board may have been at rest when the
log began, as two in three of these were, makes it somewhat more accurate.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf, ndtr

from tests.formulas.thermal import synthetic_logs
from tests.formulas.thermal.synthetic_logs import STEP_S, Log, Recipe

Array = NDArray[np.float64]
AT_ONCE = 20
CHANGE = 1e-3
BOARD = 7  # logarithms of two time constants and of their ratio, two resistances, what two parts held
LEAST_PLACE_S = 5e-3
LEAST_NOISE_C = 1e-2
DEGREES = np.arange(-6.0, 8.0)[:, np.newaxis]


class Least(NamedTuple):
    """Least standard errors: of the offset [s], and of the logarithms of the die's constants of rise and of decay."""

    offset_s: float
    rise: float
    decay: float


def least_errors(seed: int, count: int, kind: str = "informative") -> list[Least]:
    """Of each log that `synthetic_logs.simulate` makes of a seed."""
    errors: list[Least] = []
    for first in range(0, count, AT_ONCE):
        drawn = synthetic_logs.recipes(seed, range(first, min(first + AT_ONCE, count)), kind)
        power, temperature, fan = synthetic_logs.physics(drawn)
        slopes = slopes_of(drawn, power)
        for k, r in enumerate(drawn):
            log = synthetic_logs.measure(r, power[k], temperature[k], fan[k])
            errors.append(least_error(r, log, temperature[k], slopes[k]))
    return errors


def right_at_best(error_s: Array, within_s: float) -> Array:
    """Probability that a normal error of this size stays within."""
    return np.asarray(erf(within_s / np.sqrt(2) / error_s))


def least_error(r: Recipe, log: Log, temperature: Array, slopes: Array) -> Least:
    """Of one log, whose temperature has these slopes by the parameters of `follow`."""
    grid = STEP_S * np.arange(temperature.size)
    seen = np.unique(log.temperature_of_s)  # polls of one update tell the same
    warming = np.interp(seen, grid, np.gradient(temperature, STEP_S))
    J = np.column_stack([*(np.interp(seen, grid, each) for each in slopes), np.ones(seen.size), -warming])
    W = np.zeros(J.shape[1])
    W[BOARD : BOARD + r.start_s.size - 1] = [unsure_s(log, at) ** -2 for at in r.start_s[1:].tolist()]
    asked = np.zeros((3, J.shape[1]))
    asked[0, -1] = asked[1:, 0] = asked[2, 2] = 1
    used = np.abs(J).max(axis=0) > 0
    J, W, asked = J[:, used], W[used], asked[:, used]
    # A flip is seen at the reading after it: no sensor without noise tells more than that.
    late = np.abs(warming) * np.diff(seen, append=seen[-1]) / np.sqrt(12)
    told = information(np.interp(seen, grid, temperature), np.maximum(np.hypot(log.noise_c, late), LEAST_NOISE_C))
    F = J.T @ (told[:, np.newaxis] * J) + np.diag(W)
    size = np.sqrt(np.diagonal(F))
    C = np.linalg.inv(F / np.outer(size, size)) / np.outer(size, size)
    return Least(*np.sqrt(((asked @ C) * asked).sum(axis=1)).tolist())


def slopes_of(drawn: list[Recipe], power: Array) -> Array:
    """Slopes of the temperature of each log at every step by each parameter of `follow`, in the middle of a change."""
    steps = max(r.start_s.size for r in drawn) - 1
    known = np.zeros((len(drawn), BOARD + steps))
    unit = np.ones_like(known)
    for k, r in enumerate(drawn):
        t = r.truth
        R, parts = t.resistance_c_per_w, t.resistance_c_per_w > 0
        known[k, :BOARD] = [
            *np.log(t.rc_rise_s),
            np.log(t.rc_decay_s[0] / t.rc_rise_s[0]),
            *R,
            *r.start_c * R / R.sum(),
        ]
        unit[k] = [*parts, 1, *R, *parts, *(np.arange(steps) < r.start_s.size - 1)]
    change = CHANGE * unit[:, np.newaxis] * np.eye(BOARD + steps)
    above = power - np.array([[r.truth.idle_power_w] for r in drawn])
    places = np.array([np.append(r.start_s[1:], np.zeros(steps - r.start_s.size + 1)) for r in drawn])
    moved = np.concatenate([known[:, np.newaxis] + change, known[:, np.newaxis] - change], axis=1)
    more, less = np.split(follow(above, moved, np.rint(places / STEP_S).astype(np.intp)), 2, axis=1)
    return np.asarray((more - less) / (2 * CHANGE))


def follow(power: Array, known: Array, places: NDArray[np.intp]) -> Array:
    """Temperature above the level, of every log and set of parameters, at every step of the power (logs, sets, steps).

    Parameters of a set: those of the `BOARD`, then how much later each step was [s].
    """
    rise, R, theta = np.exp(known[..., :2]), known[..., 3:5], known[..., 5:7].copy()
    up, down = np.exp(-STEP_S / rise), np.exp(-STEP_S / (rise * np.exp(known[..., 2:3])))
    later = known[..., BOARD:]
    warm = np.empty((*known.shape[:2], power.shape[1]))
    for k in range(power.shape[1]):
        warm[..., k] = theta.sum(axis=-1)
        P = power[:, k, np.newaxis]
        if (places == k).any() and k:
            step = (places == k) * (power[:, k] - power[:, k - 1])[:, np.newaxis]
            P = P - (step[:, np.newaxis] * later).sum(axis=-1) / STEP_S
        target = R * P[..., np.newaxis]
        theta = target + (theta - target) * np.where(theta < target, up, down)
    return warm


def unsure_s(log: Log, at: float) -> float:
    """Standard error of where a step is, from the two readings of the power around it."""
    after = min(int(np.searchsorted(log.power_time_s, at)), log.power_time_s.size - 1)
    apart = float(log.power_time_s[after] - log.power_time_s[max(after - 1, 0)])
    between = max(apart, log.truth.power_update_s) - log.truth.window_s
    return max(between / float(np.sqrt(12)), LEAST_PLACE_S)


def information(mean: Array, noise: Array) -> Array:
    """What one reading in whole degrees tells of the mean before it was rounded [1/degC^2]."""
    low = (np.floor(mean) + DEGREES - mean) / noise
    chance = np.maximum(ndtr(low + 1 / noise) - ndtr(low), 1e-12)
    slope = (np.exp(-(low**2) / 2) - np.exp(-((low + 1 / noise) ** 2) / 2)) / np.sqrt(2 * np.pi) / noise
    return np.asarray((slope**2 / chance).sum(axis=0))
