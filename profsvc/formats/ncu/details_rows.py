"""The columns of a details page, and the rows of a block of it, however they were split."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from profsvc.errors import counted
from profsvc.formats.columnar.line_blocks import Floats, Letters
from profsvc.formats.ncu import launches as ncu_launches
from profsvc.formats.ncu.csv_lines import IDENTITY_COLUMNS
from profsvc.formats.parsing.timestamps import Int64s

Int32s = npt.NDArray[np.int32]


class ColumnPlan(NamedTuple):
    """The places of the cells that identify a row.

    The cells from ``named`` to ``unit`` name the metric; the value follows. A metric row may end after its value,
    the row of a rule has the full ``width``.
    """

    width: int
    identity: tuple[int, ...]
    named: int
    metric: int
    unit: int


class Layout:
    """The places of the columns of one table; -1 for a missing column."""

    def __init__(self, header: list[str]) -> None:
        """Find the columns of ``header``."""
        self.width = len(header)
        place = {name: n for n, name in reversed(list(enumerate(header)))}
        self.identity = {name: place[name] for name in IDENTITY_COLUMNS if name in place}
        self.ranges = {name: place[name] for name in header if name.endswith(ncu_launches.RANGE_SUFFIX)}
        self.process = place.get("Process ID", 0)
        self.metric, self.unit, self.value = (place[f"Metric {word}"] for word in ("Name", "Unit", "Value"))
        self.section, self.body = place.get("Section Name", -1), place.get("Body Item Label", -1)
        self.rule, self.rule_type = place.get("Rule Name", -1), place.get("Rule Type", -1)
        self.message = place.get("Rule Description", -1)
        self.kind, self.estimate = place.get("Estimated Speedup Type", -1), place.get("Estimated Speedup", -1)

    @cached_property
    def plan(self) -> ColumnPlan | None:
        """How to read blocks of rows; None if the columns are in an unusual order."""
        named = [place for place in (self.section, self.body, self.metric) if place >= 0]
        before = (*self.identity.values(), *self.ranges.values())
        usual = [*named, self.unit, self.value] == list(range(named[0], named[0] + len(named) + 2))
        if not usual or self.process != 1 or max(before) >= named[0]:
            return None
        return ColumnPlan(self.width, before, named[0], self.metric, self.unit)

    def named(self, cells: Sequence[str]) -> tuple[str | None, str, str]:
        """Return section, metric and unit from the cells that name a row in ``plan``."""
        every = [""] * (self.unit + 1 - len(cells)) + list(cells)
        return self.section_of(every), ncu_launches.metric_name(every[self.metric]), every[self.unit]

    def section_of(self, cells: list[str]) -> str | None:
        """Return the section of a row with its body item; None if it has no section."""
        section = cells[self.section] if self.section >= 0 else ""
        body = cells[self.body] if self.body >= 0 else ""
        return (f"{section} > {body}" if body else section) or None

    def wrong(self, cells: list[str]) -> str:
        """Return the reason to reject a row; empty for a metric or a complete rule."""
        if cells[self.metric]:
            return ""
        if self.rule < 0 or len(cells) <= self.rule or not cells[self.rule]:
            return "the row names neither a metric nor a rule"
        if len(cells) < self.width:
            return f"the row of a rule has {counted(len(cells), 'cell')} but needs {self.width}"
        return ""


class Spans(NamedTuple):
    """Texts in UTF-8: where each begins and ends in ``letters``."""

    letters: Letters
    begins: Int32s
    ends: Int32s

    def text(self, row: int) -> str:
        """Return one of them."""
        return self.letters[self.begins[row] : self.ends[row]].tobytes().decode()

    def texts(self, rows: Int64s) -> list[str]:
        """Return some of them."""
        return list(map(self.text, rows.tolist()))


class ParsedRows(NamedTuple):
    """The launches of a block, and the name and the value of each row.

    ``firsts`` are the first rows of the launches, ``identity`` their cells by column. ``names`` holds the cells that
    name a row, and their earlier occurrences in the launch. ``cells`` are those of the values, and ``values`` their
    numbers, NaN for a cell that is not a plain number.
    """

    rows: int
    firsts: Int64s
    identity: list[list[str]]
    launch: Int64s
    names: list[tuple[tuple[str, ...], int]]
    name: Int64s
    cells: Spans
    values: Floats
    rules: dict[int, list[str]]


def with_occurrence(
    named: list[tuple[str, ...]], code: Int64s, launch: Int64s
) -> tuple[list[tuple[tuple[str, ...], int]], Int64s]:
    """Number the rows of a launch that have the same name."""
    key = launch * len(named) + code
    if (np.diff(key) > 0).all():
        return [(name, 0) for name in named], code
    order = np.argsort(key, kind="stable")
    begins = np.flatnonzero(np.diff(key[order], prepend=-1))
    if len(begins) == len(key):
        return [(name, 0) for name in named], code
    occurrence = np.empty(len(key), np.int64)
    occurrence[order] = np.arange(len(key)) - np.repeat(begins, np.diff(begins, append=len(key)))
    most = int(occurrence.max()) + 1
    found, back = np.unique(code * most + occurrence, return_inverse=True)
    return [(named[both // most], both % most) for both in found.tolist()], back.astype(np.int64)
