"""The compiled module makes the pages that NumPy makes, byte by byte, and refuses what it cannot hold."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formats.splitter import build
from profsvc.store.ingest.inserts import sqlite_pages
from profsvc.store.ingest.pages import compiled
from tests.robustness import sanitized

Column = tuple[Any, Any]
EDGES = sorted(
    edge
    for edge in {sign * 2**bits + near for bits in range(64) for sign in (-1, 1) for near in (-1, 0, 1)}
    if -(2**63) <= edge < 2**63
)
REALS = [0.0, -0.0, 0.5, -1.5, 5e-324, -5e-324, math.inf, -math.inf, math.nan, 2.0**47, -(2.0**47), 2.0**47 - 1, 1e300]
FIRST = 10**9


@pytest.fixture(scope="module", autouse=True)
def _there() -> None:
    if compiled.state_of_pages() in ("missing", "outdated"):
        pytest.skip(f"the compiled module is {compiled.state_of_pages()}")


def same(first: int, columns: Sequence[Column]) -> bool:
    ours, theirs = compiled.leaves(first, columns), sqlite_pages.leaves(first, columns)
    return ours[0].tobytes() == theirs[0].tobytes() and ours[1].tolist() == theirs[1].tolist()


def test_values_at_the_edges_of_every_type() -> None:
    whole = np.array(EDGES, np.int64)
    assert same(FIRST, [(whole, None), (whole[::-1], whole % 3 == 0), (whole.astype(np.float64), None)])
    reals = np.array(REALS)
    assert same(FIRST, [(reals, None), (reals, np.arange(len(reals)) % 2 == 1)])


@pytest.mark.parametrize("rows", [1, 2, 150, 20_000])
@pytest.mark.parametrize("columns", [4, 13])
def test_pages_of_every_filling(rows: int, columns: int) -> None:
    draw = np.random.default_rng(rows)
    made = [
        (draw.integers(-(2**62), 2**62, rows) >> draw.integers(0, 62, rows), draw.random(rows) < part)
        for part in np.linspace(0, 1, columns)
    ]
    assert same(2**42 - rows - 1, made)


def test_columns_without_values_fill_a_page_with_the_most_rows() -> None:
    nothing = np.zeros(3000, np.int64), np.ones(3000, np.bool_)
    assert same(FIRST, [nothing] * 3)


CELL = st.none() | st.sampled_from(EDGES) | st.integers(-(2**63), 2**63 - 1)
REAL = st.none() | st.sampled_from(REALS) | st.floats() | st.integers(-(2**50), 2**50).map(float)


@given(st.lists(st.tuples(CELL, CELL, REAL, REAL), min_size=1, max_size=200), st.integers(FIRST, 2**49 - 300))
def test_any_rows(rows: list[tuple[Any, ...]], first: int) -> None:
    columns = [
        (
            np.array([value or 0 for value in column], np.float64 if place > 1 else np.int64),
            np.array([value is None for value in column]),
        )
        for place, column in enumerate(zip(*rows, strict=True))
    ]
    width = len(sqlite_pages._varint(first))
    if len(sqlite_pages._varint(first + len(rows) - 1)) == width:
        assert same(first, columns)


def refusal(*given: Any) -> str:
    with pytest.raises(ValueError) as error:  # noqa: PT011  # the message is compared
        compiled._pages.leaves(*given)
    return str(error.value)


def test_what_does_not_fit_is_refused_and_nothing_is_written_behind_a_buffer() -> None:
    column = (False, np.arange(1000) << 40, None)
    space, lasts = np.full(4096 * 2 + 8, 7, np.uint8), np.zeros(99, np.int64)
    assert refusal(FIRST, 1000, (column,) * 4, space, lasts) == "there is no room for the pages"
    assert space[-1] == 7
    assert refusal(FIRST, 1000, (column,), np.empty(4096 * 99, np.uint8), np.empty(1, np.int64)) == (
        "there is no room for the pages"
    )
    assert refusal(FIRST, 1, (column,), np.empty(3, np.uint8), lasts) == "there is no room for the pages"
    assert refusal(FIRST, 1001, (column,), space, lasts) == "a column is shorter than the number of rows"
    missing = (False, np.arange(1000), np.zeros(999, np.bool_))
    assert refusal(FIRST, 1000, (missing,), space, lasts) == "a column is shorter than the number of rows"
    assert refusal(FIRST, 1, ((False, np.array([2**60]), None),) * 20, space, lasts) == "a record is too long"
    for wrong in ((0, 1, (column,)), (2**56, 1, (column,)), (FIRST, -1, (column,)), (FIRST, 1, (column,) * 65)):
        assert refusal(*wrong, space, lasts) == "too many columns or rows"


def test_random_rows_under_sanitizers() -> None:
    code, printed = sanitized.run(build.SOURCES[1], 3.0, 1)
    if code is None:
        pytest.skip(printed)
    assert code == 0, printed


def test_no_rows_are_no_pages() -> None:
    empty = np.empty(0, np.int64)
    assert [len(made) for made in compiled.leaves(FIRST, [(empty, None)])] == [0, 0]


def test_it_is_off_when_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(compiled.OFF_VARIABLE, "0")
    assert (compiled.state_of_pages(), compiled.is_available()) == ("off", False)
