"""Plots of model results: rooflines, benefits, scans of warps and SMs, and prediction accuracy.

A plot is the dict that `profsvc.views.models.plots` makes; the same dict gives the same bytes.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from profsvc.errors import counted
from profsvc.reports.plots import figure as figures
from profsvc.reports.plots import launches as launch_points
from profsvc.reports.plots.figure import DARK, LIGHT, Theme, shown
from profsvc.reports.plots.launches import MARKS
from profsvc.reports.ratios import factor

Row = Mapping[str, Any]
Plot = Mapping[str, Any]
SQUARE, WIDE, TALL = (7.2, 5.6), (8.2, 5.2), (7.2, 6.0)
TITLES = {"mwp_cwp": "MWP-CWP model", "throughput": "throughput model"}
DASHES: Sequence[Mapping[str, Any]] = ({"linewidth": 1.6}, {"linewidth": 1.6, "linestyle": (0, (6, 2))})
EDGE = 1.03
MARGIN = 0.25
NARROW = 1.0  # minimum half width of a histogram, in percent
ROOM = 1.25  # of the largest value, so that marks are off the edge


def calibration(view: Mapping[str, Any], form: str = "svg", *, dark: bool = False) -> bytes:
    """Return a plot of achieved against predicted overall speedup, one point per pair of kernels, one mark per source.

    ``view`` is that of the accuracy. Predictions on the diagonal are exact; the band is 25 % around it.
    """
    theme = DARK if dark else LIGHT
    title = "Achieved and predicted speedup"

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        figures.plain(axes, theme, "achieved speedup")
        pairs = [row for row in view["pairs"] if row["criterion"] == "overall"]
        both = [row[name] for row in pairs for name in ("predicted", "achieved")]
        ends = np.array([min([*both, 1.0]) / ROOM, max([*both, 2.0]) * ROOM])
        axes.fill_between(ends, ends / (1 + MARGIN), ends * (1 + MARGIN), color=theme.line, alpha=0.45, linewidth=0)
        axes.plot(ends, ends, color=theme.muted, linewidth=1.0)
        for number, source in enumerate(sorted({row["source"] for row in pairs})):
            _series([row for row in pairs if row["source"] == source], source, number, view["scores"], axes, theme)
        figures.logarithmic(axes, "xy")
        axes.set_xlim(*ends)
        axes.set_ylim(*ends)
        axes.set_aspect("equal")
        axes.set_xlabel("predicted speedup", color=theme.ink, fontsize=9)
        axes.set_title(title, color=theme.ink, fontsize=11, loc="left", parse_math=False)
        if pairs:
            figures.legend(axes, theme, loc="lower right")

    return figures.picture(draw, title, form, SQUARE, theme.back)


def _series(
    own: Sequence[Mapping[str, Any]],
    source: str,
    number: int,
    scores: Sequence[Mapping[str, Any]],
    axes: Any,
    theme: Theme,
) -> None:
    said = next((row for row in scores if row["source"] == source and row["criterion"] == "overall"), None)
    words = f"\u2009{shown(source, 24)}, {counted(len(own), 'pair')}"
    if said is not None and said["median_factor"] is not None:
        words += f", median error {factor(said['median_factor'])}"
    x, y = ([row[name] for row in own] for name in ("predicted", "achieved"))
    colour = theme.lines[number % len(theme.lines)]
    axes.plot(x, y, MARKS[number % len(MARKS)], color=colour, markersize=5.5, markeredgecolor=theme.back,
              markeredgewidth=0.6, label=words)  # fmt: skip


def draw(data: Plot, form: str = "svg", *, dark: bool = False) -> bytes:
    """Return the image of a plot of `profsvc.views.models.plots`."""
    theme = DARK if dark else LIGHT
    maker, inches = MAKERS[data["kind"]]

    def on(figure: Any) -> None:
        maker(figure, data, theme)
        figure.suptitle(shown(data["title"]), color=theme.ink, fontsize=11, x=0.01, ha="left", parse_math=False)

    return figures.picture(on, data["title"], form, inches, theme.back, is_plain=True)


def _warps(figure: Any, data: Plot, theme: Theme) -> None:
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[1.2, 1.0])
    rows = data["rows"]
    n = np.array([row["warps"] for row in rows])
    figures.plain(upper, theme, "warps")
    figures.plain(lower, theme, "relative speed (now = 1)")
    upper.plot(n, n, color=theme.line, linewidth=4.0, label="all warps")
    words = {
        "MWP": "MWP: warps with memory requests in parallel",
        "CWP": "CWP: warps that compute during one memory period",
    }
    for number, (name, label) in enumerate(words.items()):
        upper.plot(n, _column(rows, name), color=theme.lines[number], label=label, **DASHES[number])
    if data["peak"] is not None and data["peak"] <= n[-1]:
        upper.axhline(data["peak"], color=theme.muted, linewidth=0.9, linestyle=":")
        upper.annotate("bandwidth saturated", (n[-1], data["peak"]), (-4, 3), textcoords="offset points",
                       ha="right", fontsize=8, color=theme.muted)  # fmt: skip
    _models(lower, n, rows, "{}_speedup", theme)
    for axes in (upper, lower):
        axes.axvline(data["now"], color=theme.ink, linewidth=0.9, linestyle=(0, (2, 2)))
        if data["fits"] is not None and data["fits"] < n[-1]:
            axes.axvspan(data["fits"], n[-1] * EDGE, color=theme.line, alpha=0.35, linewidth=0)
        axes.set_ylim(bottom=0)
        axes.set_xlim(0, n[-1] * EDGE)
    upper.annotate("now", (data["now"], 1), (0, 2), xycoords=("data", "axes fraction"), textcoords="offset points",
                   fontsize=8, ha="center", color=theme.ink)  # fmt: skip
    figures.legend(upper, theme, loc="upper left")
    figures.legend(lower, theme, loc="lower right")
    grey = "; grey: exceeds occupancy limit" if data["fits"] is not None and data["fits"] < n[-1] else ""
    lower.set_xlabel(f"resident warps per SM{grey}", color=theme.ink, fontsize=9)


def _sms(figure: Any, data: Plot, theme: Theme) -> None:
    rows = data["rows"]
    known = rows[0]["power_w"] is not None
    panels = figure.subplots(2 if known else 1, 1, sharex=True, squeeze=False)[:, 0]
    n = np.array([row["sms"] for row in rows])
    figures.plain(panels[0], theme, "relative speed (now = 1)")
    _models(panels[0], n, rows, "{}", theme)
    for number, model in enumerate(TITLES):
        best = data["suggested"].get(model)
        if best is not None and best < n[-1] and rows[int(best) - 1][model] is not None:
            mark = {"markersize": 8, "markeredgecolor": theme.back, "markeredgewidth": 0.8}
            panels[0].plot([best], [rows[int(best) - 1][model]], MARKS[number], color=theme.lines[number], **mark)
            panels[0].plot([], [], MARKS[number], color=theme.lines[number],
                           label=f"{best:.0f} SMs saturate the bandwidth")  # fmt: skip
    if known:
        figures.plain(panels[1], theme, "relative speed per watt (all SMs = 1)")
        _models(panels[1], n, rows, "per_watt_{}", theme)
    for axes in panels:
        axes.set_xlim(0, n[-1] * EDGE)
        axes.set_ylim(bottom=0)
        figures.legend(axes, theme, loc="lower right")
    panels[-1].set_xlabel("active SMs", color=theme.ink, fontsize=9)


def _models(axes: Any, n: Any, rows: Sequence[Row], name: str, theme: Theme) -> None:
    for number, (model, title) in enumerate(TITLES.items()):
        y = _column(rows, name.format(model))
        if np.isfinite(y).any():
            axes.plot(n, y, color=theme.lines[number], label=title, **DASHES[number])


def _column(rows: Sequence[Row], name: str) -> Any:
    return np.array([np.nan if row[name] is None else row[name] for row in rows], dtype=np.float64)


def _hits(figure: Any, data: Plot, theme: Theme) -> None:
    levels: dict[str, list[Row]] = {}
    for row in data["rows"]:
        levels.setdefault(row["level"], []).append(row)
    panels = figure.subplots(len(levels), 1, squeeze=False)[:, 0]
    for number, (axes, (level, rows)) in enumerate(zip(panels, levels.items(), strict=True)):
        figures.plain(axes, theme, "orders")
        left, right = (np.array([100 * row[name] for row in rows]) for name in ("from_ratio", "to_ratio"))
        low, high = (100 * rows[0][name] for name in ("p05", "p95"))
        axes.axvspan(low, high, color=theme.line, alpha=0.5, linewidth=0)
        colour, counts = theme.lines[number % len(theme.lines)], [row["orders"] for row in rows]
        axes.bar((left + right) / 2, counts, right - left, color=colour, edgecolor=theme.back, linewidth=0.6)
        same = f"90 % of the orders from {low:.2f} to {high:.2f} %" if high > low else "identical for all orders"
        axes.set_title(f"{level}: {100 * rows[0]['mean']:.2f} %, {same}", color=theme.ink, fontsize=9, loc="left",
                       parse_math=False)  # fmt: skip
        about, half = (left[0] + right[-1]) / 2, max(NARROW, right[-1] - left[0])
        axes.set_xlim(max(0.0, about - half), min(100.0, about + half))
        axes.set_ylim(bottom=0)
    panels[-1].set_xlabel("hit ratio (%); scales differ", color=theme.ink, fontsize=9)


MAKERS: Mapping[str, tuple[Callable[[Any, Plot, Theme], None], tuple[float, float]]] = {
    "roofline": (launch_points.roofline, WIDE),
    "benefit": (launch_points.benefit, WIDE),
    "warps": (_warps, TALL),
    "sms": (_sms, SQUARE),
    "hits": (_hits, TALL),
}
