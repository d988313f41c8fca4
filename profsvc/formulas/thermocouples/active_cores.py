"""Cores seen by thermocouples: how much one active core warms its place, which cores share a cluster, which to use."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from profsvc.formulas.numerics.arrays import Array, Bools
from profsvc.formulas.numerics.distributions import NORMAL_975, f_tail

MAX_P_ALIKE = 0.05
MIN_SENSORS = 3


class Contrast(NamedTuple):
    """How far the hottest sensor is above the median one, with its 95 % interval; ``hottest`` is -1 for none."""

    contrast_c: Array
    low_c: Array
    high_c: Array
    hottest: NDArray[np.int64]


class Partners(NamedTuple):
    """The core with the most similar map of each core; -1 for none.

    ``difference_c`` is the root mean square difference of the two maps, ``next_difference_c`` that to the second most
    similar core, ``probability`` that the two differences are equal but for noise. ``paired``: each is the partner of
    the other, and the probability is below 5 %.
    """

    partner: NDArray[np.int64]
    correlation: Array
    difference_c: Array
    next_difference_c: Array
    probability: Array
    paired: Bools


def core_contrast(rise_c: ArrayLike, error_c: ArrayLike) -> Contrast:
    r"""How much an active core warms its place above the rest of the die.

    .. math:: \Delta_c = \max_k r_{ck} - \operatorname{median}_k r_{ck}

    Source: [Hong2012] section 4.5.2: an active core is about 5 degC above its surroundings; the interval is this
    project's.

    Args:
        rise_c: Rise of each sensor over the idle die, of shape (C, K): one row per core [degC]; NaN is no value.
        error_c: Standard errors, of the same shape [degC].

    Returns: Contrast, each of length C.

    Range: from 0; NaN with fewer than three sensors.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    >>> found = core_contrast([[1.0, 1.0, 6.0, 1.0]], [[0.1, 0.1, 0.1, 0.1]])
    >>> found.contrast_c.tolist(), found.low_c.round(2).tolist(), found.hottest.tolist()
    ([5.0], [4.72], [2])
    """
    rise, error = _maps(rise_c, error_c)
    known = np.isfinite(rise)
    enough = known.sum(axis=1) >= MIN_SENSORS
    hottest = np.where(enough, np.argmax(np.where(known, rise, -np.inf), axis=1), -1)
    middle = np.array([np.median(row[ok]) if ok.any() else np.nan for row, ok in zip(rise, known, strict=True)])
    rows = np.arange(len(rise))
    count = np.maximum(known.sum(axis=1), 1)
    spread = np.where(known, np.nan_to_num(error), 0.0) ** 2
    # Where the sensors differ by more than their noise, the median has the error of one of them.
    se = np.sqrt(spread[rows, hottest] + spread.sum(axis=1) / count)
    contrast = np.where(enough, rise[rows, hottest] - middle, np.nan)
    return Contrast(contrast, contrast - NORMAL_975 * se, contrast + NORMAL_975 * se, hottest)


def pair_cores(rise_c: ArrayLike) -> Partners:
    r"""Which cores have the same map, so that they belong to one cluster.

    .. math:: d_{ij} = \sqrt{\tfrac1K \textstyle\sum_k (r_{ik} - r_{jk})^2}, \qquad
              p = P\bigl(F_{K,K} > (d_2/d_1)^2\bigr)

    Source: [Hong2012] section 4.5.2 and figure 88, which compares pictures: the maps of cores 0 and 7, 1 and 8, ... are
    alike; the test is this project's.

    Args:
        rise_c: Rise of each sensor over the idle die, of shape (C, K): one row per core [degC].

    Returns: Partners, each of length C.

    Range: without partners for fewer than three cores or common sensors: nothing to compare a pair with.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    >>> maps = [[5.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 5.0], [5.1, 1.0, 0.1, 0.0], [0.1, 0.0, 1.1, 5.0]]
    >>> found = pair_cores(maps)
    >>> found.partner.tolist(), found.paired.tolist()
    ([2, 3, 0, 1], [True, True, True, True])
    """
    rise, _ = _maps(rise_c, 0.0)
    rise = rise[:, np.isfinite(rise).all(axis=0)]
    cores, sensors = rise.shape
    if cores < 3 or sensors < MIN_SENSORS:
        unknown = np.full(cores, np.nan)
        nobody = np.full(cores, -1, dtype=np.int64)
        return Partners(nobody, unknown, unknown, unknown, unknown, np.zeros(cores, dtype=np.bool_))
    apart = np.sqrt(np.mean((rise[:, np.newaxis] - rise) ** 2, axis=2))
    np.fill_diagonal(apart, np.inf)
    order = np.argsort(apart, axis=1, kind="stable")
    rows = np.arange(cores)
    partner = order[:, 0]
    first, second = apart[rows, partner], apart[rows, order[:, 1]]
    inner = rise - rise.mean(axis=1, keepdims=True)
    with np.errstate(all="ignore"):
        size = np.sqrt((inner**2).sum(axis=1))
        correlation = (inner * inner[partner]).sum(axis=1) / (size * size[partner])
        ratio = np.where(first > 0, (second / first) ** 2, np.inf)
    p = np.array([f_tail(float(one), sensors, sensors) if np.isfinite(one) else 0.0 for one in ratio])
    paired = (partner[partner] == rows) & (p < MAX_P_ALIKE)
    return Partners(partner.astype(np.int64), correlation, first, second, p, paired)


class HotSpots(NamedTuple):
    """Highest predicted temperature of each set of cores, and the sensor that shows it."""

    temperature_c: Array
    sensor: NDArray[np.int64]


def predicted_hot_spots(idle_c: ArrayLike, rise_c: ArrayLike, options: ArrayLike) -> HotSpots:
    r"""Hot spot of the die with several active cores, from the maps of each alone.

    .. math:: T_{hot}(S) = \max_k \Bigl(T_{idle,k} + \sum_{c \in S} r_{ck}\Bigr)

    Heat conduction is linear, so that the rises of cores add up as long as their power does.

    Source: no paper; [Hong2012] section 4.6 compares measured sets.

    Args:
        idle_c: Temperature of each sensor on the idle die, of length K [degC].
        rise_c: Rise by each core alone, of shape (C, K) [degC].
        options: Sets of cores by row of ``rise_c``, integers of shape (M, n).

    Returns: HotSpots, each of length M; sensors that do not read in all maps are left out.

    Range: NaN and -1 where no sensor reads in all maps.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    >>> found = predicted_hot_spots([40.0, 40.0], [[5.0, 1.0], [1.0, 5.0], [4.0, 1.0]], [[0, 1], [0, 2]])
    >>> found.temperature_c.tolist(), found.sensor.tolist()
    ([46.0, 49.0], [0, 0])
    """
    rise, _ = _maps(rise_c, 0.0)
    idle = np.asarray(idle_c, np.float64)
    sets = np.asarray(options)
    if sets.dtype.kind not in "iu" or sets.ndim != 2:
        raise ValueError(f"options has dtype {sets.dtype} and {sets.ndim} axes; allowed: integers of shape (M, n)")
    if idle.shape != rise.shape[1:]:
        raise ValueError(f"idle_c has shape {idle.shape}; allowed: {rise.shape[1:]}, a value per sensor")
    known = np.isfinite(rise).all(axis=0) & np.isfinite(idle)
    if not known.any():
        return HotSpots(np.full(len(sets), np.nan), np.full(len(sets), -1))
    T = np.tile(idle[known], (len(sets), 1))
    for column in sets.T:
        T += rise[column][:, known]
    sensor = np.flatnonzero(known)[np.argmax(T, axis=1)]
    return HotSpots(T.max(axis=1), sensor)


def _maps(rise_c: ArrayLike, error_c: ArrayLike) -> tuple[Array, Array]:
    rise = np.asarray(rise_c)
    if rise.dtype.kind not in "fiu":
        raise TypeError(f"rise_c has dtype {rise.dtype}; allowed: numbers")
    if rise.ndim != 2:
        raise ValueError(f"rise_c has {rise.ndim} axes; allowed: (C, K), one row per core")
    return rise.astype(np.float64), np.broadcast_to(np.asarray(error_c, np.float64), rise.shape)
