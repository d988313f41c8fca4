"""Power of a run: its logs joined on one clock, its windows summed up, corrected to one temperature, and modelled.

``logs``                     which sensor goes with which
``sensor``                   a power log made ready: cleaned, its own period and averaging found, its companions joined
``windows``                  the windows: marks, kernels, levels
``idle_periods``             which of them are idle time
``window_sums``              what was measured in each
``temperature_coefficient``  extra power of a warmer board
``correction``               what it would be at one temperature, or why that cannot be said
``thermal_models``           idle power, rise and decay of the temperature
``sm_sweeps``                power against the number of SMs
"""

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import combinations
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from profsvc.analysis.power import windows as power_windows
from profsvc.analysis.power.idle_periods import idle_levels
from profsvc.analysis.power.logs import UTC, Log, host_name, logged_gpus, logs_named, same_host
from profsvc.analysis.power.options import Options
from profsvc.analysis.power.sensor import INSTANT_NAME, PowerSensor, prepare_sensor
from profsvc.analysis.power.sweeps.sms import fit_sweeps
from profsvc.analysis.power.thermal.correction import correct_windows
from profsvc.analysis.power.thermal.earlier_runs import NO_EARLIER_RUNS, EarlierRuns
from profsvc.analysis.power.thermal.models import fit_idle_power, fit_thermal
from profsvc.analysis.power.window_sums import sum_windows
from profsvc.analysis.power.windows import IDLE
from profsvc.errors import first_of
from profsvc.formulas.sensors.plateaus import change_points

__all__ = ["FRAMES", "NO_EARLIER_RUNS", "VERSION", "EarlierRuns", "Options", "analyze_power"]

VERSION = "9"
"""Raised when any number changes for the same input."""

FRAMES = ("power_windows", "power_coefficients", "power_models", "power_quality")
# What was only needed on the way.
INTERNAL_COLUMNS = ("slowed_share", "clock_hz")
# Shorter than so many readings of the sensor, and no mean of a window stands.
MIN_WINDOW_READINGS = 4
# Kernels further apart than this are two stretches, as the device idles meanwhile.
MAX_KERNEL_GAP_S = 0.05
DEFAULT_OPTIONS = Options()
MAX_WINDOWS = 2000


def analyze_power(
    logs: Sequence[Log],
    marks: pd.DataFrame,
    launches: pd.DataFrame,
    options: Options = DEFAULT_OPTIONS,
    known: Mapping[int, EarlierRuns] = MappingProxyType({}),
) -> dict[str, pd.DataFrame]:
    """Return the frames of `FRAMES` for every power sensor of a run.

    ``marks``: name, domain, start_ns, duration_ns, active_sms, launches, upload_id, clock; ``launches``: kernel,
    start_ns, duration_ns, device_index (-1: unknown), host (empty: unknown), upload_id, clock; marks and launches of
    one ``upload_id`` are of one trace. What uses a different clock than a power log says nothing of it, and that is
    said.
    ``known``: what earlier runs of its board told of each sensor, by its number. Raise `NotFoundError` where the
    options name a sensor that the run does not have.
    """
    powers = [log for log in logs if log.quantity == "power" and log.unit == "W"]
    if options.sensor is not None:
        powers = logs_named(powers, options.sensor)
    parts: dict[str, list[pd.DataFrame]] = {name: [] for name in FRAMES}
    followed: set[int] = set()
    # A sensor that does not average comes first: it shows best how the temperature follows.
    for log in sorted(powers, key=lambda log: not INSTANT_NAME.search(log.name)):
        own = prepare_sensor(log, logs, options)
        if isinstance(own, PowerSensor):
            gpus = logged_gpus([one for one in logs if one.quantity == "power"], log.host)
            for name, frame in _analyze_sensor(
                *(own, marks, launches, gpus, options, known.get(log.sensor_id, NO_EARLIER_RUNS), followed)
            ).items():
                parts[name].append(frame)
        else:
            parts["power_quality"].append(pd.DataFrame([own]))
    return {name: _stacked(frames) for name, frames in parts.items()}


def _stacked(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Put frames under each other as plain objects, null where a column is absent."""
    filled = [frame.astype(object) for frame in frames if len(frame)]
    if not filled:
        return pd.DataFrame()
    table = pd.concat(filled, ignore_index=True)
    return table.where(table.notna(), None)


def _analyze_sensor(
    own: PowerSensor,
    marks: pd.DataFrame,
    launches: pd.DataFrame,
    gpus: Mapping[int, Sequence[int]],
    options: Options,
    known: EarlierRuns,
    followed: set[int],
) -> Mapping[str, pd.DataFrame]:
    windows = _windows(own, marks, launches, gpus)
    table, found = sum_windows(own, windows)
    idle_w = fit_idle_power(own, table)
    table["idle_power_w"] = idle_w
    # Idle power is the mean over idle time: what is left of it above itself is rounding, and no load's.
    runs = table["kind"] != IDLE
    table["runtime_power_w"] = (table["mean_power_w"] - idle_w).where(runs)
    table["runtime_energy_j"] = (table["energy_j"] - idle_w * table["duration_s"]).where(runs)
    table, coefficients = correct_windows(own, table, found, options, known)
    warmth = own.companions.get("temperature")
    if warmth is None or warmth.sensor_id not in followed:
        fit_thermal(own, table)
        followed |= set() if warmth is None else {warmth.sensor_id}
    fit_sweeps(own, table, idle_w)
    quality = pd.DataFrame(own.quality)
    table["quality"] = _window_flags(table["window"], own.quality)
    return {
        "power_windows": table.drop(columns=[name for name in INTERNAL_COLUMNS if name in table]),
        "power_coefficients": coefficients,
        "power_models": pd.DataFrame(own.models),
        "power_quality": quality,
    }


def _window_flags(windows: pd.Series, quality: Sequence[Mapping[str, Any]]) -> list[str | None]:
    """Return the data-quality flags of each window: its own and those of the sensor."""
    of_all = [row["flag"] for row in quality if row.get("window") is None]
    said = []
    for label in windows:
        flags = dict.fromkeys([row["flag"] for row in quality if row.get("window") == label] + of_all)
        said.append("; ".join(flags) or None)
    return said


def _windows(
    own: PowerSensor, marks: pd.DataFrame, launches: pd.DataFrame, gpus: Mapping[int, Sequence[int]]
) -> pd.DataFrame:
    """The whole log, and what is in it: marks, else kernels, else the levels of the power.

    The marks of a trace are of the GPUs that ran its launches.
    """
    last = own.origin_ns + round(float(own.time_s[-1]) * 1e9)
    least = MIN_WINDOW_READINGS * float(np.median(np.diff(own.time_s))) + own.averaging_s
    launches_met = cache(lambda: _on_clock(own, launches, last, "launches"))
    launches_run = cache(lambda: _launches_of_gpu(own, launches_met(), gpus))
    marks = _on_clock(own, marks, last, "marks")
    if {*marks["upload_id"]} & {*launches["upload_id"]}:
        elsewhere = {*launches_met()["upload_id"]} - {*launches_run()["upload_id"]}
        marks = marks[~marks["upload_id"].isin(elsewhere)]
    found = _mark_windows(own, marks, last, least)
    if found.empty:
        kernels = power_windows.kernel_windows(launches_run(), least, MAX_KERNEL_GAP_S)
        # A stretch that lies outside of the log in part is whole: what of it is outside is not covered.
        found = kernels[_meets(own, kernels["begin_ns"], kernels["end_ns"], last)]
    if found.empty:
        levels = change_points(own.time_s[own.fresh], own.power_w[own.fresh])
        steady = levels.steady
        begin, end = (edge[steady] for edge in levels[:2])
        rests = idle_levels(own, begin, end, levels.level_w[steady], levels.level_w)
        begin_ns, end_ns = (own.origin_ns + np.round(edge * 1e9).astype(np.int64) for edge in (begin, end))
        found = power_windows.level_windows(begin_ns, end_ns, rests)
    if len(found) > MAX_WINDOWS:
        words = f"{len(found)} windows found; only the longest {MAX_WINDOWS} are kept"
        own.warn("windows_cut", words, len(found), "1")
        longest = (found["end_ns"] - found["begin_ns"]).nlargest(MAX_WINDOWS).index
        found = found.loc[longest.sort_values()]
    return pd.concat([power_windows.whole_log(own.origin_ns, last), found], ignore_index=True)


def _on_clock(own: PowerSensor, rows: pd.DataFrame, last_ns: int, what: str) -> pd.DataFrame:
    """Rows on the clock of the power log, if any of them meets it; say of the others that they do not."""
    if rows.empty:
        return rows
    same = rows[(rows["clock"] == own.log.clock) & (own.log.clock != "elapsed")]
    if same.empty:
        clocks = ", ".join(sorted(set(rows["clock"])))
        zone = " (give --timezone)" if own.log.clock != UTC else ""
        words = f"{len(rows)} {what} use a different clock ({clocks}) than {own.log.name} ({own.log.clock}){zone}"
        own.warn(f"{what}_on_another_clock", words, len(rows), "1")
        return same
    if not _meets(own, same["start_ns"], same["start_ns"] + same["duration_ns"], last_ns).any():
        own.warn(
            f"{what}_elsewhere", f"none of {len(same)} {what} lies within the log of {own.log.name}", len(same), "1"
        )
        return same[:0]
    return same


def _meets(own: PowerSensor, begin_ns: pd.Series, end_ns: pd.Series, last_ns: int) -> pd.Series:
    """Tell which spans of time overlap the power log."""
    return (end_ns > own.origin_ns) & (begin_ns < last_ns)


def _launches_of_host(own: PowerSensor, launches: pd.DataFrame) -> pd.DataFrame:
    """Launches of the host of a power log; those of an unknown host stay, and none where the log may be of several."""
    hosts = sorted({*map(host_name, launches["host"].unique())} - {""})
    if own.log.host and host_name(own.log.host):
        others = {name for name in hosts if not same_host(name, host_name(own.log.host))}
        kept = launches[~launches["host"].map(host_name).astype(object).isin(others)]
        if kept.empty and len(launches):
            words = f"the launches are of {first_of(hosts, 5)}, the log of {own.log.name} is of {own.log.host}"
            own.warn("launches_of_another_device", words, len(launches), "1")
        return kept
    if all(same_host(one, other) for one, other in combinations(hosts, 2)):
        return launches
    words = (
        f"the launches are of the hosts {first_of(hosts, 5)}, and the log does not say of which host it is: its GPU "
        "ran only part of them; upload what is of each host as a run of its own"
    )
    own.warn("device_ambiguous", words, len(launches), "1")
    return launches[:0]


def _launches_of_gpu(own: PowerSensor, launches: pd.DataFrame, gpus: Mapping[int, Sequence[int]]) -> pd.DataFrame:
    """Launches of the GPU of a power log, where both are numbered; those of an unknown device only of the one logged.

    The number of a device in CUDA is that of nvidia-smi, unless CUDA_VISIBLE_DEVICES gives the devices other numbers.
    Another numbering shows where the log of one GPU stands beside the launches of one device, and where processes that
    each see only their own GPU all call it 0: launches of several files are then on one device at the same time. So
    are those of several hosts; they share one GPU only where all of them name one host.
    """
    launches = _launches_of_host(own, launches)
    index = own.log.gpu_index
    devices = {*launches["device_index"].unique().tolist()} - {-1}
    unknown = launches["device_index"] == -1
    if index is not None and len(gpus) > 1 and unknown.any():
        logged = ", ".join(map(str, sorted(gpus)))
        words = (
            f"{int(unknown.sum())} launches name no device, and the log is of GPU {logged}: which GPU ran them is "
            "unknown, so they are left out; upload an export that names the device, or the log of its GPU alone"
        )
        own.warn("device_unknown", words, int(unknown.sum()), "1")
        launches = launches[~unknown]
    if index is None or not devices:
        return launches
    if twins := gpus[index]:
        words = (
            f"uploads {first_of(map(str, twins), 5)} log a GPU {index} each at the same time, as boards of several "
            "hosts do: which of them ran the launches is unknown; upload what is of each host as a run of its own"
        )
        own.warn("device_ambiguous", words, len(launches), "1")
        return launches[:0]
    told = _device_of_several_files(launches)
    if told and told.host and devices == {*gpus} == {index}:
        words = (
            f"uploads {told.files} have launches of device {index} of {told.host} at the same time: they are taken to "
            f"share GPU {index} of the log; if each has a GPU of its own, upload each file and its log as a run of its "
            "own"
        )
        own.warn("device_shared", words, told.launches, "1")
        return launches
    if told:
        logged = ", ".join(map(str, sorted(gpus)))
        host = f"all name {told.host}" if told.host else "not all name one host"
        words = (f"uploads {told.files} have launches of device {told.device} at the same time and {host}, and the log "
                 f"is of GPU {logged}: each may see only its own GPU, so which GPU ran which is unknown; upload each "
                 "file with the log of its GPU alone as a run of its own")  # fmt: skip
        own.warn("device_ambiguous", words, told.launches, "1")
        return launches[:0]
    if devices == {index}:
        return launches
    names = ", ".join(map(str, sorted(devices)))
    if len(devices) == 1 and {*gpus} == {index}:
        words = f"the launches are of device {names}, the log is of GPU {index}: they are taken to be the same board"
        own.warn("device_renumbered", words, len(launches), "1")
        return launches
    kept = launches[launches["device_index"].isin([index, -1])]  # of an unknown device only beside one GPU
    if kept.empty:
        words = f"the launches are of device {names}, the log of {own.log.name} is of GPU {index}"
        own.warn("launches_of_another_device", words, len(launches), "1")
    return kept


class _SharedDevice(NamedTuple):
    """A device on which launches of several files ran at the same time, and at least how many of them.

    ``host`` is the one that all of the files name; empty where there is none.
    """

    device: int
    files: str
    host: str
    launches: int


def _device_of_several_files(launches: pd.DataFrame) -> _SharedDevice | None:
    for device in sorted({*launches["device_index"].tolist()} - {-1}):
        own = launches[launches["device_index"] == device]
        if own["upload_id"].nunique() == 1:
            continue
        own = own.sort_values("start_ns", kind="stable")
        start, file = own["start_ns"].to_numpy(np.int64), own["upload_id"].to_numpy(np.int64)
        end = start + own["duration_ns"].to_numpy(np.float64).astype(np.int64)
        latest = np.maximum.accumulate(end)
        holder = np.maximum.accumulate(np.where(end == latest, np.arange(end.size), 0))
        together = np.zeros(end.size, dtype=bool)
        together[1:] = (latest[:-1] > start[1:]) & (file[holder[:-1]] != file[1:])
        if together.any():
            files = np.unique([file[1:][together[1:]], file[holder[:-1]][together[1:]]]).tolist()
            hosts = [host_name(host) for host in own.loc[own["upload_id"].isin(files), "host"].unique()]
            one = hosts[0] if all(name and same_host(name, hosts[0]) for name in hosts) else ""
            return _SharedDevice(int(device), first_of(map(str, files), 5), one, int(together.sum()))
    return None


def _mark_windows(own: PowerSensor, same: pd.DataFrame, last_ns: int, least_s: float) -> pd.DataFrame:
    met = same[_meets(own, same["start_ns"], same["start_ns"] + same["duration_ns"], last_ns)] if len(same) else same
    long = met[met["duration_ns"] >= least_s * 1e9] if len(met) else met
    if len(long) < len(met):
        words = f"{len(met) - len(long)} marks are shorter than {least_s:.3g} s and were ignored"
        own.warn("short_marks", words, len(met) - len(long), "1")
    return power_windows.mark_windows(long)
