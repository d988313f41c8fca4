"""Reads the tables of a Nsight Systems database row by row, and looks up names."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache

from profsvc.formats.parsing.copy_kinds import copy_kind
from profsvc.formats.parsing.embedded_tables import Rows
from profsvc.formats.parsing.sqlite_file import Database, Row

MAX_CACHED_STRINGS = 20_000
MAX_NAME_ROWS = 10_000
_PUSH_POP, _START_END, _MARK, _DOMAIN = (59, 70), (60, 71), 34, 75
RANGE_EVENT_TYPES = (*_PUSH_POP, *_START_END, _MARK)
KERNELS, COPIES, MEMSETS, CALLS, NVTX, GRAPHS_TABLE = (
    "CUPTI_ACTIVITY_KIND_KERNEL",
    "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUPTI_ACTIVITY_KIND_MEMSET",
    "CUPTI_ACTIVITY_KIND_RUNTIME",
    "NVTX_EVENTS",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
)
GRAPH_DOMAIN = "CUDA graph"
REQUIRED_COLUMNS: Mapping[str, Sequence[str]] = {
    KERNELS: ("start", "end", "deviceId", "demangledName", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"),
    COPIES: ("start", "end", "bytes", "copyKind"),
    MEMSETS: ("start", "end", "bytes"),
    CALLS: ("start", "end", "nameId"),
    NVTX: ("start", "end", "eventType", "text"),
    GRAPHS_TABLE: ("start", "end"),
}
METRICS = {
    "registersPerThread": "register/thread",
    "staticSharedMemory": "byte/block",
    "dynamicSharedMemory": "byte/block",
    "localMemoryPerThread": "byte/thread",
    "sharedMemoryExecuted": "byte/block",
}
# Columns of a launch -> the metrics that they also hold.
METRIC_OF_LAUNCH_COLUMN = {
    "registers_per_thread": "registersPerThread",
    "shared_mem_static_bytes": "staticSharedMemory",
    "shared_mem_dynamic_bytes": "dynamicSharedMemory",
}
OPTIONAL_COLUMNS: Mapping[str, Sequence[str]] = {
    KERNELS: ("contextId", "streamId", "correlationId", "globalPid", *METRICS),
    COPIES: ("deviceId", "contextId", "streamId", "globalPid", "srcKind", "dstKind"),
    MEMSETS: ("deviceId", "contextId", "streamId", "globalPid", "memKind"),
    CALLS: ("globalTid", "correlationId"),
    NVTX: ("textId", "domainId", "globalTid"),
    GRAPHS_TABLE: ("graphId", "globalPid"),
}
HOSTS = "TARGET_INFO_SYSTEM_ENV"
_VM_SHIFT = 48  # a serialized identifier of a process or a target begins with the machine
# The names in the tool's own tables, for exports without these tables.
_COPY_LABELS = dict(
    enumerate(("unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"))
) | {
    11: "unified HtoD",
    12: "unified DtoH",
    13: "unified DtoD",
}
_MEMORY_LABELS = dict(enumerate(("Pageable", "Pinned", "Device", "Array", "Managed", "Device Static")))


class NameTables:
    """Names of the strings, processes and devices that rows refer to by number."""

    def __init__(self, database: Database) -> None:
        """Read the small tables of names; strings are looked up when needed."""
        self.database = database
        has_strings = {"id", "value"} <= set(database.columns("StringIds"))
        self.string = lru_cache(MAX_CACHED_STRINGS)(self._string if has_strings else self._no_string)
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
        self.hosts = self._hosts()
        self.one_host = next(iter(self.hosts.values())) if len({*self.hosts.values()}) == 1 else None

    def _rows(self, table: str, *columns: str, where: str = "") -> Iterator[tuple[object, ...]]:
        for _, row in zip(range(MAX_NAME_ROWS), self.database.rows(table, columns, where), strict=False):
            yield row

    def _pairs(self, table: str, *columns: str, where: str = "") -> Iterator[tuple[int, object]]:
        return ((row[0], row[1]) for row in self._rows(table, *columns, where=where) if isinstance(row[0], int))

    def _labels(self, table: str) -> dict[int, str]:
        return {key: str(label) for key, label in self._pairs(table, "id", "label") if label}

    def _string(self, number: int) -> str:
        row = self.database.row_by_id("StringIds", ("value",), number)
        if row is None or not isinstance(row[0], str):
            raise ValueError(f"it refers to string {number}, which StringIds lacks")
        return row[0]

    def _no_string(self, number: int) -> str:
        raise ValueError(f"it refers to string {number}, but the table StringIds is missing")

    def _domains(self) -> dict[tuple[int | None, int], str]:
        columns = ("domainId", "text", "textId", "globalTid")
        found: dict[tuple[int | None, int], str] = {}
        if {"eventType", "domainId"} <= set(self.database.columns(NVTX)):
            for values in self._rows(NVTX, *columns, where=f'WHERE "eventType" = {_DOMAIN}'):
                row = Row(columns, values)
                try:
                    found[row.process(), row.must("domainId")] = self.text_of(row)
                except ValueError:
                    continue
        return found

    def _hosts(self) -> dict[int | None, str]:
        """Return the names of the machines that were recorded."""
        if "name" not in self.database.columns(HOSTS):
            return {}
        found = self._rows(HOSTS, "globalVid", "value", where="WHERE \"name\" = 'Hostname'")
        return {vid >> _VM_SHIFT if isinstance(vid, int) else None: str(host) for vid, host in found if host}

    def text_of(self, row: Row) -> str:
        """Return the text of an NVTX row."""
        text, number = row.text("text"), row.whole("textId")
        return self.string(number) if text is None and number is not None else text or ""

    def process(self, row: Row) -> str | None:
        """Return the name of the process of a row."""
        process = row.process()
        return None if process is None else self.processes.get(process)

    def host(self, row: Row) -> str | None:
        """Return the host of a row: the one of the file, or of several that of its process."""
        process = row.whole("globalPid")
        return self.one_host or (None if process is None else self.hosts.get(process >> _VM_SHIFT))

    def _gpu(self, row: Row) -> object:
        index = row.whole("deviceId")
        return self.visible.get((row.process(), index), None if index is None else self.by_cuda.get(index))

    def device(self, row: Row) -> dict[str, object]:
        """Return the device, process, context and stream of a row."""
        index, process = row.whole("deviceId"), row.process()
        gpu = self._gpu(row)
        name = self.gpus[gpu][0] if gpu in self.gpus else None
        place: dict[str, object] = {"device_index": index, "device": name, "process_id": process}
        return {**place, "context": row.whole("contextId"), "stream": row.whole("streamId")}

    def capability(self, row: Row) -> str | None:
        """Return the compute capability of the device of a row."""
        gpu = self._gpu(row)
        return self.gpus[gpu][1] if gpu in self.gpus else None


def _take_kernel(row: Row, names: NameTables, line: int, rows: Rows) -> bool:
    correlation = row.whole("correlationId")
    shape = {f"{part}_{axis}": row.whole(f"{part}{axis.upper()}") for part in ("grid", "block") for axis in "xyz"}
    launch = {
        **row.span(),
        **names.device(row),
        **shape,
        "kernel": names.string(row.must("demangledName")),
        "correlation_id": correlation,
        "process_name": names.process(row),
        "host": names.host(row),
        "compute_capability": names.capability(row),
        **{column: row.whole(name) for column, name in METRIC_OF_LAUNCH_COLUMN.items()},
        "line": line,
    }
    figures = [(name, unit, row.whole(name)) for name, unit in METRICS.items()]
    metrics = [
        {"metric": f"sql:{KERNELS}.{name}", "raw_text": str(value), "value": float(value), "si_unit": unit}
        for name, unit, value in figures
        if value is not None
    ]
    rows.add_launch(launch, metrics)
    return True


def _take_copy(row: Row, names: NameTables, line: int, rows: Rows) -> bool:
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


def _take_set(row: Row, names: NameTables, line: int, rows: Rows) -> bool:
    memory = row.whole("memKind")
    target = None if memory is None else names.memories.get(memory)
    place = {**row.span(), **names.device(row), "target_memory": target, "line": line}
    rows.add("transfers", {**place, "kind": "memset", "bytes": row.whole("bytes")})
    return True


def _take_call(row: Row, names: NameTables, line: int, rows: Rows) -> bool:
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


def _take_range(row: Row, names: NameTables, line: int, rows: Rows) -> bool:
    kind, process = row.must("eventType"), row.process()
    if kind not in RANGE_EVENT_TYPES:
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


def graph_name(row: Row) -> str:
    """Return the name of a CUDA graph that was recorded as a whole."""
    number = row.whole("graphId")
    return GRAPH_DOMAIN if number is None else f"{GRAPH_DOMAIN} {number}"


def _take_graph(row: Row, names: NameTables, line: int, rows: Rows) -> bool:
    found = {"name": graph_name(row), "domain": GRAPH_DOMAIN, "process_id": row.process(), "line": line}
    rows.add("ranges", {**row.span(), **found})
    return True


RowReader = Callable[[Row, NameTables, int, Rows], bool]
ROW_READERS: Mapping[str, RowReader] = {
    KERNELS: _take_kernel,
    COPIES: _take_copy,
    MEMSETS: _take_set,
    CALLS: _take_call,
    NVTX: _take_range,
    GRAPHS_TABLE: _take_graph,
}
