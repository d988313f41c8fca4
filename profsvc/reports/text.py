"""Runs and launches as a person reads them in a terminal."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from profsvc.errors import counted
from profsvc.reports.kernel_names import labelled
from profsvc.reports.launch_models import of_models
from profsvc.reports.ratios import times
from profsvc.reports.rows import cell, render, visible
from profsvc.reports.trace_text import traces

Row = Mapping[str, Any]
BAR = 20
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
# What may be a bound -> its flags.
BOUNDED = {"potential": "flags", "ceiling": "ceiling_flags"}
# What stands before a potential of which not all is known.
SIGNS = {(): "", ("LOWER_BOUND",): "≥ ", ("UPPER_BOUND",): "≤ ", ("LOWER_BOUND", "UPPER_BOUND"): "~ "}
NOT_ALL = "≥ at least, ≤ at most, ~ either: the export does not count all of it; show --kernel says what to collect"
MEANS = {"kernel": "kernel", "launches": "launches", "duration_us": "mean us"}
MEANS |= {name: SUMMARY[name] for name in ("bound", "potential", "ceiling", "first")}
ALL_KERNELS = "select * from v1_kernel_totals where run_id = {} order by total_ns desc"
SENSORS = (
    "quantity", "name", "gpu_index", "x_mm", "y_mm", "unit", "readings", "mean_value", "min_value", "max_value",
    "quality",
)  # fmt: skip
TRANSFERS = ("kind", "count", "duration_ms", "bytes")
SUMMARIES = ("category", "kernel", "calls", "total_ns", "mean_ns", "min_ns", "max_ns")


def middle(text: str, width: int) -> str:
    """Cut a long name in its middle, where names differ least.

    >>> middle("reduce_v1_divergent", 11)
    'reduc…rgent'
    """
    if len(text) <= width:
        return text
    left = width // 2
    return text[:left] + "…" + text[len(text) - (width - left - 1) :]


def several(names: Sequence[str], most: int) -> str:
    """Name the first of several things whose names may hold commas.

    >>> several(["mem, 1 SM", "mem, 2 SMs", "idle"], 2)
    'mem, 1 SM; mem, 2 SMs and 1 more'
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return "; ".join(middle(name, 32) for name in names[:most]) + more


def bar(value: float | None) -> str:
    """Draw a value of [0, 1].

    >>> bar(0.25)
    '█████···············'
    """
    if value is None:
        return " " * BAR
    full = round(max(0.0, min(1.0, value)) * BAR)
    return "█" * full + "·" * (BAR - full)


def bounded(speedup: float | None, flags: str | None) -> str:
    """Write a potential, with a sign where it is only a bound, or neither of the two.

    >>> bounded(1.5, None), bounded(1.5, "LOWER_BOUND"), bounded(1.5, "UPPER_BOUND LOWER_BOUND"), bounded(None, None)
    ('1.50x', '≥ 1.50x', '~ 1.50x', '')
    """
    return f"{sign_of(flags)}{times(speedup)}" if speedup is not None else ""


def sign_of(flags: str | None) -> str:
    """Return what stands before a potential with such flags.

    >>> sign_of("LOWER_BOUND"), sign_of(None)
    ('≥ ', '')
    """
    return SIGNS[tuple(sorted(set((flags or "").split()) & {"LOWER_BOUND", "UPPER_BOUND"}))]


def _written(lines: Iterable[str]) -> str:
    """Join lines into a page; what an upload put into them cannot begin a line nor act on the terminal."""
    return "\n".join(visible(line) for line in lines) + "\n"


def _device(view: Mapping[str, Any]) -> str:
    """Name what a run was on: its own device, else those that its logs name."""
    logged = dict.fromkeys(sensor["device"] for sensor in view["sensors"] if sensor["device"])
    return view["run"]["device"] or view["run"]["devices"] or ", ".join(logged) or "a device that no file names"


def run(view: Mapping[str, Any], width: int | None = None) -> str:
    """Write the page of a run: what it is, a row a launch, and the whole."""
    info = view["run"]
    lines = [f"run {info['name']} (id {info['run_id']}) of project {info['project']} on {_device(view)}"]
    for upload in view["uploads"]:
        lines += _upload(upload)
    rows = [
        {SUMMARY[k]: middle(str(v), 28) if k == "kernel" else v for k, v in row.items() if k in SUMMARY}
        | {SUMMARY[name]: bounded(row[name], row[flags]) for name, flags in BOUNDED.items()}
        for row in labelled(view["launches"])
    ]
    bounds = [row[flags] for row in [*view["launches"], *view["means"]] for flags in BOUNDED.values()]
    is_bound = any(map(sign_of, bounds))
    lines += _kernels(view, width)
    if rows:
        lines += ["", *str(render(list(SUMMARY.values()), rows, "table", width=width)).splitlines()]
    lines += _means(view["means"], width)
    placed = any(sensor["x_mm"] is not None for sensor in view["sensors"])
    sensors = [column for column in SENSORS if placed or column not in ("x_mm", "y_mm")]
    for columns, part in ((sensors, view["sensors"]), (TRANSFERS, view["transfers"]), (SUMMARIES, view["summaries"])):
        if part:
            lines += ["", *str(render(columns, part, "table", width=width)).splitlines()]
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
        return _written(lines)
    which = "N" if rows else "NAME"
    lines += [
        "",
        *cut(view),
        "potential: all waste removed, same algorithm; ceiling: only the arithmetic and the bytes asked of DRAM",
        "remain; another algorithm, type of numbers or unit (such as tensor cores) may pass it.",
        *([NOT_ALL] if is_bound else []),
        f"open one: profsvc show {info['run_id']} --kernel {which}; where a number comes from: profsvc explain NAME",
    ]
    return _written(lines)


def _of_run(criteria: Iterable[Row]) -> list[str]:
    """The criteria of the whole run, those together that have no value for one reason."""
    said: dict[tuple[str, str], list[str]] = {}
    for row in criteria:
        value = cell(row["value"])
        said.setdefault((row["criterion"], value) if value else ("", str(row["reason"])), []).append(row["criterion"])
    return [f"  {', '.join(names)}: {text}" for (_, text), names in said.items()]


def _logged(view: Mapping[str, Any]) -> list[str]:
    """Say where the answers to logs are: nothing of them stands on this page."""
    run = view["run"]["run_id"]
    ways = []
    if any(sensor["quantity"] == "power" for sensor in view["sensors"]):
        ways.append(f"power and energy: profsvc power {run}")
    if any(sensor["quantity"] == "temperature" and sensor["x_mm"] is not None for sensor in view["sensors"]):
        ways.append(f"temperatures on the die: profsvc power {run} --heat-map map.svg")
    return ["", *ways] if ways else []


def _kernels(view: Mapping[str, Any], width: int | None) -> list[str]:
    """All launches by kernel, where not all of them have a row."""
    if not view["truncated"]:
        return []
    rows = [{title: row[name] for name, title in KERNELS.items()}
            for row in labelled(view["kernels"], "kernel_short", "kernel")]  # fmt: skip
    rows = [row | {"kernel": middle(str(row["kernel"]), 40)} for row in rows]
    more = [f'  and more kernels: profsvc sql "{ALL_KERNELS.format(view["run"]["run_id"])}"']
    table = str(render(list(KERNELS.values()), rows, "table", width=width)).splitlines()
    return ["", *table, *(more if view["kernels_truncated"] else [])]


def _means(kernels: Sequence[Row], width: int | None) -> list[str]:
    """The kernels that are known by means over their launches, the longest in all first."""
    if not kernels:
        return []
    kernels = labelled(kernels)
    rows = [
        {title: row[name] for name, title in MEANS.items()}
        | {MEANS[name]: bounded(row[name], row[flags]) for name, flags in BOUNDED.items()}
        for row in kernels
    ]
    for row in rows:
        row |= {"kernel": middle(str(row["kernel"]), 28)}
    table = str(render(list(MEANS.values()), rows, "table", width=width)).splitlines()
    lacking = [f"  {row['kernel']}: {row['reason']}" for row in kernels if row["potential"] is None]
    return ["", "means over the launches of a kernel", *table, *lacking]


def cut(view: Mapping[str, Any]) -> list[str]:
    """Say how many launches of a run have no row here, and how to get them; nothing where all have one."""
    if not view["truncated"]:
        return []
    shown, total, run = len(view["launches"]), view["total_launches"], view["run"]["run_id"]
    return [
        f"CUT: the {shown} longest of {total} launches have a row here, {total - shown} have none.",
        f"  more of them: profsvc show {run} --limit N; all: profsvc show {run} --all; "
        f'or profsvc sql "select * from v1_launches where run_id = {run}"',
        "",
    ]


def criteria(view: Mapping[str, Any]) -> str:
    """Write the criteria of every launch of a run: a row a launch, a column a criterion; 1 is nothing to gain."""
    titles = {r["criterion"]: r["title"] for r in view["criteria"] if r["criterion"] != "host_sync"}
    rows = [
        {"#": launch["launch"], "kernel": middle(str(launch["kernel"]), 28)}
        | {title: _digits(launch["criteria"].get(name)) for name, title in titles.items()}
        for launch in labelled(view["launches"])
    ]
    return str(render(["#", "kernel", *titles.values()], rows, "table", width=160))


def _digits(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _upload(upload: Row) -> Iterable[str]:
    account = ", ".join(f"{upload['lines_' + what]} {what}" for what in ("stored", "skipped", "rejected"))
    yield f"  {upload['file_name']}: {upload['format']}, {counted(upload['lines'], 'line')}: {account}"
    for said in (upload["message"], upload["same_as_reason"]):
        if said:
            yield f"    {said}"


def launches(view: Mapping[str, Any]) -> str:
    """Write the pages of the opened launches of one kernel."""
    more = ["", "CUT: more launches answer; these are the longest. More of them: --limit N; all: --all"]
    pages = "\n".join(_written(_launch(one)) for one in view["launches"])
    return pages + (_written(more) if view["truncated"] else "")


def _launch(one: Row) -> Iterable[str]:
    yield from _heading(one)
    yield ""
    yield f"   {'criterion':26}{'':{BAR}}  value  share  speedup  published  flags"
    if one["reason"]:
        yield f"   none: {one['reason']}"
    for row in one["criteria"]:
        yield _criterion(row)
    for row in one["of_run"]:
        yield f"{_criterion(row)}  (of the whole run)"
    took = one["launch"]["duration_ns"]
    for part in (_units(one), of_models(one["models"], took), _advice(one["advice"]), _estimates(one["rules"])):
        if lines := list(part):
            yield ""
            yield from lines


def _heading(one: Row) -> Iterable[str]:
    launch, bound, duration = one["launch"], one["potential"], one["launch"]["duration_ns"]
    shapes = []
    for what in ("grid", "block"):
        sizes = [launch[f"{what}_{axis}"] for axis in "xyz"]
        shapes.append(f"{what} ({', '.join('?' if size is None else str(size) for size in sizes)})")
    took = "no duration" if duration is None else f"{duration / 1e3:.6g} us"
    of = "#" + str(launch["launch_index"])
    if launch["launch_index"] is None:
        of = f"mean of {launch['launches'] or '?'} launches of"
    yield f"{of} {launch['kernel']}"
    yield f"   {' '.join(shapes)} on {launch['device'] or '?'}; {took}"
    if bound and bound["speedup"] is not None:
        titles = {unit["quantity"]: unit["title"] for unit in one["units"]}
        now, then = (titles.get(bound[name], bound[name]) for name in ("bound", "ideal_bound"))
        ideal = f"ideal {bound['ideal_ns'] / 1e3:.4g} us, limited by {then}"
        yield (
            f"   limited by {now}; potential {bounded(bound['speedup'], bound['flags'])} ({ideal}), "
            f"ceiling {bounded(bound['speedup_ceiling'], bound['ceiling_flags']) or 'unknown'}, "
            f"as published {times(bound['speedup_as_published']) or 'unknown'}"
        )
    elif bound:
        yield f"   no potential: {bound['reason']}"


def _units(one: Row) -> Iterable[str]:
    if one["units"]:
        yield "   useful work, share of the time it needs at the peak of its unit"
    duration = one["launch"]["duration_ns"]
    for unit in one["units"]:
        share = None if not duration or unit["value"] is None else unit["value"] / duration
        label = "unknown" if share is None else f"{100 * share:5.1f} %"
        yield f"   {unit['title']:26}{bar(share)}  {label}"


def _advice(advice: Sequence[Row]) -> Iterable[str]:
    if advice:
        yield "   what to do first"
    for number, hint in enumerate(advice, 1):
        saved = hint["kind"]
        if saved == "saving":
            saved = f"-{100 * hint['saving_fraction']:.0f} % of the {hint['budget']}"
        capped = " (capped by the potential)" if hint["capped"] else ""
        yield f"   {number}. [{saved}{capped}] {hint['title']}: {hint['hint']}"


def _estimates(rules: Iterable[Row]) -> Iterable[str]:
    estimates = [rule for rule in rules if rule["estimated_saving_fraction"] is not None]
    if estimates:
        yield "   NVIDIA's own estimates (global: share of the run time; local: of one unit's inefficiency, not a time)"
    for rule in sorted(estimates, key=lambda r: -r["estimated_saving_fraction"]):
        saved, speedup = f"{100 * rule['estimated_saving_fraction']:.1f} %", times(rule["estimated_speedup"])
        yield f"   {rule['rule']:34}{rule['kind'] or '':8}{saved:>8}  {speedup}".rstrip()


def _criterion(row: Row) -> str:
    if row["value"] is None:
        return f"   {row['title']:26}{'':{BAR}}  {row['reason']}"
    share = "" if row["share"] is None else f"{row['share']:.2f}"
    published = "" if row["value_as_published"] is None else cell(row["value_as_published"])
    return (
        f"   {row['title']:26}{bar(row['value'])}  {row['value']:5.3f}  {share:>5}  {times(row['speedup']):>7}  "
        f"{published:>9}  {row['flags'] or ''}"
    ).rstrip()


def explained(view: Mapping[str, Any]) -> str:
    """Write what a number means and where it comes from."""
    lines = [f"{view['name']}: {view['meaning']}"]
    lines += [f"  {word:9} {view[word]}" for word in ("formula", "read", "source", "unit", "hint") if view.get(word)]
    if view["definitions"] and not view["trace"]:
        lines.append("  counters")
        for counter in view["definitions"]:
            lines.append(f"    {counter['name']} [{counter['unit']}]: {counter['meaning']}")
            lines += [f"      {tool:7} {text}" for tool, text in counter["expressions"].items()]
    lines += [line for figure in view.get("figures", ()) for line in _figure(figure)]
    more = ["CUT: more launches answer; these are the longest. Narrow the question with --kernel"]
    return _written([*lines, *map(_step, view["trace"]), *(more if view.get("truncated") else [])])


def _figure(row: Row) -> list[str]:
    head = f"  {row['reproduced']:6}  {row['figure']}: {row['printed'] or 'nothing'} {row['unit']} printed".rstrip()
    found = f", {row['computed']} by {row['formula'] or 'counting'}" if row["computed"] else ""
    why = [f"          {row['why']}"] if row["why"] else []
    return [f"{head}{found}   [{row['source']}] {row['place']}", *why]


def _step(row: Row) -> str:
    if row.get("metric"):
        return f"        {row['metric']} = {row['raw_text']}   ({row['file']} line {row['line']})"
    value = cell(row.get("value")) or "unknown"
    unit = "" if value == "unknown" or row.get("unit") in (None, "", "1") else f" {row['unit']}"
    whose = "run" if row["launch"] is None else f"#{row['launch']}"
    return f"  {whose} {row['name']} = {value}{unit}   {row['from']}"
