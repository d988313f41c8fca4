"""Active cores, their pairs and sets as text for a terminal."""

from collections.abc import Iterable, Mapping
from typing import Any

from profsvc.reports.rows import cell, render, visible

KINDS = {
    "core": "one active core, above the idle die",
    "set": "measured sets of cores",
    "choice": "choices with the coolest predicted hot spot",
    "configuration": "power and temperature of sets of cores",
}
TITLES = {
    "cores": "cores", "active_tpcs": "clusters", "power_w": "W", "temperature_c": "\u00b0C",
    "hot_spot_c": "hot spot \u00b0C", "predicted_c": "predicted \u00b0C", "error_c": "error \u00b0C",
    "place": "at (mm)",
    "contrast": "contrast K", "partner": "partner", "correlation": "correlation", "difference_c": "difference K",
    "next_difference_c": "next K", "note": "note",
}  # fmt: skip


def page(view: Mapping[str, Any], width: int | None = None) -> str:
    """Return the rows by kind, and the notes."""
    return "\n".join(visible(line) for line in _lines(view, width)) + "\n"


def _lines(view: Mapping[str, Any], width: int | None) -> Iterable[str]:
    below = f", above idle run {view['idle']['name']}" if view["idle"] else ""
    yield f"active cores of {len(view['runs'])} runs{below}"
    for kind, title in KINDS.items():
        own = [_cells(row) for row in view["rows"] if row["kind"] == kind]
        if own:
            heads = [name for name in TITLES if any(row.get(name) not in (None, "") for row in own)]
            rows = [{TITLES[name]: row.get(name) for name in heads} for row in own]
            yield ""
            yield title
            yield from str(render([TITLES[name] for name in heads], rows, "table", width=width)).splitlines()
    if view["notes"]:
        yield ""
        yield from (f"  {note}" for note in view["notes"])


def _cells(row: Mapping[str, Any]) -> dict[str, Any]:
    place = None if row["x_mm"] is None else f"{row['x_mm']:.1f}, {row['y_mm']:.1f}"
    ends = (row["contrast_c"], row["contrast_low_c"], row["contrast_high_c"])
    contrast = None if ends[0] is None else f"{cell(ends[0])} [{cell(ends[1])}, {cell(ends[2])}]"
    return {**row, "place": place, "contrast": contrast}
