"""The history plot of a kernel: one point per run, its range, the levels between changes, and findings."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from profsvc.reports.history_labels import name_of, scale_of
from profsvc.reports.plots import figure as figures
from profsvc.reports.plots.figure import DARK, LIGHT, Theme, shown

WIDE = (10.0, 4.6)
MAX_SERIES = 6
"""Maximum number of series in a plot; those with most points come first."""
TICKS, MAX_LABEL_CHARS, MAX_TICK_CHARS, MAX_NAME_CHARS, MAX_MARKED_POINTS = 8, 44, 12, 48, 60
COLOURS = {"worse": 0, "better": 2, "other": 5}


def title_of(view: Mapping[str, Any]) -> str:
    """Return the title of a history."""
    return f"{view['quantity']['title']} of {shown(view['kernel']['kernel_short'], MAX_NAME_CHARS)} over runs"


def draw(view: Mapping[str, Any], form: str = "svg", *, dark: bool = False) -> bytes:
    """Return the plot of a view of `profsvc.views.history.history`."""
    theme = DARK if dark else LIGHT
    order = list(dict.fromkeys(point["run_id"] for point in view["points"]))
    place = {run_id: number for number, run_id in enumerate(order)}
    unit, size = scale_of(view["quantity"]["unit"], [point["value"] for point in view["points"]])

    def figure_of(figure: Any) -> None:
        axes = figure.add_subplot()
        _frame(axes, theme, f"{view['quantity']['title']} ({unit})" if unit else view["quantity"]["title"])
        for one in view["series"][:MAX_SERIES]:
            own = [point for point in view["points"] if point["series"] == one["series"]]
            _line(axes, theme, one, own, place, size)
            _levels(axes, theme, [s for s in view["steps"] if s["series"] == one["series"]], own, place, size)
        _marks(axes, theme, view, place)
        _ticks(axes, theme, view["points"], place)
        box = axes.legend(fontsize=8, facecolor=theme.back, edgecolor=theme.line, loc="best")
        for words in box.get_texts():
            words.set_parse_math(False)
            words.set_color(theme.ink)
        axes.set_title(shown(title_of(view)), color=theme.ink, fontsize=11, loc="left", parse_math=False)

    return figures.picture(figure_of, title_of(view), form, WIDE, theme.back, is_plain=True)


def _frame(axes: Any, theme: Theme, label: str) -> None:
    axes.set_facecolor(theme.back)
    axes.set_ylabel(label, color=theme.ink, fontsize=9, parse_math=False)
    axes.tick_params(colors=theme.muted, labelsize=8)
    axes.grid(visible=True, color=theme.line, linewidth=0.5)
    axes.set_axisbelow(True)
    for side in axes.spines.values():
        side.set_color(theme.line)


def _numbers(points: Sequence[Mapping[str, Any]], name: str, size: float) -> Any:
    return np.array([np.nan if point[name] is None else point[name] / size for point in points], np.float64)


def _line(
    axes: Any,
    theme: Theme,
    one: Mapping[str, Any],
    points: Sequence[Mapping[str, Any]],
    place: Mapping[int, int],
    size: float,
) -> None:
    colour = theme.lines[one["series"] % len(theme.lines)]
    x = np.array([place[point["run_id"]] for point in points], np.float64)
    low, value, high = (_numbers(points, name, size) for name in ("low", "value", "high"))
    if not np.isnan(low).all():
        axes.fill_between(x, low, high, color=colour, alpha=0.16, linewidth=0)
    few = len(points) <= MAX_MARKED_POINTS
    axes.plot(x, value, color=colour, linewidth=0.8, alpha=0.6, marker="o", markersize=4 if few else 1.8)
    if not np.isnan(raw := _numbers(points, "raw", size)).all():
        axes.plot(x, raw, color=theme.muted, linewidth=0.7, linestyle=":", marker="x", markersize=3 if few else 0)
        axes.plot([], [], color=theme.muted, linestyle=":", marker="x", label="\u2009uncorrected")
    # matplotlib skips labels that start with an underscore, so the legend gets its own lines.
    axes.plot([], [], "o-", color=colour, label=f"\u2009{shown(name_of(one), MAX_LABEL_CHARS)}")


def _levels(
    axes: Any,
    theme: Theme,
    steps: Sequence[Mapping[str, Any]],
    points: Sequence[Mapping[str, Any]],
    place: Mapping[int, int],
    size: float,
) -> None:
    """Draw the level before and after each change, and a line at the change."""
    ends = [place[points[0]["run_id"]], *(place[step["run_id"]] for step in steps), place[points[-1]["run_id"]] + 1]
    for number, step in enumerate(steps):
        begin, at, end = ends[number] - 0.5, ends[number + 1] - 0.5, ends[number + 2] - 0.5
        colour = theme.hot[0] if step["direction"] == "worse" else theme.lines[COLOURS[step["direction"]]]
        axes.hlines([step["before"] / size], [begin], [at], color=theme.ink, linewidth=1.1)
        axes.hlines([step["after"] / size], [at], [end], color=theme.ink, linewidth=1.1)
        axes.axvline(at, color=colour, linewidth=1.2, linestyle="--" if step["material"] else ":")
    for direction in dict.fromkeys(step["direction"] for step in steps):
        colour = theme.hot[0] if direction == "worse" else theme.lines[COLOURS[direction]]
        words = {"worse": "regression", "better": "improvement", "other": "change"}[direction]
        axes.plot([], [], color=colour, linestyle="--", label=f"\u2009{words}")


def _marks(axes: Any, theme: Theme, view: Mapping[str, Any], place: Mapping[int, int]) -> None:
    """Draw a triangle below each run with a finding."""
    found = [place[one["run_id"]] for one in view.get("findings", ()) if one["run_id"] in place]
    if found:
        foot = axes.get_xaxis_transform()
        axes.plot(found, [0.02] * len(found), "^", color=theme.ink, markersize=8, transform=foot, clip_on=False)
        axes.plot([], [], "^", color=theme.ink, label="\u2009nightly finding")


def _ticks(axes: Any, theme: Theme, points: Sequence[Mapping[str, Any]], place: Mapping[int, int]) -> None:
    """Label some of the runs on the axis by commit or name."""
    names = {place[point["run_id"]]: str(point["commit_id"] or point["run"]) for point in points}
    every = max(1, -(-len(names) // TICKS))
    shown_at = list(range(0, len(names), every))
    axes.set_xticks(shown_at)
    labels = axes.set_xticklabels([shown(names[at], MAX_TICK_CHARS) for at in shown_at], fontsize=8)
    for words in labels:
        words.set_parse_math(False)
    axes.set_xlim(-0.8, max(len(names) - 0.2, 0.8))
    axes.set_xlabel("runs by start time", color=theme.ink, fontsize=9)
