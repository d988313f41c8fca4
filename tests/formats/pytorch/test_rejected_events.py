"""Events of a PyTorch trace that are rejected: in the words of JSON, and told where the lines do not show them."""

import io
import json

from profsvc.formats.pytorch import trace

GOOD = {"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 2, "args": {"device": 0}}
WRONG = {
    "no dur": {"dur": ...},
    "dur is null, not a number": {"dur": None},
    "ts is true, not a number": {"ts": True},
    "ts is '1,5', not a number": {"ts": "1,5"},
    "ts is a list, not a number": {"ts": [1, None]},
    "ts is an object, not a number": {"ts": {"a": None}},
}


def read(indent: int | None) -> tuple[list[tuple[int, str]], str, int]:
    """Return the rejects of a trace with lines and reasons, the message, and the rejected lines."""
    wrong = [{key: value for key, value in (GOOD | one).items() if value is not ...} for one in WRONG.values()]
    text = json.dumps({"schemaVersion": 1, "traceEvents": [GOOD, *wrong]}, indent=indent)
    rejects, message, lines = [], "", 0
    for batch in trace.read(io.BytesIO(text.encode())):
        for name, table in batch.tables.items():
            if name == "rejects":
                rejects += list(zip(table["lines"], table["reason"], strict=True))
        message, lines = batch.message or message, lines + batch.lines_rejected
    return rejects, message, lines


def test_events_on_one_line_are_counted_in_the_message():
    rejects, message, lines = read(None)
    assert rejects == [(0, reason) for reason in WRONG]
    assert (message, lines) == ("rejected without a line of their own, so not among the lines: 6 records", 0)


def test_events_on_lines_of_their_own_are_among_the_lines():
    rejects, message, lines = read(1)
    assert [reason for _, reason in rejects] == list(WRONG)
    assert (message, lines) == ("", sum(count for count, _ in rejects))
    assert lines > 6 * 8
