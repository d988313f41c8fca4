"""The loop of every reader that sorts a file line by line, in one pass."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import BinaryIO

from profsvc.formats.parsing.text import Text
from profsvc.tables import Batch


class LineReader(ABC):
    """Accounts for each line of one file, and gathers what the lines hold until there is enough for a batch."""

    @abstractmethod
    def add(self, number: int, line: str) -> None:
        """Account for line ``number``, counted from 1."""

    @property
    @abstractmethod
    def full(self) -> bool:
        """Whether there is enough for a batch."""

    @abstractmethod
    def batch(self) -> Batch:
        """Return what was gathered since the last batch."""

    @abstractmethod
    def last(self, encoding: str) -> Iterator[Batch]:
        """Yield the rest and the facts of the file, whose text has this ``encoding``."""


def read_lines(stream: BinaryIO, reader_of: Callable[[Text], LineReader]) -> Iterator[Batch]:
    """Yield the batches of a file; ``reader_of`` makes the reader, and may look at the text first."""
    with Text(stream) as text:
        reader = reader_of(text)
        for number, line in enumerate(text.lines(), 1):
            reader.add(number, line)
            if reader.full:
                yield reader.batch()
        yield from reader.last(text.encoding)
