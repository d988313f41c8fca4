"""A details page is read on once its signs are known, to the same values as after a look at all of it."""

import io
from contextlib import ExitStack
from unittest.mock import PropertyMock, patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.errors import BrokenInputError
from profsvc.formats.ncu import details as ncu_details
from profsvc.formats.ncu import launches as ncu_launches
from profsvc.formats.parsing.numbers import Evidence
from tests.formats.conftest import Content

HEADER = (
    '"ID","Process ID","Kernel Name","Range:PL:Color:Msg_Type:Msg","Section Name","Metric Name","Metric Unit",'
    '"Metric Value","Rule Name","Rule Description"\n'
)
CELLS = ("0.5", "17", "1,234", "1,234.5", "12,345,678", "n/a", "", "yes", "1e400", "0,5", "1.234,5", "1 234", "1.234")
METRICS = (("Duration", "ns"), ("Duration", "us"), ("DRAM Throughput", "%"), ("CPU Affinity", ""), ("Grid Size", ""))


def row(launch: int, cell: str, metric: str = "DRAM Throughput", unit: str = "%", said: str = "") -> str:
    return f'"{launch}","7","f(int)","{said}","S","{metric}","{unit}","{cell}","",""\n'


def content(text: str) -> tuple[dict[str, list], dict[str, str], int, int]:
    found = Content("ncu-details", list(ncu_details.read(io.BytesIO(text.encode()))))
    tables = {name: list(found.rows(name)) for name in ("launches", "metrics", "rules", "rejects")}
    return tables, dict(found.batches[-1].facts), found.stored, found.skipped


def agree(text: str) -> tuple[dict[str, list], dict[str, str], int, int] | None:
    """Read a page as it is read, and once more with a look at all of it first; None where both refuse it."""
    answers = []
    for looks_at_all in (False, True):
        with ExitStack() as stack:
            stack.enter_context(patch.object(ncu_details, "BATCH_ROWS", 4))
            stack.enter_context(patch.object(ncu_launches, "MAX_BATCH_LAUNCHES", 2))
            if looks_at_all:
                stack.enter_context(patch.object(Evidence, "settled", PropertyMock(return_value=False)))
            try:
                answers.append(content(text))
            except BrokenInputError:
                answers.append(None)
    assert answers[0] == answers[1]
    return answers[0]


def test_thousands_that_come_late():
    cells = ["0.5", "17", "1,234", "12,345,678"]
    found = agree(HEADER + "".join(row(number // 3, cells[number // 6]) for number in range(24)))
    assert found is not None
    assert found[1]["number_format"] == "1,234.5"
    assert [line["value"] for line in found[0]["metrics"][-2:]] == [123456.78, 123456.78]


def sorted_by_metric(launches: int) -> str:
    """Return a page whose rows are sorted by metric, so that no launch has its rows together."""
    pages = ((metric, unit) for metric, unit in (("Achieved Occupancy", "%"), ("Duration", "us")))
    return HEADER + "".join(row(number, "7.5", *named) for named in pages for number in range(launches))


def test_rows_of_few_launches_may_be_mixed():
    found = content(sorted_by_metric(ncu_launches.MAX_BATCH_LAUNCHES))[0]["launches"]
    assert {launch["duration_ns"] for launch in found} == {7500.0}


@pytest.mark.parametrize("launches", [ncu_launches.MAX_BATCH_LAUNCHES + 1, 20_000])
def test_a_duration_behind_rows_of_many_launches_is_not_lost(launches: int):
    with pytest.raises(BrokenInputError, match=r"line \d+: 'Duration' of a launch .* sort the rows by process and ID"):
        content(sorted_by_metric(launches))


def test_a_duration_with_thousands_that_come_late():
    found = agree(HEADER + "".join(row(number, "0.5") for number in range(9)) + row(9, "1,234.5", "Duration", "us"))
    assert found is not None
    assert found[0]["launches"][-1]["duration_ns"] == 1234500


def test_what_a_range_says_is_no_evidence():
    found = agree(HEADER + row(0, "0.5") + row(1, "17", said="1,234") + row(2, "17", said="1.234,5"))
    assert found is not None
    assert found[1]["number_format"] == "1234.5"
    ranges = [line for line in found[0]["metrics"] if line["metric"].startswith("Range")]
    assert [(line["raw_text"], line["value"], line["reason"]) for line in ranges] == [
        ("1,234", None, "text"), ("1.234,5", None, "text"),
    ]  # fmt: skip


@pytest.mark.parametrize("late", ["1234,5", "1.234.567", "1.234,5"])
def test_signs_that_contradict_each_other_are_refused_however_late(late):
    text = HEADER + "".join(row(number, "0.5") for number in range(20)) + row(20, late)
    assert agree(text) is None
    with pytest.raises(BrokenInputError, match="contradict each other"):
        content(text)


ROWS = st.tuples(st.integers(0, 5), st.sampled_from(CELLS), st.sampled_from(METRICS), st.sampled_from(("", "1,234")))


@given(st.lists(ROWS, max_size=12), st.integers(0, 6))
def test_the_same_values_as_after_a_look_at_all(rows, usual):
    # Most files settle early: their first cell has a decimal point.
    first = row(0, "0.5") * (usual > 0)
    agree(HEADER + first + "".join(row(launch, cell, *metric, said) for launch, cell, metric, said in rows))
