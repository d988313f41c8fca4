"""How the laws of dependence count in the test of a step of which no siblings say how its values depend."""

import numpy as np

from profsvc.formulas.numerics.arrays import Array

# Chosen among simulated series alone (seeds 3, 7, 21 and 100 to 108), so that white noise and autoregressive noise with
# correlations of 0.3, 0.6 and 0.9 err about as often, after 10, 30, 100 and 400 nights.
INDEPENDENCE = 200.0  # values by which independence is the likelier beforehand, as a power of e by the correlation
CAUTION = 110.0  # the same of the tail
SHORT = 24.0  # values below which the doubt about all else grows
SHORT_POWER = 4


def counts_of_law(rho: float, n: Array) -> tuple[Array, Array]:
    r"""Return how probable an autocorrelation is beforehand, and how much the tail counts that a step has under it.

    .. math:: p = \frac{\sum_\rho w_\rho L_\rho T_\rho}{\sum_\rho v_\rho L_\rho}, \qquad
              v_\rho = e^{-200 \rho / n}, \qquad
              \frac{w_\rho}{v_\rho} = \left(1 + \left(\frac{24}{n}\right)^4\right) e^{110 \rho / n}

    L is the likelihood of the autocorrelation rho by n values, T the tail of the step. With v = w a mean p errs in a
    share of series as it says, if their autocorrelations are as frequent as v says. But each series has one. With all
    equally frequent, it errs by far the most in dependent noise that looks independent by its few values, and least in
    white noise, to which the tails of strong dependence give a larger p than it needs. So the values must look
    independent themselves (v), and tails count the more, the more dependent the noise (w): then no autocorrelation
    errs much more often than another, which makes w a least favourable distribution. The likelihood tells
    autocorrelations apart by an exponent in proportion to n, so both fade with 1/n. In the shortest series the shape
    of the noise is unknown too, and all laws count more.

    Source: least favourable distributions: [LehmannRomano2005], section 3.8; own model for w and v.

    Args:
        rho: Autocorrelation [1].
        n: Number of values [1].

    Returns: logarithm of v, and w / v, of the shape of n.

    Range: v in (0, 1], w / v from 1 upwards: what is made of it may exceed 1, and counts as 1 then.

    In a short series strong dependence is improbable beforehand, but counts much; in a long one neither:

    >>> log_v, more = counts_of_law(0.5, np.array([20.0, 400.0]))
    >>> np.exp(log_v).round(3).tolist(), more.round(1).tolist()
    ([0.007, 0.779], [48.1, 1.1])
    """
    return -INDEPENDENCE * rho / n, (1.0 + (SHORT / n) ** SHORT_POWER) * np.exp(CAUTION * rho / n)
