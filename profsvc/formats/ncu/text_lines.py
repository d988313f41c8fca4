"""Lines of the text output of Nsight Compute to records.

The page is a tree by indentation: process, launches or kernels, sections, tables. The meaning of a line depends on its
table; the lines of dashes around a table show its columns.
"""

import re

from profsvc.formats.parsing.records import MAX_TEXT_CHARS, REJECT, SKIP, Record

LAUNCH, KERNEL, DEVICE, METRIC, CONTINUATION, RULE = "launch", "kernel", "device", "metric", "more", "rule"
PROCESS = "process"
# The state: outside of a table, below its first dashes, below its column names, in its rows, or in a table without
# metrics.
OUTSIDE, FIRST_DASHES, COLUMN_NAMES, ROWS, OTHER_TABLE = "outside", "begun", "names", "rows", "other"

COLUMN_HEADER = re.compile(r" *Metric Name +Metric Unit +(?:Metric Value|Minimum +Maximum +Average) *\r?", re.MULTILINE)
_PROCESS = re.compile(r"\[(?P<pid>[0-9]+)\] (?P<name>.+)@(?P<host>[^\s@]+)")
_SIZES = r"\([0-9]+, [0-9]+, [0-9]+\)"
_NAME = rf"(?P<kernel>\S.*?)(?: (?P<grid>{_SIZES})x(?P<block>{_SIZES}))?"
_PLACE = r"(?:, Device (?P<device>[0-9]+))?(?:, CC (?P<cc>[0-9.]+))?"
_LAUNCH = re.compile(
    rf" *{_NAME}(?:, [0-9]{{4}}-\S+ [0-9:]+)?, Context (?P<context>[0-9]+)(?:, Stream (?P<stream>[0-9]+))?{_PLACE}"
)
_KERNEL = re.compile(rf" *{_NAME}{_PLACE}, Invocations (?P<invocations>[0-9]+)")
_OLD_KERNEL = re.compile(
    r" *(?P<kernel>\S.*), Block Size (?P<block>[0-9]+), Grid Size (?P<grid>[0-9]+), Device (?P<device>[0-9]+), "
    r"(?P<invocations>[0-9]+) invocations *"
)
_DEVICE = re.compile(r"  (?P<device>Device [0-9]+), CC [0-9.]+")
_HEADINGS = (
    (LAUNCH, _LAUNCH, ("kernel", "grid", "block", "context", "stream", "device", "cc")),
    (KERNEL, _KERNEL, ("kernel", "grid", "block", "device", "cc", "invocations")),
    (KERNEL, _OLD_KERNEL, ("kernel", "grid", "block", "device", "cc", "invocations")),
    (DEVICE, _DEVICE, ("device",)),
)
# Text copied from a terminal may have lost some of its indentation.
_SECTION = re.compile(r" {2,}Section: (?P<section>.+)")
_DASHES = re.compile(r" *-+(?: -+)+ *")
_RULE = re.compile(r" {2,}(?:OPT|INF|WRN|ERR) ")
# Labels, warnings and ranges are words; a row torn from its table has gaps between its cells.
_WORDS = re.compile(r" {2,}\S+(?: \S+)*\s*")
_DETAIL = re.compile(r" {10}|(?: {4}-[- ]*$)| {2,}<|(?: {4,}(?:NVTX |RGB: |Warning: ))")
# Until 2021 tables had no column names, but these widths.
_OLD_WIDTHS = [70, 15, 30]


class Scanner:
    """Sorts the lines of a text page into records."""

    def __init__(self) -> None:
        """Start outside of any launch."""
        self.process = ["", "", ""]
        self.section = ""
        self.spans: list[tuple[int, int]] = []
        self.state = OUTSIDE
        self.begun = self.named = False
        self.full: list[bool] = []

    def sort(self, number: int, line: str) -> Record:
        """Return the record of a line; its cells depend on its kind."""
        text = line.rstrip("\r\n")
        kind, cells = self._kind(text)
        if kind == REJECT and not self.named:
            kind = SKIP
        # Values end where their column ends, so a last line that reaches it is complete without a line end.
        whole = (
            line.endswith("\n") or kind == SKIP or (kind in (METRIC, CONTINUATION) and len(text) >= self.spans[-1][1])
        )
        cut = "" if whole else "the file ends inside this line"
        reason = cut or ("not a line of a text page" if kind == REJECT else "")
        if kind in (METRIC, CONTINUATION) and not self.named:
            reason = "no line above names its launch or kernel"
        return Record(REJECT if reason else kind, number, 1, line[:MAX_TEXT_CHARS], cells, reason)

    def _kind(self, text: str) -> tuple[str, list[str]]:
        if self.state == ROWS and self.spans[0][0] == 0 and text.strip() and (row := self._row(text)):
            return row
        if match := _PROCESS.fullmatch(text):
            self.process, self.state = list(match.groups()), OUTSIDE
            return PROCESS, self.process
        if head := self._head(text):
            return head
        if match := _SECTION.fullmatch(text):
            self.section, self.state, self.begun = match["section"], OUTSIDE, True
        elif not self.begun or not text.startswith(" ") or not text.strip():
            if not text.strip() and self.state != COLUMN_NAMES:
                self.state = OUTSIDE
            return self._beside_indented(text)
        else:
            return self._in_table(text)
        return SKIP, []

    def _head(self, text: str) -> tuple[str, list[str]] | None:
        """Return the record of a line that names a launch, a kernel or a device."""
        if not any(word in text for word in (", Context ", "nvocations", ", CC ")):
            return None
        for kind, pattern, names in _HEADINGS:
            if match := pattern.fullmatch(text):
                if kind == DEVICE and not self.process[0]:
                    return None
                self.section, self.state, self.begun, self.named = "", OUTSIDE, True, True
                cells = match.groupdict()
                return kind, [*self.process, *(cells.get(name) or "" for name in names)]
        return None

    def _beside_indented(self, text: str) -> tuple[str, list[str]]:
        """Return the record of a line without indentation: program output, a banner, or a border of a range table."""
        if self.begun and _DASHES.fullmatch(text):
            return self._dashes(text)
        if self.begun and COLUMN_HEADER.fullmatch(text):
            self.state = COLUMN_NAMES
        return SKIP, []

    def _in_table(self, text: str) -> tuple[str, list[str]]:
        if _RULE.match(text):
            self.state = OUTSIDE
            return RULE, []
        if _DASHES.fullmatch(text):
            return self._dashes(text)
        if COLUMN_HEADER.fullmatch(text):
            self.state = COLUMN_NAMES
        elif self.state == FIRST_DASHES and not self._is_old(text):
            self.state = OTHER_TABLE
        elif self.state in (FIRST_DASHES, ROWS):
            self.state = ROWS
            return self._row(text) or (REJECT, [])
        elif self.state != OTHER_TABLE and not _DETAIL.match(text) and not _WORDS.fullmatch(text):
            return REJECT, []
        return SKIP, []

    def _is_old(self, text: str) -> bool:
        """Return whether a table without column names holds metrics; copying may have narrowed its columns."""
        if [end - start for start, end in self.spans] == _OLD_WIDTHS:
            return True
        row = self._row(text) if len(self.spans) == len(_OLD_WIDTHS) else None
        return row is not None and row[0] == METRIC and row[1][-1][:1].isdigit()

    def _dashes(self, text: str) -> tuple[str, list[str]]:
        spans = [match.span() for match in re.finditer("-+", text)]
        if self.state == OUTSIDE:
            self.state, self.spans = FIRST_DASHES, spans
        elif self.state == COLUMN_NAMES and len(spans) in (3, 5):
            self.state, self.spans = ROWS, spans
        elif self.state != OTHER_TABLE:
            self.state = OUTSIDE
        self.full = []
        return SKIP, []

    def _row(self, text: str) -> tuple[str, list[str]] | None:
        """Return the cells of a row; None if it does not fit the columns of its table."""
        starts = [start for start, _ in self.spans]
        ends = [end for _, end in self.spans[:-1]] + [len(text)]
        between = [text[end:start] for end, start in zip([0, *ends], [*starts, len(text)], strict=True)]
        if "".join(between).strip() or len(text) <= starts[-1]:
            return None
        name, unit, *values = (text[start:end].strip() for start, end in zip(starts, ends, strict=True))
        if not name:
            return self._further(unit, values)
        self.full = self._fills(values)
        # A raw page lists metrics that were not collected without a value.
        return (METRIC, [self.section, name, unit, *values]) if any(values) or self.section else (SKIP, [])

    def _further(self, unit: str, values: list[str]) -> tuple[str, list[str]] | None:
        """Return the continuation of long values; a value that fills its column is broken inside a word."""
        if unit or not any(values) or len(self.full) != len(values):
            return None
        pieces = [("" if full else " ") + piece if piece else "" for full, piece in zip(self.full, values, strict=True)]
        self.full = self._fills(values)
        return CONTINUATION, pieces

    def _fills(self, values: list[str]) -> list[bool]:
        return [len(cell) == end - start for cell, (start, end) in zip(values, self.spans[2:], strict=True)]
