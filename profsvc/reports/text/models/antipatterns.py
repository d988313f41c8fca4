"""The anti-parallel patterns of a launch or of a run as text for a terminal."""

from collections.abc import Iterable, Mapping, Sequence
from textwrap import wrap
from typing import Any

from profsvc.reports.ratios import times
from profsvc.reports.rows import render, visible

Row = Mapping[str, Any]
LINE = 112
REMEDIES = 3
MIN_SHARE = 0.005
"""Shares below half a percent are shown as 0 %, and need no remedy."""


def page(view: Row, width: int | None = None) -> str:
    """Return the patterns as text: a table of what is known, remedies of what costs most, and what is missing."""
    return "\n".join(visible(line) for line in _lines(view, width)) + "\n"


def ratio(row: Row) -> str:
    """Return the measured ratio of a pattern as text.

    >>> ratio({"ratio": 0.25, "reading": "kept"}), ratio({"ratio": 4.5, "reading": "factor"})
    ('25 %', '4.50x')
    """
    if row["ratio"] is None:
        return ""
    return times(row["ratio"]) if row["reading"] == "factor" else _percent(row["ratio"])


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.0f} %"


def _lines(view: Row, width: int | None) -> Iterable[str]:
    launch, rows = view["launch"], view["rows"]
    if launch is None:
        yield f"run {view['run']['name']!r}: means over its launches, weighted by their time"
    else:
        yield f"#{launch['launch_index']} {launch['kernel_short']} on {launch['device'] or 'an unknown device'}"
    yield ""
    heads = ["pattern", "measured", "metric", "lost", "time saved"]
    heads = [*heads[:2], *heads[3:], "most in"] if launch is None else heads
    known = [row for row in rows if row["lost_share"] is not None]
    cells = [
        {"pattern": row["title"], "measured": ratio(row), "metric": row["metric"], "lost": _percent(row["lost_share"]),
         "time saved": _percent(row["saving_fraction"]), "most in": row["kernel"] or ""}
        for row in known
    ]  # fmt: skip
    yield from str(render(heads, cells, "table", width=width)).splitlines()
    yield from _remedies(known)
    missing = [row for row in rows if row["lost_share"] is None]
    if missing:
        yield ""
    for row in missing:
        yield from wrap(
            f"{row['title']} is unknown: {row['reason']}", LINE, subsequent_indent="  ", break_on_hyphens=False
        )
    yield ""
    yield from (
        line for note in view["notes"] for line in wrap(note, LINE, subsequent_indent="  ", break_on_hyphens=False)
    )


def _remedies(rows: Sequence[Row]) -> Iterable[str]:
    worst = sorted(rows, key=lambda row: (-(row["saving_fraction"] or 0.0), -row["lost_share"]))
    costly = [row for row in worst if (row["saving_fraction"] or 0.0) >= MIN_SHARE] or worst
    shown = [row for row in costly if row["lost_share"] >= MIN_SHARE][:REMEDIES]
    if shown:
        yield ""
    for row in shown:
        yield from wrap(f"{row['title']}: {row['remedy']}", LINE, subsequent_indent="  ", break_on_hyphens=False)
