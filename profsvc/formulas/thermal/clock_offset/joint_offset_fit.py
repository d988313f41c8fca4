"""Offset and time constants of a power log and a rounded temperature log, with all else that is not known."""

from typing import NamedTuple

import numpy as np

from profsvc.formulas.numerics.arrays import Array, Bools
from profsvc.formulas.sensors import logs as _logs
from profsvc.formulas.thermal import step_response
from profsvc.formulas.thermal.noise import quantization

DIFFERENCE_STEP = 1e-3  # of a logarithm
MAX_ROUNDS = 30
RELAXATION_PASSES = 2  # what a part held at the begin says whether it warms, which says what it held
STEP_REDUCTIONS = 5
FIRST_DAMPING, MIN_DAMPING, DAMPING_INCREASE, DAMPING_DECREASE = 1e-4, 1e-3, 10.0, 0.1
CONVERGENCE_TOLERANCE = 1e-2  # of twice the log-likelihood
RIDGE = 1e-9
MAX_STEP = (1.0, 0.3)  # of offset [s] and log ratio
MAX_CONSTANT_STEP = 0.5  # of the logarithm of a time constant
LOG_RATIO_RANGE = np.log((0.7, 2.5))
LOG_CONSTANT_RANGE = np.log((0.05, 3000.0))


class Hypothesis(NamedTuple):
    """The offset, its standard error, and minus twice the logarithm of the evidence, under one hypothesis."""

    offset_s: float
    error_s: float
    cost: float


class Logs(NamedTuple):
    """The two logs, and the standard error of their offset where it has been taken out."""

    power: step_response.PiecewisePower
    time: Array
    read: quantization.Rounded
    offset_se_s: float = float("inf")


class JointFit(NamedTuple):
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


class _Iterate(NamedTuple):
    """Parameters, their curve, its noise, and what is minimised."""

    theta: Array
    curve: _Curve
    noise: float
    left: float


def fit(logs: Logs, phi: Array, directions: Array | None = None) -> JointFit:
    """The likeliest of all parameters about a beginning; with errors along directions of phi, else of the offset."""
    K, damping = phi.size - 2, FIRST_DAMPING
    at, weight = _start_point(logs, phi)
    for _ in range(MAX_ROUNDS):
        slope = quantization.likelihood(logs.read, at.curve.mean, at.noise)[1]
        F, size = _information(logs, at, weight)
        g = (at.curve.slopes.T @ slope - weight * at.theta) / size
        new, damping = _damped_step(logs, at, F, g, size, weight, damping)
        gained, at = at.left - new.left, new
        if gained < CONVERGENCE_TOLERANCE:
            break
    slope = quantization.likelihood(logs.read, at.curve.mean, at.noise)[1]
    F, size = _information(logs, at, weight)
    C = np.linalg.inv(F + RIDGE * np.eye(size.size)) / np.outer(size, size)
    residual = float(np.sqrt(np.mean((logs.read.value - at.curve.mean) ** 2)))
    # More residual than its noise makes is a model that does not hold everywhere.
    excess = max(residual / float(np.hypot(at.noise, logs.read.step / np.sqrt(12))), 1.0)

    def errors(C: Array, D: Array) -> Array:
        along = D @ C[: K + 2]
        expected = (along[:, : K + 2] * D).sum(axis=1)
        scatter = np.array([_slope_variance(at.curve.slopes @ one, slope) for one in along]) + along**2 @ weight
        return np.asarray(excess * np.sqrt(np.maximum(expected, scatter)))

    offset, cost, begin = (
        float(at.theta[0]),
        at.left + _parameter_cost(logs, F, size, weight),
        slice(2 * K + 3, 3 * K + 3),
    )
    rest = rest_log_odds(at.theta[begin], C[begin, begin], weight[begin])
    back = C[:, begin] @ np.linalg.inv(C[begin, begin])
    moved = float(back[0] @ at.theta[begin])
    first = np.eye(1, K + 2)
    if not abs(moved) < MAX_STEP[0]:  # so far away the slopes do not hold
        rest = np.inf
    hypotheses = (
        Hypothesis(offset, float(errors(C, first)[0]), cost),
        Hypothesis(offset - moved, float(errors(C - back @ C[begin], first)[0]), cost + rest),
    )
    error = errors(C, directions) if directions is not None else np.array([hypotheses[0].error_s])
    return JointFit(
        at.theta[: K + 2], at.theta[K + 2 : 2 * K + 2], float(at.theta[2 * K + 2]), at.left, error, residual,
        slope.size, hypotheses,
    )  # fmt: skip


def rest_log_odds(held: Array, C: Array, weight: Array) -> float:
    r"""Twice the logarithm of the odds of a board that held something at the begin against one at rest.

    .. math:: 2\ln\frac{p(h)}{p(0)} = h^T C^{-1} h + \ln\det C + \sum_k \ln w_k

    with h what was held by the fit, C its covariance, and 1/w the prior variances: how much more probable the readings
    make h = 0 than the prior did. 0.1 degC held, known within 0.1 degC where the prior allowed 25
    degC: 1 - 4.6 - 6.4 = -10, the board was at rest with odds of 150 to 1. At 0.5 degC: 25 - 11 = 14, it was not.
    """
    return float(held @ np.linalg.solve(C, held) + np.linalg.slogdet(C)[1] + np.log(weight).sum())


def _parameter_cost(logs: Logs, F: Array, size: Array, weight: Array) -> float:
    r"""Return the cost of the parameters of a fit, by the Laplace approximation of the evidence.

    .. math:: -2\ln p(T) \approx -2\ln L + \theta^T W \theta + \ln\det(F + W) - \ln\det W

    with F what the readings tell and W the prior: a resistance heats at most the range of the temperature by
    the range of the power, a ratio and the logarithms of time constants are anywhere in their ranges.
    """
    K, value = _part_count(logs, weight), logs.read.value
    believed = weight.copy()
    believed[1 : K + 2] = 12 / np.append(np.ptp(LOG_RATIO_RANGE), np.full(K, np.ptp(LOG_CONSTANT_RANGE))) ** 2
    believed[K + 2 : 2 * K + 2] = (np.ptp(logs.power.level) / np.ptp(value)) ** 2
    believed[2 * K + 2] = 1 / np.ptp(value) ** 2
    believed[0] = max(believed[0], 12 / (2 * MAX_STEP[0]) ** 2)  # the same in all fits
    known = F + np.diag((believed - weight) / size**2)
    return float(np.linalg.slogdet(known)[1] + 2 * np.log(size).sum() - np.log(believed).sum())


def _information(logs: Logs, at: _Iterate, weight: Array) -> tuple[Array, Array]:
    """Return the information of readings and priors on the parameters, scaled to units, and these units."""
    expected, J = quantization.information(logs.read, at.curve.mean, at.noise), at.curve.slopes
    F = J.T @ (expected[:, np.newaxis] * J) + np.diag(weight)
    size = np.sqrt(np.diagonal(F)) + 1e-12
    return np.asarray(F / np.outer(size, size)), np.asarray(size)


def _slope_variance(moves: Array, slope: Array) -> float:
    """Variance of an estimate that each reading moves by so much per unit of its slope, for correlated readings."""
    n = np.array([slope.size])
    long_run, lags = _logs.long_run_variance(moves, slope, np.zeros(slope.size, dtype=np.intp), n)
    return float(_logs.error_inflation(lags / n)[0]) ** 2 * slope.size * float(long_run[0])


def _start_point(logs: Logs, phi: Array) -> tuple[_Iterate, Array]:
    """Least squares for all that is linear; and how surely each parameter is known beforehand, as inverse variances."""
    K, power = phi.size - 2, logs.power
    count = 2 * K + 3 + K * _disturbance_count(logs)
    theta = np.concatenate((phi, np.zeros(count - phi.size + power.stepped.time_s.size)))
    weight = np.zeros(theta.size)
    weight[2 * K + 3 : count] = 1 / np.ptp(logs.read.value) ** 2
    weight[count:] = 1 / power.stepped.sd_s**2
    weight[0] = 1 / logs.offset_se_s**2
    held = np.diag(np.sqrt(weight[K + 2 : count]))
    value = np.append(logs.read.value, np.zeros(len(held)))
    for _ in range(RELAXATION_PASSES):
        X = _temperature_curve(logs, theta).slopes[:, K + 2 : count]
        theta[K + 2 : count] = np.linalg.lstsq(np.vstack([X, held]), value, rcond=1e-10)[0]
    curve = _temperature_curve(logs, theta)
    noise = max(float(np.std(logs.read.value - curve.mean)), logs.read.step / 4)
    return _Iterate(theta, curve, noise, _cost(logs, theta, curve, noise, weight)[1]), weight


def _cost(logs: Logs, theta: Array, curve: _Curve, noise: float, weight: Array) -> tuple[float, float]:
    """The likeliest noise, and minus twice the logarithm of the likelihood."""
    noise, lost = quantization.likeliest_noise(logs.read, curve.mean, noise)
    return noise, 2 * lost + float(weight @ theta**2)


def _damped_step(
    logs: Logs, at: _Iterate, F: Array, g: Array, size: Array, weight: Array, damping: float
) -> tuple[_Iterate, float]:
    """Return the next iterate: one step, shortened until the cost falls, else no step."""
    K = _part_count(logs, at.theta)
    low, high = (
        np.array([side * np.inf, LOG_RATIO_RANGE[k], *[LOG_CONSTANT_RANGE[k]] * K]) for k, side in ((0, -1), (1, 1))
    )
    longest = np.array([*MAX_STEP, *[MAX_CONSTANT_STEP] * K])
    for _ in range(STEP_REDUCTIONS):
        step = (
            _constrained_step(F + damping * np.eye(size.size), g, at.theta[: K + 2] <= low, at.theta[: K + 2] >= high)
            / size
        )
        step[: K + 2] = np.clip(step[: K + 2], -longest, longest)
        theta = at.theta + step
        theta[: K + 2] = np.clip(theta[: K + 2], low, high)
        curve = _temperature_curve(logs, theta)
        noise, left = _cost(logs, theta, curve, at.noise, weight)
        if left < at.left:
            return _Iterate(theta, curve, noise, left), damping * DAMPING_DECREASE
        damping = max(damping * DAMPING_INCREASE, MIN_DAMPING)
    return at, damping


def _constrained_step(F: Array, g: Array, lowest: Bools, highest: Bools) -> Array:
    """Return the step with parameters held that stand at an end of their range and would leave it."""
    free, k = np.ones(g.size, dtype=np.bool_), lowest.size
    while True:
        step = np.zeros(g.size)
        step[free] = np.linalg.solve(F[np.ix_(free, free)], g[free])
        leaves = (lowest & (step[:k] < 0)) | (highest & (step[:k] > 0))
        if not leaves.any():
            return step
        free[:k] &= ~leaves


def _disturbance_count(logs: Logs) -> int:
    """Return how many times each part held heat that the power log does not explain: the begin and each gap."""
    return 1 + len(logs.power.gaps)


def _part_count(logs: Logs, theta: Array) -> int:
    """Return the number of parts that the parameters describe."""
    return (theta.size - logs.power.stepped.time_s.size - 3) // (2 + _disturbance_count(logs))


def _temperature_curve(logs: Logs, theta: Array) -> _Curve:
    """Parts driven by the power, a level, what each part held at the begin and took up in gaps, steps not in place."""
    power, K = logs.power, _part_count(logs, theta)
    tau, ratio, more = np.exp(theta[2 : K + 2]), np.exp(theta[1]), np.exp(DIFFERENCE_STEP)
    R, level, (fading, late) = (
        theta[K + 2 : 2 * K + 2],
        theta[2 * K + 2],
        np.split(theta[2 * K + 3 :], [K * _disturbance_count(logs)]),
    )
    rise = np.concatenate((tau, tau * more, tau))  # as they are, and moved by a slope
    begun = np.where(R > 0, fading[:K] / np.where(R > 0, R, 1.0), 0.0)
    known = step_response.thermal_states(
        power, rise, np.concatenate((tau, tau * more, tau * more)) * ratio, np.tile(begun, 3)
    )
    t = logs.time - theta[0]
    Y, age = step_response.unit_response(power, known, t), step_response.elapsed_time_constants(power, known, t)
    held, shifts = _disturbance_decay(power, known, age, t), _step_delay_columns(power, known, age[:, :K], t, R)
    parts = Y * np.tile(R, 3) + (held * np.tile(fading.reshape(-1, 1, K), 3)).sum(axis=0)
    at, moved_tau, moved_ratio = np.split(parts, 3, axis=1)
    k = step_response.piece_index(power, t)
    target = (power.level[k] - power.level[0])[:, np.newaxis] * R
    slopes = [
        ((at - target) / known.tau[k, :K]).sum(axis=1, keepdims=True),
        (moved_ratio - at).sum(axis=1, keepdims=True) / DIFFERENCE_STEP,
        (moved_tau - at) / DIFFERENCE_STEP,
        Y[:, :K],
        np.ones((t.size, 1)),
        *held[:, :, :K],
        shifts,
    ]
    return _Curve(at.sum(axis=1) + level + shifts @ late, np.hstack(slopes))


def _disturbance_decay(
    power: step_response.PiecewisePower, known: step_response.ThermalStates, age: Array, t: Array
) -> Array:
    """Return the remaining share of what each part held at the begin, and took up in each gap."""
    left = [np.exp(-age)]
    for _, end in power.gaps:
        since = age - step_response.elapsed_time_constants(power, known, np.array([end]))
        left.append(np.where((t > end)[:, np.newaxis], np.exp(-np.maximum(since, 0.0)), 0.0))
    return np.array(left)


def _step_delay_columns(
    power: step_response.PiecewisePower, known: step_response.ThermalStates, age: Array, t: Array, R: Array
) -> Array:
    """Return the change of the temperature per second of delay of each power step: one column per step."""
    steps = power.stepped
    columns = np.zeros((t.size, steps.time_s.size))
    ages = step_response.elapsed_time_constants(power, known, steps.time_s)[:, : R.size]
    heats = R / known.tau[step_response.piece_index(power, steps.time_s), : R.size]
    begins = np.searchsorted(t, steps.time_s, side="right").tolist()  # readings are in the order of their time
    for n, (begin, size) in enumerate(zip(begins, steps.size_w.tolist(), strict=True)):
        columns[begin:, n] = -size * (np.exp(-np.maximum(age[begin:] - ages[n], 0.0)) @ heats[n])
    return columns
