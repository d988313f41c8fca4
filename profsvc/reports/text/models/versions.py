"""Speedups along a series of versions as text for a terminal."""

from collections.abc import Iterable, Mapping
from textwrap import wrap
from typing import Any

from profsvc.reports.ratios import times
from profsvc.reports.rows import cell, render, visible

Row = Mapping[str, Any]
LINE = 112
HEADS = {"version": "version", "time_us": "us", "step": "step", "total": "total", "potential": "potential",
         "left_of_first": "left of first", "ideal_us": "ideal us", "part": "most gained by", "part_share": "share",
         "part_speedup": "speedup", "part_alone": "alone"}  # fmt: skip
RATIOS = ("step", "total", "potential", "left_of_first", "part_speedup", "part_alone")


def page(view: Row, width: int | None = None) -> str:
    """Return the versions as text, with columns that have a value."""
    return "\n".join(visible(line) for line in _lines(view, width)) + "\n"


def _lines(view: Row, width: int | None) -> Iterable[str]:
    shown = [name for name in HEADS if any(row[name] is not None for row in view["rows"])]
    cells = [{HEADS[name]: _shown(name, row[name]) for name in shown} for row in view["rows"]]
    yield from str(render([HEADS[name] for name in shown], cells, "table", width=width)).splitlines()
    for note in view["notes"]:
        yield from wrap(note, LINE, subsequent_indent="  ")


def _shown(name: str, value: Any) -> str:
    if value is None:
        return ""
    if name == "part_share":
        return f"{100 * value:.0f} %"
    return times(value) if name in RATIOS else cell(value)
