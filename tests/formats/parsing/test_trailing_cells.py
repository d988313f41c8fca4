"""A comma inside a number does not move the values of a row unseen, where spare cells would hide it."""

import pytest

from profsvc.errors import BrokenInputError
from profsvc.formats.parsing.trailing_cells import UNNAMED_VALUE, TrailingCells

METER = "Time (s),Power (W),Board (degC)"
SMI = "timestamp, index, power.draw [W], clocks.sm [MHz]"
SMI_ROW = "2026/11/20 13:16:16.{}, 0, {}"
SUM = "Time (%),Total Time (ns),Instances,Avg (ns),Name"
ROCPROF = "Index,KernelName,gpu-id,grd,wgr,BeginNs,EndNs"
MORE = "it has one more empty cell at its end than the rows above, so a comma may be inside a number"
MOVED = [
    (METER, ["0,10.5,41.5", "1,1,234,", "2,12.5,"], MORE),
    (METER, ["0,10.5,41.5,", "1,1,234,,", "2,12.5,,"], MORE),
    (METER + ",", ["0,10.5,41.5,", "1,1,234,,", "2,12.5,41.5,"], MORE),
    (METER + ",", ["0,10.5,41.5", "1,1,234,", "2,12.5,41.5"], MORE),
    (SMI + ",", [SMI_ROW.format(215, "79.46,345,"), SMI_ROW.format(216, "80,46,345"), SMI_ROW.format(217, "81,345,")],
     UNNAMED_VALUE),
    (SUM + ",", ["50.0,300000,3,100000.0,k,", "30.0,300,000,1,300000.0,l", "20.0,200000,2,100000.0,l,"], UNNAMED_VALUE),
    (SUM + ",", ["50.0,300000,3,100000.0,k,", "30.0,300,000,1,,,", "20.0,200000,2,100000.0,l,"], MORE),
    (SUM, ["50.0,300000,3,100000.0,k", "30.0,300,000,1,2,", "20.0,200000,2,100000.0,l"], MORE),
    (ROCPROF, ["0,k,1,64,64,1000,2000", "1,k,1,1,024,64,2000,", "2,k,1,64,64,3000,4000"], MORE),
]  # fmt: skip
WHOLE = [
    (METER, ["0,10.5,41.5", "1,1234,", "2,12.5,"]),
    (METER, ["0,10,41,", "1,1234,,", "2,12,42,"]),
    (METER + ",", ["0,10,41", "1,1234,", "2,12,42"]),
    (METER + ",,", ["0,10,41,", "1,1234,,", "2,12,42,"]),
    # A spreadsheet saves sixteen rows at a time, each with as many signs as its widest row.
    (METER + ",", [*(f"{n},10,41," for n in range(16)), *(f"{n},10,41" for n in range(16, 32))]),
    (METER, ["0,10.5,41.5", "1,10.5,41.5,", "2,12.5,41.5"]),
    (SMI + ",", [SMI_ROW.format(n, "79.46,345,") for n in range(215, 218)]),
    (SUM + ",", ["50.0,300000,3,100000.0,k,", "30.0,300000,1,300000.0,l,"]),
    (SUM + ",", ["50.0,300000,3,100000.0,k", "30.0,300000,1,300000.0,l"]),
    (SUM, ["50.0,300000,3,100000.0,k,", "30.0,300000,1,300000.0,l,"]),
    (ROCPROF + ",", ["0,k,1,64,64,1000,2000,", "1,k,1,1024,64,2000,3000,"]),
]
FIRST = [(METER, ["0,1,234,", "1,999.5,41.5"]), (SUM, ["9,1,234,5,6,", "9,1,2,3,k"])]


def file(header, rows):
    return "".join(f"{line}\n" for line in (header, *rows)).encode()


@pytest.mark.parametrize(("header", "rows", "reason"), MOVED)
def test_a_row_whose_values_have_moved_is_rejected(header, rows, reason, read_all):
    content = read_all(file(header, rows))
    assert [(row["line"], row["reason"]) for row in content.rows("rejects")] == [(3, reason)]
    assert (content.stored, content.skipped, content.rejected) == (2, 1, 1)
    alone = read_all(file(header, [rows[0], rows[2]]))
    assert content.facts.get("number_format") == alone.facts.get("number_format")


@pytest.mark.parametrize(("header", "rows"), WHOLE)
def test_no_whole_row_is_lost(header, rows, read_all):
    content = read_all(file(header, rows))
    assert (content.stored, content.rejected) == (len(rows), 0)
    assert not [row for row in content.rows("sensors") if not str(row["name"]).strip()]


@pytest.mark.parametrize(("header", "rows"), FIRST)
def test_a_first_row_that_may_have_moved_is_refused(header, rows, read_all):
    with pytest.raises(BrokenInputError, match="line 2 has one more empty cell at its end than line 3"):
        read_all(file(header, rows))


def test_words_settle_nothing():
    spare = TrailingCells(3)
    assert [spare.reason(cells, 2) for cells in (["s", "W", "degC"], ["0", "10", "41", ""])] == ["", ""]
    assert spare.reason(["1", "10", "41", "", ""], 4) == MORE


def test_no_comma_stands_inside_a_number_where_others_part_the_cells():
    spare = TrailingCells(3, ";")
    assert not any(spare.reason(cells, 2) for cells in (["0", "10", "41"], ["1", "10", "41", ""]))
