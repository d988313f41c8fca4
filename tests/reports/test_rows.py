"""Rows in every form of ``-o``."""

import csv
import io
import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from profsvc.errors import UsageError
from profsvc.reports.rows import FORMATS, _wrapped, cell, plain, render, visible

COLUMNS = ["kernel", "n", "x"]
ROWS: list[dict[str, Any]] = [
    {"kernel": "größe<λ>|*", "n": np.int64(3), "x": np.float64(2.5), "not asked for": 1},
    {"kernel": None, "n": None, "x": math.nan},
    {"kernel": "two\nlines", "n": -7, "x": math.inf},
    {"kernel": "", "n": True},
]


def read_csv(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline=""), strict=True))


def test_json_holds_rows_and_says_whether_they_were_cut():
    whole = json.loads(render(COLUMNS, ROWS, "json", truncated=True))
    assert (whole["ok"], whole["columns"], whole["truncated"]) == (True, COLUMNS, True)
    assert whole["rows"] == [
        {"kernel": "größe<λ>|*", "n": 3, "x": 2.5},
        {"kernel": None, "n": None, "x": None},
        {"kernel": "two\nlines", "n": -7, "x": None},
        {"kernel": "", "n": True, "x": None},
    ]
    assert "größe" in str(render(COLUMNS, ROWS, "json"))


def test_ndjson_has_the_same_rows_a_line_each():
    lines = str(render(COLUMNS, ROWS, "ndjson")).splitlines()
    assert [json.loads(line) for line in lines] == json.loads(render(COLUMNS, ROWS, "json"))["rows"]


def test_csv_round_trips():
    text = str(render(COLUMNS, ROWS, "csv"))
    assert text == 'kernel,n,x\ngröße<λ>|*,3,2.5\n,,\n"two\nlines",-7,\n,True,\n'
    assert read_csv(text)[3] == ["two\nlines", "-7", ""]


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "a name": st.text("ab \n-", max_size=9),
                "n": st.none() | st.integers(-9999, 9999),
                "x": st.none() | st.floats(allow_nan=False),
                "mixed": st.integers() | st.just("text") | st.none(),
            }
        ),
        max_size=4,
    ),
    st.integers(20, 80),
)
def test_a_table_that_fits_is_the_same_without_rich(found: list[dict[str, Any]], width: int) -> None:
    names = ["a name", "n", "x", "mixed"]
    quick = str(render(names, found, "table", width=width))
    numeric = [all(isinstance(plain(r.get(c)), int | float | None) for r in found) for c in names]
    assert quick == _wrapped(names, [[cell(r.get(c)) for c in names] for r in found], numeric, width)


def test_a_table_has_a_line_a_row_and_numbers_to_the_right():
    lines = str(render(COLUMNS, ROWS, "table")).splitlines()
    assert len(lines) == 1 + len(ROWS)
    assert lines[0].split() == COLUMNS
    assert lines[1] == "größe<λ>|*     3  2.5"
    assert lines[3].startswith(r"two\nlines")


def test_a_narrow_table_keeps_its_width_and_says_what_it_cut():
    lines = str(render(["a", "n"], [{"a": "word " * 9, "n": 123456789}], "table", width=20)).splitlines()
    assert max(map(len, lines)) <= 20
    wide = str(render(["a", "n"], [{"a": "word " * 9, "n": 123456789}], "table"))
    assert "word " * 8 in wide


def test_a_table_without_rows_tells_whole_names_however_narrow():
    assert render(["finding_id", "value_before"], [], "table", width=12) == "finding_id  value_before\n"


def test_markdown_is_one_table_whatever_the_cells_hold():
    lines = str(render(["a|b", "x"], [{"a|b": "<b>|`c`\\[d](e)\n&amp;", "x": 0.123456}], "md")).splitlines()
    assert lines == [
        r"| a\|b | x |",
        "|---|---|",
        r"| &lt;b&gt;\|\`c\`\\\[d\](e)\\n&amp;amp; | 0.1235 |",
    ]


@pytest.mark.parametrize("form", FORMATS)
def test_an_empty_result_has_a_form(form):
    assert render(COLUMNS, [], form) is not None
    if form == "csv":
        assert render(COLUMNS, [], form) == "kernel,n,x\n"
    if form == "table":
        assert str(render(COLUMNS, [], form)).split() == COLUMNS
    if form == "ndjson":
        assert render(COLUMNS, [], form) == ""
    if form == "json":
        assert json.loads(render(COLUMNS, [], form))["rows"] == []


def test_parquet_keeps_types_and_takes_mixed_columns():
    rows = [{"n": 1, "x": 2.5, "mixed": 1}, {"n": None, "x": math.nan, "mixed": "a"}]
    table = parquet.read_table(io.BytesIO(render(["n", "x", "mixed"], rows, "parquet")))
    assert table.to_pydict() == {"n": [1, None], "x": [2.5, None], "mixed": ["1", "a"]}


@pytest.mark.parametrize("form", ["", "xml", "JSON"])
def test_an_unknown_form_lists_the_known(form):
    with pytest.raises(UsageError, match="choose one of table, csv, json, ndjson, md, parquet"):
        render(COLUMNS, ROWS, form)


# Spreadsheets pass over what stands before the sign, and know other signs as well.
HIDDEN = [" =1", "\n=1", "\u00a0=1", " \n\u3000@x", "\ufeff=1", "\u200b=1", "\uff1d1+1", " \uff0b1+x", "\ufe66x"]
HIDDEN += ["\uff20x", "\uff0dx", "\x0b=1", "\u200e=1"]


@pytest.mark.parametrize("text", ["=1+1", "+a", "-a", "@x", "\t1", "\r=1", "\0", "=", "-", "+1,5", *HIDDEN])
def test_csv_disarms_formulas(text):
    assert read_csv(str(render([text], [{text: text}], "csv"))) == [[f"'{text}"], [f"'{text}"]]


@pytest.mark.parametrize("text", ["-1.5", "+2", "-1e-3", "1=1", " -1.5 ", "\n a", "a-b", " ", ""])
def test_csv_leaves_numbers_and_other_texts(text):
    assert read_csv(str(render(["a", "b"], [{"a": text, "b": -1.5}], "csv")))[1] == [text, "-1.5"]


@given(st.lists(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=2, max_size=2)))
def test_any_text_round_trips_through_csv(table):
    read = read_csv(str(render(["a", "b"], [dict(zip("ab", row, strict=True)) for row in table], "csv")))[1:]
    assert len(read) == len(table)
    for got, given_ in zip(read, table, strict=True):
        for field, text in zip(got, given_, strict=True):
            assert field in (text, f"'{text}")


@given(st.text())
def test_no_text_acts_on_what_shows_it(text):
    assert visible(text).isprintable()
    assert visible(visible(text)) == visible(text)
    assert str(render(["a"], [{"a": text}], "md")).count("\n") == 3


def test_cells_are_short_and_exact_where_they_can_be():
    assert [cell(v) for v in (0.0, 1e-9, 9999.96, 12345.6, 1e300, True, -0.5, 10**20)] == [
        "0", "1e-09", "1e+04", "12346", f"{1e300:.0f}", "True", "-0.5", "1" + "0" * 20,
    ]  # fmt: skip


def test_plain_values_go_as_deep_as_json():
    assert plain({"a": [np.float64("nan"), (np.int32(1), b"\x00\xff")]}) == {"a": [None, [1, "00ff"]]}
