import io

import pytest

from profsvc.errors import InputError
from profsvc.formats.columnar.line_blocks import parse_ahead
from profsvc.formats.parsing.text import MAX_LINE_CHARS, Text, line_notes

WORDS = b"".join(b"line %d\n" % n for n in range(50_000))


@pytest.mark.parametrize(
    ("data", "encoding", "lines"),
    [
        (b"", "utf-8", []),
        (b"a\nb", "utf-8", ["a\n", "b"]),
        (b"a\r\n\r\n", "utf-8", ["a\r\n", "\r\n"]),
        (b"a\rb\x0cc\x85\n", "latin-1", ["a\rb\x0cc\x85\n"]),
        ("a\u2028b\n".encode(), "utf-8", ["a\u2028b\n"]),
        ("größe\n".encode("utf-8-sig"), "utf-8-sig", ["größe\n"]),
        ("größe\n".encode("utf-16"), "utf-16", ["größe\n"]),
        (b"\xfe\xff" + "größe\n".encode("utf-16-be"), "utf-16", ["größe\n"]),
        ("größe\n".encode("latin-1"), "latin-1", ["größe\n"]),
        ("a\nß".encode()[:-1], "utf-8", ["a\n", "\ufffd"]),
        ("a\nb".encode("utf-16")[:-1], "utf-16", ["a\n", "\ufffd"]),
    ],
)
def test_text(data, encoding, lines):
    with Text(io.BytesIO(data)) as text:
        assert text.encoding == encoding
        assert list(text.lines()) == lines
        assert list(text.lines()) == lines


def test_latin_1_is_noticed_late():
    data = b"plain\n" * 400_000 + b"gr\xf6\xdfe\n"
    with Text(io.BytesIO(data)) as text:
        assert text.encoding == "latin-1"
        assert sum(1 for _ in text.lines()) == 400_001
        assert list(text.lines())[-1] == "größe\n"


class _Counting(io.BytesIO):
    """Counts the bytes that are read."""

    count = 0

    def read(self, size=-1):
        found = super().read(size)
        self.count += len(found)
        return found


def test_blocks_of_ascii_are_read_once():
    stream = _Counting(b"plain\n" * 100_000)
    with Text(stream) as text:
        assert sum(map(len, text.blocks(60_000))) == 600_000
        assert text.encoding == "utf-8"
    assert stream.count < 620_000


def test_what_readers_leave_is_examined_at_the_end():
    stream = io.BytesIO(b"plain\n" * 100_000 + b"a\0\n")
    with Text(stream) as text:
        next(text.blocks(60_000))
    assert line_notes(stream).nul_lines == [100_001]


@pytest.mark.parametrize("before", [0, 3, 20_000, 100_000])
@pytest.mark.parametrize(
    ("end", "encoding"),
    [
        ("größe\nb".encode(), "utf-8"),
        ("größe\nb".encode("latin-1"), "latin-1"),
        ("größe\n".encode() + b"\xf6\n", "latin-1"),
        (b"a\0\nb", "utf-8"),
        ("größe\0\nä".encode("latin-1"), "latin-1"),
        ("ß".encode()[:-1], "utf-8"),
    ],
)
@pytest.mark.parametrize("known", [True, False])
def test_blocks_are_as_if_all_was_examined_before(before, end, encoding, known):
    data, streams = b"plain\n" * before + end, []
    for ask in (True, known):
        stream = io.BytesIO(data)
        with Text(stream) as text:
            assert not ask or text.encoding == encoding
            blocks = b"".join(text.blocks(60_000))
            assert text.encoding == encoding
            assert b"".join(text.blocks(60_000)) == blocks
            assert "".join(text.lines()) == blocks.decode("utf-8", "replace")
        streams.append((blocks, vars(line_notes(stream))))
    assert streams[0] == streams[1]
    marked = data.decode(encoding, "replace").split("\n")
    assert streams[0][0].decode("utf-8", "replace").split("\n") == [line for line in marked if "\0" not in line]


def test_characters_across_chunks():
    data = b"a" + "ß".encode() * 700_000 + b"\n"
    with Text(io.BytesIO(data)) as text:
        assert [len(line) for line in text.lines()] == [700_002]


def test_lines_with_nuls_are_left_out_and_noted():
    stream = io.BytesIO(b"a\nb\nc\0\nd\n\0\0")
    with Text(stream) as text:
        assert list(text.lines()) == ["a\n", "b\n", "d\n"]
        assert b"".join(text.blocks(2)) == b"a\nb\nd\n"
        assert (line_notes(stream).nul_lines, line_notes(stream).nul_texts) == ([3, 5], ["c", ""])
        with pytest.raises(InputError, match="line 3 has a NUL byte"):
            list(text.pieces())


def test_what_is_mostly_nuls_is_refused():
    with pytest.raises(InputError, match="line 2 has a NUL byte"):
        Text(io.BytesIO(b"a\nb\0\nc\0\n"))


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_a_mark_is_told_by_its_nuls(encoding):
    with Text(io.BytesIO("Zeit;P (W)\n0;1,5\n".encode(encoding))) as text:
        assert (list(text.lines()), text.encoding) == (["Zeit;P (W)\n", "0;1,5\n"], encoding)


@pytest.mark.parametrize("size", [1 << 20, 3 << 20, 4 << 20])
def test_lines_below_the_limit_are_read_whatever_the_block(size):
    line = b"x" * (MAX_LINE_CHARS - 1) + b"\n"
    with Text(io.BytesIO(b"a\n" + line + b"b\n")) as text:
        assert [len(block) for block in text.blocks(size)][-2:] == [MAX_LINE_CHARS, 2]
    with Text(io.BytesIO(b"x" * (MAX_LINE_CHARS + 2))) as text, pytest.raises(InputError, match="longer than"):
        list(text.blocks(size))


def test_endless_line_is_refused():
    with Text(io.BytesIO(b"x" * (18 << 20))) as text, pytest.raises(InputError, match="longer than"):
        list(text.lines())


def test_a_damaged_character_of_utf_16_is_no_end_of_its_mark():
    data = "a,b\n".encode("utf-16") * 40_000
    data = b"\xff\xfe" + data[2:90_000] + b"\xd8\xd8\x41\x00" + "c\n".encode("utf-16-le") * 90_000
    with Text(io.BytesIO(data)) as text:
        assert text.encoding == "utf-16"
        assert sum(1 for _ in text.lines()) > 90_000


def test_the_first_block_may_be_smaller_than_the_others_which_grow():
    with Text(io.BytesIO(WORDS)) as text:
        sizes = [len(block) for block in text.blocks(10_000, 100)]
        assert all(0 < seen <= wanted for seen, wanted in zip(sizes, (100, 800, 6_400, 10_000), strict=False))
        assert sizes[3] > 9_000
        assert b"".join(text.blocks(10_000, 100)) == WORDS


def test_a_block_is_not_taken_before_one_that_may_give_it_a_plan_is_done_with():
    plans, done = [], []
    for block, plan, part in parse_ahead(iter([b"a", b"b", b"c", b"d"]), lambda: plans[-1] if plans else None, max):
        done.append((bytes(block), plan, part))
        plans.append(b"bb")
    assert done == [(b"a", None, None), (b"b", b"bb", b"bb"), (b"c", b"bb", b"c"), (b"d", b"bb", b"d")]
