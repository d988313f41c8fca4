"""Pages that numpy lays out: SQLite finds them whole, and reads what went in."""

import math
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.store.ingest.inserts.sqlite_pages import PageFile

TABLES = {
    "numbers": "CREATE TABLE numbers (id INTEGER NOT NULL PRIMARY KEY, a INTEGER, b INTEGER NOT NULL, c REAL) STRICT",
    "others": "CREATE TABLE others (id INTEGER PRIMARY KEY, x REAL) STRICT",
}
FIRST = 10**9  # the ids of the store are at least as long
EDGES = sorted({sign * 2**bits + near for bits in range(64) for sign in (-1, 1) for near in (-1, 0, 1)})
WHOLE = [edge for edge in EDGES if -(2**63) <= edge < 2**63]


def written(path: Path, *parts: tuple[str, int, Sequence[tuple[Any, Any]]]) -> dict[str, list[tuple[Any, ...]]]:
    path.unlink(missing_ok=True)
    file = PageFile(path, TABLES)
    for table, first, columns in parts:
        file.add(table, first, columns)
    file.close()
    with closing(sqlite3.connect(path)) as connection:
        wrong = [row for (row,) in connection.execute("PRAGMA integrity_check") if "never used" not in row]
        assert wrong in ([], ["ok"])
        return {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in TABLES}


def ints(*values: int | None) -> tuple[Any, Any]:
    missing = np.array([value is None for value in values])
    return np.array([value or 0 for value in values], np.int64), missing if missing.any() else None


def test_every_size_of_a_number_comes_back(tmp_path: Path) -> None:
    reals = [float(value) for value in WHOLE]
    rows = written(
        tmp_path / "p", ("numbers", FIRST + 1, [ints(*WHOLE), ints(*reversed(WHOLE)), (np.array(reals), None)])
    )["numbers"]
    assert rows == list(zip(range(FIRST + 1, FIRST + len(WHOLE) + 1), WHOLE, reversed(WHOLE), reals, strict=True))
    assert all(isinstance(row[3], float) for row in rows)


def test_doubles_come_back_bit_by_bit(tmp_path: Path) -> None:
    reals = [0.0, -0.0, 0.1, -1.5, 5e-324, 1.7976931348623157e308, math.inf, -math.inf, 2.0**47, 2.0**47 - 1, math.nan]
    rows = written(tmp_path / "p", ("others", 10**12, [(np.array(reals), None)]))["others"]
    assert [row[0] for row in rows] == list(range(10**12, 10**12 + len(reals)))
    assert [row[1] for row in rows][-1] is None
    assert [repr(row[1]) for row in rows][:-1] == [repr(value) for value in reals][:-1]


@pytest.mark.parametrize("rows", [1, 2, 100, 20_000, 300_000])
def test_trees_of_every_height(tmp_path: Path, rows: int) -> None:
    a, c = np.arange(rows) * 7919, np.sqrt(np.arange(rows))
    half = rows // 2
    parts = [("numbers", FIRST + 5, [(a[:half], None), (a[:half], None), (c[:half], None)])] if half else []
    parts.append(("others", FIRST + 3, [(c, None)]))
    parts.append(("numbers", FIRST + 5 + half, [(a[half:], None), (a[half:], None), (c[half:], None)]))
    found = written(tmp_path / "p", *parts)
    assert found["numbers"] == list(
        zip(range(FIRST + 5, FIRST + 5 + rows), a.tolist(), a.tolist(), c.tolist(), strict=True)
    )
    assert found["others"] == list(zip(range(FIRST + 3, FIRST + 3 + rows), c.tolist(), strict=True))


@pytest.mark.parametrize("first", [2**35 - 2, 2**42 - 5, 2**49 - 1])
def test_row_ids_that_grow_by_a_byte(tmp_path: Path, first: int) -> None:
    rows = written(tmp_path / "p", ("others", first, [(np.arange(10.0), None)]))["others"]
    assert rows == [(first + i, float(i)) for i in range(10)]


def test_an_empty_table_stays_empty(tmp_path: Path) -> None:
    assert written(tmp_path / "p", ("others", FIRST, [(np.array([1.5]), None)])) == {
        "numbers": [],
        "others": [(FIRST, 1.5)],
    }


CELL = st.none() | st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1)
REAL = st.none() | st.integers(-(2**50), 2**50).map(float) | st.floats(allow_nan=False)


@given(
    st.lists(st.tuples(CELL, st.integers(-(2**63), 2**63 - 1), REAL), min_size=1, max_size=300),
    st.integers(FIRST, 2**50),
)
def test_any_rows_come_back(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[Any, ...]], first: int) -> None:
    a, b, c = zip(*rows, strict=True)
    real = np.array([math.nan if value is None else value for value in c])
    columns = [ints(*a), ints(*b), (real, None)]
    found = written(tmp_path_factory.getbasetemp() / "any", ("numbers", first, columns))["numbers"]
    assert [row[1:] for row in found] == rows
    assert [row[0] for row in found] == list(range(first, first + len(rows)))
