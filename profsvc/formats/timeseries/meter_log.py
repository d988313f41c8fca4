"""Logs of power meters with one reading per line."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from profsvc.formats.parsing.ledger import Ledger
from profsvc.formats.parsing.line_reader import LineReader
from profsvc.formats.parsing.numbers import NumberFormat, Numbers
from profsvc.formats.parsing.records import MAX_TEXT_CHARS, REJECT, ROW, SKIP, Record
from profsvc.formats.timeseries.dates import Stamp
from profsvc.formats.timeseries.labels import Channel
from profsvc.formats.timeseries.readings import Rows, clock_metadata
from profsvc.tables import Batch


class Reading(NamedTuple):
    """The time and the cells of one line; ``owners`` are the channels of the cells if it lacks some channels."""

    stamp: Stamp | None
    cells: Sequence[str]
    owners: Sequence[int] | None = None


class MeterReader(LineReader):
    """Parses the lines of one file; a format adds `parse`."""

    def __init__(
        self,
        tool: str,
        channels: Sequence[Channel],
        missing: Mapping[str, str] | None = None,
        facts: Mapping[str, str] | None = None,
    ) -> None:
        """Begin a file that ``tool`` wrote; cells in ``missing`` have no value, for the reason given there."""
        self.facts = {"tool": tool, **(facts or {})}
        self.ledger = Ledger()
        self.readings = Rows(channels, Numbers(NumberFormat()), missing=missing or {})

    @abstractmethod
    def parse(self, line: str) -> Reading | None:
        """Return the reading on a line, None for a line without one; raise `ValueError` to reject the line."""

    def add(self, number: int, line: str) -> None:
        """Account for a line, and add its reading."""
        kind, reason = SKIP, ""
        try:
            if reading := self.parse(line):
                kind = ROW
                self.readings.add(number, *reading)
        except ValueError as error:
            kind, reason = REJECT, str(error)
        self.ledger.add(Record(kind, number, 1, line[:MAX_TEXT_CHARS], [], reason))

    @property
    def full(self) -> bool:
        """Whether there are enough readings for a batch."""
        return self.readings.full or self.ledger.full

    def batch(self) -> Batch:
        """Return what was gathered since the last batch."""
        return self.ledger.batch(self.readings.take())

    def last(self, encoding: str) -> Iterator[Batch]:
        """Yield the rest, the sensors and the facts of the file."""
        facts = {**self.facts, "encoding": encoding, **clock_metadata(self.readings.first)}
        message = "" if self.readings.count else "no samples: the file has no complete reading; record it again"
        yield self.ledger.batch(self.readings.last(), facts, message)
