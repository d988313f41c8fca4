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
