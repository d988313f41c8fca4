r"""Likelihood of rounded readings: a value shows between which two steps the temperature was.

.. math:: p_i = (1 - \epsilon)\left[\Phi\!\left(\frac{T_i + q/2 - \mu_i}{s}\right)
          - \Phi\!\left(\frac{T_i - q/2 - \mu_i}{s}\right)\right] + \epsilon\,\frac{q}{\mathrm{range}}

with q the step of the sensor and s its noise before it rounds. Where s is below q the moments at which the reading
flips tell more than its value does, which least squares do not see. Readings that are simply wrong are the share ε.
"""

from typing import NamedTuple

import numpy as np

from profsvc.formulas.numerics.arrays import Array
from profsvc.formulas.thermal.noise import constant_load_segments

OUTLIER_SHARE = 1e-3  # share of readings that say nothing
UNROUNDED_STEP_SHARE = 1e-3  # of the range: the step of a sensor that shows none
MIN_NOISE_STEPS = 0.05  # of the step
MIN_PROBABILITY = 1e-300
WIDE_NOISE_STEPS = 3.0  # steps; noise beyond it does not know of them
NOISE_GRID = np.array([0.55, 0.75, 0.88, 1.0, 1.14, 1.35, 1.8])  # of the noise so far
PHASE_GRID = np.linspace(0.0, 1.0, 97)
STEP_GRID = np.arange(-12.0, 13.0)[:, np.newaxis]


class Rounded(NamedTuple):
    """Readings, the step they are rounded to, and the probability of one that is simply wrong."""

    value: Array
    step: float
    wrong: float


def rounded_readings(value: Array) -> Rounded:
    """Readings with their step."""
    spread = max(float(np.ptp(value)), 1e-9)
    step = constant_load_segments.rounding_step(value) or UNROUNDED_STEP_SHARE * spread
    return Rounded(value, step, OUTLIER_SHARE * min(step / spread, 1.0))


def likelihood(read: Rounded, mean: Array, noise: float) -> tuple[Array, Array]:
    """Logarithm of the probability of each reading, and its slope by the mean."""
    low, high, p = _probability(read, mean, noise)
    return np.log(p), (1 - OUTLIER_SHARE) * (_density(low) - _density(high)) / noise / p


def _probability(read: Rounded, mean: Array, noise: float) -> tuple[Array, Array, Array]:
    """Ends of the step of each reading, from the mean in units of the noise, and the probability of the reading."""
    from scipy.special import ndtr

    low, high = ((read.value - mean + side * read.step / 2) / noise for side in (-1, 1))
    above = low > 0  # of two numbers near 1 the difference would be lost
    inside = ndtr(np.where(above, -low, high)) - ndtr(np.where(above, -high, low))
    return low, high, np.maximum((1 - OUTLIER_SHARE) * inside + read.wrong, MIN_PROBABILITY)


def information(read: Rounded, mean: Array, noise: float) -> Array:
    """Return the expected information of a reading on the mean: the variance of the slope."""
    s = noise / read.step
    if s > WIDE_NOISE_STEPS:
        return np.full(mean.size, 1 / (noise**2 + read.step**2 / 12))
    from scipy.special import ndtr

    low, high = ((STEP_GRID + side / 2 - PHASE_GRID) / s for side in (-1, 1))
    expected = ((_density(low) - _density(high)) ** 2 / np.maximum(ndtr(high) - ndtr(low), 1e-12)).sum(
        axis=0
    ) / noise**2
    return np.asarray(np.interp(np.mod((mean - read.value) / read.step, 1.0), PHASE_GRID, expected))


def likeliest_noise(read: Rounded, mean: Array, noise: float) -> tuple[float, float]:
    """The likeliest noise near the one so far, and minus the logarithm of the likelihood."""
    tried = np.maximum(noise * NOISE_GRID, MIN_NOISE_STEPS * read.step)
    left = [-float(np.log(_probability(read, mean, s)[2]).sum()) for s in tried.tolist()]
    return float(tried[int(np.argmin(left))]), min(left)


def _density(z: Array) -> Array:
    return np.asarray(np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi))
