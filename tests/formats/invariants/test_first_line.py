"""Files whose first line was cut off, as by tail -n +2: read where the rest tells everything, else refused with why."""

import pytest

from profsvc import formats
from profsvc.errors import UnknownFormatError
from tests.formats.both_ways import unpacked
from tests.formats.fixtures import ROOT, good, shown

HEADED = (
    "codecarbon/emissions.csv",
    "dcgm/long.csv",
    "marks/h200.csv",
    "ncu_details/columns_16.csv",
    "nsys_stats/gpu_trace.csv",
    "rocprof/rocprof.csv",
)
FILES = [path for path in good("afterburner", "lvm") if path.name != "no_header.lvm"]


def without_first_line(path) -> bytes:
    return unpacked(path).partition(b"\n")[2]


def plain(content):
    return {
        name: table.drop(columns="line", errors="ignore").to_dict("records")
        for name, table in content.tables.items()
        if name != "rejects"
    }


@pytest.mark.parametrize("path", FILES, ids=shown)
def test_a_line_that_names_only_the_program_may_be_missing(path, read_all):
    whole, cut = read_all(path), read_all(without_first_line(path))
    assert cut.reader == whole.reader
    assert str(plain(cut)) == str(plain(whole))
    assert (cut.stored, cut.skipped, cut.rejected) == (whole.stored, whole.skipped - 1, whole.rejected)


@pytest.mark.parametrize("name", HEADED)
def test_rows_without_the_names_of_their_columns_are_refused_with_the_reason(name):
    with pytest.raises(UnknownFormatError, match="its first line has values and no names of columns: if that line was"):
        formats.detect(without_first_line(ROOT / name))
