"""Time stamps: exact, on their clock, refused where they cannot be told."""

import datetime as dt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formats.parsing.timestamps import LOCAL, UTC, TimestampParser, epoch_ns, parse_timestamp

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def truth(moment):
    return (moment.replace(tzinfo=dt.UTC) - EPOCH) // dt.timedelta(microseconds=1) * 1000


@given(st.lists(st.datetimes(dt.datetime(1990, 1, 1), dt.datetime(2099, 12, 31)), min_size=1, max_size=20))
def test_columns_of_stamps_are_exact(moments):
    for layout in ("%Y/%m/%d %H:%M:%S.%f", "%Y-%m-%dT%H:%M:%S.%f", "%Y-%m-%d %H:%M:%S"):
        cells = [moment.strftime(layout) for moment in moments]
        wanted = [truth(moment if "f" in layout else moment.replace(microsecond=0)) for moment in moments]
        clock = TimestampParser()
        ns, good = clock.read(cells)
        assert good.all()
        assert ns.tolist() == wanted
        assert clock.kind == LOCAL
        assert [parse_timestamp(cell) for cell in cells] == [(LOCAL, value) for value in wanted]
        zoned, good = TimestampParser().read([cell + "+02:00" for cell in cells])
        assert good.all()
        assert zoned.tolist() == [value - 7_200_000_000_000 for value in wanted]


@pytest.mark.parametrize(
    ("cell", "ns"),
    [
        ("1718369824", 1718369824 * 10**9),
        ("1718369824263", 1718369824263 * 10**6),
        ("1718369824263312", 1718369824263312 * 10**3),
        ("1718369824263312999", 1718369824263312999),
        ("1718369824.263312999", 1718369824263312999),
    ],
)
def test_counts_since_1970(cell, ns):
    assert epoch_ns(cell) == ns
    assert parse_timestamp(cell) == (UTC, ns)
    assert TimestampParser().read([cell, cell])[0].tolist() == [ns, ns]


@pytest.mark.parametrize(
    "cell", ["", "12", "99999999999", "2026/02/30 00:00:00", "2026-01-01", "01-02-2026 10:00:00", "2026/01/01 24:00:00"]
)
def test_no_stamps(cell):
    assert parse_timestamp(cell) is None
    assert not TimestampParser().read([cell])[1].any()


def test_a_file_stands_on_one_clock():
    clock = TimestampParser()
    assert clock.read(["2026/11/20 13:16:16.215"])[1].all()
    assert not clock.read(["1795180576"])[1].any()
    assert not clock.read(["2026/11/20 13:16:16.215Z"])[1].any()
    ns, good = clock.read(["2026/11/20 13:16:16.215", "2026/11/20 13:16:1x.215", "2026/11/20 13:16:17"])
    assert good.tolist() == [True, False, True]
    assert np.diff(ns[good]).tolist() == [785_000_000]


def test_only_a_tool_that_is_known_for_it_may_write_the_month_first():
    assert parse_timestamp("12-31-2025 10:00:00", month_first=True) == (LOCAL, 1767175200 * 10**9)
    assert parse_timestamp("Tue Jan 26 18:22:31 UTC 2021") == (UTC, 1611685351 * 10**9)
    assert parse_timestamp("Tue Jan 26 18:22:31 CET 2021") == (LOCAL, 1611685351 * 10**9)
