"""Thermocouples on a die as text for a terminal: readings, heat map and rotation test."""

from collections.abc import Iterable, Sequence
from typing import Any

from profsvc.reports.rows import render, visible
from profsvc.reports.text.cells import middle
from profsvc.reports.text.models.values import Row, figure, interval

EACH = "thermocouple"
HEAT = (EACH, "heat_map", "rotation_test", "repeatability_test")
# Quantity of a sensor -> its column title.
COLUMNS = {
    "steady_temperature": "\u00b0C", "drift": "\u00b0C/min", "calibration_offset": "offset \u00b0C",
    "sensor_bias": "bias K",
}  # fmt: skip


def page(view: Row, width: int | None = None) -> str:
    """Return a heat map or a rotation test as text."""
    info, of = view["run"], ""
    if "passed" in view:
        angle = view["angle_deg"]
        kind = f"rotated by {angle:g} degrees" if angle else "remounted"
        lines = [f"spacer of {_run(info)}, {kind} in {_run(view['rotated'])}"]
        lines.append("  both agree on the chip" if view["passed"] else f"  they disagree: {view['reason']}")
    else:
        of = f", minus {_run(view['minus'])}" if view["minus"] else ""
        lines = [f"heat map of {_run(info)}{of}", *(f"  warning: {note}" for note in view["heat_map"]["notes"])]
    lines += [f"  calibrated by {_run(view['calibration'])}"] if view["calibration"] else []
    lines += ["", *lines_of(view["models"], width)]
    return "\n".join(visible(line) for line in lines) + "\n"


def _run(info: Row) -> str:
    return f"run {info['name']} (id {info['run_id']})"


def lines_of(rows: Sequence[Row], width: int | None = None) -> Iterable[str]:
    """Yield one row per thermocouple, then their common results."""
    sensors: dict[Any, list[Row]] = {}
    for row in rows:
        if row["sensor_id"] is not None:
            sensors.setdefault(row["sensor_id"], []).append(row)
    if sensors:
        yield "thermocouples on the die"
        quantities = {row["quantity"] for own in sensors.values() for row in own}
        heads = {name: title for name, title in COLUMNS.items() if name in quantities}
        cells = [_cells(own, heads) for own in sensors.values()]
        notes = any(one["note"] for one in cells)
        columns = ["sensor", *heads.values(), *(["note"] if notes else [])]
        yield from str(render(columns, cells, "table", width=width)).splitlines()
    for model in HEAT:
        own = [row for row in rows if row["model"] == model and row["sensor_id"] is None]
        if own:
            yield f"  {model.replace('_', ' ')}"
            yield from map(figure, own)
            warnings = dict.fromkeys(row["reason"] for row in own if row["reason"] and row["value"] is not None)
            yield from (f"    warning: {reason}" for reason in warnings)


def _cells(own: Sequence[Row], heads: Row) -> dict[str, Any]:
    by_name = {row["quantity"]: row for row in own}
    cells = {title: interval(by_name[name], "value", "low", "high") for name, title in heads.items() if name in by_name}
    reasons = dict.fromkeys(row["reason"] for row in own if row["reason"])
    return {"sensor": middle(str(own[0]["sensor"]), 32), **cells, "note": "; ".join(reasons)}
