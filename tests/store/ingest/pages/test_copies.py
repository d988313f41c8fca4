"""The compiled module lays out the rows that NumPy lays out, byte by byte, and refuses what it cannot hold."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.store.ingest.inserts.postgres_copy import Plain, encoded, laid_out
from profsvc.store.ingest.pages import copies


@pytest.fixture(scope="module", autouse=True)
def _there() -> None:
    if copies.state_of_copies() in ("missing", "outdated"):
        pytest.skip(f"the compiled module is {copies.state_of_copies()}")


def same(columns: Sequence[Plain]) -> bool:
    return copies.rows(columns).tobytes() == laid_out([encoded(column) for column in columns]).tobytes()


def plain(cells: Sequence[Any], width: int = 8, texts: list[bytes] | None = None, dtype: str = "int64") -> Plain:
    there = np.array([cell is not None for cell in cells])
    values = np.array([(-1 if texts is not None else 0) if cell is None else cell for cell in cells], dtype)
    return Plain(values, None if there.all() else there, width, texts)


def whole(width: int) -> st.SearchStrategy[int | None]:
    most = 2 ** (8 * width - 1)
    return st.none() | st.sampled_from([0, -1, most - 1, -most]) | st.integers(-most, most - 1)


TEXTS = [text.encode() for text in ("", "a", "é€😀", "x" * 300)]
ROW = st.tuples(whole(2), whole(4), whole(8), st.none() | st.floats(allow_nan=False), st.none() | st.integers(0, 3))


@given(st.lists(ROW, min_size=1, max_size=50))
def test_any_rows(rows: list[tuple[Any, ...]]) -> None:
    small, middle, large, real, text = zip(*rows, strict=True)
    columns = [plain(small, 2), plain(middle, 4), plain(large), plain(real, dtype="float64"), plain(text, 8, TEXTS)]
    assert same(columns)
    assert all(same([column]) for column in columns)


def test_columns_that_are_parts_of_others_or_one_value() -> None:
    numbers = np.arange(-500, 500)
    column = Plain(numbers[::2], numbers[::2] % 3 == 0)
    assert same([column, Plain(np.broadcast_to(np.int64(2), 500), None, 8, TEXTS), Plain(numbers[500:], None, 2)])


def test_no_rows_and_the_most_columns() -> None:
    assert copies.rows([Plain(np.empty(0, np.int64), None)]).nbytes == 0
    assert same([plain([1, None, 3])] * copies.MAX_COLUMNS)


def refusal(*given: Any) -> str:
    with pytest.raises(ValueError) as error:  # noqa: PT011  # the message is compared
        copies._copies.rows(*given)
    return str(error.value)


def test_what_does_not_fit_is_refused_and_nothing_is_written_behind_a_buffer() -> None:
    number = (8, np.arange(10), None, None, None)
    target = np.full(10 * 14 + 8, 7, np.uint8)
    assert copies._copies.rows(10, (number,), target) == 140
    assert target[140:].tolist() == [7] * 8
    assert refusal(10, (number,), target[:139]) == "there is no room for the rows"
    assert refusal(11, (number,), target) == "a column is shorter than the number of rows"
    assert refusal(1, ((8, None, None, None, None),), target) == "a column is shorter than the number of rows"
    missing = (8, np.arange(10), np.zeros(9, np.bool_), None, None)
    assert refusal(10, (missing,), target) == "a column is shorter than the number of rows"
    for width, value in ((2, 2**15), (2, -(2**15) - 1), (4, 2**31), (4, -(2**31) - 1)):
        assert refusal(1, ((width, np.array([value]), None, None, None),), target) == "a number does not fit"
    assert refusal(1, ((3, np.arange(1), None, None, None),), target) == "a number has 2, 4 or 8 bytes"
    for place in (-1, 2):
        text = (0, np.array([place]), None, b"abc", np.array([1, 3]))
        assert refusal(1, (text,), target) == "there is no such text"
    for ends in ([4], [2, 1], [-1]):
        text = (0, np.array([0]), None, b"abc", np.array(ends))
        assert refusal(1, (text,), target) == "a text does not end in the bytes of the texts"
    for wrong in ((-1, (number,)), (2**62, (number,)), (1, (number,) * 65)):
        assert refusal(*wrong, target) == "too many columns or rows"


def test_it_is_off_when_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(copies.OFF_VARIABLE, "0")
    assert (copies.state_of_copies(), copies.is_available()) == ("off", False)
