"""Pictures of active cores: the map of each core alone side by side, and power against temperature of sets."""

from collections.abc import Mapping
from math import ceil, sqrt
from typing import Any

import numpy as np

from profsvc.formulas.thermocouples import heat_map as maps_of_die
from profsvc.reports.plots import figure as figures
from profsvc.reports.plots import lines
from profsvc.reports.plots.figure import DARK, LIGHT, shown

MAX_MAPS = 30
INCHES_PER_MAP = 2.1


def effect(data: Mapping[str, Any], form: str = "svg") -> bytes:
    """Return the plot of power against temperature."""
    return lines.draw(data, form)


def maps(data: Mapping[str, Any], title: str, form: str = "svg", *, dark: bool = False) -> bytes:
    """Return the maps of the first cores on one colour scale, each with its hottest sensor."""
    theme = DARK if dark else LIGHT
    x, y, rise = (np.array(data[name], np.float64) for name in ("x_mm", "y_mm", "rise_c"))
    cores = data["cores"][:MAX_MAPS]
    columns = ceil(sqrt(len(cores)))
    rows = ceil(len(cores) / columns)
    edges = maps_of_die.band_edges(rise)

    def draw(figure: Any) -> None:
        panels = np.atleast_1d(figure.subplots(rows, columns, squeeze=False)).ravel()
        filled = None
        for panel, core, values in zip(panels, cores, rise, strict=False):
            found = maps_of_die.heat_map(x, y, values)
            filled = panel.contourf(
                found.grid_x_mm, found.grid_y_mm, np.ma.masked_invalid(found.temperature_c), levels=edges,
                cmap=theme.map, extend="both",
            )  # fmt: skip
            panel.plot(x, y, ".", color=theme.ink, markersize=2)
            panel.plot([found.hot_x_mm], [found.hot_y_mm], "o", markersize=9, markerfacecolor="none",
                       markeredgecolor=theme.back, markeredgewidth=2)  # fmt: skip
            panel.set_title(f"core {core}: {np.nanmax(values):+.1f} K", color=theme.ink, fontsize=8)
            panel.set_aspect("equal")
        for panel in panels:
            panel.set_xticks([])
            panel.set_yticks([])
            for side in panel.spines.values():
                side.set_visible(False)
        for panel in panels[len(cores) :]:
            panel.set_visible(False)
        bar = figure.colorbar(filled, ax=list(panels), shrink=0.8)
        bar.ax.set_title("K", color=theme.ink, fontsize=9)
        bar.ax.tick_params(colors=theme.ink, labelsize=8)
        bar.outline.set_edgecolor(theme.muted)
        figure.suptitle(shown(title), fontsize=11, x=0.02, ha="left", color=theme.ink, parse_math=False)

    size = INCHES_PER_MAP * columns + 1.2, INCHES_PER_MAP * rows + 0.6
    return figures.picture(draw, title, form, size, theme.back)
