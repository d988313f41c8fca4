"""Raw pages that a script wrote again: other quotes are read, other numbers are rejected with what is there."""

import pytest

from profsvc.errors import BrokenInputError
from tests.formats.both_ways import READERS

COLUMNS = ("ID", "Process ID", "Kernel Name", "Stream", "gpu__time_duration.sum")
HEADER, UNITS, ROW = COLUMNS, ("", "", "", "", "us"), ("0", "4711", "saxpy(int)", "7", "6.75")
NEXT = ("1", "4711", "saxpy(int)", "7", "8.5")


def quoted(*cells: str) -> str:
    return ",".join(f'"{cell}"' for cell in cells) + "\n"


def plain(*cells: str) -> str:
    return ",".join(cells) + "\n"


def mixed(*cells: str) -> str:
    """Text in quotes and numbers without, as R and csv.QUOTE_NONNUMERIC write them."""
    return ",".join(cell if cell.replace(".", "").isdigit() else f'"{cell}"' for cell in cells) + "\n"


@pytest.mark.parametrize(
    ("header", "units", "row"), [(quoted, quoted, mixed), (quoted, plain, plain), (plain, quoted, quoted)]
)
def test_rows_may_be_quoted_otherwise_than_their_header(header, units, row, read_all):
    page = header(*HEADER) + units(*UNITS) + row(*ROW) + row(*NEXT)
    content = read_all(page.encode())
    assert (content.stored, content.skipped, content.rejected) == (2, 2, 0)
    assert content.launches["duration_ns"].tolist() == [6750.0, 8500.0]
    READERS["ncu_raw"].agree(page.encode())


@pytest.mark.parametrize("output", ["1,2,3\n", "1,2,3,4,5\n".replace("1", "a"), "12.5,7,x,7,1\n", "1,-2,x,7,1\n"])
def test_output_of_a_program_is_no_row(output, read_all):
    content = read_all((quoted(*HEADER) + quoted(*UNITS) + quoted(*ROW) + output).encode())
    assert (content.stored, content.skipped, content.rejected) == (1, 3, 0)


def test_rows_with_other_numbers_are_rejected_with_what_is_there(read_all):
    content = read_all((plain(*HEADER) + plain(*UNITS) + plain("0.5", *ROW[1:])).encode())
    assert (content.stored, content.rejected) == (0, 1)
    assert content.message.startswith(
        "no launches: the file holds no readable row; line 3: it has the cells of a row, but not as Nsight Compute "
        "writes them (it begins with '0.5,4711,saxpy(int),'): upload the file as Nsight Compute wrote it"
    )


def test_whole_numbers_that_pandas_made_floats_are_read(read_all):
    page = plain(*HEADER) + plain(*UNITS) + plain("0.0", "4711.0", "saxpy(int)", "7.0", "6.75") + plain(*NEXT)
    content = read_all(page.encode())
    assert (content.stored, content.skipped, content.rejected) == (2, 2, 0)
    assert content.launches[["source_id", "process_id", "stream"]].values.tolist() == [["0", 4711, 7], ["1", 4711, 7]]
    READERS["ncu_raw"].agree(page.encode())
    cut = read_all(page.encode() + b"2.0,4711.0,saxpy(int),7.0,")
    assert (cut.stored, cut.rejected) == (2, 1)


def test_a_page_without_units_says_what_is_missing(read_all):
    units = "the row of units after the header of the raw page is missing"
    again = "export again with: ncu -i REPORT --csv --page raw --print-units base"
    with pytest.raises(BrokenInputError, match=f"line 2: {units}.*{again}"):
        read_all((quoted(*HEADER) + quoted(*ROW)).encode())
    message = read_all((quoted(*HEADER) + quoted(*ROW[:-1])).encode()).message
    assert "line 2: it has 4 cells but needs 5" in message
    assert units in message
    assert again in message
