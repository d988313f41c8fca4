"""Arithmetic on pairs of half precision is useful work; constants that are moved with the same instruction are none."""

import numpy as np
import pandas as pd
import pytest

from profsvc.analysis.counters.arrays import Counts
from profsvc.analysis.potential.useful_time import arithmetic_operations, half_arithmetic

PAIRS = 3_200_000.0


def counters(**given: float) -> Counts:
    known = {"elapsed_cycles": 1e6, "inst_fp32_thread": 0.0, "inst_fp64_thread": 0.0, "global_load_inst_warp": 10.0,
             "inst_tensor_warp": 0.0, "inst_fp16_thread": PAIRS, "inst_integer_thread": 1e5}  # fmt: skip
    return Counts(pd.DataFrame([known | given]))


def test_pairs_are_arithmetic() -> None:
    count, operands = arithmetic_operations(counters())
    assert count[0] == pytest.approx(PAIRS / 32)
    assert operands[0] == pytest.approx(PAIRS / 32)


@pytest.mark.parametrize(
    "given",
    [{"inst_integer_thread": PAIRS}, {"inst_integer_thread": np.nan}, {"inst_fp16_thread": np.nan},
     {"inst_unpack_half_thread": PAIRS}],
)  # fmt: skip
def test_moves_and_conversions_are_none(given: dict[str, float]) -> None:
    assert half_arithmetic(counters(**given))[0] == 0


def test_a_conversion_among_the_pairs_is_left_out() -> None:
    assert half_arithmetic(counters(inst_unpack_half_thread=1e6))[0] == PAIRS - 1e6
