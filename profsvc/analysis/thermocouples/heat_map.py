"""Heat map of the die from the thermocouples of a run, or of the difference of two runs; or why there is none."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from profsvc import specs
from profsvc.analysis.thermocouples.plate_calibration import plate_offsets
from profsvc.analysis.thermocouples.series import Array, Log, TimeRange, sensors_on_die
from profsvc.analysis.thermocouples.steady_state import (
    COLUMNS,
    SteadyState,
    result_frame,
    result_row,
    steady_temperatures,
)
from profsvc.errors import NotFoundError
from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.thermocouples import heat_map as maps

__all__ = ["COLUMNS", "DieMap", "HeatMapResult", "Log", "TimeRange", "die_mm", "heat_map"]

MAX_NAMED_SENSORS = 2  # sensors left out that a refusal names; the rows have all of them
EDGE_TOLERANCE_MM = 0.5  # a sensor this far outside of the die still lies at its edge


class DieMap(NamedTuple):
    """What a picture of the die shows; temperatures in degC, of a difference in K, places in mm."""

    grid_x_mm: Array
    grid_y_mm: Array
    temperature_c: Array
    edges_c: Array
    names: tuple[str, ...]
    sensor_x_mm: Array
    sensor_y_mm: Array
    sensor_c: Array
    hot_c: float
    hot_x_mm: float
    hot_y_mm: float
    difference: bool
    outline_mm: Array
    outline_is_die: bool
    notes: tuple[str, ...]


class HeatMapResult(NamedTuple):
    """Result rows, the map, and why there is no map."""

    rows: pd.DataFrame
    die_map: DieMap | None
    reason: str


def die_mm(device: str | None) -> tuple[float, float] | None:
    """Return width and height of the die of a device, where a source gives them.

    >>> die_mm("GeForce GTX 280"), die_mm("NVIDIA H200")
    ((24.0, 24.0), None)
    """
    try:
        known = specs.device(device or "")
    except NotFoundError:
        return None
    if known.die_width_mm is None or known.die_height_mm is None:
        return None
    return known.die_width_mm, known.die_height_mm


def heat_map(
    log: Log,
    *,
    calibration: Log | None = None,
    minus: Log | None = None,
    die: tuple[float, float] | None = None,
    gain: bool = False,
    reference_c: float | None = None,
    rc_s: float | None = None,
    cut: TimeRange | None = None,
) -> HeatMapResult:
    """Return the heat map of a run, with the result rows that it rests on.

    ``calibration`` is a run between plates of uniform temperature, by channels of the same names, and ``gain`` fits
    the gain too, from several plates; ``minus`` is a run whose map is taken off; ``die`` is its width and height, with
    the origin of the sensors' places in its lower left corner. ``reference_c``, the temperature of the reference
    junction, makes temperatures of type J from channels in V; ``rc_s`` is the time constant of the chip, for a log
    that begins with the load; ``cut`` takes a part of the log.
    """
    names = set(sensors_on_die(log.sensors)["name"]) | (
        set() if minus is None else set(sensors_on_die(minus.sensors)["name"])
    )
    off = None if calibration is None or not names else plate_offsets(calibration, names, gain, reference_c)
    if isinstance(off, str):
        return _refused([], f"the calibration run cannot be used: {off}")
    run = steady_temperatures(log, cut or TimeRange(), reference_c, rc_s, off)
    if reason := run.reason or _placement_problem(run):
        return _refused(run.rows, reason)
    other = None if minus is None else steady_temperatures(minus, TimeRange(), reference_c, rc_s, off)
    if other is not None and (reason := other.reason or _placement_problem(other)):
        return _refused(run.rows, f"the subtracted run: {reason}")
    die_map, rows = _make_map(run, other, die)
    if die_map is None:
        return _refused(
            run.rows, "the maps of the two runs do not overlap: their sensors are on different parts of the die"
        )
    return HeatMapResult(result_frame([*run.rows, *rows]), die_map, "")


def _refused(rows: list[dict[str, Any]], reason: str) -> HeatMapResult:
    of_map = result_row("heat_map", "hot_spot", np.nan, np.nan, "degC", flags=int(Flag.INPUT_SUSPECT), reason=reason)
    return HeatMapResult(result_frame([*rows, of_map]), None, reason)


def _places(run: SteadyState) -> tuple[Array, Array]:
    return run.sensors["x_mm"].to_numpy(np.float64), run.sensors["y_mm"].to_numpy(np.float64)


def _placement_problem(run: SteadyState) -> str:
    """Why the places of the sensors span no map; empty where they do."""
    known = np.isfinite(run.value)
    x, y = (axis[known] for axis in _places(run))
    names = run.sensors["name"].to_numpy(object)[known]
    more = [f"and {len(run.notes) - MAX_NAMED_SENSORS} more"] if len(run.notes) > MAX_NAMED_SENSORS else []
    left = f" ({'; '.join([*run.notes[:MAX_NAMED_SENSORS], *more])})" if run.notes else ""
    if x.size < maps.MIN_SENSORS:
        return f"{x.size} sensors with a position have a steady value; a map needs {maps.MIN_SENSORS}{left}"
    near = np.triu(np.hypot(x[:, np.newaxis] - x, y[:, np.newaxis] - y) < 2 * maps.SAME_PLACE_MM, 1)
    if near.any():
        a, b = np.argwhere(near)[0]
        return f"{names[a]} and {names[b]} are both at ({x[a]:g}, {y[a]:g}) mm; each position needs its own sensor"
    if maps.interpolated(x, y, np.zeros(x.size), x, y).kind == maps.NONE:
        return f"the {x.size} sensors with a position are on one line; a map needs one off that line{left}"
    return ""


def _make_map(
    run: SteadyState, other: SteadyState | None, die: tuple[float, float] | None
) -> tuple[DieMap | None, list[dict[str, Any]]]:
    x, y = _places(run)
    found, shown, error = maps.heat_map(x, y, run.value), run.value, run.error
    form, notes = maps.KINDS[int(found.kind)], run.notes
    if other is not None:
        grid = found.grid_x_mm, found.grid_y_mm
        below = maps.heat_map(*_places(other), other.value, *grid)
        found = maps.difference_map(*grid, found.temperature_c, below.temperature_c, int(found.kind))
        if found.kind == maps.NONE:
            return None, []
        shown = run.value - maps.interpolated(*_places(other), other.value, x, y).temperature_c
        # A place between sensors of the other run is at most as uncertain as the worst of them.
        error = np.hypot(error, np.max(np.where(np.isfinite(other.value), other.error, 0.0)))
        form, notes = f"difference, {form}", (*notes, *(f"subtracted run: {note}" for note in other.notes))
    outline, is_die, note = _outline(x, y, die)
    edges = maps.band_edges(found.temperature_c)
    die_map = DieMap(
        found.grid_x_mm, found.grid_y_mm, found.temperature_c, edges, tuple(map(str, run.sensors["name"])), x, y, shown,
        float(found.hot_c), float(found.hot_x_mm), float(found.hot_y_mm), other is not None, outline, is_die,
        (*notes, *note),
    )  # fmt: skip
    return die_map, _map_rows(die_map, error, form, bool(notes))


def _map_rows(die_map: DieMap, error: Array, form: str, incomplete: bool) -> list[dict[str, Any]]:
    known = np.isfinite(die_map.sensor_c)
    away = np.hypot(die_map.sensor_x_mm - die_map.hot_x_mm, die_map.sensor_y_mm - die_map.hot_y_mm)
    hottest = error[int(np.argmin(np.where(known, away, np.inf)))]
    unit = "K" if die_map.difference else "degC"
    contrast = die_map.hot_c - float(np.median(die_map.sensor_c[known])) if known.any() else np.nan
    flags = int(Flag.INPUT_SUSPECT) if incomplete else 0
    more = {"form": form, "flags": flags, "reason": "; ".join(die_map.notes) if incomplete else None}
    return [
        result_row("heat_map", "hot_spot", die_map.hot_c, hottest, unit, **more),
        result_row("heat_map", "hot_spot_x", die_map.hot_x_mm, np.nan, "mm", **more),
        result_row("heat_map", "hot_spot_y", die_map.hot_y_mm, np.nan, "mm", **more),
        result_row("heat_map", "contrast", contrast, np.nan, "K", **more),
        result_row("heat_map", "sensors", float(known.sum()), np.nan, "1", **more),
    ]


def _outline(x: Array, y: Array, die: tuple[float, float] | None) -> tuple[Array, bool, tuple[str, ...]]:
    from scipy.spatial import ConvexHull

    note = "the die size is unknown: the frame is the hull of the sensors"
    if die is not None:
        width, height = die
        beside = (
            (x < -EDGE_TOLERANCE_MM)
            | (y < -EDGE_TOLERANCE_MM)
            | (x > width + EDGE_TOLERANCE_MM)
            | (y > height + EDGE_TOLERANCE_MM)
        )
        if not beside.any():
            return np.array([(0, 0), (width, 0), (width, height), (0, height)], dtype=np.float64), True, ()
        note = (
            f"{int(beside.sum())} of {x.size} sensors are outside the die of {width:g} by {height:g} mm, so their "
            "positions are not relative to its lower left corner: the frame is the hull of the sensors"
        )
    places = np.column_stack((x, y))
    return places[ConvexHull(places).vertices], False, (note,)
