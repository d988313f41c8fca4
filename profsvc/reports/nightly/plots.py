"""The history plot of a finding: one point per run, the levels before and after, and uncorrected power."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np

from profsvc.reports.nightly.content import SCALES, named
from profsvc.reports.plots import figure as figures
from profsvc.reports.plots.figure import DARK, LIGHT, Theme, shown

INCHES = (6.4, 2.5)


def history(row: Mapping[str, Any], form: str = "svg", *, dark: bool = False) -> bytes:
    """Return the plot of the series of a finding, with the change marked.

    ``row`` is a finding of a report with its ``history``. Levels are dashed, intervals are thin lines.
    """
    theme = DARK if dark else LIGHT
    points = row["history"]
    place = [n for n, one in enumerate(points) if one["run_id"] == row["run_id"]]
    size, unit = _unit(row)

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        _dress(axes, theme)
        x = np.arange(len(points))
        if any(one["raw"] is not None for one in points):
            raw = _column(points, "raw", size)
            axes.plot(
                x,
                raw,
                ".-",
                color=theme.muted,
                linewidth=0.7,
                markersize=3,
                alpha=0.7,
                label="uncorrected",
            )
        value, low, high = (_column(points, name, size) for name in ("value", "low", "high"))
        axes.vlines(x, low, high, color=theme.lines[0], linewidth=0.8, alpha=0.5)
        known = row.get("reference_temperature_c")
        label = "one run" if known is None else f"at {known:g} \u00b0C"
        axes.plot(x, value, "o-", color=theme.lines[0], linewidth=0.9, markersize=3, label=label)
        if place:
            _levels(axes, row, place[0], len(points), size, theme)
        axes.set_ylabel(unit or row["quantity"].replace("_", " "), color=theme.ink, fontsize=8)
        axes.set_title(shown(named(row)), color=theme.ink, fontsize=9, loc="left", parse_math=False)
        _days(axes, points, theme.muted)
        box = axes.legend(fontsize=7, facecolor=theme.back, edgecolor=theme.line, loc="best")
        for words in box.get_texts():
            words.set_color(theme.ink)

    return figures.picture(draw, named(row), form, INCHES, theme.back)


def _unit(row: Mapping[str, Any]) -> tuple[float, str]:
    """Return the scale of the values and its unit."""
    largest = max(abs(row["before"]), abs(row["after"]))
    for size, name in SCALES.get(row["unit"], ()):
        if largest >= size:
            return size, name
    return 1.0, "" if row["unit"] == "1" else str(row["unit"]).replace("degC", "\u00b0C")


def _column(points: Sequence[Mapping[str, Any]], name: str, size: float) -> Any:
    return np.array([np.nan if one[name] is None else one[name] / size for one in points], dtype=np.float64)


def _levels(axes: Any, row: Mapping[str, Any], at: int, count: int, size: float, theme: Theme) -> None:
    change = theme.lines[1]
    axes.axvline(at - 0.5, color=change, linewidth=1.0)
    axes.hlines(row["before"] / size, -0.5, at - 0.5, color=change, linestyle="--", linewidth=1.0)
    axes.hlines(row["after"] / size, at - 0.5, count - 0.5, color=change, linestyle="--", linewidth=1.0)


def _dress(axes: Any, theme: Theme) -> None:
    axes.set_facecolor(theme.back)
    axes.tick_params(colors=theme.muted, labelsize=7)
    axes.grid(visible=True, color=theme.line, linewidth=0.5)
    axes.set_axisbelow(True)
    for side in axes.spines.values():
        side.set_color(theme.line)


def _days(axes: Any, points: Sequence[Mapping[str, Any]], color: str) -> None:
    """Label a few points with their dates, or with times if all are of one day. Points are equally spaced."""
    chosen = sorted({round(place) for place in np.linspace(0, len(points) - 1, 6)})
    days = [_moment(str(points[place]["at"]), "%d %b %Y") for place in chosen]
    one_day = len(days) > 1 and len(set(days)) == 1
    axes.set_xticks(chosen, [_moment(str(points[place]["at"]), "%H:%M:%S") for place in chosen] if one_day else days)
    axes.set_xlabel(days[0] if one_day else "", fontsize=7, color=color)


def _moment(at: str, form: str) -> str:
    try:
        return datetime.fromisoformat(at).strftime(form)
    except ValueError:
        return shown(at, 12)
