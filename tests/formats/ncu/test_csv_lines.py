import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.errors import BrokenInputError
from profsvc.formats.ncu.csv_lines import parse_header, records
from profsvc.formats.parsing.records import HEADER, REJECT, ROW, SKIP, UNITS, split_cells

RAW = '"ID","Process ID","Kernel Name","a"\n'
UNIT_ROW = '"","","","inst"\n'


def row(number, kernel="k"):
    quoted = kernel.replace('"', '""')
    return f'"{number}","1","{quoted}","5"\n'


def kinds(text, page="raw"):
    return [(record.kind, record.line, record.lines) for record in records(io.StringIO(text, newline="\n"), page)]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\n")), min_size=1))
def test_split_cells_agrees_with_csv(cells):
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerow(cells)
    assert split_cells(text.getvalue()) == cells
    assert split_cells(text.getvalue().rstrip("\n") + ",\n") == [*cells, ""]


@given(st.text(st.sampled_from('a", ')))
def test_split_cells_of_any_line(line):
    assert split_cells(line) == next(csv.reader([line]), [])


def test_long_kernel_name():
    name = 'f<"' + "x" * 200_000 + '">'
    limit = csv.field_size_limit()
    assert split_cells(row(0, name))[2] == name
    assert csv.field_size_limit() == limit
    assert kinds(RAW + UNIT_ROW + row(0, name))[-1] == (ROW, 3, 1)


def test_too_long_cell_is_rejected():
    assert kinds(RAW + UNIT_ROW + row(0, '"' + "x" * (1 << 20)))[-1] == (REJECT, 3, 1)


def test_open_quote_is_bounded():
    text = RAW + UNIT_ROW + '"0","1","open\n' + "words of a program\n" * 300_000 + row(1)
    first, *rest = kinds(text)[2:]
    assert first[:2] == (REJECT, 3)
    assert first[2] < 250_000
    assert rest[-1] == (ROW, 300_004, 1)


def test_name_over_lines():
    text = RAW + UNIT_ROW + row(0, 'f<"a\n2,3\nb">') + row(1)
    assert kinds(text) == [(HEADER, 1, 1), (UNITS, 2, 1), (ROW, 3, 3), (ROW, 6, 1)]


def test_a_short_row_of_odd_details_is_rejected():
    header = '"ID","Process ID","Metric Name","Metric Unit","Metric Value","Kernel Name","Rule Name"\n'
    found = list(records([header, '"0","1","a","inst","5"\n', '"0","1","a","inst","5","k"\n'], "details"))
    assert [record.kind for record in found] == [HEADER, REJECT, ROW]
    assert found[1].reason == "it has 5 cells but needs 6 to 7"


def test_stray_lines_are_rejected_inside_and_skipped_after_the_table():
    text = RAW + UNIT_ROW + row(0) + "stray\n" + row(1) + "bye\n" + '"piece\n' + "end"
    assert [kind for kind, *_ in kinds(text)] == [HEADER, UNITS, ROW, REJECT, ROW, SKIP, REJECT, REJECT]


def test_much_output_after_the_table_is_not_kept():
    assert kinds(RAW + UNIT_ROW + row(0) + "bye\n" * 5000)[-1] == (SKIP, 5003, 1)


@pytest.mark.parametrize(
    ("line", "columns"),
    [
        (RAW, 4),
        ("output" + RAW, 4),
        (RAW.replace('"', ""), 4),
        (RAW.rstrip(), 4),
        ('"ID","Process ID","Kernel Name","a', None),
        ("ID,time\n", None),
        ('"Kernel Name","Process ID","ID"\n', None),
    ],
)
def test_header(line, columns):
    header = parse_header(line)
    assert (header and len(header)) == columns


RANGES = '"ID","Process ID","thread Domain:Push/Pop_Range:Msg","Id:Domain:Start/Stop_Range:Msg","Kernel Name","a"'
UNITS_OF_RANGES = '"","","","","","ns"'


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("step", "step"),
        ('step "one", <b>', 'step "one", <b>'),
        ('a "quote', 'a "quote'),
        ('"', '"'),
        ('a"", "b', 'a", "b'),
        ('cut","here', None),
    ],
)
def test_quotes_in_the_name_of_a_range(name, expected):
    row = f'"0","7","7  ""<default domain>:{name}:none"" ","","k(int, float)","5"'
    *_, last = records([f"{line}\n" for line in (RANGES, UNITS_OF_RANGES, row)], "raw")
    if expected is None:
        assert last.kind == "reject"
        assert last.reason.endswith("upload the report itself (.ncu-rep), or rename the range and profile again")
    else:
        assert last.cells == ["0", "7", f'7  "<default domain>:{expected}:none" ', "", "k(int, float)", "5"]


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (
            '"Kernel Name","Metric Name","Metric Unit","Metric Value"',
            r"line 1: the column 'ID' is missing, which tells the launches of a kernel apart; export again with ncu",
        ),
        (
            '"ID","Process ID","Kernel Name","Metric Name","Metric Unit","Metric Value","ID"',
            r"line 1: 2 columns are called 'ID'; export again with ncu --csv --page details",
        ),
    ],
)
def test_a_header_without_a_column_says_which_and_what_it_tells(header, message):
    with pytest.raises(BrokenInputError, match=message):
        list(records([f"{header}\n"], "details"))


def test_a_row_with_ranges_may_lack_the_columns_of_rules():
    header = RANGES.replace('"a"', '"Section Name","Metric Name","Metric Unit","Metric Value","Rule Name"')
    row = '"0","7","7  ""<default domain>:a "b", c"" ","","k","S","Duration","us","5.1",'
    *_, last = records([f"{header}\n", f"{row}\n"], "details")
    assert last.cells == ["0", "7", '7  "<default domain>:a "b", c" ', "", "k", "S", "Duration", "us", "5.1"]
