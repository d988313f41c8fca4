"""Characterizations of devices: the quantities, the header and batches."""

import re

import pytest

from profsvc.errors import BrokenInputError
from profsvc.formats.native import characterization
from profsvc.specs.criteria import FIGURE, measured_figures, quantities
from profsvc.specs.files.formats import format_pages

HEADER = b"device,quantity,x,y,unit,method\n"


@pytest.mark.parametrize("quantity", quantities())
def test_every_known_quantity_is_read(quantity, read_all):
    unit = measured_figures()[quantity].unit if quantities()[quantity] == FIGURE else ""
    y = {"B/s": "3e12", "1/s": "1e9", "Hz": "2e9"}.get(unit, "0.5")
    content = read_all(HEADER + f"a board,{quantity},1,{y},,\n".encode())
    assert content.characterizations["quantity"].tolist() == [quantity]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("bandwidth_dram_read,,4480,B/s,GB/s", "a plausible value is 1e+08 to 1e+17: bandwidth_dram_read is in B/s"),
        ("time_launch,,3.4,s,us", "a plausible value is 1e-10 to 1: time_launch is in s"),
        ("clock_sm,,1980,Hz,MHz", "a plausible value is 1e+07 to 1e+11: clock_sm is in Hz"),
        ("k_l2_load,,1e300,cycle,", "a plausible value is 1e-06 to 1e+06: a cost is in cycles"),
        ("latency_dram,,5e-324,cycle,", "a plausible value is 1e-06 to 1e+06: latency_dram is in cycle"),
        ("F_Divergence,2,0.9,,per cent", "x is 2, but must be 0 to 1 for F_Divergence"),
        ("F_SHMEM,33,0.9,,", "x is 33, but must be 0 to 32 for F_SHMEM"),
        ("F_DRAMThr,1e300,0.9,,", "x is 1e300, but must be 0 to 1e+18 for F_DRAMThr"),
    ],
)
def test_a_value_in_another_unit_is_rejected_with_the_range(line, reason, read_all):
    content = read_all(HEADER + f"a board,k_l2_load,,3,,\na board,{line}\n".encode())
    assert (content.stored, content.rejected) == (1, 1)
    assert reason in content.rejects["reason"].iloc[0]


def test_the_columns_are_those_of_the_page_and_the_quantities_too():
    page = format_pages()[characterization.NAME]
    assert HEADER.decode() in page
    named = set(re.findall(r"\b[kF]_\w+(?::\w+)?", page))
    assert named <= set(quantities())
    assert {name for name in quantities() if name.startswith("F_") and ":" not in name} <= named


def test_a_forced_reader_refuses_another_header(read_all):
    with pytest.raises(BrokenInputError, match="line 2: the header lacks quantity, lacks x, has an unknown column 'k'"):
        read_all(b"# my own\ndevice,k,y\n", "characterization")


def test_a_long_file_comes_in_batches(monkeypatch, read_all):
    monkeypatch.setattr(characterization, "BATCH_ROWS", 2)
    content = read_all(HEADER + b"a board,k_l2_load,,3,,\n" * 5)
    assert content.characterizations["line"].tolist() == [2, 3, 4, 5, 6]
    assert (content.stored, content.skipped) == (5, 1)


@pytest.mark.parametrize("columns", ["device,quantity,x,y", "y,device,quantity,x"])
def test_a_last_row_that_lacks_its_line_end_alone_is_taken_and_told(columns, read_all):
    row = {"device": "a board", "quantity": "F_DRAMThr", "x": "64", "y": "0.93"}
    line = ",".join(row[name] for name in columns.split(","))
    content = read_all(f"{columns}\n{line}\n{line}".encode())
    assert (content.stored, content.rejected) == (2, 0)
    assert "its last value may be cut" in content.message
