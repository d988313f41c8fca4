"""Characterization functions of a device: a measured sweep, reduced to knots, and its curve between them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from profsvc.formulas.numerics.arrays import Array, Mask, arrays, flat_floats, floats, is_implausible, mask
from profsvc.formulas.numerics.flags import Flag, check_form
from profsvc.formulas.numerics.series import medians

KINDS = ("pchip", "linear")
TRENDS = ("any", "increasing", "decreasing")


class Characterization(NamedTuple):
    """Knots in ascending order, the samples behind each, the curve they are for, and one mask."""

    knots_x: Array
    knots_y: Array
    samples: NDArray[np.int64]
    kind: str
    flags: Mask


class Evaluated(NamedTuple):
    """Values of the curve."""

    y: Array
    flags: Mask


def fit_characterization(
    x: ArrayLike,
    y: ArrayLike,
    bins: int | ArrayLike | None = None,
    kind: str = "pchip",
    *,
    trend: str = "any",
) -> Characterization:
    r"""Knots of a characterization function: the median of the repeats in each bin of the sweep.

    .. math:: X_b = \mathrm{median}\{x_i : i \in b\} \qquad Y_b = \mathrm{median}\{y_i : i \in b\}

    Source: [FineGrained2016] section III-B names sampling, quantization and interpolation, without formulas; the
    median and the trend are this project's.

    Args:
        x: Sweep variable, flat (share of control statements, bytes, conflict degree) [any].
        y: What was measured, flat [any].
        bins: Number of bins, filled with nearly equal numbers of distinct x; or the edges of the bins; or None for a
            bin per distinct x. Repeats at one x are never parted.
        kind: Curve that `eval_characterization` shall draw: ``pchip`` or ``linear``.
        trend: ``increasing`` or ``decreasing`` makes the knots monotone by isotonic regression, weighted by count.

    Returns: Characterization; empty bins have no knot.

    Range: knots lie within the samples. Samples that are negative, NaN or inf are left out, with INPUT_SUSPECT;
    samples outside the edges likewise, with EXTRAPOLATED.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit, no bin, an unknown kind or trend.

    >>> fit = fit_characterization([1, 1, 1, 2, 4], [1.0, 0.9, 0.2, 0.5, 0.25])
    >>> fit.knots_x.tolist(), fit.knots_y.tolist()
    ([1.0, 2.0, 4.0], [0.9, 0.5, 0.25])
    """
    check_form(kind, KINDS)
    check_form(trend, TRENDS)
    x, y = flat_floats(x=x, y=y)
    bad = is_implausible(x, y)
    x, y = x[~bad], y[~bad]
    bin_of = _bins(x, bins)
    inside = bin_of >= 0
    flags = mask((Flag.INPUT_SUSPECT, bad.any()), (Flag.EXTRAPOLATED, ~inside.all()))
    x, y, bin_of = x[inside], y[inside], bin_of[inside]
    _, codes, count = np.unique(bin_of, return_inverse=True, return_counts=True)
    X, Y = (medians(values, codes, count.size) for values in (x, y))
    if trend != "any":
        Y = _monotone(Y, count, trend)
    return Characterization(X, Y, count.astype(np.int64), kind, flags)


def _bins(x: Array, bins: int | ArrayLike | None) -> NDArray[np.int64]:
    distinct, place = np.unique(x, return_inverse=True)
    if bins is None:
        return np.asarray(place, dtype=np.int64)
    if np.ndim(bins) == 0:
        if not isinstance(bins, int | np.integer) or bins < 1:
            raise ValueError(f"bins is {bins!r}; allowed: a positive integer, edges, or None")
        used = min(int(bins), distinct.size)
        return np.asarray(place * used // max(distinct.size, 1), dtype=np.int64)
    (edges,) = flat_floats(bins=bins)
    if edges.size < 2 or not (np.diff(edges) > 0).all():
        raise ValueError(f"bins has {edges.size} edges; allowed: at least two, in ascending order")
    of = np.searchsorted(edges, x, side="right") - 1
    of[x == edges[-1]] = edges.size - 2
    return np.where(of > edges.size - 2, -1, of)


def _monotone(y: Array, weight: NDArray[np.intp], trend: str) -> Array:
    """Return the nearest monotone sequence in weighted least squares."""
    from scipy.optimize import isotonic_regression

    return np.asarray(isotonic_regression(y, weights=weight, increasing=trend == "increasing").x) if y.size else y


def eval_characterization(knots_x: ArrayLike, knots_y: ArrayLike, x: ArrayLike, kind: str = "pchip") -> Evaluated:
    r"""Value of a characterization function between and beyond its knots.

    .. math:: y = h_{00}(t) y_k + h_{10}(t) h\,d_k + h_{01}(t) y_{k+1} + h_{11}(t) h\,d_{k+1}, \qquad
              t = \frac{x - x_k}{h}, \quad h = x_{k+1} - x_k

    with the cubic Hermite polynomials h_ij and slopes d that keep the curve monotone between any two knots.

    Source: [FritschCarlson1980] for the conditions of monotony, [FritschButland1984] for the slopes (weighted harmonic
    mean of the adjacent slopes, 0 at an extremum); the use for a device: [FineGrained2016] section III-B.

    Args:
        knots_x: Places of the knots, flat, ascending.
        knots_y: Values at the knots.
        x: Where to evaluate, any shape.
        kind: ``pchip`` or ``linear``.

    Returns: Evaluated, in the shape of ``x``.

    Range: between the values of the two knots around x. Beyond the knots the last value holds, with EXTRAPOLATED.
    x negative, NaN or inf, or knots that do not ascend or are not finite: NaN, INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for knots that are not flat or an unknown kind.

    >>> result = eval_characterization([1, 2, 4], [1.0, 0.5, 0.25], [1.5, 2.0, 8.0])
    >>> result.y.round(4).tolist(), result.flags.tolist()
    ([0.6987, 0.5, 0.25], [0, 0, 16])
    """
    check_form(kind, KINDS)
    X, Y = flat_floats(knots_x=knots_x, knots_y=knots_y)
    (at,) = floats(x=x)
    bad = is_implausible(at)
    if X.size == 0 or not (np.isfinite(X).all() and np.isfinite(Y).all() and (np.diff(X) > 0).all()):
        return Evaluated(np.full(at.shape, np.nan), np.full(at.shape, np.uint32(Flag.INPUT_SUSPECT)))
    beyond = (at < X[0]) | (at > X[-1])
    with np.errstate(all="ignore"):
        inside = np.clip(np.where(bad, X[0], at), X[0], X[-1])
        y = Y[np.zeros(at.shape, dtype=np.int64)] if X.size == 1 else _between_knots(X, Y, inside, kind)
    y = np.where(bad, np.nan, y)
    return Evaluated(*arrays(y, mask((Flag.INPUT_SUSPECT, bad), (Flag.EXTRAPOLATED, beyond & ~bad))))


def _between_knots(X: Array, Y: Array, x: Array, kind: str) -> Array:
    k = np.clip(np.searchsorted(X, x, side="right") - 1, 0, X.size - 2)
    low, high = Y[k], Y[k + 1]
    if kind == "linear":
        t = (x - X[k]) / np.diff(X)[k]
        y = low * (1 - t) + high * t
    else:
        from scipy.interpolate import PchipInterpolator

        try:
            y = PchipInterpolator(X, Y)(x)
        except ValueError:  # knots so close that a slope overflows
            y = np.full(x.shape, np.nan)
    # Rounding alone could carry the curve past a knot, or beside the last one.
    y = np.where(x == X[-1], Y[-1], y)
    return np.clip(y, np.minimum(low, high), np.maximum(low, high))


def saturated(knots_y: ArrayLike) -> Array:
    r"""Saturated value of a characterization function: the best the device attains anywhere in the sweep.

    .. math:: F_{sat} = \max_k Y_k

    Source: this project, for [FineGrained2016] section IV-H and V, whose F_DRAMThr and F_ArithThr lack an argument.

    Args:
        knots_y: Values at the knots, on the last axis.

    Returns: the maximum over the last axis.

    Range: NaN if one of them is negative, NaN or inf, or there is none.

    Errors: TypeError for a wrong dtype.

    >>> float(saturated([0.2, 0.7, 0.85, 0.84]))
    0.85
    """
    (Y,) = floats(knots_y=knots_y)
    Y = np.atleast_1d(Y)
    most = Y.max(axis=-1, initial=-np.inf)
    return np.where(is_implausible(Y).any(axis=-1) | np.isneginf(most), np.nan, most)


def median_spread(values: ArrayLike, confidence: float = 0.95) -> float:
    r"""Half-width of the interval of the median of repeats over the median, from order statistics.

    .. math:: s = \frac{x_{(n-k+1)} - x_{(k)}}{2\,\tilde x}, \qquad
              k = \max\{k : P(B_{n, 1/2} < k) \le (1 - p) / 2\}

    with the sorted repeats x_(1) to x_(n). No distribution of the repeats is assumed.

    Source: [Conover1999] section 3.2, the interval of a quantile.

    Args:
        values: Repeats of one measurement, flat [any].
        confidence: Probability p that the interval holds the median [1].

    Returns: the half-width over the median [1].

    Range: NaN with too few repeats for such an interval (below 6 at 0.95), or if one of them is negative, NaN or inf.

    Errors: TypeError for a wrong dtype, ValueError for values that are not flat.

    >>> round(median_spread([9.8, 9.9, 10.0, 10.0, 10.1, 10.1, 10.2]), 3)
    0.02
    >>> median_spread([1.0, 1.1])
    nan
    """
    from scipy.special import bdtr

    (x,) = flat_floats(values=values)
    n = x.size
    k = int(np.searchsorted(bdtr(np.arange(n), n, 0.5), (1 - confidence) / 2, side="right"))
    middle = float(np.median(x)) if n else np.nan
    if k < 1 or is_implausible(x).any() or not middle > 0:
        return float("nan")
    ordered = np.sort(x)
    return float((ordered[n - k] - ordered[k - 1]) / 2 / middle)
