"""The Parquet form of a memory trace: its rows some at a time, and those that are no reference."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from profsvc.errors import BrokenInputError
from profsvc.formats import copies
from profsvc.formats.ncu import Ledger
from profsvc.formats.ncu_lines import REJECT, TEXT_LIMIT, Record
from profsvc.formats.references import KINDS, Sites, check_columns, out_of_range, range_of, trace_of
from profsvc.formulas.memory_hierarchy import Trace
from profsvc.tables import Batch

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

MAGIC = b"PAR1"
ROWS, CHUNK, SPOOL_BYTES = 1 << 18, 1 << 20, 32 << 20
MOST_OF_A_COLUMN = 1 << 30
AGAIN = "write it again, with row groups of a million rows or so"


def sniff(head: bytes) -> bool:
    """Tell whether ``head`` begins a Parquet file."""
    return head[:4] == MAGIC


@contextmanager
def _seekable(stream: BinaryIO) -> Iterator[IO[bytes]]:
    if stream.seekable():
        yield cast("IO[bytes]", stream)
        return
    with copies.spooled() as file:
        copies.copy(stream, cast("IO[bytes]", file))
        file.seek(0)
        yield cast("IO[bytes]", file)


def read(stream: BinaryIO, sites: Sites) -> Iterator[tuple[Trace | None, Batch]]:
    """Yield the references of a Parquet file and the account of its rows."""
    from pyarrow.parquet import ParquetFile  # it costs memory, and few files are of this kind

    with _seekable(stream) as file:
        try:
            source = ParquetFile(pa.PythonFile(file, mode="r"), memory_map=False, pre_buffer=False)
            names = source.schema_arrow.names
            check_columns(names, "the Parquet file")
            _bounded(source)
            facts = {**_notes(source.schema_arrow.metadata), "encoding": "parquet"}
            line, ledger = 0, Ledger()
            for batch in source.iter_batches(batch_size=ROWS, use_threads=False):
                trace = _trace(batch, line, ledger, sites)
                line += batch.num_rows
                yield trace, ledger.batch({}, facts)
        except (pa.ArrowException, OSError, ValueError, EOFError) as error:
            if isinstance(error, BrokenInputError):
                raise
            words = " ".join(str(error).split())[:200]
            raise BrokenInputError(f"the Parquet file cannot be read ({words}); {AGAIN}") from None
        yield None, Batch(facts=facts)


def _bounded(source: "ParquetFile") -> None:
    """Refuse what would not be read in pieces: a column of a row group is taken into the memory as a whole."""
    whole = source.metadata
    for group in range(whole.num_row_groups):
        for place in range(whole.num_columns):
            if (size := whole.row_group(group).column(place).total_uncompressed_size) > MOST_OF_A_COLUMN:
                raise BrokenInputError(f"row group {group} has a column of {size >> 20} MiB; {AGAIN}")


def _notes(metadata: Mapping[bytes, bytes] | None) -> dict[str, str]:
    """Return what the file says of itself."""
    said = {name: (metadata or {}).get(name.encode(), b"") for name in ("device", "kernel")}
    return {name: text.decode("utf-8", "replace").strip()[:TEXT_LIMIT] for name, text in said.items() if text.strip()}


def _trace(batch: pa.RecordBatch, line: int, ledger: Ledger, sites: Sites) -> Trace:
    """Return the good rows of a batch; the others are rejected."""
    bad: dict[int, str] = {}
    columns = {name: _column(name, batch.column(name), sites, bad) for name in batch.schema.names}
    for row, reason in sorted(bad.items()):
        shown = str(batch.slice(row, 1).to_pylist()[0])[:TEXT_LIMIT]
        ledger.take(Record(REJECT, line + row + 1, 1, shown, [], reason))
    good = np.ones(batch.num_rows, dtype=np.bool_)
    good[list(bad)] = False
    ledger.stored += int(good.sum())
    return trace_of({name: values[good] if bad else values for name, values in columns.items()})


def _column(name: str, column: pa.Array, sites: Sites, bad: dict[int, str]) -> npt.NDArray[Any]:
    """Return a column as numbers, and note the rows that have none."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    if not is_text and not pa.types.is_integer(column.type):
        raise BrokenInputError(f"the column {name} holds {column.type}; allowed: whole numbers; or texts in site, kind")
    if is_text and name not in ("site", "kind"):
        raise BrokenInputError(f"the column {name} holds texts; allowed: whole numbers")
    for row in np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False)):
        bad.setdefault(int(row), f"{name} is null")
    if name == "site" or is_text:
        return _texts(name, column.cast(pa.string()), sites, bad)
    wide = column.fill_null(0) if column.null_count else column
    if pa.types.is_uint64(wide.type):
        wide = pc.min_element_wise(wide, pa.scalar(2**63 - 1, pa.uint64()))
    values: npt.NDArray[Any] = wide.cast(pa.int64()).to_numpy(zero_copy_only=False)
    wrong = (values < 0) | (values > 2) if name == "kind" else out_of_range(name, values)
    for row in np.flatnonzero(wrong):
        allowed = "0 (load), 1 (store), 2 (atomic)" if name == "kind" else range_of(name)
        bad.setdefault(int(row), f"{name} is {column[int(row)]}; allowed: {allowed}")
    return values


def _texts(name: str, column: pa.Array, sites: Sites, bad: dict[int, str]) -> npt.NDArray[np.int64]:
    """Return the numbers of texts."""
    coded = column.fill_null("").dictionary_encode()
    texts = [str(text).strip() for text in coded.dictionary.to_pylist()]
    if name == "site":
        known = np.array([sites[text] if text else -1 for text in texts], dtype=np.int64)
    else:
        known = np.array([KINDS.get(text.lower(), -1) for text in texts], dtype=np.int64)
    values: npt.NDArray[np.int64] = known[coded.indices.to_numpy(zero_copy_only=False)]
    for row in np.flatnonzero(values < 0):
        allowed = "a text that is not empty" if name == "site" else "load, store, atomic"
        bad.setdefault(int(row), f"{name} is {str(column[int(row)])!r}; allowed: {allowed}")
    return np.maximum(values, 0)
