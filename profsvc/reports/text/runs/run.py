"""A run as text for a terminal."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from profsvc.analysis.causes.sentence import brief
from profsvc.errors import counted
from profsvc.reports.kernel_names import labelled
from profsvc.reports.rows import cell
from profsvc.reports.text.cells import NOT_ALL, bounded, fitted_table, middle, page_of, sign_of
from profsvc.reports.text.runs.memory_traces import traces

Row = Mapping[str, Any]
SUMMARY = {
    "launch": "#",
    "kernel": "kernel",
    "duration_us": "us",
    "compute_pct": "comp %",
    "memory_pct": "mem %",
    "bound": "limited by",
    "potential": "potential",
    "ceiling": "ceiling",
    "first": "what to do first",
}


KERNELS = {
    "kernel_short": "kernel", "launches": "launches", "total_ms": "total ms", "share_pct": "share %",
    "mean_us": "mean us", "p95_us": "p95 us", "max_us": "max us",
}  # fmt: skip
# Columns that a narrow terminal leaves out, the first first.
OPTIONAL = ("comp %", "mem %", "ceiling", "max us", "p95 us", "gpu_index", "min_value", "max_value", "min_ns", "max_ns")
# Column that may be a bound -> its flags.
BOUNDED = {"potential": "flags", "ceiling": "ceiling_flags"}
MEANS = {"kernel": "kernel", "launches": "launches", "duration_us": "mean us"}
MEANS |= {name: SUMMARY[name] for name in ("bound", "potential", "ceiling", "first")}
ALL_KERNELS = "select * from v1_kernel_totals where run_id = {} order by total_ns desc"
SENSORS = (
    "quantity", "name", "gpu_index", "x_mm", "y_mm", "unit", "readings", "mean_value", "min_value", "max_value",
    "quality",
)  # fmt: skip
TRANSFERS = ("kind", "count", "duration_ms", "bytes")
SUMMARIES = ("category", "kernel", "calls", "total_ns", "mean_ns", "min_ns", "max_ns")


def _device(view: Mapping[str, Any]) -> str:
    """Return the device of a run, else those of its logs."""
    logged = dict.fromkeys(sensor["device"] for sensor in view["sensors"] if sensor["device"])
    return view["run"]["device"] or view["run"]["devices"] or ", ".join(logged) or "an unknown device"


def run(view: Mapping[str, Any], width: int | None = None) -> str:
    """Return a run as text: its files, one row per launch, and the totals."""
    info = view["run"]
    lines = [f"run {info['name']} (id {info['run_id']}) of project {info['project']} on {_device(view)}"]
    for upload in view["uploads"]:
        lines += _upload(upload)
    if info.get("archived"):
        lines.append(f"  rows of its launches, metrics and readings: {info['archived']}")
    rows = [
        {SUMMARY[k]: middle(str(v), 28) if k == "kernel" else v for k, v in row.items() if k in SUMMARY}
        | {SUMMARY[name]: bounded(row[name], row[flags]) for name, flags in BOUNDED.items()}
        | {SUMMARY["first"]: brief(row["causes"]) if row["causes"] else row["first"]}
        for row in labelled(view["launches"])
    ]
    bounds = [row[flags] for row in [*view["launches"], *view["means"]] for flags in BOUNDED.values()]
    is_bound = any(map(sign_of, bounds))
    lines += _kernels(view, width)
    if rows:
        lines += ["", *fitted_table(list(SUMMARY.values()), rows, width, OPTIONAL)]
    lines += _means(view["means"], width)
    placed = any(sensor["x_mm"] is not None for sensor in view["sensors"])
    sensors = [column for column in SENSORS if placed or column not in ("x_mm", "y_mm")]
    for columns, part in ((sensors, view["sensors"]), (TRANSFERS, view["transfers"]), (SUMMARIES, view["summaries"])):
        if part:
            lines += ["", *fitted_table(columns, part, width, OPTIONAL)]
    lines += _logged(view)
    lines += traces(view.get("traces", ()), width)
    whole = view["potential"]
    if whole and whole["speedup"] is not None:
        lines += [
            "",
            f"whole run: {whole['duration_ns'] / 1e6:.4g} ms of kernels, "
            f"potential {bounded(whole['speedup'], whole['flags'])} "
            f"({whole['ideal_ns'] / 1e6:.4g} ms), "
            f"ceiling {bounded(whole['speedup_ceiling'], whole['ceiling_flags']) or 'unknown'}",
        ]
    lines += _of_run(view["criteria"])
    by_means = {row["kernel_full"] for row in view["means"]}
    if unknown := [r for r in view["launches"] if r["potential"] is None and r["kernel_full"] not in by_means]:
        shown = " of those shown" if view["truncated"] else ""
        lines.append(f"{counted(len(unknown), 'launch')}{shown} without potential: {unknown[0]['reason']}")
    if not rows and not by_means:
        return page_of(lines)
    which = "N" if rows else "NAME"
    lines += [
        "",
        *cut(view),
        "potential: all waste removed, same algorithm; ceiling: limit if only DRAM traffic and arithmetic were left",
        *([NOT_ALL] if is_bound else []),
        f"details: profsvc show id:{info['run_id']} --kernel {which}; meaning of a number: profsvc explain NAME",
    ]
    return page_of(lines)


def _of_run(criteria: Iterable[Row]) -> list[str]:
    """Return the criteria of the whole run; those without a value share a line per reason."""
    lines: dict[tuple[str, str], list[str]] = {}
    for row in criteria:
        value = cell(row["value"])
        lines.setdefault((row["criterion"], value) if value else ("", str(row["reason"])), []).append(row["criterion"])
    return [f"  {', '.join(names)}: {text}" for (_, text), names in lines.items()]


def _logged(view: Mapping[str, Any]) -> list[str]:
    """Return the commands that show the results of power and temperature logs."""
    run = view["run"]["run_id"]
    ways = []
    if any(sensor["quantity"] == "power" for sensor in view["sensors"]):
        ways.append(f"power and energy: profsvc power id:{run}")
    if any(sensor["quantity"] == "temperature" and sensor["x_mm"] is not None for sensor in view["sensors"]):
        ways.append(f"temperatures on the die: profsvc power id:{run} --heat-map map.svg")
    return ["", *ways] if ways else []


def _kernels(view: Mapping[str, Any], width: int | None) -> list[str]:
    """Return the totals by kernel, if not all launches have a row."""
    if not view["truncated"]:
        return []
    rows = [{title: row[name] for name, title in KERNELS.items()}
            for row in labelled(view["kernels"], "kernel_short", "kernel")]  # fmt: skip
    rows = [row | {"kernel": middle(str(row["kernel"]), 40)} for row in rows]
    more = [f'  more kernels: profsvc sql "{ALL_KERNELS.format(view["run"]["run_id"])}"']
    table = fitted_table(list(KERNELS.values()), rows, width, OPTIONAL)
    return ["", *table, *(more if view["kernels_truncated"] else [])]


def _means(kernels: Sequence[Row], width: int | None) -> list[str]:
    """Return the kernels with averages over their launches, longest total time first."""
    if not kernels:
        return []
    kernels = labelled(kernels)
    rows = [
        {title: row[name] for name, title in MEANS.items()}
        | {MEANS[name]: bounded(row[name], row[flags]) for name, flags in BOUNDED.items()}
        | {MEANS["first"]: brief(row["causes"]) if row["causes"] else row["first"]}
        for row in kernels
    ]
    for row in rows:
        row |= {"kernel": middle(str(row["kernel"]), 28)}
    table = fitted_table(list(MEANS.values()), rows, width, OPTIONAL)
    lacking = [f"  {row['kernel']}: {row['reason']}" for row in kernels if row["potential"] is None]
    return ["", "kernel averages", *table, *lacking]


def cut(view: Mapping[str, Any]) -> list[str]:
    """Return how many launches are not shown, and how to list them; empty if all are."""
    if not view["truncated"] or view["run"].get("archived"):
        return []
    shown, total, run = len(view["launches"]), view["total_launches"], view["run"]["run_id"]
    return [
        f"TRUNCATED: showing the {shown} longest of {total} launches; {total - shown} are not shown.",
        f"  more: profsvc show id:{run} --limit N; all: profsvc show id:{run} --all; "
        f'or profsvc sql "select * from v1_launches where run_id = {run}"',
        "",
    ]


def _upload(upload: Row) -> Iterable[str]:
    account = ", ".join(f"{upload['lines_' + what]} {what}" for what in ("stored", "skipped", "rejected"))
    yield f"  {upload['file_name']}: {upload['format']}, {counted(upload['lines'], 'line')}: {account}"
    for message in (upload["message"], upload["same_as_reason"]):
        if message:
            yield f"    {message}"
