"""What the siblings of a series say of it before its own values: how usual each of some possibilities is."""

from typing import NamedTuple, Self

import numpy as np

from profsvc.formulas.numerics.arrays import Array, Bools
from profsvc.formulas.numerics.series import Index

# Equally probable before the data: the autocorrelation of a series is unknown.
AUTOCORRELATIONS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.975)
# Degrees of freedom with which siblings may know the variance of a series; 0: they do not.
VARIANCE_DF = (0.0, 1.0, 4.0, 16.0, 64.0, 256.0)
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


class NoisePrior(NamedTuple):
    """What siblings say of the noise of each series: the probability of some laws."""

    rho: Array  # autocorrelation of each law
    df: Array  # degrees of freedom with which its variance is known
    weight: Array  # probability of each law, of shape (series, laws)
    square: Array  # sum of squares that siblings add to that of the series, likewise, in the unit of its values squared
    known: Bools  # whether siblings say anything, of shape (series,)
    by_value: Bools  # whether they know the variance better than the series itself does, likewise

    def of(self, series: Index | Bools | slice) -> Self:
        """Return the rows of some series."""
        return self._replace(
            weight=self.weight[series],
            square=self.square[series],
            known=self.known[series],
            by_value=self.by_value[series],
        )

    def in_units(self, unit: Array) -> Self:
        """Return the same for values in other units, of each series."""
        return self._replace(square=self.square / unit[:, np.newaxis] ** 2)


def flat_noise(series: int) -> NoisePrior:
    """Noise of series of which nothing is known: any of `AUTOCORRELATIONS`, and any variance.

    Source: definition.

    Args:
        series: Number of series.

    Returns: NoisePrior.

    Range: as `NoisePrior`.

    >>> flat_noise(1).weight.sum().round(6), int((flat_noise(1).weight > 0).sum())
    (np.float64(1.0), 11)
    """
    rho, df = (part.ravel() for part in np.meshgrid(AUTOCORRELATIONS, VARIANCE_DF, indexing="ij"))
    weight = np.tile(np.where(df > 0, 0.0, 1.0 / len(AUTOCORRELATIONS)), (series, 1))
    return NoisePrior(rho, df, weight, np.zeros((series, rho.size)), *np.zeros((2, series), dtype=np.bool_))


def sibling_noise(left: Array, constant: Array, free: Array, level: Array, family: Index) -> NoisePrior:
    r"""Noise of each series as its siblings say.

    .. math:: p(S \mid \rho, d) \propto \frac{\Gamma((\nu + d)/2)}{\Gamma(d/2)}
              \frac{(d s_\rho^2)^{d/2}}{(S + d s_\rho^2)^{(\nu + d)/2}}

    S is the sum of squares of the innovations of a series with nu degrees of freedom. Among siblings its variance has
    the distribution of s^2 d / chi^2(d): with many degrees of freedom d they have one variance, with few each has its
    own. The median of the siblings gives s^2 for each d. The noise is in proportion to the level of a series, or as
    large for all siblings, whichever makes their values more probable. Where the mean of d is below nu, the series
    knows its variance better itself, and siblings say its autocorrelation alone.

    Source: [Smyth2004]; own model for the distribution of d and rho, by `sibling_prior`.

    Args:
        left: S for each of `AUTOCORRELATIONS`, of shape (series, autocorrelations) [square of the value]; NaN or 0 in
            the row of a series that says nothing.
        constant: Logarithm of the likelihood but for S, likewise [1].
        free: Degrees of freedom, of shape (series,).
        level: Level of each series, likewise [as the value].
        family: Number of the family of each series.

    Returns: NoisePrior; that of `flat_noise` for families of fewer than ten series.

    Range: rows of weights add up to 1.

    Twenty independent series of one variance:

    >>> left = np.linspace(8.0, 12.0, 20)[:, np.newaxis] * (1.0 + np.array(AUTOCORRELATIONS))
    >>> noise = sibling_noise(left, left * 0, np.full(20, 10.0), np.ones(20), np.zeros(20, dtype=np.intp))
    >>> bool(noise.weight[0][noise.df >= 16].sum() > 0.9), bool(noise.known.all())
    (True, True)
    """
    out = flat_noise(free.size)
    said = (np.isfinite(left) & (left > 0)).all(axis=1)
    for number in np.unique(family[said]).tolist():
        members = family == number
        own = said & members
        if own.sum() < MIN_SIBLINGS:
            continue
        law = np.flatnonzero(out.df > 0)
        scales = [np.ones(level.size)] + [np.abs(level)] * bool((level[members] != 0).all())
        tried = [laws_of_siblings(left[own], constant[own], free[own], scale[own]) for scale in scales]
        best = int(np.argmax([one[0] for one in tried]))
        _, weight, square = tried[best]
        out.known[members] = True
        out.weight[members] = np.where(out.df > 0, 0.0, _by_autocorrelation(weight).repeat(len(VARIANCE_DF)))
        better = members & (weight @ out.df[law] >= free)
        out.by_value[better] = True
        out.weight[better] = 0.0
        out.weight[np.ix_(better, law)] = weight
        out.square[np.ix_(better, law)] = square * scales[best][better][:, np.newaxis] ** 2
    return out


def _by_autocorrelation(weight: Array) -> Array:
    return np.asarray(weight.reshape(len(AUTOCORRELATIONS), -1).sum(axis=1))


def laws_of_siblings(left: Array, constant: Array, free: Array, scale: Array) -> tuple[float, Array, Array]:
    r"""How probable the values of siblings are, and the weight and the sum of squares of each law of their variance.

    .. math:: \ln L = c + \ln\Gamma\frac{n + \nu}{2} - \ln\Gamma\frac{\nu}{2} + \frac{\nu}{2} \ln Q_\nu
              - \frac{n + \nu}{2} \ln\Bigl(\frac{S}{l^2} + Q_\nu\Bigr) - n \ln l

    for a sum of squares S with n degrees of freedom: the variances of siblings, in units of the squared scale l, have
    an inverse chi-square distribution with \nu degrees of freedom, whose median is that of the siblings. It gives
    Q_\nu. The weights are those of `sibling_prior`.

    Source: own model; the distribution of the variance is that of [Smyth2004].

    Args:
        left: Sums of squares S, a row for each series, a column for each dependence that values may have on each other
            [value^2].
        constant: Logarithm c of the likelihood but for S, of the same shape [1].
        free: Degrees of freedom n, of shape (series,).
        scale: Scale l of each series, likewise: 1, or its level [value].

    Returns: logarithm of the probability of all values under the weighted laws [1]; the weights, of shape (laws,) [1];
    the sums Q of the laws, likewise [value^2 / scale^2].

    Range: weights add up to 1. For each column of ``left`` there are as many laws as `VARIANCE_DF` has entries above 0.

    Twenty series of one variance: most probable is the law that says it best.

    >>> _, weight, _ = laws_of_siblings(np.full((20, 1), 10.0), np.zeros((20, 1)), np.full(20, 10.0), np.ones(20))
    >>> VARIANCE_DF[1:][int(weight.argmax())], round(float(weight.max()), 2)
    (256.0, 0.75)
    """
    from scipy.special import chdtri, gammaln

    n, of_unit = free[:, np.newaxis], left / scale[:, np.newaxis] ** 2
    middle = np.median(np.log(of_unit / chdtri(n, 0.5)), axis=0)
    known = np.array(VARIANCE_DF[1:])
    way, df = np.repeat(np.arange(left.shape[1]), known.size), np.tile(known, left.shape[1])
    square = np.exp(middle[way]) * chdtri(df, 0.5)
    likelihood = (
        constant[:, way] + gammaln((n + df) / 2) - gammaln(df / 2) + df / 2 * np.log(square)
        - (n + df) / 2 * np.log(of_unit[:, way] + square) - n * np.log(scale)[:, np.newaxis]
    )  # fmt: skip
    weight = sibling_prior(likelihood, np.zeros(len(likelihood), dtype=np.intp))[0]
    top = likelihood.max(axis=1, keepdims=True)
    return float((np.log(np.exp(likelihood - top) @ weight) + top[:, 0]).sum()), weight, square
