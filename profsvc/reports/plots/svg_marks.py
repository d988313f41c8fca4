"""Lines, marks, areas, arrows and texts of figures that are drawn without matplotlib."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np

from profsvc.reports.plots.svg_scales import Floats, Transform, text_width
from profsvc.reports.rows import visible

FONT = "font-family: DejaVu Sans, Verdana, sans-serif"
DASHES: Mapping[Any, Sequence[float]] = {"--": (3.7, 1.6), ":": (1.0, 1.65)}
"""Dashes and gaps of a style of lines, in widths of the line."""
ANCHORS = {"left": "start", "center": "middle", "right": "end"}
MARKS = "osD^vPx."
# Corners of marks within a square from -1 to 1.
SHAPES: Mapping[str, Sequence[tuple[float, float]]] = {
    "s": ((-1, -1), (1, -1), (1, 1), (-1, 1)),
    "D": ((0, -1.41), (1.41, 0), (0, 1.41), (-1.41, 0)),
    "^": ((-1, -1), (1, -1), (0, 1)),
    "v": ((-1, 1), (1, 1), (0, -1)),
    "P": ((-0.33, -1), (0.33, -1), (0.33, -0.33), (1, -0.33), (1, 0.33), (0.33, 0.33), (0.33, 1), (-0.33, 1),
          (-0.33, 0.33), (-1, 0.33), (-1, -0.33), (-0.33, -0.33)),
}  # fmt: skip


def number(value: float) -> str:
    """Return a number of an SVG with two digits behind the point.

    >>> number(3.14159), number(-0.001), number(12.0)
    ('3.14', '0', '12')
    """
    return f"{round(value, 2) + 0.0:.2f}".rstrip("0").rstrip(".")


class Pen:
    """An SVG that is being written; places have y upwards."""

    def __init__(self, width: float, height: float, title: str) -> None:
        """Begin a picture."""
        self._height = height
        size = number(width), number(height)
        self.root = ElementTree.Element(
            "svg", {"xmlns": "http://www.w3.org/2000/svg", "width": f"{size[0]}pt", "height": f"{size[1]}pt",
                    "viewBox": f"0 0 {size[0]} {size[1]}", "style": FONT},
        )  # fmt: skip
        ElementTree.SubElement(self.root, "title").text = visible(title)

    def bytes(self) -> bytes:
        """Return the picture."""
        body: str = ElementTree.tostring(self.root, encoding="unicode")
        return f"<?xml version='1.0' encoding='utf-8'?>\n{body}".encode()

    def box(
        self, box: Sequence[float], *, fill: str, stroke: str = "none", width: float = 0.0, opacity: float = 1.0
    ) -> None:
        """Draw a box."""
        left, bottom, right, top = box
        how = {"x": number(left), "y": number(self._height - top), "width": number(right - left),
               "height": number(top - bottom), "fill": fill, "stroke": stroke}  # fmt: skip
        how |= {"stroke-width": number(width)} if width else {}
        ElementTree.SubElement(self.root, "rect", how | ({"opacity": number(opacity)} if opacity < 1 else {}))

    def clipped(self, box: Sequence[float], name: str) -> ElementTree.Element:
        """Return a group that shows nothing outside a box."""
        left, bottom, right, top = box
        clip = ElementTree.SubElement(ElementTree.SubElement(self.root, "defs"), "clipPath", {"id": name})
        size = {"width": number(right - left), "height": number(top - bottom)}
        ElementTree.SubElement(clip, "rect", {"x": number(left), "y": number(self._height - top), **size})
        return ElementTree.SubElement(self.root, "g", {"clip-path": f"url(#{name})"})

    def path(
        self, into: ElementTree.Element, places: Floats, *, color: str = "none", linewidth: float = 1.0,
        linestyle: Any = "-", alpha: float | None = None, fill: str = "none", closed: bool = False,
    ) -> None:  # fmt: skip
        """Draw a line through places, interrupted where one is unknown."""
        parts, begins = [], True
        for x, y in places:
            if not (math.isfinite(x) and math.isfinite(y)):
                begins = True
                continue
            parts.append(f"{'M' if begins else 'L'}{number(x)} {number(self._height - y)}")
            begins = False
        if len(parts) < 2:
            return
        how = {"d": "".join(parts) + "Z" * closed, "fill": fill, "stroke": color, "stroke-width": number(linewidth)}
        dashes = DASHES.get(linestyle, ()) if isinstance(linestyle, str) else linestyle[1]
        if dashes:
            how["stroke-dasharray"] = " ".join(number(linewidth * one) for one in dashes)
        if alpha is not None:
            how["fill-opacity" if color == "none" else "stroke-opacity"] = number(alpha)
        ElementTree.SubElement(into, "path", how)

    def circle(
        self, into: ElementTree.Element, place: Floats, radius: float, fill: str, stroke: str, width: float
    ) -> None:
        """Draw a circle."""
        how = {"cx": number(place[0]), "cy": number(self._height - place[1]), "r": number(radius), "fill": fill,
               "stroke": stroke, "stroke-width": number(width)}  # fmt: skip
        ElementTree.SubElement(into, "circle", how)

    def text(
        self, into: ElementTree.Element, words: str, at: Sequence[float], size: float, *, color: str,
        ha: str = "left", turn: float = 0.0,
    ) -> None:  # fmt: skip
        """Write a line of text whose base line begins, ends or has its middle at a place."""
        x, y = number(at[0]), number(self._height - at[1])
        how = {"x": x, "y": y, "font-size": number(size), "text-anchor": ANCHORS[ha], "fill": color}
        if turn:
            how["transform"] = f"rotate({number(-turn)} {x} {y})"
        ElementTree.SubElement(into, "text", how).text = visible(words)


class Line(NamedTuple):
    """A line with or without marks."""

    x: Floats
    y: Floats
    style: Any
    marker: str
    transform: Transform
    how: Mapping[str, Any]

    @classmethod
    def of(cls, x: Any, y: Any, marks: str, transform: Transform, how: Mapping[str, Any]) -> "Line":
        """Return a line; ``marks`` are a mark, a style, or both, such as ``o-``."""
        marker = how.get("marker") or next((one for one in marks if one in MARKS), "")
        style = marks.strip(MARKS) or ("None" if marks else "-")
        x, y = np.atleast_1d(np.asarray(x, np.float64)), np.atleast_1d(np.asarray(y, np.float64))
        return cls(x, y, how.get("linestyle", style), marker, transform, how)

    @property
    def label(self) -> str:
        """What the legend says."""
        words = str(self.how.get("label", ""))
        return "" if words.startswith("_") else words

    def get_linestyle(self) -> Any:
        """Return the style."""
        return self.style

    def get_xdata(self) -> Floats:
        """Return the x coordinates."""
        return self.x

    def get_ydata(self) -> Floats:
        """Return the y coordinates."""
        return self.y

    def get_transform(self) -> Transform:
        """Return the transform to points."""
        return self.transform

    def places(self) -> Floats:
        """Return the points."""
        return self.transform.transform(np.column_stack([self.x, self.y]))

    def draw(self, pen: Pen, into: Any) -> None:
        """Draw it."""
        if "gid" in self.how:
            into = ElementTree.SubElement(into, "g", {"id": self.how["gid"]})
        self._put(pen, into, self.places(), self.places())

    def sample(self, pen: Pen, begin: float, end: float, y: float) -> None:
        """Draw a piece of it for a legend."""
        self._put(pen, pen.root, np.array([[begin, y], [end, y]]), np.array([[(begin + end) / 2, y]]))

    def _put(self, pen: Pen, into: Any, path: Floats, marks: Floats) -> None:
        color, how = self.how["color"], self.how
        if self.style != "None":
            alpha = how.get("alpha")
            pen.path(into, path, color=color, linewidth=how.get("linewidth", 1.5), linestyle=self.style, alpha=alpha)
        half = how.get("markersize", 6.0) / 2
        if not self.marker or not half:
            return
        fill, edge = how.get("markerfacecolor", color), how.get("markeredgecolor", color)
        width = how.get("markeredgewidth", 1.0)
        for place in marks[np.isfinite(marks).all(axis=1)]:
            if self.marker == "x":
                for turn in (1, -1):
                    ends = place + half * np.array([[-1, -turn], [1, turn]])
                    pen.path(into, ends, color=color, linewidth=width)
            elif self.marker in "o.":
                pen.circle(into, place, half if self.marker == "o" else half / 2, fill, edge, width)
            else:
                corners = place + half * np.array(SHAPES[self.marker])
                pen.path(into, corners, color=edge, linewidth=width, fill=fill, closed=True)


class Size(NamedTuple):
    """The box of a text, and its size."""

    extents: tuple[float, float, float, float]
    size: tuple[float, float]


@dataclass
class Text:
    """A text at an offset from a point."""

    words: str
    offset: Any
    how: Mapping[str, Any]
    anchor: Callable[[], Any] = field(default=lambda: np.zeros(2))
    shown_within: Sequence[float] | None = None
    color: str = "#000000"

    def __post_init__(self) -> None:
        """Take the colour."""
        self.color = self.how.get("color", self.color)

    def get_text(self) -> str:
        """Return the words."""
        return self.words

    def set_color(self, color: str) -> None:
        """Set the colour."""
        self.color = color

    def set_parse_math(self, _parse: bool) -> None:
        """Do nothing: texts are never parsed."""

    def set_in_layout(self, _in: bool) -> None:
        """Do nothing: the layout is fixed."""

    def set_position(self, offset: Any) -> None:
        """Set the offset."""
        self.offset = offset

    def _size(self) -> tuple[float, float]:
        font, lines = self.how.get("fontsize", 10.0), self.words.count("\n")
        return text_width(self.words, font), font * (1.0 + lines * 1.2 * self.how.get("linespacing", 1.0))

    def _corner(self) -> tuple[float, float]:
        """Return the left and lower end of its box."""
        (width, height), anchor = self._size(), self.anchor()
        left = {"left": 0.0, "center": 0.5, "right": 1.0}[self.how.get("ha", "left")]
        below = {"baseline": 0.2, "center": 0.5, "top": 1.0, "bottom": 0.0}[self.how.get("va", "baseline")]
        return float(anchor[0] + self.offset[0] - left * width), float(anchor[1] + self.offset[1] - below * height)

    def get_window_extent(self) -> Size:
        """Return its box."""
        (width, height), (left, bottom) = self._size(), self._corner()
        corners = np.array([[left, bottom], [left + width, bottom], [left, bottom + height],
                            [left + width, bottom + height]])  # fmt: skip
        if turn := math.radians(self.how.get("rotation", 0.0)):
            base = np.asarray(self.anchor(), np.float64) + self.offset
            turned = np.array([[math.cos(turn), math.sin(turn)], [-math.sin(turn), math.cos(turn)]])
            corners = base + (corners - base) @ turned
        low, high = corners.min(axis=0), corners.max(axis=0)
        return Size((float(low[0]), float(low[1]), float(high[0]), float(high[1])), tuple((high - low).tolist()))

    def draw(self, pen: Pen) -> None:
        """Write it, unless its point is outside of what is shown."""
        x, y = self.anchor()
        if self.shown_within is not None:
            left, bottom, right, top = self.shown_within
            if not (left - 1 <= x <= right + 1 and bottom - 1 <= y <= top + 1):
                return
        font, ha, turn = self.how.get("fontsize", 10.0), self.how.get("ha", "left"), self.how.get("rotation", 0.0)
        if turn:
            pen.text(pen.root, self.words, (x + self.offset[0], y + self.offset[1]), font, color=self.color, ha=ha,
                     turn=turn)  # fmt: skip
            return
        step = font * 1.2 * self.how.get("linespacing", 1.0)
        base = self.get_window_extent().extents[3] - 0.8 * font
        for line, words in enumerate(self.words.split("\n")):
            pen.text(pen.root, words, (x + self.offset[0], base - line * step), font, color=self.color, ha=ha)


def area(
    pen: Pen, into: Any, x: Floats, low: Floats, high: Floats, transform: Transform, how: Mapping[str, Any]
) -> None:
    """Fill between two lines, in pieces where they are unknown."""
    known = np.isfinite(x) & np.isfinite(low) & np.isfinite(high)
    ends = np.flatnonzero(np.diff(np.concatenate([[False], known, [False]]).astype(int)))
    for begin, end in zip(ends[::2], ends[1::2], strict=True):
        part = slice(begin, end)
        edge = np.vstack([np.column_stack([x[part], low[part]]), np.column_stack([x[part], high[part]])[::-1]])
        stroke = {"color": how["edgecolor"], "linewidth": how["linewidth"]} if "edgecolor" in how else {}
        pen.path(into, transform.transform(edge), fill=how["color"], alpha=how.get("alpha"), closed=True, **stroke)


def arrow(pen: Pen, into: Any, ends: Floats, transform: Transform, how: Mapping[str, Any]) -> None:
    """Draw an arrow from the first end to the second, a little shorter than their distance."""
    begin, end = transform.transform(ends)
    length = float(np.hypot(*(end - begin)))
    if length <= how.get("shrinkA", 0) + how.get("shrinkB", 0):
        return
    along = (end - begin) / length
    begin, end = begin + along * how.get("shrinkA", 0), end - along * how.get("shrinkB", 0)
    across = np.array([-along[1], along[0]])
    line = {"color": how["color"], "linewidth": how["linewidth"]}
    pen.path(into, np.array([begin, end]), **line)
    pen.path(into, np.array([end - 4 * along + 2 * across, end, end - 4 * along - 2 * across]), **line)
