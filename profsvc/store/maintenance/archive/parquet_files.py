"""Parquet files with row counts and checksums of their values; some rows at a time are in memory."""

import hashlib
from collections.abc import Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import Double, Integer, LargeBinary

from profsvc.errors import ServiceError
from profsvc.store.maintenance.archive.place import Place, reading_file
from profsvc.store.schema.catalog import KINDS
from profsvc.store.schema.tables import metadata

if TYPE_CHECKING:
    from _hashlib import HASH

ROWS_PER_GROUP = 50_000
_KINDS = {"int": pa.int64(), "float": pa.float64(), "text": pa.string()}
# Texts of which a view repeats few in many rows: in memory they are numbers of distinct texts, in the file texts.
REPEATED_TEXTS = {
    "kernel", "kernel_short", "section", "metric", "statistic", "unit", "si_unit", "reason", "counter", "expression",
    "criterion", "model", "quantity", "form", "flags", "bound",
}  # fmt: skip
# Columns of which a list of distinct values would be as long as the column.
DISTINCT_TEXTS = {"raw_text", "texts"}
_REPEATED = pa.dictionary(pa.int32(), pa.string())


def schema_of_view(view: str) -> Any:
    """Return the Arrow schema of a view.

    >>> schema_of_view("v1_kernels").names
    ['kernel_id', 'kernel', 'kernel_short']
    """
    return pa.schema(
        [
            (name, _REPEATED if kind == "text" and name in REPEATED_TEXTS else _KINDS[kind])
            for name, kind in KINDS[view].items()
        ]
    )


def schema_of_table(table: str) -> Any:
    """Return the Arrow schema of a base table."""
    kinds = ((Integer, pa.int64()), (Double, pa.float64()), (LargeBinary, pa.binary()))
    return pa.schema(
        [
            (column.name, next((kind for of, kind in kinds if isinstance(column.type, of)), pa.string()))
            for column in metadata.tables[table].columns
        ]
    )


class Span(NamedTuple):
    """Where the rows of some runs are in a file: the first row group, the number of row groups and of rows."""

    first: int
    groups: int
    rows: int


class ParquetFile:
    """A Parquet file that is being written; its checksum covers the values of every column of every row group."""

    def __init__(self, file: IO[bytes], schema: Any) -> None:
        """Begin a file with these columns."""
        self.schema = schema
        # Readers shall not see which texts were numbers here.
        whole = [field.name for field in schema if field.type == pa.int64()]
        others = {*DISTINCT_TEXTS, *whole}
        listed = [field.name for field in schema if field.type != pa.float64() and field.name not in others]
        # Numbers of rows and times follow each other: their differences take a quarter of the space.
        encoding = dict.fromkeys(whole, "DELTA_BINARY_PACKED")
        self.writer = pq.ParquetWriter(
            file, schema, compression="zstd", store_schema=False, use_dictionary=listed, column_encoding=encoding
        )
        self.digest = hashlib.sha256()
        self.rows = self.groups = 0
        self._parts: list[Any] = []
        self._waiting = 0

    def add(self, rows: Any) -> None:
        """Add rows, whose cells are in the order of the columns, or a table that has the schema of the file."""
        if isinstance(rows, pa.Table):
            self._take(rows)
            return
        columns = list(zip(*rows, strict=True))
        if not columns:
            return
        arrays = [pa.array(column, field.type) for column, field in zip(columns, self.schema, strict=True)]
        self._take(pa.Table.from_arrays(arrays, schema=self.schema))

    def _take(self, table: Any) -> None:
        self._parts.append(table)
        self._waiting += table.num_rows
        if self._waiting >= ROWS_PER_GROUP:
            self.end_group()

    def end_group(self) -> None:
        """Write the waiting rows as a row group."""
        if not self._waiting:
            return
        table = pa.concat_tables(self._parts).unify_dictionaries().combine_chunks()
        self._parts, self._waiting = [], 0
        _add_values(self.digest, table)
        self.writer.write_table(table, row_group_size=table.num_rows)
        self.rows, self.groups = self.rows + table.num_rows, self.groups + 1

    def close(self) -> dict[str, Any]:
        """Finish the file; return its row count and the checksum of its values."""
        self.end_group()
        self.writer.close()
        repeated = [field.name for field in self.schema if pa.types.is_dictionary(field.type)]
        return {"rows": self.rows, "values_sha256": self.digest.hexdigest(), "repeated": repeated}


def _add_values(digest: "HASH", table: Any) -> None:
    """Add the values of a row group to a checksum: nulls, numbers bit by bit, lengths and bytes of texts.

    Of repeated texts it is the first 64 bits of a checksum of each.
    """
    for column in table.unify_dictionaries().columns:
        array: Any = pa.concat_arrays(column.chunks) if column.num_chunks != 1 else column.chunk(0)
        digest.update(np.packbits(array.is_null().to_numpy(zero_copy_only=False)).tobytes())
        if pa.types.is_string(array.type) or pa.types.is_binary(array.type):
            whole = array.fill_null("" if pa.types.is_string(array.type) else b"")
            offsets, content = whole.buffers()[1:]
            ends = np.frombuffer(offsets, np.int32)[whole.offset : whole.offset + len(whole) + 1]
            digest.update(np.diff(ends).tobytes())
            digest.update(memoryview(content)[ends[0] : ends[-1]] if content is not None else b"")
        elif pa.types.is_dictionary(array.type):
            of_text = [hashlib.sha256(one.encode()).digest()[:8] for one in array.dictionary.to_pylist()]
            signs = np.frombuffer(b"".join(of_text) or bytes(8), np.uint64)
            numbers = array.indices.fill_null(0).to_numpy(zero_copy_only=False)
            digest.update(signs[numbers].tobytes())
        else:
            digest.update(array.fill_null(0).to_numpy(zero_copy_only=False).tobytes())


def row_groups(place: Place, path: str, span: Span | None = None, repeated: Sequence[str] = ()) -> Iterator[Any]:
    """Yield the row groups of a file, or those of some runs, as Arrow tables; ``repeated`` texts stay numbers."""
    try:
        with reading_file(place, path) as stream:
            file = pq.ParquetFile(stream, read_dictionary=list(repeated))
            numbers = range(file.num_row_groups) if span is None else range(span.first, span.first + span.groups)
            for number in numbers:
                yield file.read_row_group(number)
    except pa.ArrowException as error:
        raise ServiceError(f"{place.address}/{path} is damaged ({error}); nothing was changed in the store") from None


def require_whole(place: Place, path: str, expected: dict[str, Any]) -> None:
    """Read a file from its place; raise `ServiceError` unless it has the rows and values that were written."""
    digest, rows = hashlib.sha256(), 0
    for table in row_groups(place, path, repeated=expected.get("repeated", ())):
        _add_values(digest, table)
        rows += table.num_rows
    found = {"rows": rows, "values_sha256": digest.hexdigest()}
    wanted = {name: expected[name] for name in found}
    if found != wanted:
        raise ServiceError(
            f"{place.address}/{path} differs from what was written: {rows:,} rows of {expected['rows']:,}, checksum "
            f"{digest.hexdigest()[:12]} instead of {expected['values_sha256'][:12]}; nothing was changed in the store"
        )
