"""Reader of phase marks: a CSV with the begin and the end of each phase of a program, to be used with a power log."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from profsvc.errors import BrokenInputError, first_of, wrong_cell_count
from profsvc.formats.native.annotated_csv import AnnotatedCsvReader, first_cells
from profsvc.formats.parsing.ledger import whole_number
from profsvc.formats.parsing.line_reader import read_lines
from profsvc.formats.parsing.timestamps import UTC, epoch_ns, parse_timestamp
from profsvc.specs.files.formats import PHASE_MARKS
from profsvc.tables import Batch, frame

NAME = PHASE_MARKS

COLUMN_ALIASES = {"unix_s": "time", "type": "name"}
MARK_COLUMNS, PHASE_COLUMNS = {"time", "mark", "name"}, {"name", "begin", "end"}
OPTIONAL_COLUMNS = {"sms", "launches", "extra"}
MAX_PHASES = 100_000
MAX_SHOWN_LINES = 3


@dataclass
class Phase:
    """A phase, which has no end until its end mark is read."""

    name: str
    begin_ns: int
    line: int
    active_sms: int | None
    launches: int | None
    end_ns: int | None = None


def layout(sign: str, cells: list[str]) -> list[str] | None:
    """Return the columns of a header under the names used here; None if the cells are not a header of phase marks.

    >>> layout(",", ["unix_s", "mark", "type", "sms", "extra"])
    ['time', 'mark', 'name', 'sms', 'extra']
    """
    named = [COLUMN_ALIASES.get(cell.lower(), cell.lower()) for cell in cells]
    known = set(named)
    whole = sign == "," and len(known) == len(named) and known - OPTIONAL_COLUMNS in (MARK_COLUMNS, PHASE_COLUMNS)
    return named if whole and "extra" not in named[:-1] else None


def sniff(head: bytes) -> bool:
    """Tell whether the first line in ``head`` that is not a comment is a header of phase marks."""
    return layout(",", first_cells(head)) is not None


def _whole_cell(cells: Mapping[str, str], name: str) -> int | None:
    text = cells.get(name, "")
    if not text:
        return None
    if (number := whole_number(text)) is None:
        raise ValueError(f"{name} is {text!r}, not a whole number")
    return number


class _Reader(AnnotatedCsvReader):
    """Matches the ends of phases with their begins; a file has few phases."""

    def __init__(self) -> None:
        super().__init__(NAME, "phase mark")
        self.clock: str | None = None
        self.phases: list[Phase] = []
        self.open: list[Phase] = []

    def columns_of(self, cells: list[str], line: int | None = None) -> list[str] | None:
        """Return the columns of a header; refuse another one on a given ``line``."""
        columns = layout(",", cells)
        if columns is None and line is not None:
            raise BrokenInputError(
                f"line {line} is not a header of phase marks, which is unix_s,mark,type,sms,extra or name,begin,end; "
                f"see: profsvc formats {NAME}"
            )
        return columns

    def add_row(self, number: int, cells: list[str]) -> None:
        """Add a mark or a phase."""
        found = self._by_column(cells)
        if not found["name"]:
            raise ValueError("the name is empty")
        name, sms, launches = found["name"], _whole_cell(found, "sms"), _whole_cell(found, "launches")
        if "mark" not in found:
            begin, end = self._time(found["begin"]), self._time(found["end"])
            if end < begin:
                raise ValueError(f"it ends at {found['end']}, before it begins at {found['begin']}")
            self._begin(Phase(name, begin, number, sms, launches, end))
        elif found["mark"] == "begin":
            begun = Phase(name, self._time(found["time"]), number, sms, launches)
            # A program that was killed before it wrote an end may begin the same phase again.
            self.open = [one for one in self.open if (one.name, one.active_sms) != (name, sms)]
            self._begin(begun)
            self.open.append(begun)
        elif found["mark"] == "end":
            self._end(name, self._time(found["time"]), sms, launches)
        else:
            raise ValueError(f"mark is {found['mark']!r}, not begin or end")

    def _by_column(self, cells: list[str]) -> dict[str, str]:
        """Return the cells of a line by their columns, those of ``extra`` by their keys."""
        has_extra = self.header[-1] == "extra"
        own = self.header[:-1] if has_extra else self.header
        needed = max(place for place, name in enumerate(own, 1) if name not in OPTIONAL_COLUMNS)
        if len(cells) < needed or (len(cells) > len(own) and not has_extra):
            raise ValueError(wrong_cell_count(len(cells), needed if len(cells) < needed else len(own)))
        found = dict(zip(own, cells, strict=False))
        for cell in filter(None, cells[len(own) :]):
            key, equals, value = cell.partition("=")
            if not equals:
                raise ValueError(f"extra cell {cell!r} is not key=value")
            if key.strip() == "launches" and found.setdefault("launches", "") in ("", value.strip()):
                found["launches"] = value.strip()
            elif key.strip() == "launches":
                raise ValueError(f"launches is {found['launches']!r} and {value.strip()!r}")
        return found

    def _time(self, text: str) -> int:
        if text.replace(".", "").isdigit():
            count = epoch_ns(text, "s")
            found = None if count is None else (UTC, count)
        else:
            found = parse_timestamp(text)
        if found is None:
            raise ValueError(f"{text!r} is not a time: write seconds since 1970, or 2026-11-20T13:16:16.2Z")
        self.clock = self.clock or found[0]
        if found[0] != self.clock:
            raise ValueError(f"{text!r} is {found[0]}, but the times above it are {self.clock}")
        return found[1]

    def _begin(self, phase: Phase) -> None:
        if len(self.phases) == MAX_PHASES:
            raise BrokenInputError(f"line {phase.line}: a file may have at most {MAX_PHASES:,} phases; split it")
        self.phases.append(phase)

    def _end(self, name: str, time_ns: int, sms: int | None, launches: int | None) -> None:
        about = repr(name) if sms is None else f"{name!r} with sms {sms}"
        # If the begin or the end has no SMs, the name decides.
        begun = [one for one in self.open if one.name == name and (sms is None or one.active_sms in (sms, None))]
        if len(begun) != 1:
            several = f"{len(begun)} begins are open; add the sms" if begun else "no begin is open"
            raise ValueError(f"end of {about}: {several}")
        phase = begun[0]
        if time_ns < phase.begin_ns:
            raise ValueError(f"end of {about} is before its begin on line {phase.line}")
        phase.end_ns = time_ns
        phase.active_sms = sms if phase.active_sms is None else phase.active_sms
        phase.launches = phase.launches if launches is None else launches
        self.open.remove(phase)

    @property
    def full(self) -> bool:
        """Whether the rejected lines fill a batch."""
        return self.ledger.full

    def batch(self) -> Batch:
        """Return the line counts since the last batch."""
        return self.ledger.batch({})

    def last(self, encoding: str) -> Iterator[Batch]:
        """Yield the phases, sorted by begin; refuse a file without one."""
        if not self.phases:
            self.refuse_empty()
        phases = sorted(self.phases, key=lambda phase: (phase.begin_ns, phase.line))
        rows: dict[str, Sequence[object]] = {
            "name": _names(phases),
            "start_ns": [phase.begin_ns for phase in phases],
            "duration_ns": [None if p.end_ns is None else float(p.end_ns - p.begin_ns) for p in phases],
            "domain": [phase.name for phase in phases],
            **{name: [getattr(phase, name) for phase in phases] for name in ("active_sms", "launches", "line")},
        }
        facts = {"encoding": encoding, "clock": self.clock or UTC}
        yield self.ledger.batch({"ranges": frame("ranges", rows)}, facts, _message(phases))


def _names(phases: list[Phase]) -> list[str]:
    """Return the name of each phase: its type and SMs, with a number from the second one of that name on."""
    taken: dict[str, int] = {}
    names = []
    for phase in phases:
        sms = phase.active_sms
        plain = f"{phase.name}, {sms} SM{'s' * (sms != 1)}" if sms else phase.name
        taken[plain] = number = taken.get(plain, 0) + 1
        names.append(plain if number == 1 else f"{plain} ({number})")
    return names


def _message(phases: list[Phase]) -> str:
    """Return a message about begins without an end and overlapping phases."""
    unended = [str(phase.line) for phase in phases if phase.end_ns is None]
    until_ns, overlapping = 0, 0
    for phase in phases:
        if phase.end_ns is not None:
            overlapping += phase.begin_ns < until_ns
            until_ns = max(until_ns, phase.end_ns)
    parts = []
    if unended:
        parts.append(f"no end for the begin on line {first_of(unended, MAX_SHOWN_LINES)}")
    if overlapping:
        parts.append(f"{overlapping} of {len(phases)} phases begin before an earlier phase has ended")
    return "; ".join(parts)


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read phase marks in one pass over the file."""
    return read_lines(stream, lambda _: _Reader())
