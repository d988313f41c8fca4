"""The times of events of a PyTorch trace, from numbers or from what is printed."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec import Raw

from profsvc.formats.columnar.arrow_columns import split_decimals
from profsvc.formats.columnar.line_blocks import Floats, IrregularBlockError, require_plain
from profsvc.formats.parsing.numbers import MAX_EXACT_INT
from profsvc.formats.parsing.timestamps import MAX_NS, Int64s
from profsvc.formats.pytorch.event_values import NumericEvent, PrintedEvent
from profsvc.tables.on_demand import pa

# Decimals of parsed microseconds.
MICROSECOND_DECIMALS = 6
_DECIMAL_SIGNS = b"-.0123456789\n"
_LINE_END = ord("\n")


class Times(NamedTuple):
    """How to read times: a decoder of events with them, and what makes starts and durations in ns of them."""

    decoder: msgspec.json.Decoder[Any]
    starts: Callable[[list[Any]], Int64s]
    durations: Callable[[list[Any]], Floats]


def _starts(values: list[Any]) -> Int64s:
    """Return starts in microseconds as ns.

    >>> _starts([5, 7]).tolist(), _starts([5.125, 7]).tolist()
    ([5000, 7000], [5125, 7000])
    """
    if set(map(type, values)) == {int}:
        numbers = plain_array("q", values)
        require_plain(bool(numbers.min() > -MAX_NS // 1000 and numbers.max() < MAX_NS // 1000))
        return np.asarray(numbers * 1000)
    found: Int64s = _thousandths(values).astype(np.int64)
    return found


def _thousandths(values: list[Any]) -> Floats:
    """Return numbers with at most three decimals in thousandths, which are whole.

    Below 2**53 thousandths each such number has a double of its own, and no other number is taken for one: it must
    be the double that is nearest to the whole number of thousandths.
    """
    numbers = plain_array("d", values)
    require_plain(bool((np.abs(numbers) < MAX_EXACT_INT // 1000).all()))
    found: Floats = np.rint(numbers * 1000)
    require_plain(bool((found / 1000 == numbers).all()))
    return found


def plain_array(kind: str, values: Iterable[Any]) -> Any:
    """Return numbers as an array of a kind; another value, or one out of range, is irregular."""
    try:
        return np.frombuffer(array(kind, values), kind)
    except (TypeError, OverflowError):
        raise IrregularBlockError from None


def _numeric_durations(values: list[Any]) -> Floats:
    """Return durations in microseconds as ns."""
    found = _thousandths(values)
    require_plain(bool(found.min() >= 0))
    return found


def _decimals(values: Sequence[Raw]) -> pa.Array:
    """Return printed numbers with at most `MICROSECOND_DECIMALS` decimals."""
    text = b"\n".join(values) + b"\n"
    require_plain(not text.translate(None, _DECIMAL_SIGNS))
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == _LINE_END)
    bounds = np.append(0, ends - np.arange(len(ends))).astype(np.int32)
    data = pa.py_buffer(text.replace(b"\n", b""))
    texts = pa.Array.from_buffers(pa.string(), len(ends), [None, pa.py_buffer(bounds), data])
    return texts.cast(pa.decimal128(38, MICROSECOND_DECIMALS))


def _ns(column: pa.Array) -> Int64s:
    """Return microseconds as whole nanoseconds, half of one to the even."""
    rounded = pa.compute.round(column, 3, "half_to_even").cast(pa.decimal128(38, 3))
    values, upper = split_decimals(rounded)
    require_plain(bool((upper == values >> 63).all() and values.min() > -MAX_NS and values.max() < MAX_NS))
    return values


def _durations(column: pa.Array) -> Floats:
    """Return microseconds as nanoseconds, rounded once (quotients of exact integers)."""
    values, upper = split_decimals(column)
    require_plain(bool((upper == 0).all() and values.min() >= 0 and values.max() < MAX_EXACT_INT))
    return values / 10.0 ** (MICROSECOND_DECIMALS - 3)


NUMERIC = Times(msgspec.json.Decoder(list[NumericEvent], float_hook=str.encode), _starts, _numeric_durations)
PRINTED = Times(
    msgspec.json.Decoder(list[PrintedEvent], float_hook=str.encode),
    lambda values: _ns(_decimals(values)),
    lambda values: _durations(_decimals(values)),
)
