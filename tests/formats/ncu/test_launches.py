import math

import pytest

from profsvc.formats.ncu.launches import (
    LaunchTable,
    UnitScales,
    duration_ns,
    holds_integers,
    metric_table,
    parse_dimensions,
)
from profsvc.formats.parsing.ledger import whole_number
from profsvc.formats.parsing.numbers import NumberFormat, Numbers


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (6.75, "us", 6750.0),
        (6.75, "usecond", 6750.0),
        (21058944.0, "ns", 21058944.0),
        (21.058944, "ms", 21058944.0),
        (1.5, "s", 1.5e9),
        (5.0, "cycle", None),
        (5.0, "parsec", None),
        (math.nan, "us", None),
    ],
)
def test_duration(value, unit, expected):
    assert duration_ns(value, unit, UnitScales()) == expected


def test_unknown_unit_is_kept():
    scales = UnitScales()
    assert scales["furlong"] == (1.0, "furlong")
    assert scales["Gbyte/s"] == (1e9, "byte/s")
    assert "furlong" not in scales


NO_SIZES = (None, None, None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("(64,64,1)", (64, 64, 1)), ("64", NO_SIZES), ("", NO_SIZES), (f"({'9' * 30}, 1, 1)", NO_SIZES)],
)
def test_dimensions(text, expected):
    assert parse_dimensions(text) == expected


@pytest.mark.parametrize(("text", "expected"), [("12", 12), ("", None), ("-1", None), ("²", None), ("9" * 30, None)])
def test_whole_number(text, expected):
    assert whole_number(text) == expected


@pytest.mark.parametrize(
    ("metric", "unit", "expected"),
    [
        ("gpu__time_duration.sum", "ns", True),
        ("Duration", "us", False),
        ("device__attribute_clock_rate", "", True),
        ("launch__shared_mem_per_block", "Kbyte", False),
        ("Grid Size", "", True),
        ("SM Busy", "%", False),
    ],
)
def test_known_integers(metric, unit, expected):
    assert holds_integers(metric, unit) is expected


def test_launches_are_completed_only_in_their_batch():
    launches = LaunchTable()
    launches.add(0, 2, {"Kernel Name": "f"})
    launches.complete(0, "duration_ns", 5.0)
    launches.complete(0, "duration_ns", 6.0)
    assert launches.take()["duration_ns"].tolist() == [5.0]
    assert launches.complete(0, "duration_ns", 7.0), "it has one"
    launches.add(1, 3, {"Kernel Name": "g"})
    assert launches.complete(0, "duration_ns", 7.0)
    assert launches.take().frame["duration_ns"].isna().all()
    assert launches.complete(1, "duration_ns", None)
    assert not launches.complete(1, "duration_ns", 7.0), "it was yielded without one"


def test_metric_table():
    rows = {"launch_index": [0] * 4, "metric": ["a", "b", "c", "launch__tpc_enabled"], "line": [3] * 4}
    numbers = Numbers(NumberFormat(".", ","))
    table = metric_table(
        rows, ["1,024", "1e305", "n/a", "0,1"], ["Kbyte", "Tbyte", "byte", ""], numbers, UnitScales()
    ).frame
    assert table["value"].dropna().tolist() == [1024e3]
    assert table["si_unit"].tolist() == ["byte", None, None, None]
    assert table["reason"].tolist() == [None, "too large", "n/a", "text"]
