"""MaxPower of the units of a device from its own runs, compared with a constant guess."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from profsvc.formulas.numerics.arrays import Array, Mask, arrays, flat_floats, floats, is_implausible, mask
from profsvc.formulas.numerics.flags import CONSISTENT, Flag, check_form
from profsvc.formulas.numerics.regression import MIN_PAIRS, is_better_than_constant, nonnegative_least_squares
from profsvc.formulas.power.component_power import BETA, active_factors, special_linear

MIN_RUNS = 10
MAX_CONDITION = 1e8


class MaxPowerFit(NamedTuple):
    """MaxPower of each unit, and how well it predicts runs that were left out."""

    max_power_w: Array
    lowest_w: Array
    highest_w: Array
    without_w: Array
    condition: Array
    residual_rms_w: Array
    left_out_w: Array
    left_out_rms_w: Array
    constant_w: Array
    constant_rms_w: Array
    skill: Array
    beats_constant: NDArray[np.bool_]
    runs: NDArray[np.int64]
    flags: Mask


@np.errstate(all="ignore")
def fit_maxpower(
    access: ArrayLike,
    runtime_w: ArrayLike,
    special: ArrayLike,
    per_sm: ArrayLike,
    active_sms: ArrayLike,
    num_sms: ArrayLike,
    kernels: Sequence[object] = (),
    *,
    law: str = "log",
    beta: ArrayLike = BETA,
    form: str = CONSISTENT,
) -> MaxPowerFit:
    r"""MaxPower of each unit by non-negative least squares, and the errors on runs left out.

    .. math:: \min_{M \ge 0} \sum_b \Bigl(P_b - \sum_c g_c(n_b)\, k_c\, r_{bc}\, M_c\Bigr)^2, \qquad
              k_c = N \text{ inside SMs, } 1 \text{ on the board}

    with g of `active_factors` and r the access rate or `special_linear` of it. The source divides the power by g; here
    g stands on the side of the model, so that all runs count by their error in watts.

    Each kernel is left out in turn with all its runs, predicted by a fit to the others, and by their mean power:
    ``left_out_rms_w`` and ``constant_rms_w``. Only where ``beats_constant`` is true is the model known to predict
    anything: then its error is the smaller one, and run by run by more than chance (one-sided paired t at 95 %).

    Source: equations (39), (44) to (48) of [Hong2012], which searched for the values by hand; [LawsonHanson1974].

    Args:
        access: Access rates, one row per run and one column per unit; 1 for what is always on [1].
        runtime_w: Power above rest of each run, at one temperature [W].
        special: Whether each unit follows `special_linear`, booleans.
        per_sm: Whether each unit is there once an SM (else once a board), booleans.
        active_sms: SMs that worked in each run [count].
        num_sms: SMs of the device, one number [count].
        kernels: Name of the kernel of each run; empty: each run is a kernel of its own.
        law: ``log`` or ``linear``.
        beta: Parameter of the logarithmic law [1].
        form: ``consistent`` or ``as_published``, of `special_linear` and `active_factors`.

    Returns: MaxPowerFit. ``without_w`` is MaxPower fitted without the kernel of each run, one row per run;
    ``lowest_w`` and ``highest_w`` are the range of each value over these fits; ``left_out_w`` and ``constant_w`` hold
    predicted minus measured power of each run, NaN for runs not used; ``skill`` is
    1 - (left_out_rms_w / constant_rms_w)^2; ``condition`` is that of the matrix with columns of length 1.

    Range: MaxPower >= 0, NaN for a unit that no run uses. INPUT_SUSPECT where there are fewer than 10 kernels, fewer
    kernels than units, or the units cannot be distinguished (condition above 1e8), and where a run was left out as its
    numbers are negative, NaN or inf. Fewer than 3 kernels: the errors are NaN, and nothing is claimed.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit, an unknown law or form.

    Two units, one inside each of 4 SMs (2 W) and one on the board (10 W); all SMs active:

    >>> access = [[0.1, 0.9], [0.5, 0.5], [0.9, 0.2], [0.4, 0.0]]
    >>> fit = fit_maxpower(access, [9.8, 9.0, 9.2, 3.2], [False, False], [True, False], 4, 4, law="linear")
    >>> fit.max_power_w.round(3).tolist(), round(float(fit.left_out_rms_w), 3), int(fit.flags)
    ([2.0, 10.0], 0.0, 32)
    """
    check_form(form)
    A, P, used = _design(access, runtime_w, special, per_sm, active_sms, num_sms, law, beta, form)
    whole, power = A[used], P[used]
    seen = (whole != 0).any(axis=0)
    whole = whole[:, seen]
    runs, units = whole.shape
    names = np.array([str(name) for name in kernels] or [str(row) for row in range(len(P))])[used]
    errors, guesses, each = (np.full(s, np.nan) for s in (P.shape, P.shape, (runs, units)))
    rows = np.flatnonzero(used)
    for name in np.unique(names) if np.unique(names).size >= MIN_PAIRS else ():
        own = names == name
        each[own] = nonnegative_least_squares(whole[~own], power[~own])
        errors[rows[own]] = whole[own] @ each[own][0] - power[own]
        guesses[rows[own]] = power[~own].mean() - power[own]
    M, low, high = (np.full(A.shape[1], np.nan) for _ in range(3))
    if runs:
        M[seen] = nonnegative_least_squares(whole, power)
        low[seen], high[seen] = each.min(axis=0), each.max(axis=0)
    without = np.full(A.shape, np.nan)
    without[np.ix_(used, seen)] = each
    condition = _condition(whole)
    rms, constant = (_rms(x[used]) for x in (errors, guesses))
    skill = 1 - (rms / constant) ** 2 if constant > 0 else np.nan
    weak = np.unique(names).size < max(MIN_RUNS, units) or not condition <= MAX_CONDITION or not used.all()
    left = _rms(power - whole @ M[seen])
    found = (M, low, high, without, condition, left, errors, rms, guesses, constant, skill)
    proof = is_better_than_constant(errors[used], guesses[used]), np.int64(runs), mask((Flag.INPUT_SUSPECT, weak))
    return MaxPowerFit(*arrays(*found, *proof))


def _design(
    access: ArrayLike,
    runtime_w: ArrayLike,
    special: ArrayLike,
    per_sm: ArrayLike,
    active_sms: ArrayLike,
    num_sms: ArrayLike,
    law: str,
    beta: ArrayLike,
    form: str,
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Power of each run a watt of MaxPower of each unit, the power of the runs, and which of them are good."""
    (x,) = floats(access=access)
    if x.ndim != 2:
        raise ValueError(f"access has shape {x.shape}; allowed: (runs, units)")
    P, n, N = flat_floats(runtime_w=runtime_w, active_sms=active_sms, num_sms=num_sms)
    if P.size not in (1, x.shape[0]):
        raise ValueError(f"runtime_w has {P.size} runs; allowed: {x.shape[0]}, as access has")
    P, n, N = (np.broadcast_to(a, (x.shape[0],)) for a in (P, n, N))
    of_sm, jumps = np.asarray(per_sm, dtype=np.bool_), np.asarray(special, dtype=np.bool_)
    factors = active_factors(n, N, law, beta, form)
    rate = np.where(jumps, special_linear(x, form).value, x)
    count = np.where(of_sm, N[:, np.newaxis] * factors.sm[:, np.newaxis], factors.board[:, np.newaxis])
    A = rate * count
    return A, P, ~is_implausible(P) & np.isfinite(A).all(axis=1) & ~is_implausible(x).any(axis=1)


def _condition(A: Array) -> float:
    """Ratio of the singular values with all columns of length 1; inf where they cannot be distinguished."""
    if 0 in A.shape or A.shape[0] < A.shape[1]:
        return np.inf
    size = np.abs(A).max(axis=0)
    A = A / size
    singular = np.linalg.svd(A / np.linalg.norm(A, axis=0), compute_uv=False)
    return float(singular[0] / singular[-1]) if singular[-1] > 0 else np.inf


def _rms(x: Array) -> float:
    return float(np.sqrt(np.mean(x * x))) if x.size else np.nan
