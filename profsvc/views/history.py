"""One kernel over runs: one point per run, and the detected changes.

A series has comparable values: of one project, device and branch, and for power also of one sensor and one window.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from profsvc import specs, store
from profsvc.errors import NotFoundError, UsageError, counted, first_of
from profsvc.formulas.change.levels.series_length import MIN_HISTORY, MIN_SEGMENT
from profsvc.kernel_names import matching_kernels, short_kernel_name
from profsvc.reports.kernel_names import labels
from profsvc.store.queries.kernels.history import MAX_POINTS, HistoryFilter
from profsvc.views.nightly.other_names import with_other_names

if TYPE_CHECKING:
    from sqlalchemy import Engine

Row = dict[str, Any]
POINTS = (
    "series", "run_id", "project", "run", "device", "branch", "commit_id", "at", "value", "low", "high", "raw", "unit",
    "launches", "files", "sensor", "window", "reason",
)  # fmt: skip
DURATION, MEAN = "duration", "mean_duration"
MAX_SHOWN = 5
NEWEST = HistoryFilter()
PATIENT_SECONDS = 600.0
"""Time limit for a query of a local store."""


class Quantity(NamedTuple):
    """A quantity to follow over runs: ``kind`` selects its reporting threshold, ``column`` its source."""

    name: str
    title: str
    unit: str
    kind: str
    source: str
    column: str
    meaning: str
    band: str


def _of_criteria() -> Iterable[Quantity]:
    for one in specs.criteria()["criterion"]:
        if one["level"] == "launch":
            meaning = f"mean over the kernel's launches, weighted by time; {one['formula']}"
            yield Quantity(one["name"], one["title"], "1", "criterion", "v1_criteria", "value", meaning,
                           "minimum and maximum of one launch")  # fmt: skip


def quantities() -> dict[str, Quantity]:
    """Return the quantities that can be followed over runs, by name.

    >>> list(quantities())[:3], quantities()["power"].unit
    (['duration', 'mean_duration', 'potential'], 'W')
    """
    inside = "95 % interval"
    made = [
        Quantity("duration", "Duration", "ns", "duration", "v1_kernel_totals", "p50_ns",
                 "median duration of the kernel's launches in the run", "shortest launch to the 95th percentile"),
        Quantity(MEAN, "Mean duration", "ns", "duration", "v1_kernel_summaries", "mean_ns",
                 "time of the kernel's launches / their number, of exports with totals and no single launches",
                 "shortest and longest launch"),
        Quantity("potential", "Potential speedup", "1", "potential", "v1_potential", "speedup",
                 "time of the kernel's launches / their ideal time", "minimum and maximum of one launch"),
        Quantity("power", "Power, corrected", "W", "power", "v1_power", "corrected_power_w",
                 "mean power of the load, corrected to one temperature; raw is uncorrected", inside),
        Quantity("energy", "Energy, corrected", "J", "energy", "v1_power", "corrected_energy_j",
                 "energy of the load, corrected to one temperature; raw is uncorrected", inside),
        Quantity("energy_per_launch", "Energy per launch, corrected", "J", "energy", "v1_power", "corrected_energy_j",
                 "energy of the load, corrected to one temperature / its launches; raw is uncorrected", inside),
        Quantity("raw_power", "Power, uncorrected", "W", "power", "v1_power", "mean_power_w",
                 "mean power of the load at the temperature of the board", ""),
        Quantity("raw_energy", "Energy, uncorrected", "J", "energy", "v1_power", "energy_j",
                 "energy of the load at the temperature of the board", ""),
        Quantity("raw_energy_per_launch", "Energy per launch, uncorrected", "J", "energy", "v1_power", "energy_j",
                 "energy of the load at the temperature of the board / its launches", ""),
        Quantity("temperature", "Temperature", "degC", "temperature", "v1_power", "mean_temperature_c",
                 "mean temperature while the load ran", "lowest and highest reading"),
        Quantity("clock", "SM clock", "Hz", "clock", "v1_power", "mean_clock_hz",
                 "mean SM clock while the load ran", ""),
    ]  # fmt: skip
    return {one.name: one for one in [*made[:3], *_of_criteria(), *made[3:]]}


@store.snapshot
def history(engine: "Engine", kernel: str, quantity: str = "duration", asked: HistoryFilter = NEWEST) -> dict[str, Any]:
    """Return a quantity of a kernel over the newest runs that have it, oldest first.

    ``points`` has one row per run and series, ``steps`` the detected changes, ``series`` their descriptions.
    A kernel without single launches has the mean duration in place of the duration. ``truncated`` means that there are
    older runs; ``older`` is the value of ``before`` that continues with them.
    """
    known = quantities()
    if quantity not in known:
        raise NotFoundError.near("quantity", quantity, known)
    if not 1 <= asked.points <= MAX_POINTS:
        raise UsageError(f"a history has 1 to {MAX_POINTS} points, not {asked.points}")
    about = known[quantity]
    subject = _subject(engine, kernel, about, asked.project)
    gather = {"v1_power": _of_power, "v1_kernel_summaries": _of_totals}.get(about.source, _of_launches)
    called = [subject["kernel"]]
    if about.source == "v1_power":
        points, older = gather(engine, subject, about, asked)
    else:
        points, older, called = with_other_names(engine, subject, asked, lambda one: gather(engine, one, about, asked))
    if not points and about.name == DURATION:
        points, older, called = with_other_names(
            engine, subject, asked, lambda one: _of_totals(engine, one, known[MEAN], asked)
        )
        about = known[MEAN] if points else about
    if not points:
        raise _nothing(kernel, subject, about, asked)
    points.sort(key=lambda point: (point["at"], point["run_id"]))
    series = _series(points)
    return {
        "kernel": subject,
        "quantity": about._asdict(),
        "smallest_change": _smallest(about.kind),
        "series": series,
        "points": points,
        "steps": steps(points, about),
        "findings": _findings(engine, called, about, points),
        "truncated": older is not None,
        "older": older,
        "notes": [*_names_note(called), *_notes(points, series, about, older)],
    }


@store.snapshot
def kernels(engine: "Engine", name: str, project: str | None = None) -> list[Row]:
    """Return the kernels that match a number, a full or a short name; raise `NotFoundError` if none does."""
    if found := store.kernels_named(engine, name, project):
        return found
    raise store.kernel_not_found(engine, name, project)


def label(engine: "Engine", kernel: str, project: str | None = None) -> str:
    """Return the shortest unique name of a kernel, which forms accept."""
    alike = [str(one["kernel"]) for one in store.kernels_named(engine, short_kernel_name(kernel), project)]
    shown = labels([*alike, kernel])[kernel]
    return shown if len(matching_kernels(shown, [*alike, kernel])) == 1 else kernel


def _subject(engine: "Engine", name: str, about: Quantity, project: str | None) -> Row:
    """Return the kernel with the given name, and its possible names in power windows."""
    found = store.kernels_named(engine, name, project)
    if about.source == "v1_power":
        one = found[0] if len(found) == 1 else {"kernel_id": None, "kernel": name, "kernel_short": name}
        return one | {"names": list(dict.fromkeys((name, one["kernel"], one["kernel_short"])))}
    if len(found) == 1:
        return found[0]
    if not found:
        raise store.kernel_not_found(engine, name, project)
    known = labels(str(one["kernel"]) for one in found)
    listed = first_of((f"{known[one['kernel']]} (#{one['kernel_id']})" for one in found), MAX_SHOWN, "; ")
    raise UsageError(f"{len(found)} kernels match {name!r}; give the name or number of one: {listed}")


def _nothing(name: str, subject: Row, about: Quantity, asked: HistoryFilter) -> NotFoundError:
    where = "".join(
        f" of {what} {value!r}" for what, value in (("project", asked.project), ("device", asked.device)) if value
    )
    older = " before that run" if asked.before else ""
    if about.source != "v1_power":
        return NotFoundError(f"no run{where} has launches of the kernel {name!r}{older}")
    if subject["kernel_id"] is None and not where and not older:
        words = f"no run has the power of a load or kernel named {name!r}"
        return NotFoundError(
            f"{words}; mark it (see profsvc formats marks), or list the loads of a run: profsvc power RUN"
        )
    return NotFoundError(f"no run{where} has the power of {name!r}{older}; list the loads of a run: profsvc power RUN")


def _point(run: Row, about: Quantity, **own: Any) -> Row:
    """Return a point of a run; ``at`` is when the run started, else when it was received."""
    at = run["started_at"] or own.pop("received_at", None) or run["created_at"]
    own.pop("received_at", None)
    named = {name: run[name] for name in ("run_id", "project", "run", "device", "branch", "commit_id")}
    return dict.fromkeys(POINTS) | named | {"at": at, "unit": about.unit} | own


def _of_launches(engine: "Engine", subject: Row, about: Quantity, asked: HistoryFilter) -> tuple[list[Row], int | None]:
    found, spread = store.durations_of_kernel(engine, subject["kernel_id"], asked)
    runs = list(found.runs)
    values: Mapping[int, Row] = {}
    if about.name == "potential":
        values = store.potential_of_kernel(engine, subject["kernel_id"], runs, asked.seconds)
    elif about.name != "duration":
        values = store.criterion_of_kernel(engine, subject["kernel_id"], about.name, runs, asked.seconds)
    points = []
    for run_id, run in found.runs.items():
        total = spread[run_id]
        own = {name: total[name] for name in ("launches", "files", "received_at")}
        if about.name == "duration":
            own |= {"value": total["p50_ns"], "low": total["min_ns"], "high": total["p95_ns"]}
            reason = None if total["timed"] else "the export has no durations"
        else:
            of_run = values.get(run_id, {})
            own |= {name: of_run.get(name) for name in ("value", "low", "high")}
            absent = "the run lacks the metrics for this quantity"
            reason = None if own["value"] is not None else of_run.get("reason") or absent
        points.append(_point(run, about, **own, reason=reason))
    return points, found.older


def _of_totals(engine: "Engine", subject: Row, about: Quantity, asked: HistoryFilter) -> tuple[list[Row], int | None]:
    found, means = store.means_of_kernel(engine, subject["kernel_id"], asked)
    own = {run_id: {name: row[name] for name in ("value", "low", "high", "launches", "files")}
           for run_id, row in means.items()}  # fmt: skip
    missing = {"reason": "the export has no calls of the kernel"}
    return [_point(run, about, **own.get(run_id, missing)) for run_id, run in found.runs.items()], found.older


def _of_power(engine: "Engine", subject: Row, about: Quantity, asked: HistoryFilter) -> tuple[list[Row], int | None]:
    found, windows = store.powers_of_load(engine, subject["names"], asked)
    when = {run_id: run["started_at"] or run["created_at"] for run_id, run in found.runs.items()}
    windows.sort(key=lambda row: (when[row["run_id"]], row["run_id"]))
    newest = {_channel(row): row for row in windows if row["corrected_power_w"] is not None}
    points = []
    for row in windows:
        own: Row = {name: row[name] for name in ("sensor", "window", "launches", "gpu_index")}
        own["device"] = row["device"] or found.runs[row["run_id"]]["device"]
        if about.column.startswith("corrected_"):
            own |= _at_one_temperature(row, newest.get(_channel(row), row), about)
        else:
            low, high = _ENDS.get(about.name, (None, None))
            own |= {"value": row[about.column], "low": low and row[low], "high": high and row[high]}
            own["reason"] = None if own["value"] is not None else row["reason"]
        if about.name.endswith(_PER_LAUNCH):
            own |= _of_each_launch(own)
        points.append(_point(found.runs[row["run_id"]], about, **own))
    return points, found.older


_PER_LAUNCH = "_per_launch"
_ENDS = {"temperature": ("lowest_temperature_c", "highest_temperature_c")}


def _channel(row: Row) -> tuple[Any, ...]:
    return row["project"], row["device"], row["sensor"], row["gpu_index"], row["window"]


def _at_one_temperature(row: Row, newest: Row, about: Quantity) -> Row:
    """Return the power or energy of a window at the reference temperature of the newest of its series."""
    from profsvc.views.power.comparison import moved, uncorrected

    what, unit, raw, seconds = {
        "power": ("power", "w", "mean_power_w", 1.0),
        "energy": ("energy", "j", "energy_j", row["duration_s"]),
    }[about.name.removesuffix(_PER_LAUNCH)]
    reason = uncorrected(newest, row)
    own: Row = {"raw": row[raw], "reference_temperature_c": newest["reference_temperature_c"]}
    if reason:
        return own | {"reason": row["reason"] or reason}
    at = moved(newest, row, what, unit, seconds)[1]
    return own | {"value": at.value, "low": at.low, "high": at.high, "reason": None}


def _of_each_launch(own: Row) -> Row:
    """Return the values of a window divided by its launches."""
    values = {name: own.get(name) for name in ("value", "low", "high", "raw")}
    if not own["launches"]:
        return dict.fromkeys(values) | {"reason": own["reason"] or "the number of launches of the load is unknown"}
    return {name: value if value is None else value / own["launches"] for name, value in values.items()}


def _series(points: Sequence[Row]) -> list[Row]:
    """Number the series by their size, and set the series of each point."""
    keys = ("project", "device", "branch", "sensor", "gpu_index", "window")
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for point in points:
        groups.setdefault(tuple(map(point.get, keys)), []).append(point)
    made = []
    for number, (key, own) in enumerate(sorted(groups.items(), key=lambda item: -len(item[1]))):
        before = None
        for point in own:
            point["series"] = number
            point["previous_run_id"] = before
            before = point["run_id"]
        known = sum(point["value"] is not None for point in own)
        needed = max(0, MIN_HISTORY + MIN_SEGMENT - known)
        made.append(dict(zip(keys, key, strict=True)) | {
            "series": number, "points": len(own), "known": known, "needed": needed,
            "reference_temperature_c": own[-1].get("reference_temperature_c"),
        })  # fmt: skip
    return made


def _names_note(called: Sequence[str]) -> list[str]:
    others = first_of(called[1:], MAX_SHOWN)
    return [f"with the runs under the kernel's other names: {others}"] if others else []


def _findings(engine: "Engine", called: Sequence[str], about: Quantity, points: Sequence[Row]) -> list[Row]:
    """Return the findings of nightly checks about runs among the points."""
    if about.source == "v1_power":
        names = {name: None for point in points for name in (point["window"],) if name}
        found = [row for name in names for row in store.select(engine, "v1_findings", subject=name)]
    else:
        found = [row for kernel in called for row in store.select(engine, "v1_findings", kernel=kernel)]
    own = {(point["run_id"], point["project"]) for point in points}
    alike = {about.name, *_SAME.get(about.name, ())}
    return [row for row in found if row["quantity"] in alike and (row["run_id"], row["project"]) in own]


# Nightly checks compare energies per launch if the number of launches is known.
_SAME = {"energy": ("energy_per_launch",), "raw_energy": ("raw_energy_per_launch",), "duration": ("mean_duration",)}


def _smallest(kind: str) -> Row:
    least = specs.smallest_change(kind)
    return {name: getattr(least, name) for name in ("unit", "relative", "absolute", "worse", "reason")}


def steps(points: Sequence[Row], about: Quantity) -> list[Row]:
    """Return the detected changes of the series: run, values, significance and whether above the threshold."""
    known = Counter(point["series"] for point in points if point["value"] is not None)
    if max(known.values(), default=0) < MIN_HISTORY + MIN_SEGMENT:
        return []  # numpy takes longer to load than all the rest
    import numpy as np

    from profsvc.formulas.change.histories import all_steps
    from profsvc.formulas.change.nightly_test import effect

    value = np.array([np.nan if point["value"] is None else point["value"] for point in points], np.float64)
    found = all_steps(value, np.array([point["series"] for point in points], np.int64))
    least = specs.smallest_change(about.kind)
    size = effect(found.before, found.after, least.relative, least.absolute)
    rows = []
    for number, at in enumerate(found.at.tolist()):
        point, change = points[at], float(size.relative[number])
        material, up = bool(size.material[number]), found.after[number] > found.before[number]
        direction = "other" if least.worse == "neither" else "worse" if up == (least.worse == "up") else "better"
        rows.append(
            {name: point[name] for name in ("series", "run_id", "run", "commit_id", "at", "previous_run_id")}
            | {"before": float(found.before[number]), "after": float(found.after[number])}
            | {"change": None if np.isnan(change) else change, "p": float(found.p[number])}
            | {"material": material, "direction": direction}
        )
    return sorted(rows, key=lambda row: (row["at"], row["run_id"], row["series"]))


def _notes(points: Sequence[Row], series: Sequence[Row], about: Quantity, older: int | None) -> list[str]:
    """Return notes on truncation, missing values and comparability."""
    said = []
    if older is not None:
        runs = len({point["run_id"] for point in points})
        said.append(f"showing the newest {counted(runs, 'run')}; for older ones use before {older}")
    if about.name != MEAN and (several := sum((point["files"] or 0) > 1 for point in points)):
        said.append(
            f"{several} runs have the kernel in several files; their median and 95th percentile are those of the "
            "file with "
            "most launches"
        )
    missing = [point for point in points if point["value"] is None]
    if missing:
        reasons = list(dict.fromkeys(str(point["reason"]) for point in missing))
        more = f"; and {len(reasons) - MAX_SHOWN} more reasons" if len(reasons) > MAX_SHOWN else ""
        said.append(f"{len(missing)} of {len(points)} points have no value: {'; '.join(reasons[:MAX_SHOWN])}{more}")
    at = dict.fromkeys(one["reference_temperature_c"] for one in series if one["known"])
    said += [f"at {degrees:.4g} \u00b0C, the reference temperature of the newest run" for degrees in at if degrees]
    if short := sum(one["needed"] > 0 for one in series):
        which = "" if short == len(series) else f" in {short} of {len(series)} series"
        said.append(f"not enough runs to detect a change{which} (needs {MIN_HISTORY} before, {MIN_SEGMENT} after)")
    return said
