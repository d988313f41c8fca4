"""Two runs beside each other as a person reads them in a terminal."""

from collections.abc import Mapping
from typing import Any

from profsvc.reports.rows import render, visible
from profsvc.reports.text import middle, times

HEADS = {
    "kernel": "kernel", "before": "before us", "after": "after us", "speedup": "speedup", "predicted": "predicted",
    "estimate": "NVIDIA", "limit": "limited by",
}  # fmt: skip
# A criterion that moved less is not worth a line here; all of them are in the other forms.
WORTH = 0.05
MOST = 15


def comparison(view: Mapping[str, Any], width: int | None = None) -> str:
    """Write the page of a comparison: what differs besides, a row a kernel, the criteria that moved, what is alone."""
    before, after = view["before"], view["after"]
    lines = [f"{before['project']}/{before['name']} -> {after['project']}/{after['name']}"]
    lines += [f"beware: {warning}" for warning in view["warnings"]]
    if view["kernels"]:
        rows = [{title: _cell(row, name) for name, title in HEADS.items()} for row in view["kernels"]]
        lines += ["", *str(render(list(HEADS.values()), rows, "table", width=width)).splitlines(), ""]
        lines.append(f"geometric mean of the speedups: {times(view['geometric_mean_speedup']) or 'unknown'}")
        lines.append("predicted and NVIDIA: what all waste removed was to bring, foretold from the run before")
    else:
        lines += ["", "the two runs have no kernel in common; say which became which with --map OLD=NEW"]
    moved = [row for row in view["criteria"] if abs(row["change"]) >= WORTH]
    lines += ["", "criteria that moved (1: nothing to gain)"] if moved else []
    for row in sorted(moved, key=lambda row: row["change"])[:MOST]:
        lines.append(f"  {row['criterion']:24}{row['before']:6.3f} -> {row['after']:6.3f}  {row['kernel_after']}")
    lines += [f"  and {len(moved) - MOST} more: -o json"] if len(moved) > MOST else []
    for key, words in (("only_before", "only before"), ("only_after", "only after")):
        names = [middle(str(one["kernel"]), 40) for one in view[key]]
        more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
        lines += [f"{words}: {', '.join(names[:MOST])}{more}"] if names else []
    return "\n".join(visible(line) for line in lines) + "\n"


def _cell(row: Mapping[str, Any], name: str) -> Any:
    old, new = str(row["kernel_before"]), str(row["kernel_after"])
    if name == "kernel":
        return middle(old, 32) if old == new else f"{middle(old, 24)} -> {middle(new, 24)}"
    if name in ("before", "after"):
        return row[f"mean_{name}_us"]
    if name == "limit":
        old, new = row["bound_before"] or "", row["bound_after"] or ""
        return old if old == new else f"{old or '?'} -> {new or '?'}"
    return times(row[name])
