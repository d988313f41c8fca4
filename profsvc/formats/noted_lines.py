"""Lines that readers were not shown, and a last line without an end: brought into the account of a file's lines."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from profsvc.errors import counted
from profsvc.formats.clock import Int64s
from profsvc.formats.stream import LineNotes
from profsvc.tables import Batch, Wide, frame

NULS = "it holds NUL bytes, as a power cut or a full disk leaves them"
REJECTS_AT_ONCE = 10_000


class Account:
    """Numbers the lines of batches as they are in the file, and adds what is not in them."""

    def __init__(self, notes: LineNotes) -> None:
        """Begin before the first batch; ``notes`` is complete for lines with NULs when that comes."""
        self.notes = notes
        self.lines = self.rejected_to = 0
        self.message = ""

    def passed(self, batch: Batch) -> Batch:
        """Return a batch with the numbers that its lines have in the file, without its message, which comes last."""
        self.lines += batch.lines_stored + batch.lines_skipped + batch.lines_rejected
        self.message = batch.message or self.message
        if (rejects := batch.tables.get("rejects")) is not None and len(rejects):
            self.rejected_to = max(self.rejected_to, int((rejects["line"] + rejects["lines"]).max()) - 1)
            self.rejected_to = max(self.rejected_to, int(rejects["line"].max()))
        batch = replace(batch, message="") if batch.message else batch
        if not self.notes.nul_lines:
            return batch
        tables = {name: self._numbered(table) if "line" in table else table for name, table in batch.tables.items()}
        return replace(batch, tables=tables, wide=batch.wide and self._numbered_wide(batch.wide))

    def _in_file(self, lines: Int64s) -> Int64s:
        """Return the numbers in the file of lines that are numbered without those that were left out.

        The n-th line that was left out has n - 1 such lines before it: so many of those shown stand before it.
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

    def last(self) -> Batch | None:
        """Return what follows the last batch of the reader; None if nothing does."""
        said, notes = [self.message] if self.message else [], self.notes
        if notes.unended.strip() and self.rejected_to < self.lines:
            may = "" if notes.unended.endswith(('"', "\r")) else "; if the file was cut, its last value may be cut too"
            line = self.lines + len(notes.nul_lines)
            said.append(f"the last line, {line}, was taken without the newline that should be at its end{may}")
        if notes.nul_lines:
            said.append(f"{counted(len(notes.nul_lines), 'line')} with NUL bytes rejected, as a power cut leaves them")
        if not said:
            return None
        tables = {}
        if notes.nul_lines:
            columns: dict[str, Sequence[object]] = {
                "line": notes.nul_lines,
                "lines": [1] * len(notes.nul_lines),
                "reason": [NULS] * len(notes.nul_lines),
                "text": notes.nul_texts,
            }
            tables["rejects"] = frame("rejects", columns)
        return Batch(tables, lines_rejected=len(notes.nul_lines), message="; ".join(said))
