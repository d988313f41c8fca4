"""Uploads of several files of one run, and uploads that nothing is computed of."""

import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
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
