"""A report that Nsight Compute wrote on an H200, against the pages that it printed of it."""

import importlib.util
from pathlib import Path

import pandas as pd
import pytest

from profsvc.errors import BrokenInputError
from profsvc.formats.ncu.source import copied_tables, read, sniff

FOLDER = Path(__file__).parents[3] / "fixtures" / "h200_report"
# The package, which is newer than the tool that wrote the report, has a unit where that tool prints none.
NEWER_UNITS = {"idc__requests.sum"}
needs_package = pytest.mark.skipif(
    importlib.util.find_spec("ncu_report") is None, reason="the package ncu-report is not installed"
)
pytestmark = needs_package


def plain(table: pd.DataFrame) -> pd.DataFrame:
    return table.astype(object).where(table.notna(), None)


@pytest.fixture(scope="module")
def report(read_all):
    content = read_all(FOLDER / "ncu_report.ncu-rep.zst")
    assert (content.message, content.rejected) == ("", 0)
    return content


@pytest.fixture(scope="module")
def raw(read_all):
    return read_all(FOLDER / "ncu_raw_base.csv.gz")


def test_launches_are_the_same(report, raw):
    own = sorted(set(raw.launches.columns) - {"line"})
    assert plain(report.launches[own]).equals(plain(raw.launches[own]))
    assert raw.launches["process_name"].tolist() == ["tiny", "tiny"]


def test_values_agree_to_the_last_printed_digit(report, raw):
    keys = ["launch_index", "metric"]
    ours, theirs = (c.metrics.set_index(keys).sort_index() for c in (report, raw))
    assert ours.index.equals(theirs.index)
    other = theirs["unit"].fillna("") != ours["unit"].fillna("")
    assert set(theirs.index[other].get_level_values("metric")) == NEWER_UNITS
    assert plain(theirs[["reason"]]).equals(plain(ours[["reason"]]))
    is_number = theirs["value"].notna()
    assert is_number.sum() > 4400
    assert theirs["raw_text"][~is_number].equals(ours["raw_text"][~is_number])
    assert "no data" in set(theirs["raw_text"][~is_number])
    printed = theirs["raw_text"][is_number].str.replace(",", "")
    half = printed.map(lambda text: 0.5 * 10.0 ** -len(text.partition(".")[2]))
    far = (printed.astype(float) - ours["raw_text"][is_number].astype(float)).abs() > half * (1 + 1e-9)
    assert far.sum() == 0, printed[far]


def test_rules_and_estimates_are_the_same(report, read_all):
    own = ["launch_index", "section", "rule", "rule_type", "kind", "message"]
    estimates = ["estimated_saving_fraction", "estimated_speedup"]
    ours, theirs = (
        content.rules.fillna(dict.fromkeys(own[1:], "")).sort_values(own, ignore_index=True)
        for content in (report, read_all(FOLDER / "ncu_details.csv.gz"))
    )
    assert len(theirs) == 28
    assert ours[own].equals(theirs[own])
    percent, *_ = (100 * (ours[name] - theirs[name]).abs() for name in estimates)
    assert percent.max() <= 0.005 + 1e-9
    assert ours[estimates].isna().equals(theirs[estimates].isna())
    assert theirs["estimated_speedup"].notna().sum() > 10


SHOWN_BY_BOTH_FORMS = ("source_text", "source_line", "file")


@pytest.mark.parametrize("form", ["source", "source_sass"])
def test_instructions_and_their_stall_reasons_are_the_same(report, read_all, form):
    page = read_all(FOLDER / f"ncu_{form}.csv.gz")
    keys = ["source_index", "address"]
    tables = [content.source_lines.query("kind == 'instruction'") for content in (report, page)]
    hidden = SHOWN_BY_BOTH_FORMS if form == "source_sass" else ()
    own = [name for name in tables[0].columns if name not in ("line_index", "line", *hidden)]
    ours, theirs = (plain(table.sort_values(keys, ignore_index=True)) for table in tables)
    if not hidden:  # the page leaves out the indentation
        ours["source_text"] = ours["source_text"].map(lambda text: text and text.strip()).astype(object)
    assert len(theirs) == 176
    pd.testing.assert_frame_equal(ours[own], theirs[own])
    assert set(theirs["opcode"]) >= {"LDG.E", "FFMA", "NOP", "BRA"}
    assert stalls(report, tables[0], keys) == stalls(page, tables[1], keys)


def test_source_lines_are_the_same(report, read_all):
    page = read_all(FOLDER / "ncu_source.csv.gz")
    keys = ["source_index", "file", "source_line"]
    tables = [content.source_lines.query("kind == 'line'") for content in (report, page)]
    own = [name for name in tables[0].columns if name not in ("line_index", "line")]
    ours, theirs = (plain(table.sort_values(keys, ignore_index=True)) for table in tables)
    ours["source_text"] = ours["source_text"].str.strip().astype(object)
    assert len(theirs) == 9
    pd.testing.assert_frame_equal(ours[own], theirs[own])
    assert stalls(report, tables[0], keys) == stalls(page, tables[1], keys)


def stalls(content, lines, keys):
    both = plain(content.source_stalls.merge(lines[["line_index", *keys]], on="line_index"))
    return {tuple(row) for row in both[[*keys, "reason", "samples", "samples_not_issued"]].to_numpy().tolist()}


def test_a_page_that_shows_each_launch_twice_is_read_once(read_all):
    content = read_all(FOLDER / "ncu_source_sass.csv.gz")
    assert content.source_kernels["kernel"].str.partition("(")[0].tolist() == ["saxpy", "column_sums"]
    assert content.message == "the page shows each launch twice; its copies are skipped"
    assert content.skipped == 182


TABLE = '"Kernel Name","{}"\n"Address","Source","# Samples"\n"0x10","      NOP","{}"\n"0x20","      EXIT","0"\n'


@pytest.mark.parametrize(
    ("tables", "copies"),
    [
        ([("a", 3), ("a", 3)], {1}),
        ([("a", 3), ("a", 3), ("a", 3), ("a", 3)], {1, 3}),
        ([("a", 3), ("a", 3), ("b", 0), ("b", 0)], {1, 3}),
        ([("b", 0), ("b", 0), ("a", 3), ("a", 3), ("b", 0), ("b", 0)], {1, 3, 5}),
        ([("a", 3), ("a", 3), ("b", 1)], {1}),  # cut
        ([("a", 3)], set()),
        ([("a", 3), ("b", 3)], set()),
        ([("a", 3), ("a", 4)], set()),
        ([("a", 3), ("a", 3), ("b", 3), ("b", 4)], {1}),  # some kernels are printed twice, and others once
        ([("b", 3), ("a", 3), ("a", 3), ("b", 3)], {2}),
        ([("a", 3), ("b", 3), ("a", 3), ("b", 3)], set()),
        ([("a", 3), ("a", 3), ("b", 3), ("a", 3), ("c", 1)], set()),  # one launch of this kernel has no copy
        ([("a", 3), ("a", 3), ("a", 3), ("b", 1)], set()),
        ([("a", 0), ("a", 0)], set()),  # two launches without samples may be the same
    ],
)
def test_copies_of_launches_are_distinguished_from_launches(tables, copies):
    assert copied_tables("".join(TABLE.format(*table) for table in tables).splitlines(keepends=True)) == copies


def test_a_copy_may_be_cut():
    whole = [line for table in [("a", 3), ("a", 3), ("b", 2), ("b", 2)] for line in TABLE.format(*table).splitlines()]
    assert [copied_tables(whole[:end]) for end in range(8, 17)] == [{1}] * 5 + [{1, 3}] * 4
    assert copied_tables(['"File Path","/a.cu"', *whole]) == set()
    assert copied_tables([]) == set()


NO_LINES = "==WARNING== No lineinfo available to show CUDA-C source related to '{}'.\n"


def test_kernels_without_lines_are_said_to_be_absent(tmp_path):
    file = tmp_path / "source.csv"
    file.write_text(NO_LINES.format("copy") + TABLE.format("a", 3) + NO_LINES.format("at::native::fill<(int)4>"))
    with file.open("rb") as stream:
        *_, last = read(stream)
    assert last.message == (
        "2 launches without line information, of which the page shows nothing; "
        "their machine code: ncu -i REPORT --csv --page source --print-source sass"
    )


def test_a_page_of_nothing_but_kernels_without_lines_is_refused_with_what_to_export(tmp_path):
    text = NO_LINES.format("vote_local") * 3
    assert sniff(text.encode())
    assert not sniff(b"==PROF== Connected\n" + text.encode())
    file = tmp_path / "source.csv"
    file.write_text(text)
    with file.open("rb") as stream, pytest.raises(BrokenInputError, match=r"3 launches without line information.*sass"):
        list(read(stream))
