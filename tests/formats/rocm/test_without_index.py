"""Tables of rocprof from which a script has removed the column of the dispatch."""

import csv
import io

import pytest

from profsvc.errors import UnknownFormatError
from tests.formats.fixtures import ROOT


def without(path: str, *columns: str) -> bytes:
    """A file without some of its columns."""
    rows = list(csv.DictReader(io.StringIO((ROOT / "rocprof" / path).read_text(encoding="utf-8"))))
    names = [name for name in rows[0] if name not in columns]
    text = io.StringIO()
    writer = csv.DictWriter(text, names, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def test_a_row_is_a_dispatch_without_its_number(read_all):
    whole, cut = read_all(without("rocprof.csv")), read_all(without("rocprof.csv", "Index"))
    assert whole.launches["source_id"].notna().all()
    assert cut.launches["source_id"].isna().all()
    for table in ("launches", "metrics"):
        assert (
            cut.tables[table]
            .drop(columns="source_id", errors="ignore")
            .equals(whole.tables[table].drop(columns="source_id", errors="ignore"))
        )
    without_times = read_all(without("rocprof.csv", "Index", "BeginNs", "EndNs"))
    assert without_times.launches["grid_x"].tolist() == whole.launches["grid_x"].tolist()
    assert without_times.launches["duration_ns"].isna().all()


def test_counters_of_no_dispatch_are_no_dispatches(read_all):
    with pytest.raises(UnknownFormatError):
        read_all(without("counter_collection.csv", "Dispatch_Id"))
