"""Tables in Parquet and Arrow files (Feather) as lines of CSV, which the readers of texts read.

pandas writes the index of a table behind its columns; here it comes first, where logs have their time. Row n of the
table is line n + 1 of the text.
"""

from __future__ import annotations

import csv
import io
import json
import shlex
from collections.abc import Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any, BinaryIO, cast

from profsvc.errors import BrokenInputError, TooLargeError
from profsvc.formats.native.memory_references import REQUIRED_COLUMNS
from profsvc.formats.parsing import unpacked_copies
from profsvc.formats.parsing.stream import peek, stream_of
from profsvc.tables.on_demand import pa

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

PARQUET, ARROW, ARROW_STREAM = b"PAR1", b"ARROW1\0\0", b"\xff\xff\xff\xff"
KINDS = {PARQUET: "Parquet", ARROW: "Arrow", ARROW_STREAM: "Arrow"}
"""First bytes of the files -> their format."""
BATCH_ROWS = 1 << 16
MAX_COLUMN_BYTES = 1 << 30
INDEX_NAME = "__index_level_0__"
MAX_SHOWN_CHARS = 200
VERSION_COLUMNS = {"compute_cap", "CC"}
"""Columns of versions, such as 9.0, which a program may store as numbers; Arrow would write 9."""


def kind_of(head: bytes) -> str:
    """Return the format of a table file that begins with ``head``; empty for other files.

    >>> kind_of(b"PAR1\\x15"), kind_of(b"time,power")
    ('Parquet', '')
    """
    return next((kind for magic, kind in KINDS.items() if head.startswith(magic)), "")


def as_text(stream: BinaryIO, limit: int | None = None) -> tuple[BinaryIO, str]:
    """Return the table in a stream as CSV, and the format of its file.

    A file of another format, or of a memory trace, which has its own reader, is returned as it is, with an empty text.
    Raise `BrokenInputError` for a file that cannot be read, and where it is read on, `TooLargeError` for a text of more
    than ``limit`` bytes.
    """
    head, stream = peek(stream, len(ARROW))
    if not (kind := kind_of(head)):
        return stream, ""
    if not stream.seekable():
        file = unpacked_copies.spooled_file()
        unpacked_copies.copy(stream, cast("IO[bytes]", file))
        file.seek(0)
        stream = cast("BinaryIO", file)
    start = stream.tell()
    try:
        schema, batches = _opened(stream, head)
        if len(set(REQUIRED_COLUMNS) & set(schema.names)) > 1:
            stream.seek(start)
            return stream, ""
        order = _columns(schema)
    except (pa.ArrowException, OSError, ValueError, EOFError) as error:
        raise _broken(kind, error) from None
    return stream_of(_lines(kind, batches, order, limit)), kind


def as_text_command(kind: str, name: str) -> str:
    """Return the command that writes the table of a file as CSV."""
    function = "read_parquet" if kind == KINDS[PARQUET] else "read_feather"
    script = f"import sys, pandas; pandas.{function}(sys.argv[1]).to_csv(sys.argv[2])"
    return f"python3 -c '{script}' {shlex.quote(name)} {shlex.quote(f'{name}.csv')}"


def _broken(kind: str, error: Exception) -> BrokenInputError:
    if isinstance(error, BrokenInputError):
        return error
    words = " ".join(str(error).split())[:MAX_SHOWN_CHARS]
    return BrokenInputError(f"the {kind} file cannot be read ({words}); write it again, or as CSV")


def _opened(file: BinaryIO, head: bytes) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    if head.startswith(PARQUET):
        from pyarrow.parquet import ParquetFile  # its import takes memory, and few files need it

        source = ParquetFile(pa.PythonFile(file, mode="r"), memory_map=False, pre_buffer=False)
        _check_row_groups(source)
        return source.schema_arrow, source.iter_batches(batch_size=BATCH_ROWS, use_threads=False)
    from pyarrow import ipc

    opened: Any = (ipc.open_file if head.startswith(ARROW) else ipc.open_stream)(pa.PythonFile(file, mode="r"))
    count = getattr(opened, "num_record_batches", None)
    batches = iter(opened) if count is None else (opened.get_batch(number) for number in range(count))
    return opened.schema, batches


def _check_row_groups(source: ParquetFile) -> None:
    """Refuse large row groups: a column of a row group is held in memory as a whole."""
    whole = source.metadata
    for group in range(whole.num_row_groups):
        for place in range(whole.num_columns):
            if (size := whole.row_group(group).column(place).total_uncompressed_size) > MAX_COLUMN_BYTES:
                raise BrokenInputError(
                    f"row group {group} has a column of {size >> 20} MiB; write it again with row groups of about a "
                    "million rows"
                )


def _columns(schema: pa.Schema) -> list[tuple[int, str]]:
    """Return the place and the name of each column, the index of pandas first."""
    metadata = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
    index = metadata.get("index_columns") if isinstance(metadata, dict) else None
    index = [name for name in index if isinstance(name, str)] if isinstance(index, list) else []
    places = sorted(range(len(schema.names)), key=lambda place: schema.names[place] not in index)
    return [(place, _name(schema.field(place))) for place in places]


def _name(field: pa.Field) -> str:
    if field.name != INDEX_NAME:
        return str(field.name)
    return "timestamp" if pa.types.is_timestamp(field.type) else "index"


def _lines(
    kind: str, batches: Iterator[pa.RecordBatch], order: Sequence[tuple[int, str]], limit: int | None
) -> Iterator[bytes]:
    # Arrow quotes every cell of a header, and tools only those that need it.
    header = io.StringIO()
    csv.writer(header, lineterminator="\n").writerow([name for _, name in order])
    yield header.getvalue().encode()
    written = header.tell()
    try:
        for batch in batches:
            text = _joined([_cells(_plain(batch.column(place), name)) for place, name in order])
            written += len(text)
            if limit is not None and written > limit:
                raise TooLargeError(f"the table has more than {limit} bytes as text; split it or raise the limit")
            yield text
    except (pa.ArrowException, OSError, ValueError, EOFError) as error:
        raise _broken(kind, error) from None


def _cells(column: pa.Array) -> pa.Array:
    """Return the cells of a column as texts, quoted only where they need it, as tools do; Arrow quotes every text."""
    texts = pa.compute.fill_null(pa.compute.cast(column, pa.large_string()), "")
    odd = pa.compute.match_substring_regex(texts, '[,"\r\n]')
    if not pa.compute.any(odd).as_py():
        return texts
    doubled = pa.compute.replace_substring(texts, '"', '""')
    quote = pa.scalar('"', pa.large_string())
    return pa.compute.if_else(odd, _side_by_side([quote, doubled, quote], ""), texts)


def _side_by_side(parts: Sequence[pa.Array | pa.Scalar], separator: str) -> pa.Array:
    return pa.compute.binary_join_element_wise(*parts, pa.scalar(separator, pa.large_string()))


def _joined(columns: Sequence[pa.Array]) -> bytes:
    """Return the lines of a table whose cells are texts."""
    return "".join(f"{line}\n" for line in _side_by_side(columns, ",").to_pylist()).encode()


def _plain(column: pa.Array, name: str) -> pa.Array:
    """Return a column that can be written as text: lists and other nested values as Python prints them."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _plain(column.dictionary_decode(), name)
    if name in VERSION_COLUMNS and pa.types.is_floating(kind):
        return pa.array([None if value is None else f"{value:.1f}" for value in column.to_pylist()], pa.string())
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return pa.array([None if value is None else str(value) for value in column.to_pylist()], pa.string())
    if pa.types.is_duration(kind):
        return column.cast(pa.int64())
    if pa.types.is_float16(kind):
        return column.cast(pa.float32())
    return column.cast(pa.string()) if pa.types.is_decimal(kind) else column
