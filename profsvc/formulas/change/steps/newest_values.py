"""Where the newest values of siblings begin that may have a level of their own, and say nothing of the noise."""

import numpy as np

from profsvc.formulas.numerics.arrays import Array
from profsvc.formulas.numerics.series import Index, Series, Sums, codes_of, lengths, moments_between, running_sums

USUAL_VALUES = 5  # of a series that may have a level of their own
NIGHTS = (2, 3, 4, 5, 6, 7, 8)  # where siblings say so
CHANCE_GAIN = 0.5  # of the logarithm of the likelihood of a sibling, by a fitted parameter that is none


def newest_splits(series: Series, family: Index, when: Index | None = None) -> Index:
    r"""Return the split of each series after which it may have another level, in the same night for all siblings.

    .. math:: \hat k = \arg\min_k \sum_s \frac{n_s}{2} \ln S_{s,k}

    S is the sum of squares of a series about its two levels. A driver or a clock changes all siblings in one night. If
    the split were elsewhere, values on both sides of the change would stand on one side, and all siblings would say
    that their values depend on each other. The night is one parameter of the whole family, which no series fits to
    itself. Without such a night, which must be more probable by more than each sibling would gain by chance, the newest
    five values of each series may have a level of their own, however many nights were left out between them.

    Source: own model; most probable night of a common step in normal noise.

    Args:
        series: Values.
        family: Number of the family of each series.
        when: Number of the night of each value; None: its place from the end of its series.

    Returns: position of the first value after the split of each series, at least one before its end and no more than
        half of its values.

    Range: five values before the end, or half of the values, where nothing speaks for a night.

    Twenty series that changed three nights ago:

    >>> x = np.random.default_rng(1).standard_normal((20, 12))
    >>> x[:, 9:] += 3.0
    >>> every = Series(x.ravel(), x.ravel() * 0, np.arange(240), np.arange(0, 240, 12), np.arange(12, 252, 12))
    >>> np.unique(every.stop - newest_splits(every, np.zeros(20, dtype=np.intp))).tolist()
    [3]
    """
    n = lengths(series)
    usual = _splits(series, family, USUAL_VALUES, None)
    tried = np.stack([usual, *(_splits(series, family, nights, when) for nights in NIGHTS)])
    sums = running_sums(series.x)
    filled = n > 1
    squares = np.full(tried.shape, np.nan)
    for number, split in enumerate(tried):
        sides = (series.start[filled], split[filled]), (split[filled], series.stop[filled])
        squares[number, filled] = sum(_square(sums, a, b) for a, b in sides)
    said = (squares > 0).all(axis=0)
    with np.errstate(all="ignore"):
        cost = np.where(said, n / 2.0 * np.log(squares), 0.0)
    of_family = np.stack([np.bincount(family, row) for row in cost])
    best = of_family.argmin(axis=0)
    best[of_family[0] - of_family.min(axis=0) <= CHANCE_GAIN * np.bincount(family, said)] = 0
    return np.asarray(tried[best[family], np.arange(n.size)])


def _square(sums: Sums, a: Index, b: Index) -> Array:
    return np.asarray(moments_between(sums, a, b)[1])


def _splits(series: Series, family: Index, nights: int, when: Index | None) -> Index:
    half = series.stop - np.maximum(lengths(series) // 2, 1)
    if when is None:
        return np.maximum(series.stop - nights, half)
    newest = np.zeros(int(family.max(initial=0)) + 1, dtype=np.intp)
    filled = lengths(series) > 0
    np.maximum.at(newest, family[filled], when[series.stop[filled] - 1])
    since = newest[family] - nights + 1
    codes = codes_of(series)
    later = np.bincount(codes, when >= since[codes], filled.size).astype(np.intp)
    return np.asarray(np.clip(series.stop - later, half, np.maximum(series.stop - 1, half)))
