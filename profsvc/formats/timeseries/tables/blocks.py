"""Blocks of rows of a meter, parsed column-wise: plain numbers and times, and columns of few distinct texts.

The compiled splitter parses them where it is there, else Arrow.

A block with anything else (a note, a text among numbers, a timestamp of another form) is parsed line by line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from profsvc.formats.columnar.categorical import BlockLines
from profsvc.formats.columnar.csv_columns import Codes, DecimalColumn, decimal_column, is_empty
from profsvc.formats.columnar.line_blocks import Block, IrregularBlockError, Letters, letters_of, require_plain
from profsvc.formats.parsing.timestamps import DAY, FRACTION_DIGITS, SECOND, Int64s
from profsvc.formats.splitter import rows as splitter
from profsvc.formats.splitter.rows import Kind
from profsvc.formats.timeseries.dates import TIME_OF_DAY, split_date
from profsvc.tables.on_demand import pa

MAX_TEXTS, MAX_DATES, MAX_WIDTHS = 512, 256, 16
# Longer numbers are not parsed as counts.
MAX_COUNT_DIGITS = 20


class BlockPlan(NamedTuple):
    """What the columns of a block are: places of the clock, of numbers and of texts, among ``width`` columns.

    ``counts`` where the clock counts, ``decimal`` is the sign that marks decimals in numbers. Where ``undecided``, that
    sign is not known to do so: numbers are then not read, and must be whole or have this pattern. Behind the columns
    stand ``spare`` empty cells; of the columns that are not asked for, those from ``least`` on may be absent.
    """

    sign: str
    width: int
    times: tuple[int, ...]
    counts: bool
    numbers: tuple[int, ...]
    texts: tuple[int, ...]
    decimal: str
    undecided: str | None = None
    spare: int = 0
    least: int | None = None


class DatedRows(NamedTuple):
    """Stamps: from which of ``rows`` on each of ``dates`` stands, and the time of the day of each row in ns.

    ``dates`` is empty where the times stand alone; ``stamps`` are the whole stamps at ``rows``.
    """

    dates: list[str]
    stamps: list[str]
    rows: Int64s
    times: Int64s
    zone: str


class Texts(NamedTuple):
    """The distinct texts of a column in order of appearance, and the text of each row by its place."""

    distinct: list[str]
    codes: Codes
    first: Int64s


class TableBlock(NamedTuple):
    """The rows of a block: their clock, numbers as printed by column, and texts by place.

    Where a cell is empty its number is NaN.
    """

    rows: int
    counts: DecimalColumn | None
    dated: DatedRows | None
    numbers: list[npt.NDArray[np.float64]]
    texts: dict[int, Texts]


def parse(block: Block, plan: BlockPlan) -> TableBlock | None:
    """Parse a block of whole lines below the first row of a table; None if a line is not a plain row."""
    data = bytes(block)
    for way in (_split_part, _arrow_part) if splitter.is_available() else (_arrow_part,):
        try:
            require_plain(plan.sign != plan.decimal and data.endswith(b"\n") and b'"' not in data)
            return way(data, plan, _width(data, plan))
        except (pa.ArrowInvalid, IrregularBlockError):
            continue
    return None


def _width(block: bytes, plan: BlockPlan) -> int:
    """Return the number of columns of the first line."""
    width = block.count(plan.sign.encode(), 0, block.index(b"\n")) + 1
    asked = max(*plan.times, *plan.numbers, *plan.texts, (plan.least or plan.width) - 1) + 1
    require_plain(width == plan.width + plan.spare or asked <= width < plan.width)
    return width


def _split_part(block: bytes, plan: BlockPlan, width: int) -> TableBlock:
    """Parse a block with the compiled splitter."""
    number = splitter.REAL if plan.undecided is None else splitter.INTEGER
    kinds = dict.fromkeys(range(width), Kind(splitter.SKIP))
    # A line that does not begin with a cell of digits may be a note or another header.
    kinds |= {0: Kind(splitter.INTEGER), **dict.fromkeys(plan.numbers, Kind(number))}
    kinds |= dict.fromkeys((*plan.texts, *range(plan.width, width)), Kind(splitter.TEXT))
    kinds |= {plan.times[0]: Kind(splitter.TEXT), plan.times[-1]: Kind(splitter.CLOCK)}
    if plan.counts:
        kinds[plan.times[0]] = Kind(splitter.DECIMAL, least=0.0)
    lines, rows, cells, _ = splitter.split(block, [kinds[place] for place in range(width)], plan.sign, plan.decimal)
    require_plain(0 < rows == lines and (cells[0].missing is None or not cells[0].missing.any()))
    require_plain(all(cells[place].texts == [""] for place in range(plan.width, width)))
    texts = {place: _coded_texts(cells[place].texts, cells[place].values) for place in plan.texts}
    if kinds[0].kind == splitter.TEXT:
        require_plain(all(map(_begins_row, cells[0].texts)))
    numbers = []
    for place in plan.numbers if plan.undecided is None else ():
        own = cells[place]
        numbers.append(np.where(own.missing, np.nan, own.values) if own.missing.any() else own.values)
    if plan.counts:
        require_plain(len(plan.times) == 1)
        clock = cells[plan.times[0]]
        require_plain(not clock.missing.any())
        counts = DecimalColumn(clock.values, clock.extra.astype(np.int64), ~clock.missing)
        return TableBlock(rows, counts, None, numbers, texts)
    return TableBlock(rows, None, _dated_cells([cells[place] for place in plan.times], block, plan), numbers, texts)


def _dated_cells(clock: Sequence[splitter.Cells], block: bytes, plan: BlockPlan) -> DatedRows:
    """Return the stamps of split rows: times with a date in their cell or in another, or times only."""
    if len(clock) > 1:
        require_plain(clock[1].texts == [""])
        dates, codes = clock[0].texts, clock[0].values
    else:
        dates, codes = clock[0].texts, clock[0].extra
        if dates == [""]:
            return DatedRows([], [], np.zeros(0, np.int64), clock[0].values, "")
    parts = [split_date(date) for date in dates]
    require_plain(all(part is not None and part[2] == "" for part in parts))
    rows = np.flatnonzero(np.diff(codes, prepend=-1))
    require_plain(len(rows) <= MAX_DATES)
    lines = BlockLines(block)
    shown = [lines.line(row, len(codes)).split(plan.sign) for row in rows.tolist()]
    stamps = [" ".join(cells[place] for place in plan.times) for cells in shown]
    return DatedRows([dates[code] for code in codes[rows].tolist()], stamps, rows, clock[-1].values, "")


def _arrow_part(block: bytes, plan: BlockPlan, width: int) -> TableBlock:
    """Parse a block with Arrow."""
    require_plain(b"\r" not in block or block.count(b"\r") == block.count(b"\r\n"))
    columns = _split(block, plan, width)
    # A line that does not begin with a cell of digits may be a note or another header.
    require_plain(0 in columns and columns[0].null_count == 0)
    texts = {place: _texts(columns[place]) for place in plan.texts}
    if 0 in texts:
        require_plain(all(_begins_row(text) for text in texts[0].distinct))
    numbers = []
    for place in plan.numbers:
        if plan.undecided is not None:
            require_plain(pa.compute.all(pa.compute.match_substring_regex(columns[place], plan.undecided)).as_py())
            continue
        read = columns[place].to_numpy(zero_copy_only=False)
        require_plain(int(np.isfinite(read).sum()) == len(read) - columns[place].null_count)
        numbers.append(read)
    clock = [columns[place] for place in plan.times]
    rows = len(clock[0])
    if not plan.counts:
        return TableBlock(rows, None, _dated(clock), numbers, texts)
    require_plain(len(clock) == 1)
    return TableBlock(rows, _counts(clock[0]), None, numbers, texts)


def _split(block: bytes, plan: BlockPlan, width: int) -> dict[int, pa.Array]:
    """Return the requested columns, and the first one."""
    number = pa.float64() if plan.undecided is None else pa.string()
    types = {0: pa.int64(), **dict.fromkeys(plan.numbers, number)}
    types |= dict.fromkeys((*plan.times, *plan.texts, *range(plan.width, width)), pa.string())
    batch = pa.csv.read_csv(
        pa.py_buffer(block),
        pa.csv.ReadOptions(
            use_threads=False, block_size=len(block) + 1, column_names=[str(place) for place in range(width)]
        ),
        pa.csv.ParseOptions(delimiter=plan.sign, quote_char=False, ignore_empty_lines=False),
        pa.csv.ConvertOptions(
            column_types={str(place): kind for place, kind in types.items()},
            include_columns=[str(place) for place in types],
            null_values=[""],
            decimal_point=plan.decimal,
            check_utf8=False,
        ),
        pa.system_memory_pool(),
    ).to_batches()[0]
    columns = {place: batch.column(n) for n, place in enumerate(types)}
    require_plain(all(is_empty(columns[place]) for place in range(plan.width, width)))
    return columns


def _begins_row(text: str) -> bool:
    return not text.startswith("#") and any(sign.isdigit() for sign in text)


def _texts(column: pa.StringArray) -> Texts:
    encoded = column.dictionary_encode()
    return _coded_texts(encoded.dictionary.to_pylist(), encoded.indices.to_numpy())


def _coded_texts(found: Sequence[str], codes: Codes) -> Texts:
    require_plain(len(found) <= MAX_TEXTS)
    distinct = [text.strip() for text in found]
    require_plain(len(set(distinct)) == len(distinct))
    first = np.empty(len(distinct), np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    return Texts(distinct, codes, first)


def _counts(column: pa.StringArray) -> DecimalColumn:
    letters, starts, ends = letters_of(column)
    require_plain(bool((ends > starts).all() and (letters[starts] - np.uint8(ord("0")) <= 9).all()))
    require_plain(int((ends - starts).max()) <= MAX_COUNT_DIGITS)
    return decimal_column(column, "," if "," in column[0].as_py() else ".")


def _dated(columns: Sequence[pa.StringArray]) -> DatedRows:
    """Parse times: a column of dates and one of times, one of both, or one of times only."""
    letters, starts, ends = letters_of(columns[0])
    first = columns[0][0].as_py()
    found = split_date(first)
    if found is None:
        require_plain(len(columns) == 1)
        return DatedRows([], [], np.zeros(0, np.int64), *_times(letters, starts, ends, "", is_day=False))
    if len(columns) == 1:
        require_plain(found[2] != "")
        gaps = starts + pa.compute.find_substring(columns[0], found[2][0]).to_numpy()
        require_plain(bool((gaps > starts).all()))
        rows = _changes(letters, starts, gaps)
        times, zone = _times(letters, gaps, ends, "", is_day=True)
        dates = [letters[starts[row] : gaps[row]].tobytes().decode() for row in rows.tolist()]
        stamps = [columns[0][row].as_py() for row in rows.tolist()]
    else:
        rows = _changes(letters, starts, ends)
        times, zone = _times(*letters_of(columns[1]), " ", is_day=True)
        dates = [columns[0][row].as_py() for row in rows.tolist()]
        stamps = [f"{columns[0][row]} {columns[1][row]}" for row in rows.tolist()]
    for date in dates:
        parts = split_date(date)
        require_plain(parts is not None and parts[2] == "")
    return DatedRows(dates, stamps, rows, times, zone)


def _changes(letters: Letters, starts: Int64s, ends: Int64s) -> Int64s:
    """Return the first row, and each row whose text differs from that of the previous row."""
    width = int((ends - starts).max())
    require_plain(0 < width <= FRACTION_DIGITS + 1)
    places = np.arange(width)
    cells = letters[np.minimum(starts[:, None] + places, len(letters) - 1)]
    if int((ends - starts).min()) < width:
        cells[places >= (ends - starts)[:, None]] = 0
    texts = cells.view(f"S{width}")[:, 0]
    rows = np.flatnonzero(np.concatenate(([True], texts[1:] != texts[:-1])))
    require_plain(len(rows) <= MAX_DATES)
    return rows


def _times(letters: Letters, starts: Int64s, ends: Int64s, lead: str, *, is_day: bool) -> tuple[Int64s, str]:
    """Return the times of day in ns, and their common zone; ``lead`` precedes each of them."""
    widths = ends - starts
    distinct = np.unique(widths)
    require_plain(len(distinct) <= MAX_WIDTHS and distinct[0] > 0 and distinct[-1] < MAX_COUNT_DIGITS * 2)
    times, zones = np.empty(len(widths), np.int64), set()
    for width in distinct.tolist():
        rows = np.flatnonzero(widths == width)
        times[rows], zone = _alike(letters[starts[rows][:, None] + np.arange(width)], lead, is_day=is_day)
        zones.add(zone)
    require_plain(len(zones) == 1)
    return times, zones.pop()


def _alike(cells: Letters, lead: str, *, is_day: bool) -> tuple[Int64s, str]:
    """Parse times, one per row of letters in ``cells``, with digits and separators where the first row has them."""
    first = cells[0].tobytes().decode("latin-1")
    match = TIME_OF_DAY.match(lead + first)
    require_plain(match is not None)
    assert match is not None
    digits = np.zeros(cells.shape[1], np.bool_)
    fields: dict[int, Int64s | int] = {}
    for group in range(1, 6):
        start, stop = (place - len(lead) for place in match.span(group))
        if match[group]:
            digits[start:stop] = True
            stop = min(stop, start + FRACTION_DIGITS)
            fields[group] = (cells[:, start:stop] - np.uint8(ord("0"))) @ 10 ** np.arange(stop - start)[::-1]
    require_plain(
        bool((cells[:, digits] - np.uint8(ord("0")) <= 9).all() and (cells[:, ~digits] == cells[0, ~digits]).all())
    )
    hours, minutes, seconds = fields[1], fields[2], fields.get(3, 0)
    if match[6]:
        require_plain(bool(np.all(hours >= 1) and np.all(hours <= 12)))
        hours = hours % 12 + (12 if match[6][0] in "pP" else 0)
    require_plain(
        bool(np.all(minutes < 60) and np.all(seconds < 60) and (not is_day or np.all(hours < DAY // SECOND // 3600)))
    )
    shown = len(match[4] or match[5] or "")
    fraction = fields.get(4, fields.get(5, 0)) * 10 ** max(0, FRACTION_DIGITS - shown)
    return (hours * 3600 + minutes * 60 + seconds) * SECOND + fraction, match[7] or ""
