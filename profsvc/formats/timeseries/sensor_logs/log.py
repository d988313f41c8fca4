"""Sensor logs with rows under a header: from split rows to samples, column by column.

A reader sorts the lines of its format and describes each column of the header (`Column`). `Log` parses the timestamps,
distinguishes the GPUs, converts cells to values, rejects impossible values, and counts the lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from profsvc.errors import BrokenInputError, wrong_cell_count
from profsvc.formats.columnar.categorical import CategoryColumn
from profsvc.formats.parsing.ledger import Ledger, with_table
from profsvc.formats.parsing.line_reader import LineReader
from profsvc.formats.parsing.timestamps import LOCAL, Flags, Int64s, TimestampParser
from profsvc.formats.parsing.trailing_cells import UNNAMED_VALUE, named_width
from profsvc.formats.timeseries.channels import Readings, Sensors
from profsvc.formats.timeseries.columns import (
    TEXT,
    TRAILING,
    CellParser,
    Column,
    Objects,
    gpu_number,
    parse_number,
    with_unique_names,
)
from profsvc.formats.timeseries.sensor_logs.blocks import LogBlock
from profsvc.formats.timeseries.sensor_logs.row_chunks import Chunk, GpuRows, first_seen, owners_of
from profsvc.tables import Batch, ColumnTable

CHUNK_ROWS = 1 << 15
CHUNK_CELLS = 1 << 19
MAX_COLUMNS = 2_000
NO_GPU = -1
NO_TIME = "the log has no time, so energies and phases cannot be computed; record it with a time"
COLUMN_HINT = "; if another program wrote the log, name its time column: --column 'NAME=time:mdy' (or dmy, ymd, s, ms)"

Rows = list[Sequence[str]]


class Log:
    """Converts the rows of one file to batches."""

    def __init__(self, tool: str, clock: TimestampParser | None = None) -> None:
        """Begin a file that ``tool`` wrote; ``clock`` parses its timestamps."""
        self.tool = tool
        self.clock = clock or TimestampParser()
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
        self._first_rejected = 0
        self.has_bad_times = False
        self._cells = CellParser(tool)
        self._max_rows = CHUNK_ROWS
        self._rows: Rows = []
        self._lines: list[int] = []
        self._last_texts: dict[tuple[str, object], str] = {}
        self._boards: dict[tuple[object, str], str] = {}
        self._metrics: list[dict[str, object]] = []
        self._last: dict[object, Sequence[str]] = {}
        self._above = ""

    @property
    def full(self) -> bool:
        """Whether enough rows wait for a batch."""
        return len(self._rows) >= self._max_rows or self.ledger.full

    def begin(self, columns: Sequence[Column], line: int) -> None:
        """Begin the rows under the header on ``line``."""
        self.flush()
        if len(columns) > MAX_COLUMNS:
            raise BrokenInputError(
                f"line {line} names {len(columns)} columns, but a log of {self.tool} has at most {MAX_COLUMNS}; "
                "check the file"
            )
        self._width = named_width([column.name for column in columns])
        self.columns = [*columns[: self._width], *[Column("", TRAILING)] * (len(columns) - self._width)]
        self.line, self._above = line, ""
        self._named = with_unique_names(self.columns)
        self._max_rows = min(CHUNK_ROWS, CHUNK_CELLS // max(8, len(columns)))

    def skip(self, lines: int = 1) -> None:
        """Count lines without readings."""
        self.ledger.skipped += lines

    def reject(self, line: int, text: str, reason: str) -> None:
        """Reject a line."""
        self.ledger.reject(line, text, reason)
        self.rejected += 1
        if not self._first_rejected or line < self._first_rejected:  # times and cells are checked later than widths
            self._first_rejected, self.first_reason = line, f"line {line}: {reason}"

    def row(self, line: int, cells: Sequence[str], text: str) -> None:
        """Add a row; reject it if it does not have one cell per column, or if the file ends inside it."""
        if len(cells) != len(self.columns):
            self.reject(line, text, wrong_cell_count(len(cells), len(self.columns)))
        elif any(cell.strip() for cell in cells[self._width :]):
            self.reject(line, text, UNNAMED_VALUE)
        elif not text.endswith("\n") and not self._is_complete(cells[self._width - 1]):
            self.reject(line, text, "the file ends inside this line, so its last cell may be cut")
        else:
            self._rows.append(cells)
            self._lines.append(line)
            self._above = cells[self._width - 1]

    def _is_complete(self, cell: str) -> bool:
        """Tell whether the last cell of an unterminated line has a value with the unit of the cell above it."""
        last, above = (text.strip().lstrip("0123456789.+-") for text in (cell, self._above))
        return bool(cell.strip()) and (last == above or not self._above)

    def take_waiting(self) -> tuple[Rows, list[int]]:
        """Remove and return the waiting rows and their line numbers."""
        found = self._rows, self._lines
        self._rows, self._lines = [], []
        return found

    def restore(self, rows: Rows, lines: list[int]) -> None:
        """Let these rows wait."""
        self._rows, self._lines = rows, lines

    def flush(self, gpus: Sequence[int] | None = None) -> None:
        """Convert the waiting rows to samples; ``gpus`` are the GPUs of the rows if no column names them."""
        rows, lines = self._rows, np.array(self._lines, np.int64)
        self._rows, self._lines = [], []
        if not rows:
            return
        keep, ns, keys = self._checked_rows(rows, lines, gpus)
        if not keep.all():
            rows = [row for row, kept in zip(rows, keep.tolist(), strict=True) if kept]
            lines, keys = lines[keep], keys[keep]
            ns = None if ns is None else ns[keep]
        if not rows:
            return
        columns = [CategoryColumn(cells) for cells in zip(*rows, strict=True)]
        self._store_chunk(Chunk(columns, lines, ns, *owners_of(keys.tolist(), np.arange(len(keys)))))

    def add_block(self, part: LogBlock, line: int) -> bool:
        """Store a block of rows that begins on ``line``; return False if the rows must be read one by one."""
        if self.full:
            return False
        self.flush()
        if self.clock.kind not in (None, LOCAL):  # the rows that waited decide it too
            return False
        owned = self._gpus_of_block(part)
        if owned is None:
            return False
        chunk = Chunk(part.columns, np.arange(line, line + part.rows), part.ns, *owned)
        if self._has_repeats(part.ns, chunk):
            return False
        self.clock.kind = LOCAL
        self._above = part.columns[self._width - 1][part.rows - 1]
        self._store_chunk(chunk)
        return True

    def _gpus_of_block(self, part: LogBlock) -> tuple[Sequence[object], Int64s | None] | None:
        """Return the keys of the GPUs in a block, and the place of that of each row; None if a row has no key."""
        for role in ("gpu", "device"):
            place = next((place for place, column in enumerate(self.columns) if column.role == role), None)
            if place is not None:
                cells = part.columns[place]
                read = [gpu_number(text) if role == "gpu" else text.strip() for text in cells.texts]
                return None if None in read else owners_of(read, cells.codes)
        return [NO_GPU], None

    def _has_repeats(self, ns: Int64s, chunk: Chunk) -> bool:
        """Tell whether a row of a GPU may be written twice; if not, remember the last row of each GPU."""
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

    def _require_one_board_per_index(self, chunk: Chunk) -> None:
        """Raise `BrokenInputError` if rows of one index are of several boards or MIG instances."""
        for column, cells in zip(self.columns, chunk.columns, strict=True):
            for group in chunk.groups if column.role == "device" else ():
                for code in np.flatnonzero(np.bincount(group.of(cells.codes))).tolist():
                    if parse_number(cells.texts[code], column)[1] != TEXT:
                        continue
                    board = cells.texts[code].strip()
                    known = self._boards.setdefault((group.key, column.name), board)
                    if known != board:
                        line = int(group.lines[np.flatnonzero(group.of(cells.codes) == code)[0]])
                        raise BrokenInputError(
                            f"line {line}: GPU {group.key} has the {column.name} {board}, but {known} above; an index "
                            "does not distinguish several boards or MIG instances; record without index, or one file "
                            "for each"
                        )

    def _store_chunk(self, chunk: Chunk) -> None:
        if any(column.role == "gpu" for column in self.columns):
            self._require_one_board_per_index(chunk)
        rows = len(chunk.lines)
        self.ledger.stored += rows
        self.rows += rows
        if chunk.ns is not None and self.sensors.first_ns is None:
            self.sensors.first_ns = int(chunk.ns[0])
        for place, column in enumerate(self._named):
            if column.role == "long":
                self._store_long(chunk, place)
            elif column.role not in ("time", "elapsed", "day", "gpu", "field", TRAILING):
                self._store_column(column, chunk, place)

    def _store_long(self, chunk: Chunk, place: int) -> None:
        """Store a column of values whose fields another column names."""
        fields = chunk.columns[[column.role for column in self.columns].index("field")]
        codes, names = first_seen([field.strip() for field in fields.texts], fields.codes)
        for code, name in enumerate(names):
            self._store_column(self.field_of(name), chunk.part(np.flatnonzero(codes == code)), place)

    def _store_column(self, column: Column, chunk: Chunk, place: int) -> None:
        """Store the cells of a column, GPU by GPU."""
        values, reasons = self._cells.read(chunk.columns[place], column, chunk.lines)
        for group in chunk.groups:
            readings = Readings(group.ns, group.of(values), group.of(reasons), group.lines)
            self._store_readings(column, group, readings, chunk, place)

    def _checked_rows(
        self, rows: Rows, lines: Int64s, gpus: Sequence[int] | None
    ) -> tuple[Flags, Int64s | None, Objects]:
        """Return which rows are valid and not repeated, their timestamps, and the keys of their GPUs."""
        keep, ns = np.ones(len(rows), np.bool_), None
        for place, column in enumerate(self.columns):
            if column.role == "time":
                ns, good = self.clock.read([row[place].strip() for row in rows])
                self._reject_all(rows, lines, keep & ~good, place, "not a time, or one of another kind than above")
                keep &= good
            elif column.role == "elapsed":
                good = np.array([row[place].isdigit() and len(row[place]) < 19 for row in rows], np.bool_)
                self._reject_all(rows, lines, keep & ~good, place, "not a time")
                keep &= good
                ns = np.array([int(row[place]) if ok else 0 for row, ok in zip(rows, good, strict=True)], np.int64)
        keys = self._keys(rows, gpus)
        for place, column in enumerate(self.columns):
            if column.role == "gpu":
                known = {cell for cell in {row[place] for row in rows} if gpu_number(cell) is not None}
                good = np.array([row[place] in known for row in rows], np.bool_)
                self._reject_all(rows, lines, keep & ~good, place, "not the index of a GPU")
                keep &= good
        if ns is not None and len(rows):
            repeated = self._repeated_rows(rows, keys, keep)
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

    def _repeated_rows(self, rows: Rows, keys: Objects, keep: Flags) -> Flags:
        """Return which rows equal the previous row of the same GPU, timestamp included."""
        repeated = np.zeros(len(rows), np.bool_)
        last = self._last
        for place, (row, key) in enumerate(zip(rows, keys.tolist(), strict=True)):
            if last.get(key) == row:
                repeated[place] = keep[place]
            last[key] = row
        return repeated

    def _reject_all(self, rows: Rows, lines: Int64s, bad: Flags, place: int, why: str) -> None:
        self.has_bad_times |= bool(bad.any()) and self.columns[place].role == "time"
        for row in np.flatnonzero(bad).tolist():
            cell = rows[row][place].strip()[:60]
            self.reject(int(lines[row]), ", ".join(rows[row]), f"{self.columns[place].name} is {cell!r}, {why}")

    def _store_readings(self, column: Column, group: GpuRows, part: Readings, chunk: Chunk, place: int) -> None:
        if column.role != "value" and part.reasons is not None:
            # Texts are stored as metrics; other cells without a value as samples.
            said = [reason == TEXT if column.role == "open" else reason is not None for reason in part.reasons.tolist()]
            is_text = np.array(said, np.bool_)
            codes = group.of(chunk.columns[place].codes)[is_text]
            self._store_texts(column, group.key, chunk.columns[place].texts, codes, part.part(is_text))
            part = part.part(~is_text)
        if column.role in ("value", "open") and len(part.values):
            gpu = group.key if isinstance(group.key, int) and group.key != NO_GPU else None
            device = self._device(chunk, group.first)
            self.sensors.add(self.sensors.channel(column, gpu, device, self.line, group.key), part)

    def _device(self, chunk: Chunk, row: int) -> str | None:
        for role in ("name", "device"):
            for column, cells in zip(self.columns, chunk.columns, strict=True):
                if column.role == role and parse_number(cells[row], column)[1] == TEXT:
                    return cells[row].strip()
        return None

    def _store_texts(self, column: Column, key: object, texts: Sequence[str], codes: Int64s, part: Readings) -> None:
        """Store texts as metrics where they change."""
        place = (column.name, key)
        if part.reasons is None:
            return
        for at in np.flatnonzero(np.diff(codes, prepend=-1)).tolist():
            word = texts[codes[at]].strip()
            if self._last_texts.get(place) != word:
                self._last_texts[place] = word
                section = None if key == NO_GPU else f"GPU {key}"
                row: dict[str, object] = {"section": section, "metric": column.name, "raw_text": word}
                self._metrics.append({**row, "reason": part.reasons[at], "line": int(part.lines[at])})

    def batch(self, flush: bool = True) -> Batch:
        """Return what was gathered; ``flush`` includes the waiting rows."""
        if flush:
            self.flush()
        tables = self.sensors.take(self.clock.kind)
        if self._metrics:
            rows, self._metrics = self._metrics, []
            columns = {name: [row[name] for row in rows] for name in rows[0]}
            tables["metrics"] = ColumnTable.of_values("metrics", columns)
        return self.ledger.batch(tables)

    def last(self, encoding: str) -> Batch:
        """Return the table of sensors and the facts; refuse a file if no row could be read."""
        facts = {"tool": self.tool, "encoding": encoding, "readings": str(self.rows), **self.facts}
        facts |= {"clock": self.clock.kind} if self.clock.kind else {}
        if gpus := {key for *_, key in self.sensors.channels if key != NO_GPU}:
            facts["gpus"] = str(len(gpus))
        if self.duplicates:
            facts["duplicate_rows"] = str(self.duplicates)
        if not self.sensors.readings and self.rejected:
            raise BrokenInputError(
                f"no row of the log can be read; {self.first_reason}; record it again with LC_ALL=C, or remove lines "
                f"that the tool did not write{COLUMN_HINT if self.has_bad_times else ''}"
            )
        message = ""
        if not self.sensors.readings:
            message = "no readings: the file has no row below its header; record the log again"
        elif not self.clock.kind and "elapsed" not in [column.role for column in self.columns]:
            message = NO_TIME
        return self.ledger.batch(self.sensors.table(), facts, message)


class LogBatches:
    """The batches of a sensor log: the readings of its `Log`, and ranges of time."""

    def __init__(self, tool: str, clock: TimestampParser | None = None) -> None:
        """Begin a file that ``tool`` wrote."""
        self.log = Log(tool, clock)
        self._ranges: list[dict[str, object]] = []

    def add_range(
        self, parse_number: int, line: str, cells: Sequence[str], name: str, start_ns: int, duration_ns: int
    ) -> None:
        """Add a row that describes a range of time; the range is stored only if the row is accepted."""
        rejected = self.log.rejected
        self.log.row(parse_number, cells, line)
        if self.log.rejected == rejected:
            times = {"start_ns": start_ns, "duration_ns": float(duration_ns)}
            self._ranges.append({"name": name, **times, "line": parse_number})

    def gpu_of(self, name: str) -> int | None:
        """Return the GPU that the name of a sensor contains; None if it contains none."""
        return None

    @property
    def full(self) -> bool:
        """Whether enough rows wait for a batch."""
        return self.log.full

    def batch(self) -> Batch:
        """Return what was gathered since the last batch."""
        ranges, self._ranges = self._ranges, []
        return with_table(self.log.batch(), "ranges", ranges)

    def last(self, encoding: str) -> Iterator[Batch]:
        """Yield the rest, the sensors and the facts of the file."""
        yield self.batch()
        for channel in self.log.sensors.channels.values():
            channel.gpu = self.gpu_of(channel.column.name) if channel.gpu is None else channel.gpu
        yield self.log.last(encoding)


class LogReader(LogBatches, LineReader):
    """Sorts the lines of a sensor log into headers and rows of its `Log`."""
