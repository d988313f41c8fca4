"""Plot of the temperature of a board over a plan of loads."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from profsvc.reports.plots import figure as figures
from profsvc.reports.plots.figure import DARK, LIGHT, shown

INCHES = (8.6, 5.6)


def plan(
    curve: Mapping[str, Sequence[float | None]], limit_c: float | None, title: str, form: str = "svg", *,
    dark: bool = False,
) -> bytes:  # fmt: skip
    """Return a plot of the temperature with its interval and limit, above the power of the loads."""
    theme = DARK if dark else LIGHT
    time, power, T, low, high = (
        np.array(curve[name], np.float64) for name in ("time_s", "power_w", "temperature_c", "low_c", "high_c")
    )

    def draw(figure: Any) -> None:
        heat, load = figure.subplots(2, 1, sharex=True, height_ratios=(3.0, 1.0))
        figures.plain(heat, theme, "temperature (\u00b0C)")
        heat.plot(time, T, color=theme.hot[0], linewidth=1.4, label="predicted")
        if np.isfinite(low).any():
            heat.fill_between(time, low, high, color=theme.hot[0], alpha=0.18, linewidth=0, label="95 % interval")
        peak = int(np.nanargmax(T))
        heat.plot([time[peak]], [T[peak]], "o", color=theme.hot[0], markersize=5)
        heat.plot([], [], "o", color=theme.hot[0], label=f"peak {T[peak]:.1f} \u00b0C after {time[peak]:.4g} s")
        if limit_c is not None:
            heat.axhline(limit_c, color=theme.hot[1], linewidth=1.2, linestyle="--", label=f"limit {limit_c:g} \u00b0C")
        figures.legend(heat, theme)
        figures.plain(load, theme, "load (W)")
        load.plot(time, power, color=theme.lines[0], linewidth=1.3, drawstyle="steps-pre")
        load.set_ylim(bottom=0)
        load.set_xlabel("time since the first load began (s)", color=theme.ink, fontsize=9)
        heat.set_title(shown(title), color=theme.ink, fontsize=11, loc="left", parse_math=False)

    return figures.picture(draw, title, form, INCHES, theme.back)
