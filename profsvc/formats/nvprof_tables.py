"""The rows of nvprof's tables to tidy tables; the CSV and the text form share them."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO

import pandas as pd

from profsvc.errors import BrokenInputError
from profsvc.formats import ncu
from profsvc.formats.ncu_lines import REJECT, ROW, SKIP, TEXT_LIMIT, Record
from profsvc.formats.numbers import Evidence, NumberFormat
from profsvc.formats.nvprof_lines import (
    BANNER,
    EVENTS,
    LAUNCHES,
    MEMORY,
    METRICS,
    SUMMARY,
    TRACE,
    Layout,
    Scanner,
    records,
)
from profsvc.formats.nvprof_values import OLD_BANNER, Copies, Values, split_unit
from profsvc.formats.stream import Text
from profsvc.tables import Batch, frame

TOOL = "nvprof"
BATCH_ROWS = 10_000
SAID = 5
EXPORT_AGAIN = "print it again with: LC_ALL=C nvprof --csv --log-file FILE ..."

# Columns whose cells are no numbers, so they say nothing about the signs of numbers.
_WORDS = {"Type", "Name", "Kernel", "Device", "Metric Name", "Metric Description", "Event Name", "Grid Size", ""}
_WORDS |= {"Block Size", "SrcMemType", "DstMemType", "Virtual Address", "Unified Memory"}
_WHOLE = {"Invocations", "Calls", "Count", "Context", "Stream", "Correlation_ID", "Registers Per Thread"}
_WHOLE |= {f"{what} {axis}" for what in ("Grid", "Block") for axis in "XYZ"}
# What a launch has beside its metrics; peer columns name the two ends of a copy between devices.
_OF_A_LAUNCH = _WORDS | _WHOLE | {"Start", "Duration", "Size", "Throughput", "Static SMem", "Dynamic SMem"}
_OF_A_LAUNCH |= {"Src Dev", "Src Ctx", "Dst Dev", "Dst Ctx"}
_RESOURCES = ("Registers Per Thread", "Static SMem", "Dynamic SMem")
_TIMES = {"Start", "Duration", "Time", "Avg", "Min", "Max"}
_STATISTICS = {"Min": "min", "Max": "max", "Avg": "avg", "Total": "sum"}

_DEVICE = re.compile(r"(.+) \(([0-9]{1,9})\)")
_CORRELATION = re.compile(r" \[([0-9]{1,18})\](?=\)?$)")
_COPY = re.compile(r"\[CUDA (?:memcpy )?(.+)\]")
_UNIFIED = re.compile(r"\[Unified Memory (?:Memcpy )?(.+)\]")
_SIZES = re.compile(r"\(([0-9]{1,10}) ([0-9]{1,10}) ([0-9]{1,10})\)")
_DOT_DECIMALS = {"decimal_dot", "maybe_dot", "group_comma", "space_dot", "apostrophe_dot"}
_COUNT_IN_BYTES = re.compile(r"([0-9]+)B")
_NOTHING = re.compile(r"No .+ (?:was|were) profiled\.?")

Row = Mapping[str, str]


def device_of(text: str) -> tuple[str | None, int | None]:
    """Split a device into name and ordinal; a name without its ordinal was cut by the tool, so it is no name.

    >>> device_of("Tesla K40c (0)"), device_of("GeForce GTX 105")
    (('Tesla K40c', 0), (None, None))
    """
    match = _DEVICE.fullmatch(text)
    return (match[1], int(match[2])) if match else (None, None)


class Ledger(ncu.Ledger):
    """The account of the lines, and what the banners say."""

    def _note(self, text: str) -> None:
        text = text.strip()
        banner = BANNER.match(text)
        words = text[banner.end() :] if banner else text
        warns = words.startswith(("Warning:", "Error:")) and banner and OLD_BANNER not in text
        if (warns or _NOTHING.fullmatch(words)) and len(self.errors) < SAID:
            self.errors.append(words[:300].rstrip("."))


@dataclass
class _Page:
    """Gathers the rows of the tables until they are worth a batch."""

    values: Values
    rows: dict[str, list[dict[str, object]]] = field(default_factory=dict)
    size: int = 0
    launches: int = 0
    kinds: dict[str, None] = field(default_factory=dict)
    devices: dict[str, None] = field(default_factory=dict)
    processes: dict[str, None] = field(default_factory=dict)
    stored: int = 0
    first_reason: str = ""

    def add(self, record: Record, layout: Layout) -> Record:
        """Take a row; give the record back, rejected with the reason if it cannot be one."""
        row = dict(zip(layout.columns, record.cells, strict=False))
        try:
            if len(record.cells) < len(layout.columns):
                self._metric(record, *record.cells)
                row = {}
            elif layout.kind in (METRICS, EVENTS):
                self._statistics(record, layout, row)
            else:
                {SUMMARY: self._summary, MEMORY: self._memory}.get(layout.kind, self._trace)(record, layout, row)
        except ValueError as error:
            self.first_reason = self.first_reason or f"line {record.line}: {error}"
            return record._replace(kind=REJECT, reason=str(error), text=record.text[:TEXT_LIMIT])
        self.kinds[layout.kind] = None
        self.stored += 1
        if layout.process_name:
            self.processes[layout.process_name] = None
        if row.get("Device"):
            self.devices[row["Device"]] = None
        return record

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
        device, index = device_of(row.get("Device", ""))
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
            # The row of units gives bytes for this column, but a row of faults counts them.
            column = "" if split_unit(cell)[1] else unit.get("Unified Memory", "")
            size = None if faults else self.values.size(cell, column)
            if faults and cell.isascii() and cell.isdigit():
                self._metric(record, name, cell)
        elif not copy:
            if row.get("Device"):
                raise ValueError(f"{name[:40]!r} is no known operation")
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
        self._put(
            "launches",
            launch_index=self.launches,
            source_id=number or (match[1] if match else None),
            process_name=layout.process_name,
            kernel=name[: match.start()] if match and own else name,
            **sizes,
            **common,
        )
        for column in _RESOURCES:
            if row.get(column):
                self._metric(record, f"trace:'{column}'", row[column], unit[column], launch_index=self.launches)
        for column, cell in row.items():
            if column not in _OF_A_LAUNCH and cell:
                self._metric(record, column, cell, unit[column], launch_index=self.launches)
        self.launches += 1

    def _summary(self, record: Record, layout: Layout, row: Row) -> None:
        unit, kind, name = (
            dict(zip(layout.columns, layout.units, strict=True)),
            row.get("Type", layout.within),
            row["Name"],
        )
        if layout.within == "NVTX result" and kind != "Range":
            raise ValueError("a part of a range, which the whole run's table holds already")
        kind = kind or "GPU activities"
        calls = self.values.whole("Calls", row["Calls"])
        if not name or calls is None:
            raise ValueError("the row has no name or no number of calls")
        times = [self.values.time_ns(column, row[column], unit[column]) for column in ("Time", "Avg", "Min", "Max")]
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
            raise ValueError("the row has no kernel, no name or no number of invocations")
        # Some kernels of a replayed run carry the number of their launch.
        kernel = _CORRELATION.sub("", row["Kernel"]) if not row["Kernel"].endswith(")") else row["Kernel"]
        for column, statistic in _STATISTICS.items():
            if column in row:
                known: dict[str, object] = {"kernel": kernel, "invocations": invocations, "statistic": statistic}
                self._metric(record, prefix + name, row[column], "", section=row.get("Device") or None, **known)

    def _memory(self, record: Record, layout: Layout, row: Row) -> None:
        name = row.get("Name") or row.get("") or ""
        calls, size = self.values.whole("Count", row["Count"]), row["Total Size"]
        # In CSV the number of groups of faults stands in the column of sizes, with a B.
        if calls is None and (match := _COUNT_IN_BYTES.fullmatch(size)) and not row["Avg Size"]:
            calls, size = int(match[1][:18]), ""
        if not name or calls is None:
            raise ValueError("the row has no name or no count")
        # Some versions print the total time in CSV as 0.000000 without a unit: then it is not known.
        _, unit = split_unit(row["Total Time"])
        self._put(
            "kernel_summaries",
            category="memory",
            kernel=name,
            calls=calls,
            total_ns=self.values.time_ns("Total Time", row["Total Time"]) if unit else None,
            total_bytes=self.values.size(size),
            device_index=device_of(row.get("Device", ""))[1],
            line=record.line,
        )

    def take(self) -> dict[str, pd.DataFrame]:
        """Return the tables of what was gathered, and begin anew."""
        rows, self.rows, self.size = self.rows, {}, 0
        tables = {}
        for table, found in rows.items():
            names = dict.fromkeys(key for row in found for key in row)
            tables[table] = frame(table, {key: [row.get(key) for row in found] for key in names})
        return tables


def _evidence(text: Text, scanner: Scanner) -> tuple[NumberFormat, Copies]:
    """Walk the file once for what it says of the signs of its numbers and of its prefixes."""
    evidence, copies, wide = Evidence(), Copies(), ""
    for record, layout in records(text.lines(), scanner):
        if record.kind == REJECT and layout is not None and len(record.cells) > len(layout.columns):
            wide = wide or f"line {record.line}: {record.reason}"
        if record.kind == SKIP and OLD_BANNER in record.text:
            copies.old = f"warn of replay ({OLD_BANNER.partition(': ')[2]!r})"
        if record.kind != ROW or layout is None or len(record.cells) != len(layout.columns):
            continue
        columns = list(zip(layout.columns, record.cells, layout.units, strict=True))
        found = [(column, *split_unit(cell, unit)) for column, cell, unit in columns if column not in _WORDS and cell]
        evidence.add([number for _, number, _ in found], record.line)
        counts = {"Min", "Max", "Total"} if layout.kind == EVENTS else set()
        evidence.add_integers([number for column, number, _ in found if column in _WHOLE | counts], record.line)
        if layout.kind == TRACE:
            named = {column: (number, unit) for column, number, unit in found}
            copies.add(record.line, (named.get(name, ("", "")) for name in ("Size", "Duration", "Throughput")))
            if not copies.old and any("e-" in number or "e+" in number for number, _ in named.values()):
                copies.old = "write small times with exponents"
    if wide and not _DOT_DECIMALS & set(evidence.found):
        raise BrokenInputError(
            f"{wide}, and no number of the file has a decimal point, as if commas marked decimals; {EXPORT_AGAIN}"
        )
    return evidence.decide(), copies


def _check_units(line: int, layout: Layout) -> None:
    """Refuse a table in CSV without the row of units that its times need."""
    for column, unit in zip(layout.columns, layout.units, strict=True):
        if column in _TIMES and unit not in ("s", "ms", "us", "ns"):
            raise BrokenInputError(
                f"line {line}: a row of units must follow the header of a {layout.kind}, but {column} has the unit "
                f"{unit!r} and not s, ms, us or ns; {EXPORT_AGAIN}"
            )


def read(stream: BinaryIO, scanner: Callable[[], Scanner], page_name: str) -> Iterator[Batch]:
    """Read a file in two walks, because its number format and its prefixes are known only at its end."""
    with Text(stream) as text:
        number_format, copies = _evidence(text, scanner())
        base, prefixes = copies.decide()
        ledger, page, checked = Ledger(), _Page(Values(number_format, base)), None
        for record, layout in records(text.lines(), scanner()):
            kept = record
            if record.kind == ROW and layout is not None:
                if page_name == "csv" and layout.kind in (TRACE, SUMMARY) and layout is not checked:
                    _check_units(record.line, layout)
                    checked = layout
                kept = page.add(record, layout)
            elif record.kind == REJECT:
                page.first_reason = page.first_reason or f"line {record.line}: {record.reason}"
            ledger.take(kept)
            if page.size >= BATCH_ROWS or ledger.full:
                yield ledger.batch(page.take())
        yield _last(
            text, ledger, page, {"layout": page_name, "number_format": str(number_format), "prefixes": prefixes}
        )


def _last(text: Text, ledger: Ledger, page: _Page, facts: dict[str, str]) -> Batch:
    """Hand on the end of the file; refuse it if no row of its tables could be read."""
    if page.first_reason and not page.stored:
        raise BrokenInputError(f"no row of the file can be read: {page.first_reason}; {EXPORT_AGAIN}")
    facts = {"tool": TOOL, "page": ", ".join(page.kinds) or "nothing", **facts, "encoding": text.encoding}
    for name, found in (("devices", page.devices), ("processes", page.processes)):
        if found:
            facts[name] = ", ".join(list(found)[:SAID])
    message = "; ".join(ledger.errors)
    if not page.stored:
        message = f"nothing was profiled: {message or 'the file holds no row of a table'}; profile again"
    return ledger.batch(page.take(), facts, message)
