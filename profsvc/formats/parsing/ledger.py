"""The ledger of a file: every physical line is stored, skipped or rejected, and counted once."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from profsvc.formats.parsing.records import HEADER, MAX_TEXT_CHARS, REJECT, SKIP, UNITS, Record
from profsvc.formats.parsing.text import Text
from profsvc.tables import Batch, ColumnTable, Table, Wide, as_frames

MAX_BATCH_REJECTS = 1000


@dataclass
class Ledger:
    """Counts the lines of every record and keeps the rejected ones until the next batch."""

    stored: int = 0
    skipped: int = 0
    rejected: int = 0
    rejects: list[Record] = field(default_factory=list)
    first_reason: str = ""

    def add(self, record: Record) -> None:
        """Count the lines of ``record``."""
        if record.kind == REJECT:
            self.first_reason = self.first_reason or f"line {record.line}: {record.reason}"
            self.rejected += record.lines
            self.rejects.append(record)
        elif record.kind == SKIP:
            self.skipped += record.lines
            self.note_skipped(record.text)
        elif record.kind in (HEADER, UNITS):
            self.skipped += record.lines
        else:
            self.stored += record.lines

    def reject(self, line: int, text: str, reason: str) -> None:
        """Count and keep a rejected line."""
        self.add(Record(REJECT, line, 1, text[:MAX_TEXT_CHARS].rstrip("\r\n"), [], reason))

    def note_skipped(self, text: str) -> None:
        """Note what a skipped record says; a reader whose banners matter overrides this."""

    @property
    def full(self) -> bool:
        """Whether the rejects fill a batch."""
        return len(self.rejects) >= MAX_BATCH_REJECTS

    def batch(
        self,
        tables: Mapping[str, Table],
        facts: Mapping[str, str] | None = None,
        message: str = "",
        wide: Wide | None = None,
    ) -> Batch:
        """Return a batch of the tables, the rejects and the line counts since the last batch."""
        if self.rejects:
            rows = sorted(self.rejects, key=lambda record: record.line)
            columns: dict[str, Sequence[object]] = {
                "line": [row.line for row in rows],
                "lines": [row.lines for row in rows],
                "reason": [row.reason for row in rows],
                "text": [row.text for row in rows],
            }
            tables = {**tables, "rejects": ColumnTable.of_values("rejects", columns)}
        batch = Batch(as_frames(tables), self.stored, self.skipped, self.rejected, facts or {}, message, wide)
        self.stored = self.skipped = self.rejected = 0
        self.rejects = []
        return batch


def with_table(batch: Batch, name: str, rows: Sequence[Mapping[str, object]]) -> Batch:
    """Return ``batch`` with a table of ``rows``, which all have the same columns; unchanged without rows."""
    if not rows:
        return batch
    added = ColumnTable.of_values(name, {column: [row[column] for row in rows] for column in rows[0]})
    return replace(batch, tables=as_frames({**batch.given, name: added}))


def numbered_lines(text: Text) -> Iterator[tuple[int, str]]:
    """Yield the physical lines of ``text`` with their numbers, starting at 1."""
    return enumerate(text.lines(), 1)


def whole_number(text: str) -> int | None:
    """Return ``text`` as an integer; None if it is not a whole number.

    >>> whole_number("7"), whole_number("n/a")
    (7, None)
    """
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
