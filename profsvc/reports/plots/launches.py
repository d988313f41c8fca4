"""Plots with one point per launch: the roofline and the benefit chart, with numbered points and a list of names."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from profsvc.errors import counted
from profsvc.reports.plots import figure as figures
from profsvc.reports.plots import label_placement
from profsvc.reports.plots.figure import Theme, shown
from profsvc.reports.plots.label_placement import Label

Row = Mapping[str, Any]
Plot = Mapping[str, Any]
MARKS = "osD^vP"  # distinguish series without colours
MAX_NAMED, MAX_NAME_CHARS = 14, 22
BOUNDS = {"memory": 0, "compute": 1}
SMALL, WORDS = 8.0, 8.5
TOGETHER = 12.0  # pixels between points that share a label
EDGE = 1.06  # upper end of share axes, so that marks are off the frame
MIN_GAIN = 0.005


class Point(NamedTuple):
    """A launch at its position; ``kind`` selects mark and colour."""

    x: float
    y: float
    kind: int
    row: Row


def roofline(figure: Any, data: Plot, theme: Theme) -> None:
    """Draw the FLOP rate against the arithmetic intensity, with memory and compute ceilings."""
    axes, names = _with_names(figure)
    figures.plain(axes, theme, "performance (flop/s)")
    rows = data["rows"]
    bands, peaks = ([line for line in data["lines"] if line["type"] == kind] for kind in ("memory", "compute"))
    left, right, low, high = _extent(rows, bands, peaks)
    top, lowest = max(line["value"] for line in peaks), min(line["value"] for line in bands)
    widest = max(line["value"] for line in bands)
    for line in bands:
        ends = np.array([left, top / line["value"]])
        axes.plot(ends, ends * line["value"], color=theme.muted, linewidth=1.6 if line["value"] == lowest else 0.9)
    for line in peaks:
        is_top = line["value"] == top
        begin = line["value"] / (widest if is_top else lowest)
        axes.plot([max(begin, left), right], [line["value"]] * 2, color=theme.muted,
                  linewidth=1.6 if is_top else 0.9, linestyle="-" if is_top else (0, (5, 3)))  # fmt: skip
        words = f"{line['label']}: {engineering(line['value'])}flop/s"
        axes.annotate(words, (right, line["value"]), (-5, 3), textcoords="offset points", ha="right", fontsize=SMALL,
                      color=theme.muted, annotation_clip=True)  # fmt: skip
    figures.logarithmic(axes, "xy", (1,), engineering)
    axes.set_xlim(left, right)
    axes.set_ylim(low, high)
    axes.set_xlabel("arithmetic intensity (flop/byte of DRAM)", color=theme.ink, fontsize=9)
    found = _levels(axes, rows[0], theme) if len(rows) == 1 else []
    points = [Point(row["intensity_dram"], row["flop_per_s"], BOUNDS.get(row["bound"], 0), row)
              for row in rows if row["intensity_dram"]]  # fmt: skip
    found += _draw(axes, names, points, theme, ("memory-bound", "compute-bound"))
    for line in bands:
        x = max(left, low / line["value"]) * (right / left) ** 0.02
        _along(axes, x, x * line["value"], f"{line['label']}: {engineering(line['value'])}B/s", theme)
    label_placement.put(axes, found, _marks(points) + [(one.x, one.y) for one in found], theme, fontsize=WORDS)


def _extent(rows: Sequence[Row], bands: Sequence[Row], peaks: Sequence[Row]) -> tuple[float, float, float, float]:
    """Return the axis limits of a roofline, which include all points and the ridge."""
    x = [row[name] for row in rows for name in ("intensity_dram", "intensity_l2", "intensity_l1") if row[name]]
    y = [row["flop_per_s"] for row in rows]
    top = max(line["value"] for line in peaks)
    ridge = top / min(line["value"] for line in bands)
    return min([*x, ridge / 30]) / 2, max([*x, ridge * 20]) * 6, min([*y, top / 300]) / 2, max([*y, top]) * 3


def _marks(points: Sequence[Point]) -> list[tuple[float, float]]:
    return [(point.x, point.y) for point in points]


def _levels(axes: Any, row: Row, theme: Theme) -> list[Label]:
    """Draw the intensity of one launch at each memory level; return the labels."""
    known = [(level, row[f"intensity_{level}"]) for level in ("dram", "l2", "l1") if row[f"intensity_{level}"]]
    y, colour = row["flop_per_s"], theme.lines[0]
    axes.plot([x for _, x in known], [y] * len(known), color=colour, linewidth=0.8)
    for level, x in known:
        if level != "dram":
            axes.plot([x], [y], "o", markerfacecolor=theme.back, color=colour, markersize=6)
    return [Label(x, y, level.upper()) for level, x in known]


def benefit(figure: Any, data: Plot, theme: Theme) -> None:
    """Draw computation cost against memory cost, before and after overlap."""
    axes, names = _with_names(figure)
    figures.plain(axes, theme, "computation cost (share of predicted time)")
    whole = [0, EDGE]
    axes.fill_between(whole, whole, EDGE, color=theme.lines[1], alpha=0.07, linewidth=0)
    axes.fill_between(whole, 0, whole, color=theme.lines[0], alpha=0.07, linewidth=0)
    axes.plot(whole, whole, color=theme.muted, linewidth=1.0)
    for row in data["rows"]:
        y, begin, end = row["computation"], row["memory"], row["memory_after_overlap"]
        arrow = {"arrowstyle": "->", "color": theme.muted, "linewidth": 0.7, "shrinkA": 4, "shrinkB": 4}
        axes.annotate("", (end, y), (begin, y), arrowprops=arrow)
        axes.plot([begin], [y], "o", markerfacecolor=theme.back, color=theme.muted, markersize=5)
    axes.set_xlim(0, EDGE)
    axes.set_ylim(0, EDGE)
    axes.set_xlabel("memory cost (share of predicted time)", color=theme.ink, fontsize=9)
    found = _gains(axes, data["rows"][0], data["benefits"], theme) if len(data["rows"]) == 1 else []
    points = [Point(row["memory_after_overlap"], row["computation"], BOUNDS.get(row["zone"], 0), row)
              for row in data["rows"]]  # fmt: skip
    found += _draw(axes, names, points, theme, ("memory dominates", "computation dominates"))
    at = _free(data["rows"])
    _along(axes, at, at, "computation dominates", theme)
    _along(axes, at, at, "memory dominates", theme, -1)
    arrows = [((row["memory"], row["computation"]), (row["memory_after_overlap"], row["computation"]))
              for row in data["rows"]]  # fmt: skip
    label_placement.put(axes, found, _marks(points) + [begin for begin, _ in arrows], theme, arrows, fontsize=WORDS)


def _free(rows: Sequence[Row]) -> float:
    """Return the start of the label on the diagonal with fewest crossing arrows, preferably at a third."""

    def crossed(begin: float) -> int:
        inside = [row for row in rows if begin - 0.04 < row["computation"] < begin + 0.24]
        return sum(row["memory_after_overlap"] - 0.06 < row["computation"] < row["memory"] + 0.06 for row in inside)

    begins: list[float] = np.linspace(0.04, 0.76, 19).tolist()
    return min(begins, key=lambda begin: (crossed(begin), abs(begin - 0.36)))


def _gains(axes: Any, row: Row, benefits: Mapping[str, str], theme: Theme) -> list[Label]:
    """Draw how far each benefit would move one launch; return the labels."""
    found = []
    x, y = row["memory_after_overlap"], row["computation"]
    for number, name in enumerate(benefits):
        gain = row[name] or 0.0
        if gain < MIN_GAIN:
            continue
        to = (x - gain, y) if name == "B_memlp" else (x, y - gain)
        axes.plot([x, to[0]], [y, to[1]], color=theme.lines[2 + number % 4], linewidth=4, solid_capstyle="butt")
        found.append(Label((x + to[0]) / 2, (y + to[1]) / 2, f"{benefits[name]}: {100 * gain:.0f} %"))
        if name != "B_memlp":
            y = to[1]
    return found


def _with_names(figure: Any) -> tuple[Any, Any]:
    """Return axes, and beside them axes for the list of names."""
    axes, names = figure.subplots(1, 2, width_ratios=[3.2, 1.0])
    names.axis("off")
    return axes, names


def _along(axes: Any, x: float, y: float, words: str, theme: Theme, side: int = 1) -> None:
    """Write a label along a line of slope 1, above or below it; the layout must be final."""
    begin, end = (axes.transData.transform(point) for point in ((x, y), (x * 1.5, y * 1.5)))
    angle = math.atan2(end[1] - begin[1], end[0] - begin[0])
    away = side * (3.5 if side > 0 else 9.5)
    offset = (-away * math.sin(angle), away * math.cos(angle))
    axes.annotate(words, (x, y), offset, textcoords="offset points", rotation=math.degrees(angle),
                  rotation_mode="anchor", fontsize=SMALL, color=theme.muted,
                  annotation_clip=True).set_in_layout(False)  # fmt: skip


def _draw(axes: Any, names: Any, points: Sequence[Point], theme: Theme, kinds: Sequence[str]) -> list[Label]:
    """Draw one mark per launch and list the longest kernels; return the labels of the marks."""
    numbers: dict[str, int] = {}
    for point in points:
        kernel = point.row["kernel"]
        axes.plot([point.x], [point.y], MARKS[point.kind], color=theme.lines[point.kind], markersize=6,
                  markeredgecolor=theme.back, markeredgewidth=0.6,
                  gid=f"point-{point.row['launch_id']}")  # fmt: skip
        if len(points) > 1 and kernel not in numbers and len(numbers) < MAX_NAMED:
            numbers[kernel] = len(numbers) + 1
    lines = [f"{number}  {shown(name, MAX_NAME_CHARS)}" for name, number in numbers.items()]
    rest = len({point.row["kernel"] for point in points}) - len(numbers)
    if len(points) == 1:
        lines = [shown(points[0].row["kernel"], MAX_NAME_CHARS)]
    elif rest > 0:
        lines.append(f"and {counted(rest, 'more kernel')}")
    names.text(-0.1, 0.99, "\n".join(lines), fontsize=WORDS, color=theme.ink, va="top", linespacing=1.5,
               transform=names.transAxes, parse_math=False)  # fmt: skip
    for number in sorted({point.kind for point in points}):
        names.plot([], [], MARKS[number], color=theme.lines[number], label=kinds[number])
    figures.legend(names, theme, loc="lower left", bbox_to_anchor=(-0.17, -0.02))
    axes.figure.draw_without_rendering()  # computes the layout
    return _numbered(axes, points, numbers)


def _numbered(axes: Any, points: Sequence[Point], numbers: Mapping[str, int]) -> list[Label]:
    """Return each number once, at the first point of its kernel; close points share a label."""
    groups: list[tuple[Any, Point, list[int]]] = []
    done: set[str] = set()
    for point in points:
        kernel = point.row["kernel"]
        if kernel not in numbers or kernel in done:
            continue
        done.add(kernel)
        place = axes.transData.transform((point.x, point.y))
        near = next((group for spot, _, group in groups if np.hypot(*(spot - place)) < TOGETHER), None)
        if near is None:
            groups.append((place, point, [numbers[kernel]]))
        else:
            near.append(numbers[kernel])
    return [Label(point.x, point.y, ", ".join(map(str, sorted(group)))) for _, point, group in groups]


def engineering(value: float, _: Any = None) -> str:
    """Return a number with an SI prefix.

    >>> engineering(4.8e12), engineering(0.5), engineering(2e9)
    ('4.8 T', '0.5', '2 G')
    """
    for power, letter in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= power:
            return f"{value / power:.3g} {letter}"
    return f"{value:.3g}"
