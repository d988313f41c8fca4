"""The power plots of a run, with data from the store."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from profsvc import specs, store
from profsvc.analysis.power.options import Options
from profsvc.errors import NotFoundError
from profsvc.formulas.power.active_sms import SweepFit, fit_active_sms, predict_active_sms
from profsvc.formulas.power.leakage import power_at_temperature
from profsvc.formulas.sensors.resampling import interpolate_at
from profsvc.reports.plots.power import (
    STRETCHES,
    Band,
    Efficiency,
    Floats,
    Sweep,
    Track,
    against_sms,
    over_time,
    performance_per_watt,
    thinned,
)
from profsvc.reports.rows import plain
from profsvc.reports.text.power import run_power as power_text
from profsvc.views.power.run_power import power

if TYPE_CHECKING:
    from sqlalchemy import Engine

Row = Mapping[str, Any]
POINTS = 200
UNREAD = "no readings of {} of run {!r} are stored, only windows, so its power over time cannot be plotted"
_PER_JOULE = re.compile(r"per_joule_on_([0-9]+)_sms")


class Picture(NamedTuple):
    """A plot: its name, title and function of (form, dark) that draws it, or the reason why it is missing."""

    name: str
    title: str
    draw: Callable[..., bytes]
    reason: str = ""


class Drawn(NamedTuple):
    """A plot as a file."""

    name: str
    title: str
    data: bytes


FORMS = ("svg", "png", "html")


def drawn(engine: "Engine", view: Mapping[str, Any], form: str) -> list[Drawn]:
    """Return the plots of a power view as files, or as one HTML page with all plots and the text."""
    every = pictures(engine, view)
    made = [one for one in every if not one.reason]
    missing = [one.reason for one in every if one.reason]
    if not made and form != "html":
        raise NotFoundError(missing[0])
    if form == "html":
        page = power_text.page(dict(view), [(one.title, one.draw) for one in made], missing)
        return [Drawn("page", f"Power of run {view['run']['name']}", page.encode())]
    return [Drawn(one.name, one.title, one.draw(form=form)) for one in made]


def pictures(engine: "Engine", view: Mapping[str, Any]) -> list[Picture]:
    """Return the plots of one power sensor of a power view.

    The sensor is the first with corrected power, else the one with fewest warnings. The first plot is over time; the
    others exist only if a load ran on several numbers of SMs.
    """
    windows, models = _of_one_sensor(view)
    name = f"{windows[0]['sensor']} of run {view['run']['name']}"
    tracks, heat, bands, since = _over_time(engine, windows)
    title = f"Power over time: {name}"
    is_read = bool(np.isfinite(tracks[0].value).any())
    reason = "" if is_read else UNREAD.format(windows[0]["sensor"], view["run"]["name"])
    made = [Picture("time", title, partial(over_time, tracks, heat, bands, title, since), reason)]
    if sweeps := _sweeps(windows):
        title = f"Power against SMs: {name}"
        made.append(Picture("sms", title, partial(against_sms, sweeps, title)))
    if curves := _efficiencies(models):
        title = f"Work per joule: {name}"
        made.append(Picture("per-watt", title, partial(performance_per_watt, curves, title)))
    return made


def _of_one_sensor(view: Mapping[str, Any]) -> tuple[list[Row], list[Row]]:
    """Return the windows and models of the sensor that is drawn."""
    if not view["windows"]:
        raise NotFoundError(f"no power sensor of run {view['run']['name']!r} has enough readings for a plot")
    doubts = Counter(row["sensor_id"] for row in view["quality"] if row["window"] is not None)
    best = min(view["windows"], key=lambda row: (row["corrected_power_w"] is None, doubts[row["sensor_id"]]))
    windows, models = (
        [row for row in view[name] if row["sensor_id"] == best["sensor_id"]] for name in ("windows", "models")
    )
    return windows, models


@store.snapshot
def series(
    engine: "Engine",
    run: str | int,
    sensor: str | None = None,
    span_s: tuple[float | None, float | None] = (None, None),
) -> dict[str, Any]:
    """Return what the power plots of a run draw, as numbers: of one sensor, over all time or the seconds of a span.

    ``power`` and ``temperature`` are readings over time; of many, the least and the largest of each of `STRETCHES`
    intervals are given, so that no spike is lost, and ``thinned`` says so. Time is in seconds from ``since``.
    """
    view = power(engine, run, Options(sensor=sensor))
    windows, models = _of_one_sensor(view)
    tracks, heat, bands, since = _over_time(engine, windows)
    tracks, heat = ([_in_order(track) for track in kind] for kind in (tracks, heat))
    ends = [float(end) for track in (*tracks, *heat) for end in (*track.time_s[:1], *track.time_s[-1:])]
    begin, end = (given if given is not None else at for given, at in zip(span_s, _extent(ends), strict=True))
    shown = [[_within(track, begin, end) for track in kind] for kind in (tracks, heat)]
    given = [[_thinned(track) for track in kind] for kind in shown]
    found: dict[str, Any] = plain({
        "run": {name: view["run"][name] for name in ("run_id", "project", "name")},
        "sensor": windows[0]["sensor"], "since": since, "begin_s": begin, "end_s": end,
        "power": given[0], "temperature": given[1],
        "thinned": any(len(track.time_s) > 2 * STRETCHES for kind in shown for track in kind),
        "windows": [band._asdict() for band in bands if band.end_s >= begin and band.begin_s <= end],
        "sweeps": [_as_lists(one) for one in _sweeps(windows)],
        "efficiencies": [_as_lists(one) for one in _efficiencies(models)],
    })  # fmt: skip
    return found


def _extent(ends: Sequence[float]) -> tuple[float, float]:
    return (min(ends), max(ends)) if ends else (0.0, 0.0)


def _in_order(track: Track) -> Track:
    order = np.argsort(track.time_s, kind="stable")
    return Track(track.label, track.time_s[order], track.value[order])


def _within(track: Track, begin_s: float, end_s: float) -> Track:
    """Return the readings of a span, and one beside it on each side, so that lines reach its edges."""
    low, high = np.searchsorted(track.time_s, begin_s, "left"), np.searchsorted(track.time_s, end_s, "right")
    part = slice(max(0, int(low) - 1), int(high) + 1)
    return Track(track.label, track.time_s[part], track.value[part])


def _thinned(track: Track) -> dict[str, Any]:
    time_s, value = thinned(track.time_s, track.value) if len(track.time_s) else (track.time_s, track.value)
    return _as_lists(Track(track.label, time_s, value))


def _as_lists(one: Any) -> dict[str, Any]:
    """Return the fields of a tuple, arrays as lists with None for NaN."""
    return {
        name: [None if np.isnan(x) else float(x) for x in value] if isinstance(value, np.ndarray) else value
        for name, value in one._asdict().items()
    }


def _over_time(engine: "Engine", windows: Sequence[Row]) -> tuple[list[Track], list[Track], list[Band], str]:
    first = windows[0]
    power = store.sensor_readings(engine, first["sensor_id"])
    origin = int(power.time_ns[0]) if len(power.time_ns) else 0
    time = (power.time_ns - origin) / 1e9
    tracks, heat = [Track(str(first["sensor"]), time, power.value)], []
    if first["temperature_sensor_id"] is not None:
        read = store.sensor_readings(engine, first["temperature_sensor_id"])
        if read.clock == power.clock:
            at = (read.time_ns - origin) / 1e9
            heat.append(Track(str(first["temperature_sensor"]), at, read.value))
            tracks += _corrected(windows, origin, tracks[0], heat[0])
    bands = [
        Band(row["window"], (row["begin_ns"] - origin) / 1e9, (row["end_ns"] - origin) / 1e9, row["kind"] == "idle")
        for row in windows
        if row["kind"] != "run"
    ]
    return tracks, heat, bands, _since(origin, power.clock)


def _since(origin_ns: int, clock: str) -> str:
    zone = {"utc": " UTC", "local": ", the clock of the log"}
    if clock not in zone:
        return "the start of the log"
    return datetime.fromtimestamp(origin_ns // 10**9, UTC).strftime("%Y-%m-%d %H:%M:%S") + zone[clock]


def _corrected(windows: Sequence[Row], origin_ns: int, power: Track, heat: Track) -> list[Track]:
    """Return the power of each window at the reference temperature; NaN between windows."""
    value = np.full(len(power.time_s), np.nan)
    known = ~np.isnan(heat.value)
    temperature = interpolate_at(power.time_s, heat.time_s[known], heat.value[known]).value
    reference = None
    for row in windows:
        if row["corrected_power_w"] is None or row["coefficient_w_per_c"] is None or row["kind"] == "run":
            continue
        reference = row["reference_temperature_c"]
        begin, end = ((row[name] - origin_ns) / 1e9 for name in ("begin_ns", "end_ns"))
        inside = (power.time_s >= begin) & (power.time_s <= end)
        away = reference - temperature[inside]
        value[inside] = power_at_temperature(power.value[inside], row["coefficient_w_per_c"], away).value
    return [] if reference is None else [Track(f"corrected to {reference:.3g} \u00b0C", power.time_s, value)]


def _swept(windows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the windows of loads on several numbers of SMs."""
    loads: dict[str, list[Row]] = {}
    for row in windows:
        if row["kind"] not in ("run", "idle") and row["active_sms"] and row["settled_power_w"] is not None:
            loads.setdefault(str(row["load"]), []).append(row)
    return {load: rows for load, rows in loads.items() if len({row["active_sms"] for row in rows}) > 1}


def _fitted(rows: Sequence[Row]) -> tuple[Floats, Floats, float, SweepFit]:
    """Return the SMs and power of a load, the SMs of its device, and the fitted law."""
    sms = np.array([row["active_sms"] for row in rows], np.float64)
    read, settled = (np.array([row[f"{name}_power_w"] for row in rows], np.float64) for name in ("mean", "settled"))
    corrected = np.array([row["corrected_power_w"] for row in rows], np.float64)
    power = settled + (0.0 if np.isnan(corrected).any() else corrected - read)
    total = _sms_of(rows[0]["device"]) or float(sms.max())
    return sms, power, total, fit_active_sms(sms, power, total, rows[0]["idle_power_w"])


def _sweeps(windows: Sequence[Row]) -> list[Sweep]:
    """Return the loads on several numbers of SMs with the fitted law."""
    found = []
    for load, rows in _swept(windows).items():
        sms, power, total, fit = _fitted(rows)
        n = np.linspace(sms.min(), total, POINTS) if fit.law else np.empty(0)
        curve = predict_active_sms(fit, n)
        found.append(Sweep(load, sms, power, fit.law or "no", n, curve.power_w, curve.low_w, curve.high_w))
    return found


class SweptPower(NamedTuple):
    """The power of a kernel by the law of a sweep: on the numbers asked for, at rest, the numbers measured, a note."""

    power_w: Floats | None
    idle_w: float | None
    measured_sms: tuple[float, float] | None
    note: str


def power_on_sms(engine: "Engine", run_id: int, kernel: str, sms: Floats) -> SweptPower:
    """Return the power [W] of a kernel on numbers of SMs by the fitted law.

    None with the reason as note if the run has no power of this kernel on several numbers of SMs.
    """
    try:
        windows = power(engine, run_id)["windows"]
    except NotFoundError:
        return SweptPower(None, None, None, "performance per watt unknown: the run has no power log")
    loads = _swept(windows)
    names = [load for load, rows in loads.items() if kernel in (load, rows[0]["kernel"])]
    if len(loads) == 1 and store.count(engine, "v1_kernel_totals", run_id) == 1:
        names = list(loads)
    fits = {name: _fitted(loads[name])[3] for name in names}
    if not (known := [name for name, fit in fits.items() if fit.law]):
        why = "performance per watt unknown: the run has no power of this kernel on several numbers of SMs"
        return SweptPower(None, None, None, why)
    fit = fits[known[0]]
    ends, idle = (float(fit.lowest_sms), float(fit.highest_sms)), float(fit.idle_w)
    words = f"power by the {fit.law} law through the loads {known[0]!r} of this run"
    curve = predict_active_sms(fit, sms)
    return SweptPower(curve.power_w, idle if np.isfinite(idle) else None, ends, words)


def _sms_of(device: str | None) -> float | None:
    try:
        return None if device is None else cast("float", specs.device(device).sms)
    except NotFoundError:
        return None


def _efficiencies(models: Sequence[Row]) -> list[Efficiency]:
    """Return the work per joule of each load."""
    found = []
    own = [row for row in models if row["model"] == "performance_per_watt" and row["value"] is not None]
    for best in (row for row in own if row["quantity"] == "best_sms"):
        points = [
            (float(match[1]), row["value"])
            for row in own
            if row["window"] == best["window"] and (match := _PER_JOULE.fullmatch(row["quantity"]))
        ]
        if points:
            sms, per_joule = cast("tuple[Floats, Floats]", np.array(points).T)
            low, high = (np.nan if best[end] is None else best[end] for end in ("low", "high"))
            found.append(Efficiency(str(best["window"]), sms, per_joule, best["value"], low, high))
    return found
