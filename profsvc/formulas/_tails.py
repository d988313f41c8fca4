"""Tails of the normal and of Student's distribution, and scores of ranks."""

import numpy as np
from numpy.typing import ArrayLike

from profsvc.formulas._arrays import Array


def normal_tail(z: ArrayLike) -> Array:
    """Probability that a standard normal number exceeds z."""
    from scipy.special import ndtr

    return np.asarray(ndtr(-np.asarray(z, dtype=np.float64)))


def student_tail(t: ArrayLike, df: ArrayLike) -> Array:
    """Probability that a number of Student's distribution exceeds t; NaN where df is not positive."""
    from scipy.special import stdtr

    return np.asarray(stdtr(df, -np.asarray(t, dtype=np.float64)))


def normal_scores(u: Array) -> Array:
    """Normal quantiles of probabilities inside (0, 1)."""
    from scipy.special import ndtri

    return np.asarray(ndtri(u))
