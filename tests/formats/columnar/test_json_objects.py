"""Objects of a list are found where a parser finds them, or not at all."""

import json

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formats.columnar import json_objects
from profsvc.formats.columnar.json_objects import MAX_BLANKS, MAX_DIGITS, parse_objects, parse_pieces
from profsvc.formats.columnar.line_blocks import IrregularBlockError

DECODER = msgspec.json.Decoder(list[dict[str, object]])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(' "\\{}[],:\nIN\u00e9', max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('ab"\\}', max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.lists(st.dictionaries(st.sampled_from(("x", "y")), st.lists(VALUES, max_size=2)), min_size=1, max_size=5),
    st.booleans(),
)
def test_every_object_is_found_with_its_place(values, indented):
    values = [*({"ph": 1} | value for value in values), {"ph": 1}]
    written = json.dumps(values, indent=2 if indented else None, ensure_ascii=False).partition("[")[2].lstrip()
    text = written.encode()
    objects = parse_objects(text, DECODER)
    assert objects.values == values
    assert text[objects.size :].strip() == b"]"
    for value, start, stop in zip(values, objects.starts, objects.stops, strict=True):
        assert json.loads(text[start : stop + 1]) == value


@pytest.mark.parametrize(("size", "count"), [(20, 4), (40, 6), (1000, 7)])
def test_pieces_are_objects_of_the_whole_until_one_is_longer(monkeypatch, size, count):
    monkeypatch.setattr(json_objects, "PIECE_BYTES", size)
    values = [{"a": value} for value in (1, 2, 30, "4", "5" * 20, 6, "7" * 60)]
    first, *others = map(json.dumps, values)
    text = (first + " ,\n" + ",".join(others) + "]").encode()
    found = list(parse_pieces(text, DECODER))
    assert [value for piece in found for value in piece.values] == values[:count]
    bounds = [bound for piece in found for bound in zip(piece.starts, piece.stops, strict=True)]
    assert [json.loads(text[start : stop + 1]) for start, stop in bounds] == values[:count]
    assert found[-1].size == bounds[-1][1] + 1


def test_what_follows_the_last_whole_object_is_left():
    objects = parse_objects(b'{"a": 1}, {"a": "}"},\n{"a": "', DECODER)
    assert (objects.values, objects.size) == ([{"a": 1}, {"a": "}"}], 20)
    assert len(parse_objects(b'{"a": 1}], "other": [{"b": 1}]}', DECODER).values) == 1
    assert len(parse_objects(b'{"a": 1}, {"a": [{}], "b": ', DECODER).values) == 1


@pytest.mark.parametrize("inner", [b'"}, {"', b'[{"b": 1}, {"b": 2}]', b'["}", "{", {}, {}]'])
@pytest.mark.parametrize("blanks", [0, 3, MAX_BLANKS, 5 * MAX_BLANKS])
def test_what_looks_like_a_bound_inside_an_object_is_none(inner, blanks):
    one = b'{"a": ' + inner + b"}"
    text = one + b"," + b"\n" * blanks + one + b',{"a": "the next"'
    objects = parse_objects(text, DECODER)
    second = len(one) + 1 + blanks
    assert (objects.starts.tolist(), objects.stops.tolist()) == ([0, second], [len(one) - 1, second + len(one) - 1])


@pytest.mark.parametrize(
    "gap", ["", ",,", ",\0", "\0,", ",\x0b", ", 5", "5,", "\\,", "\u00e9,", "\ufeff,", ",:", ",\x85"]
)
@pytest.mark.parametrize("width", [0, 4, 5, 6, 7, 20])
def test_nothing_but_a_comma_and_spaces_may_stand_between_objects(gap, width):
    one = '{"a": 1}'
    assert len(parse_objects(f"{one},{' ' * width}{one}, {one}]".encode(), DECODER).values) == 3
    for text in (f"{one}{gap}{' ' * width}{one}, {one}]", f"{one}, {one}{' ' * width}{gap}{one}, {one}]"):
        with pytest.raises(IrregularBlockError):
            parse_objects(text.encode(), DECODER)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"]",
        b"{}]",
        b'{"a": 1',
        b'{"a": 1}',
        b'5, {"a": 1}]',
        b'{"a": 1}, 5, {"a": 1}]',
        b'{"a": 1} {"a": 1}]',
        b'[{"a": 1}]',
        b'{"a": NaN}]',
        b'{"a": [-Inf]}]',
        b'{"a": 01}]',
        b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}]",
        b'{"a": ' + b"1" * (2 * MAX_DIGITS) + b"}]",
    ],
)
def test_what_is_not_plain(text):
    with pytest.raises(IrregularBlockError):
        parse_objects(text, DECODER)


@pytest.mark.parametrize("place", range(0, MAX_DIGITS // 2, 500))
def test_long_integers_are_found_wherever_they_are(place):
    def has(text):
        return json_objects._has_long_integer(text, np.frombuffer(text, np.uint8))

    assert has(b"x" * place + b"7" * MAX_DIGITS + b" " * 100)
    assert not has((b"x" * place + b"7" * 900 + b" ") * 20)
