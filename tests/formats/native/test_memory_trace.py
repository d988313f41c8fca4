"""Both forms of memory traces: every fixture against the truth beside it, in blocks and line by line."""

import io
import json
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from profsvc import formats
from profsvc.errors import BrokenInputError, InputError
from profsvc.formats.native import memory_references, memory_trace
from profsvc.formats.native.memory_references import Sites, sorted_by_warp, whole_warps
from profsvc.formats.parsing.stream import open_stream
from profsvc.formulas.memory_hierarchy import Trace
from tests.benchmarks.memory_hierarchy import parts
from tests.formats.conftest import ODD_NUMBERS
from tests.formats.fixtures import ROOT, TRUTH, beside, good

HEADER = b"block,warp,seq,site,address,kind\n"


def rows(data: bytes) -> list[list[Any]]:
    """The references of a file, with the names of their sites."""
    sites = Sites()
    found = [
        one.trace for one in memory_trace.counted_traces(open_stream(io.BytesIO(data)), sites) if one.trace is not None
    ]
    names = list(sites)
    columns = [np.broadcast_arrays(*(np.atleast_1d(np.asarray(x)) for x in trace)) for trace in found]
    flat = [row for one in columns for row in zip(*(column.tolist() for column in one), strict=True)]
    return [[block, warp, seq, names[site], *rest] for block, warp, seq, site, *rest in flat]


@pytest.mark.parametrize("path", good("memory_trace", "memory_trace_parquet"), ids=lambda path: path.name)
def test_the_references_of_a_file(path):
    truth = json.loads(beside(path, TRUTH).read_text(encoding="utf-8"))
    assert rows(path.read_bytes()) == truth["rows"]


cells = st.tuples(
    st.integers(0, 3),
    st.integers(0, 40),
    st.integers(0, 10**9),
    st.sampled_from(["a.cu:1", "7", "x y"]),
    st.integers(0, 2**60 - 1),
    st.sampled_from(["load", "Store", "a", "1"]),
)


def account(data: bytes, few: int) -> tuple[Any, ...]:
    """What is known of each reference and line; at once, or one by one where ``few`` bytes are more than there are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory_trace, "SMALL_BLOCK_BYTES", few)
        if few > len(data):
            patch.setattr(memory_trace._Parser, "_parse_block", memory_trace._Parser._parse_lines)
        batches = list(memory_trace.read(io.BytesIO(data)))
        rejects = [line for b in batches if "rejects" in b.tables for line in b.tables["rejects"]["line"]]
        counts = [sum(getattr(b, n) for b in batches) for n in ("lines_stored", "lines_skipped", "lines_rejected")]
        return counts, rejects, rows(data)


@pytest.mark.parametrize("cell", ODD_NUMBERS)
def test_an_odd_number_says_what_it_says_in_a_single_line(cell: str) -> None:
    for place, address in product([0, 1, 2, 4], ["4096", "0x1000"]):
        plain = ["1", "2", "3", "a.cu:1", address, "load"]
        lines = [plain, [*plain[:place], cell, *plain[place + 1 :]], plain]
        data = HEADER + "".join(",".join(line) + "\n" for line in lines).encode()
        assert account(data, 1) == account(data, 1 << 20), (place, address)


@given(st.lists(st.tuples(cells, st.booleans(), st.sampled_from(["", "#", "bad", '"'])), min_size=1, max_size=30))
def test_blocks_say_what_single_lines_say(drawn: list[tuple[Any, bool, str]]) -> None:
    text = HEADER.decode()
    for row, is_hex, odd in drawn:
        address = hex(row[4]) if is_hex else str(row[4])
        text += {"": "", "#": "# note\n", "bad": "1,2\n", '"': '"'}[odd]
        text += ",".join([str(row[0]) + ('"' if odd == '"' else ""), *map(str, row[1:4]), address, row[5]]) + "\n"
    assert account(text.encode(), 1) == account(text.encode(), 1 << 20)


def test_parquet_is_what_csv_is(read_all) -> None:
    (part,) = parts(400)
    columns = dict(
        zip(("block", "warp", "seq", "site", "address", "kind"), np.broadcast_arrays(*part[:6]), strict=True)
    )
    file = io.BytesIO()
    parquet.write_table(pa.table(columns), file, row_group_size=150)
    lines = "".join(",".join(map(str, row)) + "\n" for row in zip(*(x.tolist() for x in columns.values()), strict=True))
    assert rows(file.getvalue()) == rows(HEADER + lines.encode())
    content = read_all(file.getvalue())
    assert (content.stored, content.facts["order"]) == (400, "by warp")


@pytest.mark.parametrize("size", [4, 40, 200, -1])
def test_a_damaged_parquet_file_is_refused(size: int, read_all) -> None:
    whole = (ROOT / "memory_trace_parquet" / "texts.parquet").read_bytes()
    with pytest.raises(InputError, match="the Parquet file cannot be read"):
        read_all(whole[:size])


def test_a_parquet_column_that_would_not_come_in_pieces_is_refused(monkeypatch, read_all) -> None:
    monkeypatch.setattr("profsvc.formats.native.memory_trace_parquet.MAX_COLUMN_BYTES", 10)
    with pytest.raises(BrokenInputError, match="row group 0 has a column of 0 MiB; write it again"):
        read_all((ROOT / "memory_trace_parquet" / "texts.parquet").read_bytes())


def test_a_trace_has_so_many_sites(monkeypatch) -> None:
    monkeypatch.setattr(memory_references, "MAX_SITES", 2)
    with pytest.raises(BrokenInputError, match="at most 2 sites"):
        rows(HEADER + b"".join(b"0,0,%d,s%d,0,load\n" % (n, n) for n in range(3)))


def test_what_is_no_trace_is_left_to_others() -> None:
    assert not memory_trace.sniff(b"block,warp,seq\n0,0,0\n")
    assert memory_trace.sniff(b"# device: x\n\n" + HEADER)
    with pytest.raises(BrokenInputError, match="no header of a memory trace"):
        list(memory_trace.read(io.BytesIO(b"# nothing\n")))
    with pytest.raises(BrokenInputError, match="line 1: the header lacks block"):
        formats.read(io.BytesIO(b"a,b\n1,2\n"), "memory-trace")[1].__next__()


def chunks(trace: Trace, size: int) -> Iterator[Trace]:
    columns = np.broadcast_arrays(*(np.atleast_1d(np.asarray(x)) for x in trace))
    for begin in range(0, columns[0].size, size):
        yield Trace(*(column[begin : begin + size] for column in columns))


@pytest.mark.parametrize(("size", "at_once"), [(7, 50), (130, 1), (1000, 300), (3, 1000)])
def test_parts_are_of_whole_warps(size: int, at_once: int) -> None:
    (whole,) = parts(1000)
    found = list(whole_warps(chunks(whole, size), at_once))
    keys = [set(zip(np.asarray(p.block).tolist(), np.asarray(p.warp).tolist(), strict=True)) for p in found]
    assert sum(map(len, keys)) == len(set().union(*keys)) == 10
    np.testing.assert_array_equal(np.concatenate([p.address for p in found]), whole.address)


def test_mixed_order_is_sorted_by_warp(monkeypatch) -> None:
    monkeypatch.setattr(memory_references, "PART_REFERENCES", 64)
    (whole,) = parts(500)
    mixed = np.random.default_rng(0).permutation(500)
    columns = np.broadcast_arrays(*(np.atleast_1d(np.asarray(x)) for x in whole._replace(sm=-1)))
    found = list(sorted_by_warp(chunks(Trace(*(column[mixed] for column in columns)), 90)))
    np.testing.assert_array_equal(np.concatenate([p.address for p in found]), whole.address)
    assert max(np.asarray(p.seq).size for p in found) == 64
