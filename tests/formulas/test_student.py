"""Student's t and Snedecor's F beside SciPy's; least squares under noise that remembers beside theory."""

import numpy as np
import pytest
from scipy import stats

from profsvc.formulas import _student, _wander


@pytest.mark.parametrize("freedom", [1, 2.5, 7, 30, 400, 1e6])
def test_t(freedom: float) -> None:
    t = np.array([-8, -1.5, 0, 0.3, 2, 12])
    np.testing.assert_allclose(_student.t_cdf(t, freedom), stats.t.cdf(t, freedom), atol=2e-5)


@pytest.mark.parametrize(("over", "under"), [(1, 3), (2, 8), (5, 100), (30, 4)])
def test_f(over: float, under: float) -> None:
    f = np.array([0.05, 0.7, 1, 3, 20])
    np.testing.assert_allclose(_student.f_cdf(f, over, under), stats.f.cdf(f, over, under), atol=1e-8)


def test_the_quantile_of_a_mixture() -> None:
    weight, middle, scale = np.array([0.3, 0.7]), np.array([0.0, 1.0]), np.array([1.0, 0.2])
    got = _student.quantile(0.9, middle, scale, 6.0, weight)
    assert float(weight @ stats.t.cdf((got - middle) / scale, 6)) == pytest.approx(0.9, abs=1e-6)


def test_intervals_under_a_wander_hold_the_truth() -> None:
    """Slopes of 60 rows whose noise forgets after 5 rows: least squares that forgets that is 3 times too sure."""
    rng, n = np.random.default_rng(5), 60
    x = np.linspace(-1, 1, n)
    noise = _wander.models(np.arange(n, dtype=float), np.ones(n), 1.0)
    held, z, plain = 0, [], []
    for _ in range(150):
        u = stats.norm.rvs(size=n + 40, random_state=rng)
        y = np.zeros(n + 40)
        for k in range(1, n + 40):
            y[k] = np.exp(-1 / 5) * y[k - 1] + u[k]
        found = _wander.fit(noise, y[40:], np.column_stack([x, np.ones(n)]))
        middle, low, high = _wander.interval(found, 0)
        held += low <= 0 <= high
        z.append(2 * 1.96 * middle / (high - low))
        plain.append(stats.linregress(x, y[40:]))
    assert 128 <= held <= 149
    assert np.std(z) == pytest.approx(1, abs=0.25)
    assert np.std([p.slope / p.stderr for p in plain]) > 2


def test_the_filter_whitens_as_the_covariance_does() -> None:
    """A second method: generalised least squares with the covariance written out."""
    rng = np.random.default_rng(6)
    time, size = np.sort(rng.uniform(0, 50, 30))[rng.permutation(30)], rng.integers(1, 9, 30).astype(float)
    X, y = rng.standard_normal((30, 2)), rng.standard_normal(30)
    found = _wander.fit(_wander.models(time, size, 2.0), y, X)
    pairs = [(0.0, 1.0), *((w, tau) for w in _wander.SHARES for tau in _wander.SPANS)]
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
