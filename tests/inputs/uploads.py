"""Uploads of several files of one run, of some pages of a file, and uploads that nothing is computed of."""

import gzip
import io
import re
from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import zstandard
from sqlalchemy import Engine

from profsvc import pipeline, store


@contextmanager
def without_analysis() -> Iterator[None]:
    """Let ``ingest`` and ``reparse`` store and compute nothing within the block."""
    with pytest.MonkeyPatch.context() as patched:
        for module in (pipeline.reparsing, pipeline.analysis):
            patched.setattr(module, "analyze", lambda *_, **__: 0)
        yield


def ingest_all(
    engine: Engine, contents: Iterable[tuple[bytes, str]], run: store.RunInfo, *how: pipeline.ReadOptions, **more: Any
) -> pipeline.ImportResult:
    """Upload files of one run in their order; the last one has the run analysed, with all of them."""
    *others, last = contents
    with without_analysis():
        for content, name in others:
            pipeline.ingest(engine, io.BytesIO(content), name, run, *how, **more)
    return pipeline.ingest(engine, io.BytesIO(last[0]), last[1], run, *how, **more)


def unpacked(path: Path) -> bytes:
    """Return the bytes of a file in gzip or zstd."""
    packed = path.read_bytes()
    if path.suffix == ".gz":
        return gzip.decompress(packed)
    with zstandard.ZstdDecompressor().stream_reader(packed) as stream:
        return stream.read()


def pages_of_kernels(source: bytes, kernels: Container[str]) -> bytes:
    """Return an export of source pages with those of some kernels alone; the rest of large ones takes seconds."""
    before, *pages = source.split(b'"File Path"')
    return b'"File Path"'.join([before, *(page for page in pages if _kernel_of(page) in kernels)])


def _kernel_of(page: bytes) -> str:
    found = re.search(rb'"Function Name","([^\n]*)"\n', page)
    assert found
    return found[1].decode().replace('""', '"')
