"""Multiply-adds of half precision with a constant factor in machine code."""

import pytest

from profsvc.analysis.source_code.constant_factors import constant_factor_threads, has_constant_factor
from profsvc.analysis.source_code.registers import operands


@pytest.mark.parametrize(
    "code",
    [
        "HFMA2.MMA R4, R2, 1, 1, R4", "HFMA2 R4, R2.H0_H0, -0.5, -0.5, R4", "HFMA2.BF16_V2 R4, R2.reuse, 1, 1, R3",
        "HFMA2.MMA R2, -RZ, RZ, 0, 0", "@!P0 HFMA2.MMA R2, -RZ, RZ, 1.875, 0", "HFMA2 R4, R2, +INF, +INF, R4",
    ],
)  # fmt: skip
def test_sums_and_moves_have_a_constant_factor(code: str) -> None:
    assert has_constant_factor(code)


@pytest.mark.parametrize(
    "code",
    [
        "HFMA2.MMA R4, R2, R3, R4", "HFMA2 R4, R2, R3.H1_H1, -0.17, -0.17", "HFMA2.BF16_V2 R4, R2, R3, RZ",
        "HFMA2 R4, R2.reuse, UR4.H0_H0, R4", "HFMA2 R4, R2, c[0x0][0x210].H0_H0, R4",
    ],
)  # fmt: skip
def test_products_of_two_values_have_none(code: str) -> None:
    assert not has_constant_factor(code)


def test_threads_are_counted_where_the_page_has_them() -> None:
    code = ("HFMA2.MMA R4, R2, 1, 1, R4", "HFMA2.MMA R4, R2, R3, R4", "FFMA R4, R2, 1, R4")
    for threads, total in ((32, 32), (None, 0)):
        rows = [{"sass": one, "thread_instructions_on": threads} for one in code]
        assert constant_factor_threads(rows, [operands(one) for one in code]) == total
