"""Whether a file contains anything to store; a file without content is rejected."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from profsvc.errors import counted
from profsvc.tables import Batch, frame_of

# What is about other rows, and nothing by itself.
_SUPPORTING_TABLES = {"rejects", "sensors", "samples"}


class FileSummary(Protocol):
    """What is known of a file when it has been read."""

    format: str
    message: str
    lines_stored: int
    samples: int


@dataclass
class Content:
    """What the batches of a file hold: readings with a value, other rows, and why the first line was of no use."""

    values: int = 0
    others: int = 0
    first_reason: str = ""

    def seen(self, batch: Batch) -> Batch:
        """Take note of a batch and return it."""
        for name, table in batch.given.items():
            self.others += 0 if name in _SUPPORTING_TABLES else len(table)
            if name == "samples":
                self.values += int(np.count_nonzero(~np.isnan(np.asarray(table["value"]))))
            if name in ("samples", "rejects") and len(table) and not self.first_reason and not self.values:
                line, reason = frame_of(table)[["line", "reason"]].iloc[0]
                self.first_reason = f"line {line}: {reason}"
        return batch

    def emptiness(self, told: FileSummary) -> str:
        """Say that nothing of the file can be stored, and why; nothing where something can."""
        if told.lines_stored and (self.values or self.others or not told.samples):
            return ""
        what = (
            f"none of its {counted(told.samples, 'sample')} has a value"
            if told.lines_stored
            else "no line matches the format"
        )
        why = "; ".join(part for part in (self.first_reason, told.message) if part)
        return f"read as {told.format}, it contains nothing to store: {what}{f'; {why}' if why else ''}"
