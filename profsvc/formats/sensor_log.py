"""A log of sensors as rows under a header: the steps from split rows to samples, column by column.

A reader sorts the lines of its format and says what each column of the header is (`Column`); `Log` reads the stamps,
tells the GPUs apart, turns cells into values, rejects what cannot be, and keeps the account of the lines.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from profsvc.errors import BrokenInputError, unfit
from profsvc.formats.channels import Readings, Sensors
from profsvc.formats.clock import LOCAL, Clock, Flags, Int64s
from profsvc.formats.coded import Coded
from profsvc.formats.ncu import Ledger
from profsvc.formats.ncu_lines import REJECT, TEXT_LIMIT, Record
from profsvc.formats.sensor_blocks import Part
from profsvc.formats.sensors import SPARE, TEXT, UNKNOWN, Cells, Column, Objects, number, told_apart
from profsvc.formats.spare_cells import UNNAMED, width_of
from profsvc.tables import Batch, frame

CHUNK_ROWS = 1 << 15
CHUNK_CELLS = 1 << 19
MOST_COLUMNS = 2_000
NO_GPU = -1
UNTIMED = "the log has no time, so no energy and no phases come of it; record it with one"
OTHERS = "; of a log that another program wrote, say what the columns are: --column 'NAME=time:mdy' (dmy, ymd, s, ms)"

Rows = list[Sequence[str]]


@dataclass(frozen=True)
class _Group:
    """The rows of a chunk that are of one GPU; without ``rows`` it is all of them, and nothing is copied."""

    key: object
    rows: Int64s | None
    lines: Int64s
    ns: Int64s | None

    @property
    def first(self) -> int:
        """The first of its rows."""
        return 0 if self.rows is None else int(self.rows[0])

    @property
    def last(self) -> int:
        """The last of its rows."""
        return len(self.lines) - 1 if self.rows is None else int(self.rows[-1])

    def of(self, values: Any) -> Any:
        """Return its part of a column of the chunk."""
        return values if self.rows is None or values is None else values[self.rows]


@dataclass
class _Chunk:
    """Good rows, transposed: their cells column by column, lines, stamps, and of which GPU each row is.

    ``owners`` are places in ``keys``, which come in the order of the rows; without them all rows are of one GPU.
    """

    columns: Sequence[Coded]
    lines: Int64s
    ns: Int64s | None
    keys: Sequence[object]
    owners: Int64s | None = None

    @cached_property
    def groups(self) -> list[_Group]:
        """The rows of each GPU."""
        if self.owners is None:
            return [_Group(self.keys[0], None, self.lines, self.ns)]
        found = [(key, np.flatnonzero(self.owners == place)) for place, key in enumerate(self.keys)]
        return [_Group(key, rows, self.lines[rows], None if self.ns is None else self.ns[rows]) for key, rows in found]

    def part(self, rows: Int64s) -> "_Chunk":
        """Return the rows at these places."""
        columns = [cells.part(rows) for cells in self.columns]
        ns = None if self.ns is None else self.ns[rows]
        if self.owners is None:
            return _Chunk(columns, self.lines[rows], ns, self.keys)
        return _Chunk(columns, self.lines[rows], ns, *_owned(self.keys, self.owners[rows]))


def _owned(keys: Sequence[object], codes: Int64s) -> tuple[Sequence[object], Int64s | None]:
    """Return the distinct keys of rows in their order, and which of them each row has, given one by its code."""
    if (codes == codes[0]).all():
        return [keys[int(codes[0])]], None
    numbers = {key: place for place, key in reversed(list(enumerate(keys)))}
    owners, kept = pd.factorize(np.array([numbers[key] for key in keys])[codes])
    return [keys[int(place)] for place in kept], None if len(kept) == 1 else owners


class Log:
    """Takes the rows of one file and hands on its batches."""

    def __init__(self, tool: str, clock: Clock | None = None) -> None:
        """Begin a file that ``tool`` wrote."""
        self.tool = tool
        self.clock = clock or Clock()
        self.ledger = Ledger()
        self.sensors = Sensors()
        self.facts: dict[str, str] = {}
        self.columns: list[Column] = []
        self._named: list[Column] = []
        self.field_of: Callable[[str], Column] = Column
        self.line = self._width = 0
        self.rows = 0
        self.duplicates = 0
        self.rejected = 0
        self.first_reason = ""
        self.foreign = False
        self._cells = Cells(tool)
        self._most = CHUNK_ROWS
        self._rows: Rows = []
        self._lines: list[int] = []
        self._words: dict[tuple[str, object], str] = {}
        self._metrics: list[dict[str, object]] = []
        self._last: dict[object, Sequence[str]] = {}
        self._above = ""

    @property
    def full(self) -> bool:
        """Whether enough rows wait to be worth a batch."""
        return len(self._rows) >= self._most or self.ledger.full

    def begin(self, columns: Sequence[Column], line: int) -> None:
        """Begin the rows under a header that stands at ``line``."""
        self.flush()
        if len(columns) > MOST_COLUMNS:
            raise BrokenInputError(
                f"line {line} names {len(columns)} columns, more than {MOST_COLUMNS}, which no log of {self.tool} has; "
                "check the file"
            )
        self._width = width_of([column.name for column in columns])
        self.columns = [*columns[: self._width], *[Column("", SPARE)] * (len(columns) - self._width)]
        self.line, self._above = line, ""
        self._named = told_apart(self.columns)
        self._most = min(CHUNK_ROWS, CHUNK_CELLS // max(8, len(columns)))

    def skip(self, lines: int = 1) -> None:
        """Count lines that are no readings."""
        self.ledger.skipped += lines

    def reject(self, line: int, text: str, reason: str) -> None:
        """Reject a line."""
        self.ledger.take(Record(REJECT, line, 1, text[:TEXT_LIMIT].rstrip("\r\n"), [], reason))
        self.rejected += 1
        self.first_reason = self.first_reason or f"line {line}: {reason}"

    def row(self, line: int, cells: Sequence[str], text: str) -> None:
        """Take a row; reject it if it has not a cell a column, or the file ends inside it."""
        if len(cells) != len(self.columns):
            self.reject(line, text, unfit(len(cells), len(self.columns)))
        elif any(cell.strip() for cell in cells[self._width :]):
            self.reject(line, text, UNNAMED)
        elif not text.endswith("\n") and not self._is_whole(cells[self._width - 1]):
            self.reject(line, text, "the file ends inside this line: its last cell may be cut")
        else:
            self._rows.append(cells)
            self._lines.append(line)
            self._above = cells[self._width - 1]

    def _is_whole(self, cell: str) -> bool:
        """Tell whether the last cell of a line without an end is there, and has the unit of the one above it."""
        last, above = (text.strip().lstrip("0123456789.+-") for text in (cell, self._above))
        return bool(cell.strip()) and (last == above or not self._above)

    def waiting(self) -> tuple[Rows, list[int]]:
        """Take out the rows that wait, and their lines."""
        found = self._rows, self._lines
        self._rows, self._lines = [], []
        return found

    def restore(self, rows: Rows, lines: list[int]) -> None:
        """Put rows back that wait."""
        self._rows, self._lines = rows, lines

    def flush(self, gpus: Sequence[int] | None = None) -> None:
        """Turn the rows that wait into samples; ``gpus`` tells of which GPU each is where no column does."""
        rows, lines = self._rows, np.array(self._lines, np.int64)
        self._rows, self._lines = [], []
        if not rows:
            return
        keep, ns, keys = self._sorted(rows, lines, gpus)
        if not keep.all():
            rows = [row for row, kept in zip(rows, keep.tolist(), strict=True) if kept]
            lines, keys = lines[keep], keys[keep]
            ns = None if ns is None else ns[keep]
        if not rows:
            return
        codes, distinct = pd.factorize(keys)
        self._chunk(
            _Chunk([Coded(cells) for cells in zip(*rows, strict=True)], lines, ns, *_owned(distinct.tolist(), codes))
        )

    def take(self, part: Part, line: int) -> bool:
        """Take a block of rows, of which the first stands at ``line``; take nothing if any needs a closer look."""
        if self.clock.kind not in (None, LOCAL) or self.full:
            return False
        self.flush()
        owned = self._part_keys(part)
        if owned is None:
            return False
        chunk = _Chunk(part.columns, np.arange(line, line + part.rows), part.ns, *owned)
        if self._repeats(part.ns, chunk):
            return False
        self.clock.kind = LOCAL
        self._above = part.columns[-1][part.rows - 1]
        self._chunk(chunk)
        return True

    def _part_keys(self, part: Part) -> tuple[Sequence[object], Int64s | None] | None:
        """Return what tells the GPUs of a block apart, and of which each row is; None if a row does not say it."""
        for role in ("gpu", "device"):
            place = next((place for place, column in enumerate(self.columns) if column.role == role), None)
            if place is not None:
                cells = part.columns[place]
                read = [gpu_number(text) if role == "gpu" else text.strip() for text in cells.texts]
                return None if None in read else _owned(read, cells.codes)
        return [NO_GPU], None

    def _repeats(self, ns: Int64s, chunk: _Chunk) -> bool:
        """Tell whether two rows of a GPU may be one that was written twice, and keep the last row of each."""
        for group in chunk.groups:
            stamps = group.of(ns)
            again = stamps[1:] == stamps[:-1]
            for cells in chunk.columns if again.any() else ():
                values = group.of(cells.codes if cells.numbers is None else cells.numbers)
                again &= values[1:] == values[:-1]
            if again.any() or self._last.get(group.key) == [cells[group.first] for cells in chunk.columns]:
                return True
        for group in chunk.groups:
            self._last[group.key] = [cells[group.last] for cells in chunk.columns]
        return False

    def _chunk(self, every: _Chunk) -> None:
        rows = len(every.lines)
        self.ledger.stored += rows
        self.rows += rows
        if every.ns is not None and self.sensors.first_ns is None:
            self.sensors.first_ns = int(every.ns[0])
        for place, column in enumerate(self._named):
            if column.role == "long":
                self._take_long(every, place)
            elif column.role not in ("time", "elapsed", "day", "gpu", "field", SPARE):
                self._take(column, every, place)

    def _take_long(self, chunk: _Chunk, place: int) -> None:
        """Take a column of values of which another column names the fields."""
        fields = chunk.columns[[column.role for column in self.columns].index("field")]
        codes, names = pd.factorize(np.array([field.strip() for field in fields.texts], dtype=object)[fields.codes])
        for code, name in enumerate(names.tolist()):
            self._take(self.field_of(name), chunk.part(np.flatnonzero(codes == code)), place)

    def _take(self, column: Column, chunk: _Chunk, place: int) -> None:
        """Take the cells of a column, GPU by GPU."""
        values, reasons = self._cells.read(chunk.columns[place], column, chunk.lines)
        for group in chunk.groups:
            readings = Readings(group.ns, group.of(values), group.of(reasons), group.lines)
            self._store(column, group, readings, chunk, place)

    def _sorted(self, rows: Rows, lines: Int64s, gpus: Sequence[int] | None) -> tuple[Flags, Int64s | None, Objects]:
        """Return which rows hold a reading of their own, their stamps, and what tells their GPUs apart."""
        keep, ns = np.ones(len(rows), np.bool_), None
        for place, column in enumerate(self.columns):
            if column.role == "time":
                ns, good = self.clock.read([row[place].strip() for row in rows])
                self._reject_all(rows, lines, keep & ~good, place, "which is no time, or one of another kind")
                keep &= good
            elif column.role == "elapsed":
                good = np.array([row[place].isdigit() and len(row[place]) < 19 for row in rows], np.bool_)
                self._reject_all(rows, lines, keep & ~good, place, "which is no time")
                keep &= good
                ns = np.array([int(row[place]) if ok else 0 for row, ok in zip(rows, good, strict=True)], np.int64)
        keys = self._keys(rows, gpus)
        for place, column in enumerate(self.columns):
            if column.role == "gpu":
                known = {cell for cell in {row[place] for row in rows} if gpu_number(cell) is not None}
                good = np.array([row[place] in known for row in rows], np.bool_)
                self._reject_all(rows, lines, keep & ~good, place, "which is no index of a GPU")
                keep &= good
        if ns is not None and len(rows):
            repeated = self._repeated(rows, keys, keep)
            self.duplicates += int(repeated.sum())
            self.ledger.skipped += int(repeated.sum())
            keep &= ~repeated
        return keep, ns, keys

    def _keys(self, rows: Rows, gpus: Sequence[int] | None) -> Objects:
        keys = np.full(len(rows), NO_GPU, dtype=object)
        if gpus is not None:
            keys[:] = list(gpus)
            return keys
        for role in ("gpu", "device"):
            place = next((place for place, column in enumerate(self.columns) if column.role == role), None)
            if place is not None:
                distinct = {row[place] for row in rows}
                read = {cell: gpu_number(cell) if role == "gpu" else cell.strip() for cell in distinct}
                keys[:] = [read[row[place]] for row in rows]
                break
        return keys

    def _repeated(self, rows: Rows, keys: Objects, keep: Flags) -> Flags:
        """Tell which rows were written twice: as the row before of the same GPU, stamp included."""
        repeated = np.zeros(len(rows), np.bool_)
        last = self._last
        for place, (row, key) in enumerate(zip(rows, keys.tolist(), strict=True)):
            if last.get(key) == row:
                repeated[place] = keep[place]
            last[key] = row
        return repeated

    def _reject_all(self, rows: Rows, lines: Int64s, bad: Flags, place: int, why: str) -> None:
        self.foreign |= bool(bad.any()) and self.columns[place].role == "time"
        for row in np.flatnonzero(bad).tolist():
            cell = rows[row][place].strip()[:60]
            self.reject(int(lines[row]), ", ".join(rows[row]), f"{self.columns[place].name} is {cell!r}, {why}")

    def _store(self, column: Column, group: _Group, part: Readings, chunk: _Chunk, place: int) -> None:
        if column.role != "value" and part.reasons is not None:
            # A column of words alone has no samples in which a missing one would be seen.
            wordy = part.reasons == TEXT if column.role == "open" else pd.notna(part.reasons)
            codes = group.of(chunk.columns[place].codes)[wordy]
            self._note_words(column, group.key, chunk.columns[place].texts, codes, part.part(wordy))
            part = part.part(~wordy)
        if column.role in ("value", "open") and len(part.values):
            gpu = group.key if isinstance(group.key, int) and group.key != NO_GPU else None
            device = self._device(chunk, group.first)
            self.sensors.add(self.sensors.channel(column, gpu, device, self.line, group.key), part)

    def _device(self, chunk: _Chunk, row: int) -> str | None:
        for role in ("name", "device"):
            for column, cells in zip(self.columns, chunk.columns, strict=True):
                if column.role == role and number(cells[row], column)[1] == TEXT:
                    return cells[row].strip()
        return None

    def _note_words(self, column: Column, key: object, texts: Sequence[str], codes: Int64s, part: Readings) -> None:
        """Keep words as metrics, where they change."""
        place = (column.name, key)
        if part.reasons is None:
            return
        for at in np.flatnonzero(np.diff(codes, prepend=-1)).tolist():
            word = texts[codes[at]].strip()
            if self._words.get(place) != word:
                self._words[place] = word
                section = None if key == NO_GPU else f"GPU {key}"
                row: dict[str, object] = {"section": section, "metric": column.name, "raw_text": word}
                self._metrics.append({**row, "reason": part.reasons[at], "line": int(part.lines[at])})

    def batch(self, flush: bool = True) -> Batch:
        """Hand on what was gathered, the rows that wait too unless it is said otherwise."""
        if flush:
            self.flush()
        tables = self.sensors.take(self.clock.kind)
        if self._metrics:
            rows, self._metrics = self._metrics, []
            tables["metrics"] = frame("metrics", {name: [row[name] for row in rows] for name in rows[0]})
        return self.ledger.batch(tables)

    def last(self, encoding: str, facts: Mapping[str, str], message: str = "") -> Iterator[Batch]:
        """Hand on the rest, and the table of sensors; refuse a file of which not a single row could be read."""
        yield self.batch()
        found = {"tool": self.tool, **facts, "encoding": encoding, "readings": str(self.rows), **self.facts}
        found |= {"clock": self.clock.kind} if self.clock.kind else {}
        if gpus := {key for *_, key in self.sensors.channels if key != NO_GPU}:
            found["gpus"] = str(len(gpus))
        if self.duplicates:
            found["duplicate_rows"] = str(self.duplicates)
        if not self.sensors.readings and self.rejected:
            raise BrokenInputError(
                f"no row of the log can be read; {self.first_reason}; record it again with LC_ALL=C, or take out what "
                f"the tool did not write{OTHERS if self.foreign else ''}"
            )
        if not self.sensors.readings:
            message = message or "no readings: the file holds no row below its header; record the log again"
        if not self.clock.kind and self.sensors.readings and "elapsed" not in [c.role for c in self.columns]:
            message = f"{message}; {UNTIMED}" if message else UNTIMED
        yield self.ledger.batch(self.sensors.table(), found, message)


def gpu_number(cell: str) -> int | None:
    """Return the index of a GPU: 3, GPU 3, gpu3 and card3 are 3.

    >>> gpu_number(" GPU 3"), gpu_number("card0"), gpu_number("x")
    (3, 0, None)
    """
    text = cell.strip().lower().removeprefix("gpu").removeprefix("card").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 5 else None


def unknown(name: str, why: str) -> Column:
    """Return a column whose meaning nobody knows: its numbers are kept as they came."""
    return Column(name, "value", UNKNOWN, UNKNOWN, note=why)
