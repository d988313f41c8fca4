"""The wall time of devices on the page of a run: a bar of what went on, the budget, and what is unknown."""

from collections.abc import Sequence
from typing import Any

from profsvc.reports.text.wall_time import device_name
from profsvc.web.pages.rendering.tables import Column, Row, row_reference

MAX_DEVICES = 8
_ROW = row_reference("item")


def _column(name: str, title: str, kind: str) -> Column:
    return Column(name, title, kind, f"v1_wall_time.{name}", _ROW)


WALL_TIME_COLUMNS = (
    Column("title", "what went on", "noted"),
    _column("time_ns", "time", "duration"),
    _column("share", "share of wall time", "part"),
    _column("recoverable_ns", "could save at most", "duration"),
    _column("hidden_ns", "hidden", "duration"),
    _column("events", "events", "number"),
)


def wall_time_sections(lanes: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the template variables of the devices that could save most, first."""
    ranked = sorted(lanes, key=lambda lane: -lane["recoverable_ns"])
    return [_section(lane) for lane in ranked[:MAX_DEVICES]]


def _section(lane: Row) -> dict[str, Any]:
    parts, place = [], 0.0
    for number, row in enumerate(lane["budget"]):
        width = 100 * (row["share"] or 0.0)
        parts.append({"title": row["title"], "share": row["share"], "x": place, "width": width, "colour": number % 6})
        place += width
    return {
        "heading": device_name(lane),
        "parts": parts,
        "rows": [row | {"remark": _remark(row)} for row in lane["budget"]],
        "iterations": lane["iterations"],
        "notes": lane["notes"],
    }


def _remark(row: Row) -> str:
    """Say what the category is, and its calls, ranges or kernels with most time."""
    names = ", ".join(str(one["name"]) for one in row["names"][:3])
    return f"{row['meaning']}{f'; most in: {names}' if names else ''}"
