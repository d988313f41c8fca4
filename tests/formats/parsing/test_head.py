"""What readers see of the head of a file, each for itself or all of one."""

import io
from pathlib import Path

import pytest

from profsvc import formats
from profsvc.formats.parsing.head import Head, head_lines, head_text, header_lines, may_be_header, memoize_on_head
from profsvc.formats.parsing.stream import open_stream

FIXTURES = Path(__file__).parents[3] / "fixtures"
SOME = [next(p for p in sorted(f.iterdir()) if p.suffix != ".json") for f in sorted(FIXTURES.iterdir()) if f.is_dir()]


def test_the_text_of_a_head():
    assert head_text("größe".encode()[:3]) == "gr\ufffd"
    assert head_text("größe".encode("latin-1")) == "größe"
    assert head_lines("a\nb".encode("utf-16")) == ["a", "b"]


def test_a_head_is_decoded_once_and_bytes_as_often_as_they_are_looked_at():
    head = Head(b"Time,P\n1,2\n")
    assert head_text(head) is head_text(head)
    assert header_lines(head) is header_lines(head)
    assert header_lines(bytes(head)) == header_lines(head) == ["Time,P", ""]
    asked = []
    look = memoize_on_head(lambda head: asked.append(len(head)))
    assert [look(head), look(head), look(b"a"), look(b"a")] == [None] * 4
    assert asked == [11, 1, 1]


@pytest.mark.parametrize("line", ["1,2", '"1","2"', " -0.5 ; x", "2026/03/01 12:00:00.5, 7", "2026-03-01T12:00\t7"])
def test_a_row_is_no_header(line):
    assert not may_be_header(line)


@pytest.mark.parametrize("line", ["Time,P", '"ID","CC"', "12 V,Time", "1st,2nd", "==1== x,", "12", ",a", "-,a", "#1,2"])
def test_anything_else_may_be_one(line):
    assert may_be_header(line)


def test_a_header_behind_the_end_of_a_row_is_found_below_it():
    cut = b"2026-03-01 18:40:03,23.2Timestamp,Sensor 1\n"
    table = b"Timestamp,Sensor 1\n2026-03-01 18:40:04,23.4\n"
    reader, batches = formats.read(io.BytesIO(cut + table))
    batches = list(batches)
    assert reader.NAME == "timeseries"
    assert [sum(getattr(b, f"lines_{kind}") for b in batches) for kind in ("stored", "skipped", "rejected")] == [
        1,
        2,
        0,
    ]


@pytest.mark.parametrize("path", SOME, ids=lambda path: path.parent.name)
def test_all_readers_say_the_same_of_a_shared_head_and_of_its_bytes(path):
    raw = open_stream(path).read(1 << 16)
    shared = Head(raw)
    assert [r.NAME for r in formats.READERS if r.sniff(shared)] == [r.NAME for r in formats.READERS if r.sniff(raw)]
