"""What `profsvc.formulas` promises of a function that works number by number and gives several results."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from profsvc.formulas.numerics.flags import Flag

WRONG = (np.nan, np.inf, -np.inf, -1.0)


def fields(result: Any) -> dict[str, np.ndarray]:
    return {name: np.asarray(x) for name, x in result._asdict().items()}


def holds(
    function: Callable[..., Any], good: Mapping[str, float], spared: Mapping[str, tuple[float, ...]] = {}
) -> None:
    """Check the promises on good arguments; ``spared`` are wrong values that an argument takes for something else."""
    _one_result_a_row(function, good)
    _wrong_numbers_stay_in_their_row(function, good, spared)
    _what_is_no_content_raises(function, good)


def _one_result_a_row(function: Callable[..., Any], good: Mapping[str, float]) -> None:
    scalar = fields(function(**good))
    given = {name: np.array([x, x * 1.25, x]) for name, x in good.items()}
    for x in given.values():
        x.flags.writeable = False
    vector, again = fields(function(**given)), fields(function(**given))
    column = fields(function(**{name: x[:, np.newaxis] for name, x in given.items()}))
    middle = fields(function(**{name: x * 1.25 for name, x in good.items()}))
    for name, x in scalar.items():
        assert x.shape == (), name
        np.testing.assert_array_equal(vector[name], [x, middle[name], x], err_msg=name)
        np.testing.assert_array_equal(column[name][:, 0], vector[name], err_msg=name)
        assert vector[name].tobytes() == again[name].tobytes(), name
    crossed = {name: np.full((2, 1) if k % 2 else (3,), x) for k, (name, x) in enumerate(good.items())}
    if len(good) > 1:
        assert {x.shape for x in fields(function(**crossed)).values()} == {(2, 3)}
    assert {x.size for x in fields(function(**{name: [] for name in good})).values()} == {0}


def _wrong_numbers_stay_in_their_row(
    function: Callable[..., Any], good: Mapping[str, float], spared: Mapping[str, tuple[float, ...]]
) -> None:
    expected = fields(function(**good))
    for name in good:
        for wrong in WRONG:
            given = {key: np.array([x, x], dtype=np.float64) for key, x in good.items()}
            given[name][0] = wrong
            got = fields(function(**given))
            for field, x in got.items():
                np.testing.assert_array_equal(x[1], expected[field], err_msg=f"{field} beside {name} = {wrong}")
            if not any(np.array_equal(wrong, x, equal_nan=True) for x in spared.get(name, ())):
                assert got["flags"][0] & Flag.INPUT_SUSPECT, f"{name} = {wrong}"
                floats = [x[0] for x in got.values() if x.dtype == np.float64]
                assert np.isnan(floats).any(), f"{name} = {wrong}"


def _what_is_no_content_raises(function: Callable[..., Any], good: Mapping[str, float]) -> None:
    for name in good:
        with pytest.raises(TypeError, match=f"{name} has dtype"):
            function(**{**good, name: np.array(["1"])})
    if len(good) > 1:
        first, second = list(good)[:2]
        with pytest.raises(ValueError, match="do not broadcast"):
            function(**{**good, first: np.ones(2), second: np.ones(3)})
