"""Objects of a list are found where a parser finds them, or not at all."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formats.columnar.json_objects import MAX_DECIMAL_CHARS, MAX_DEPTH, JsonObjects
from profsvc.formats.columnar.line_blocks import IrregularBlockError

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(' "\\{}[],:\nINa\u00e9', max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('ab"\\}', max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.lists(st.dictionaries(st.sampled_from(("x", "y")), st.lists(VALUES, max_size=2)), min_size=1, max_size=5),
    st.booleans(),
)
def test_every_object_is_found_with_its_lines(values, indented):
    text = json.dumps(values, indent=2 if indented else None, ensure_ascii=False).partition("[")[2].lstrip()
    objects = JsonObjects(text.encode())
    whole = objects.text
    found = [whole[a:b].decode() for a, b in zip(objects.starts, objects.ends, strict=True)]
    assert [json.loads(each) for each in found] == values
    assert objects.first_lines.tolist() == [whole[:a].count(b"\n") for a in objects.starts]
    assert objects.last_lines.tolist() == [whole[:b].count(b"\n") for b in objects.ends]


def test_what_follows_the_last_whole_object_is_left():
    objects = JsonObjects(b'{"a": 1}, {"b": "}"},\n{"c": "')
    assert (len(objects), objects.ends.tolist()) == (2, [8, 20])
    assert objects.joined(np.array([False, True])) == b'{"b": "}"}'
    assert len(JsonObjects(b'{"a": 1}], "other": [{"b": 1}]}')) == 1


@given(st.data())
def test_some_of_the_objects_are_those_that_a_parser_finds(data):
    spaces = st.text(" \t\r\n", max_size=data.draw(st.sampled_from((1, 5))))
    values = data.draw(st.lists(st.dictionaries(st.sampled_from(("x", "y")), VALUES), min_size=1, max_size=6))
    gaps = [f"{data.draw(spaces)},{data.draw(spaces)}" for _ in values[1:]] + [""]
    text = "".join(json.dumps(value) + gap for value, gap in zip(values, gaps, strict=True))
    some = np.array(data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values))), np.bool_)
    joined, found = JsonObjects(text.encode()).joined(some).decode(), []
    while joined := joined.lstrip():
        value, end = json.JSONDecoder().raw_decode(joined)
        found.append(value)
        joined = joined[end:]
    assert found == [value for value, wanted in zip(values, some, strict=True) if wanted]


@pytest.mark.parametrize(
    "gap", ["", ",,", ",\0", "\0,", ",\x0b", ", 5", "5,", "\\,", "\u00e9,", "\ufeff,", ",:", ",\x85"]
)
@pytest.mark.parametrize("width", [0, 4, 5, 6, 7, 20])
def test_nothing_but_a_comma_and_spaces_may_stand_between_objects(gap, width):
    JsonObjects(f"{{}},{' ' * width}{{}}, {{}}".encode())
    for text in (f"{{}}{gap}{' ' * width}{{}}, {{}}", f"{{}}, {{}}{' ' * width}{gap}{{}}"):
        with pytest.raises(IrregularBlockError):
            JsonObjects(text.encode())


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"]",
        b'{"a": 1',
        b"5, {}",
        b"{}, 5, {}",
        b"{} {}",
        b"{},, {}",
        b"[{}]",
        b'{"a": NaN}',
        b'{"a": [-Inf]}',
        b'{"a": ' + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b"}",
        b'{"a": ' + b"1" * 5000 + b"}",
        rb'{"\u0074s": 5}',
    ],
)
def test_what_is_not_plain(text):
    with pytest.raises(IrregularBlockError):
        JsonObjects(text)


def test_values_of_a_key_are_found_in_the_objects_themselves():
    text = b'{"x": {"cat": 1}, "cat": "a"}, {"name": "cat"}, {"cat":"b"}'
    owners, places = JsonObjects(text).values("cat")
    assert owners.tolist() == [0, 2]
    assert [text[place : place + 3] for place in places] == [b'"a"', b'"b"']


@pytest.mark.parametrize("value", ["5", "-5.25", "0." + "1" * (MAX_DECIMAL_CHARS - 3)])
def test_a_decimal(value):
    for text in (f'{{"ts": {value}}}', f'{{"ts":{value}, "a": "b"}}', f'{{"ts": {value}\n}}, {{}}'):
        JsonObjects(text.encode()).must_be_decimals("ts")


@pytest.mark.parametrize("value", ['"5"', ' "5"', "1e-9", "5E3", "null", "[5]", "0." + "1" * MAX_DECIMAL_CHARS])
def test_no_decimal(value):
    with pytest.raises(IrregularBlockError):
        JsonObjects(f'{{"ts": {value}}}'.encode()).must_be_decimals("ts")
