"""Metrics of pages with a column a metric, kept column by column, and read back.

Up to `MOST_LAUNCHES` launches that follow each other make a block (``wide_blocks``); what its columns are is written
once for all blocks and files with the same columns (``wide_layouts``, ``wide_columns``). A column of a block is one
row, numbered ``first_cell + place``:

* ``wide_constants``: the same text for every launch of the block, with its value, or the reason why it has none;
* ``wide_cells``: the texts of the launches with a space between, none where nothing was collected. They are plain
  numbers, and `VALUE` is the SQL that reads them; whether it gives the reader's own number, to the last bit, is
  checked cell by cell before a text is written here.

Any other cell becomes a row of ``metrics``, as those of long pages do. So plain SQL opens all of it on both databases,
and ``v1_metrics`` shows the three together.

What it costs: each text and one byte, and some 12 bytes a column of a block. Numbers without any order, to two
decimals, take 2.3 times what gzip -6 makes of their file. Real pages repeat themselves from metric to metric and from
launch to launch, which gzip uses and a table that SQL can open cannot: they take more (the benchmark of wide pages
prints how much).
"""

import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute
from sqlalchemy import Connection, Engine, text

from profsvc.errors import DomainError, InputError
from profsvc.store.bulk import insert_rows
from profsvc.store.engine import reading
from profsvc.store.names import Names
from profsvc.store.schema import STEP
from profsvc.tables import Wide, WideColumns, unpivoted

MOST_LAUNCHES = 64
"""Most launches of a block. Few enough that one launch is opened quickly, and that a row packs well into a page."""

# Whole numbers up to 2^53 and powers of ten up to 10^22 are exact, and so their quotient is the nearest double. A text
# of 16 signs may hold 16 digits: then the number is 10^15 at least.
MOST_SIGNS = 16
MOST_NUMBER = 1e15
_PLAIN = np.zeros(256, np.bool_)
_PLAIN[[*b"0123456789.,-"]] = True

_BARE = "replace({texts}, ',', '')"
_WHOLE = f"rtrim({_BARE}, '0123456789')"
_DECIMALS = f"CASE {_WHOLE} WHEN '' THEN 0 WHEN '-' THEN 0 ELSE length({_BARE}) - length({_WHOLE}) END"
# The same SQL reads the numbers on both databases: their own conversions of text do not round alike.
VALUE = (
    f"CAST(CAST(NULLIF(replace({_BARE}, '.', ''), '') AS BIGINT) AS DOUBLE PRECISION)"
    f" / CAST('1e' || ({_DECIMALS}) AS DOUBLE PRECISION) * {{factor}}"
)
Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


class WideCells:
    """Writes the wide metrics of one upload, block by block."""

    def __init__(
        self, connection: Connection, first: int, names: dict[str, Names], write_long: Callable[[pd.DataFrame], None]
    ) -> None:
        """Begin an upload whose ids follow ``first``; ``write_long`` writes a table ``metrics``."""
        self.connection, self.first, self.names, self.write_long = connection, first, names, write_long
        self.layouts = Names(connection, "wide_layouts")
        self.columns: WideColumns | None = None
        self.layout = 0
        self.next_cell = first
        self.waiting: list[Wide] = []

    def write(self, wide: Wide) -> None:
        """Take cells; they are written when a block is full."""
        if wide.columns is not self.columns or (self.waiting and _end(self.waiting[-1]) != wide.first_launch):
            self.finish()
        if wide.columns is not self.columns:
            self.columns, self.layout = wide.columns, self._layout(wide.columns)
        begin, missing = 0, MOST_LAUNCHES - sum(len(part.lines) for part in self.waiting)
        while begin < len(wide.lines):
            self.waiting.append(_some(wide, begin, begin + missing))
            begin, filled, missing = begin + missing, len(wide.lines) - begin >= missing, MOST_LAUNCHES
            if filled:
                self.finish()

    def finish(self) -> None:
        """Write what waits."""
        parts, self.waiting = self.waiting, []
        if parts:
            self._block(_joined(parts))

    def _layout(self, columns: WideColumns) -> int:
        """Return the number of the layout of these columns; a new one is written."""
        metrics = self._numbers("metric_names", [(metric, "", "") for metric in columns.metrics])
        units = self._numbers("unit_names", list(zip(columns.units, columns.si_units, strict=True)))
        rows = list(zip(metrics, range(len(metrics)), units, columns.factors.tolist(), strict=True))
        layout = self.layouts[hashlib.sha256(json.dumps(rows).encode()).hexdigest(),]
        names = ("layout_id", "metric_id", "place", "unit_id", "factor")
        insert_rows(self.connection, "wide_columns", names, ((layout, *row) for row in rows), known=True)
        return layout

    def _numbers(self, table: str, names: list[tuple[str, ...]]) -> list[int]:
        distinct = list(dict.fromkeys(names))
        number = dict(zip(distinct, self.names[table].numbers(distinct), strict=True))
        return [number[name] for name in names]

    def _block(self, block: Wide) -> None:
        launches, width = block.values.shape
        if self.next_cell + width >= self.first + STEP:
            raise InputError(f"a file may have {STEP - 1:,} columns of blocks of {MOST_LAUNCHES} launches; split it")
        texts = _column_by_column(block)
        odd = block.collected & ~_readable(texts, block)
        together = _together(texts, launches)
        constants, cells = [], []
        for place, all_texts in enumerate(together):
            one = all_texts[: all_texts.find("\0")] if launches > 1 else all_texts
            if all_texts == "\0".join([one] * launches):
                odd[:, place] = False
                if one:
                    value = float(block.values[0, place])
                    known = value if value == value else None
                    constants.append((self.next_cell + place, one, known, block.reasons.get((0, place))))
                continue
            if odd[:, place].any():
                split = zip(all_texts.split("\0"), odd[:, place].tolist(), strict=True)
                all_texts = "\0".join("" if is_odd else cell for cell, is_odd in split)
            cells.append((self.next_cell + place, all_texts.replace("\0", " ")))
        if odd.any():
            self.write_long(unpivoted(block, odd))
        of_block = (self.first + block.first_launch + 1, launches, self.layout, self.next_cell)
        for table, columns, rows in (
            ("wide_blocks", ("first_launch", "launches", "layout_id", "first_cell"), [of_block]),
            ("wide_constants", ("cell_id", "raw_text", "value", "reason"), constants),
            ("wide_cells", ("cell_id", "texts"), cells),
        ):
            insert_rows(self.connection, table, columns, rows)
        self.next_cell += width


def _end(wide: Wide) -> int:
    return wide.first_launch + len(wide.lines)


def _some(wide: Wide, begin: int, end: int) -> Wide:
    """Return the launches ``begin`` to ``end`` of wide metrics."""
    reasons = {(row - begin, place): why for (row, place), why in wide.reasons.items() if begin <= row < end}
    return replace(
        wide,
        first_launch=wide.first_launch + begin,
        lines=wide.lines[begin:end],
        bounds=wide.bounds[begin:end],
        values=wide.values[begin:end],
        reasons=reasons,
    )


def _joined(parts: list[Wide]) -> Wide:
    """Put launches that follow each other together; only the letters of their cells are kept."""
    letters, bounds, rows, size = [], [], 0, 0
    reasons: dict[tuple[int, int], str] = {}
    for part in parts:
        low, high = (int(part.bounds.min()), int(part.bounds.max())) if part.bounds.size else (0, 0)
        letters.append(part.letters[low:high])
        bounds.append(part.bounds - np.int32(low - size))
        reasons |= {(row + rows, place): why for (row, place), why in part.reasons.items()}
        rows, size = rows + len(part.lines), size + high - low
    values, lines = np.concatenate([part.values for part in parts]), np.concatenate([part.lines for part in parts])
    return Wide(
        parts[0].columns, parts[0].first_launch, lines, np.concatenate(letters), np.concatenate(bounds), values, reasons
    )


def _column_by_column(block: Wide) -> pa.StringArray:
    """Return the texts of all cells, those of a column behind each other."""
    rows, width = block.values.shape
    offsets = np.append(block.bounds.reshape(-1), np.int32(len(block.letters)))
    if (np.diff(offsets) < 0).any():
        raise DomainError("the cells of wide metrics do not lie in the order of their launches and columns")
    # Texts of Arrow follow each other without gaps: every other one is what lies between two cells.
    texts = pa.StringArray.from_buffers(2 * rows * width, pa.py_buffer(offsets), pa.py_buffer(block.letters))
    places = 2 * (np.arange(width, dtype=np.int32)[:, None] + np.arange(rows, dtype=np.int32) * np.int32(width))
    return texts.take(pa.array(places.reshape(-1)))


def _together(texts: pa.StringArray, launches: int) -> list[str]:
    """Return the texts of each column with a NUL, which no cell holds, between them."""
    columns = pa.ListArray.from_arrays(np.arange(0, len(texts) + 1, launches, dtype=np.int32), texts)
    joined: list[str] = pyarrow.compute.binary_join(columns, "\0").to_pylist()
    return joined


def _readable(texts: pa.StringArray, block: Wide) -> Flags:
    """Tell which cells `VALUE` reads as the reader did."""
    rows, width = block.values.shape
    _, offset_buffer, data = texts.buffers()
    offsets = np.frombuffer(offset_buffer, np.int32)[: len(texts) + 1]
    letters = np.frombuffer(data, np.uint8)[: offsets[-1]] if data is not None else np.zeros(0, np.uint8)
    plain = np.diff(offsets) > 0
    plain[np.searchsorted(offsets, np.flatnonzero(~_PLAIN[letters]), "right") - 1] = False
    values = block.values.T.reshape(-1)
    plain &= np.isfinite(values)
    bare = texts if not (letters == ord(",")).any() else pyarrow.compute.replace_substring(texts, ",", "")
    signs = np.diff(np.frombuffer(bare.buffers()[1], np.int32)[: len(texts) + 1])
    plain &= signs <= MOST_SIGNS
    try:
        read = pyarrow.compute.cast(pyarrow.compute.if_else(plain, bare, "0"), pa.float64())
    except pa.ArrowInvalid:  # a format that marks decimals otherwise
        return np.zeros((rows, width), np.bool_)
    numbers = read.to_numpy()
    plain &= (np.abs(numbers) < MOST_NUMBER) & (numbers * np.repeat(block.columns.factors, rows) == values)
    return plain.reshape(width, rows).T


_LOST = """
    SELECT min(b.first_launch) FROM wide_blocks b WHERE b.first_launch > :first AND b.first_launch < :end
    AND b.launches > (
        SELECT count(*) FROM launches l
        WHERE l.launch_id >= b.first_launch AND l.launch_id < b.first_launch + b.launches)
"""


def first_without_launch(connection: Connection, bounds: Mapping[str, int]) -> int | None:
    """Return the first launch of a block between ``first`` and ``end`` that lacks a launch; None if none does."""
    found = connection.execute(text(_LOST), bounds).scalar()
    return None if found is None else int(found)


def wide_values(engine: Engine, launch_ids: Sequence[int], wanted: Collection[str]) -> dict[str, Floats]:
    """Return the values of the wanted metrics of these launches, in SI units, NaN where there is none.

    Only cells that are kept column by column; `profsvc.store.read.metrics` has the others. Where two columns have one
    name, the first counts. A metric without any value is left out.
    """
    found: dict[str, Floats] = {}
    if not launch_ids or not wanted:
        return found
    index = pd.Index(launch_ids)
    with reading(engine) as connection:
        bounds = {"low": int(index.min()) - MOST_LAUNCHES + 1, "high": int(index.max())}
        blocks = connection.execute(text(_BLOCKS), bounds).all()
        columns = {layout: _wanted_columns(connection, layout, wanted) for layout in {block[2] for block in blocks}}
        for first, launches, layout, first_cell in blocks:
            rows = index.get_indexer(pd.RangeIndex(first, first + launches))
            if (rows < 0).all():
                continue
            for metric, values in _values(connection, launches, first_cell, columns[layout]):
                whole = found.setdefault(metric, np.full(len(index), np.nan))
                known = whole[rows[rows >= 0]]
                whole[rows[rows >= 0]] = np.where(np.isnan(known), values[rows >= 0], known)
    return {metric: values for metric, values in found.items() if not np.isnan(values).all()}


_BLOCKS = """
    SELECT first_launch, launches, layout_id, first_cell FROM wide_blocks
    WHERE first_launch BETWEEN :low AND :high ORDER BY first_launch
"""
_COLUMNS = """
    SELECT c.place, n.metric, c.factor FROM wide_columns c JOIN metric_names n ON n.metric_id = c.metric_id
    WHERE c.layout_id = :layout_id ORDER BY c.place
"""


def _wanted_columns(connection: Connection, layout: int, wanted: Collection[str]) -> list[tuple[int, str, float]]:
    """Return place, metric and factor of the wanted columns."""
    rows = connection.execute(text(_COLUMNS), {"layout_id": layout})
    return [(place, metric, factor) for place, metric, factor in rows if metric in wanted]


def _values(
    connection: Connection, launches: int, first_cell: int, columns: list[tuple[int, str, float]]
) -> Iterator[tuple[str, Floats]]:
    """Yield the values of columns of a block, by the name of the metric."""
    if not columns:
        return
    numbers = ", ".join(str(first_cell + place) for place, *_ in columns)
    select = "SELECT cell_id, {} FROM {} WHERE cell_id IN ({})"
    constants = connection.exec_driver_sql(select.format("value", "wide_constants", numbers)).all()
    texts = connection.exec_driver_sql(select.format("texts", "wide_cells", numbers)).all()
    value_of: dict[int, float | None] = {row[0]: row[1] for row in constants}
    texts_of: dict[int, str] = {row[0]: row[1] for row in texts}
    for place, metric, factor in columns:
        if (value := value_of.get(first_cell + place)) is not None:
            yield metric, np.full(launches, value)
        elif cells := texts_of.get(first_cell + place):
            bare = cells.replace(",", "").split(" ")
            yield metric, np.array([float(cell) if cell else np.nan for cell in bare]) * factor
