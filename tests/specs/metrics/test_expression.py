"""The language of metrics.csv against Python's own arithmetic."""

import contextlib
import math
from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.errors import DomainError
from profsvc.specs.metrics.expression import parse

NAMES = ("v1", "v2.sum", "_v3")
NUMBERS = st.sampled_from(["0", "1", "2.5", "1e3", "4.", ".5", "1.5E-2"])


def joined(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Make bigger expressions of ``parts``."""
    two = st.tuples(parts, parts)
    return st.one_of(
        st.tuples(two, st.sampled_from([" + ", "-", " * ", "/"])).map(lambda t: f"{t[0][0]}{t[1]}{t[0][1]}"),
        parts.map(lambda e: f"({e})"),
        parts.map(lambda e: f"-({e})"),
        parts.map(lambda e: f"ceil({e})"),
        two.map(lambda t: f"min({t[0]}, {t[1]})"),
        two.map(lambda t: f"max( {t[0]},{t[1]} )"),
    )


EXPRESSIONS = st.recursive(st.one_of(NUMBERS, st.sampled_from(NAMES)), joined, max_leaves=12)
VALUES = st.floats(-1e3, 1e3).map(lambda x: round(x, 3) + 0.0)


def by_python(text: str, values: Mapping[str, float]) -> float:
    """Evaluate with Python; NaN where it cannot."""
    scope = {name.replace(".", "_"): value for name, value in values.items()}
    calls = {"__builtins__": {}, "min": min, "max": max, "ceil": lambda x: float(math.ceil(x))}
    try:
        return float(eval(text.replace("v2.sum", "v2_sum"), calls, scope))
    except (ZeroDivisionError, ValueError, OverflowError):
        return math.nan


@given(EXPRESSIONS, st.fixed_dictionaries(dict.fromkeys(NAMES, VALUES)))
def test_expressions_give_what_python_gives(text: str, values: dict[str, float]) -> None:
    result = parse(text).evaluate({name: [value, value] for name, value in values.items()})
    assert result is not None
    assert result.alternative.tolist() == [0, 0]
    expected = by_python(text, values)
    if math.isfinite(expected):
        assert result.value.tolist() == pytest.approx([expected, expected], rel=1e-9, abs=1e-9)
    else:
        assert not np.isfinite(result.value).any()


@given(st.text(max_size=30))
def test_no_text_breaks_the_parser_in_another_way(text: str) -> None:
    with contextlib.suppress(DomainError):
        assert parse(text).alternatives


def test_each_launch_takes_the_first_alternative_that_it_can() -> None:
    nan = np.nan
    values = {"a": [1.0, nan, nan, nan], "b": [2.0, 2.0, nan, nan], "c": [9.0, 9.0, 9.0, nan]}
    result = parse("a + b | b | c").evaluate(values)
    assert result is not None
    np.testing.assert_array_equal(result.value, [3.0, 2.0, 9.0, nan])
    assert result.alternative.tolist() == [0, 1, 2, -1]


def test_an_alternative_with_a_name_that_is_nowhere_is_passed_over() -> None:
    result = parse("nowhere | a").evaluate({"a": [1.0]})
    assert result is not None
    assert result.alternative.tolist() == [1]
    assert parse("nowhere | a * elsewhere").evaluate({"a": [1.0]}) is None


def test_a_zero_divisor_gives_nan_and_not_the_next_alternative() -> None:
    result = parse("a / b | a").evaluate({"a": [1.0, 0.0], "b": [0.0, 0.0]})
    assert result is not None
    assert np.isnan(result.value).all()
    assert result.alternative.tolist() == [0, 0]


def test_a_constant_is_there_for_every_launch() -> None:
    result = parse("32").evaluate({"a": [1.0, 2.0, np.nan]})
    assert result is not None
    assert result.value.tolist() == [32.0, 32.0, 32.0]
    empty = parse("32").evaluate({})
    assert empty is not None
    assert empty.value.size == 0


def test_series_with_nulls_are_taken() -> None:
    values = {"a": pd.Series([1, None, 3], dtype="Int64"), "b": pd.Series([1.0, 2.0, None])}
    result = parse("a + b | b").evaluate(values)
    assert result is not None
    np.testing.assert_array_equal(result.value, [2.0, 2.0, np.nan])


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("trace:'Duration (ns)' * 1e9", ("trace:'Duration (ns)'",)),
        ("event:active_warps/event:active_cycles", ("event:active_warps", "event:active_cycles")),
        ("sql:A_KIND.end - sql:A_KIND.start", ("sql:A_KIND.end", "sql:A_KIND.start")),
        ("sass__inst_executed_per_opcode[BAR]", ("sass__inst_executed_per_opcode[BAR]",)),
        ("min(@sm_count, @grid_blocks)", ("@sm_count", "@grid_blocks")),
        ("max + min - ceil", ("max", "min", "ceil")),
        ("x*x", ("x",)),
    ],
)
def test_names_are_those_of_the_tools(text: str, names: tuple[str, ...]) -> None:
    assert parse(text).alternatives[0].names == names
    assert parse(text).names == set(names)


def test_texts_of_alternatives_are_kept() -> None:
    assert [a.text for a in parse("a / (b + 2) | ceil(c) |d").alternatives] == ["a / (b + 2)", "ceil(c)", "d"]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", "at character 0"),
        ("a +", "at character 3"),
        ("a b", "at character 2"),
        ("a || b", "at character 3"),
        ("(a", "at character 2: expected )"),
        ("min(a; b)", "at character 5: '; b)'"),
        ("ceil(a, b)", "ceil takes one argument"),
        ("__import__('os')", "at character 11"),
        ("col:'open", "at character 3"),
    ],
)
def test_wrong_expressions_are_pointed_at(text: str, where: str) -> None:
    with pytest.raises(DomainError) as caught:
        parse(text)
    assert where in str(caught.value)
