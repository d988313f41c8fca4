"""What the tests of readers share: one call that reads a whole file and sums up its batches."""

import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest

from profsvc import formats
from profsvc.formats.stream import open_stream
from profsvc.tables import TABLES, frame


@dataclass
class Content:
    """The batches of a file, put together."""

    reader: str
    tables: dict[str, pd.DataFrame]
    stored: int
    skipped: int
    rejected: int
    facts: dict[str, str]
    message: str

    def __getattr__(self, name: str) -> pd.DataFrame:
        return self.tables[name]


def read_all(source: bytes | Path, reader_name: str | None = None) -> Content:
    data = source.read_bytes() if isinstance(source, Path) else source
    reader, batches = formats.read(io.BytesIO(data), reader_name)
    batches = list(batches)
    parts = {name: [b.tables[name] for b in batches if name in b.tables] for name in TABLES}
    tables = {n: pd.concat(p, ignore_index=True) if p else frame(n, {}) for n, p in parts.items()}
    return Content(
        reader.NAME,
        tables,
        sum(b.lines_stored for b in batches),
        sum(b.lines_skipped for b in batches),
        sum(b.lines_rejected for b in batches),
        {key: value for b in batches for key, value in b.facts.items()},
        "; ".join(b.message for b in batches if b.message),
    )


def count_lines(source: bytes | Path) -> int:
    """Count physical lines without the code under test."""
    data = open_stream(source).read() if isinstance(source, Path) else source
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        data = data.decode("utf-16", errors="replace").encode()
    return data.count(b"\n") + (not data.endswith(b"\n") and data != b"")


@pytest.fixture(scope="session", name="read_all")
def _read_all() -> Callable[..., Content]:
    return read_all


@pytest.fixture(scope="session", name="count_lines")
def _count_lines() -> Callable[[bytes | Path], int]:
    return count_lines
