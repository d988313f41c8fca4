"""Thermocouples of runs with known active cores: each core alone, cores that pair, and hot spots of sets."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import comb
from typing import Any, NamedTuple

import numpy as np

from profsvc.analysis.thermocouples.plate_calibration import plate_offsets
from profsvc.analysis.thermocouples.series import Array, Log, TimeRange, sensors_on_die
from profsvc.analysis.thermocouples.steady_state import SteadyState, steady_temperatures
from profsvc.formulas.thermocouples.active_cores import core_contrast, pair_cores, predicted_hot_spots

MAX_OPTIONS, BEST_OPTIONS = 100_000, 10
Cores = tuple[int, ...]


class CoreMaps(NamedTuple):
    """Answers by kind, the rise of each core over the idle die at the sensors, and why there are none."""

    alone: list[dict[str, Any]]
    sets: list[dict[str, Any]]
    options: list[dict[str, Any]]
    cores: tuple[int, ...]
    rise_c: Array
    x_mm: Array
    y_mm: Array
    notes: list[str]
    reason: str = ""


def core_maps(
    runs: Sequence[tuple[Cores, Log]], idle: Log, active: int | None, calibration: Log | None, rc_s: float | None
) -> CoreMaps:
    """Return what runs with active cores show above an idle run: cores alone, pairs, sets, and the best ``active``.

    Sensors are those of the idle run with a place on the die; the others are matched by name.
    """
    names = set(sensors_on_die(idle.sensors)["name"])
    off = None if calibration is None or not names else plate_offsets(calibration, names, False, None)
    if isinstance(off, str):
        return _without_maps(f"the calibration run cannot be used: {off}")
    cold = steady_temperatures(idle, TimeRange(), None, rc_s, off)
    if cold.reason:
        return _without_maps(f"the idle run: {cold.reason}")
    rise: dict[Cores, tuple[Array, Array]] = {}
    notes: list[str] = []
    for cores, log in runs:
        warm = steady_temperatures(_at_places(log, cold), TimeRange(), None, rc_s, off)
        label = "-".join(map(str, cores))
        if warm.reason:
            notes.append(f"cores {label} left out: {warm.reason}")
        elif cores in rise:
            notes.append(f"cores {label} were measured more than once; the first run is used")
        else:
            value, error = _by_name(warm, warm.value, cold), _by_name(warm, warm.error, cold)
            rise[cores] = value - cold.value, np.hypot(error, cold.error)
    if not rise:
        return _without_maps("; ".join(notes) or "no run has active cores")
    single = {cores[0]: maps for cores, maps in rise.items() if len(cores) == 1}
    x, y = (cold.sensors[axis].to_numpy(np.float64) for axis in ("x_mm", "y_mm"))
    numbers = tuple(sorted(single))
    maps = np.array([single[core][0] for core in numbers]).reshape(len(numbers), x.size)
    errors = np.array([single[core][1] for core in numbers]).reshape(maps.shape)
    alone = _alone(numbers, maps, errors, cold.value, (x, y))
    several = {cores: value for cores, (value, _) in rise.items() if len(cores) > 1}
    sets = _sets(several, numbers, maps, cold.value)
    options = _best_sets(numbers, maps, cold.value, active, notes)
    return CoreMaps(alone, sets, options, numbers, maps, x, y, notes)


def _without_maps(reason: str) -> CoreMaps:
    none = np.empty(0)
    return CoreMaps([], [], [], (), none.reshape(0, 0), none, none, [], reason)


def _at_places(log: Log, cold: SteadyState) -> Log:
    """Return a log with the places of the sensors of the idle run."""
    places = cold.sensors.drop_duplicates("name").set_index("name")[["x_mm", "y_mm"]]
    sensors = log.sensors[log.sensors["name"].isin(list(places.index))]
    found = {axis: sensors["name"].map(places[axis]) for axis in ("x_mm", "y_mm")}
    return Log(sensors.assign(**found), log.samples)


def _by_name(run: SteadyState, values: Array, cold: SteadyState) -> Array:
    known = dict(zip(run.sensors["name"], values.tolist(), strict=True))
    return np.array([known.get(name, np.nan) for name in cold.sensors["name"]], np.float64)


def _alone(cores: Cores, rise: Array, error: Array, idle_c: Array, places: tuple[Array, Array]) -> list[dict[str, Any]]:
    """Return each core alone: its contrast and place, and the core with the same map."""
    found, pairs = core_contrast(rise, error), pair_cores(rise)
    rows = []
    for k, core in enumerate(cores):
        at, partner = int(found.hottest[k]), int(pairs.partner[k])
        rows.append(
            {
                "kind": "core",
                "cores": str(core),
                "hot_spot_c": float(idle_c[at] + rise[k][at]) if at >= 0 else None,
                "x_mm": float(places[0][at]) if at >= 0 else None,
                "y_mm": float(places[1][at]) if at >= 0 else None,
                "contrast_c": _finite(found.contrast_c[k]),
                "contrast_low_c": _finite(found.low_c[k]),
                "contrast_high_c": _finite(found.high_c[k]),
                "partner": None if partner < 0 else str(cores[partner]),
                "correlation": _finite(pairs.correlation[k]),
                "difference_c": _finite(pairs.difference_c[k]),
                "next_difference_c": _finite(pairs.next_difference_c[k]),
                "note": _core_note(bool(found.low_c[k] > 0), partner >= 0, bool(pairs.paired[k])),
            }
        )
    return rows


def _core_note(warms: bool, compared: bool, paired: bool) -> str:
    first = "warms its place" if warms else "no significant contrast"
    return first + (("; shares a cluster with the partner" if paired else "; no clear partner") if compared else "")


def _sets(
    several: Mapping[Cores, Array], cores: Cores, rise: Array, idle_c: Array
) -> list[dict[str, Any]]:  # fmt: skip
    """Return sets of cores: the measured hot spot, and that predicted from each core alone."""
    row_of = {core: k for k, core in enumerate(cores)}
    rows = []
    for chosen, above in several.items():
        measured = _finite(np.nanmax(idle_c + above)) if np.isfinite(above).any() else None
        predicted, note = None, ""
        if missing := [core for core in chosen if core not in row_of]:
            note = f"no run of core {', '.join(map(str, missing))} alone"
        else:
            option = np.array([[row_of[core] for core in chosen]])
            predicted = _finite(predicted_hot_spots(idle_c, rise, option).temperature_c[0])
        error = None if measured is None or predicted is None else predicted - measured
        rows.append(
            {"kind": "set", "cores": "-".join(map(str, chosen)), "hot_spot_c": measured, "predicted_c": predicted,
             "error_c": error, "note": note}
        )  # fmt: skip
    return rows


def _best_sets(
    cores: Cores, rise: Array, idle_c: Array, active: int | None, notes: list[str]
) -> list[dict[str, Any]]:  # fmt: skip
    """Return the sets of so many cores with the coolest predicted hot spot, and the hottest set."""
    if active is None:
        return []
    if not 1 <= active <= len(cores):
        notes.append(f"{active} active cores cannot be chosen: {len(cores)} cores were measured alone")
        return []
    if comb(len(cores), active) > MAX_OPTIONS:
        notes.append(
            f"{active} of {len(cores)} cores can be chosen in {comb(len(cores), active)} ways; at most {MAX_OPTIONS} "
            "are compared"
        )
        return []
    options = np.array(list(combinations(range(len(cores)), active)), dtype=np.int64)
    hot = predicted_hot_spots(idle_c, rise, options)
    order = np.argsort(hot.temperature_c, kind="stable")
    wanted = [*order[:BEST_OPTIONS].tolist(), *order[max(BEST_OPTIONS, len(order) - 1) :].tolist()]
    last = wanted[-1] if len(order) > BEST_OPTIONS else -1
    return [
        {"kind": "choice", "cores": "-".join(str(cores[c]) for c in options[k]),
         "predicted_c": _finite(hot.temperature_c[k]), "note": "the hottest choice" if k == last else ""}
        for k in wanted
    ]  # fmt: skip


def _finite(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None
