"""What models say of kernels, as pictures: predictions against what came of them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from profsvc.reports import figures
from profsvc.reports.figures import shown
from profsvc.reports.power_plots import DARK, LIGHT

SQUARE = (7.2, 5.6)
MARKS = "osD^vP"  # whoever sees no colours tells series by them
NEAR = 0.25
ROOM = 1.25  # of the greatest value, so that no mark lies on the edge


def calibration(view: Mapping[str, Any], form: str = "svg", *, dark: bool = False) -> bytes:
    """Return the overall speedups foretold against those achieved, a point a pair of kernels, a mark a source.

    ``view`` is that of the accuracy. On the diagonal a prediction came true; the band is 25 % around it.
    """
    theme = DARK if dark else LIGHT
    title = "Speedup achieved against speedup predicted"

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        figures.plain(axes, theme, "speedup achieved")
        pairs = [row for row in view["pairs"] if row["criterion"] == "overall"]
        both = [row[name] for row in pairs for name in ("predicted", "achieved")]
        ends = np.array([min([*both, 1.0]) / ROOM, max([*both, 2.0]) * ROOM])
        axes.fill_between(ends, ends / (1 + NEAR), ends * (1 + NEAR), color=theme["line"], alpha=0.45, linewidth=0)
        axes.plot(ends, ends, color=theme["soft"], linewidth=1.0)
        for number, source in enumerate(sorted({row["source"] for row in pairs})):
            _series([row for row in pairs if row["source"] == source], source, number, view["scores"], axes, theme)
        _log(axes, "xy")
        axes.set_xlim(*ends)
        axes.set_ylim(*ends)
        axes.set_aspect("equal")
        axes.set_xlabel("speedup predicted", color=theme["ink"], fontsize=9)
        axes.set_title(title, color=theme["ink"], fontsize=11, loc="left", parse_math=False)
        if pairs:
            figures.legend(axes, theme, loc="lower right")

    return figures.picture(draw, title, form, SQUARE, theme["back"])


def _series(
    own: Sequence[Mapping[str, Any]],
    source: str,
    number: int,
    scores: Sequence[Mapping[str, Any]],
    axes: Any,
    theme: Mapping[str, Any],
) -> None:
    said = next((row for row in scores if row["source"] == source and row["criterion"] == "overall"), None)
    words = f"\u2009{shown(source, 24)}, {len(own)} pairs"
    if said is not None and said["median_factor"] is not None:
        words += f", half of them within x{said['median_factor']:.2f}"
    x, y = ([row[name] for row in own] for name in ("predicted", "achieved"))
    colour = theme["lines"][number % len(theme["lines"])]
    axes.plot(x, y, MARKS[number % len(MARKS)], color=colour, markersize=5.5, markeredgecolor=theme["back"],
              markeredgewidth=0.6, label=words)  # fmt: skip


def _log(axes: Any, which: str) -> None:
    """Make axes logarithmic, with plain numbers where they are short."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    axes.tick_params(which="minor", length=0)
    for name in which:
        getattr(axes, f"set_{name}scale")("log")
        axis = getattr(axes, f"{name}axis")
        axis.set_major_locator(LogLocator(10, subs=(1, 2, 5)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(FuncFormatter(lambda *_: ""))
