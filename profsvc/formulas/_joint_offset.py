"""Offset and time constants of a power log and a rounded temperature log, with all else that is not known."""

from typing import NamedTuple

import numpy as np

from profsvc.formulas import _heating, _logs, _rounded
from profsvc.formulas._arrays import Array, Bools

SLOPE = 1e-3  # of a logarithm
ROUNDS = 30
TWICE = 2  # what a part held at the begin says whether it warms, which says what it held
SHORTER = 5
FIRST_DAMPING, LEAST_DAMPING, STEEPER, FLATTER = 1e-4, 1e-3, 10.0, 0.1
SETTLED = 1e-2  # of twice the logarithm of the likelihood
SINGULAR = 1e-9
LONGEST = (1.0, 0.3)  # step of offset and ratio
LONGEST_PART = 0.5  # and of the logarithm of a time constant
RATIOS = np.log((0.7, 2.5))
PARTS = np.log((0.05, 3000.0))


class Hypothesis(NamedTuple):
    """The offset, its standard error, and minus twice the logarithm of the evidence, under one hypothesis."""

    offset_s: float
    error_s: float
    cost: float


class Logs(NamedTuple):
    """The two logs, and the standard error of their offset where it has been taken out."""

    power: _heating.Load
    time: Array
    read: _rounded.Rounded
    offset_se_s: float = float("inf")


class Joint(NamedTuple):
    """One fit: offset, logarithms of ratio and time constants; `lost` is twice the logarithm of the likelihood."""

    phi: Array
    resistance: Array
    level_c: float  # at rest under the first power of the log
    lost: float
    error: Array  # standard errors: of what the likelihood and the scatter of its slope say, the larger
    residual_c: float
    readings: int
    offsets: tuple[Hypothesis, Hypothesis]  # of a board that held anything at the begin, and of one at rest


class _Curve(NamedTuple):
    """Temperature at every reading, and its slopes by all parameters."""

    mean: Array
    slopes: Array


class _At(NamedTuple):
    """Parameters, their curve, its noise, and what is minimised."""

    theta: Array
    curve: _Curve
    noise: float
    left: float


def fit(logs: Logs, phi: Array, directions: Array | None = None) -> Joint:
    """The likeliest of all parameters about a beginning; with errors along directions of phi, else of the offset."""
    K, damping = phi.size - 2, FIRST_DAMPING
    at, weight = _begun(logs, phi)
    for _ in range(ROUNDS):
        slope = _rounded.likelihood(logs.read, at.curve.mean, at.noise)[1]
        F, size = _told(logs, at, weight)
        g = (at.curve.slopes.T @ slope - weight * at.theta) / size
        new, damping = _moved(logs, at, F, g, size, weight, damping)
        gained, at = at.left - new.left, new
        if gained < SETTLED:
            break
    slope = _rounded.likelihood(logs.read, at.curve.mean, at.noise)[1]
    F, size = _told(logs, at, weight)
    C = np.linalg.inv(F + SINGULAR * np.eye(size.size)) / np.outer(size, size)
    residual = float(np.sqrt(np.mean((logs.read.value - at.curve.mean) ** 2)))
    # More residual than its noise makes is a model that does not hold everywhere.
    excess = max(residual / float(np.hypot(at.noise, logs.read.step / np.sqrt(12))), 1.0)

    def errors(C: Array, D: Array) -> Array:
        along = D @ C[: K + 2]
        expected = (along[:, : K + 2] * D).sum(axis=1)
        scatter = np.array([_scatter(at.curve.slopes @ one, slope) for one in along]) + along**2 @ weight
        return np.asarray(excess * np.sqrt(np.maximum(expected, scatter)))

    offset, cost, begin = float(at.theta[0]), at.left + _occam(logs, F, size, weight), slice(2 * K + 3, 3 * K + 3)
    rest = at_rest(at.theta[begin], C[begin, begin], weight[begin])
    back = C[:, begin] @ np.linalg.inv(C[begin, begin])
    moved = float(back[0] @ at.theta[begin])
    first = np.eye(1, K + 2)
    if not abs(moved) < LONGEST[0]:  # so far away the slopes do not hold
        rest = np.inf
    hypotheses = (
        Hypothesis(offset, float(errors(C, first)[0]), cost),
        Hypothesis(offset - moved, float(errors(C - back @ C[begin], first)[0]), cost + rest),
    )
    error = errors(C, directions) if directions is not None else np.array([hypotheses[0].error_s])
    return Joint(
        at.theta[: K + 2], at.theta[K + 2 : 2 * K + 2], float(at.theta[2 * K + 2]), at.left, error, residual,
        slope.size, hypotheses,
    )  # fmt: skip


def at_rest(held: Array, C: Array, weight: Array) -> float:
    r"""Twice the logarithm of the odds of a board that held something at the begin against one at rest.

    .. math:: 2\ln\frac{p(h)}{p(0)} = h^T C^{-1} h + \ln\det C + \sum_k \ln w_k

    with h what was held by the fit, C its covariance, and 1/w the variances believed before: how much more the readings
    believe in h = 0 than was believed before them. 0.1 degC held, known within 0.1 degC where 25 degC were believed
    possible: 1 - 4.6 - 6.4 = -10, the board was at rest with odds of 150 to 1. At 0.5 degC: 25 - 11 = 14, it was not.
    """
    return float(held @ np.linalg.solve(C, held) + np.linalg.slogdet(C)[1] + np.log(weight).sum())


def _occam(logs: Logs, F: Array, size: Array, weight: Array) -> float:
    r"""What a fit pays for its parameters, by the approximation of Laplace to the evidence.

    .. math:: -2\ln p(T) \approx -2\ln L + \theta^T W \theta + \ln\det(F + W) - \ln\det W

    with F what the readings tell and W what was believed: a resistance heats at most the range of the temperature by
    the range of the power, a ratio and the logarithms of time constants are anywhere in their ranges.
    """
    K, value = _parts(logs, weight), logs.read.value
    believed = weight.copy()
    believed[1 : K + 2] = 12 / np.append(np.ptp(RATIOS), np.full(K, np.ptp(PARTS))) ** 2
    believed[K + 2 : 2 * K + 2] = (np.ptp(logs.power.level) / np.ptp(value)) ** 2
    believed[2 * K + 2] = 1 / np.ptp(value) ** 2
    believed[0] = max(believed[0], 12 / (2 * LONGEST[0]) ** 2)  # the same in all fits
    known = F + np.diag((believed - weight) / size**2)
    return float(np.linalg.slogdet(known)[1] + 2 * np.log(size).sum() - np.log(believed).sum())


def _told(logs: Logs, at: _At, weight: Array) -> tuple[Array, Array]:
    """What readings and beliefs tell of the parameters, each in a unit of its own, and these units."""
    told, J = _rounded.information(logs.read, at.curve.mean, at.noise), at.curve.slopes
    F = J.T @ (told[:, np.newaxis] * J) + np.diag(weight)
    size = np.sqrt(np.diagonal(F)) + 1e-12
    return np.asarray(F / np.outer(size, size)), np.asarray(size)


def _scatter(moves: Array, slope: Array) -> float:
    """Variance of an estimate that each reading moves by so much a unit of its slope, neighbours correlated."""
    n = np.array([slope.size])
    long_run, lags = _logs.long_run(moves, slope, np.zeros(slope.size, dtype=np.intp), n)
    return float(_logs.wider(lags / n)[0]) ** 2 * slope.size * float(long_run[0])


def _begun(logs: Logs, phi: Array) -> tuple[_At, Array]:
    """Least squares for all that is linear; and how surely each parameter is known beforehand, as inverse variances."""
    K, power = phi.size - 2, logs.power
    count = 2 * K + 3 + K * _holds(logs)
    theta = np.concatenate((phi, np.zeros(count - phi.size + power.stepped.time_s.size)))
    weight = np.zeros(theta.size)
    weight[2 * K + 3 : count] = 1 / np.ptp(logs.read.value) ** 2
    weight[count:] = 1 / power.stepped.sd_s**2
    weight[0] = 1 / logs.offset_se_s**2
    held = np.diag(np.sqrt(weight[K + 2 : count]))
    value = np.append(logs.read.value, np.zeros(len(held)))
    for _ in range(TWICE):
        X = _curve(logs, theta).slopes[:, K + 2 : count]
        theta[K + 2 : count] = np.linalg.lstsq(np.vstack([X, held]), value, rcond=1e-10)[0]
    curve = _curve(logs, theta)
    noise = max(float(np.std(logs.read.value - curve.mean)), logs.read.step / 4)
    return _At(theta, curve, noise, _left(logs, theta, curve, noise, weight)[1]), weight


def _left(logs: Logs, theta: Array, curve: _Curve, noise: float, weight: Array) -> tuple[float, float]:
    """The likeliest noise, and minus twice the logarithm of the likelihood."""
    noise, lost = _rounded.noise_of(logs.read, curve.mean, noise)
    return noise, 2 * lost + float(weight @ theta**2)


def _moved(logs: Logs, at: _At, F: Array, g: Array, size: Array, weight: Array, damping: float) -> tuple[_At, float]:
    """One step, shorter until it helps; where none does, nothing moves."""
    K = _parts(logs, at.theta)
    low, high = (np.array([side * np.inf, RATIOS[k], *[PARTS[k]] * K]) for k, side in ((0, -1), (1, 1)))
    longest = np.array([*LONGEST, *[LONGEST_PART] * K])
    for _ in range(SHORTER):
        step = _step(F + damping * np.eye(size.size), g, at.theta[: K + 2] <= low, at.theta[: K + 2] >= high) / size
        step[: K + 2] = np.clip(step[: K + 2], -longest, longest)
        theta = at.theta + step
        theta[: K + 2] = np.clip(theta[: K + 2], low, high)
        curve = _curve(logs, theta)
        noise, left = _left(logs, theta, curve, at.noise, weight)
        if left < at.left:
            return _At(theta, curve, noise, left), damping * FLATTER
        damping = max(damping * STEEPER, LEAST_DAMPING)
    return at, damping


def _step(F: Array, g: Array, lowest: Bools, highest: Bools) -> Array:
    """Where to go, with the parameters left alone that stand at an end of their range and would leave it."""
    free, k = np.ones(g.size, dtype=np.bool_), lowest.size
    while True:
        step = np.zeros(g.size)
        step[free] = np.linalg.solve(F[np.ix_(free, free)], g[free])
        leaves = (lowest & (step[:k] < 0)) | (highest & (step[:k] > 0))
        if not leaves.any():
            return step
        free[:k] &= ~leaves


def _holds(logs: Logs) -> int:
    """After how many times each part held what no power told."""
    return 1 + len(logs.power.gaps)


def _parts(logs: Logs, theta: Array) -> int:
    """How many parts these are the parameters of."""
    return (theta.size - logs.power.stepped.time_s.size - 3) // (2 + _holds(logs))


def _curve(logs: Logs, theta: Array) -> _Curve:
    """Parts driven by the power, a level, what each part held at the begin and took up in gaps, steps not in place."""
    power, K = logs.power, _parts(logs, theta)
    tau, ratio, more = np.exp(theta[2 : K + 2]), np.exp(theta[1]), np.exp(SLOPE)
    R, level, (fading, late) = (
        theta[K + 2 : 2 * K + 2],
        theta[2 * K + 2],
        np.split(theta[2 * K + 3 :], [K * _holds(logs)]),
    )
    rise = np.concatenate((tau, tau * more, tau))  # as they are, and moved by a slope
    begun = np.where(R > 0, fading[:K] / np.where(R > 0, R, 1.0), 0.0)
    known = _heating.states(power, rise, np.concatenate((tau, tau * more, tau * more)) * ratio, np.tile(begun, 3))
    t = logs.time - theta[0]
    Y, age = _heating.response(power, known, t), _heating.age(power, known, t)
    held, shifts = _held(power, known, age, t), _shifts(power, known, age[:, :K], t, R)
    parts = Y * np.tile(R, 3) + (held * np.tile(fading.reshape(-1, 1, K), 3)).sum(axis=0)
    at, moved_tau, moved_ratio = np.split(parts, 3, axis=1)
    k = _heating.place(power, t)
    target = (power.level[k] - power.level[0])[:, np.newaxis] * R
    slopes = [
        ((at - target) / known.tau[k, :K]).sum(axis=1, keepdims=True),
        (moved_ratio - at).sum(axis=1, keepdims=True) / SLOPE,
        (moved_tau - at) / SLOPE,
        Y[:, :K],
        np.ones((t.size, 1)),
        *held[:, :, :K],
        shifts,
    ]
    return _Curve(at.sum(axis=1) + level + shifts @ late, np.hstack(slopes))


def _held(power: _heating.Load, known: _heating.States, age: Array, t: Array) -> Array:
    """How much is left of what each part held at the begin, and of what it took up in each gap."""
    left = [np.exp(-age)]
    for _, end in power.gaps:
        since = age - _heating.age(power, known, np.array([end]))
        left.append(np.where((t > end)[:, np.newaxis], np.exp(-np.maximum(since, 0.0)), 0.0))
    return np.array(left)


def _shifts(power: _heating.Load, known: _heating.States, age: Array, t: Array, R: Array) -> Array:
    """What the temperature changes by for each second that a step of the power was later: a column a step."""
    columns = np.empty((t.size, power.stepped.time_s.size))
    for n, (step, size) in enumerate(zip(power.stepped.time_s.tolist(), power.stepped.size_w.tolist(), strict=True)):
        now = np.array([step])
        since = age - _heating.age(power, known, now)[:, : R.size]
        pulse = np.exp(-np.maximum(since, 0.0)) @ (R / known.tau[_heating.place(power, now)[0], : R.size])
        columns[:, n] = np.where(t > step, -size * pulse, 0.0)
    return columns
