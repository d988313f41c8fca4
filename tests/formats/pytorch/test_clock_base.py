"""The base of the clock is found wherever it stands: before the events, behind them, or among other long members."""

import io

import pytest

from profsvc import formats
from profsvc.errors import BrokenInputError

EVENT = '{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 5, "dur": 1, "args": {"device": 0}}'
EVENTS = f'"traceEvents": [{EVENT}]'
BASE = '"baseTimeNanoseconds": 1700000000000000000'
LONG = '"note": "' + "x" * (1 << 17) + '"'
START_NS = 1_700_000_000_000_005_000


def starts(text: str, encoding: str = "utf-8") -> list[int]:
    batches = list(formats.read(io.BytesIO(text.encode(encoding)), "kineto")[1])
    lines = sum(one.lines_stored + one.lines_skipped + one.lines_rejected for one in batches)
    assert lines == text.count("\n") + (not text.endswith("\n"))
    return [int(start) for one in batches if "launches" in one.tables for start in one.tables["launches"]["start_ns"]]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le"])
@pytest.mark.parametrize(
    "members",
    [
        (BASE, EVENTS), (EVENTS, BASE), (LONG, BASE, EVENTS), (EVENTS, BASE, LONG), (LONG, EVENTS, LONG, BASE, LONG),
        (EVENTS, BASE, LONG, '"other": 1'), (BASE, LONG, EVENTS, LONG),
    ],
)  # fmt: skip
def test_a_base_is_found_wherever_it_stands(members: tuple[str, ...], encoding: str) -> None:
    for between, end in ((", ", ""), (",\n\n", "\n\n")):
        assert starts("{" + between.join(members) + "}" + end, encoding) == [START_NS]


def test_without_a_base_times_are_as_they_are() -> None:
    assert starts("{" + EVENTS + ", " + LONG + "}\n") == starts(f"[{EVENT},\n{EVENT}]")[:1] == [5000]


def test_an_argument_of_an_event_is_no_base() -> None:
    event = EVENT.replace('"device": 0', '"device": 0, "baseTimeNanoseconds": 3')
    assert starts("{" + BASE + f', "traceEvents": [{event}], {LONG}' + "}") == [START_NS]


def test_two_bases_are_refused() -> None:
    with pytest.raises(BrokenInputError, match="baseTimeNanoseconds is both"):
        starts("{" + BASE + ", " + EVENTS + ", " + LONG + ', "baseTimeNanoseconds": 7, ' + LONG + "}")


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_the_lines_of_a_cut_trace_are_counted(cut: int) -> None:
    text = "{" + BASE + ',\n"traceEvents": [\n' + ",\n".join([EVENT.replace(", ", ",\n")] * 3)
    assert starts(text[:-cut]) == [START_NS] * 2
