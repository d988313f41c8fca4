"""A block split by the compiled splitter has the columns that Arrow finds; what is not plain is left to Arrow."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formats.columnar import split_table
from profsvc.formats.columnar.line_blocks import IrregularBlockError
from profsvc.formats.columnar.split_table import CHECKED, DECIMAL, EMPTY, INTEGER, REAL, TEXT, ArrowTable, SplitTable
from profsvc.formats.splitter import rows

compiled = pytest.mark.skipif(not rows.is_available(), reason="the splitter is not compiled here, or turned off")
TYPES = [INTEGER, REAL, TEXT, DECIMAL, CHECKED, EMPTY]
PLAIN = ["12", "1.5", '"saxpy(int, float)"', "0.250", "any", ""]


def content(table):
    texts, codes = table.texts(2)
    numbers = [table.numbers(0), table.numbers(1), table.decimals(3)]
    return table.rows, [texts[code] for code in codes], [[part.tolist() for part in column] for column in numbers]


def answer(way, data, separator, decimal):
    try:
        return content(way(data, TYPES, separator, decimal))
    except (pa.ArrowInvalid, IrregularBlockError):
        return None


ODD = ["-3", "1e5", "x", "1,5", " 7", '""', '"a""b"', "1.2.3", "9223372036854775807", "\u00e4", "00"]
CELLS = st.sampled_from([*PLAIN, *ODD])
ROWS = st.lists(st.one_of(st.just(PLAIN), st.lists(CELLS, min_size=6, max_size=6)), max_size=8)


@compiled
@given(ROWS, st.sampled_from(",\t"), st.sampled_from([".", ""]))
def test_what_is_split_is_what_arrow_finds(cells, separator, decimal):
    data = "".join(separator.join(row) + "\n" for row in cells).encode()
    found = answer(SplitTable, data, separator, decimal)
    if found is not None:
        # Before Arrow splits them, rows that end in a tab are left out as if a blank stood behind a number.
        assert answer(ArrowTable, data, separator, decimal) in ([found, None] if "\t\n" in data.decode() else [found])
    if cells and all(row == PLAIN for row in cells):
        assert (found is None) == (not decimal)


@compiled
def test_the_fastest_way_comes_first(monkeypatch):
    assert split_table.ways() == [SplitTable, ArrowTable]
    monkeypatch.setenv(rows.OFF_VARIABLE, "0")
    assert split_table.ways() == [ArrowTable]


@compiled
@pytest.mark.parametrize("row", [b"1,1,a,1,,x\n", b"1,1,a,1,\n", b"1,1,a,-1,,\n", b'1,1,"a\n",1,,\n', b"1,1,a,1,,"])
def test_an_irregular_row_is_refused(row):
    with pytest.raises(IrregularBlockError):
        SplitTable(b"1,1,a,1,,\n" + row, TYPES, ",", ".")
