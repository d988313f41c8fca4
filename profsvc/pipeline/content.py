"""Whether a file holds anything that can be stored: one that does not is refused, so that nobody takes it for kept."""

from dataclasses import dataclass
from typing import Protocol

from profsvc.errors import counted
from profsvc.tables import Batch

# What is about other rows, and nothing by itself.
_ABOUT = {"rejects", "sensors", "samples"}


class Told(Protocol):
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
        for name, table in batch.tables.items():
            self.others += 0 if name in _ABOUT else len(table)
            if name == "samples":
                self.values += int(table["value"].notna().sum())
            if name in ("samples", "rejects") and len(table) and not self.first_reason and not self.values:
                line, reason = table[["line", "reason"]].iloc[0]
                self.first_reason = f"line {line}: {reason}"
        return batch

    def emptiness(self, told: Told) -> str:
        """Say that nothing of the file can be stored, and why; nothing where something can."""
        if told.lines_stored and (self.values or self.others or not told.samples):
            return ""
        what = f"none of its {counted(told.samples, 'sample')} has a value" if told.lines_stored else "no line fits"
        why = "; ".join(part for part in (self.first_reason, told.message) if part)
        return f"as format {told.format} it holds nothing that can be stored: {what}{f'; {why}' if why else ''}"
