"""Plots of curves and points: series of x and y with bands, and marked places.

A figure is a dict: title, x and y (labels), series, and where wanted log (``x``, ``y`` or ``xy``) and marks. A series
has a name, x, y, and where wanted low and high (a band) and points (true: marks in place of a line). A mark is a
vertical line at x with a label, and where wanted low and high (its interval, shaded).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from profsvc.reports.plots import figure as figures
from profsvc.reports.plots.figure import DARK, LIGHT, Theme, shown
from profsvc.reports.plots.launches import MARKS

INCHES = (7.2, 4.8)


def draw(data: Mapping[str, Any], form: str = "svg", *, dark: bool = False) -> bytes:
    """Return the image of a figure; the same figure gives the same bytes."""
    theme = DARK if dark else LIGHT

    def on(figure: Any) -> None:
        axes = figure.add_subplot()
        figures.plain(axes, theme, shown(data["y"]))
        axes.set_xlabel(shown(data["x"]), color=theme.ink, fontsize=9, parse_math=False)
        for number, one in enumerate(data["series"]):
            _series(axes, one, number, theme)
        if log := data.get("log", ""):
            figures.logarithmic(axes, log)
        for mark in data.get("marks", ()):
            if mark.get("low") is not None:
                axes.axvspan(mark["low"], mark["high"], color=theme.muted, alpha=0.15, linewidth=0)
            axes.axvline(mark["x"], color=theme.muted, linewidth=0.9, linestyle=":")
            axes.annotate(shown(mark["label"]), (mark["x"], 1), (3, -3), xycoords=("data", "axes fraction"),
                          textcoords="offset points", fontsize=8, va="top", rotation=90, color=theme.muted,
                          parse_math=False)  # fmt: skip
        figures.legend(axes, theme)
        axes.set_title(shown(data["title"]), color=theme.ink, fontsize=11, loc="left", parse_math=False)

    return figures.picture(on, data["title"], form, INCHES, theme.back)


def _series(axes: Any, one: Mapping[str, Any], number: int, theme: Theme) -> None:
    colour = theme.lines[number % len(theme.lines)]
    x, y = (_numbers(one[name]) for name in ("x", "y"))
    if one.get("low") is not None:
        axes.fill_between(x, _numbers(one["low"]), _numbers(one["high"]), color=colour, alpha=0.2, linewidth=0)
    if one.get("points"):
        axes.plot(x, y, MARKS[number % len(MARKS)], color=colour, markersize=5.5, markeredgecolor=theme.back,
                  markeredgewidth=0.6, label=shown(one["name"]))  # fmt: skip
    else:
        axes.plot(x, y, color=colour, linewidth=1.6, label=shown(one["name"]))


def _numbers(values: Any) -> Any:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
