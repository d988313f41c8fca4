"""A coefficient known from elsewhere."""

import numpy as np
import pytest

from profsvc.formulas.thermal.coefficient.temperature_coefficient import given_coefficient


@pytest.mark.parametrize("wrong", [(np.nan, 0.1, 50, 70), (0.5, -0.1, 50, 70), (0.5, 0.1, 70, 70), (-0.5, 0.1, 50, 70)])
def test_a_given_coefficient_has_to_be_one(wrong: tuple[float, float, float, float]) -> None:
    found = given_coefficient(*wrong)
    assert found.refusal
    assert np.isnan(found.coefficient_w_per_c)
