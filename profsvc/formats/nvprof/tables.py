"""Converts rows of nvprof tables, CSV or text, to rows of tidy tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from profsvc.formats.nvprof.lines import (
    BANNER,
    EVENTS,
    LAUNCHES,
    MEMORY,
    METRICS,
    SUMMARY,
    SYSTEM,
    TRACE,
    Layout,
    parse_device,
)
from profsvc.formats.nvprof.values import REPLAY_WARNING, Values, split_unit
from profsvc.formats.parsing.ledger import Ledger
from profsvc.formats.parsing.records import MAX_TEXT_CHARS, REJECT, Record
from profsvc.tables import ColumnTable, Table

TOOL = "nvprof"
MAX_REPORTED = 5

# Columns without numbers, so they are no evidence of the number format.
TEXT_COLUMNS = {"Type", "Name", "Kernel", "Device", "Metric Name", "Metric Description", "Event Name", "Grid Size", ""}
TEXT_COLUMNS |= {"Block Size", "SrcMemType", "DstMemType", "Virtual Address", "Unified Memory"}
INTEGER_COLUMNS = {"Invocations", "Calls", "Count", "Context", "Stream", "Correlation_ID", "Registers Per Thread"}
INTEGER_COLUMNS |= {f"{what} {axis}" for what in ("Grid", "Block") for axis in "XYZ"}
# Columns of a launch that are not metrics; peer columns are the ends of a copy between devices.
_LAUNCH_COLUMNS = (
    TEXT_COLUMNS | INTEGER_COLUMNS | {"Start", "Duration", "Size", "Throughput", "Static SMem", "Dynamic SMem"}
)
_LAUNCH_COLUMNS |= {"Src Dev", "Src Ctx", "Dst Dev", "Dst Ctx"}
_REGISTERS = "Registers Per Thread"
_SHARED = {"Static SMem": "shared_mem_static_bytes", "Dynamic SMem": "shared_mem_dynamic_bytes"}
_STATISTICS = {"Min": "min", "Max": "max", "Avg": "avg", "Total": "sum"}

_CORRELATION = re.compile(r"(?<=.) \[([0-9]{1,18})\](?=\)?$)")
_COPY = re.compile(r"\[CUDA (?:memcpy )?(.+)\]")
_UNIFIED = re.compile(r"\[Unified Memory (?:Memcpy )?(.+)\]")
_SIZES = re.compile(r"\(([0-9]{1,10}) ([0-9]{1,10}) ([0-9]{1,10})\)")
_NAME_AND_UNIT = re.compile(r".+ \(([^()]+)\)")
_COUNT_IN_BYTES = re.compile(r"([0-9]+)B")
_NOTHING_PROFILED = re.compile(r"No .+ (?:was|were) profiled\.?")

Row = Mapping[str, str]


@dataclass
class NvprofLedger(Ledger):
    """The line counts of a file, and the warnings of nvprof."""

    errors: list[str] = field(default_factory=list)

    def note_skipped(self, text: str) -> None:
        """Keep a warning or an error of a banner."""
        text = text.strip()
        banner = BANNER.match(text)
        words = text[banner.end() :] if banner else text
        warns = words.startswith(("Warning:", "Error:")) and banner and REPLAY_WARNING not in text
        if (warns or _NOTHING_PROFILED.fullmatch(words)) and len(self.errors) < MAX_REPORTED:
            self.errors.append(words[:300].rstrip("."))


@dataclass
class TableRows:
    """Gathers rows of tidy tables until they fill a batch."""

    values: Values
    rows: dict[str, list[dict[str, object]]] = field(default_factory=dict)
    size: int = 0
    launches: int = 0
    kinds: dict[str, None] = field(default_factory=dict)
    devices: dict[str, None] = field(default_factory=dict)
    boards: dict[str, None] = field(default_factory=dict)
    processes: dict[str, None] = field(default_factory=dict)
    stored: int = 0
    first_reason: str = ""

    def add(self, record: Record, layout: Layout) -> Record:
        """Add a row; return its record, rejected with the reason if it is invalid."""
        row = dict(zip(layout.columns, record.cells, strict=False))
        try:
            if len(record.cells) < len(layout.columns):
                self._metric(record, *record.cells)
                row = {}
            elif layout.kind in (METRICS, EVENTS):
                self._statistics(record, layout, row)
            else:
                taken = {SUMMARY: self._summary, MEMORY: self._memory, SYSTEM: self._system}
                taken.get(layout.kind, self._trace)(record, layout, row)
        except ValueError as error:
            self.first_reason = self.first_reason or f"line {record.line}: {error}"
            return record._replace(kind=REJECT, reason=str(error), text=record.text[:MAX_TEXT_CHARS])
        self.note(layout, [row["Device"]] if row.get("Device") else [], 1)
        return record

    def note(self, layout: Layout, devices: Iterable[str], rows: int) -> None:
        """Note the kinds, processes and devices of stored rows."""
        self.kinds[layout.kind] = None
        self.stored += rows
        if layout.process_name:
            self.processes[layout.process_name] = None
        (self.boards if layout.kind == SYSTEM else self.devices).update(dict.fromkeys(devices))

    def device_names(self) -> list[str]:
        """Return the product names of the devices of the rows.

        The readings of boards list those of the whole system: without other rows they tell the device if all are alike.
        """
        used, boards = (sorted({name for one in found if (name := parse_device(one)[0])})
                        for found in (self.devices, self.boards))  # fmt: skip
        return used or (boards if len(boards) == 1 else [])

    def _put(self, table: str, **row: object) -> None:
        self.rows.setdefault(table, []).append(row)
        self.size += 1

    def _metric(self, record: Record, metric: str, cell: str, unit: str = "", **row: object) -> None:
        value = self.values.read(cell, unit)
        cells = {"raw_text": cell, "unit": value.unit or None, "value": value.value, "si_unit": value.si_unit}
        self._put("metrics", **row, metric=metric, **cells, reason=value.reason, line=record.line)

    def _trace(self, record: Record, layout: Layout, row: Row) -> None:
        unit = dict(zip(layout.columns, layout.units, strict=True))
        name = row.get("Name") or row.get("Kernel") or ""
        if not name:
            raise ValueError("the row has no name")
        start = self.values.time_ns("Start", row.get("Start", ""), unit.get("Start", ""))
        common: dict[str, object] = {
            "start_ns": None if start is None else round(start),
            "duration_ns": self.values.time_ns("Duration", row.get("Duration", ""), unit.get("Duration", "")),
            "process_id": layout.process_id,
            "line": record.line,
        }
        device, index = parse_device(row.get("Device", ""))
        context, stream = (self.values.whole(column, row.get(column, "")) for column in ("Context", "Stream"))
        place: dict[str, object] = {"device": device, "device_index": index, "context": context, "stream": stream}
        if name.startswith("["):
            self._copy(record, name, row, unit, common | place)
        elif layout.kind == LAUNCHES or row.get("Grid X") or row.get("Grid Size"):
            self._launch(record, layout, name, row, unit, common | place)
        elif row.get("Device"):
            raise ValueError("the row has a device, but neither a grid nor the name of a copy")
        else:
            match = _CORRELATION.search(name)
            number = row.get("Correlation_ID") or (match[1] if match else "")
            call = self.values.whole("Correlation_ID", number)
            self._put("api_calls", name=name, correlation_id=call, **common)

    def _copy(self, record: Record, name: str, row: Row, unit: Row, common: Mapping[str, object]) -> None:
        size = self.values.size(row.get("Size", ""), unit.get("Size", ""))
        unified, copy = _UNIFIED.fullmatch(name), _COPY.fullmatch(name)
        if unified:
            cell, faults = row.get("Unified Memory", ""), "Memcpy" not in name
            # The row of units gives bytes for this column, but rows of page faults hold counts.
            column = "" if split_unit(cell)[1] else unit.get("Unified Memory", "")
            size = None if faults else self.values.size(cell, column)
            if faults and cell.isascii() and cell.isdigit():
                self._metric(record, name, cell)
        elif not copy:
            if row.get("Device"):
                raise ValueError(f"{name[:40]!r} is not a known operation")
            kept = {key: common[key] for key in ("start_ns", "duration_ns", "process_id", "line")}
            self._put("ranges", name=name, **kept)
            return
        kind = f"unified memory {unified[1]}" if unified else copy[1] if copy else name
        ends = {"source_memory": row.get("SrcMemType") or None, "target_memory": row.get("DstMemType") or None}
        self._put("transfers", kind=kind, bytes=None if size is None else round(size), **ends, **common)

    def _launch(
        self, record: Record, layout: Layout, name: str, row: Row, unit: Row, common: Mapping[str, object]
    ) -> None:
        match = _CORRELATION.search(name) if not name.endswith(")") else None
        number = row.get("Correlation_ID", "")
        own = match and (not number or number == match[1])
        sizes: dict[str, int | None] = {}
        for what in ("Grid", "Block"):
            cells = _SIZES.fullmatch(row.get(f"{what} Size", ""))
            for place, axis in enumerate("XYZ"):
                cell = cells[place + 1] if cells else row.get(f"{what} {axis}", "")
                sizes[f"{what}_{axis}".lower()] = self.values.whole(f"{what} {axis}", cell)
        if layout.kind == TRACE and None in sizes.values():
            raise ValueError("the grid and the block of a launch need three sizes each")
        resources = {"registers_per_thread": self.values.whole(_REGISTERS, row.get(_REGISTERS, ""))}
        for column, target in _SHARED.items():
            size = self.values.size(row.get(column, ""), unit.get(column, ""))
            resources[target] = None if size is None else round(size)
        self._put(
            "launches",
            launch_index=self.launches,
            correlation_id=self.values.whole("Correlation_ID", number or (match[1] if match else "")),
            process_name=layout.process_name,
            kernel=name[: match.start()] if match and own else name,
            **sizes,
            **resources,
            **common,
        )
        for column in _SHARED:
            if row.get(column) and resources[_SHARED[column]] is None:
                self._metric(record, f"trace:'{column}'", row[column], unit[column], launch_index=self.launches)
        for column, cell in row.items():
            if column not in _LAUNCH_COLUMNS and cell:
                self._metric(record, column, cell, unit[column], launch_index=self.launches)
        self.launches += 1

    def _summary(self, record: Record, layout: Layout, row: Row) -> None:
        unit, kind, name = (
            dict(zip(layout.columns, layout.units, strict=True)),
            row.get("Type", layout.within),
            row["Name"],
        )
        if layout.within == "NVTX result" and kind != "Range":
            raise ValueError("part of a range that the table of the whole run already holds")
        kind = kind or "GPU activities"
        if "Avg" not in row:
            if not name:
                raise ValueError("the row has no name")
            self._metric(record, "Time", row["Time"], unit["Time"], kernel=name, statistic="sum", section=kind)
            return
        times = [self.values.time_ns(column, row[column], unit[column]) for column in ("Time", "Avg", "Min", "Max")]
        printed = (row[column] + unit[column] for column in ("Time", "Avg"))
        calls = self.values.whole("Calls", row["Calls"]) if "Calls" in row else self.values.calls(*printed)
        if not name or calls is None:
            raise ValueError("the row has no name or no call count")
        category = {"GPU activities": "kernel", "API calls": "api"}.get(kind, "range")
        self._put(
            "kernel_summaries",
            category="memory" if category == "kernel" and name.startswith("[") else category,
            kernel=name,
            calls=calls,
            **dict(zip(("total_ns", "mean_ns", "min_ns", "max_ns"), times, strict=True)),
            line=record.line,
        )

    def _statistics(self, record: Record, layout: Layout, row: Row) -> None:
        name, prefix = row.get("Metric Name", ""), ""
        if layout.kind == EVENTS:
            name, prefix = row["Event Name"], "event:"
        invocations = self.values.whole("Invocations", row["Invocations"])
        if not name or not row.get("Kernel") or invocations is None:
            raise ValueError("the row has no kernel, no name or no invocation count")
        # In a replayed run some kernel names end with the launch number.
        kernel = _CORRELATION.sub("", row["Kernel"]) if not row["Kernel"].endswith(")") else row["Kernel"]
        for column, statistic in _STATISTICS.items():
            if column in row:
                known: dict[str, object] = {"kernel": kernel, "invocations": invocations, "statistic": statistic}
                self._metric(record, prefix + name, row[column], "", section=row.get("Device") or None, **known)

    def _memory(self, record: Record, layout: Layout, row: Row) -> None:
        name = row.get("Name") or row.get("") or ""
        calls, size = self.values.whole("Count", row["Count"]), row["Total Size"]
        # In CSV the count of fault groups is in the size column, with a B.
        if calls is None and (match := _COUNT_IN_BYTES.fullmatch(size)) and not row["Avg Size"]:
            calls, size = int(match[1][:18]), ""
        if not name or calls is None:
            raise ValueError("the row has no name or no count")
        # Some versions print the total time as 0.000000 without a unit, which means unknown.
        _, unit = split_unit(row["Total Time"])
        self._put(
            "kernel_summaries",
            category="memory",
            kernel=name,
            calls=calls,
            total_ns=self.values.time_ns("Total Time", row["Total Time"]) if unit else None,
            total_bytes=self.values.size(size),
            device_index=parse_device(row.get("Device", ""))[1],
            line=record.line,
        )

    def _system(self, record: Record, layout: Layout, row: Row) -> None:
        """Store a row of board readings; its name holds the unit, as in Power (mW)."""
        name, match = row[""], _NAME_AND_UNIT.fullmatch(row[""])
        readings = self.values.whole("Count", row["Count"])
        if not match or readings is None:
            raise ValueError("the row has no name with a unit, or no reading count")
        for column in ("Avg", "Min", "Max"):
            known: dict[str, object] = {"invocations": readings, "statistic": _STATISTICS[column]}
            self._metric(record, name, row[column], match[1], section=row["Device"] or None, **known)

    def take(self) -> dict[str, Table]:
        """Return the tables of the gathered rows and clear them."""
        rows, self.rows, self.size = self.rows, {}, 0
        tables: dict[str, Table] = {}
        for table, found in rows.items():
            names = dict.fromkeys(key for row in found for key in row)
            tables[table] = ColumnTable.of_values(table, {key: [row.get(key) for row in found] for key in names})
        return tables
