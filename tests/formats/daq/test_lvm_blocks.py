"""Blocks of rows of a LabVIEW file read at once give what the same lines give one by one."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formats.daq import lvm
from profsvc.formats.daq.lvm_blocks import parse
from profsvc.formats.daq.lvm_lines import BlockPlan, Segment
from tests.formats.both_ways import READERS, parts_taken
from tests.inputs.long_exports import lvm as long_log

agree = READERS["lvm"].agree


def log(rows, decimal=".", mode="One", x0="0", step="0.5", date="2026/03/01", unit="Deg C", separator="Tab", sign="\t"):
    head = [
        ("LabVIEW Measurement", ""), ("Separator", separator), ("Decimal_Separator", decimal), ("X_Columns", mode),
        ("***End_of_Header***", ""), ("Channels", "2"), ("Date", date, date), ("Time", "12:00:00", "12:00:00"),
        ("Y_Unit_Label", unit, unit), ("X0", x0, x0), ("Delta_X", step, step), ("***End_of_Header***", ""),
        ("X_Value", "T0", "T1", "Comment"),
    ]  # fmt: skip
    return "".join(f"{sign.join(row)}\n" for row in head) + "".join(rows)


def rows(count, sign="\t", decimal=".", end="\n", first=0):
    return [
        f"{n / 4:.6f}{sign}{20 + n / 7:.4f}{sign}{-n / 3:.3f}{sign}{end}".replace(".", decimal)
        for n in range(first, first + count)
    ]


def test_a_long_log_gives_the_same_both_ways():
    found = agree("".join(long_log(100)).encode())
    assert (len(found[0]["samples"]), found[1][0]) == (400, 100)


def test_most_rows_of_a_long_log_are_taken_at_once(monkeypatch):
    taken = parts_taken(monkeypatch, lvm)
    agreed = list(lvm.read(io.BytesIO("".join(long_log(3000)).encode())))
    assert sum(batch.lines_stored for batch in agreed) == 3000
    # Two walks, each with a first block that goes line by line.
    assert sum(part.rows for part in taken if part) > 2 * 2500


def test_plain_rows_are_read_at_once():
    segment = Segment(1, ("X_Value", "T0", "T1", "Comment"), {}, (0,), (1, 2), ".")
    part = parse(b"0.25\t1.5\t-2\t\n0.500000001\t7\t.5\t\n", BlockPlan(segment, "\t", "."))
    assert (part.rows, part.x_ns.tolist(), part.values.tolist()) == (
        2,
        [250_000_000, 500_000_001],
        [[1.5, -2], [7, 0.5]],
    )
    assert parse(b"0.25\t1.5\t-2\n", BlockPlan(segment, "\t", ".")).rows == 1
    for odd in (
        b"0.25\t1.5\n",
        b"0.25\t1.5\t2",
        b"0.25\t1e3\t2\n",
        b"0.25\t\t2\n",
        b"0.25\t1\t2\t3\n",
        b"0.25\t1\t2\t\t\n",
    ):
        assert parse(odd, BlockPlan(segment, "\t", ".")) is None


@pytest.mark.parametrize(
    "odd",
    [
        "\n",
        "\t\t\t\n",
        "text\n",
        "9.000000\t20.5\t21.5\tdoor open\n",
        "9.000000\t20.5\t21.5\t7\n",
        "9.000000\t20.5\t21.5\n",
        "9.000000\t20.5\t21.5\t\t\t\n",
        "9.000000\t20.5\n",
        "9.000000\t20.5\tNaN\t\n",
        "9.000000\t\t21.5\t\n",
        "\t20.5\t21.5\t\n",
        "x\t20.5\t21.5\t\n",
        "9\t-300.5\t21.5\t\n",
        "9\t99999.5\t21.5\t\n",
        "9\t1e38\t21.5\t\n",
        "9.0000000001\t20.5\t21.5\t\n",
        "9.5E+0\t20.5\t21.5\t\n",
        "3900000000.25\t20.5\t21.5\t\n",
        "99999999999999\t20.5\t21.5\t\n",
        "9\t1.234.567\t21.5\t\n",
        "9\t20,5\t21.5\t\n",
        "9\t1,234\t21.5\t\n",
        "9\t 20.5\t21.5\t\n",
        "9\t20.5\t21.5\t\r\n",
        '9\t"20.5"\t21.5\t\n',
        "9\t.5\t5.\t\n",
        "9\t-\t--5\t\n",
        ".\t1\t2\t\n",
        "Channels\t2\n",
        "***Start_Special***\n1.0\t2.0\t3.0\t\n***End_Special***\n",
        "X_Value\tT0\tT1\tComment\n",
        log(["0.5\t20.5\t21.5\t\n"]),
        log([], date="1904/01/01"),
    ],
)
def test_odd_lines_among_plain_ones(odd):
    agree(log([*rows(30), odd, *rows(30, first=30)]).encode())
    agree(log([*rows(30), odd.rstrip("\n")]).encode())


@pytest.mark.parametrize("mode", ["One", "No", "Multi"])
@pytest.mark.parametrize("date", ["2026/03/01", "1904/01/01", ""])
def test_ways_to_count_the_time(mode, date):
    sign = "\t" if mode != "No" else ""
    body = [row if sign else "\t" + row.split("\t", 1)[1] for row in rows(40)]
    agree(log(body, mode=mode, date=date).encode())
    agree(log(body, mode=mode, date=date, x0="4600000000", step="0.1").encode())
    agree(log([row.replace(".", "00000000.", 1) for row in body], mode=mode, date=date).encode())


@pytest.mark.parametrize(
    ("decimal", "separator", "sign"),
    [(",", "Tab", "\t"), (".", "Comma", ","), ("", "Tab", "\t")],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_signs(decimal, separator, sign, end):
    body = rows(40, sign, decimal or ".", end)
    found = agree(log(body, decimal=decimal, separator=separator, sign=sign).encode())
    assert len(found[0]["samples"]) == 80


@pytest.mark.parametrize("unit", ["degF", "mV", "K", ""])
def test_units(unit):
    agree(log(rows(40), unit=unit).encode())


@given(
    st.integers(0, 50),
    st.lists(st.tuples(st.integers(0, 3000), st.sampled_from("0159.,-eE\t\n\r X;")), max_size=4),
    st.integers(0, 3000),
)
def test_damaged_logs_give_the_same_both_ways(count, damage, end):
    text = list(log(rows(count)))
    for place, sign in damage:
        text[place % len(text)] = sign
    agree("".join(text)[: max(end, 200)].encode())
