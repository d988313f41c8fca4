"""Blocks of events of a PyTorch trace read at once give what the same events give one by one."""

import gzip
import io
import json

import pandas as pd
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formats.parsing.stream import open_stream
from profsvc.formats.pytorch import trace as pytorch_trace
from profsvc.formats.pytorch.event_blocks import parse
from tests.formats.both_ways import READERS
from tests.inputs.long_exports import kineto as long_trace

agree = READERS["kineto"].agree

KERNEL = (
    '{"ph": "X", "cat": "kernel", "name": "a%(n)d", "pid": 0, "tid": 7, "ts": 17121954955%(n)05d.123, "dur": 4.%(n)d, '
    '"args": {"External id": %(n)d, "device": 1, "context": 1, "stream": 7, "correlation": %(n)d, '
    '"registers per thread": 32, "shared memory": 0, "blocks per SM": 0.60606064, "warps per SM": 1.50, '
    '"grid": [%(n)d, 2, 1], "block": [256, 1, 1], "est. achieved occupancy %%": 50}}'
)
CALL = '{"ph":"X","cat":"cuda_runtime","name":"launch","pid":4,"tid":5,"ts":%(n)d,"dur":1,"args":{"correlation":%(n)d}}'
RANGE = '{"ph": "X", "cat": "cpu_op", "name": "aten::a", "pid": 4, "tid": 5,\n "ts": %(n)d.5, "dur": 3, "args": {}}'
COPY = (
    '{"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pageable -> Device)", "pid": 0, "tid": 7, "ts": %(n)d, '
    '"dur": 12.25, "args": {"device": 0, "stream": 7, "bytes": 92928}}'
)
SET = '{"ph": "X", "cat": "gpu_memset", "name": "Memset (Device)", "pid": 3, "tid": 20, "ts": %(n)d, "dur": 4}'
FLOW = '{"ph": "s", "id": %(n)d, "pid": 4, "tid": 5, "ts": %(n)d.25, "cat": "ac2g", "name": "ac2g"}'
TRITON = (
    '{"ph": "X", "cat": "cpu_op", "name": "triton", "pid": 4, "tid": 5, "ts": %(n)d, "dur": 3, "args": {"grid": "g"}}'
)
PLAIN = (KERNEL, CALL, RANGE, COPY, SET, FLOW, TRITON)


def events(count, kinds=PLAIN):
    return [kinds[n % len(kinds)] % {"n": n} for n in range(count)]


def trace(
    items, between=",\n", devices='[{"id": 1, "name": "H200", "computeMajor": 9, "computeMinor": 0}]', end="]}\n"
):
    return f'{{"schemaVersion": 1, "deviceProperties": {devices}, "traceEvents": [\n{between.join(items)}{end}'.encode()


def test_a_long_trace_gives_the_same_both_ways():
    text = "".join(long_trace(300))
    tables, (stored, skipped, rejected) = agree(text.encode(), block=10_000)[:2]
    assert len(tables["launches"]) == text.count('"kernel"') > 10
    assert len(tables["api_calls"]) == text.count('"cuda_runtime"') > 30
    assert (stored + skipped, rejected) == (text.count("\n"), 0)


def test_all_of_a_long_trace_is_taken_at_once(monkeypatch):
    monkeypatch.setattr(pytorch_trace._TraceReader, "add", None)
    batches = list(pytorch_trace.read(io.BytesIO(trace(events(700)))))
    assert sum(len(batch.tables.get("launches", ())) for batch in batches) == 100


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.ZstdCompressor().compress])
def test_a_compressed_trace_gives_the_same(pack):
    data = trace(events(50))
    found = []
    for packed in (data, pack(data)):
        batches = list(pytorch_trace.read(open_stream(io.BytesIO(packed))))
        found.append(pd.concat([batch.tables["launches"] for batch in batches if "launches" in batch.tables]))
    pd.testing.assert_frame_equal(*found)
    assert len(found[0]) == 8


def test_plain_events_of_every_kind_are_read_at_once():
    text = ",\n".join(events(len(PLAIN)))
    part = parse(text + "]}", 10**18, {1: ("H200", "9.0")})
    assert (part.size, part.taken.tolist()) == (len(text), [True] * 5 + [False, True])
    assert {name: len(columns["line"]) for name, columns in part.tables.items()} == {
        "launches": 1, "metrics": 5, "transfers": 2, "api_calls": 1, "ranges": 2
    }  # fmt: skip
    assert part.tables["launches"]["start_ns"].tolist() == [10**18 + 1712195495500000123]
    assert part.tables["launches"]["duration_ns"].tolist() == [4000.0]
    assert part.tables["metrics"]["raw_text"].tolist() == ["32", "0", "0.60606064", "1.50", "50"]
    assert part.tables["metrics"]["value"].tolist() == [32, 0, 0.60606064, 1.5, 0.5]
    assert part.tables["transfers"]["kind"].tolist() == ["HtoD", "memset"]
    assert part.tables["ranges"]["line"].tolist() == [2, 7]


def kernel(**changed):
    """A kernel with members or arguments changed to some text of JSON, or left out."""
    members = {"ph": '"X"', "cat": '"kernel"', "name": '"k"', "pid": "0", "tid": "7", "ts": "5.125", "dur": "1"}
    arguments = {"device": "1", "stream": "7", "grid": "[8, 2, 1]", "warps per SM": "2.5", "External id": "3"}
    for name, value in changed.items():
        (members if name in members else arguments)[name] = value
    inner = ", ".join(f'"{name}": {value}' for name, value in arguments.items() if value)
    return (
        "{" + ", ".join(f'"{name}": {value}' for name, value in members.items() if value) + f', "args": {{{inner}}}}}'
    )


VALUES = {
    "ts": (
        *(
            "1712195495505583123",
            '"5"',
            "5.0005",
            "5.0015",
            "5.00050000001",
            "-7.0005",
            "1e3",
            "5E-4",
            "NaN",
            "null",
            "",
        ),
        *("-0", "[1]", "1.5" + "0" * 50, "9223372036854775.807", "99999999999999999.9"),
    ),
    "dur": (
        *('"5"', "-1", "-0", "1e-9", "9e-84", "0.0000001", "9007199255", "9e15", "0.1234567891", "null", "", "true"),
    ),
    "name": (*('""', "5", "null", "", r'"a\u0000b"', r'"\ud800"', r'"\u00e9 \"{\" \\"', '"ts"', '"a\tb"', '"\u00e9"'),),
    "pid": ('""', "1", "1.0", "-9223372036854775808", "9223372036854775808", "true", "null", ""),
    "grid": ('"x"', "[1]", "[1, 2, 3, 4]", "[1, null, -2]", "[1.5, 1, 1]", "[]", "null", "5", '["1", 1, 1]'),
    "warps per SM": (
        *(
            "true",
            "1",
            "NaN",
            "Infinity",
            "Inf",
            "-0",
            "-0.0",
            "1e-7",
            "1E2",
            "0.50",
            "1e400",
            '"5"',
            "null",
            "9e18",
            "1e19",
        ),
    ),
    "External id": ("1.0", '"3"', "-0", "18446744073709551616", "null"),
    "cat": ('"Kernel"', '"KERNEL"', r'"\u006bernel"', '"\u212aernel"', "null", "7", '""', '"gpu_memcpyx"'),
    "ph": ('"x"', "5", "null", "", '"i"'),
    "more": (
        *('"cat"', '"\\u0074s"', '{"cat": "cpu_op"}', "[" * 80 + "]" * 80, "1" * 4200, "1" * 5000, '"\\""', '"\\\\"'),
        *('"{"', '"]}"', "01", "tru", "{]", "Inf", "-NaN"),
    ),
}
REPLACED = (
    ('"ts": 5.125', r'"\u0074s": "5"'),
    ('"ts": 5.125', '"ts": 5.125, "ts": 6'),
    ('"ts": 5.125', '"ts":  "5"'),
    ('"ts":', '"ts" :'),
    ('"ts": ', '"ts":\n'),
    ('"warps per SM": 2.5', '"warps per SM": 2.5, "x": {"warps per SM": 3}'),
    ('"warps per SM"', r'"warps\u0020per SM"'),
    ('"args": {', '"args": 5, "x": {'),
    ('"args": {', '"args": null, "x": {'),
    ('"cat": "kernel"', '"cat" : "kernel"'),
)
ODD = [
    *(kernel(**{name: value}) for name, values in VALUES.items() for value in values),
    *(kernel(device="", pid=value) for value in VALUES["pid"]),
    *(kernel().replace(*change) for change in REPLACED),
    *('"no event"', "5", "null", "[]", "{}", "[" + kernel() + "]", "", kernel() + " " + kernel(), kernel()[:40]),
    *(kernel()[:-1], kernel() + "}", "\ufeff" + kernel(), "\n\n" + kernel() + "\n"),
    '{"ph": "X", "cat": "kernel", "ts": 1}',
    '{"ph": "M", "name": "process_labels", "pid": 1, "args": {"labels": "GPU 0"}}, {"name": "no phase", "ts": 5}',
]


@pytest.mark.parametrize("odd", ODD, ids=range(len(ODD)))
def test_an_odd_event_among_plain_ones(odd):
    before, after = events(8), events(16)[8:]
    agree(trace([*before, odd, *after]))
    agree(trace([*before, odd, *after], between=" ,"), block=1 << 20)


@pytest.mark.parametrize("between", [",", ", ", ",\n  ", "\n,", " ,\t", ",\r\n", ",,", " ", ",\n\n\n\n", ",\u00a0"])
def test_what_stands_between_events(between):
    agree(trace(events(20), between))


@pytest.mark.parametrize(
    "end", ["]}", "]", "", ",", ",]}", ']}{"a": 1}', '], "baseTimeNanoseconds": 7}', "}]}", '], "x']
)
def test_what_follows_the_events(end):
    agree(trace(events(20), end=end))


@pytest.mark.parametrize("base", [10**18, 9223372036854775807, -(10**18), 0])
def test_the_base_of_the_clock(base):
    agree(trace(events(20, (CALL, RANGE)), end=f'], "baseTimeNanoseconds": {base}}}'))


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1", "utf-8-sig"])
def test_other_encodings(encoding):
    named = [event.replace("aten", "\u00e9t\u00e9") for event in events(20)]
    agree(trace(named).decode().encode(encoding))


def test_rejects_and_blocks_that_share_a_line():
    bad = kernel(ts='"5"')
    for items in ([bad, *events(8), bad], [*events(8), bad, bad, *events(8)], [events(1)[0], bad, *events(3)]):
        for between in (",", ",\n", ",\n\n"):
            agree(trace(items, between), block=1000)


@pytest.mark.parametrize(
    "bad",
    [
        kernel(ts="null"),
        '{"ph": "X", "cat": "kernel", "name": "\\u00e9 \\"", "ts": 1712195495500000.1230, "dur": true, "args": null}',
        '{"ph": "X", "cat": "kernel", "name": "k", "ts": 5.0, "dur": oops, "args": {}}',
        "[1.50, null]",
    ],
)
def test_a_reject_has_its_event_as_the_file_has_it(bad):
    for items in ([bad, *events(8)], [*events(8), bad, bad]):
        stream = io.BytesIO(trace(items))
        found = [one for batch in pytorch_trace.read(stream) if "rejects" in batch.tables
                 for one in batch.tables["rejects"]["text"]]  # fmt: skip
        assert found == [bad] * items.count(bad)


def test_a_cut_trace_gives_the_same_both_ways():
    data = trace([*events(7), kernel(name=r'"\u00e9\""')])
    for end in range(0, len(data), 29):
        agree(data[:end], block=2000)


@given(
    st.lists(st.sampled_from([*PLAIN, *(event.replace("%", "%%") for event in ODD)]), min_size=1, max_size=12),
    st.sampled_from([",", ", ", ",\n", "\n,\n"]),
    st.integers(50, 3000),
    st.lists(st.tuples(st.integers(0, 5000), st.sampled_from(' "\\{}[],:\n5eN.x')), max_size=2),
)
def test_damaged_traces_give_the_same_both_ways(kinds, between, block, damage):
    data = bytearray(trace([kind % {"n": n} for n, kind in enumerate(kinds)], between))
    for place, sign in damage:
        data[place % len(data)] = ord(sign)
    agree(bytes(data), block=block)


NUMBERS = st.one_of(
    st.integers(-(10**19), 10**19).map(str),
    st.decimals(-(10**17), 10**17, places=3).map(str),
    st.decimals(-1000, 10**16, places=5).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(json.dumps),
)


@given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=8))
def test_numbers_are_the_same_both_ways(numbers):
    agree(
        trace([kernel(ts=ts, dur=dur.lstrip("-"), **{"warps per SM": warps}) for ts, dur, warps in numbers]),
        block=1 << 20,
    )
