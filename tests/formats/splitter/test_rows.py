"""The compiled splitter gives what plain Python gives, refuses what it cannot hold, and may be absent."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formats.splitter import build, rows
from profsvc.formats.splitter.rows import CLOCK, INTEGER, NUMBERED, PLAIN, REAL, TEXT, WHOLE, Kind, split
from tests.formats.splitter import oracle
from tests.robustness import sanitized

compiled = pytest.mark.skipif(not rows.is_available(), reason="the splitter is not compiled here, or turned off")


@compiled
@given(st.integers(0, 2**64))
def test_any_rows_give_what_plain_python_gives(seed):
    question = oracle.question(random.Random(seed))
    assert oracle.differences(rows._splitter, question) == ""


CELLS = st.one_of(st.sampled_from(oracle._NUMBERS + oracle._TEXTS), st.floats(allow_nan=False).map(repr), st.text())


@compiled
@given(
    st.lists(st.tuples(CELLS, CELLS), max_size=6), st.sampled_from(oracle.KINDS[1:]), st.sampled_from(oracle.KINDS[1:])
)
def test_any_cells_give_what_plain_python_gives(cells, first, second):
    block = "".join(f"{one},{two}\n" for one, two in cells).encode("utf-8", "replace")
    columns = tuple((kind, False, 1.0, 0.0, 9e18, "") for kind in (first, second))
    assert oracle.differences(rows._splitter, oracle.Question(block, ",", ".", False, columns)) == ""


@compiled
def test_columns_of_all_kinds():
    block = b'1,2.5,"4.0",ab,"saxpy(int) [12]"\n,,,,x\n'
    kinds = [Kind(INTEGER), Kind(REAL, 1e3), Kind(WHOLE, 1024.0, 0.0, 1e9), Kind(TEXT), Kind(NUMBERED)]
    lines, count, (whole, real, size, text, name), stopped = split(block, kinds)
    assert (lines, count, stopped) == (2, 2, None)
    assert (whole.values.tolist(), whole.missing.tolist()) == ([1, 0], [False, True])
    assert (real.values.tolist(), size.values.tolist()) == ([2500.0, 0.0], [4096, 0])
    assert (text.texts, text.values.tolist()) == (["ab", ""], [0, 1])
    assert (name.texts, name.extra.tolist(), name.missing.tolist()) == (["saxpy(int)", "x"], [12, 0], [False, True])


@compiled
def test_measures_and_times_of_the_day():
    block = b"2026/03/01 12:34:56.789, 79.46 W, 3\n2026/03/02T00:00:01, , 4\n2026/03/02 0:00:01, 80 W, -4\n"
    found = split(block, [Kind(CLOCK), Kind(PLAIN, suffix=" W"), Kind(PLAIN)], blanks=True)
    clock, power, _ = found.cells
    assert (found.lines, found.rows, found.stopped) == (3, 2, 2)
    assert (clock.values.tolist(), clock.extra.tolist()) == ([45_296_789_000_000, 1_000_000_000], [0, 1])
    assert (clock.texts, clock.missing) == (["2026/03/01", "2026/03/02"], None)
    assert (power.values.tolist(), power.missing.tolist()) == ([79.46, 0.0], [False, True])


@compiled
@pytest.mark.parametrize("block", [b"", b"1", b"1\n2", b"\n\n\n", b"\0\n", b"1\r", b'"1\n', b'"', b"1,2\n", b"\xff\n"])
def test_a_block_that_is_cut_or_odd_stops_it(block):
    lines, count, (cells,), _ = split(block, [Kind(INTEGER)])
    assert lines == block.count(b"\n")
    assert count == len(cells.values) <= lines
    assert count == {b"1\n2": 0, b"\n\n\n": 3}.get(block, 0)


@compiled
def test_texts_that_collide_or_are_all_different():
    many = [f"{number:07}" for number in range(70_000)]
    lines, count, (cells,), _ = split("".join(f"{text}\n" for text in many).encode(), [Kind(TEXT)])
    assert (lines, count, cells.texts) == (70_000, 70_000, many)
    assert np.array_equal(cells.values, np.arange(70_000))


@compiled
@pytest.mark.parametrize(
    "change",
    [
        {"rows": 2},
        {"rows": -1},
        {"rows": 2**62},
        {"separator": '"'},
        {"separator": "\n"},
        {"separator": "5"},
        {"separator": "\u20ac"},
        {"decimal": "\n"},
        {"least": 0},
        {"least": 2},
        {"columns": tuple(2 * [("i", False, 1.0, 0.0, 1.0, "", np.zeros(1, np.int64), np.zeros(1, np.bool_), None)])},
        {"columns": ()},
        {"columns": ((),)},
        *(
            {"columns": (("i", False, 1.0, 0.0, 1.0, sign, np.zeros(1, np.int64), np.zeros(1, np.bool_), None),)}
            for sign in (",", "\n", '"', "\0")
        ),
        {"columns": (("t", False, 1.0, 0.0, 1.0, "", np.zeros(1, np.int64), None, np.zeros(1, np.int8)),)},
        {"columns": (("v", False, 1.0, 0.0, 1.0, "", np.zeros(1), None, np.zeros(1, np.int32)),)},
        {"columns": (("x", False, 1.0, 0.0, 1.0, "", None, None, None),)},
        {"columns": (("w", False, 1.0, 0.0, 1e19, "", np.zeros(1, np.int64), np.zeros(1, np.bool_), None),)},
        {"columns": (("i", False, 1.0, 0.0, 1.0, "", None, np.zeros(1, np.bool_), None),)},
        {"columns": (("i", False, 1.0, 0.0, 1.0, "", b"12345678", np.zeros(1, np.bool_), None),)},
        {"columns": (("i", False, 1.0, 0.0, 1.0, "", np.zeros(9, np.int8)[1:], np.zeros(1, np.bool_), None),)},
        {"columns": (("i", False, 1.0, 0.0, 1.0, "", np.zeros(4, np.int64)[::2], np.zeros(1, np.bool_), None),)},
    ],
)
def test_a_wrong_call_is_refused(change):
    columns = (("i", False, 1.0, 0.0, 1.0, "", np.zeros(1, np.int64), np.zeros(1, np.bool_), None),)
    call = {"block": b"1\n", "separator": ",", "decimal": ".", "blanks": False, "quoted": False, "least": 1}
    call |= {"rows": 1, "columns": columns}
    assert rows._splitter.split(*call.values())[0] == 1
    with pytest.raises((ValueError, TypeError, BufferError)):
        rows._splitter.split(*(call | change).values())


@compiled
def test_no_more_rows_are_filled_than_there_is_room_for():
    values, missing = np.full(3, -1, np.int64), np.ones(3, np.bool_)
    columns = (("i", False, 1.0, 0.0, 9.0, "", values[:1], missing[:1], None),)
    assert rows._splitter.split(b"1\n2\n3\n", ",", ".", False, False, 1, 1, columns)[0] == 1
    assert values.tolist() == [1, -1, -1]


@compiled
def test_memory_is_given_back():
    import resource

    block = b"".join(b"%07d,x\n" % number for number in range(20_000))
    for repeat in range(60):
        split(block, [Kind(TEXT), Kind(INTEGER)])
        if repeat == 20:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 3_000


def test_it_can_be_turned_off(monkeypatch):
    monkeypatch.setenv(rows.OFF_VARIABLE, "0")
    assert not rows.is_available()
    monkeypatch.setattr(rows, "_splitter", None)
    assert rows.state() == "missing"


def test_an_older_module_is_not_called(monkeypatch):
    class Older:
        INTERFACE = 0

    monkeypatch.setattr(rows, "_splitter", Older)
    assert rows.state() == "outdated"


def test_random_rows_under_sanitizers():
    code, printed = sanitized.run(build.SOURCE, 3.0, 1)
    if code is None:
        pytest.skip(printed)
    assert code == 0, printed
