"""The heat map of a die as SVG or PNG, and as data for JSON, with escaped texts."""

from textwrap import wrap
from typing import Any

import numpy as np

from profsvc.analysis.thermocouples.heat_map import DieMap
from profsvc.reports.plots import figure as figures
from profsvc.reports.plots.figure import DARK, LIGHT, Theme, shown
from profsvc.reports.rows import plain, visible

INCHES = (7.6, 6.4)
MARGIN = 0.06  # of the width, around the die
MAX_NAME_CHARS, LINE, MAX_NOTES = 16, 104, 5


def unit(die_map: DieMap) -> str:
    """Return the unit of the temperatures shown."""
    return "K" if die_map.difference else "\u00b0C"


def hot_spot(die_map: DieMap) -> str:
    """Return a sentence on the hottest point."""
    what = "warmed most" if die_map.difference else "hottest"
    sign = "+" if die_map.difference else ""
    value = f"{die_map.hot_c:{sign}.1f} {unit(die_map)}"
    return f"{what}: {value} at ({die_map.hot_x_mm:.1f}, {die_map.hot_y_mm:.1f}) mm"


def data(die_map: DieMap, title: str) -> dict[str, Any]:
    """Return the map for JSON: rows of the grid from the bottom, null where unknown."""
    columns = (die_map.sensor_x_mm, die_map.sensor_y_mm, die_map.sensor_c)
    sensors = zip(die_map.names, *(column.tolist() for column in columns), strict=True)
    found: dict[str, Any] = plain(
        {
            "title": title,
            "unit": "K" if die_map.difference else "degC",
            "difference": die_map.difference,
            "grid_x_mm": die_map.grid_x_mm.tolist(),
            "grid_y_mm": die_map.grid_y_mm.tolist(),
            "temperature": die_map.temperature_c.tolist(),
            "band_edges": die_map.edges_c.tolist(),
            "sensors": [{"name": n, "x_mm": x, "y_mm": y, "temperature": value} for n, x, y, value in sensors],
            "hot_spot": {"x_mm": die_map.hot_x_mm, "y_mm": die_map.hot_y_mm, "temperature": die_map.hot_c},
            "outline_mm": die_map.outline_mm.tolist(),
            "outline_is_die": die_map.outline_is_die,
            "notes": list(die_map.notes),
        }
    )
    return found


def picture(die_map: DieMap, title: str, form: str = "svg", *, dark: bool = False) -> bytes:
    """Return the image of the map: colour bands, sensors with their readings, and the hot spot.

    A difference with both signs uses a diverging colour map, symmetric around zero.
    """
    theme = DARK if dark else LIGHT

    def draw(figure: Any) -> None:
        _draw(figure, die_map, shown(title), theme)

    return figures.picture(draw, title, form, INCHES, theme.back)


def _draw(figure: Any, die_map: DieMap, title: str, theme: Theme) -> None:
    axes = figure.add_subplot(facecolor=theme.back)
    filled = axes.contourf(
        die_map.grid_x_mm, die_map.grid_y_mm, np.ma.masked_invalid(die_map.temperature_c),
        levels=die_map.edges_c, **_colours(die_map, theme),
    )  # fmt: skip
    bar = figure.colorbar(filled, ax=axes, ticks=die_map.edges_c, shrink=0.9)
    bar.ax.set_title(unit(die_map), color=theme.ink, fontsize=9)
    bar.ax.tick_params(colors=theme.ink, labelsize=8)
    bar.outline.set_edgecolor(theme.muted)
    _frame(axes, die_map, theme)
    _sensors(axes, die_map, theme)
    beside = {"x": 0.02, "ha": "left", "color": theme.ink, "parse_math": False}
    figure.suptitle(title, fontsize=11, **beside)
    axes.set_ylabel("y (mm)", color=theme.ink, fontsize=9)
    more = len(die_map.notes) - MAX_NOTES
    lines = [hot_spot(die_map), *die_map.notes[:MAX_NOTES], *([f"and {more} more notes"] if more > 0 else [])]
    figure.supxlabel("\n".join(line for text in lines for line in wrap(visible(text), LINE)), fontsize=8, **beside)
    axes.set_xlabel("x (mm)", color=theme.ink, fontsize=9)
    axes.tick_params(colors=theme.ink, labelsize=8)
    for side in axes.spines.values():
        side.set_visible(False)


def _colours(die_map: DieMap, theme: Theme) -> dict[str, Any]:
    edges = die_map.edges_c
    if not (die_map.difference and edges.size and edges[0] < 0 < edges[-1]):
        return {"cmap": theme.map}
    most = float(np.abs(edges).max())
    return {"cmap": theme.difference, "vmin": -most, "vmax": most}


def _frame(axes: Any, die_map: DieMap, theme: Theme) -> None:
    corners = np.vstack((die_map.outline_mm, die_map.outline_mm[:1]))
    axes.plot(*corners.T, color=theme.ink, linewidth=1.2, linestyle="-" if die_map.outline_is_die else "--")
    low = np.minimum(corners.min(axis=0), [die_map.sensor_x_mm.min(), die_map.sensor_y_mm.min()])
    high = np.maximum(corners.max(axis=0), [die_map.sensor_x_mm.max(), die_map.sensor_y_mm.max()])
    room = MARGIN * (high - low).max()
    axes.set_xlim(low[0] - room, high[0] + room)
    axes.set_ylim(low[1] - room, high[1] + room)
    axes.set_aspect("equal")


def _sensors(axes: Any, die_map: DieMap, theme: Theme) -> None:
    axes.plot(die_map.sensor_x_mm, die_map.sensor_y_mm, "o", color=theme.ink, markeredgecolor=theme.back,
              markersize=4)  # fmt: skip
    axes.plot([die_map.hot_x_mm], [die_map.hot_y_mm], "o", markersize=15, markerfacecolor="none",
              markeredgecolor=theme.back, markeredgewidth=3.5)  # fmt: skip
    axes.plot([die_map.hot_x_mm], [die_map.hot_y_mm], "o", markersize=15, markerfacecolor="none",
              markeredgecolor=theme.ink, markeredgewidth=1.5)  # fmt: skip
    box = {"boxstyle": "round,pad=0.15", "facecolor": theme.back, "edgecolor": "none", "alpha": 0.75}
    sign = "+" if die_map.difference else ""
    places = zip(die_map.names, die_map.sensor_x_mm, die_map.sensor_y_mm, die_map.sensor_c, strict=True)
    for name, x, y, value in places:
        read = f"{value:{sign}.1f}" if np.isfinite(value) else "no value"
        axes.annotate(
            f"{shown(name, MAX_NAME_CHARS)}\n{read}", (x, y), xytext=(0, 8), textcoords="offset points", ha="center",
            va="bottom", fontsize=8, color=theme.ink, bbox=box, parse_math=False, clip_on=False,
        )  # fmt: skip
