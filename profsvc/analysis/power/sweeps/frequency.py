"""A sweep of clocks: the laws of time and power through it, and the clock of least energy with its interval."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from profsvc.formulas.numerics.arrays import Array
from profsvc.formulas.numerics.distributions import NORMAL_975, student_quantile
from profsvc.formulas.power.energy import CUBE, frequency_optimum

MIN_CLOCKS = 4
"""Two laws of two coefficients each, and two degrees of freedom for their errors."""
DRAWS, SEED = 2_000, 0
NEWTON_STEPS = 60


class Laws(NamedTuple):
    """Time ``fixed_s + clocked_s / f`` and power ``idle_w + dynamic_w * f**k`` at f = clock / highest clock."""

    fixed_s: Array
    clocked_s: Array
    idle_w: Array
    dynamic_w: Array

    def energy_j(self, clock: Array, exponent: float) -> Array:
        """Return the energy at clocks relative to the highest."""
        power = self.idle_w + self.dynamic_w * clock**exponent
        return np.asarray(power * (self.fixed_s + self.clocked_s / clock))


class FrequencySweep(NamedTuple):
    """The laws of a sweep, the best clock [Hz] with its 95 % interval, and errors of the energy, each point left out.

    ``constant_error`` is that of guessing the mean energy of the other points. ``reason`` says why there is no best
    clock; ``low_hz`` and ``high_hz`` do not leave the clocks that were measured.
    """

    laws: Laws
    best_hz: float
    low_hz: float
    high_hz: float
    energy_j: float
    left_out_error: float
    left_out_worst: float
    constant_error: float
    reason: str | None


def fit_sweep(clock_hz: ArrayLike, time_s: ArrayLike, power_w: ArrayLike, exponent: float = CUBE) -> FrequencySweep:
    """Fit the laws to a sweep of the same work, and find the clock of least energy.

    Residuals are drawn again to get the interval, widened for the few degrees of freedom.
    """
    F, T, P = (np.asarray(x, dtype=np.float64) for x in (clock_hz, time_s, power_w))
    least, most = float(F.min()), float(F.max())
    clocks = np.unique(F).size
    f = F / most
    laws = _laws(f, T, P, exponent)
    unknown = FrequencySweep(laws, *(np.nan,) * 7, reason=None)
    if clocks < MIN_CLOCKS:
        return unknown._replace(reason=f"{clocks} clocks were measured; the laws of time and power need {MIN_CLOCKS}")
    errors, constant = _left_out(f, T, P, exponent)
    best = float(best_clock(laws, exponent)) * most
    drawn = np.clip(best_clock(_drawn(laws, f, T, P, exponent), exponent) * most, least, most)
    low, high = (float(x) for x in np.quantile(drawn, (0.025, 0.975)))
    found = unknown._replace(
        low_hz=low, high_hz=high, left_out_error=float(np.mean(errors)), left_out_worst=float(np.max(errors)),
        constant_error=float(np.mean(constant)),
    )  # fmt: skip
    if found.left_out_error >= found.constant_error:
        return found._replace(
            reason=f"the laws miss a point left out by {100 * found.left_out_error:.1f} % of its energy, no less than "
            f"the mean of the other points does ({100 * found.constant_error:.1f} %)"
        )
    if not least < best < most:
        side, end = ("below", least) if best <= least else ("above", most)
        edge = "lowest" if best <= least else "highest"
        return found._replace(
            reason=f"the energy is least {side} {end / 1e6:g} MHz, the {edge} clock measured; measure {side} it"
        )
    return found._replace(best_hz=best, energy_j=float(laws.energy_j(np.asarray(best / most), exponent)))


def best_clock(laws: Laws, exponent: float) -> Array:
    """Return the clock of least energy relative to the highest measured; inf where the energy falls for ever.

    Where all the time follows the clock this is `frequency_optimum`. A part that does not makes the best clock lower:
    the derivative of the energy is one rising function, whose zero Newton's method approaches from above.
    """
    fixed, clocked, idle, dynamic = np.broadcast_arrays(*(np.atleast_1d(x) for x in laws))
    f = np.asarray(frequency_optimum(1.0, dynamic, idle, exponent).value)
    k = exponent
    with np.errstate(all="ignore"):
        for _ in range(NEWTON_STEPS):
            slope = dynamic * fixed * k * f ** (k + 1) + dynamic * clocked * (k - 1) * f**k - idle * clocked
            rise = dynamic * fixed * k * (k + 1) * f**k + dynamic * clocked * (k - 1) * k * f ** (k - 1)
            f = np.where((rise > 0) & np.isfinite(f), np.maximum(f - slope / rise, 0.0), f)
    f = np.where(clocked == 0, 0.0, f)
    return np.asarray(np.where((dynamic == 0) & (clocked > 0), np.inf, f)).reshape(np.shape(laws.idle_w))


def _laws(f: Array, T: Array, P: Array, exponent: float) -> Laws:
    """Return the laws with the least squares of relative errors; points of one sweep, or one per row of T and P."""
    one = np.ones_like(f)
    return Laws(*_pair(one, 1 / f, T), *_pair(one, f**exponent, P))


def _pair(a: Array, b: Array, y: Array) -> tuple[Array, Array]:
    """Return the coefficients, none below 0, of y on two columns, with relative residuals; y may have rows."""
    u, v = a / y, b / y
    uu, vv, uv = (np.sum(x, axis=-1) for x in (u * u, v * v, u * v))
    su, sv = np.sum(u, axis=-1), np.sum(v, axis=-1)
    with np.errstate(all="ignore"):
        determinant = uu * vv - uv * uv
        p, q = (vv * su - uv * sv) / determinant, (uu * sv - uv * su) / determinant
        p, q = np.where(q < 0, su / uu, p), np.where(q < 0, 0.0, q)
        p, q = np.where(p < 0, 0.0, p), np.where(p < 0, sv / vv, q)
    return np.asarray(p), np.asarray(q)


def _modelled(laws: Laws, f: Array, exponent: float) -> tuple[Array, Array]:
    return np.asarray(laws.fixed_s + laws.clocked_s / f), np.asarray(laws.idle_w + laws.dynamic_w * f**exponent)


def _drawn(laws: Laws, f: Array, T: Array, P: Array, exponent: float) -> Laws:
    """Return laws refitted to the modelled points with residuals drawn from those of the fit."""
    n = f.size
    wider = np.sqrt(n / (n - 2)) * student_quantile(0.975, n - 2) / NORMAL_975
    time, power = _modelled(laws, f, exponent)
    chosen = np.random.Generator(np.random.Philox(SEED)).integers(0, n, size=(DRAWS, n))
    times, powers = (modelled * np.exp(wider * np.log(y / modelled)[chosen]) for modelled, y in ((time, T), (power, P)))
    return _laws(f, times, powers, exponent)


def _left_out(f: Array, T: Array, P: Array, exponent: float) -> tuple[Array, Array]:
    """Return the relative errors of the energy of each point by the laws and by the mean of the other points."""
    energy = T * P
    errors, constant = np.empty_like(f), np.empty_like(f)
    for point in range(f.size):
        others = np.arange(f.size) != point
        time, power = _modelled(_laws(f[others], T[others], P[others], exponent), f[point], exponent)
        errors[point] = abs(time * power / energy[point] - 1)
        constant[point] = abs(energy[others].mean() / energy[point] - 1)
    return errors, constant
