"""Blocks of rows of a LabVIEW measurement file, parsed column-wise: plain numbers without exponents, none missing.

A block with anything else, such as a comment or a header, is parsed line by line.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from profsvc.formats.columnar import split_table
from profsvc.formats.columnar.arrow_columns import split_decimals
from profsvc.formats.columnar.line_blocks import Block, IrregularBlockError, require_plain
from profsvc.formats.daq.lvm_lines import BlockPlan, Segment
from profsvc.formats.parsing.timestamps import FRACTION_DIGITS, MAX_NS, Int64s
from profsvc.formats.splitter import rows as splitter
from profsvc.tables.on_demand import pa


class LvmBlock(NamedTuple):
    """The rows of a block: X in ns, if there is one X column, and the printed numbers by channel."""

    rows: int
    x_ns: Int64s | None
    values: npt.NDArray[np.float64]


def parse(block: Block, plan: BlockPlan) -> LvmBlock | None:
    """Parse a block of whole lines below the columns of a segment; None if a line is not a plain row."""
    data, (segment, sign, decimal) = bytes(block), plan
    with suppress(IrregularBlockError):
        width = _width(data, segment, sign, decimal)
        if splitter.is_available():
            with suppress(IrregularBlockError):
                return _split_part(data, segment, sign, decimal, width)
        with suppress(pa.ArrowInvalid):
            return _arrow_part(data, segment, sign, decimal, width)
    return None


def _width(block: bytes, segment: Segment, sign: str, decimal: str) -> int:
    """Return the number of columns; raise `IrregularBlockError` for what no plain row holds."""
    x_places, y_places = segment.x_places, segment.y_places
    require_plain(len(x_places) < 2 and len(y_places) > 0 and sign != decimal and block.endswith(b"\n"))
    require_plain(not block.translate(None, b"0123456789-\r\n" + sign.encode() + decimal.encode()))
    require_plain(b"\r" not in block or block.count(b"\r") == block.count(b"\r\n"))
    width = block.count(sign.encode(), 0, block.index(b"\n")) + 1
    require_plain(max((*x_places, *y_places)) < width <= len(segment.columns))
    return width


def _split_part(block: bytes, segment: Segment, sign: str, decimal: str, width: int) -> LvmBlock:
    """Parse a block with the compiled splitter."""
    types = [split_table.EMPTY] * width
    for places, kind in ((segment.x_places, split_table.DECIMAL), (segment.y_places, split_table.REAL)):
        for place in places:
            types[place] = kind
    table = split_table.SplitTable(block, types, sign, decimal)
    values = np.empty((table.rows, len(segment.y_places)))
    for column, place in enumerate(segment.y_places):
        values[:, column], known = table.numbers(place)
        require_plain(bool(known.all()))
    if not segment.x_places:
        return LvmBlock(table.rows, None, values)
    digits, decimals, known = table.decimals(segment.x_places[0])
    require_plain(bool(known.all() and decimals.max() <= FRACTION_DIGITS))
    powers = 10 ** (FRACTION_DIGITS - decimals)
    require_plain(bool((digits <= MAX_NS // powers).all()))
    return LvmBlock(table.rows, digits * powers, values)


def _arrow_part(block: bytes, segment: Segment, sign: str, decimal: str, width: int) -> LvmBlock:
    """Parse a block with Arrow."""
    x_places, y_places = segment.x_places, segment.y_places
    names = [str(place) for place in range(width)]
    types = dict.fromkeys(names, pa.string())
    types |= {names[place]: pa.decimal128(38, FRACTION_DIGITS) for place in x_places}
    types |= {names[place]: pa.float64() for place in y_places}
    batch = pa.csv.read_csv(
        pa.py_buffer(block),
        pa.csv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=names),
        pa.csv.ParseOptions(delimiter=sign, quote_char=False, ignore_empty_lines=False),
        pa.csv.ConvertOptions(column_types=types, null_values=[], decimal_point=decimal, check_utf8=False),
        pa.system_memory_pool(),
    ).to_batches()[0]
    for place in set(range(width)) - {*x_places, *y_places}:
        # Offsets of texts that are all empty do not rise.
        offsets = np.frombuffer(batch.column(place).buffers()[1], np.int32)[: batch.num_rows + 1]
        require_plain(bool(offsets[-1] == offsets[0]))
    values = np.column_stack([batch.column(place).to_numpy() for place in y_places])
    require_plain(bool(np.isfinite(values).all()))
    return LvmBlock(batch.num_rows, _ns(batch.column(x_places[0])) if x_places else None, values)


def _ns(column: pa.Array) -> Int64s:
    lower, upper = split_decimals(column)
    require_plain(bool((upper == lower >> 63).all() and lower.min() >= -MAX_NS and lower.max() <= MAX_NS))
    return np.ascontiguousarray(lower)
