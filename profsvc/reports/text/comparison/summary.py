"""The comparison of two runs as Markdown: what a CI job shows of it, and posts as a comment."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from profsvc.analysis.changes.outcomes import FASTER, REGRESSION
from profsvc.errors import counted
from profsvc.reports.rows import render, visible
from profsvc.reports.text.comparison.two_runs import changed_parts, overall_change

MAX_KERNELS = 10
HEADS = ("kernel", "before (us)", "after (us)", "change of time")


def summary(view: Mapping[str, Any], failures: Sequence[str], unjudged: Sequence[str]) -> str:
    """Return the verdict on a change: limits that are exceeded, changed kernels, and why their times changed."""
    changed = [row for row in view["kernels"] if row["outcome"] in (REGRESSION, FASTER)]
    changed.sort(key=lambda row: row["speedup"])
    runs = " -> ".join(_quoted(f"{view[when]['project']}/{view[when]['name']}") for when in ("before", "after"))
    lines = [f"### profsvc: {_verdict(changed, failures, unjudged)}", "", f"{runs}{_device(view)}"]
    for title, sentences in (("Limits", failures), ("Not checked", unjudged), ("Warnings", view["warnings"])):
        lines += ["", f"{title}:", "", *(f"* {_escaped(one)}" for one in sentences)] if sentences else []
    if changed:
        rows = [_row(row) for row in changed[:MAX_KERNELS]]
        lines += ["", str(render(HEADS, rows, "md")).rstrip("\n")]
        lines += ["", f"and {counted(len(changed) - MAX_KERNELS, 'more kernel')}"] if len(changed) > MAX_KERNELS else []
        causes = list(_causes(changed[:MAX_KERNELS]))
        lines += ["", "Why mean times changed:", "", *causes] if causes else []
    if view["kernels"]:
        change = overall_change(view["geometric_mean_speedup"])
        lines += ["", f"Overall: {change} ({counted(len(view['kernels']), 'kernel')} in common)"]
    ids = f"id:{view['before']['run_id']} id:{view['after']['run_id']}"
    return "\n".join([*lines, "", f"Details: `profsvc compare {ids}`", ""])


def _verdict(changed: Sequence[Mapping[str, Any]], failures: Sequence[str], unjudged: Sequence[str]) -> str:
    if failures:
        return "regression"
    if unjudged:
        return "not checked"
    if any(row["outcome"] == FASTER for row in changed):
        return "faster"
    return "no regression beyond the limits" if changed else "no change"


def _device(view: Mapping[str, Any]) -> str:
    device = view["after"]["device"]
    return f" on {_escaped(device)}" if device else ""


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    change = f"{100 * (1 / row['speedup'] - 1):+.1f} %"
    values = (row["kernel_after"], f"{row['mean_before_us']:.4g}", f"{row['mean_after_us']:.4g}", change)
    return dict(zip(HEADS, values, strict=True))


def _causes(kernels: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for row in kernels:
        if parts := changed_parts(row["causes"]):
            yield f"* {_quoted(row['kernel_after'])}: {_escaped(parts)}"


def _quoted(text: str) -> str:
    """Return a name as code, in which nothing is markup.

    >>> _quoted("a`<b>")
    "`a'<b>`"
    """
    return f"`{visible(str(text)).replace('`', chr(39))}`"


def _escaped(text: str) -> str:
    """Return text in which nothing is markup.

    >>> _escaped("copy<int>: up *5 %*")
    'copy&lt;int>: up \\\\*5 %\\\\*'
    """
    escaped = visible(str(text)).replace("&", "&amp;").replace("<", "&lt;")
    return "".join(f"\\{one}" if one in "\\`*_[]|@#!" else one for one in escaped)
