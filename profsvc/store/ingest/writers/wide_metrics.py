"""Columnar storage of metrics, for pages on which every launch has the same metrics.

These are raw pages, with one column per metric, and details pages, with one row per metric. Up to
`MAX_BLOCK_LAUNCHES` consecutive launches form a block (``wide_blocks``). Its columns are written once for all blocks
and files with the same columns (``wide_layouts``, ``wide_columns``). A column of a block is one row, numbered
``first_cell + place``:

* ``wide_constants``: one text shared by every launch of the block, with its value or the reason why it has none.
* ``wide_cells``: the list of ``wide_lists`` that the column uses. A list joins the texts of the launches by spaces;
  the text is empty where nothing was collected. Equal columns share one list. If all texts have the same number of
  decimals, trailing zeros are removed and ``ending`` records them.

``lines`` in both tables is the distance of a cell from the first line of its launch: null for zero, one number for all
launches, or one number per launch, of equal width and each preceded by a space. `LINE_SQL` reads it.

The texts of a list are plain numbers. `RAW_TEXT_SQL` and `VALUE_SQL` restore the original text and its number. Every
cell is checked, to the last bit, before it is stored this way; any other cell becomes a row of ``metrics``. So plain
SQL reads all of it on both databases, and ``v1_metrics`` combines the three.

Size: the text plus one byte per cell, and about 25 bytes per column of a block. Random numbers with two decimals take
2.4 times the size of their file under gzip -6, raw pages of an H200 2.5 times, and 2.7 times in base units. Names are
stored once per store.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from profsvc.errors import InputError
from profsvc.store.connection.sql import Connection, Engine, text
from profsvc.store.ingest.inserts.dictionaries import Names, writing_names
from profsvc.store.ingest.inserts.row_insert import insert_rows
from profsvc.store.ingest.staging import Sink
from profsvc.store.schema.column_types import IDS_PER_UPLOAD
from profsvc.store.schema.contents.wide_metrics import MAX_BLOCK_LAUNCHES, MAX_DIGITS
from profsvc.tables import Wide, WideColumns, unpivot
from profsvc.tables.on_demand import pd

LAUNCHES_PER_STRIPPED_ZERO = 4
"""Zeros are left out where one cell of so many ends in one."""

# Whole numbers up to 2^53 and powers of ten up to 10^22 are exact, and so their quotient is the nearest double. What is
# longer is tried; 18 digits are a whole number of 64 bits.
MAX_EXACT_CHARS = 15
_PLAIN = np.zeros(256, np.bool_)
_PLAIN[[*b"0123456789.,-\0"]] = True
_POWERS = 10.0 ** np.arange(MAX_DIGITS + 1)

Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class WideCells:
    """Writes the wide metrics of one upload, block by block."""

    def __init__(
        self,
        store: Connection | Engine,
        sink: Sink,
        first: int,
        names: Mapping[str, Names],
        write_long: Callable[[pd.DataFrame], None],
    ) -> None:
        """Begin an upload whose ids follow ``first``; ``write_long`` writes a table ``metrics``."""
        self.store, self.sink, self.first, self.names, self.write_long = store, sink, first, names, write_long
        self.layouts = Names(store, "wide_layouts")
        self.columns: WideColumns | None = None
        self.layout = 0
        self.next_cell = self.next_list = first
        self.waiting: list[Wide] = []

    def write(self, wide: Wide) -> None:
        """Take cells; they are written when a block is full."""
        if wide.columns is not self.columns or (self.waiting and _next_launch(self.waiting[-1]) != wide.first_launch):
            self.finish()
        if wide.columns is not self.columns:
            self.columns, self.layout = wide.columns, self._layout(wide.columns)
        begin, missing = 0, MAX_BLOCK_LAUNCHES - sum(len(part.lines) for part in self.waiting)
        while begin < len(wide.lines):
            self.waiting.append(_slice(wide, begin, begin + missing))
            begin, filled, missing = begin + missing, len(wide.lines) - begin >= missing, MAX_BLOCK_LAUNCHES
            if filled:
                self.finish()

    def finish(self) -> None:
        """Write what waits."""
        parts, self.waiting = self.waiting, []
        if parts:
            self._block(_joined(parts))

    def _layout(self, columns: WideColumns) -> int:
        """Return the number of the layout of these columns; a new one is written."""
        sections = columns.sections or ("",) * len(columns.metrics)
        metrics = self._numbers(
            "metric_names", list(zip(columns.metrics, sections, ("",) * len(sections), strict=True))
        )
        units = self._numbers("unit_names", list(zip(columns.units, columns.si_units, strict=True)))
        rows = list(zip(metrics, range(len(metrics)), units, columns.factors.tolist(), strict=True))
        layout = self.layouts[hashlib.sha256(json.dumps(rows).encode()).hexdigest(),]
        names = ("layout_id", "metric_id", "place", "unit_id", "factor")
        with writing_names(self.store if self.store.dialect.name == "sqlite" else self.store.engine) as connection:
            insert_rows(connection, "wide_columns", names, ((layout, *row) for row in rows), known=True)
        return layout

    def _numbers(self, table: str, names: list[tuple[str, ...]]) -> list[int]:
        distinct = list(dict.fromkeys(names))
        number = dict(zip(distinct, self.names[table].numbers(distinct), strict=True))
        return [number[name] for name in names]

    def _block(self, block: Wide) -> None:
        launches, width = block.values.shape
        if self.next_cell + width >= self.first + IDS_PER_UPLOAD:
            raise InputError(
                f"a file may have {IDS_PER_UPLOAD - 1:,} columns of blocks of {MAX_BLOCK_LAUNCHES} launches; split it"
            )
        texts = _column_by_column(block)
        odd = block.collected & ~_readable(texts, block)
        constants, cells, lines = [], [], _lines(block)
        lists: dict[tuple[str, str], int] = {}
        for place, together in enumerate(texts.columns(launches)):
            one = together[: together.find("\0")] if launches > 1 else together
            if together == "\0".join([one] * launches):
                odd[:, place] = False
                if one:
                    value = float(block.values[0, place])
                    known = value if value == value else None
                    constants.append((self.next_cell + place, one, known, block.reasons.get((0, place)), lines[place]))
                continue
            if odd[:, place].any():
                split = zip(together.split("\0"), odd[:, place].tolist(), strict=True)
                together = "\0".join("" if is_odd else cell for cell, is_odd in split)
            number = lists.setdefault(_without_zeros(together, launches), self.next_list + len(lists))
            cells.append((self.next_cell + place, number, lines[place]))
        if odd.any():
            self.write_long(unpivot(block, odd))
        of_block = (self.first + block.first_launch + 1, launches, self.layout, self.next_cell)
        for table, columns, rows in (
            ("wide_blocks", ("first_launch", "launches", "layout_id", "first_cell"), [of_block]),
            ("wide_constants", ("cell_id", "raw_text", "value", "reason", "lines"), constants),
            ("wide_cells", ("cell_id", "list_id", "lines"), cells),
            ("wide_lists", ("list_id", "ending", "texts"), [(number, *kept) for kept, number in lists.items()]),
        ):
            if rows:
                self.sink.write(table, dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True)))
        self.next_cell += width
        self.next_list += len(lists)


def _next_launch(wide: Wide) -> int:
    return wide.first_launch + len(wide.lines)


def _slice(wide: Wide, begin: int, end: int) -> Wide:
    """Return the launches ``begin`` to ``end`` of wide metrics."""
    reasons = {(row - begin, place): why for (row, place), why in wide.reasons.items() if begin <= row < end}
    return replace(
        wide,
        first_launch=wide.first_launch + begin,
        lines=wide.lines[begin:end],
        bounds=wide.bounds[begin:end],
        values=wide.values[begin:end],
        reasons=reasons,
        offsets=None if wide.offsets is None else wide.offsets[begin:end],
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
    of_lines = [part.offsets for part in parts if part.offsets is not None]
    return Wide(
        *(parts[0].columns, parts[0].first_launch, lines, np.concatenate(letters), np.concatenate(bounds)),
        *(values, reasons, np.concatenate(of_lines) if of_lines else None),
    )


def _lines(block: Wide) -> list[str | None]:
    """Return of each column how many lines below the first of their launches its cells stand."""
    if block.offsets is None:
        return [None] * block.values.shape[1]
    known = block.collected
    least = np.where(known, block.offsets, np.iinfo(np.int32).max).min(axis=0)
    most = np.where(known, block.offsets, 0).max(axis=0)
    lines: list[str | None] = list(map(str, most.tolist()))
    for place in np.flatnonzero(least < most).tolist():
        signs = len(str(most[place])) + 1
        lines[place] = "".join(f"{offset:{signs}}" for offset in np.where(known, block.offsets, 0)[:, place].tolist())
    return lines


class _Cells(NamedTuple):
    """All cells of a block, those of a column behind each other, each with a NUL behind it, which no cell holds."""

    letters: npt.NDArray[np.uint8]
    sizes: npt.NDArray[np.int32]
    ends: npt.NDArray[np.int64]  # behind the NUL

    def text(self, cell: int) -> str:
        """Return a cell as it came."""
        end = int(self.ends[cell]) - 1
        return self.letters[end - int(self.sizes[cell]) : end].tobytes().decode()

    def columns(self, launches: int) -> Iterator[str]:
        """Yield the texts of each column with a NUL between them."""
        data, begin = self.letters.tobytes(), 0
        for end in self.ends[launches - 1 :: launches].tolist():
            yield data[begin : end - 1].decode()
            begin = end


def _column_by_column(block: Wide) -> _Cells:
    begins, behind = (block.bounds[:, :, side].T.reshape(-1) for side in (0, 1))
    sizes = behind - begins
    ends = np.cumsum(sizes + 1, dtype=np.int64)
    places = np.arange(ends[-1] if len(ends) else 0) + np.repeat(begins - (ends - sizes - 1), sizes + 1)
    letters = np.append(block.letters, np.uint8(0))[np.minimum(places, len(block.letters))]
    letters[ends - 1] = 0
    return _Cells(letters, sizes, ends)


def _without_zeros(together: str, launches: int) -> tuple[str, str]:
    """Return what the zeros left out are, and the texts of a column with a space between."""
    plain = together.replace("\0", " ")
    if together.count("0\0") < launches // LAUNCHES_PER_STRIPPED_ZERO:
        return "", plain
    cells = together.split("\0")
    behind = {len(cell) - cell.find(".") if "." in cell else 0 for cell in cells if cell}
    stripped = [cell.rstrip("0").rstrip(".") for cell in cells]
    if len(behind) != 1 or behind == {0} or any(not kept and cell for kept, cell in zip(stripped, cells, strict=True)):
        return "", plain
    return "." + "0" * (behind.pop() - 1), " ".join(stripped)


def _readable(cells: _Cells, block: Wide) -> Flags:
    """Tell which cells `VALUE` reads as the reader did."""
    rows, width = block.values.shape
    values, factors = block.values.T.reshape(-1), np.repeat(block.columns.factors, rows)
    numbers, plain = _plain_numbers(cells)
    plain &= np.isfinite(values)
    readable = plain & (numbers * factors == values)
    for cell in np.flatnonzero(plain & (cells.sizes > MAX_EXACT_CHARS)).tolist():
        text = cells.text(cell).replace(",", "")
        kept = {text, text.rstrip("0") if "." in text else text}
        readable[cell] = all(_computed(one) * factors[cell] == values[cell] for one in kept)
    by_launch: Flags = readable.reshape(width, rows).T
    return by_launch


def _plain_numbers(cells: _Cells) -> tuple[Floats, Flags]:
    """Return the numbers of cells of at most `MAX_EXACT_CHARS`, and which cells hold nothing but a number."""
    letters, sizes, ends = cells
    count, last = len(sizes), ends - 2
    owner = np.repeat(np.arange(count), sizes + 1)

    def places_of(sign: str) -> tuple[Ints, Ints]:
        places = np.flatnonzero(letters == ord(sign))
        return places, owner[places]

    digits = letters - np.uint8(ord("0"))  # which wraps what is below
    places = np.flatnonzero(digits < 10)
    own = owner[places]
    known = np.bincount(own, minlength=count)
    behind = np.cumsum(known)[own] - np.arange(1, len(own) + 1)
    numbers = np.bincount(own, digits[places] * _POWERS[np.minimum(behind, MAX_DIGITS)], count)
    plain = known > 0
    plain[owner[~_PLAIN[letters]]] = False
    places, own = places_of(".")
    plain &= np.bincount(own, minlength=count) < 2
    decimals = np.zeros(count, np.int64)
    decimals[own] = last[own] - places
    places, own = places_of(",")
    plain[own[places > last[own] - decimals[own]]] = False
    places, own = places_of("-")
    plain[own[places > last[own] + 1 - sizes[own]]] = False
    numbers[own] *= -1
    return numbers / _POWERS[np.minimum(decimals, MAX_DIGITS)], plain


def _computed(text: str) -> float:
    """Return the number that `VALUE` makes of a text without signs of thousands; NaN if it cannot."""
    whole, _, behind = text.partition(".")
    return float(int(whole + behind)) / 10.0 ** len(behind) if len(whole + behind) <= MAX_DIGITS else np.nan


_MISSING_LAUNCHES = """
    SELECT min(b.first_launch) FROM wide_blocks b WHERE b.first_launch > :first AND b.first_launch < :end
    AND b.launches > (
        SELECT count(*) FROM launches l
        WHERE l.launch_id >= b.first_launch AND l.launch_id < b.first_launch + b.launches)
"""


def first_without_launch(connection: Connection, bounds: Mapping[str, int]) -> int | None:
    """Return the first launch of a block between ``first`` and ``end`` that lacks a launch; None if none does."""
    found = connection.execute(text(_MISSING_LAUNCHES), bounds).scalar()
    return None if found is None else int(found)
