"""Steps of a series while its board is in another state, in which values scatter more."""

from typing import NamedTuple

import numpy as np

from profsvc.formulas.change.levels.level_visits import largest_last_probability
from profsvc.formulas.change.levels.stretches import Stretches, stretch_probability
from profsvc.formulas.change.night_states import MIN_SERIES
from profsvc.formulas.numerics.arrays import Array, Bools


class Beyond(NamedTuple):
    """Values of a series in the other state, on the side of the calm level that this state does not go to."""

    side: float  # where the state goes: 1 above the calm level, -1 below, 0 to both or neither
    values: Bools  # which of the values of the state lie beyond the calm level on the other side


def beyond_calm(calm: Array, other: Array, newest: int, bound: float) -> Beyond:
    """Return which values lie on the side of the calm level that the other state does not go to.

    Source: own model.

    Args:
        calm: Values of calm nights, of shape (n,) [any].
        other: Values of the other nights in order, of shape (m,) [as the calm ones].
        newest: How many of these may have a level of their own, and say nothing of the state.
        bound: Least distance from the calm level that counts [as the value].

    Returns: Beyond.

    Range: side is 0, and no value is beyond, where the older ones do not have a median as far from the calm level.

    A low clock makes a kernel slower; two nights faster than calm ones are not its work:

    >>> beyond_calm(np.array([10.0, 10.1, 9.9]), np.array([11.0, 12.0, 13.0, 9.0, 9.2]), 2, 0.3)
    Beyond(side=1.0, values=array([False, False, False,  True,  True]))
    """
    away = other - float(np.median(calm))
    usual = float(np.median(away[: away.size - newest])) if away.size > newest else 0.0
    side = float(np.sign(usual)) if abs(usual) >= bound else 0.0
    return Beyond(side, side * away <= -bound if side else np.zeros(other.size, dtype=np.bool_))


def beyond_probability(run: int, older: int, siblings: tuple[int, int, int]) -> float:
    r"""Probability that newest values are beyond all older ones, where the state of the board does not bring them.

    .. math:: P = \max\left(2\, \frac{m!\, n!}{(m + n)!},\ P_{stretch}(m)\right)

    A board at its power limit makes kernels slower, by another share each night. Whether values are lower than in other
    such nights takes many of them; that they are lower than in any night, calm ones too, does not come from the state.

    Source: own model; chance of places, and `stretch_probability` of what siblings do in such nights.

    Args:
        run: Newest values m that are beyond.
        older: Values n of before, of both states.
        siblings: Values of all series in such nights, but for this run; how many stretches of them are beyond; how many
            values these have beside their first.

    Returns: the probability [1].

    Range: 0 to 1.

    Five nights faster than 22 before, where 200 values of siblings in such nights never are:

    >>> round(beyond_probability(5, 22, (200, 0, 0)), 4)
    0.0007
    """
    by_place = 2.0 * float(largest_last_probability(np.array(float(run)), np.array(float(older))))
    counts = Stretches(*(np.array([float(each)]) for each in siblings))
    return min(1.0, max(by_place, float(stretch_probability(counts, np.array([[float(run)]]))[0, 0])))


def without_common(x: Array, newest: int) -> tuple[Array, Array, Array]:
    r"""Return values of siblings in units of their noise, and the same without what they have in common in each night.

    .. math:: z_{st} = \frac{\ln x_{st} - \overline{\ln x_s}}{s_s}, \qquad e_{st} = z_{st} - \mathrm{med}_r z_{rt}

    How far a board is beyond its limit differs from night to night, and moves all series: each by what it usually moves
    in such nights, s. Mean and s are those of the nights before the newest ones.

    Source: own model.

    Args:
        x: Values of nights in the other state, of shape (series, nights) [any positive]; NaN where one is missing.
        newest: Last columns that may have a level of their own.

    Returns: z and e, of the same shape [1]; s, of shape (series,) [1].

    Range: NaN for series with fewer than three older values, or equal ones; e is NaN in nights of fewer than ten
    series.

    Twelve series that move together in each night; one of them is slower in the newest three:

    >>> night = np.random.default_rng(1).standard_normal(12)
    >>> x = np.exp(0.01 * night * np.arange(1, 13)[:, np.newaxis])
    >>> x[0, -3:] *= 1.05
    >>> z, e, _ = without_common(x, 3)
    >>> bool(np.abs(e[:, :-3]).max() < 1e-9), bool((e[0, -3:] > 4.0).all())
    (True, True)
    """
    logs = np.log(x)
    older = logs[:, : logs.shape[1] - newest]
    known = np.isfinite(older).sum(axis=1, keepdims=True)
    with np.errstate(all="ignore"):
        mean = np.where(np.isfinite(older), older, 0.0).sum(axis=1, keepdims=True) / known
        square = np.where(np.isfinite(older), older - mean, 0.0) ** 2
        sd = np.sqrt(square.sum(axis=1, keepdims=True) / (known - 1.0))
        z = np.where((known >= 3) & (sd > 0), (logs - mean) / sd, np.nan)
    common = np.full(x.shape[1], np.nan)
    enough = np.isfinite(z).sum(axis=0) >= MIN_SERIES
    if enough.any():
        common[enough] = np.nanmedian(z[:, enough], axis=0)
    return z, z - common, sd[:, 0]
