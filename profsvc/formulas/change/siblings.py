"""What the siblings of a series say of it before its own values: how usual each of some possibilities is."""

import numpy as np

from profsvc.formulas.numerics.arrays import Array
from profsvc.formulas.numerics.series import Index

# Equally probable before the data: the autocorrelation of a series is unknown.
AUTOCORRELATIONS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.975)
MIN_SIBLINGS = 10  # series that say what is usual among them
MAX_STEPS = 100  # of the estimate of how frequent each possibility is
SURE_CHANGE = 1e-3  # of a share, below which the estimate is done


def flat_prior(series: int, possibilities: int = len(AUTOCORRELATIONS)) -> Array:
    """Equal probabilities for series of which nothing is known.

    Source: definition.

    Args:
        series: Number of series.
        possibilities: Number of possibilities, such as those of `AUTOCORRELATIONS`.

    Returns: the probabilities, of shape (series, possibilities) [1].

    Range: rows add up to 1.

    >>> flat_prior(1, 4).tolist()
    [[0.25, 0.25, 0.25, 0.25]]
    """
    return np.full((series, possibilities), 1.0 / possibilities)


def sibling_prior(log_likelihood: Array, family: Index) -> Array:
    r"""Probability of each possibility among the siblings of a series, such as of each of `AUTOCORRELATIONS`.

    .. math:: w_r \leftarrow \frac{\frac{1}{R} + \sum_s \frac{w_r L_s(r)}{\sum_q w_q L_s(q)}}{1 + S}

    One series says little of its own autocorrelation, a hundred of one suite say it well, though each is short. The
    shares are those that make the values of all siblings most probable; one sibling more, of which all is possible,
    keeps each above 0.

    Source: own model; nonparametric maximum likelihood after [Laird1978].

    Args:
        log_likelihood: Logarithm of the likelihood of each possibility, of shape (series, possibilities) [1]; NaN in
            the row of a series that says nothing.
        family: Number of the family of each series.

    Returns: the probabilities, of the same shape; equal ones for families of fewer than ten series.

    Range: rows add up to 1.

    Twenty series that are most probably independent:

    >>> likelihood = np.tile(-np.arange(11.0), (20, 1))
    >>> prior = sibling_prior(likelihood, np.zeros(20, dtype=np.intp))
    >>> float(prior[0, 0].round(2))
    0.95
    """
    prior = flat_prior(*log_likelihood.shape)
    known = np.isfinite(log_likelihood).all(axis=1)
    flat = prior[:1].sum(axis=0)
    for number in np.unique(family[known]):
        own = log_likelihood[known & (family == number)]
        if len(own) < MIN_SIBLINGS:
            continue
        likelihood = np.exp(own - own.max(axis=1, keepdims=True))
        weight = flat
        for _ in range(MAX_STEPS):
            share = likelihood * weight
            share /= share.sum(axis=1, keepdims=True)
            newer = (share.sum(axis=0) + flat) / (len(share) + 1.0)
            moved = np.abs(newer - weight).max()
            weight = newer
            if moved < SURE_CHANGE:
                break
        prior[family == number] = weight
    return prior
