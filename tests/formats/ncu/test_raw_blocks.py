"""Blocks of a raw page read at once give what the same lines give one by one."""

import io
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formats.columnar import line_blocks
from profsvc.formats.ncu import raw as ncu_raw
from profsvc.formats.ncu import raw_blocks as ncu_raw_blocks
from profsvc.formats.ncu.raw_blocks import ColumnPlan, parse
from profsvc.formats.parsing.numbers import NumberFormat
from profsvc.formats.parsing.stream import open_stream
from tests.formats.both_ways import READERS, parts_taken
from tests.inputs.long_exports import ncu_raw as generated
from tests.robustness.damage import damaged

READER = READERS["ncu_raw"]
agree = READER.agree


HEADER = '"ID","Process ID","Kernel Name","Block Size","a__cycles.sum","gpu__time_duration.sum","launch__tpc_enabled"\n'
UNITS = '"","","","","cycle","ns",""\n'
ROW = '"0","7","saxpy(float *, int)","(64, 1, 1)","12.5","1,024","0,1"\n'
PLAN = ColumnPlan(7, [0, 1, 2, 3], [4, 5, 6], NumberFormat(".", ","))


def row(number, first="12.5", second="1,024", third="0,1"):
    """A launch with cells of its own."""
    return f'"{number}","7","saxpy(float *, int)","(64, 1, 1)","{first}","{second}","{third}"\n'


def page(*rows, header=HEADER, units=UNITS):
    return (header + units + "".join(rows)).encode()


def test_a_wide_page_gives_the_same_both_ways():
    found, lines, *_ = agree("".join(generated(40, 30)).encode())
    assert (len(found["launches"]), len(found["metrics"]), lines) == (40, 1200, [40, 2, 0])


def test_a_refusal_names_the_first_line_that_contradicts():
    said = agree(page(ROW, row(1, "1'234"), row(2, "1\u202f234"), row(3, "1,2")))
    assert "'12.5' (line 3), \"1'234\" (line 4), '1,024' (line 3) contradict each other" in said


def test_plain_rows_are_read_at_once():
    part = parse((ROW + row(1, "7", "", "n/a") + row(2, "1,234.5", "2e3", "0,1")).encode(), PLAN)
    assert part is not None
    assert part.identity[0] == ["0", "1", "2"]
    assert part.values.tolist()[0][:2] == [12.5, 1024.0]
    assert part.values[2, 0] == 1234.5
    assert np.argwhere(part.odd).tolist() == [[0, 2], [1, 2], [2, 1], [2, 2]]
    assert np.isnan(part.values[part.odd]).all()
    assert np.isnan(part.values[1, 1])


def test_the_first_blocks_and_those_behind_them_are_read_at_once(monkeypatch):
    monkeypatch.setattr(line_blocks, "SMALL_BLOCK_BYTES", 1)
    monkeypatch.setattr(ncu_raw, "BLOCK_BYTES", 2000)
    monkeypatch.setattr(ncu_raw, "FIRST_BLOCK_BYTES", 700)
    parts = parts_taken(monkeypatch, ncu_raw)
    batches = list(ncu_raw.read(io.BytesIO(page(*(row(number, number) for number in range(200))))))
    assert all(parts)
    assert sum(part.rows for part in parts) == 200
    assert sum(len(batch.wide.lines) for batch in batches if batch.wide) == 200


CELLS = (
    "1,234", "1,2", "1,2345", "12,34,567", "1,234,567.5", "1.2,345", ",5", "1,", "1234,567", "-1,234", "+5", ".5",
    "5.", "1e5", "1e0005", "1E-3", "nan", "-inf", "1e400", "(!) nan", "12 (5; 7)", "1,000 (5)", " 5", "5 ", "0x1", "-",
    ".", "1'234", "1\u202f234", "\u00e4", "", ",", "5\r", "9" * 400, "0,1", "\u0663", "--1", "1.2.3", "12_000",
)  # fmt: skip


@pytest.mark.parametrize("cell", CELLS)
def test_an_odd_cell(cell):
    agree(page(ROW, row(1, cell), row(2, cell, cell), row(3, "1", "2", cell), row(4, "1.5")))
    agree(page(row(0, "7", "8"), row(1, cell), row(2, "1", cell)))


@pytest.mark.parametrize(
    "odd",
    [
        "program output\n",
        "\n",
        "==PROF== Disconnected\n",
        HEADER,
        HEADER + UNITS,
        HEADER.replace('"a__cycles.sum",', ""),
        UNITS,
        ROW,
        row(1)[:-1] + ",\n",
        row(1)[:-1] + ',""\n',
        row(1)[:-1] + "\r\n",
        row(1)[:40] + "\n",
        row(1)[:-2] + "\n",
        row("x"),
        row("\u0663"),
        row(""),
        row(1, 'a""b'),
        row(1, "a\nb"),
        row(1).replace('"12.5"', "12.5"),
        row(1).replace('"12.5"', '"12.5'),
        row(1).replace('"12.5","1', '"12.5";"1'),
        row(1).replace('"12.5","1', '"12.5" "1'),
        row(1).replace('"12.5","1', '"12.5""1'),
        row(1).replace("\n", ""),
    ],
)
def test_an_odd_line_among_plain_ones(odd):
    agree(page(ROW, row(5), odd, *(row(number) for number in range(6, 12))))
    agree(page(ROW, row(5), odd))


def test_lines_that_end_as_on_another_system():
    data = page(*(row(number, number + 0.5) for number in range(20))).replace(b"\n", b"\r\n")
    assert parse(data.split(b"\r\n", 2)[2], PLAN) is not None
    assert agree(data)[1] == [20, 2, 0]


def test_a_launch_that_stands_twice_is_rejected_once():
    found, lines, *_ = agree(page(*(row(number % 7) for number in range(9))))
    assert (len(found["launches"]), lines) == (7, [7, 2, 2])


@pytest.mark.parametrize("signs", [(",", "."), (".", "'"), (",", " "), (".", "")])
def test_other_signs(signs):
    decimal, thousands = signs
    cells = [f"1{thousands}234{decimal}5", f"0{decimal}25", f"12{thousands}345", "17"]
    agree(page(*(row(number, cells[number % 4], cells[(number + 1) % 4]) for number in range(12))))


def test_thousands_that_come_late():
    cells = ["0.5", "17", "1,234", "12,345,678"]
    found, _, facts, _ = agree(page(*(row(number, cells[number // 6], "") for number in range(24))))
    assert facts["number_format"] == "1,234.5"
    assert found["metrics"][-2]["value"] == 12345678


def test_signs_that_contradict_each_other_are_refused_both_ways():
    assert "contradict" in agree(page(*(row(number, "0.5" if number < 20 else "1234,5") for number in range(24))))


def test_columns_between_the_metrics_and_a_page_without_any():
    header = '"ID","Process ID","b__cycles.sum","Kernel Name","c__cycles.sum"\n'
    rows = [f'"{number}","7","{number}.5","f","1,024"\n' for number in range(9)]
    found, *_ = agree(page(*rows, header=header, units='"","","cycle","","cycle"\n'))
    assert [row["value"] for row in found["metrics"][:4]] == [0.5, 1024, 1.5, 1024]
    rows = [f'"{number}","7","f"\n' for number in range(9)]
    agree(page(*rows, header='"ID","Process ID","Kernel Name"\n', units='"","",""\n'))


LINES = st.one_of(
    st.sampled_from([HEADER, UNITS, "output\n", '"\n']),
    st.tuples(st.integers(0, 30), st.lists(st.sampled_from(CELLS), max_size=3)).map(lambda two: row(two[0], *two[1])),
    st.text('0,"\n1.', max_size=30).map(lambda text: text + "\n"),
)


@given(st.lists(LINES, max_size=25))
def test_any_lines_give_the_same_both_ways(lines):
    agree(page(ROW, *lines))


def test_damaged_files_give_the_same_both_ways():
    rng = random.Random(4)
    pool = [page(*(row(number, f"{number},{number + 100}", number / 8, "0,1") for number in range(12)))]
    pool += [open_stream(path).read()[:3_000] for path in READER.files]
    for _ in range(100):
        data = damaged(rng, rng.choice(pool), pool)
        if b"\0" not in data[:4]:
            agree(data)


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 64, 1 << 20])
def test_pieces_of_any_size_hold_the_same(piece, monkeypatch):
    block = "".join(row(number, f"{number},100.5", "e" * (number % 3)) for number in range(30)).encode()
    whole = parse(block, PLAN)
    monkeypatch.setattr(ncu_raw_blocks, "PIECE_BYTES", piece)
    part = parse(block, PLAN)
    assert part.identity == whole.identity
    for found, expected in zip(part[2:], whole[2:], strict=True):
        np.testing.assert_array_equal(found, expected)


def test_identities_between_metrics():
    plan = ColumnPlan(5, [0, 3], [1, 2, 4], NumberFormat())
    part = parse(b'"0","1.5","","f<int, 2>","7"\n"1","2","3","g","x"\n', plan)
    assert part.identity == [["0", "1"], ["f<int, 2>", "g"]]
    np.testing.assert_array_equal(part.values, [[1.5, np.nan, 7], [2, 3, np.nan]])
    assert np.argwhere(part.odd).tolist() == [[1, 2]]


def test_a_block_whose_cells_mislead_is_left_alone():
    assert parse(b"", PLAN) is None
    assert parse(ROW.encode()[:-1], PLAN) is None
    assert parse(ROW.replace("saxpy", "").replace("12.5", "12:5").encode(), PLAN) is not None
    assert parse(ROW.replace(",", ";").encode(), PLAN) is None
    assert ncu_raw_blocks.parse(b'"\n' * 14, PLAN) is None
