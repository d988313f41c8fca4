"""Reader of the JSON lines that are made of a Nsight Compute report where NVIDIA's package ncu_report is."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from profsvc.errors import BrokenInputError
from profsvc.formats.ncu import launches as ncu_launches
from profsvc.formats.ncu.csv_lines import IDENTITY_COLUMNS
from profsvc.formats.ncu.raw import RawLayout, RawPage
from profsvc.formats.ncu.report_instructions import InstructionRows, LineError
from profsvc.formats.parsing.json_stream import storable_text
from profsvc.formats.parsing.numbers import Evidence, NumberFormat
from profsvc.formats.parsing.records import HEADER, ROW, SKIP, Record
from profsvc.formats.parsing.text import Text
from profsvc.kernel_names import printed_name
from profsvc.tables import Batch, ColumnTable

NAME = "ncu-report-lines"

FIRST_LINE_BEGIN = b'{"profsvc": "ncu-report"'
VERSION = 1
IDENTITY = [name for name in IDENTITY_COLUMNS if name != "Kernel Time"]
KERNEL = IDENTITY.index("Kernel Name")
RULE_CELLS = 7
FOCUS = ("name", "value", "severity", "info")
# Links in the text of a rule, and what the details page prints for them.
_LINKS = (
    (re.compile(r"@url:([^@]*?):(https?://[^@]*)@"), r"\1 (\2)"),
    (re.compile(r"@(?:section|sass):[^@:]*:([^@]*)@"), r"\1"),
    (re.compile(r"@source:[^@]*?:[0-9]+:([^@]*)@"), r"\1"),
)


def sniff(head: bytes) -> bool:
    """Return whether ``head`` begins the lines made of a report."""
    return head.startswith(FIRST_LINE_BEGIN)


class _PlainNumbers(Evidence):
    """Numbers with a decimal point and without thousands separators, whatever texts look like."""

    def add(self, cells: object, line: int) -> bool:
        """Ignore the cells."""
        return False

    def decide(self) -> NumberFormat:
        """Return the format."""
        return NumberFormat()


def _texts(values: object, what: str) -> list[str]:
    """Return the cells of a list; an empty text for null."""
    if not isinstance(values, list) or not all(cell is None or isinstance(cell, str) for cell in values):
        raise LineError(f"{what} is not a list of texts")
    return [storable_text(cell or "") for cell in values]


def _focus_metric(cells: object) -> dict[str, object]:
    """Return a metric that a rule names."""
    if not isinstance(cells, list) or len(cells) != len(FOCUS):
        raise LineError(f"a focus metric has not {len(FOCUS)} values")
    name, severity, info = _texts([cells[0], *cells[2:]], "a focus metric")
    value = cells[1]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise LineError(f"the value of a focus metric is {str(value)[:40]!r}")
    return dict(zip(FOCUS, (name, value if math.isfinite(value) else None, severity, info), strict=True))


def _rule(index: int, cells: object, line: int) -> dict[str, object]:
    """Return the row of a rule."""
    if not isinstance(cells, list) or len(cells) != RULE_CELLS:
        raise LineError(f"a rule has not {RULE_CELLS} values")
    percent = cells[4]
    if percent is not None and (not isinstance(percent, int | float) or not abs(percent) < 1e6):
        raise LineError(f"the estimate of a rule is {str(percent)[:40]!r}")
    section, rule, rule_type, kind, message = _texts([*cells[:4], cells[5]], "a rule")
    focus = [_focus_metric(one) for one in cells[6]] if isinstance(cells[6], list) else []
    for link, words in _LINKS:
        message = link.sub(words, message)
    return {
        "launch_index": index, "section": section or None, "rule": rule, "rule_type": rule_type or None,
        **ncu_launches.estimate_columns(kind, None if percent is None else float(percent)),
        "message": message, "focus_metrics": json.dumps(focus, ensure_ascii=False) if focus else None, "line": line,
    }  # fmt: skip


def _ranges(said: object) -> list[str]:
    """Return the cells of the NVTX ranges."""
    if not isinstance(said, Mapping):
        raise LineError("ranges is not an object")
    names = {kind: _texts(said.get(kind, []), "ranges") for kind in ncu_launches.RANGE_METRICS}
    return [json.dumps(one, ensure_ascii=False) if one else "" for one in names.values()]


class _Reader:
    """Turns the lines of a report into batches, as the reader of raw pages does for its rows."""

    def __init__(self, text: Text) -> None:
        self.text, self.ledger = text, ncu_launches.NcuLedger()
        self.scales = ncu_launches.UnitScales()
        self.page = RawPage(_PlainNumbers(), self.scales)
        self.columns: list[str] | None = None
        self.rules: list[dict[str, object]] = []
        self.instructions = InstructionRows()
        self.package, self.launches = "", 0
        self.ended = False

    def batches(self) -> Iterator[Batch]:
        for line, written in enumerate(self.text.lines(), 1):
            try:
                said = json.loads(written)
                if self.ended or not isinstance(said, dict):
                    raise LineError("it follows the last line" if self.ended else "it is not an object")
                yield from self._take(line, said)
            except (ValueError, RecursionError) as error:
                reason = str(error) if isinstance(error, LineError) else "it is not JSON"
                if '"instructions"' not in written:
                    self.instructions.skip()  # the line may be a launch
                self.ledger.reject(line, written, reason)
            if self.page.full or self.ledger.full or self.instructions.full:
                yield from self._rest()
        if not self.ended:
            raise BrokenInputError("the lines of the report end before the last one: the file is cut; send it again")
        self.instructions.finish()
        yield from self._rest()
        facts = {"tool": ncu_launches.TOOL, "page": "report", "encoding": self.text.encoding}
        if self.package:
            facts["reader_version"] = f"ncu_report {self.package}"
        message = "" if self.launches else "no launches: the report holds no results; profile again"
        yield self.ledger.batch({}, facts, message)

    def _take(self, line: int, said: Mapping[str, Any]) -> Iterator[Batch]:
        """Take one line."""
        kind = SKIP
        if "launch" in said:
            self.ledger.add(self._launch(line, said))
            return
        if "instructions" in said:
            self.instructions.add(line, said)
            kind = ROW
        elif "columns" in said:
            yield from self._rest()
            self._set_columns(said["columns"])
            kind = HEADER
        elif "end" in said:
            self.ended = True
        elif "profsvc" in said and line == 1:
            if said.get("version") != VERSION:
                raise BrokenInputError(
                    f"the lines of the report have version {str(said.get('version'))[:20]!r}, and {VERSION} can be "
                    "read; use the same profsvc on both sides"
                )
            self.package = _texts([said.get("package")], "package")[0][:40]
        else:
            raise LineError("it has none of launch, instructions, columns and end")
        self.ledger.add(Record(kind, line, 1, "", []))

    def _set_columns(self, columns: object) -> None:
        if not isinstance(columns, list) or not all(isinstance(one, list) and len(one) == 2 for one in columns):
            raise LineError("columns is not a list of names with units")
        names, units = (_texts([one[place] for one in columns], "columns") for place in (0, 1))
        ranges = list(ncu_launches.RANGE_METRICS.values())
        layout = RawLayout([*IDENTITY, *ranges, *names])
        layout.set_units([*([""] * (len(IDENTITY) + len(ranges))), *units], self.scales)
        self.columns, self.page.layout = names, layout

    def _launch(self, line: int, said: Mapping[str, Any]) -> Record:
        """Add a launch and its rules; return its record, rejected if the file already has this launch."""
        about, values = said["launch"], _texts(said.get("values"), "values")
        if self.columns is None or len(values) != len(self.columns):
            raise LineError(f"a launch has {len(values)} values for {len(self.columns or ())} columns")
        if not isinstance(about, Mapping):
            raise LineError("launch is not an object")
        identity = _texts([about.get(name) for name in IDENTITY], "launch")
        identity[KERNEL] = printed_name(identity[KERNEL])
        cells = [*identity, *_ranges(said.get("ranges", {})), *values]
        rules = said.get("rules", [])
        if not isinstance(rules, list):
            raise LineError("rules is not a list")
        rows = [_rule(self.launches, rule, line) for rule in rules]
        record = self.page.add(Record(ROW, line, 1, "", cells))
        if record.kind != ROW:
            self.instructions.skip()
            return record
        self.instructions.begin(self.launches, identity[KERNEL])
        self.rules += rows
        self.launches += 1
        return record

    def _rest(self) -> Iterator[Batch]:
        """Yield the rows gathered so far."""
        tables, wide = self.page.take()
        if rules := self.rules:
            tables["rules"] = ColumnTable.of_values("rules", {name: [row[name] for row in rules] for name in rules[0]})
            self.rules = []
        tables |= self.instructions.take()
        if tables or self.ledger.full:
            yield self.ledger.batch(tables, wide=wide)


def read_lines(text: Text) -> Iterator[Batch]:
    """Read the lines made of a report."""
    yield from _Reader(text).batches()


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a file of such lines."""
    with Text(stream) as text:
        yield from read_lines(text)
