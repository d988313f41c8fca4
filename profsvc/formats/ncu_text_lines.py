"""The lines that Nsight Compute prints for people, sorted into records.

The page is a tree by indentation: a process, its launches or kernels, their sections, and tables in them. What a line
means depends on the table it stands in, and the layout of a table on the lines of dashes around its columns.
"""

import re

from profsvc.formats.ncu_lines import REJECT, SKIP, TEXT_LIMIT, Record

LAUNCH, KERNEL, DEVICE, METRIC, MORE, RULE = "launch", "kernel", "device", "metric", "more", "rule"
# Where a line may stand: in no table, below its first dashes, below the names of its columns, in its rows, or in a
# table of other things than metrics.
OUTSIDE, BEGUN, NAMES, ROWS, OTHER = "outside", "begun", "names", "rows", "other"

COLUMNS = re.compile(r" *Metric Name +Metric Unit +(?:Metric Value|Minimum +Maximum +Average) *\r?", re.MULTILINE)
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
_HEADS = (
    (LAUNCH, _LAUNCH, ("kernel", "grid", "block", "context", "stream", "device", "cc")),
    (KERNEL, _KERNEL, ("kernel", "grid", "block", "device", "cc", "invocations")),
    (KERNEL, _OLD_KERNEL, ("kernel", "grid", "block", "device", "cc", "invocations")),
    (DEVICE, _DEVICE, ("device",)),
)
# What was copied out of a terminal may have lost some of its indentation.
_SECTION = re.compile(r" {2,}Section: (?P<section>.+)")
_DASHES = re.compile(r" *-+(?: -+)+ *")
_RULE = re.compile(r" {2,}(?:OPT|INF|WRN|ERR) ")
# Labels of tables, warnings and ranges are words; a row of a table, torn from it, has gaps between its cells.
_WORDS = re.compile(r" {2,}\S+(?: \S+)*\s*")
_DETAIL = re.compile(r" {10}|(?: {4}-[- ]*$)| {2,}<|(?: {4,}(?:NVTX |RGB: |Warning: ))")
# Until 2021 a table had no names of columns, but these widths.
_OLD_WIDTHS = [70, 15, 30]


class Scanner:
    """Sorts the lines of a text page into records; the cells of a record depend on its kind."""

    def __init__(self) -> None:
        """Begin outside of any launch."""
        self.process = ["", "", ""]
        self.section = ""
        self.spans: list[tuple[int, int]] = []
        self.state = OUTSIDE
        self.begun = self.named = False
        self.full: list[bool] = []

    def sort(self, number: int, line: str) -> Record:
        """Return the record of a line: its kind and the cells that this kind has."""
        text = line.rstrip("\r\n")
        kind, cells = self._kind(text)
        if kind == REJECT and not self.named:
            kind = SKIP
        # Values end where their column does, so a last line without an end tells whether it is whole.
        whole = line.endswith("\n") or kind == SKIP or (kind in (METRIC, MORE) and len(text) >= self.spans[-1][1])
        cut = "" if whole else "the file ends inside this line"
        reason = cut or ("not a line of a text page" if kind == REJECT else "")
        if kind in (METRIC, MORE) and not self.named:
            reason = "no line above names the launch or the kernel that it is of"
        return Record(REJECT if reason else kind, number, 1, line[:TEXT_LIMIT], cells, reason)

    def _kind(self, text: str) -> tuple[str, list[str]]:
        if self.state == ROWS and self.spans[0][0] == 0 and text.strip() and (row := self._row(text)):
            return row
        if match := _PROCESS.fullmatch(text):
            self.process, self.state = list(match.groups()), OUTSIDE
        elif head := self._head(text):
            return head
        elif match := _SECTION.fullmatch(text):
            self.section, self.state, self.begun = match["section"], OUTSIDE, True
        elif not self.begun or not text.startswith(" ") or not text.strip():
            if not text.strip() and self.state != NAMES:
                self.state = OUTSIDE
            return self._beside_indented(text)
        else:
            return self._in_table(text)
        return SKIP, []

    def _head(self, text: str) -> tuple[str, list[str]] | None:
        """Recognise the line that names a launch, a kernel or a device."""
        if not any(word in text for word in (", Context ", "nvocations", ", CC ")):
            return None
        for kind, pattern, names in _HEADS:
            if match := pattern.fullmatch(text):
                if kind == DEVICE and not self.process[0]:
                    return None
                self.section, self.state, self.begun, self.named = "", OUTSIDE, True, True
                cells = match.groupdict()
                return kind, [*self.process, *(cells.get(name) or "" for name in names)]
        return None

    def _beside_indented(self, text: str) -> tuple[str, list[str]]:
        """A line without indentation: program output, a banner, or the border of a table of a range."""
        if self.begun and _DASHES.fullmatch(text):
            return self._dashes(text)
        if self.begun and COLUMNS.fullmatch(text):
            self.state = NAMES
        return SKIP, []

    def _in_table(self, text: str) -> tuple[str, list[str]]:
        if _RULE.match(text):
            self.state = OUTSIDE
            return RULE, []
        if _DASHES.fullmatch(text):
            return self._dashes(text)
        if COLUMNS.fullmatch(text):
            self.state = NAMES
        elif self.state == BEGUN and not self._is_old(text):
            self.state = OTHER
        elif self.state in (BEGUN, ROWS):
            self.state = ROWS
            return self._row(text) or (REJECT, [])
        elif self.state != OTHER and not _DETAIL.match(text) and not _WORDS.fullmatch(text):
            return REJECT, []
        return SKIP, []

    def _is_old(self, text: str) -> bool:
        """Tell whether a table without names of columns holds metrics; somebody may have made its columns narrower."""
        if [end - start for start, end in self.spans] == _OLD_WIDTHS:
            return True
        row = self._row(text) if len(self.spans) == len(_OLD_WIDTHS) else None
        return row is not None and row[0] == METRIC and row[1][-1][:1].isdigit()

    def _dashes(self, text: str) -> tuple[str, list[str]]:
        spans = [match.span() for match in re.finditer("-+", text)]
        if self.state == OUTSIDE:
            self.state, self.spans = BEGUN, spans
        elif self.state == NAMES and len(spans) in (3, 5):
            self.state, self.spans = ROWS, spans
        elif self.state != OTHER:
            self.state = OUTSIDE
        self.full = []
        return SKIP, []

    def _row(self, text: str) -> tuple[str, list[str]] | None:
        """Cut a row at the columns of its table; None if it does not fit them."""
        starts = [start for start, _ in self.spans]
        ends = [end for _, end in self.spans[:-1]] + [len(text)]
        between = [text[end:start] for end, start in zip([0, *ends], [*starts, len(text)], strict=True)]
        if "".join(between).strip() or len(text) <= starts[-1]:
            return None
        name, unit, *values = (text[start:end].strip() for start, end in zip(starts, ends, strict=True))
        if not name:
            return self._further(unit, values)
        self.full = self._fills(values)
        # A raw page lists what was not collected without a value.
        return (METRIC, [self.section, name, unit, *values]) if any(values) or self.section else (SKIP, [])

    def _further(self, unit: str, values: list[str]) -> tuple[str, list[str]] | None:
        """A value that is too long for its column goes on below it; what filled the column was broken in a word."""
        if unit or not any(values) or len(self.full) != len(values):
            return None
        pieces = [("" if full else " ") + piece if piece else "" for full, piece in zip(self.full, values, strict=True)]
        self.full = self._fills(values)
        return MORE, pieces

    def _fills(self, values: list[str]) -> list[bool]:
        return [len(cell) == end - start for cell, (start, end) in zip(values, self.spans[2:], strict=True)]
