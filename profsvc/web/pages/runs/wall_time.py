"""The wall time of devices on the page of a run: a bar of what went on, the budget, and what is unknown."""

from collections.abc import Sequence
from typing import Any

from profsvc.reports.text.runs.wall_time import collective_waits, device_name
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
    return [_section(lane, lanes) for lane in ranked[:MAX_DEVICES]]


# Part of the bar at the top of a run -> the kinds of categories in it, and its colour in all bars of the page.
_SUMMARY = (
    ("kernels", "Kernels", ("kernels", "graphs", "collectives"), 0),
    ("copies", "Copies", ("device_copies", "host_copies", "unified_memory", "memsets"), 1),
    ("idle", "Idle", (), 3),
)
_COLOURS = {category: colour for _, _, categories, colour in _SUMMARY for category in categories}
_IDLE_COLOUR = _SUMMARY[-1][3]


def wall_time_summary(lanes: Sequence[Row]) -> dict[str, Any] | None:
    """Return the wall time of all devices as one bar of kernels, copies and idle time; None without a trace."""
    known = [lane for lane in lanes if lane["wall_ns"]]
    if not known:
        return None
    wall_ns = sum(lane["wall_ns"] for lane in known)
    rows = [row for lane in known for row in lane["budget"]]
    parts, place = [], 0.0
    for name, title, categories, colour in _SUMMARY:
        wanted = [r for r in rows if (r["category"] in categories if categories else r["category"] not in _COLOURS)]
        time_ns = sum(row["time_ns"] for row in wanted)
        width = 100 * time_ns / wall_ns
        parts.append({"name": name, "title": title, "time_ns": time_ns, "share": time_ns / wall_ns, "x": place,
                      "width": width, "colour": colour})  # fmt: skip
        place += width
    return {"wall_ns": wall_ns, "parts": parts, "devices": len(known)}


def _section(lane: Row, lanes: Sequence[Row]) -> dict[str, Any]:
    parts, place = [], 0.0
    for row in lane["budget"]:
        width = 100 * (row["share"] or 0.0)
        colour = _COLOURS.get(row["category"], _IDLE_COLOUR)
        parts.append({"title": row["title"], "share": row["share"], "x": place, "width": width, "colour": colour})
        place += width
    return {
        "heading": device_name(lane),
        "parts": parts,
        "rows": [row | {"remark": _remark(row)} for row in lane["budget"]],
        "iterations": lane["iterations"],
        "waits": [f"{said[0].upper()}{said[1:]}." for said in collective_waits(lane, lanes)],
        "notes": lane["notes"],
    }


def _remark(row: Row) -> str:
    """Say what the category is, and its calls, ranges or kernels with most time."""
    names = ", ".join(str(one["name"]) for one in row["names"][:3])
    return f"{row['meaning']}{f'; most in: {names}' if names else ''}"
