"""The search for the offset of two logs by least squares: where a finer fit may begin, and whether there is one."""

from typing import NamedTuple

import numpy as np

from profsvc.formulas.numerics.arrays import Array, Bools
from profsvc.formulas.numerics.regression import nonnegative_least_squares
from profsvc.formulas.sensors import logs
from profsvc.formulas.thermal import step_response

TIME_CONSTANT_GRID_S = np.geomspace(0.3, 300.0, 11)  # together they follow any response
INITIAL_DECAY_RATIO = 1.2  # start value of decay over rise
START_CONSTANTS_S = ((None,), (None, 1.5), (None, 150.0), (None, 4.0, 0.4))  # start values; None: from the grid fit
START_DECAYS_S = (8.0, 40.0)  # of heat held at the begin of the log
GAP_DECAYS_S = (8.0, 35.0)  # of heat taken up in a gap
BLOCK_S = 0.5  # length of the blocks of temperature readings
MAX_SEARCH_READINGS = 400
REFINEMENT_RANGE_S = 3.0  # to either side of the best whole second
MIN_EVIDENCE = 10.0  # against any other offset: twice the log-likelihood
MAX_ROUNDS = 3
DIFFERENCE_STEP = 1e-3


class OffsetFit(NamedTuple):
    """A fit of offset, ratio and time constants, in this order the last two as logarithms."""

    phi: Array
    rss: float
    residual: Array
    amplitude: Array
    driven: Array
    jacobian: Array


class OffsetFits(NamedTuple):
    """Fits with one part and more, what is left of the temperatures without power, and how many readings count."""

    fits: list[OffsetFit]
    alone: Array
    effective: float


def fit_offsets(power: step_response.PiecewisePower, x: Array, T: Array, start: float) -> OffsetFits | None:
    """Fits with one part and more about a start, about the end of the way where it leads far from there."""
    found = None
    for _ in range(MAX_ROUNDS):
        use = is_usable(power, x, start)
        if use.sum() < 30:
            return found
        own, read = x[use], T[use]
        free = _undriven_columns(power, own - start)
        *few, many = _start_parameters(power, own, read, start)
        fits = [_refine(phi, power, own, read, free) for phi in few]
        best = min(fits, key=lambda fit: fit.rss)
        effective = effective_readings(best.residual)
        if effective * np.log(fits[0].rss / best.rss) > MIN_EVIDENCE:
            fits.append(_refine(many, power, own, read, free))
            best = min(fits, key=lambda fit: fit.rss)
        alone = read - free @ np.linalg.lstsq(free, read, rcond=None)[0]
        found = OffsetFits(fits, alone, effective)
        if abs(best.phi[0] - start) < REFINEMENT_RANGE_S / 2:
            break
        start = float(best.phi[0])
    return found


def block_means(t: Array, T: Array) -> tuple[Array, Array]:
    """Means over blocks of consecutive readings; no block reaches over a gap."""
    size = max(int(BLOCK_S / logs.median_interval(t)), 1)
    n = t.size // size * size
    blocks, values = t[:n].reshape(-1, size), T[:n].reshape(-1, size)
    near = blocks[:, -1] - blocks[:, 0] <= 2 * BLOCK_S
    return blocks[near].mean(axis=1), values[near].mean(axis=1)


def _undriven_columns(power: step_response.PiecewisePower, t: Array) -> Array:
    """Return the columns that do not depend on power: a level, heat held at the begin, heat taken up in gaps."""
    since = np.maximum(t - power.edges[0], 0.0)
    columns = [np.ones(t.size)] + [np.exp(-since / tau) for tau in START_DECAYS_S]
    for _, end in power.gaps:
        columns += [np.where(t > end, np.exp(-np.maximum(t - end, 0.0) / tau), 0.0) for tau in GAP_DECAYS_S]
    return np.column_stack(columns)


def _fit_grid(
    power: step_response.PiecewisePower, known: step_response.ThermalStates, t: Array, T: Array
) -> tuple[Array, Array, Array]:
    """Return residuals without power and with the grid of time constants, and the resistances of the grid."""
    Q = np.linalg.qr(_undriven_columns(power, t))[0]
    Y = step_response.unit_response(power, known, t)
    Y, r = Y - Q @ (Q.T @ Y), T - Q @ (Q.T @ T)
    a = nonnegative_least_squares(Y, r)
    return r, r - Y @ a, a


def best_whole_second(power: step_response.PiecewisePower, x: Array, T: Array, search: float) -> tuple[float, str]:
    """Whole second of offset at which power explains most, and what speaks against it."""
    some = slice(None, None, max(x.size // MAX_SEARCH_READINGS, 1))
    x, T = x[some], T[some]
    known = step_response.thermal_states(power, TIME_CONSTANT_GRID_S, TIME_CONSTANT_GRID_S * INITIAL_DECAY_RATIO)
    offsets = np.arange(-np.ceil(search), np.ceil(search) + 1)
    gain, each = np.full(offsets.size, -np.inf), np.zeros(offsets.size)
    for k, o in enumerate(offsets):
        inside = (x - o >= power.edges[0]) & (x - o <= power.edges[-1])
        if inside.sum() >= max(0.5 * x.size, 15):
            without, left, _ = _fit_grid(power, known, x[inside] - o, T[inside])
            each[k] = effective_readings(left) / left.size
            gain[k] = left.size * np.log((without @ without) / max(float(left @ left), 1e-12))
    if np.isinf(gain).all():
        return 0.0, "too_few"
    best = int(np.argmax(gain))
    if best in (0, offsets.size - 1):
        return float(offsets[best]), "outside_search"
    padded = np.concatenate(([-np.inf], gain, [-np.inf]))
    peak = (np.abs(offsets - offsets[best]) > REFINEMENT_RANGE_S) & (gain >= padded[:-2]) & (gain >= padded[2:])
    rival = peak.any() and each[best] * (gain[best] - gain[peak].max()) < MIN_EVIDENCE
    return float(offsets[best]), "ambiguous" if rival else ""


def effective_readings(residual: Array) -> float:
    """Return the number of independent readings of an autocorrelated residual."""
    r = residual
    correlation = float(np.clip(r[1:] @ r[:-1] / max(float(r @ r), 1e-300), 0.0, 0.95))
    return r.size * (1 - correlation) / (1 + correlation)


def is_usable(power: step_response.PiecewisePower, x: Array, start: float) -> Bools:
    """Readings within the power log for any offset near the start, and not in a gap in which the power stepped."""
    t = x - start
    use = (t - REFINEMENT_RANGE_S >= power.edges[0]) & (t + REFINEMENT_RANGE_S <= power.edges[-1])
    for begin, end in power.gaps:
        use &= (t < begin - REFINEMENT_RANGE_S) | (t > end + REFINEMENT_RANGE_S)
    return np.asarray(use)


def _start_parameters(power: step_response.PiecewisePower, x: Array, T: Array, start: float) -> list[Array]:
    """Return the start of the refinement for each number of parts."""
    known = step_response.thermal_states(power, TIME_CONSTANT_GRID_S, TIME_CONSTANT_GRID_S * INITIAL_DECAY_RATIO)
    a = _fit_grid(power, known, x - start, T)[2] * (TIME_CONSTANT_GRID_S > 5.0)
    main = float(np.exp(a @ np.log(TIME_CONSTANT_GRID_S) / a.sum())) if a.sum() > 0 else 30.0
    parts = [
        [main if tau is None else max(tau, 4 * main) if tau > 100 else tau for tau in taus]
        for taus in START_CONSTANTS_S
    ]
    return [np.concatenate(([start, np.log(INITIAL_DECAY_RATIO)], np.log(taus))) for taus in parts]


def _model(phi: Array, power: step_response.PiecewisePower, x: Array, T: Array, free: Array) -> OffsetFit:
    """Best linear part for these parameters, and the derivatives of what it leaves."""
    o, ratio, tau = phi[0], np.exp(phi[1]), np.exp(phi[2:])
    K = tau.size
    more = np.exp(DIFFERENCE_STEP)
    rise = np.concatenate((tau, tau * more, tau))
    known = step_response.thermal_states(power, rise, np.concatenate((tau, tau * more, tau * more)) * ratio)
    own = step_response.ThermalStates(known.begin[:, :K], known.tau[:, :K])
    Y = step_response.unit_response(power, known, x - o)
    A = np.column_stack((free, Y[:, :K]))
    Q = np.linalg.qr(A)[0]
    linear = np.linalg.lstsq(A, T, rcond=None)[0]
    residual, a = T - A @ linear, linear[-K:]
    width = 0.02
    early, late = (step_response.unit_response(power, own, x - o + shift) for shift in (-width, width))
    by = [(early - late) @ a / (2 * width), (Y[:, 2 * K :] - Y[:, :K]) @ a / DIFFERENCE_STEP]
    by += [(Y[:, K + k] - Y[:, k]) * a[k] / DIFFERENCE_STEP for k in range(K)]
    D = np.column_stack(by)
    driven = np.asarray(Y[:, :K] @ a)
    return OffsetFit(phi, float(residual @ residual), np.asarray(residual), np.asarray(a), driven, D - Q @ (Q.T @ D))


def _refine(phi: Array, power: step_response.PiecewisePower, x: Array, T: Array, free: Array) -> OffsetFit:
    """Gauss-Newton with shorter steps where the whole one does not help."""
    K = phi.size - 2
    low = np.concatenate(([phi[0] - REFINEMENT_RANGE_S, np.log(0.7)], np.full(K, np.log(0.05))))
    high = np.concatenate(([phi[0] + REFINEMENT_RANGE_S, np.log(2.5)], np.full(K, np.log(2000.0))))
    longest = np.concatenate(([1.0, 0.3], np.full(K, 0.7)))
    fit = _model(phi, power, x, T, free)
    for _ in range(20):
        size = np.maximum(np.linalg.norm(fit.jacobian, axis=0), 1e-12)
        step = np.linalg.lstsq(fit.jacobian / size, fit.residual, rcond=1e-8)[0] / size
        step = np.clip(step, -longest, longest)
        for shorter in (1.0, 0.4, 0.1, 0.02):
            trial = _model(np.clip(fit.phi + shorter * step, low, high), power, x, T, free)
            if trial.rss < fit.rss:
                break
        else:
            break
        gained, fit = fit.rss - trial.rss, trial
        if gained < 1e-6 * fit.rss:
            break
    return fit
