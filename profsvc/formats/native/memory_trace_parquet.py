"""Memory traces as Parquet files, read in batches of rows; invalid rows are rejected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt

from profsvc.errors import BrokenInputError
from profsvc.formats.native.memory_references import KINDS, Sites, check_columns, out_of_range, range_of, trace_of
from profsvc.formats.parsing import unpacked_copies
from profsvc.formats.parsing.ledger import Ledger
from profsvc.formats.parsing.records import MAX_TEXT_CHARS
from profsvc.formulas.memory_hierarchy import Trace
from profsvc.tables import Batch
from profsvc.tables.on_demand import pa

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

MAGIC = b"PAR1"
BATCH_ROWS = 1 << 18
MAX_COLUMN_BYTES = 1 << 30
REWRITE_HINT = "write it again with row groups of about a million rows"


def sniff(head: bytes) -> bool:
    """Tell whether ``head`` begins a Parquet file."""
    return head[:4] == MAGIC


@contextmanager
def _seekable(stream: BinaryIO) -> Iterator[IO[bytes]]:
    if stream.seekable():
        yield cast("IO[bytes]", stream)
        return
    with unpacked_copies.spooled_file() as file:
        unpacked_copies.copy(stream, cast("IO[bytes]", file))
        file.seek(0)
        yield cast("IO[bytes]", file)


def read(stream: BinaryIO, sites: Sites) -> Iterator[tuple[Trace | None, Batch]]:
    """Yield the references of a Parquet file, and the counts of its rows."""
    from pyarrow.parquet import ParquetFile  # its import takes memory, and few files need it

    with _seekable(stream) as file:
        try:
            source = ParquetFile(pa.PythonFile(file, mode="r"), memory_map=False, pre_buffer=False)
            names = source.schema_arrow.names
            check_columns(names, "the Parquet file")
            _check_row_groups(source)
            facts = {**_facts(source.schema_arrow.metadata), "encoding": "parquet"}
            line, ledger = 0, Ledger()
            for batch in source.iter_batches(batch_size=BATCH_ROWS, use_threads=False):
                trace = _trace(batch, line, ledger, sites)
                line += batch.num_rows
                yield trace, ledger.batch({}, facts)
        except (pa.ArrowException, OSError, ValueError, EOFError) as error:
            if isinstance(error, BrokenInputError):
                raise
            words = " ".join(str(error).split())[:200]
            raise BrokenInputError(f"the Parquet file cannot be read ({words}); {REWRITE_HINT}") from None
        yield None, Batch(facts=facts)


def _check_row_groups(source: ParquetFile) -> None:
    """Refuse large row groups: a column of a row group is held in memory as a whole."""
    whole = source.metadata
    for group in range(whole.num_row_groups):
        for place in range(whole.num_columns):
            if (size := whole.row_group(group).column(place).total_uncompressed_size) > MAX_COLUMN_BYTES:
                raise BrokenInputError(f"row group {group} has a column of {size >> 20} MiB; {REWRITE_HINT}")


def _facts(metadata: Mapping[bytes, bytes] | None) -> dict[str, str]:
    """Return the facts in the metadata of the file."""
    texts = {name: (metadata or {}).get(name.encode(), b"") for name in ("device", "kernel")}
    return {
        name: text.decode("utf-8", "replace").strip()[:MAX_TEXT_CHARS] for name, text in texts.items() if text.strip()
    }


def _trace(batch: pa.RecordBatch, line: int, ledger: Ledger, sites: Sites) -> Trace:
    """Return the valid rows of a batch; reject the others."""
    bad: dict[int, str] = {}
    columns = {name: _column(name, batch.column(name), sites, bad) for name in batch.schema.names}
    for row, reason in sorted(bad.items()):
        shown = str(batch.slice(row, 1).to_pylist()[0])[:MAX_TEXT_CHARS]
        ledger.reject(line + row + 1, shown, reason)
    good = np.ones(batch.num_rows, dtype=np.bool_)
    good[list(bad)] = False
    ledger.stored += int(good.sum())
    return trace_of({name: values[good] if bad else values for name, values in columns.items()})


def _column(name: str, column: pa.Array, sites: Sites, bad: dict[int, str]) -> npt.NDArray[Any]:
    """Return a column as numbers; add invalid rows to ``bad`` with the reason."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    if not is_text and not pa.types.is_integer(column.type):
        raise BrokenInputError(f"column {name} is {column.type}; allowed: whole numbers, or texts in site and kind")
    if is_text and name not in ("site", "kind"):
        raise BrokenInputError(f"column {name} has texts; allowed: whole numbers")
    for row in np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False)):
        bad.setdefault(int(row), f"{name} is null")
    if name == "site" or is_text:
        return _text_numbers(name, column.cast(pa.string()), sites, bad)
    wide = column.fill_null(0) if column.null_count else column
    if pa.types.is_uint64(wide.type):
        wide = pa.compute.min_element_wise(wide, pa.scalar(2**63 - 1, pa.uint64()))
    values: npt.NDArray[Any] = wide.cast(pa.int64()).to_numpy(zero_copy_only=False)
    wrong = (values < 0) | (values > 2) if name == "kind" else out_of_range(name, values)
    for row in np.flatnonzero(wrong):
        allowed = "0 (load), 1 (store), 2 (atomic)" if name == "kind" else range_of(name)
        bad.setdefault(int(row), f"{name} is {column[int(row)]}; allowed: {allowed}")
    return values


def _text_numbers(name: str, column: pa.Array, sites: Sites, bad: dict[int, str]) -> npt.NDArray[np.int64]:
    """Return the numbers of texts; add invalid rows to ``bad`` with the reason."""
    coded = column.fill_null("").dictionary_encode()
    texts = [str(text).strip() for text in coded.dictionary.to_pylist()]
    if name == "site":
        known = np.array([sites[text] if text else -1 for text in texts], dtype=np.int64)
    else:
        known = np.array([KINDS.get(text.lower(), -1) for text in texts], dtype=np.int64)
    values: npt.NDArray[np.int64] = known[coded.indices.to_numpy(zero_copy_only=False)]
    for row in np.flatnonzero(values < 0):
        allowed = "a non-empty text" if name == "site" else "load, store, atomic"
        bad.setdefault(int(row), f"{name} is {str(column[int(row)])!r}; allowed: {allowed}")
    return np.maximum(values, 0)
