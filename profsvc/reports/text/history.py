"""The history of a kernel as text: one row per run, detected changes and notes."""

from collections.abc import Iterable, Mapping
from typing import Any

from profsvc.formulas.change.levels.series_length import MIN_HISTORY, MIN_SEGMENT
from profsvc.reports.history_labels import name_of, scale_of
from profsvc.reports.rows import render, visible
from profsvc.reports.text.cells import middle

MIN_P = 1e-4
"""Probabilities below this are shown as less than it."""


def page(view: Mapping[str, Any], width: int | None = None) -> str:
    """Return the history as text, newest run last."""
    lines = [*_head(view)]
    for one in view["series"]:
        lines += ["", *_series(view, one, width)]
    found = steps(view) if view["steps"] else [no_change(view)]
    lines += ["", *found, *(f"note: {words}" for words in view["notes"] if words not in found)]
    return "\n".join(visible(line) for line in lines) + "\n"


def no_change(view: Mapping[str, Any]) -> str:
    """Return why no change is reported: none was detected, or there are not enough runs."""
    if all(one["needed"] > 0 for one in view["series"]):
        return f"not enough runs to detect a change (needs {MIN_HISTORY} before, {MIN_SEGMENT} after)"
    return "no change detected"


def _head(view: Mapping[str, Any]) -> Iterable[str]:
    kernel, about = view["kernel"], view["quantity"]
    number = "" if kernel["kernel_id"] is None else f"  (kernel #{kernel['kernel_id']})"
    yield f"{about['title']} of {kernel['kernel']}{number}"
    yield f"  {about['meaning']}" + (f"; low and high: {about['band']}" if about["band"] else "")


def _series(view: Mapping[str, Any], one: Mapping[str, Any], width: int | None) -> Iterable[str]:
    own = [point for point in view["points"] if point["series"] == one["series"]]
    unit, size = scale_of(view["quantity"]["unit"], [point["value"] for point in own])
    changes = {step["run_id"]: arrow(step) for step in view["steps"] if step["series"] == one["series"]}
    yield name_of(one)
    value = view["quantity"]["name"] + (f" ({unit})" if unit else "")
    spread = [name for name in ("low", "high", "raw") if any(point[name] is not None for point in own)]
    heads = ["run", "commit", "at", value, *spread, "change"]
    rows = []
    for point in own:
        numbers = [None if point[name] is None else point[name] / size for name in ("value", *spread)]
        cells = [middle(str(point["run"]), 32), middle(point["commit_id"] or "", 14), point["at"][:16], *numbers]
        rows.append(dict(zip(heads, [*cells, changes.get(point["run_id"], "")], strict=True)))
    yield from str(render(heads, rows, "table", width=width)).splitlines()


def arrow(step: Mapping[str, Any]) -> str:
    """Return the size and the direction of a change.

    >>> arrow({"change": 0.125, "direction": "worse", "material": True})
    '+12.5 % worse'
    """
    by = "" if step["change"] is None else f"{100 * step['change']:+.1f} % "
    return by + (step["direction"] if step["material"] else "below threshold")


def steps(view: Mapping[str, Any]) -> Iterable[str]:
    """Yield one line per detected change: run, values and significance."""
    unit, size = scale_of(view["quantity"]["unit"], [step["after"] for step in view["steps"]])
    least = view["smallest_change"]
    yield "detected changes"
    for step in view["steps"]:
        sure = f"p < {MIN_P:g}" if step["p"] < MIN_P else f"p = {step['p']:.2g}"
        commit = f" (commit {step['commit_id']})" if step["commit_id"] else ""
        yield (
            f"  at run {step['run']}{commit}: {step['before'] / size:.4g} -> {step['after'] / size:.4g} {unit}".rstrip()
            + f", {arrow(step)}, {sure}"
        )
    if not all(step["material"] for step in view["steps"]):
        yield (
            f"  threshold: changes below {100 * least['relative']:g} % of the level or {least['absolute']:g} "
            f"{least['unit']} are ignored"
        )
