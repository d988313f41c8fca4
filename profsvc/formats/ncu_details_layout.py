"""Where the columns of a details page stand."""

from collections.abc import Sequence
from functools import cached_property

from profsvc.errors import counted
from profsvc.formats import ncu
from profsvc.formats.ncu_details_blocks import Plan
from profsvc.formats.ncu_lines import IDENTITY


class Layout:
    """Where the columns of one table stand; -1 where the layout has no such column."""

    def __init__(self, header: list[str]) -> None:
        """Find the columns of a header."""
        self.width = len(header)
        place = {name: n for n, name in reversed(list(enumerate(header)))}
        self.identity = {name: place[name] for name in IDENTITY if name in place}
        self.ranges = {name: place[name] for name in header if name.endswith(ncu.RANGES)}
        self.process = place.get("Process ID", 0)
        self.metric, self.unit, self.value = (place[f"Metric {word}"] for word in ("Name", "Unit", "Value"))
        self.section, self.body = place.get("Section Name", -1), place.get("Body Item Label", -1)
        self.rule, self.rule_type = place.get("Rule Name", -1), place.get("Rule Type", -1)
        self.message = place.get("Rule Description", -1)
        self.kind, self.estimate = place.get("Estimated Speedup Type", -1), place.get("Estimated Speedup", -1)

    @cached_property
    def plan(self) -> Plan | None:
        """How to read blocks of rows; None where the columns do not stand as they usually do."""
        named = [place for place in (self.section, self.body, self.metric) if place >= 0]
        before = (*self.identity.values(), *self.ranges.values())
        usual = [*named, self.unit, self.value] == list(range(named[0], named[0] + len(named) + 2))
        if not usual or self.process != 1 or max(before) >= named[0]:
            return None
        return Plan(self.width, before, named[0], self.metric, self.unit)

    def named(self, cells: Sequence[str]) -> tuple[str | None, str, str]:
        """Return section, metric and unit out of the cells of ``plan``, from the first that names a row to the unit."""
        every = [""] * (self.unit + 1 - len(cells)) + list(cells)
        return self.section_of(every), ncu.metric_name(every[self.metric]), every[self.unit]

    def section_of(self, cells: list[str]) -> str | None:
        """Return the section of a row with its body item; None where the tool prints none."""
        section = cells[self.section] if self.section >= 0 else ""
        body = cells[self.body] if self.body >= 0 else ""
        return (f"{section} > {body}" if body else section) or None

    def wrong(self, cells: list[str]) -> str:
        """Say what is wrong with a row; nothing for a metric or a whole rule."""
        if cells[self.metric]:
            return ""
        if self.rule < 0 or len(cells) <= self.rule or not cells[self.rule]:
            return "the row names neither a metric nor a rule"
        if len(cells) < self.width:
            return f"the row of a rule has {counted(len(cells), 'cell')} but needs {self.width}"
        return ""
