"""Reader of the SQLite databases that ``nsys export`` writes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import BinaryIO

from profsvc.errors import BrokenInputError
from profsvc.formats.csv_tables import Rows
from profsvc.formats.ncu_lines import REJECT, ROW, SKIP, TEXT_LIMIT, Record
from profsvc.formats.nsys import TOOL, copy_kind
from profsvc.formats.sqlite_file import Database, opened
from profsvc.tables import Batch

NAME = "nsys-sqlite"
PAGE = """\
The SQLite database of a Nsight Systems report.

Make it from a report:
    nsys profile -o REPORT PROGRAM
    nsys export --type sqlite -o FILE.sqlite REPORT.nsys-rep

Taken: kernels as launches, copies and memsets as transfers, calls of the CUDA runtime and driver, and NVTX ranges and
marks; from the tables CUPTI_ACTIVITY_KIND_KERNEL, _MEMCPY, _MEMSET, _RUNTIME and NVTX_EVENTS. A table that is not
there holds nothing: the tool writes a table only where it has rows. The version of the export schema must be 2 or 3.

The lines of such a file are the rows of all its tables: rows of the tables above are stored; NVTX rows that are no
range or mark, and the rows of all other tables, are skipped. Where a line is asked for, it is the number of the row in
its table.

Example (what sqlite3 prints):
    sqlite> select name, value from META_DATA_EXPORT where name = 'EXPORT_SCHEMA_VERSION';
    EXPORT_SCHEMA_VERSION|3.16.1
    sqlite> select start, end, gridX, blockX from CUPTI_ACTIVITY_KIND_KERNEL limit 1;
    1959533099|1959604428|336|256
"""

_MAGIC = b"SQLite format 3\0"
_MARKS = (b"META_DATA_EXPORT", b"EXPORT_META_DATA", b"CUPTI_ACTIVITY_KIND_", b"TARGET_INFO_SYSTEM_ENV")
_SCHEMAS = (2, 3)
_META = "META_DATA_EXPORT"
_STRINGS = 20_000
_NAMES = 10_000
_PUSH_POP, _START_END, _MARK, _DOMAIN = (59, 70), (60, 71), 34, 75
_KERNEL, _COPY, _SET, _CALL, _NVTX = (
    "CUPTI_ACTIVITY_KIND_KERNEL",
    "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUPTI_ACTIVITY_KIND_MEMSET",
    "CUPTI_ACTIVITY_KIND_RUNTIME",
    "NVTX_EVENTS",
)
_NEEDED: Mapping[str, Sequence[str]] = {
    _KERNEL: ("start", "end", "deviceId", "demangledName", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"),
    _COPY: ("start", "end", "bytes", "copyKind"),
    _SET: ("start", "end", "bytes"),
    _CALL: ("start", "end", "nameId"),
    _NVTX: ("start", "end", "eventType", "text"),
}
_METRICS = {
    "registersPerThread": "register/thread",
    "staticSharedMemory": "byte/block",
    "dynamicSharedMemory": "byte/block",
    "localMemoryPerThread": "byte/thread",
    "sharedMemoryExecuted": "byte/block",
}
# Columns of a launch that hold some of them too.
_OWN = {
    "registers_per_thread": "registersPerThread",
    "shared_mem_static_bytes": "staticSharedMemory",
    "shared_mem_dynamic_bytes": "dynamicSharedMemory",
}
_USED: Mapping[str, Sequence[str]] = {
    _KERNEL: ("contextId", "streamId", "correlationId", "globalPid", *_METRICS),
    _COPY: ("deviceId", "contextId", "streamId", "globalPid", "srcKind", "dstKind"),
    _SET: ("deviceId", "contextId", "streamId", "globalPid", "memKind"),
    _CALL: ("globalTid", "correlationId"),
    _NVTX: ("textId", "domainId", "globalTid"),
}
# What the tool's own tables of names say, for exports without them.
_COPY_LABELS = dict(
    enumerate(("unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"))
) | {
    11: "unified HtoD",
    12: "unified DtoH",
    13: "unified DtoD",
}
_MEMORY_LABELS = dict(enumerate(("Pageable", "Pinned", "Device", "Array", "Managed", "Device Static")))


def _again() -> str:
    return "export the report again with: nsys export --type sqlite REPORT.nsys-rep"


def sniff(head: bytes) -> bool:
    """Tell whether ``head`` begins a database with tables of Nsight Systems."""
    return head.startswith(_MAGIC) and any(mark in head for mark in _MARKS)


class _Row:
    """One row: its values by column; a value of a wrong kind raises `ValueError`."""

    def __init__(self, columns: Sequence[str], values: Sequence[object]) -> None:
        self.values = dict(zip(columns, values, strict=True))

    def whole(self, name: str) -> int | None:
        value = self.values.get(name)
        if value is not None and not isinstance(value, int):
            raise ValueError(f"{name} is {str(value)[:40]!r}, not a whole number")
        return value

    def must(self, name: str) -> int:
        value = self.whole(name)
        if value is None:
            raise ValueError(f"{name} is NULL")
        return value

    def text(self, name: str) -> str | None:
        value = self.values.get(name)
        if value is not None and not isinstance(value, str):
            raise ValueError(f"{name} is {str(value)[:40]!r}, not text")
        return value

    def span(self) -> dict[str, object]:
        start, end = self.must("start"), self.whole("end")
        if end is not None and end < start:
            raise ValueError(f"it ends at {end}, before it starts at {start}")
        return {"start_ns": start, "duration_ns": None if end is None else float(end - start)}

    def process(self) -> int | None:
        """Return the process of a serialized identifier, which stands above the 24 bits of the thread."""
        found = self.whole("globalPid")
        found = self.whole("globalTid") if found is None else found
        return None if found is None else (found >> 24) & 0xFFFFFF

    def thread(self) -> int | None:
        found = self.whole("globalTid")
        return None if found is None else found & 0xFFFFFF


class _Names:
    """What numbers of the database stand for."""

    def __init__(self, database: Database) -> None:
        self.database = database
        has_strings = {"id", "value"} <= set(database.columns("StringIds"))
        self.string = lru_cache(_STRINGS)(self._string if has_strings else self._no_string)
        self.copies = self._labels("ENUM_CUDA_MEMCPY_OPER") or _COPY_LABELS
        self.memories = self._labels("ENUM_CUDA_MEM_KIND") or _MEMORY_LABELS
        self.processes = {key: str(name) for key, name in self._pairs("PROCESSES", "pid", "name") if name is not None}
        self.gpus: dict[object, tuple[str | None, str | None]] = {}
        self.by_cuda: dict[int, int] = {}
        for gpu, cuda, name, major, minor in self._rows(
            "TARGET_INFO_GPU", "id", "cuDevice", "name", "computeMajor", "computeMinor"
        ):
            if isinstance(gpu, int):
                capability = f"{major}.{minor}" if isinstance(major, int) and isinstance(minor, int) else None
                self.gpus[gpu] = (str(name) if name else None, capability)
                self.by_cuda[cuda if isinstance(cuda, int) else gpu] = gpu
        self.visible = {
            (pid, cuda): gpu for gpu, cuda, pid in self._rows("TARGET_INFO_CUDA_DEVICE", "gpuId", "cudaId", "pid")
        }
        self.nvtx_domains = self._domains()

    def _rows(self, table: str, *columns: str, where: str = "") -> Iterator[tuple[object, ...]]:
        for _, row in zip(range(_NAMES), self.database.rows(table, columns, where), strict=False):
            yield row

    def _pairs(self, table: str, *columns: str, where: str = "") -> Iterator[tuple[int, object]]:
        return ((row[0], row[1]) for row in self._rows(table, *columns, where=where) if isinstance(row[0], int))

    def _labels(self, table: str) -> dict[int, str]:
        return {key: str(label) for key, label in self._pairs(table, "id", "label") if label}

    def _string(self, number: int) -> str:
        row = self.database.one('SELECT "value" FROM "StringIds" WHERE "id" = ?', number)
        if row is None or not isinstance(row[0], str):
            raise ValueError(f"it names string {number}, which StringIds does not hold")
        return row[0]

    def _no_string(self, number: int) -> str:
        raise ValueError(f"it names string {number}, but there is no table StringIds")

    def _domains(self) -> dict[tuple[int | None, int], str]:
        columns = ("domainId", "text", "textId", "globalTid")
        found: dict[tuple[int | None, int], str] = {}
        if {"eventType", "domainId"} <= set(self.database.columns(_NVTX)):
            for values in self._rows(_NVTX, *columns, where=f'WHERE "eventType" = {_DOMAIN}'):
                row = _Row(columns, values)
                try:
                    found[row.process(), row.must("domainId")] = self.text_of(row)
                except ValueError:
                    continue
        return found

    def text_of(self, row: _Row) -> str:
        """Return the text of an NVTX row."""
        text, number = row.text("text"), row.whole("textId")
        return self.string(number) if text is None and number is not None else text or ""

    def _gpu(self, row: _Row) -> object:
        index = row.whole("deviceId")
        return self.visible.get((row.process(), index), None if index is None else self.by_cuda.get(index))

    def device(self, row: _Row) -> dict[str, object]:
        """Return the columns that say where a row ran."""
        index, process = row.whole("deviceId"), row.process()
        gpu = self._gpu(row)
        name = self.gpus[gpu][0] if gpu in self.gpus else None
        place: dict[str, object] = {"device_index": index, "device": name, "process_id": process}
        return {**place, "context": row.whole("contextId"), "stream": row.whole("streamId")}

    def capability(self, row: _Row) -> str | None:
        """Return the compute capability of the device of a row."""
        gpu = self._gpu(row)
        return self.gpus[gpu][1] if gpu in self.gpus else None


def _take_kernel(row: _Row, names: _Names, line: int, rows: Rows) -> bool:
    process, correlation = row.process(), row.whole("correlationId")
    shape = {f"{part}_{axis}": row.whole(f"{part}{axis.upper()}") for part in ("grid", "block") for axis in "xyz"}
    launch = {
        **row.span(),
        **names.device(row),
        **shape,
        "kernel": names.string(row.must("demangledName")),
        "correlation_id": correlation,
        "process_name": None if process is None else names.processes.get(process),
        "compute_capability": names.capability(row),
        **{column: row.whole(name) for column, name in _OWN.items()},
        "line": line,
    }
    figures = [(name, unit, row.whole(name)) for name, unit in _METRICS.items()]
    metrics = [
        {"metric": f"sql:{_KERNEL}.{name}", "raw_text": str(value), "value": float(value), "si_unit": unit}
        for name, unit, value in figures
        if value is not None
    ]
    rows.add_launch(launch, metrics)
    return True


def _take_copy(row: _Row, names: _Names, line: int, rows: Rows) -> bool:
    source, target, kind = row.whole("srcKind"), row.whole("dstKind"), row.must("copyKind")
    transfer = {
        **row.span(),
        **names.device(row),
        "kind": copy_kind(names.copies.get(kind, f"kind {kind}")),
        "bytes": row.whole("bytes"),
        "source_memory": None if source is None else names.memories.get(source),
        "target_memory": None if target is None else names.memories.get(target),
        "line": line,
    }
    rows.add("transfers", transfer)
    return True


def _take_set(row: _Row, names: _Names, line: int, rows: Rows) -> bool:
    memory = row.whole("memKind")
    target = None if memory is None else names.memories.get(memory)
    place = {**row.span(), **names.device(row), "target_memory": target, "line": line}
    rows.add("transfers", {**place, "kind": "memset", "bytes": row.whole("bytes")})
    return True


def _take_call(row: _Row, names: _Names, line: int, rows: Rows) -> bool:
    call = {
        **row.span(),
        "name": names.string(row.must("nameId")),
        "process_id": row.process(),
        "thread_id": row.thread(),
        "correlation_id": row.whole("correlationId"),
        "line": line,
    }
    rows.add("api_calls", call)
    return True


def _take_range(row: _Row, names: _Names, line: int, rows: Rows) -> bool:
    kind, process = row.must("eventType"), row.process()
    if kind not in (*_PUSH_POP, *_START_END, _MARK):
        return False
    found = {
        **row.span(),
        "name": names.text_of(row),
        "domain": names.nvtx_domains.get((process, row.whole("domainId") or 0)),
        "process_id": process,
        "thread_id": row.thread(),
        "line": line,
    }
    rows.add("ranges", found)
    return True


Take = Callable[[_Row, _Names, int, Rows], bool]
_TAKE: Mapping[str, Take] = {
    _KERNEL: _take_kernel,
    _COPY: _take_copy,
    _SET: _take_set,
    _CALL: _take_call,
    _NVTX: _take_range,
}


def _facts(database: Database) -> dict[str, str]:
    """Return the versions in the database; refuse a schema that this reader was not made for."""
    there = {str(key): str(value) for key, value in database.rows(_META, ("name", "value"))}
    version = there.get("EXPORT_SCHEMA_VERSION", "")
    major = version.split(".")[0]
    known = " or ".join(f"{number}.x" for number in _SCHEMAS)
    if not version:
        raise BrokenInputError(
            f"the database has no EXPORT_SCHEMA_VERSION in {_META}, so its columns could mean anything; {known} can be "
            f"read; with a newer Nsight Systems, {_again()}"
        )
    if major not in map(str, _SCHEMAS):
        raise BrokenInputError(
            f"the database has the export schema {version[:40]}, but {known} can be read; with another version of "
            f"Nsight Systems, {_again()}"
        )
    facts = {"tool": TOOL, "schema_version": version}
    if "EXPORT_PRODUCT_VERSION" in there:
        facts["tool_version"] = there["EXPORT_PRODUCT_VERSION"]
    return facts


def _check_columns(database: Database, version: str) -> None:
    for table, needed in _NEEDED.items():
        there = database.columns(table)
        if there and (missing := [name for name in needed if name not in there]):
            raise BrokenInputError(
                f"table {table} lacks the column {missing[0]}, which export schema {version} should have; {_again()}"
            )


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read the tables of a database one after the other."""
    with opened(stream, _again) as database:
        facts = _facts(database)
        _check_columns(database, facts["schema_version"])
        names, rows = _Names(database), Rows()
        for table, take in _TAKE.items():
            columns = (*_NEEDED[table], *_USED[table])
            for line, values in enumerate(database.rows(table, columns), 1):
                rows.ledger.take(_record(table, take, _Row(columns, values), names, line, rows))
                if rows.full:
                    yield rows.batch()
        rows.ledger.skipped += sum(database.count(table) for table in database.tables if table not in _TAKE)
        facts["tables"] = ", ".join(table for table in _TAKE if table in database.tables)
        message = "" if facts["tables"] else "the database holds no kernel, copy, call or range"
        yield rows.batch(facts, message)


def _record(table: str, take: Take, row: _Row, names: _Names, line: int, rows: Rows) -> Record:
    try:
        kind = ROW if take(row, names, line, rows) else SKIP
    except ValueError as error:
        return Record(REJECT, line, 1, str(row.values)[:TEXT_LIMIT], [], f"{table}: {error}")
    return Record(kind, line, 1, "", [])
