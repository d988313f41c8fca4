"""Complete results as files: csv, ndjson, parquet. Rows are streamed, so memory does not grow with their number."""

import csv
import io
import json
import marshal
import os
import secrets
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from profsvc.errors import ServiceError, UsageError
from profsvc.reports.rows import Lines, field, plain

FORMS = ("csv", "ndjson", "parquet")
GROUP = 10_000
"""Rows of a Parquet row group, which are in memory at once."""
Chunks = Iterable[Sequence[Sequence[Any]]]


def form_of(asked: str, path: Path | None) -> str:
    """Return the format of a result: as requested, else by the file name, else csv.

    >>> form_of("", Path("a.parquet")), form_of("ndjson", None)
    ('parquet', 'ndjson')
    """
    form = asked or (path.suffix.removeprefix(".").lower() if path else "csv")
    form = {"jsonl": "ndjson"}.get(form, form)
    if form not in FORMS:
        shown = f"-o {asked}" if asked else f"{path}"
        raise UsageError(f"{shown}: choose a format with -o: {', '.join(FORMS)}")
    return form


@contextmanager
def new_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that appears under its name only when it is complete and on disk."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        raise ServiceError(f"{path}: cannot be written: {error.strerror or error}; no partial file is left") from None
    finally:
        part.unlink(missing_ok=True)


def write(
    form: str,
    columns: Sequence[str],
    chunks: Chunks,
    file: IO[bytes],
    *,
    raw: bool = False,
    kinds: Mapping[str, str] | None = None,
) -> int:
    """Write all rows in a format and return their number; ``kinds`` are types of known columns (int, float, text)."""
    if form == "parquet":
        return _parquet(columns, chunks, file, kinds or {})
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=False)
    try:
        return (_csv if form == "csv" else _ndjson)(columns, chunks, text, raw)
    finally:
        text.flush()
        text.detach()


def _csv(columns: Sequence[str], chunks: Chunks, file: IO[str], raw: bool) -> int:
    writer, rows = csv.writer(Lines(file.write), lineterminator="\r\n"), 0
    writer.writerow([field(column, raw) for column in columns])
    for chunk in chunks:
        writer.writerows([[field(value, raw) for value in row] for row in chunk])
        rows += len(chunk)
    return rows


def _ndjson(columns: Sequence[str], chunks: Chunks, file: IO[str], _raw: bool) -> int:
    rows = 0
    for chunk in chunks:
        for row in chunk:
            record = {column: plain(value) for column, value in zip(columns, row, strict=True)}
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
        rows += len(chunk)
    return rows


def _parquet(columns: Sequence[str], chunks: Chunks, file: IO[bytes], kinds: Mapping[str, str]) -> int:
    """Write a Parquet file in two passes, because the type of a column is known only after its last value."""
    import pyarrow
    import pyarrow.parquet

    seen: list[set[str]] = [set() for _ in columns]
    rows = 0
    with tempfile.TemporaryFile() as aside:
        for group in _groups(chunks):
            parts = [[plain(value) for value in part] for part in zip(*group, strict=True)]
            for sorts, part in zip(seen, parts, strict=True):
                sorts.update(map(_sort, part))
            marshal.dump(parts, aside)
            rows += len(group)
        end = aside.tell()
        aside.seek(0)
        types = [_type(sorts, kinds.get(column, "")) for column, sorts in zip(columns, seen, strict=True)]
        schema = pyarrow.schema(
            [(column, getattr(pyarrow, kind)()) for column, kind in zip(columns, types, strict=True)]
        )
        with pyarrow.parquet.ParquetWriter(file, schema) as writer:
            while aside.tell() < end:
                parts = marshal.load(aside)
                cells = [[_as(value, kind) for value in part] for part, kind in zip(parts, types, strict=True)]
                writer.write_table(pyarrow.table(cells, schema=schema))
    return rows


def _groups(chunks: Chunks) -> Iterator[list[Sequence[Any]]]:
    group: list[Sequence[Any]] = []
    for chunk in chunks:
        group += chunk
        if len(group) >= GROUP:
            yield group
            group = []
    if group:
        yield group


def _sort(value: Any) -> str:
    """Return the type of a value; integers beyond 64 bits count as float."""
    sort = type(value).__name__
    return "float" if sort == "int" and not -(2**63) <= value < 2**63 else sort


def _type(sorts: set[str], kind: str) -> str:
    """Return the type of a column with values of these types; its known kind decides between several."""
    sorts = sorts - {"NoneType"}
    if not sorts:
        return {"int": "int64", "float": "float64"}.get(kind, "string")
    if sorts == {"int"}:
        return "float64" if kind == "float" else "int64"
    if sorts <= {"int", "float"}:
        return "float64"
    return {"bool": "bool_", "bytes": "binary"}.get("".join(sorts), "string")


def _as(value: Any, kind: str) -> Any:
    if value is None:
        return None
    return float(value) if kind == "float64" else str(value) if kind == "string" else value
