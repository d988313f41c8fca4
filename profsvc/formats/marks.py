"""Reader of marks: a CSV in which a program says when each of its phases began and ended, beside a log of power."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from profsvc.errors import BrokenInputError, unfit
from profsvc.formats.clock import UTC, epoch_ns, stamp
from profsvc.formats.head import head_lines
from profsvc.formats.ncu import Ledger, numbered, whole_number
from profsvc.formats.ncu_lines import HEADER, REJECT, ROW, SKIP, TEXT_LIMIT, Record, split_cells
from profsvc.formats.stream import Text, ends_inside
from profsvc.tables import Batch, frame

NAME = "marks"
PAGE = """\
Marks: when each phase of a measurement began and ended, so that power and energy can be told phase by phase.

Have the program that is measured write a line at the begin and one at the end of each phase, under the header
    unix_s,mark,type,sms,extra
or write a line a phase, under the header
    name,begin,end
with sms and launches behind it where they are known. The columns may stand in any order, extra last; sms, launches and
extra may be left out. Empty lines and lines that begin with # are skipped and counted.

unix_s, time, begin, end  seconds since 1970 with a decimal point, or 2026-11-20T13:16:16.203Z; a time without a zone is
                          local, and --timezone places it; all of a file stand on one clock
mark                      begin or end
type, name                what the phase does; phases of one kind may bear one name
sms                       how many SMs it keeps busy; 0 for none
launches                  how many launches it has
extra                     any more cells, key=value; launches=N is read, others are not

Taken: every phase as a range, in the order of the begins; its domain is the type, its name the type with the SMs and,
from the second time on, with a number. An end belongs to the begin of its type and sms. A begin without an end is kept
without a duration; an end without a begin is rejected. Phases may overlap; the message says how many do.

Example:
    unix_s,mark,type,sms,extra
    1795180881.912,begin,mem,1
    1795180888.915,end,mem,1,launches=3268,seconds=7.003
or
    name,begin,end,sms,launches
    mem,2026-11-20T13:21:21.912Z,2026-11-20T13:21:28.915Z,1,3268
"""

CALLED = {"unix_s": "time", "type": "name"}
MARKED, PHASES = {"time", "mark", "name"}, {"name", "begin", "end"}
MAY = {"sms", "launches", "extra"}
MOST = 100_000
SHOWN = 3


@dataclass
class Phase:
    """A phase as far as it is known: it has no end until that is read."""

    name: str
    begin_ns: int
    line: int
    active_sms: int | None
    launches: int | None
    end_ns: int | None = None


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in split_cells(line)]


def _is_empty(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


def layout(sign: str, cells: list[str]) -> list[str] | None:
    """Return the columns of marks under the names used here; None if these cells are not their header.

    >>> layout(",", ["unix_s", "mark", "type", "sms", "extra"])
    ['time', 'mark', 'name', 'sms', 'extra']
    """
    named = [CALLED.get(cell.lower(), cell.lower()) for cell in cells]
    known = set(named)
    whole = sign == "," and len(known) == len(named) and known - MAY in (MARKED, PHASES)
    return named if whole and "extra" not in named[:-1] else None


def sniff(head: bytes) -> bool:
    """Tell whether the first line in ``head`` that is no comment is a header of marks."""
    first = next((line for line in head_lines(head) if not _is_empty(line)), "")
    return layout(",", _cells(first)) is not None


def _whole(cells: Mapping[str, str], name: str) -> int | None:
    text = cells.get(name, "")
    if not text:
        return None
    if (number := whole_number(text)) is None:
        raise ValueError(f"{name} is {text!r}, not a whole number")
    return number


class _File:
    """Sorts the lines of one file and pairs begins with ends; a file has few."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.header: list[str] = []
        self.clock: str | None = None
        self.phases: list[Phase] = []
        self.open: list[Phase] = []
        self.first_reason = ""

    def add(self, line: int, text: str) -> None:
        """Account for a line, and take the mark on it."""
        cells, kind, reason = _cells(text), ROW, ""
        columns = layout(",", cells)
        if _is_empty(text):
            kind = SKIP
        elif not self.header:
            self.header, kind = self._header(line, columns), HEADER
        elif columns == self.header:
            kind = HEADER
        else:
            try:
                self._take(line, text, cells)
            except ValueError as error:
                kind, reason = REJECT, str(error)
                self.first_reason = self.first_reason or f"line {line}: {reason}"
        self.ledger.take(Record(kind, line, 1, text[:TEXT_LIMIT].rstrip("\r\n"), [], reason))

    @staticmethod
    def _header(line: int, columns: list[str] | None) -> list[str]:
        if columns is None:
            raise BrokenInputError(
                f"line {line} is no header of marks, which is unix_s,mark,type,sms,extra or name,begin,end; "
                f"see: profsvc formats {NAME}"
            )
        return columns

    def _take(self, line: int, text: str, cells: list[str]) -> None:
        if text.count('"') % 2:
            raise ValueError("a quote is not closed on its line")
        if ends_inside(text, cells[-1] if cells else ""):
            raise ValueError("the file ends inside this line")
        found = self._named(cells)
        if not found["name"]:
            raise ValueError("it has no name")
        name, sms, launches = found["name"], _whole(found, "sms"), _whole(found, "launches")
        if "mark" not in found:
            begin, end = self._time(found["begin"]), self._time(found["end"])
            if end < begin:
                raise ValueError(f"it ends at {found['end']}, before it begins at {found['begin']}")
            self._begin(Phase(name, begin, line, sms, launches, end))
        elif found["mark"] == "begin":
            begun = Phase(name, self._time(found["time"]), line, sms, launches)
            # A program that did not live to write an end may begin the same again.
            self.open = [one for one in self.open if (one.name, one.active_sms) != (name, sms)]
            self._begin(begun)
            self.open.append(begun)
        elif found["mark"] == "end":
            self._end(name, self._time(found["time"]), sms, launches)
        else:
            raise ValueError(f"mark is {found['mark']!r}, which is neither begin nor end")

    def _named(self, cells: list[str]) -> dict[str, str]:
        """Return the cells of a line by their columns, those of ``extra`` by their keys."""
        has_extra = self.header[-1] == "extra"
        own = self.header[:-1] if has_extra else self.header
        needed = max(place for place, name in enumerate(own, 1) if name not in MAY)
        if len(cells) < needed or (len(cells) > len(own) and not has_extra):
            raise ValueError(unfit(len(cells), needed if len(cells) < needed else len(own)))
        found = dict(zip(own, cells, strict=False))
        for cell in filter(None, cells[len(own) :]):
            key, is_one, value = cell.partition("=")
            if not is_one:
                raise ValueError(f"the cell {cell!r} is no key=value")
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
            found = stamp(text)
        if found is None:
            raise ValueError(f"{text!r} is no time: neither seconds since 1970 nor such as 2026-11-20T13:16:16.2Z")
        self.clock = self.clock or found[0]
        if found[0] != self.clock:
            raise ValueError(f"{text!r} is {found[0]}, but the times above it are {self.clock}")
        return found[1]

    def _begin(self, phase: Phase) -> None:
        if len(self.phases) == MOST:
            raise BrokenInputError(f"line {phase.line}: a file of marks has at most {MOST:,} phases; split it")
        self.phases.append(phase)

    def _end(self, name: str, time_ns: int, sms: int | None, launches: int | None) -> None:
        about = repr(name) if sms is None else f"{name!r} with sms {sms}"
        # Where one of both says nothing of SMs, the name alone tells.
        begun = [one for one in self.open if one.name == name and (sms is None or one.active_sms in (sms, None))]
        if len(begun) != 1:
            several = f"{len(begun)} begins are open; write the sms" if begun else "no begin is open"
            raise ValueError(f"an end of {about}, of which {several}")
        phase = begun[0]
        if time_ns < phase.begin_ns:
            raise ValueError(f"an end of {about} before its begin on line {phase.line}")
        phase.end_ns = time_ns
        phase.active_sms = sms if phase.active_sms is None else phase.active_sms
        phase.launches = phase.launches if launches is None else launches
        self.open.remove(phase)

    def batch(self) -> Batch:
        """Hand on the account so far."""
        return self.ledger.batch({})

    def last(self, encoding: str) -> Batch:
        """Hand on the phases in the order of their begins; refuse a file without one."""
        if not self.phases:
            raise BrokenInputError(
                f"the file holds no mark; {self.first_reason or 'it has no line below its header'}; "
                f"see: profsvc formats {NAME}"
            )
        phases = sorted(self.phases, key=lambda phase: (phase.begin_ns, phase.line))
        rows: dict[str, Sequence[object]] = {
            "name": _names(phases),
            "start_ns": [phase.begin_ns for phase in phases],
            "duration_ns": [None if p.end_ns is None else float(p.end_ns - p.begin_ns) for p in phases],
            "domain": [phase.name for phase in phases],
            **{name: [getattr(phase, name) for phase in phases] for name in ("active_sms", "launches", "line")},
        }
        facts = {"encoding": encoding, "clock": self.clock or UTC}
        return self.ledger.batch({"ranges": frame("ranges", rows)}, facts, _message(phases))


def _names(phases: list[Phase]) -> list[str]:
    """Name each phase by its type and SMs, and by a number where that is not enough."""
    taken: dict[str, int] = {}
    names = []
    for phase in phases:
        sms = phase.active_sms
        plain = f"{phase.name}, {sms} SM{'s' * (sms != 1)}" if sms else phase.name
        taken[plain] = number = taken.get(plain, 0) + 1
        names.append(plain if number == 1 else f"{plain} ({number})")
    return names


def _message(phases: list[Phase]) -> str:
    """Say which begins have no end, and how many phases overlap."""
    lost = [str(phase.line) for phase in phases if phase.end_ns is None]
    until_ns, overlapping = 0, 0
    for phase in phases:
        if phase.end_ns is not None:
            overlapping += phase.begin_ns < until_ns
            until_ns = max(until_ns, phase.end_ns)
    parts = []
    if lost:
        more = f" and {len(lost) - SHOWN} more" if len(lost) > SHOWN else ""
        parts.append(f"no end for the begin on line {', '.join(lost[:SHOWN])}{more}")
    if overlapping:
        parts.append(f"{overlapping} of {len(phases)} phases begin before an earlier one has ended")
    return "; ".join(parts)


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read marks in one walk over the file."""
    with Text(stream) as text:
        file = _File()
        for line, content in numbered(text):
            file.add(line, content)
            if file.ledger.full:
                yield file.batch()
        yield file.last(text.encoding)
