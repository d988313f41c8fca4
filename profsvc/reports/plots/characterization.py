"""Plots of the characterization of a device: measured points, fitted curve and saturation level."""

from collections.abc import Mapping, Sequence
from typing import Any

from profsvc.errors import UsageError
from profsvc.reports.plots import figure as figures
from profsvc.reports.plots.figure import DARK, LIGHT, Theme, shown

INCHES = (7.6, 3.8)
MAX_LABEL_CHARS = 60


def draw(curve: Mapping[str, Any], form: str = "svg", *, dark: bool = False) -> bytes:
    """Return the plot of a curve of `profsvc.views.device.device`."""
    return draw_all([curve], form, dark=dark)


def draw_all(curves: Sequence[Mapping[str, Any]], form: str = "svg", *, dark: bool = False) -> bytes:
    """Return the plots of curves below each other; refuse none."""
    if not curves:
        raise UsageError("nothing to plot: the characterization has no curve, only costs and figures")
    theme = DARK if dark else LIGHT

    def put(figure: Any) -> None:
        for axes, curve in zip(figure.subplots(len(curves), squeeze=False)[:, 0], curves, strict=True):
            _put(axes, curve, theme)

    title = ", ".join(str(curve["title"]) for curve in curves)
    return figures.picture(put, title, form, (INCHES[0], INCHES[1] * len(curves)), theme.back)


def _put(axes: Any, curve: Mapping[str, Any], theme: Theme) -> None:
    axes.set_facecolor(theme.back)
    axes.grid(visible=True, color=theme.line, linewidth=0.5)
    axes.set_axisbelow(True)
    axes.tick_params(colors=theme.muted, labelsize=8, which="both")
    for side in axes.spines.values():
        side.set_color(theme.line)
    line = list(zip(*curve["curve"], strict=True))
    axes.plot(*line, color=theme.lines[0], linewidth=1.5)
    axes.axhline(curve["saturated"], color=theme.lines[1], linewidth=1.0, linestyle="--")
    places, values = ([row[name] for row in curve["rows"]] for name in "xy")
    axes.plot(places, values, "o", color=theme.lines[0], markersize=4.5)
    if curve["is_log"]:
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    axes.set_ylim(0, max(1.05, 1.05 * max(values)))
    axes.annotate(f"saturated: {curve['saturated']:.3g}", (0.99, curve["saturated"]), xytext=(0, -11),
                  xycoords=("axes fraction", "data"), textcoords="offset points", ha="right", fontsize=8,
                  color=theme.ink)  # fmt: skip
    axes.set_ylabel("share of peak", color=theme.ink, fontsize=9)
    axes.set_xlabel(shown(curve["x_title"], MAX_LABEL_CHARS), color=theme.ink, fontsize=9, parse_math=False)
    axes.set_title(shown(curve["title"]), color=theme.ink, fontsize=11, loc="left", parse_math=False)
