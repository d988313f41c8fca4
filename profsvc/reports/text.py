"""Runs and launches as a person reads them in a terminal."""

from collections.abc import Iterable, Mapping
from typing import Any

from profsvc.reports.rows import cell, render

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


def middle(text: str, width: int) -> str:
    """Cut a long name in its middle, where names differ least.

    >>> middle("reduce_v1_divergent", 11)
    'reduc…rgent'
    """
    if len(text) <= width:
        return text
    left = width // 2
    return text[:left] + "…" + text[len(text) - (width - left - 1) :]


def bar(value: float | None) -> str:
    """Draw a value of [0, 1].

    >>> bar(0.25)
    '█████···············'
    """
    if value is None:
        return " " * BAR
    full = round(max(0.0, min(1.0, value)) * BAR)
    return "█" * full + "·" * (BAR - full)


def times(value: float | None) -> str:
    """Write a speedup.

    >>> times(1.234), times(None), times(123.4)
    ('1.23x', '', '123x')
    """
    return "" if value is None else f"{value:.2f}x" if value < 100 else f"{value:.0f}x"


def run(view: Mapping[str, Any], width: int | None = None) -> str:
    """Write the page of a run: what it is, a row a launch, and the whole."""
    info = view["run"]
    lines = [f"run {info['name']} (id {info['run_id']}) of project {info['project']} on {info['device'] or '?'}"]
    for upload in view["uploads"]:
        account = (
            f"{upload['lines_stored']} stored, {upload['lines_skipped']} skipped, {upload['lines_rejected']} rejected"
        )
        lines.append(f"  {upload['file_name']}: {upload['format']}, {upload['lines']} lines: {account}")
        if upload["message"]:
            lines.append(f"    {upload['message']}")
    rows = [
        {
            SUMMARY[k]: middle(str(v), 28) if k == "kernel" else times(v) if k in {"potential", "ceiling"} else v
            for k, v in row.items()
            if k in SUMMARY
        }
        for row in view["launches"]
    ]
    lines += ["", str(render(list(SUMMARY.values()), rows, "table", width=width)).rstrip()]
    whole = view["potential"]
    if whole and whole["speedup"] is not None:
        lines += [
            "",
            f"whole run: {whole['duration_ns'] / 1e6:.4g} ms of kernels, potential {times(whole['speedup'])} "
            f"({whole['ideal_ns'] / 1e6:.4g} ms), ceiling {times(whole['speedup_ceiling'])}",
        ]
    lines += [f"  {r['criterion']}: {cell(r['value']) or r['reason']}" for r in view["criteria"]]
    if unknown := [r for r in view["launches"] if r["potential"] is None]:
        lines.append(f"{len(unknown)} launches have no potential: {unknown[0]['reason']}")
    lines += [
        "",
        "potential: all waste removed, same algorithm; ceiling: only DRAM traffic and arithmetic remain.",
        f"open one launch: profsvc show {info['run_id']} --kernel N; where a number comes from: profsvc explain NAME",
    ]
    return "\n".join(lines) + "\n"


def launches(view: Mapping[str, Any]) -> str:
    """Write the pages of the opened launches of one kernel."""
    return "\n\n".join("\n".join(_launch(one)) for one in view["launches"]) + "\n"


def _launch(one: Mapping[str, Any]) -> Iterable[str]:
    launch, bound = one["launch"], one["potential"]
    grid = " ".join(
        f"{what} ({launch[what + '_x']}, {launch[what + '_y']}, {launch[what + '_z']})" for what in ("grid", "block")
    )
    yield f"#{launch['launch_index']} {launch['kernel']}"
    duration = launch["duration_ns"]
    yield f"   {grid} on {launch['device'] or '?'}; {'no duration' if duration is None else f'{duration / 1e3:.6g} us'}"
    if bound and bound["speedup"] is not None:
        yield (
            f"   potential {times(bound['speedup'])} (ideal {bound['ideal_ns'] / 1e3:.4g} us, limited by {bound['bound']}), "
            f"ceiling {times(bound['speedup_ceiling'])}, as published {times(bound['speedup_as_published']) or 'unknown'}"
        )
    elif bound:
        yield f"   no potential: {bound['reason']}"
    yield ""
    yield f"   {'criterion':26}{'':{BAR}}  value  share  speedup  published  flags"
    for row in one["criteria"]:
        yield _criterion(row)
    if one["units"]:
        yield ""
        yield "   useful work, share of the time it needs at the peak of its unit"
        for unit in one["units"]:
            share = None if not duration or unit["value"] is None else unit["value"] / duration
            label = "unknown" if share is None else f"{100 * share:5.1f} %"
            yield f"   {unit['title']:26}{bar(share)}  {label}"
    if one["advice"]:
        yield ""
        yield "   what to do first"
        for number, hint in enumerate(one["advice"], 1):
            saved = "limit" if hint["kind"] == "limit" else f"-{100 * hint['saving_fraction']:.0f} %"
            capped = " (capped by the potential)" if hint["capped"] else ""
            yield f"   {number}. [{saved}{capped}] {hint['title']}: {hint['hint']}"
    estimates = [r for r in one["rules"] if r["estimated_saving_fraction"] is not None]
    if estimates:
        yield ""
        yield "   NVIDIA's own estimates (global: share of the run time; local: of one unit's inefficiency, not a time)"
        for rule in sorted(estimates, key=lambda r: -r["estimated_saving_fraction"]):
            speedup = times(rule["estimated_speedup"])
            yield f"   {rule['rule']:34}{rule['kind'] or '':8}{100 * rule['estimated_saving_fraction']:6.1f} %  {speedup}"


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
    lines += [f"  {word:9} {view[word]}" for word in ("formula", "source", "unit", "hint") if view.get(word)]
    if view["definitions"] and not view["trace"]:
        lines.append("  counters")
        for counter in view["definitions"]:
            lines.append(f"    {counter['name']} [{counter['unit']}]: {counter['meaning']}")
            lines += [f"      {tool:7} {text}" for tool, text in counter["expressions"].items()]
    for row in view["trace"]:
        if row.get("metric"):
            where = f"{row['file']} line {row['line']}"
            lines.append(f"        {row['metric']} = {row['raw_text']}   ({where})")
        else:
            value = cell(row.get("value"))
            lines.append(
                f"  #{row['launch']} {row['name']} = {value or 'unknown'} {row.get('unit') or ''}   {row['from']}"
            )
    return "\n".join(lines) + "\n"
