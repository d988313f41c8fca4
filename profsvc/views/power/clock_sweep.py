"""The best clock from windows of runs: what one load took at each clock, for the calculator ``energy frequency``."""

from collections.abc import Mapping, Sequence
from typing import Any

from profsvc.errors import NotFoundError, UsageError
from profsvc.views.calculators.answers import calculate
from profsvc.views.calculators.catalog import calculator_of

NOT_WORK = ("idle", "run")
Row = Mapping[str, Any]


def clock_sweep(
    rows: Sequence[Row], load: str | None = None, sensor: str | None = None, options: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return energy over the clock from rows of ``v1_power`` of all runs of a sweep, and the best clock.

    A point is a window of the load: its mean SM clock, its time per launch where launches were counted, and its power
    at one temperature where it is known. Without ``load`` and ``sensor`` those with most clocks are taken.
    """
    windows = [row for row in rows if row["kind"] not in NOT_WORK and row["mean_power_w"] and row["duration_s"]]
    if not windows:
        raise NotFoundError("these runs have no windows of load with power; see: profsvc power RUN")
    for name, wanted in (("load", load), ("sensor", sensor)):
        known = sorted({str(_name(row, name)) for row in windows})
        if wanted is not None and wanted not in known:
            raise NotFoundError.near(name, wanted, known)
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in windows:
        key = (str(_name(row, "load")), str(row["sensor"]))
        if load in (None, key[0]) and sensor in (None, key[1]) and row["mean_clock_hz"]:
            groups.setdefault(key, []).append(row)
    if not groups:
        raise NotFoundError("no window has an SM clock; log it beside the power: nvidia-smi --query-gpu=clocks.sm")
    (name, of), points = max(groups.items(), key=lambda one: len({round(row["mean_clock_hz"]) for row in one[1]}))
    if any(row["active_sms"] != points[0]["active_sms"] for row in points):
        raise UsageError(f"the windows of load {name} differ in their SMs, so their work differs; give another --load")
    per_launch = all(row["launches"] for row in points)
    corrected = all(row["corrected_power_w"] for row in points)
    settled = all(row["settled_power_w"] for row in points)
    power = "corrected_power_w" if corrected else "settled_power_w" if settled else "mean_power_w"
    table = [
        {
            "clock": row["mean_clock_hz"] / 1e6,
            "time": row["duration_s"] / (row["launches"] if per_launch else 1),
            "power": row[power],
        }
        for row in points
    ]
    view = calculate(calculator_of("energy-frequency"), {**(options or {}), "table": table})
    time = "time of a launch" if per_launch else "time of a window, each taken for the same work"
    said = f"load {name} of sensor {of}, {len(points)} windows: {time}, {power.replace('_w', '').replace('_', ' ')}"
    return view | {"notes": [*view["notes"], said]}


def _name(row: Row, name: str) -> Any:
    """Return the load of a window, or its own name where it has none."""
    return row[name] if name != "load" or row["load"] else row["window"]
