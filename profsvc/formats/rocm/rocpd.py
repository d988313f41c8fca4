"""Reader of the SQLite databases that rocprofv3 and rocprof-sys write since ROCm 7 (rocpd)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import BinaryIO

from profsvc.errors import BrokenInputError
from profsvc.formats.parsing.copy_kinds import copy_kind
from profsvc.formats.parsing.embedded_tables import Rows
from profsvc.formats.parsing.records import MAX_TEXT_CHARS, REJECT, ROW, Record
from profsvc.formats.parsing.sqlite_file import Database, Row, open_database
from profsvc.tables import Batch

NAME = "rocprof-sqlite"

TOOL = "rocprof"
_MAGIC = b"SQLite format 3\0"
_KERNELS, _COPIES, _REGIONS = "rocpd_kernel_dispatch", "rocpd_memory_copy", "rocpd_region"
_AXES = "xyz"
_COLUMNS: Mapping[str, Sequence[str]] = {
    _KERNELS: (
        *("start", "end", "pid", "agent_id", "kernel_id", "dispatch_id", "queue_id", "event_id"),
        *("private_segment_size", "group_segment_size"),
        *(f"{part}_size_{axis}" for part in ("workgroup", "grid") for axis in _AXES),
    ),
    _COPIES: ("start", "end", "pid", "name_id", "size", "src_agent_id", "dst_agent_id", "queue_id"),
    _REGIONS: ("start", "end", "pid", "tid", "name_id", "event_id"),
}
_SYMBOL = ("display_name", "kernel_name", "sgpr_count", "arch_vgpr_count", "accum_vgpr_count")
_AGENT = ("absolute_index", "product_name")
_UNITS: Mapping[str, str | None] = {"private_segment_size": "byte/thread", "group_segment_size": "byte/block"}
_UNSUPPORTED_TABLES = ("rocpd_pmc_event", "rocpd_sample", "rocpd_memory_allocate")
MAX_CACHED_NAMES = 20_000


def _profile_hint() -> str:
    return "profile again with rocprofv3, or upload a complete copy of its file"


def sniff(head: bytes) -> bool:
    """Return whether ``head`` begins a database with tables of rocpd."""
    return head.startswith(_MAGIC) and b"rocpd_info_" in head


class _Names:
    """Names that rows of one process refer to by number; ``end`` is the suffix of its tables."""

    def __init__(self, database: Database, end: str) -> None:
        self.database, self.end = database, end
        self.row = lru_cache(MAX_CACHED_NAMES)(self._row)
        self.string = lru_cache(MAX_CACHED_NAMES)(self._string)

    def _row(self, table: str, columns: tuple[str, ...], number: int | None) -> Row | None:
        """Return some columns of a row by its number."""
        if number is None:
            return None
        found = self.database.row_by_id(table + self.end, columns, number)
        return None if found is None else Row(columns, found)

    def _one(self, table: str, column: str, number: int | None) -> object:
        row = None if number is None else self.database.row_by_id(table + self.end, (column,), number)
        return None if row is None else row[0]

    def _string(self, number: int | None) -> str:
        text = self._one("rocpd_string", "string", number)
        if not isinstance(text, str) or not text:
            raise ValueError(f"it refers to string {number}, which rocpd_string lacks")
        return text

    def correlation(self, row: Row) -> int | None:
        found = self._one("rocpd_event", "correlation_id", row.whole("event_id"))
        return found if isinstance(found, int) else None

    def category(self, row: Row) -> str:
        found = self._one("rocpd_event", "category_id", row.whole("event_id"))
        return self.string(found) if isinstance(found, int) else ""

    def agent(self, row: Row, column: str) -> tuple[int | None, str | None]:
        found = self.row("rocpd_info_agent", _AGENT, row.whole(column))
        return (found.whole("absolute_index"), found.text("product_name") or None) if found else (None, None)

    def process(self, row: Row) -> int | None:
        """Return the process ID of the operating system."""
        found = self.row("rocpd_info_process", ("pid",), row.whole("pid"))
        return found.whole("pid") if found else None

    def thread(self, row: Row) -> int | None:
        """Return the thread ID of the operating system."""
        found = self.row("rocpd_info_thread", ("tid",), row.whole("tid"))
        return found.whole("tid") if found else None


def _take_kernel(row: Row, names: _Names, line: int, rows: Rows) -> None:
    symbol = names.row("rocpd_info_kernel_symbol", _SYMBOL, row.must("kernel_id"))
    kernel = symbol and (symbol.text("display_name") or symbol.text("kernel_name"))
    if not symbol or not kernel:
        raise ValueError(f"kernel {row.whole('kernel_id')} has no name")
    shape: dict[str, object] = {}
    for axis in _AXES:
        group, items = row.must(f"workgroup_size_{axis}"), row.must(f"grid_size_{axis}")
        if group < 1 or items < 0:
            raise ValueError(f"the work group is {group} in {axis}, the grid {items}")
        shape |= {f"block_{axis}": group, f"grid_{axis}": -(-items // group)}
    device, product = names.agent(row, "agent_id")
    launch = {
        **row.span(),
        **shape,
        "kernel": kernel,
        "source_id": str(row.must("dispatch_id")),
        "correlation_id": names.correlation(row),
        "process_id": names.process(row),
        "device_index": device,
        "device": product,
        "stream": row.whole("queue_id"),
        "line": line,
    }
    figures: list[tuple[str, int | None, str | None]]
    figures = [(f"sql:{_KERNELS}.{name}", row.whole(name), unit) for name, unit in _UNITS.items()]
    figures += [(f"sql:rocpd_info_kernel_symbol.{name}", symbol.whole(name), None) for name in _SYMBOL[2:]]
    metrics = [
        {"metric": metric, "raw_text": str(value), "value": float(value), "si_unit": unit}
        for metric, value, unit in figures
        if value is not None
    ]
    rows.add_launch(launch, metrics)


def _take_copy(row: Row, names: _Names, line: int, rows: Rows) -> None:
    words = names.string(row.must("name_id")).upper().removeprefix("MEMORY_COPY_").replace("_TO_", "-to-").lower()
    transfer = {
        **row.span(),
        "kind": copy_kind(words),
        "bytes": row.whole("size"),
        "source_memory": names.agent(row, "src_agent_id")[1],
        "target_memory": names.agent(row, "dst_agent_id")[1],
        "process_id": names.process(row),
        "stream": row.whole("queue_id"),
        "line": line,
    }
    rows.add("transfers", transfer)


def _take_region(row: Row, names: _Names, line: int, rows: Rows) -> None:
    category = names.category(row)
    found = {
        **row.span(),
        "name": names.string(row.must("name_id")),
        "process_id": names.process(row),
        "thread_id": names.thread(row),
        "line": line,
    }
    if category.upper().startswith(("MARKER", "ROCTX")):
        rows.add("ranges", {**found, "domain": category})
    else:
        rows.add("api_calls", {**found, "correlation_id": names.correlation(row)})


_ROW_READERS: Mapping[str, Callable[[Row, _Names, int, Rows], None]] = {
    _KERNELS: _take_kernel,
    _COPIES: _take_copy,
    _REGIONS: _take_region,
}


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read the tables of a database, process by process."""
    with open_database(stream, _profile_hint) as database:
        ends = [table.removeprefix(_KERNELS) for table in database.tables if table.startswith(_KERNELS)]
        if not ends:
            raise BrokenInputError(f"the database has no table {_KERNELS}, which rocpd has; {_profile_hint()}")
        rows, taken = Rows(), set[str]()
        for end in ends:
            names = _Names(database, end)
            for table, take in _ROW_READERS.items():
                taken.add(table + end)
                for line, values in enumerate(database.rows(table + end, _COLUMNS[table]), 1):
                    rows.ledger.add(_record(table, take, Row(_COLUMNS[table], values), names, line, rows))
                    if rows.full:
                        yield rows.batch()
        rows.ledger.skipped += sum(database.count(table) for table in database.tables if table not in taken)
        unread = [table for table in _UNSUPPORTED_TABLES if any(database.count(table + end) for end in ends)]
        said = f"these tables are not supported and were skipped: {', '.join(unread)}" if unread else ""
        yield rows.batch({"tool": TOOL, "layout": "rocpd"}, said)


def _record(
    table: str, take: Callable[[Row, _Names, int, Rows], None], row: Row, names: _Names, line: int, rows: Rows
) -> Record:
    try:
        take(row, names, line, rows)
    except ValueError as error:
        return Record(REJECT, line, 1, str(row.values)[:MAX_TEXT_CHARS], [], f"{table}: {error}")
    return Record(ROW, line, 1, "", [])
