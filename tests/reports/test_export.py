"""Whole results as files: every row, in bounded memory, and no half file."""

import io
import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet
import pytest

from profsvc.errors import ServiceError, UsageError
from profsvc.reports import export
from profsvc.reports.rows import render

COLUMNS = ["n", "text", "x"]
ROWS = [(1, "=cmd()", 1.5), (2, 'a,"b"\r\nc', None), (3, None, float("nan")), (-4, "-4", -4.0)]


def chunks(rows: list[tuple[object, ...]] = ROWS, size: int = 3) -> Iterator[list[tuple[object, ...]]]:
    for begin in range(0, len(rows), size):
        yield rows[begin : begin + size]


def written(form: str, columns: list[str], rows: list[tuple[object, ...]], **options: object) -> bytes:
    file = io.BytesIO()
    assert export.write(form, columns, chunks(rows), file, **options) == len(rows)
    return file.getvalue()


@pytest.mark.parametrize("form", ["csv", "ndjson"])
@pytest.mark.parametrize("raw", [False, True])
def test_a_whole_result_is_what_a_short_one_is(form: str, raw: bool) -> None:
    records = [dict(zip(COLUMNS, row, strict=True)) for row in ROWS]
    assert written(form, COLUMNS, ROWS, raw=raw).decode() == render(COLUMNS, records, form, raw=raw)


def test_formulas_are_made_harmless_unless_they_are_wanted_raw() -> None:
    assert b"\n1,'=cmd(),1.5\n" in written("csv", COLUMNS, ROWS)
    assert b"\n1,=cmd(),1.5\n" in written("csv", COLUMNS, ROWS, raw=True)
    assert b"\n-4,-4,-4.0\n" in written("csv", COLUMNS, ROWS)


@pytest.mark.parametrize(
    ("values", "kind", "expected", "back"),
    [
        ([1, 2, None], "", "int64", [1, 2, None]),
        ([1, 2, None], "float", "double", [1.0, 2.0, None]),
        ([1, 2.5], "int", "double", [1.0, 2.5]),
        ([1, 2**63], "", "double", [1.0, 2.0**63]),
        ([-(2**63)], "", "int64", [-(2**63)]),
        ([None, None], "int", "int64", [None, None]),
        ([None, None], "float", "double", [None, None]),
        ([None], "", "string", [None]),
        ([float("nan"), float("inf")], "", "string", [None, None]),
        ([1, "a", 2.5], "int", "string", ["1", "a", "2.5"]),
        ([True, None], "", "bool", [True, None]),
        ([b"\x00\xff"], "", "string", ["00ff"]),
        (["b", None], "int", "string", ["b", None]),
    ],
)
def test_columns_of_parquet_have_the_type_of_all_their_values(
    values: list[object], kind: str, expected: str, back: list[object]
) -> None:
    content = written("parquet", ["a"], [(value,) for value in values], kinds={"a": kind})
    table = pyarrow.parquet.read_table(io.BytesIO(content))
    assert str(table.schema.field("a").type) == expected
    assert table.column("a").to_pylist() == back


@pytest.mark.parametrize("form", export.FORMS)
def test_a_result_without_rows_has_its_columns(form: str) -> None:
    content = written(form, COLUMNS, [], kinds={"n": "int"})
    if form == "csv":
        assert content == b"n,text,x\n"
    elif form == "ndjson":
        assert content == b""
    else:
        assert [str(field.type) for field in pyarrow.parquet.read_schema(io.BytesIO(content))] == [
            *("int64", "string", "string")
        ]


@pytest.mark.parametrize("form", export.FORMS)
def test_memory_does_not_grow_with_the_rows(form: str, tmp_path: Path) -> None:
    def many(count: int) -> Iterator[list[tuple[int, str]]]:
        for begin in range(0, count, 64):
            yield [(n, f"text number {n} of a long result") for n in range(begin, begin + 64)]

    peaks = []
    for count in (10_000, 40_000):
        with (tmp_path / "out").open("wb") as file:
            tracemalloc.start()
            rows = export.write(form, ["n", "t"], many(count), file)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        assert rows >= count
    assert peaks[1] < peaks[0] * 1.3 + 500_000


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError, UsageError])
def test_an_error_leaves_the_file_that_was_there(tmp_path: Path, error: type[BaseException]) -> None:
    out = tmp_path / "out.csv"
    out.write_text("old", encoding="utf-8")
    with pytest.raises(error), export.new_file(out) as file:  # noqa: PT012  # the end of the block is under test
        file.write(b"half")
        raise error
    assert out.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [out]
    with export.new_file(out) as file:
        file.write(b"new")
    assert out.read_text(encoding="utf-8") == "new"
    assert list(tmp_path.iterdir()) == [out]


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ServiceError, match="cannot be written: No such file"), export.new_file(tmp_path / "a" / "b"):
        pass


def test_forms_by_name() -> None:
    assert export.form_of("", Path("a.JSONL")) == "ndjson"
    assert export.form_of("csv", Path("a.parquet")) == "csv"
    assert export.form_of("", None) == "csv"
    for asked, path in (("table", None), ("md", Path("a.csv")), ("", Path("a.xlsx")), ("", Path("a"))):
        with pytest.raises(UsageError, match="choose a format with -o: csv, ndjson, parquet"):
            export.form_of(asked, path)


def test_ndjson_is_a_record_a_line() -> None:
    lines = written("ndjson", COLUMNS, ROWS).decode().splitlines()
    assert [json.loads(line)["n"] for line in lines] == [1, 2, 3, -4]
