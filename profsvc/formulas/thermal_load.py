r"""Thermal constants of a board from a whole log of any load: the power drives the model, the temperature judges it.

.. math:: T(t) = T_0 + \sum_i R_i\,\theta_i(t), \qquad \dot\theta_i = \frac{P - \theta_i}{RC_i}

with one constant or two (a chip and what it sits on), each of them other while it warms than while it cools, in one
proportion. As the measured power drives it, leakage is part of the drive and not of the constants. A boxcar in the
power, or a lag of the temperature, shifts the two against each other and is taken out by the offset of the logs.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from profsvc.formulas import _segments, _wander
from profsvc.formulas._arrays import Array, Bools, Mask, mask, rows
from profsvc.formulas._segments import Blocks
from profsvc.formulas.flags import Flag
from profsvc.formulas.thermal_fits import LEAST_CHANGE_C, USEFUL

STEPS = 1000  # of the model over the log
CONSTANTS_S = np.geomspace(1.0, 400.0, 14)  # where the search begins
PROPORTIONS = np.array([0.7, 1.0, 1.3, 1.7, 2.2])
LEAST_STEP = 0.1  # of the mean power; a load that varies less does not drive the temperature
WORTH = 10.0  # by how much AIC must prefer a second constant
APART = 2.0  # two constants that lie closer are one
GAP_S = 3.0  # a power that is not known for longer is not drawn through
ROUNDS = 12


class LoadFit(NamedTuple):
    """Time constants with the ends of their intervals of 95 %; the second is NaN where one is enough.

    `resistance_c_per_w` belongs to the first, which is the one of the larger resistance. `zero_c` is the temperature
    without any power. `refusal` is empty where the fit may be used.
    """

    rc_rise_s: float
    rc_rise_low_s: float
    rc_rise_high_s: float
    rc_decay_s: float
    rc_decay_low_s: float
    rc_decay_high_s: float
    resistance_c_per_w: float
    second_rise_s: float
    second_decay_s: float
    second_resistance_c_per_w: float
    zero_c: float
    residual_c: float
    readings: int
    refusal: str
    flags: Mask


class _Drive(NamedTuple):
    """Mean power over steps of equal length, and the blocks of the temperature with the weight of steps in each."""

    step: float
    power: Array
    blocks: Blocks
    share: Array  # (blocks, steps + 1)
    resumed: Array  # when the log of the power resumed at another level than it stopped at


def fit_load(
    power_time_s: ArrayLike, power_w: ArrayLike, temperature_time_s: ArrayLike, temperature_c: ArrayLike
) -> LoadFit:
    r"""Time constants and thermal resistance of a board from a log of any load.

    Source: the differential equation behind [Hong2012] Eq 49 and 50; the search and the interval are this project's.

    Args:
        power_time_s: Stamps of the power, flat, ascending [s].
        power_w: Power [W].
        temperature_time_s: Stamps of the temperature on the same clock, the offset removed, flat [s].
        temperature_c: Temperature [degC].

    Returns: LoadFit.

    Range: refused, with the figure, for fewer than 20 readings of either, a temperature that changes by less than
        3 degC, a power that varies by less than a tenth, and an interval whose ends differ by more than a factor of 3.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    >>> from profsvc.formulas.thermal import temperature_scan
    >>> t = np.arange(0.0, 600.0, 0.5)
    >>> P = np.where((t // 100) % 2 == 1, 300.0, 60.0)
    >>> T = temperature_scan(30 + 0.08 * P, 0.5, 34.8, 20.0, 30.0)
    >>> found = fit_load(t, P, t + 0.5, np.floor(T))
    >>> bool(abs(found.rc_rise_s - 20) < 1), bool(abs(found.rc_decay_s - 30) < 1.5), found.refusal
    (True, True, '')
    """
    tp, P = _finite(*rows(power_time_s=power_time_s, power_w=power_w))
    tT, T = _finite(*rows(temperature_time_s=temperature_time_s, temperature_c=temperature_c))
    inside = (tT >= tp.min(initial=np.inf)) & (tT <= tp.max(initial=-np.inf))
    tT, T = tT[inside], T[inside]
    refusal = _useless(tp, P, T)
    if refusal:
        return _nothing(T.size, refusal)
    drive = _drive(tp, P, tT, T)
    noise = _wander.models(drive.blocks.time, drive.blocks.size, drive.blocks.span)
    one, two = (_refined(drive, start) for start in _starts(drive))
    found = [_judged(drive, noise, p) for p in (one, two)]
    better = 2 * (found[1].likelihood.max() - found[0].likelihood.max()) - 4 > WORTH
    told = _told(drive, two, found[1], T.size) if better and abs(two[2] - two[1]) > np.log(APART) else None
    if told and not told.refusal and min(told.resistance_c_per_w, told.second_resistance_c_per_w) > 0:
        return told
    return _told(drive, one, found[0], T.size)


def _finite(t: Array, x: Array) -> tuple[Array, Array]:
    good = np.isfinite(t) & np.isfinite(x)
    return t[good], x[good]


def _nothing(readings: int, refusal: str) -> LoadFit:
    nan = float("nan")
    flags = mask((Flag.INPUT_SUSPECT, True))
    return LoadFit(nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, readings, refusal, flags)


def _useless(tp: Array, P: Array, T: Array) -> str:
    """Why there is nothing to fit, if there is nothing."""
    for name, x in (("power", P), ("temperature", T)):
        if x.size < _segments.ENOUGH:
            return f"there are {x.size} readings of the {name}; a time constant needs {_segments.ENOUGH}"
    if not (np.diff(tp) >= 0).all() or not np.ptp(tp) > 0:
        return "the stamps of the power do not ascend"
    low, high = np.quantile(T, (0.02, 0.98))
    if high - low < LEAST_CHANGE_C:
        return f"the temperature changes by {high - low:.1f} degC; a time constant needs {LEAST_CHANGE_C:g} degC"
    low, high = np.quantile(P, (0.02, 0.98))
    if high - low < LEAST_STEP * abs(P.mean()):
        return f"the power varies by {high - low:.1f} W, less than a tenth of it: nothing drives the temperature"
    return ""


def _drive(tp: Array, P: Array, tT: Array, T: Array) -> _Drive:
    blind, resumed = _blind(tp, P, tT)
    tT, T = tT[~blind], T[~blind]
    step = float(np.ptp(tp)) / STEPS
    edges = tp[0] + step * np.arange(STEPS + 1)
    energy = np.concatenate([[0.0], np.cumsum(np.diff(tp) * (P[1:] + P[:-1]) / 2)])
    b = _segments.blocks(_segments.readings_of(tT - tp[0], T))
    at = np.clip((tT - tp[0]) / step, 0, STEPS)
    before = np.minimum(at.astype(np.intp), STEPS - 1)
    share = np.zeros((b.time.size, STEPS + 1))
    np.add.at(share, (b.of_reading, before), 1 - (at - before))
    np.add.at(share, (b.of_reading, before + 1), at - before)
    return _Drive(step, np.diff(np.interp(edges, tp, energy)) / step, b, share / b.size[:, np.newaxis], resumed - tp[0])


def _blind(tp: Array, P: Array, tT: Array) -> tuple[Bools, Array]:
    """Temperatures read while the power was lost and changed, and when it was back: what heat came is not known."""
    lost = np.flatnonzero(np.diff(tp) > GAP_S)
    before, after = (np.array([np.median(P[max(k + a, 0) : k + b]) for k in lost]) for a, b in ((-4, 1), (1, 6)))
    lost = lost[np.abs(after - before) > LEAST_STEP * np.maximum(np.abs(after), np.abs(before))] if lost.size else lost
    blind = np.zeros(tT.size, dtype=np.bool_)
    for k in lost:
        blind |= (tT > tp[k]) & (tT < tp[k + 1])
    return blind, tp[lost + 1]


def _driven(d: _Drive, rise: Array, decay: Array) -> Array:
    """The driven part of each pair of constants, in the blocks of the temperature."""
    theta = np.full(rise.size, d.power[0])
    out = np.empty((STEPS + 1, rise.size))
    out[0] = theta
    up, down = np.exp(-d.step / rise), np.exp(-d.step / decay)
    for k, P in enumerate(d.power):
        theta = P + (theta - P) * np.where(theta < P, up, down)
        out[k + 1] = theta
    return np.asarray(d.share @ out)


def _columns(d: _Drive, p: Array) -> Array:
    """Design of logarithms of a proportion and constants, on the last axis: driven parts, start, constant."""
    flat = p.reshape(-1, p.shape[-1])
    rise = np.exp(flat[:, 1:])
    decay = rise * np.exp(flat[:, :1])
    driven = _driven(d, rise.ravel(), decay.ravel()).reshape(-1, *rise.shape)
    parts = [np.moveaxis(driven, 0, -1)]
    for since in [0.0, *d.resumed]:  # an exponential for the unknown state at each beginning
        age = np.maximum(d.blocks.time - since, 0.0)
        which = rise[:, :1] if since == 0 else rise
        parts.append(np.where(d.blocks.time >= since, np.exp(-age / which[..., np.newaxis]), 0.0))
    design = np.concatenate([*parts, np.ones((len(rise), 1, d.blocks.time.size))], axis=1).swapaxes(1, 2)
    return np.asarray(design.reshape(*p.shape[:-1], *design.shape[1:]))


def _left(d: _Drive, design: Array) -> Array:
    """What is left of the temperature after the best linear combination of the columns, weighted by readings."""
    W = np.sqrt(d.blocks.size)
    q, _ = np.linalg.qr(design * W[:, np.newaxis])
    y = d.blocks.temperature * W
    return np.asarray(y - (q @ (q.swapaxes(-1, -2) @ y)[..., np.newaxis])[..., 0])


def _starts(d: _Drive) -> list[Array]:
    """The best of a grid with one constant, and with two."""
    log_rc, log_ratio = np.log(CONSTANTS_S), np.log(PROPORTIONS)
    ratio, rc = (x.ravel() for x in np.meshgrid(log_ratio, log_rc, indexing="ij"))
    singles = np.column_stack([ratio, rc])
    design = _columns(d, singles)
    best = [singles[np.argmin((_left(d, design) ** 2).sum(axis=-1))]]
    i, j = (x.ravel() for x in np.meshgrid(range(log_rc.size), range(log_rc.size), indexing="ij"))
    i, j = i[i < j], j[i < j]
    base = log_rc.size * np.arange(log_ratio.size)[:, np.newaxis]
    i, j = (base + i).ravel(), (base + j).ravel()
    pairs = np.concatenate([design[i][:, :, :1], design[j]], axis=2)
    k = int(np.argmin((_left(d, pairs) ** 2).sum(axis=-1)))
    return [*best, np.array([ratio[i[k]], rc[i[k]], rc[j[k]]])]


def _slopes(d: _Drive, p: Array, size: float = 1e-3) -> tuple[Array, Array]:
    """Rest at p, and its slope by every parameter."""
    left = _left(d, _columns(d, np.vstack([p, p + size * np.eye(p.size)])))
    return left[0], np.asarray((left[1:] - left[0]).T / size)


def _refined(d: _Drive, p: Array) -> Array:
    """Least squares by Levenberg and Marquardt."""
    damping = 1e-2
    rest, J = _slopes(d, p)
    for _ in range(ROUNDS):
        normal = J.T @ J
        step = np.linalg.solve(normal + damping * np.diag(np.diagonal(normal) + 1e-12), -J.T @ rest)
        tried = np.clip(p + np.clip(step, -0.5, 0.5), -6.0, np.log(2000.0))
        new, slopes = _slopes(d, tried)
        if new @ new < rest @ rest:
            gained = 1 - (new @ new) / (rest @ rest)
            p, rest, J, damping = tried, new, slopes, damping / 5
            if gained < 1e-6:
                break
        else:
            damping *= 10
    return p


def _judged(d: _Drive, noise: _wander.Models, p: Array) -> _wander.Wander:
    """The linear part and the logarithms of the constants, around p, under noise that remembers."""
    design = _columns(d, p)
    linear = np.linalg.lstsq(design, d.blocks.temperature, rcond=None)[0]
    moved = (_columns(d, p + 1e-3 * np.eye(p.size)) @ linear - design @ linear).T / 1e-3
    columns = np.column_stack([moved, design])
    return _wander.fit(noise, d.blocks.temperature - design @ linear, columns)


def _told(d: _Drive, p: Array, found: _wander.Wander, readings: int) -> LoadFit:
    design = _columns(d, p)
    linear = np.linalg.lstsq(design, d.blocks.temperature, rcond=None)[0]
    rest = d.blocks.temperature - design @ linear
    m = p.size - 1
    first = int(np.argmax(np.abs(linear[:m])))
    rc, ratio = np.exp(p[1:]), float(np.exp(p[0]))
    rise = _wander.interval(found, 1 + first)[1:]
    both = np.zeros(found.estimate.shape[1])
    both[[0, 1 + first]] = 1.0
    decay = _wander.interval(_wander.along(found, both), 0)[1:]
    low, high = (float(rc[first] * np.exp(x)) for x in rise)
    other = 1 - first if m == 2 else None
    flags, refusal = mask(), ""
    if not high < USEFUL * low:
        refusal, flags = f"the time constant lies between {low:.3g} and {high:.3g} s", mask((Flag.INPUT_SUSPECT, True))
    cool, cool_low, cool_high = (float(rc[first] * ratio * np.exp(x)) for x in (0.0, *decay))
    nan = float("nan")
    second, R2 = (nan, nan) if other is None else (float(rc[other]), float(linear[other]))
    residual = float(np.sqrt((rest**2).mean()))
    return LoadFit(
        float(rc[first]), low, high, cool, cool_low, cool_high, float(linear[first]), second, second * ratio, R2,
        float(linear[-1]), residual, readings, refusal, flags,
    )  # fmt: skip
