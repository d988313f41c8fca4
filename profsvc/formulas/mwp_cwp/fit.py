"""The memory parameters of a device, from the cycles per instruction took in micro-benchmarks."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from profsvc.formulas.mwp_cwp.execution import exec_cycles
from profsvc.formulas.numerics.arrays import Array, Mask, arrays, flat_floats, is_implausible, mask
from profsvc.formulas.numerics.flags import CONSISTENT, Flag, check_form

PARAMETERS = ("Mem_LD", "dep_uncoal", "dep_coal")
BOUNDS = np.array([[50.0, 2000.0], [1.0, 200.0], [1.0, 50.0]])  # cycles
_COARSE_GRID_POINTS = (24, 24, 12)
_STARTS = 5
_ROUNDS = 60
_DAMPING = 10.0 ** np.arange(-9, 6)
_STEP = 1e-5  # of the logarithms, for derivatives
_ROUNDING = 1e-10  # what is left of a derivative that is 0
_MAX_CONDITION = 1e4  # an error of 1 % in CPI may then move a parameter by a factor


class MemoryFit(NamedTuple):
    """Parameters [cycles], how well they fit, and how well the benchmarks distinguish them."""

    Mem_LD: Array
    dep_uncoal: Array
    dep_coal: Array
    residual: Array
    condition: Array
    relative_errors: Array
    flags: Mask


def fit_memory_parameters(
    cpi: ArrayLike,
    counts: Mapping[str, ArrayLike],
    launch: Mapping[str, ArrayLike],
    machine: Mapping[str, ArrayLike],
    form: str = CONSISTENT,
) -> MemoryFit:
    r"""Memory parameters that best predict the measured cycles per instruction.

    .. math:: \min \sum_b (\ln CPI_b - \ln CPI_{measured,b})^2

    Source: [Hong2012] section 2.5.1 varies the three parameters until the micro-benchmarks fit; the criterion, the
    search (a coarse grid in one call, then damped Gauss-Newton steps from its best points) and the bounds are
    this project's.

    Args:
        cpi: Measured cycles per instruction, one per benchmark, flat [cycles].
        counts: ``n_comp``, ``n_coal``, ``n_uncoal`` and, where wanted, ``M_Factor`` of `exec_cycles`, a number or a
            number per benchmark.
        launch: Likewise ``threads_per_block``, ``blocks``, ``active_blocks_per_sm``, ``active_sms``.
        machine: Likewise ``uncoal_per_mw``, ``load_bytes_per_warp``, ``freq``, ``bandwidth`` and, where they differ
            from the defaults, ``issue_cycles``, ``warp``.
        form: Form of the model: ``consistent`` or ``as_published``.

    Returns: MemoryFit. ``residual`` is the root mean square of the errors of ln CPI [1]; ``condition`` the condition
    number of the derivatives of ln CPI by the logarithms of the parameters [1]; ``relative_errors`` the standard
    errors of the parameters that follow from both, in the order of ``PARAMETERS`` [1].

    Range: parameters within ``BOUNDS``; one that lies at a bound: EXTRAPOLATED. Benchmarks whose CPI is not above 0, or
    that the model gives no number for, are left out, INPUT_SUSPECT; with fewer than three left all is NaN. A
    condition above 1e4, or inf where a parameter changes nothing: INPUT_SUSPECT, and at least one parameter is not
    known. It takes a run with few warps for Mem_LD, and scattered accesses for dep_uncoal; dep_coal
    is distinguished from Mem_LD only where coalesced requests queue.

    Errors: TypeError for a wrong dtype or a missing count, ValueError for shapes that do not broadcast or an unknown
    form.

    >>> counts = {"n_comp": [90, 90, 90], "n_coal": [10, 10, 0], "n_uncoal": [0, 0, 10]}
    >>> launch = {"threads_per_block": [32, 1024, 512], "blocks": 16, "active_blocks_per_sm": 1, "active_sms": 16}
    >>> machine = {"uncoal_per_mw": 32, "load_bytes_per_warp": 128, "freq": 1e9, "bandwidth": 1e12, "issue_cycles": 1}
    >>> from profsvc.formulas.mwp_cwp import exec_cycles
    >>> cpi = exec_cycles(**counts, **launch, **machine, Mem_LD=420, dep_coal=40, dep_uncoal=10).CPI
    >>> fit = fit_memory_parameters(cpi, counts, launch, machine)
    >>> [round(float(x), 2) for x in (fit.Mem_LD, fit.dep_uncoal, fit.dep_coal)]
    [420.0, 10.0, 40.0]
    """
    check_form(form)
    (measured,) = flat_floats(cpi=cpi)
    given: dict[str, Any] = {**counts, **launch, **machine}

    def predicted(log_parameters: Array) -> Array:
        values = dict(zip(PARAMETERS, np.exp(log_parameters).T[..., np.newaxis], strict=True))
        CPI = exec_cycles(**given, **values, form=form).CPI
        with np.errstate(all="ignore"):
            return np.asarray(np.log(np.broadcast_to(CPI, (len(log_parameters), measured.size))))

    centre = np.log(BOUNDS).mean(axis=1)[np.newaxis]
    used = ~is_implausible(measured) & (measured > 0) & np.isfinite(predicted(centre)[0])
    left_out = (Flag.INPUT_SUSPECT, not used.all())
    if used.sum() < len(PARAMETERS):
        nan = np.array(np.nan)
        return MemoryFit(nan, nan, nan, nan, nan, np.full(3, np.nan), mask((Flag.INPUT_SUSPECT, True)))
    target = np.log(measured[used])

    def errors(log_parameters: Array) -> Array:
        return np.asarray(predicted(log_parameters)[:, used] - target)

    best = _search(errors)
    wrong = errors(best[np.newaxis])[0]
    condition, relative = _certainty(_slopes(errors, best), wrong)
    at_bound = (np.abs(best[:, np.newaxis] - np.log(BOUNDS)) < 1e-6).any()
    flags = mask(left_out, (Flag.EXTRAPOLATED, at_bound), (Flag.INPUT_SUSPECT, not condition < _MAX_CONDITION))
    return MemoryFit(*arrays(*np.exp(best), np.sqrt((wrong**2).mean()), condition, relative, flags))


def _search(errors: Callable[[Array], Array]) -> Array:
    """Logarithms of the parameters with the least sum of squared errors."""
    low, high = np.log(BOUNDS).T
    axes = [np.linspace(a, b, n) for a, b, n in zip(low, high, _COARSE_GRID_POINTS, strict=True)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(PARAMETERS))
    first = np.argsort(_squares(errors(points)), kind="stable")[:_STARTS]
    ends = np.array([_descend(errors, point) for point in points[first]])
    return np.asarray(ends[np.argmin(_squares(errors(ends)))])


def _descend(errors: Callable[[Array], Array], point: Array) -> Array:
    """Follow damped Gauss-Newton steps (Levenberg and Marquardt), all dampings of a round in one call."""
    least = _squares(errors(point[np.newaxis]))[0]
    for _ in range(_ROUNDS):
        slopes = _slopes(errors, point)
        normal, gradient = slopes.T @ slopes, slopes.T @ errors(point[np.newaxis])[0]
        scale = np.diag(np.maximum(np.diag(normal), 1e-9 * np.diag(normal).max() + 1e-300))
        steps = np.linalg.solve(normal + _DAMPING[:, np.newaxis, np.newaxis] * scale, -gradient[:, np.newaxis])
        tried = np.clip(point + steps[..., 0], *np.log(BOUNDS).T)
        found = _squares(errors(tried))
        if not found.min() < least * (1 - 1e-12):
            break
        point, least = tried[found.argmin()], found.min()
    return point


def _squares(errors: Array) -> Array:
    # A point for which the model has no number is no candidate.
    return np.asarray(np.nan_to_num((errors**2).sum(axis=-1), nan=np.inf))


def _slopes(errors: Callable[[Array], Array], point: Array) -> Array:
    steps = _STEP * np.eye(point.size)
    return np.asarray((errors(point + steps) - errors(point - steps)).T / (2 * _STEP))


def _certainty(slopes: Array, wrong: Array) -> tuple[Array, Array]:
    """Condition number of the derivatives at the best point, and standard errors of the logarithms."""
    sizes = np.linalg.svd(slopes, compute_uv=False)
    condition = sizes[0] / sizes[-1] if sizes[-1] > _ROUNDING * sizes[0] else np.inf
    free = wrong.size - slopes.shape[1]
    if not np.isfinite(condition) or free < 1:
        return np.array(condition), np.full(slopes.shape[1], np.nan)
    variance = (wrong**2).sum() / free
    return np.array(condition), np.sqrt(np.diag(np.linalg.inv(slopes.T @ slopes)) * variance)
