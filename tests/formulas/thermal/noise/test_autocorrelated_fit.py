"""Least squares under autocorrelated noise, compared with theory."""

import numpy as np
import pytest
from scipy import stats

from profsvc.formulas.thermal.noise import autocorrelated_fit


def test_intervals_under_autocorrelated_noise_hold_the_truth() -> None:
    """Slopes of 60 rows with a correlation time of 5 rows: ordinary least squares gives errors 3 times too small."""
    rng, n = np.random.default_rng(5), 60
    x = np.linspace(-1, 1, n)
    noise = autocorrelated_fit.noise_models(np.arange(n, dtype=float), np.ones(n), 1.0)
    held, z, plain = 0, [], []
    for _ in range(150):
        u = stats.norm.rvs(size=n + 40, random_state=rng)
        y = np.zeros(n + 40)
        for k in range(1, n + 40):
            y[k] = np.exp(-1 / 5) * y[k - 1] + u[k]
        found = autocorrelated_fit.fit(noise, y[40:], np.column_stack([x, np.ones(n)]))
        middle, low, high = autocorrelated_fit.interval(found, 0)
        held += low <= 0 <= high
        z.append(2 * 1.96 * middle / (high - low))
        plain.append(stats.linregress(x, y[40:]))
    assert 128 <= held <= 149
    assert np.std(z) == pytest.approx(1, abs=0.25)
    assert np.std([p.slope / p.stderr for p in plain]) > 2


def test_the_filter_whitens_as_the_covariance_does() -> None:
    """Compare with generalised least squares with an explicit covariance matrix."""
    rng = np.random.default_rng(6)
    time, size = np.sort(rng.uniform(0, 50, 30))[rng.permutation(30)], rng.integers(1, 9, 30).astype(float)
    X, y = rng.standard_normal((30, 2)), rng.standard_normal(30)
    found = autocorrelated_fit.fit(autocorrelated_fit.noise_models(time, size, 2.0), y, X)
    pairs = [
        (0.0, 1.0),
        *((w, tau) for w in autocorrelated_fit.AUTOCORRELATED_SHARES for tau in autocorrelated_fit.CORRELATION_TIMES),
    ]
    for k, (w, tau) in enumerate(pairs):
        V = (1 - w) * np.diag(size.mean() / size) + w * np.exp(-np.abs(time[:, np.newaxis] - time) / 2 / tau)
        inverse = np.linalg.inv(V)
        estimate = np.linalg.solve(X.T @ inverse @ X, X.T @ inverse @ y)
        rest = y - X @ estimate
        squares = rest @ inverse @ rest
        np.testing.assert_allclose(found.estimate[k], estimate, rtol=1e-8)
        np.testing.assert_allclose(found.covariance[k], np.linalg.inv(X.T @ inverse @ X) * squares / 28, rtol=1e-8)
        profile = -0.5 * (np.linalg.slogdet(V)[1] + 30 * np.log(squares / 30))
        assert found.likelihood[k] == pytest.approx(profile)
