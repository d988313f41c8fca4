"""Time by latency and load: against the exact solution of a queue, its inverse, bounds, and what formulas promise."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.performance.loaded_latency import (
    loaded_time,
    queueing_share,
    rounds_of,
    scheduler_imbalance,
    unloaded_wait,
)
from tests.formulas.contract import holds

positive = st.floats(1e-6, 1e6)


@given(positive, positive, st.floats(0, 2))
def test_the_time_solves_the_law_of_its_queue(L: float, P: float, k: float) -> None:
    T = loaded_time(L, P, k).value
    assert max(L, P) <= T
    assert pytest.approx(k * L * P, rel=1e-6, abs=1e-9 * T * T) == (T - L) * (T - P)
    assert T <= (L + P) * (1 + 1e-12) or k > 1


@given(positive, positive, st.floats(1e-3, 1))
def test_the_share_that_waits_comes_back(L: float, P: float, k: float) -> None:
    if max(L, P) < 1e3 * min(L, P):
        assert queueing_share(loaded_time(L, P, k).value, L, P).value == pytest.approx(k, rel=1e-6)


@given(positive, positive, st.floats(0, 1))
def test_more_latency_or_work_is_never_faster(L: float, P: float, k: float) -> None:
    times = loaded_time([L, 1.1 * L, L], [P, P, 1.1 * P], k).value
    assert times[0] <= times[1:].min()


def test_latency_grows_with_load_as_in_a_queue_with_one_server() -> None:
    """N customers who think for Z between visits of S: the time of a visit is S / (1 - rho), for many of them."""
    Z, S = 100.0, 1.0
    for N in (10, 50, 90, 200, 400):
        R = np.zeros(1)
        for n in range(1, N + 1):  # mean value analysis
            queue = (n - 1) * R / (Z + R)
            R = S * (1 + queue)
        exact = (Z + R.item()) / N
        k = queueing_share(exact, (Z + S) / N, S).value
        assert loaded_time((Z + S) / N, S, k).value == pytest.approx(exact)
        assert 0 <= k < 0.2


def test_units_that_do_nothing_and_measured_times_that_cannot_be() -> None:
    none = queueing_share([5.0, 5.0, 1.0], [0.0, 1.0, 2.0], [1.0, 0.0, 1.0])
    assert none.value.tolist() == [0.0, 0.0, 0.0]
    assert [bool(f & Flag.NOT_APPLICABLE) for f in none.flags] == [True, True, False]
    assert none.flags[2] & Flag.RAW_OUT_OF_RANGE
    assert rounds_of(4, 0, 2).flags & Flag.ZERO_DENOM
    assert scheduler_imbalance(0, 4).flags & Flag.ZERO_DENOM


def test_they_keep_their_promises() -> None:
    holds(loaded_time, {"latency_time": 2.0, "least_time": 1.0, "queueing": 0.5})
    holds(queueing_share, {"measured": 3.0, "latency_time": 2.0, "least_time": 1.0})
    holds(unloaded_wait, {"wait": 1000.0, "unloaded": 600.0, "busy": 0.5})
    holds(rounds_of, {"blocks": 528.0, "sms": 132.0, "resident": 2.0})
    holds(scheduler_imbalance, {"warps": 6.0, "schedulers": 4.0})
