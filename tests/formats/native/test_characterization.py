"""Characterizations of devices: the quantities, the header and batches."""

import re

import pytest

from profsvc.errors import BrokenInputError
from profsvc.formats.native import characterization
from profsvc.specs.criteria import quantities
from profsvc.specs.files.formats import format_pages

HEADER = b"device,quantity,x,y,unit,method\n"


@pytest.mark.parametrize("quantity", quantities())
def test_every_known_quantity_is_read(quantity, read_all):
    content = read_all(HEADER + f"a board,{quantity},1,0.5,,\n".encode())
    assert content.characterizations["quantity"].tolist() == [quantity]


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
