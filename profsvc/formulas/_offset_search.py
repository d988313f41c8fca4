"""The search for the offset of two logs by least squares: where a finer fit may begin, and whether there is one."""

from typing import NamedTuple

import numpy as np

from profsvc.formulas import _heating, _logs
from profsvc.formulas._arrays import Array, Bools

LADDER_S = np.geomspace(0.3, 300.0, 11)  # time constants that together follow any response
RATIO = 1.2  # of decay to rise, to begin with
PARTS_S = ((None,), (None, 1.5), (None, 150.0), (None, 4.0, 0.4))  # beginnings; None is what the ladder tells
INITIAL_S = (8.0, 40.0)  # decays of what the board still held when the log began
GAP_S = (8.0, 35.0)  # and of what it took up in a gap
BLOCK_S = 0.5  # readings of temperature that stand as their mean
SCREENED = 400
REACH_S = 3.0  # of the refinement about the best of the search
LEAST_EVIDENCE = 10.0  # of the offset against any other: twice the logarithm of the likelihood
ROUNDS = 3
STEP = 1e-3


class Fit(NamedTuple):
    """A fit of offset, ratio and time constants, in this order the last two as logarithms."""

    phi: Array
    rss: float
    residual: Array
    amplitude: Array
    driven: Array
    jacobian: Array


class Found(NamedTuple):
    """Fits with one part and more, what is left of the temperatures without power, and how many readings count."""

    fits: list[Fit]
    alone: Array
    effective: float


def fitted(power: _heating.Load, x: Array, T: Array, start: float) -> Found | None:
    """Fits with one part and more about a start, about the end of the way where it leads far from there."""
    found = None
    for _ in range(ROUNDS):
        use = usable(power, x, start)
        if use.sum() < 30:
            return found
        own, read = x[use], T[use]
        free = _free(power, own - start)
        *few, many = _beginnings(power, own, read, start)
        fits = [_refine(phi, power, own, read, free) for phi in few]
        best = min(fits, key=lambda fit: fit.rss)
        effective = independent(best.residual)
        if effective * np.log(fits[0].rss / best.rss) > LEAST_EVIDENCE:
            fits.append(_refine(many, power, own, read, free))
            best = min(fits, key=lambda fit: fit.rss)
        alone = read - free @ np.linalg.lstsq(free, read, rcond=None)[0]
        found = Found(fits, alone, effective)
        if abs(best.phi[0] - start) < REACH_S / 2:
            break
        start = float(best.phi[0])
    return found


def means(t: Array, T: Array) -> tuple[Array, Array]:
    """Means over blocks of neighbours; no block reaches over a gap."""
    size = max(int(BLOCK_S / _logs.usual_interval(t)), 1)
    n = t.size // size * size
    blocks, values = t[:n].reshape(-1, size), T[:n].reshape(-1, size)
    near = blocks[:, -1] - blocks[:, 0] <= 2 * BLOCK_S
    return blocks[near].mean(axis=1), values[near].mean(axis=1)


def _free(power: _heating.Load, t: Array) -> Array:
    """What does not depend on power: a level, what was held at the begin, what was taken up in gaps."""
    since = np.maximum(t - power.edges[0], 0.0)
    columns = [np.ones(t.size)] + [np.exp(-since / tau) for tau in INITIAL_S]
    for _, end in power.gaps:
        columns += [np.where(t > end, np.exp(-np.maximum(t - end, 0.0) / tau), 0.0) for tau in GAP_S]
    return np.column_stack(columns)


def _ladder(power: _heating.Load, known: _heating.States, t: Array, T: Array) -> tuple[Array, Array, Array]:
    """What is left without power and with the ladder of time constants, and the ladder's resistances."""
    Q = np.linalg.qr(_free(power, t))[0]
    Y = _heating.response(power, known, t)
    Y, r = Y - Q @ (Q.T @ Y), T - Q @ (Q.T @ T)
    a = _heating.nonnegative(Y.T @ Y, Y.T @ r)
    return r, r - Y @ a, a


def searched(power: _heating.Load, x: Array, T: Array, search: float) -> tuple[float, str]:
    """Whole second of offset at which power explains most, and what speaks against it."""
    some = slice(None, None, max(x.size // SCREENED, 1))
    x, T = x[some], T[some]
    known = _heating.states(power, LADDER_S, LADDER_S * RATIO)
    offsets = np.arange(-np.ceil(search), np.ceil(search) + 1)
    gain, each = np.full(offsets.size, -np.inf), np.zeros(offsets.size)
    for k, o in enumerate(offsets):
        inside = (x - o >= power.edges[0]) & (x - o <= power.edges[-1])
        if inside.sum() >= max(0.5 * x.size, 15):
            without, left, _ = _ladder(power, known, x[inside] - o, T[inside])
            each[k] = independent(left) / left.size
            gain[k] = left.size * np.log((without @ without) / max(float(left @ left), 1e-12))
    if np.isinf(gain).all():
        return 0.0, "too_few"
    best = int(np.argmax(gain))
    if best in (0, offsets.size - 1):
        return float(offsets[best]), "outside_search"
    padded = np.concatenate(([-np.inf], gain, [-np.inf]))
    peak = (np.abs(offsets - offsets[best]) > REACH_S) & (gain >= padded[:-2]) & (gain >= padded[2:])
    rival = peak.any() and each[best] * (gain[best] - gain[peak].max()) < LEAST_EVIDENCE
    return float(offsets[best]), "ambiguous" if rival else ""


def independent(residual: Array) -> float:
    """How many independent readings a residual has that is correlated from one reading to the next."""
    r = residual
    correlation = float(np.clip(r[1:] @ r[:-1] / max(float(r @ r), 1e-300), 0.0, 0.95))
    return r.size * (1 - correlation) / (1 + correlation)


def usable(power: _heating.Load, x: Array, start: float) -> Bools:
    """Readings within the power log for any offset near the start, and not in a gap in which the power stepped."""
    t = x - start
    use = (t - REACH_S >= power.edges[0]) & (t + REACH_S <= power.edges[-1])
    for begin, end in power.gaps:
        use &= (t < begin - REACH_S) | (t > end + REACH_S)
    return np.asarray(use)


def _beginnings(power: _heating.Load, x: Array, T: Array, start: float) -> list[Array]:
    """Where the refinement begins, for each number of parts."""
    known = _heating.states(power, LADDER_S, LADDER_S * RATIO)
    a = _ladder(power, known, x - start, T)[2] * (LADDER_S > 5.0)
    main = float(np.exp(a @ np.log(LADDER_S) / a.sum())) if a.sum() > 0 else 30.0
    parts = [[main if tau is None else max(tau, 4 * main) if tau > 100 else tau for tau in taus] for taus in PARTS_S]
    return [np.concatenate(([start, np.log(RATIO)], np.log(taus))) for taus in parts]


def _model(phi: Array, power: _heating.Load, x: Array, T: Array, free: Array) -> Fit:
    """Best linear part for these parameters, and the derivatives of what it leaves."""
    o, ratio, tau = phi[0], np.exp(phi[1]), np.exp(phi[2:])
    K = tau.size
    more = np.exp(STEP)
    rise = np.concatenate((tau, tau * more, tau))
    known = _heating.states(power, rise, np.concatenate((tau, tau * more, tau * more)) * ratio)
    own = _heating.States(known.begin[:, :K], known.tau[:, :K])
    Y = _heating.response(power, known, x - o)
    A = np.column_stack((free, Y[:, :K]))
    Q = np.linalg.qr(A)[0]
    linear = np.linalg.lstsq(A, T, rcond=None)[0]
    residual, a = T - A @ linear, linear[-K:]
    width = 0.02
    early, late = (_heating.response(power, own, x - o + shift) for shift in (-width, width))
    by = [(early - late) @ a / (2 * width), (Y[:, 2 * K :] - Y[:, :K]) @ a / STEP]
    by += [(Y[:, K + k] - Y[:, k]) * a[k] / STEP for k in range(K)]
    D = np.column_stack(by)
    driven = np.asarray(Y[:, :K] @ a)
    return Fit(phi, float(residual @ residual), np.asarray(residual), np.asarray(a), driven, D - Q @ (Q.T @ D))


def _refine(phi: Array, power: _heating.Load, x: Array, T: Array, free: Array) -> Fit:
    """Gauss-Newton with shorter steps where the whole one does not help."""
    K = phi.size - 2
    low = np.concatenate(([phi[0] - REACH_S, np.log(0.7)], np.full(K, np.log(0.05))))
    high = np.concatenate(([phi[0] + REACH_S, np.log(2.5)], np.full(K, np.log(2000.0))))
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
