import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.errors import BrokenInputError
from profsvc.formats.parsing.numbers import APOSTROPHES, SPACES, Evidence, NumberFormat, Numbers

ENGLISH, GERMAN = NumberFormat(".", ","), NumberFormat(",", ".")
FRENCH, SWISS = NumberFormat(",", SPACES), NumberFormat(".", APOSTROPHES)


def decide(cells, integers=()):
    evidence = Evidence()
    for line, cell in enumerate(cells, 1):
        evidence.add([cell], line)
    evidence.add(integers, 90)
    evidence.add_integers(integers, 90)
    return evidence.decide()


@pytest.mark.parametrize(
    ("cells", "integers", "expected"),
    [
        ([], [], "1234.5"),
        (["12", "n/a", "1.50"], [], "1234.5"),
        (["1.234"], [], "1234.5"),
        (["1,234", "0.5"], [], "1,234.5"),
        (["1,234,567"], [], "1,234.5"),
        (["1,234.5"], [], "1,234.5"),
        (["-1,234.5"], [], "1,234.5"),
        (["1,234", "2.5 (3; 4)"], [], "1,234.5"),
        (["1.234", "0,5"], [], "1.234,5"),
        (["1.234,5"], [], "1.234,5"),
        (["1.234.567"], [], "1.234,5"),
        (["0,123"], [], "1234,5"),
        (["1234,567"], [], "1234,5"),
        (["1,5e+10"], [], "1234,5"),
        (["1\u202f234", "0,5"], [], "1 234,5"),
        (["1\u00a0234", "1,234"], [], "1 234,5"),
        (["1\u2009234,5"], [], "1 234,5"),
        (["1 234 567,5"], [], "1 234,5"),
        (["1'234", "2.500"], [], "1'234.5"),
        (["1\u2019234.5"], [], "1'234.5"),
        ([], ["1,234"], "1,234.5"),
        ([], ["1.234"], "1.234,5"),
        (["2,345"], ["1.234"], "1.234,5"),
        (["1.234"], ["1,234"], "1,234.5"),
        (["0.5"], ["1.234"], "1234.5"),
    ],
)
def test_decision(cells, integers, expected):
    assert str(decide(cells, integers)) == expected


@pytest.mark.parametrize(
    ("cells", "integers", "quoted"),
    [
        (["5", "1,234"], [], "'1,234' (line 2)"),
        (["1,234", "5.678"], [], "'1,234' (line 1), '5.678' (line 2)"),
        (["0,5", "7", "0.5"], [], "'0,5' (line 1), '0.5' (line 3)"),
        (["1,234,567", "1.234.567"], [], "'1.234.567' (line 2), '1,234,567' (line 1)"),
        (["1,234,567", "1'234"], [], "'1,234,567' (line 1)"),
        (["1'234", "1\u00a0234"], [], "line 1"),
        (["1'234", "1,234", "1.234"], [], "'1,234' (line 2), '1.234' (line 3)"),
        ([], ["1,234", "1.234"], "'1,234' (line 90)"),
    ],
)
def test_refusal_quotes_the_cells(cells, integers, quoted):
    with pytest.raises(BrokenInputError) as caught:
        decide(cells, integers)
    assert quoted in str(caught.value)


@pytest.mark.parametrize(
    ("number_format", "cell", "value"),
    [
        (ENGLISH, "1,234,567.25", 1234567.25),
        (ENGLISH, "-0.5", -0.5),
        (ENGLISH, "+7", 7.0),
        (ENGLISH, "8650752.000000", 8650752.0),
        (ENGLISH, "1.5e+10", 1.5e10),
        (ENGLISH, ".5", 0.5),
        (ENGLISH, "1.5e0003", 1500.0),
        (ENGLISH, "1E-1000", 0.0),
        (ENGLISH, "621,543,424 (421,789,696; 59,244,544)", 621543424.0),
        (GERMAN, "1.234,5", 1234.5),
        (GERMAN, "1.234", 1234.0),
        (FRENCH, "1\u202f234\u202f567,5", 1234567.5),
        (FRENCH, "1\u00a0234", 1234.0),
        (FRENCH, "12 345,5", 12345.5),
        (SWISS, "1'234.5", 1234.5),
        (SWISS, "1\u2019234", 1234.0),
    ],
)
def test_value(number_format, cell, value):
    assert Numbers(number_format)[cell] == value


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("", "empty"),
        ("n/a", "n/a"),
        ("(!) n/a", "n/a"),
        ("nan", "nan"),
        ("-nan", "nan"),
        ("inf", "inf"),
        ("-INF", "inf"),
        ("no data", "no data"),
        ("CachePreferNone", "text"),
        ("(256, 1, 1)", "text"),
        ("(5; 6)", "text"),
        ("1_000", "text"),
        ("0x10", "text"),
        ("٣", "text"),
        ("12,34,567", "odd separators"),
        ("1,2345", "odd separators"),
        ("1e999", "too large"),
        ("-1e1000000000000", "too large"),
    ],
)
def test_reason(cell, reason):
    numbers = Numbers(ENGLISH)
    assert math.isnan(numbers[cell])
    assert numbers.reason(cell) == reason


def test_numbers_that_are_too_large_are_none_beside_any_others():
    numbers = Numbers(NumberFormat(".", ""))
    for cells in (["1", "1e400", "-1e400"], ["1", "1e400", "-1e400", ""]):
        assert np.isnan(numbers.many(cells)).tolist() == [False, *[True] * (len(cells) - 1)]


@pytest.mark.parametrize("cell", ["1e1000", "-1.5E+0099999", "1e-1000000000000000000000", "n/a"])
def test_no_digits_beyond_all_bounds(cell):
    assert Numbers(ENGLISH).exact(cell) is None
    assert Numbers(ENGLISH).exact("1e0003") == 1000


def test_memory_is_bounded():
    numbers, evidence = Numbers(ENGLISH), Evidence()
    for n in range(200_000):
        assert numbers[str(n)] == n
        evidence.add([str(n)], n)
    assert len(numbers) <= 1 << 16
    assert len(evidence._seen) <= (1 << 16) + 1


def written(value, number_format):
    text = f"{value:,.2f}".replace(",", "T").replace(".", number_format.decimal)
    return text.replace("T", number_format.thousands[:1])


@given(
    st.lists(st.integers(-(10**12), 10**12).map(lambda n: n / 100), min_size=1),
    st.sampled_from([ENGLISH, GERMAN, FRENCH, SWISS]),
)
def test_what_a_locale_prints_reads_back(values, number_format):
    cells = [written(value, number_format) for value in values]
    decided = decide(cells)
    assert [Numbers(decided)[cell] for cell in cells] == pytest.approx(values)
    assert decided.decimal == number_format.decimal
