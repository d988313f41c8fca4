"""Completes the line counts of a reader: lines with NUL bytes, and a last line without a line end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from profsvc.errors import counted
from profsvc.formats.parsing.text import LineNotes
from profsvc.formats.parsing.timestamps import Int64s
from profsvc.tables import Batch, ColumnTable, Wide, as_frames
from profsvc.tables.column_tables import integers_of
from profsvc.tables.on_demand import pd

MAX_REPORTED = 3
NUL_REASON = "the line has NUL bytes, as after a power cut or on a full disk"


class LineCompletion:
    """Converts line numbers of batches to those of the file, and adds the lines that the reader did not see."""

    def __init__(self, notes: LineNotes) -> None:
        """Start before the first batch; ``notes`` then has all lines with NUL bytes."""
        self.notes = notes
        self.lines = self.rejected_to = 0
        self.message = ""

    def complete(self, batch: Batch) -> Batch:
        """Return a batch with the line numbers of the file, and without its message, which is repeated at the end."""
        self.lines += batch.lines_stored + batch.lines_skipped + batch.lines_rejected
        self.message = batch.message or self.message
        if "rejects" in batch.given and len(rejects := batch.given["rejects"]):
            first, lines = (integers_of(rejects[name]).values for name in ("line", "lines"))
            self.rejected_to = max(self.rejected_to, int((first + np.maximum(lines, 1)).max()) - 1)
        batch = replace(batch, message="") if batch.message else batch
        if not self.notes.nul_lines:
            return batch
        tables = {name: self._numbered(table) if "line" in table else table for name, table in batch.tables.items()}
        return replace(batch, tables=tables, wide=batch.wide and self._numbered_wide(batch.wide))

    def _in_file(self, lines: Int64s) -> Int64s:
        """Return the line numbers in the file for line numbers that do not count the lines with NUL bytes.

        The n-th line with NUL bytes is preceded by n - 1 others, so its number minus n lines of the reader precede it.
        """
        before = np.array(self.notes.nul_lines) - np.arange(len(self.notes.nul_lines))
        return lines + np.searchsorted(before, lines, "right")

    def _numbered(self, table: pd.DataFrame) -> pd.DataFrame:
        lines = table["line"]
        known = lines.notna().to_numpy()
        values = lines.to_numpy(np.int64, na_value=0)
        moved = pd.arrays.IntegerArray(np.where(known, self._in_file(values), 0), ~known)
        return table.assign(line=moved)

    def _numbered_wide(self, wide: Wide) -> Wide:
        return replace(wide, lines=self._in_file(wide.lines))

    def _repetitions(self) -> str:
        """Return which tables are stored once."""
        repeated = self.notes.repeated
        firsts, lasts, earlier = (self._in_file(np.array(lines)).tolist() for lines in zip(*repeated, strict=True))
        spans = [
            f"lines {first} to {min(last, self.lines + len(self.notes.nul_lines))} repeat those from line {other} on"
            for first, last, other in zip(firsts, lasts, earlier, strict=True)
        ]
        more = len(spans) - MAX_REPORTED
        shown = ", ".join(spans[:MAX_REPORTED]) + (f", and so do {counted(more, 'more table')}" if more > 0 else "")
        return (
            f"{shown}: byte for byte the same table, so it is stored once; if it is of another run, upload it as a "
            "file of its own"
        )

    def last(self) -> Batch | None:
        """Return a batch to follow the last batch of the reader; None if there is nothing to add."""
        messages, notes = [self.message] if self.message else [], self.notes
        repeated_to = notes.repeated[-1].last if notes.repeated else 0
        if notes.unended.strip() and max(self.rejected_to, repeated_to) < self.lines:
            may = "" if notes.unended.endswith(('"', "\r")) else "; if the file was cut, its last value may be cut"
            line = self.lines + len(notes.nul_lines)
            messages.append(f"the last line, {line}, was stored although it has no newline{may}")
        if notes.repeated:
            messages.append(self._repetitions())
        if notes.nul_lines:
            messages.append(f"{counted(len(notes.nul_lines), 'line')} with NUL bytes rejected, as after a power cut")
        if not messages:
            return None
        tables = {}
        if notes.nul_lines:
            columns: dict[str, Sequence[object]] = {
                "line": notes.nul_lines,
                "lines": [1] * len(notes.nul_lines),
                "reason": [NUL_REASON] * len(notes.nul_lines),
                "text": notes.nul_texts,
            }
            tables["rejects"] = ColumnTable.of_values("rejects", columns)
        return Batch(as_frames(tables), lines_rejected=len(notes.nul_lines), message="; ".join(messages))
