"""Balance of computation and memory: the inequality against the two times it came from, scaling, and edges."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formulas.numerics.flags import FORMS, Flag
from profsvc.formulas.performance.memory_balance import (
    balance,
    comp_time,
    kung_balance,
    matmul_transfers,
    mem_time,
    near_field,
    reduction_transfers,
    transfer_bound,
)
from tests.formulas.contract import holds

MACHINE = {"p": 14.0, "C_0": 64e9, "beta": 36e9, "alpha": 4e-7, "L": 32.0}
ALGORITHM = {"W": 1e9, "D": 30.0, "Q": 1e5}
number = st.floats(1e-3, 1e6)


@given(number, number, number, number, number, number, number, number)
def test_the_inequality_is_that_of_the_two_times(
    p: float, c: float, beta: float, alpha: float, L: float, depth: float, more: float, Q: float
) -> None:
    W = depth + more
    got = balance(p, c, beta, alpha, L, W, depth, Q)
    times = comp_time(W, depth, p, c).value / mem_time(alpha, depth, Q, L, beta).value
    np.testing.assert_allclose(got.slack, times, rtol=1e-7)
    assert balance(p, c, beta, alpha, L, W, depth, Q, "as_published").algorithm >= got.algorithm


@given(number, number, number, number, number, number)
def test_the_classical_balance_is_the_limit(p: float, c: float, beta: float, W: float, Q: float, L: float) -> None:
    got = kung_balance(p, c, beta, W, Q, L)
    without = balance(p, c, beta, 0.0, L, W, 0.0, Q)
    for mine, limit in zip(got[:3], without[:3], strict=True):
        np.testing.assert_allclose(mine, limit)


def test_forms_agree_where_all_is_parallel_and_differ_by_one_core() -> None:
    ours, theirs = (balance(**MACHINE, **{**ALGORITHM, "D": 0.0}, form=form) for form in FORMS)
    assert ours.slack == theirs.slack
    one, print_ = (balance(**{**MACHINE, "p": 1.0}, **ALGORITHM, form=form) for form in FORMS[::-1])
    np.testing.assert_allclose(one.algorithm, 1e9 / (1e5 * 32))
    assert print_.algorithm > one.algorithm


@given(number, st.floats(1, 1e6), st.floats(1, 1e3))
def test_what_doubling_the_memory_and_the_line_saves(n: float, Z: float, L: float) -> None:
    here = matmul_transfers(n, Z, L).Q
    np.testing.assert_allclose(here / matmul_transfers(n, 2 * Z, L).Q, np.sqrt(2))
    np.testing.assert_allclose(here / matmul_transfers(n, Z, 2 * L).Q, 2)
    got = matmul_transfers(n, Z, L)
    np.testing.assert_allclose(got.W / (got.Q * L), got.intensity)


@pytest.mark.parametrize(("n", "Z"), [(64, 8), (64, 64), (1024, 32)])
def test_additions_counted_piece_by_piece(n: int, Z: int) -> None:
    pieces = [list(range(start, start + Z)) for start in range(0, n, Z)]
    additions = sum(len(piece) - 1 for piece in pieces)
    got = reduction_transfers(n, Z, 4)
    assert (additions, n / 4) == (got.W, got.Q)
    np.testing.assert_allclose(got.intensity, got.W / (got.Q * 4))
    np.testing.assert_allclose(got.intensity, 1 - 1 / Z)


@given(st.integers(1, 2000), st.integers(1, 40))
def test_near_field_counted_box_by_box(q: int, u: int) -> None:
    loads, stores, operations = q * 4 + u * q * 4, q * 4, u * q * q * 11
    got = near_field(q, 11, u)
    np.testing.assert_allclose(got.words * q, loads + stores)
    np.testing.assert_allclose(got.intensity, operations / (4 * (loads + stores)))
    np.testing.assert_allclose(near_field(q, 11, u, form="as_published").intensity * u, got.intensity)


def test_edges() -> None:
    assert balance(**MACHINE, **{**ALGORITHM, "Q": 0.0}).flags == Flag.NOT_APPLICABLE
    assert balance(**{**MACHINE, "beta": 0.0}, **ALGORITHM).flags == Flag.ZERO_DENOM
    assert balance(**MACHINE, **{**ALGORITHM, "D": 2e9}).flags == Flag.INPUT_SUSPECT
    assert transfer_bound(1, 1, 1, 1, 0).flags == comp_time(1, 1, 0, 1).flags == Flag.ZERO_DENOM
    assert mem_time(1, 1, 1, 1, 0).flags == matmul_transfers(1, 0, 1).flags == Flag.ZERO_DENOM
    assert reduction_transfers(64, 128, 8).flags == Flag.INPUT_SUSPECT
    assert reduction_transfers(64, 0, 0).flags == near_field(1, 1, 1, 0).flags == Flag.ZERO_DENOM
    for wrong in ("printed", "bottleneck"):
        with pytest.raises(ValueError, match="no form"):
            balance(**MACHINE, **ALGORITHM, form=wrong)


def test_contract() -> None:
    holds(balance, {**MACHINE, **ALGORITHM})
    holds(kung_balance, {"p": 10, "C_0": 1e11, "beta": 1e11, "W": 5e6, "Q": 1e4, "L": 100})
    holds(comp_time, {"W": 31, "D": 5, "p": 3, "C_0": 10})
    holds(mem_time, {"alpha": 5, "D": 10, "Q": 100, "L": 8, "beta": 16})
    holds(transfer_bound, {"Q_1": 1e6, "p": 16, "Z": 4096, "D": 20, "L": 32, "k": 1})
    holds(reduction_transfers, {"n": 1024, "Z": 64, "L": 8})
    holds(matmul_transfers, {"n": 1024, "Z": 4096, "L": 32, "k": 1})
    holds(near_field, {"q": 32, "kappa": 11, "neighbors": 27, "word_bytes": 4})
