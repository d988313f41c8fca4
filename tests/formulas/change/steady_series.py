"""What the tests of change share."""

from scipy import stats

STEADY = [10.1, 9.9, 10.0, 10.2, 10.0, 9.8, 10.1, 9.9, 10.0, 10.1, 9.9, 10.0]


def at_most(share: float, series: int) -> float:
    """Return what a rule with this rate of error exceeds once in 10,000 tries."""
    return float(stats.binom.ppf(0.9999, series, share) / series)
