"""Which units and which law of active SMs predict the power of kernels best: chosen by leave-one-out prediction."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from profsvc.formulas.numerics.arrays import Array, Bools, Mask, arrays, flat_floats, floats, is_implausible, mask
from profsvc.formulas.numerics.flags import Flag, check_form
from profsvc.formulas.numerics.regression import is_better_than_constant
from profsvc.formulas.power.component_power import BETA, LAWS, active_factors
from profsvc.formulas.power.max_power import MIN_RUNS

RATES_OF = ("device", "sm")
MAX_COLUMNS = 12  # all subsets are tried
MAX_FOLDS = 60
MAX_NUMBER = 1e100  # squares of larger ones are infinite
MAX_LEVERAGE = 1 - 1e-9  # a run that alone decides a coefficient cannot be predicted without it

Place = NDArray[np.intp]


class UnitChoice(NamedTuple):
    """The law and units chosen, their power, and the errors of four ways to predict kernels left out.

    Columns: ``base`` (always drawn), ``active`` (the SMs that work, by the law), then the units.
    """

    law: str
    coefficients_w: Array
    left_out_w: Array
    nested_w: Array
    constant_w: Array
    regression_w: Array
    left_out_rms_w: Array
    nested_rms_w: Array
    constant_rms_w: Array
    regression_rms_w: Array
    beats_constant: NDArray[np.bool_]
    folds: NDArray[np.int64]
    flags: Mask


class _Fit(NamedTuple):
    law: str
    columns: tuple[int, ...]
    coefficients: Array
    errors: Array


@np.errstate(all="ignore")
def choose_units(
    rates: ArrayLike,
    power_w: ArrayLike,
    active_sms: ArrayLike,
    num_sms: float,
    kernels: Sequence[str] = (),
    *,
    rates_of: str = "device",
    base: bool = True,
    beta: float = BETA,
) -> UnitChoice:
    r"""Choose law and units of a model of power by the errors on kernels left out.

    .. math:: P = B + g(n)\,A + \sum_c g(n)\, x_c M_c, \qquad x_c = r_c \text{ of a working SM, or } r_c N/n \text{ of
              all}

    with g of `active_factors`: under the linear law a rate of the whole device enters as it is. Every subset of base,
    active SMs and units whose coefficients are positive is tried under both laws; the least sum of squared errors on
    kernels left out wins. That error is too small, because the choice saw all kernels. ``nested_w`` are the errors
    where law and units are chosen without the kernel as well: only these may be claimed.

    Source: equations (36) to (48) of [Hong2012] for the model; choice by prediction: [Stone1974].

    Args:
        rates: Access rates, one row per run and one column per unit [1 or any unit].
        power_w: Power of each run; above rest where ``base`` is false [W].
        active_sms: SMs that worked; NaN: all of them [count].
        num_sms: SMs of the device, N [count].
        kernels: Name of the kernel of each run; runs of one kernel are left out together. Empty: each its own.
        rates_of: ``device``: means over all SMs, as profilers print them; ``sm``: rates of an SM that works.
        base: Whether power at rest is part of the power.
        beta: Parameter of the logarithmic law [1].

    Returns: UnitChoice. ``coefficients_w`` is 0 for what was not chosen. Errors are predicted minus measured power,
    NaN for runs not used; ``constant_w`` is the mean of the others, ``regression_w`` least squares on all columns.
    With more than 60 kernels ``nested_w`` leaves out several at a time, in ``folds`` parts.

    Range: any. INPUT_SUSPECT for fewer than 10 kernels, and for runs left out because a number is negative, NaN or
    inf. Without any subset that can be fitted the law is empty.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit or more than 10 units.

    Twelve kernels whose power is 50 W, 100 W by the active SMs and 80 W of the first of two units:

    >>> rates = np.random.default_rng(1).uniform(0, 1, (12, 2))
    >>> sms = np.tile([10.0, 20.0, 30.0], 4)
    >>> power = 50 + np.log10(8.9 / 30 * sms + 1.1) * (100 + 80 * rates[:, 0])
    >>> found = choose_units(rates, power, sms, 30, rates_of="sm")
    >>> found.law, found.coefficients_w.round(3).tolist()
    ('log', [50.0, 100.0, 80.0, 0.0])
    """
    check_form(rates_of, RATES_OF)
    (x,) = floats(rates=rates)
    if x.ndim != 2 or x.shape[1] + 2 > MAX_COLUMNS:
        raise ValueError(f"rates has shape {x.shape}; allowed: (runs, units) with at most {MAX_COLUMNS - 2} units")
    P, n = (np.broadcast_to(a, x.shape[:1]) for a in flat_floats(power_w=power_w, active_sms=active_sms))
    n = np.where(np.isnan(n), num_sms, n)
    designs = {law: _design(law, x, n, num_sms, rates_of, beta, base=base) for law in LAWS}
    used = ~is_implausible(P) & ~is_implausible(x).any(axis=1) & ~is_implausible(n) & (n > 0)
    used &= np.all([(A < MAX_NUMBER).all(axis=1) for A in (*designs.values(), P[:, np.newaxis])], axis=0)
    designs = {law: A[used] for law, A in designs.items() if law == "linear" or (n[used] != num_sms).any()}
    names = np.unique(np.array(kernels if len(kernels) else range(len(P)), dtype=str)[used], return_inverse=True)[1]
    power = P[used]
    whole = _best(designs, power, names)
    fold_of, folds = (names, names.max() + 1) if names.size else (names, 0)
    if folds > MAX_FOLDS:
        fold_of, folds = names % MAX_FOLDS, MAX_FOLDS
    nested = _left_out(power, fold_of, lambda kept: _chosen_prediction(designs, power, names, kept))
    constant = _left_out(power, names, lambda kept: np.full(power.shape, power[kept].mean()))
    line = designs["linear"]
    plain = _left_out(power, names, lambda kept: line @ np.linalg.lstsq(line[kept], power[kept], rcond=None)[0])
    found = []
    for errors in (whole.errors, nested, constant, plain):
        each = np.full(P.shape, np.nan)
        each[used] = errors
        found.append(each)
    rms = [np.sqrt(np.mean(e[used] ** 2)) if used.any() else np.nan for e in found]
    coefficients = np.zeros(x.shape[1] + 2)
    coefficients[list(whole.columns)] = whole.coefficients
    weak = folds < MIN_RUNS or not used.all()
    better = is_better_than_constant(nested, constant)
    return UnitChoice(
        whole.law, *arrays(coefficients, *found, *rms, better, np.int64(folds), mask((Flag.INPUT_SUSPECT, weak)))
    )


def _design(law: str, x: Array, n: Array, num_sms: float, rates_of: str, beta: float, *, base: bool) -> Array:
    """Columns of the model: base, active SMs, units; a column without effect is zero."""
    g = active_factors(n, num_sms, law, beta).sm
    active = np.zeros_like(g) if base and (g == g[:1]).all() else g
    scale = g * num_sms / n if rates_of == "device" else g
    return np.column_stack([np.full(g.shape, float(base)), active, x * scale[:, np.newaxis]])


def _best(designs: dict[str, Array], P: Array, groups: Place) -> _Fit:
    """Return the law and the columns with the least squared errors on groups left out."""
    best, least = _Fit("", (), np.empty(0), np.full(P.shape, np.nan)), np.inf
    for law, A in designs.items():
        size = np.abs(A).max(axis=0, initial=0.0)
        columns = np.flatnonzero(size > 0)
        B = A[:, columns] / size[columns]
        for count in range(1, min(len(columns), len(P) - 1) + 1):
            subsets = _subsets(len(columns), count)
            coefficients, errors = _subset_fits(B, P, groups, subsets)
            loss = np.where(np.isnan(errors).any(axis=1), np.inf, (errors**2).sum(axis=1))
            k = int(loss.argmin())
            if loss[k] < least * (1 - 1e-9):  # equal errors: fewer columns, the linear law
                chosen = columns[subsets[k]]
                least = float(loss[k])
                best = _Fit(law, tuple(chosen.tolist()), coefficients[k] / size[chosen], errors[k])
    return best


def _subsets(size: int, count: int) -> Place:
    """Return all choices of ``count`` of the first ``size`` whole numbers, one per row.

    >>> _subsets(3, 2).tolist()
    [[0, 1], [0, 2], [1, 2]]
    """
    chosen = (np.arange(2**size)[:, np.newaxis] >> np.arange(size)) & 1
    return np.nonzero(chosen[chosen.sum(axis=1) == count])[1].reshape(-1, count)


def _subset_fits(B: Array, P: Array, groups: Place, subsets: Place) -> tuple[Array, Array]:
    """Least squares of each subset of columns, and errors with a group left out; NaN where a coefficient is not > 0."""
    X = np.moveaxis(B[:, subsets], 1, 0)
    gram = np.swapaxes(X, 1, 2) @ X
    sound = np.linalg.cond(gram) < 1 / np.finfo(float).eps
    inverse = np.full(gram.shape, np.nan)
    inverse[sound] = np.linalg.inv(gram[sound])
    coefficients = (inverse @ (np.swapaxes(X, 1, 2) @ P)[..., np.newaxis])[..., 0]
    residual = (X @ coefficients[..., np.newaxis])[..., 0] - P
    if len(np.unique(groups)) == len(groups):
        leverage = np.einsum("sij,sjk,sik->si", X, inverse, X)
        errors = np.where(leverage < MAX_LEVERAGE, residual / (1 - leverage), np.nan)
    else:
        errors = np.full(residual.shape, np.nan)
        for group in np.unique(groups):
            own = np.flatnonzero(groups == group)
            rest = np.eye(len(own)) - X[:, own] @ inverse @ np.swapaxes(X[:, own], 1, 2)
            fine = sound & (np.linalg.cond(np.where(np.isnan(rest), 0, rest)) < 1 / (1 - MAX_LEVERAGE))
            errors[np.ix_(fine, own)] = np.linalg.solve(rest[fine], residual[np.ix_(fine, own)][..., np.newaxis])[
                ..., 0
            ]
    return coefficients, np.where((coefficients > 0).all(axis=1, keepdims=True), errors, np.nan)


def _chosen_prediction(designs: dict[str, Array], P: Array, groups: Place, kept: Bools) -> Array:
    """Predict all runs by what is chosen from those that are kept."""
    fit = _best({law: A[kept] for law, A in designs.items()}, P[kept], groups[kept])
    return designs[fit.law][:, fit.columns] @ fit.coefficients if fit.law else np.full(P.shape, np.nan)


def _left_out(P: Array, groups: Place, predict: Callable[[Bools], Array]) -> Array:
    """Errors of each group as predicted without it."""
    errors = np.full(P.shape, np.nan)
    for group in np.unique(groups):
        kept = groups != group
        if kept.any():
            errors[~kept] = predict(kept)[~kept] - P[~kept]
    return errors
