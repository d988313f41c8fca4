"""A sweep of work splits between CPU and GPU: both devices' time and power from it, and the best share of the GPU."""

import itertools
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from profsvc.formulas.numerics.arrays import Array
from profsvc.formulas.numerics.distributions import NORMAL_975, student_quantile
from profsvc.formulas.numerics.flags import CONSISTENT
from profsvc.formulas.numerics.regression import nonnegative_least_squares
from profsvc.formulas.power.energy_split import BestSplit, best_split

MIN_SHARES = 5
"""Two times and three powers."""
DRAWS, SEED = 400, 0


class Devices(NamedTuple):
    """Seconds of all the work on each device alone, and the power that each adds to that of the idle box."""

    cpu_s: float
    gpu_s: float
    cpu_w: float
    gpu_w: float
    idle_w: float

    def best(self, objective: str, form: str = CONSISTENT, transfer_s: float = 0.0, busy: float = 0.0) -> BestSplit:
        """Return the best split of the work; ``busy`` is the share of its power that a finished device still draws."""
        rates = (1 / self.cpu_s, 1 / self.gpu_s)
        powers = (self.cpu_w, self.gpu_w, self.idle_w)
        return best_split(1.0, *rates, *powers, transfer_s, busy, objective, form)


class SplitSweep(NamedTuple):
    """Devices as fitted, the best share with its 95 % interval, and the share that was best among those measured.

    ``left_out_error`` is the mean relative error of the energy of a point left out, ``constant_error`` that of the
    mean of the others. ``reason`` says why there is no best share.
    """

    devices: Devices
    share: float
    low: float
    high: float
    measured_share: float
    left_out_error: float
    constant_error: float
    reason: str | None


def share_interval(
    devices: Devices,
    errors: Devices,
    objective: str,
    form: str = CONSISTENT,
    transfer_s: float = 0.0,
    busy: float = 0.0,
) -> tuple[float, float]:
    """Return the least and the largest best share while each input may be off by its relative error.

    Differences of the energy of the three candidates are linear in each input, so their signs change at corners.
    """
    corners = itertools.product(*([x * (1 - e), x * (1 + e)] for x, e in zip(devices, errors, strict=True)))
    shares = [float(Devices(*corner).best(objective, form, transfer_s, busy).share) for corner in corners]
    return float(np.nanmin(shares)), float(np.nanmax(shares))


def fit_splits(share: ArrayLike, time_s: ArrayLike, power_w: ArrayLike, objective: str = "energy") -> SplitSweep:
    """Fit both devices to measured splits of the same work, and find the best share of the GPU.

    Residuals are drawn again to get the interval, widened for the few degrees of freedom.
    """
    x, T, P = (np.asarray(values, dtype=np.float64) for values in (share, time_s, power_w))
    a, b = {"time": (0, 1), "energy": (1, 0), "edp": (1, 1), "ed2p": (1, 2)}[objective]
    measured = float(x[np.argmin((T * P) ** a * T**b)])
    unknown = SplitSweep(Devices(*(np.nan,) * 5), np.nan, np.nan, np.nan, measured, np.nan, np.nan, None)
    shares = np.unique(x).size
    if shares < MIN_SHARES:
        return unknown._replace(reason=f"{shares} shares were measured; two times and three powers need {MIN_SHARES}")
    devices = _fit(x, T, P)
    if not (devices.cpu_s and devices.gpu_s):
        longer = "GPU" if devices.gpu_s else "CPU"
        return unknown._replace(
            reason=f"at every share measured the {longer} ends last, so what the other device can do is not known; "
            f"measure shares of the GPU {'above' if longer == 'CPU' else 'below'} "
            f"{100 * (x.max() if longer == 'CPU' else x.min()):g} %",
        )
    left_out, constant = _left_out(x, T, P)
    drawn = [float(each.best(objective).share) for each in _drawn(devices, x, T, P)]
    low, high = (float(q) for q in np.nanquantile(drawn, (0.025, 0.975)))
    found = unknown._replace(devices=devices, low=low, high=high, left_out_error=left_out, constant_error=constant)
    best = float(devices.best(objective).share)
    if not x.min() <= best <= x.max():
        side = "below" if best < x.min() else "above"
        end = x.min() if best < x.min() else x.max()
        return found._replace(
            reason=f"the best share of the GPU by the fit is {100 * best:.0f} %, {side} the {100 * end:g} % that were "
            f"measured; measure {side} it"
        )
    return found._replace(share=best)


def modelled(devices: Devices, share: ArrayLike) -> tuple[Array, Array]:
    """Return time [s] and energy [J] at shares of the GPU."""
    x = np.asarray(share, dtype=np.float64)
    cpu, gpu = (1 - x) * devices.cpu_s, x * devices.gpu_s
    time = np.maximum(cpu, gpu)
    return time, np.asarray(devices.cpu_w * cpu + devices.gpu_w * gpu + devices.idle_w * time)


def _fit(x: Array, T: Array, P: Array) -> Devices:
    """Return the devices of least squares of relative errors, of the time first and then of the energy."""
    order = np.argsort(x)
    a, b, y = (1 - x[order]), x[order], T[order]
    best = (np.inf, np.nan, np.nan)
    # The CPU ends last up to some share, and the GPU from there on: every place for the change is tried. A line needs
    # two points, unless one is of the device alone; 0 s where no point is of the device.
    cpu_points, gpu_points = (1 if b[0] == 0 else 2), (1 if a[-1] == 0 else 2)
    for n in (0, *range(cpu_points, x.size - gpu_points + 1), x.size):
        cpu, gpu = _slope(a[:n], y[:n]), _slope(b[n:], y[n:])
        error = float(np.sum((np.maximum(a * cpu, b * gpu) / y - 1) ** 2))
        best = min(best, (error, cpu, gpu))
    _, cpu_s, gpu_s = best
    parts = np.stack(((1 - x) * cpu_s, x * gpu_s, np.maximum((1 - x) * cpu_s, x * gpu_s)), axis=1)
    energy = T * P
    powers = nonnegative_least_squares(parts / energy[:, np.newaxis], np.ones_like(energy))
    return Devices(cpu_s, gpu_s, *(float(w) for w in powers))


def _slope(x: Array, y: Array) -> float:
    """Return the slope of a line through 0 with least squares of relative errors; 0 without points."""
    u = x / y
    return float(u.sum() / (u @ u)) if u.any() else 0.0


def _drawn(devices: Devices, x: Array, T: Array, P: Array) -> list[Devices]:
    n = x.size
    wider = np.sqrt(n / (n - 2)) * student_quantile(0.975, n - 2) / NORMAL_975
    time, energy = modelled(devices, x)
    noise_t, noise_e = wider * np.log(T / time), wider * np.log(T * P / energy)
    chosen = np.random.Generator(np.random.Philox(SEED)).integers(0, n, size=(DRAWS, n))
    found = []
    for row in chosen:
        t, e = time * np.exp(noise_t[row]), energy * np.exp(noise_e[row])
        refitted = _fit(x, t, e / t)
        if refitted.cpu_s and refitted.gpu_s:
            found.append(refitted)
    return found


def _left_out(x: Array, T: Array, P: Array) -> tuple[float, float]:
    energy = T * P
    errors, constant = [], []
    for point in range(x.size):
        others = np.arange(x.size) != point
        error = modelled(_fit(x[others], T[others], P[others]), x[point])[1] / energy[point] - 1
        errors.append(abs(float(error)))
        constant.append(abs(float(energy[others].mean() / energy[point] - 1)))
    return float(np.mean(errors)), float(np.mean(constant))
