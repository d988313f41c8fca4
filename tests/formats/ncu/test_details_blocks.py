"""Blocks of a details page read at once give what the same lines give one by one."""

import io
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formats.ncu import details as ncu_details
from profsvc.formats.ncu.details_blocks import next_launch, parse, whole_launches
from profsvc.formats.ncu.details_rows import ColumnPlan
from tests.formats.both_ways import READERS, parts_taken
from tests.inputs.long_exports import details
from tests.robustness.damage import damaged

agree = READERS["ncu_details"].agree


HEADER = (
    '"ID","Process ID","Kernel Name","Range:PL:Color:Msg_Type:Msg","Section Name","Body Item Label","Metric Name",'
    '"Metric Unit","Metric Value","Rule Name","Rule Type","Rule Description","Estimated Speedup Type",'
    '"Estimated Speedup"\n'
)
PLAN = ColumnPlan(14, (0, 1, 2, 3), 4, 6, 7)


def metric(launch, cell, name="DRAM Throughput", unit="%", section="S", body="", process="7", said="", end=","):
    """A row of a metric, which ends behind its value."""
    return f'"{launch}","{process}","f(int)","{said}","{section}","{body}","{name}","{unit}","{cell}"{end}\n'


def rule(launch, name="Bottleneck", words="it waits", kind="global", saving="12.5", process="7"):
    """A row of a rule, which has all cells."""
    return f'"{launch}","{process}","f(int)","","S","","","","","{name}","OPT","{words}","{kind}","{saving}"\n'


def page(*rows, header=HEADER):
    return (header + "".join(rows)).encode()


def test_a_long_page_gives_the_same_both_ways():
    found, lines, *_ = agree("".join(details(2400)).encode())
    assert (len(found["launches"]), len(found["metrics"]), lines) == (30, 2400, [2400, 1, 0])


def test_plain_rows_are_read_at_once():
    rows = metric(0, "12.5"), metric(0, "1,024", "Cycles", "cycle"), rule(0), metric(1, "7"), metric(1, "7")
    part = parse("".join(rows).encode(), PLAN)
    assert part is not None
    assert (part.rows, part.firsts.tolist(), part.launch.tolist()) == (5, [0, 3], [0, 0, 0, 1, 1])
    assert part.identity == [["0", "1"], ["7", "7"], ["f(int)", "f(int)"], ["", ""]]
    of_rows = [part.names[name] for name in part.name.tolist()]
    throughput, cycles = ("S", "", "DRAM Throughput", "%"), ("S", "", "Cycles", "cycle")
    assert of_rows == [(throughput, 0), (cycles, 0), (("S", "", "", ""), 0), (throughput, 0), (throughput, 1)]
    np.testing.assert_array_equal(part.values, [12.5, np.nan, np.nan, 7, 7])
    assert {row: cells[9:] for row, cells in part.rules.items()} == {
        2: ["Bottleneck", "OPT", "it waits", "global", "12.5"]
    }


def test_the_rows_behind_the_header_are_read_at_once(monkeypatch):
    parts = parts_taken(monkeypatch, ncu_details)
    monkeypatch.setattr(ncu_details, "BLOCK_BYTES", 2000)
    rows = [metric(number // 3, number, f"M{number % 3}") for number in range(300)]
    batches = list(ncu_details.read(io.BytesIO(page(*rows))))
    assert sum(part.rows for part in parts if part) == 300
    wides = [batch.wide for batch in batches if batch.wide]
    assert sum(len(wide.lines) for wide in wides) == 100
    assert len({id(wide.columns) for wide in wides}) == 1
    assert not any("metrics" in batch.tables for batch in batches)


CELLS = (
    "1,234", "1,2", "1,2345", "1,234,567.5", "1.2,345", ",5", "1,", "-1,234", "+5", ".5", "5.", "1e5", "nan", "1e400",
    "(!) nan", "12 (5; 7)", " 5", "5 ", "-", ".", "1'234", "\u00e4", "", ",", "9" * 400, "0,1", "1.2.3", "0x1", '""',
)  # fmt: skip
NAMES = (
    ("DRAM Throughput", "%", "S", ""), ("DRAM Throughput", "%", "S", "B"), ("Duration", "us", "S", ""),
    ("Duration", "ms", "S", ""), ("Display Name", "", "S", ""), ("CPU Affinity", "", "", ""),
    ("Duration (gpu__time_duration.sum)", "ns", "T", ""), ("Cycles", "cycle", "", "B"), ("Odd", "odd/unit", "S", ""),
)  # fmt: skip


@pytest.mark.parametrize("cell", CELLS)
def test_an_odd_cell(cell):
    rows = [metric(0, "0.5"), metric(0, cell, "M"), metric(1, "7"), metric(1, cell, "M", "Gbyte"), rule(1)]
    agree(page(*rows, metric(2, cell, "Duration", "us"), metric(3, cell, "CPU Affinity", ""), metric(4, "1.5")))
    agree(page(metric(0, "7"), metric(1, cell), metric(2, "8", said=cell)))


@pytest.mark.parametrize(
    "odd",
    [
        "the program says\n", "\n", '"GPU ID","GPU Name"\n', "==PROF== Disconnected\n", metric(3, "7", end=""),
        metric(3, "7", end=",\r"), metric(3, "7", end=',"","","","",""'), metric(3, "7", end=',"",""'),
        metric(3, "7", end=',"",""' + ',""' * 9), '"3","7","f(int)"\n', metric("x", "7"), metric(1, "late"),
        rule(3, "", "no name"), rule(3, words='he said ""no""'), rule(3, words="two\nlines"), rule(3, saving="12,5"),
        metric(3, "7", ""), HEADER, HEADER + metric(0, "9"), '"3","7","f\n', metric(3, "7")[:-1], metric(3, "7")[:-4],
        metric(3, "7", process="1" * 40), metric(3, "7", process=""), rule(3)[:-9] + "\n", metric(0, "5", process="8"),
        HEADER.replace('"Section Name","Body Item Label",', "") + '"0","7","f(int)","","M","%","5"\n',
    ],
)  # fmt: skip
def test_an_odd_line_between_plain_ones(odd):
    before = [metric(number // 4, number, f"M{number % 4}") for number in range(16)]
    behind = [metric(number // 4, number, f"M{number % 4}") for number in range(16, 40)]
    agree(page(*before, odd, *behind))
    agree(page(*before, odd))
    agree(page(odd, *behind))


def test_a_refusal_names_the_first_line_that_contradicts():
    said = agree(page(metric(0, "0.5"), metric(0, "1,2"), metric(0, "1,2", "Duration", "us")))
    assert "'1,2' (line 3), '0.5' (line 2) contradict each other" in said


def test_metrics_that_hardly_a_launch_shares_are_rows():
    rows = [metric(launch, "1.5", f"M{launch}.{place}") for launch in range(40) for place in range(3)]
    found, *_ = agree(page(*rows))
    assert len(found["metrics"]) == 120


def test_launches_that_hold_only_rules():
    agree(page(*(rule(launch) for launch in range(5)), metric(5, "1.5"), rule(6)))


ROWS = st.tuples(
    st.integers(0, 4), st.sampled_from(CELLS[:8] + ("7", "0.5") * 8), st.sampled_from(NAMES), st.integers(0, 9)
)


@given(st.lists(ROWS, max_size=40), st.booleans())
def test_any_page_gives_the_same_both_ways(rows, in_order):
    rows = sorted(rows, key=lambda row: row[0]) if in_order else rows
    lines = [metric(launch, cell, *name) if kind else rule(launch) for launch, cell, name, kind in rows]
    agree(page(metric(0, "0.5"), *lines))


@pytest.mark.parametrize("seed", range(12))
def test_damaged_pages_give_the_same_both_ways(seed):
    whole = page(*(metric(number // 5, f"{number}.5", f"M{number % 5}") for number in range(60)), rule(11))
    agree(damaged(random.Random(seed), whole, [whole]))


def test_blocks_end_where_a_launch_does():
    rows = [metric(number // 3, "5").encode() for number in range(12)]
    pieces = [b"".join(rows[:4]), b"".join(rows[4:8]), b"".join(rows[8:])]
    assert list(map(bytes, whole_launches(iter(pieces), 10_000))) == [
        b"".join(rows[:3]), b"".join(rows[3:6]), b"".join(rows[6:9]), b"".join(rows[9:])
    ]  # fmt: skip
    assert list(map(bytes, whole_launches(iter(pieces), 10))) == pieces
    assert list(map(bytes, whole_launches(iter([b"words\n", b"more"]), 10))) == [b"words\n", b"more"]


def test_the_next_launch():
    rows = [metric(0, "5"), metric(0, "6"), "words\n", metric(1, "7"), metric(1, "8"), metric(2, "9")]
    block, begins = "".join(rows).encode(), np.cumsum([0, *map(len, rows)]).tolist()
    found = [begins.index(next_launch(block, begin)) for begin in begins[1:]]
    assert found == [2, 2, 3, 5, 5, 6]
