"""Figures as SVG without matplotlib, which takes seconds of a page: the part of its interface that plots of pages use.

A plot draws on a `Figure` as it draws on one of matplotlib, and the same code gives a PNG there. Sizes are points. The
margins are fixed, so that places are known as soon as limits are.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from profsvc.reports.plots import svg_marks
from profsvc.reports.plots.svg_marks import Line, Pen, Text
from profsvc.reports.plots.svg_scales import Floats, Scale, Transform, limits, text_width, tick_texts, ticks

LEFT, RIGHT, BOTTOM, TOP, TITLED_TOP = 64.0, 10.0, 42.0, 30.0, 48.0
GAP, SHARED_GAP, TITLED_GAP = 28.0, 14.0, 44.0
"""Room between axes: side by side, below each other with one x axis, and with one each."""
ENTRY, HANDLE, PAD = 1.45, 2.0, 0.5
"""Height of an entry of a legend, width of its mark, and room around it, in sizes of its font."""
CORNERS = ("upper right", "upper left", "lower left", "lower right", "center left", "center right")


class Extent(NamedTuple):
    """A box: left, bottom, right, top."""

    extents: tuple[float, float, float, float]


class Figure:
    """A figure; see `matplotlib.figure.Figure`."""

    dpi = 72.0

    def __init__(self, inches: tuple[float, float], back: str) -> None:
        """Begin an empty figure with a background."""
        self.width, self.height = 72 * inches[0], 72 * inches[1]
        self.axes: list[Axes] = []
        self._back = back
        self._title: dict[str, Any] | None = None

    def add_subplot(self) -> "Axes":
        """Return axes that fill the figure."""
        self.subplots()
        return self.axes[-1]

    def subplots(
        self, rows: int = 1, columns: int = 1, *, sharex: bool = False, squeeze: bool = True,
        height_ratios: Sequence[float] = (), width_ratios: Sequence[float] = (),
    ) -> Any:  # fmt: skip
        """Return axes in rows and columns."""
        titled = rows > 1 and not sharex
        top, gap = (TITLED_TOP, TITLED_GAP) if titled else (TOP, SHARED_GAP)
        wide = _parts(LEFT, self.width - RIGHT, GAP, width_ratios or [1.0] * columns)
        high = _parts(BOTTOM, self.height - top, gap, [*(height_ratios or [1.0] * rows)][::-1])[::-1]
        made = np.empty((rows, columns), object)
        for row, (bottom, upper) in enumerate(high):
            for column, (left, right) in enumerate(wide):
                made[row, column] = Axes(self, (left, bottom, right, upper), has_x=not sharex or row == rows - 1)
        self.axes += made.ravel().tolist()
        return made.ravel() if squeeze and made.size > 1 else made

    def suptitle(self, words: str, **how: Any) -> None:
        """Set the title of the figure."""
        self._title = {"words": words, **how}

    def draw_without_rendering(self) -> None:
        """Do nothing: the layout is known from the start."""

    def svg(self, title: str) -> bytes:
        """Return the figure."""
        pen = Pen(self.width, self.height, title)
        pen.box((0, 0, self.width, self.height), fill=self._back)
        for number, axes in enumerate(self.axes):
            axes.draw(pen, f"clip-{number}")
        if self._title is not None:
            how = {"ha": self._title.get("ha", "center"), "color": self._title["color"]}
            at = self._title.get("x", 0.5) * self.width, self.height - 16
            pen.text(pen.root, self._title["words"], at, self._title.get("fontsize", 11), **how)
        return pen.bytes()


def _parts(begin: float, end: float, gap: float, ratios: Sequence[float]) -> list[tuple[float, float]]:
    """Divide a length by ratios with gaps between.

    >>> _parts(0, 70, 10, [2, 1])
    [(0.0, 40.0), (50.0, 70.0)]
    """
    unit, found, at = (end - begin - gap * (len(ratios) - 1)) / sum(ratios), [], float(begin)
    for ratio in ratios:
        found.append((at, at + unit * ratio))
        at += unit * ratio + gap
    return found


class Side:
    """An edge of axes."""

    color = "#000000"

    def set_color(self, color: str) -> None:
        """Set its colour."""
        self.color = color


class Axes:
    """Axes of a figure; see `matplotlib.axes.Axes`."""

    def __init__(self, figure: Figure, box: tuple[float, float, float, float], *, has_x: bool) -> None:
        """Take a place in the figure; ``has_x`` tells whether the x axis has numbers."""
        self.figure, self.box = figure, box
        self.spines = {"frame": Side()}
        self.lines: list[Line] = []
        self.texts: list[Text] = []
        self.transData = Transform(self._x, self._y)
        left, bottom, right, top = box
        self.transAxes = Transform(lambda: Scale(0, 1, left, right), lambda: Scale(0, 1, bottom, top))
        self._x_of_data = Transform(self._x, lambda: Scale(0, 1, bottom, top))
        self._y_of_data = Transform(lambda: Scale(0, 1, left, right), self._y)
        self._has_x, self._is_on = has_x, True
        self._given: dict[str, tuple[float | None, float | None]] = {"x": (None, None), "y": (None, None)}
        self._seen: dict[str, list[Floats]] = {"x": [], "y": []}
        self._log: dict[str, tuple[Sequence[int], Callable[..., str]]] = {}
        self._drawn: list[tuple[float, bool, Callable[[Pen, Any], None]]] = []
        self._words: dict[str, dict[str, Any]] = {}
        self._ticks: tuple[list[float], list[Text]] | None = None
        self._style: dict[str, Any] = {"back": "none", "tick": "#000000", "size": 10.0, "grid": None}
        self._legend: Legend | None = None

    def _scale(self, name: str, begin: float, end: float) -> Scale:
        low, high = limits(self._given[name], self._seen[name], name in self._log)
        return Scale(low, high, begin, end, name in self._log)

    def _x(self) -> Scale:
        return self._scale("x", self.box[0], self.box[2])

    def _y(self) -> Scale:
        return self._scale("y", self.box[1], self.box[3])

    def get_xaxis_transform(self) -> Transform:
        """Return the transform with x in data and y as a share of the axes."""
        return self._x_of_data

    def get_window_extent(self) -> Extent:
        """Return the box of the axes."""
        return Extent(self.box)

    def set_facecolor(self, color: str) -> None:
        """Set the background."""
        self._style["back"] = color

    def set_xlabel(self, words: str, **how: Any) -> None:
        """Set the title of the x axis."""
        self._words["x"] = {"words": words, **how}

    def set_ylabel(self, words: str, **how: Any) -> None:
        """Set the title of the y axis."""
        self._words["y"] = {"words": words, **how}

    def set_title(self, words: str, **how: Any) -> None:
        """Set the title, which begins at the left."""
        self._words["title"] = {"words": words, **how}

    def tick_params(self, **how: Any) -> None:
        """Set the colour and size of the numbers."""
        self._style |= {
            "tick": how.get("colors", self._style["tick"]),
            "size": how.get("labelsize", self._style["size"]),
        }

    def grid(self, *, visible: bool, color: str, linewidth: float) -> None:
        """Set the grid."""
        self._style["grid"] = {"color": color, "linewidth": linewidth} if visible else None

    def set_axisbelow(self, _below: bool) -> None:
        """Do nothing: the grid is always below."""

    def axis(self, _off: str) -> None:
        """Hide everything but texts and the legend."""
        self._is_on = False

    def set_xlim(self, left: float | None = None, right: float | None = None) -> None:
        """Set limits; what is not given follows the data."""
        self._given["x"] = left, right

    def set_ylim(self, bottom: float | None = None, top: float | None = None) -> None:
        """Set limits; what is not given follows the data."""
        self._given["y"] = bottom, top

    def set_logarithmic(self, which: str, steps: Sequence[int], written: Callable[..., str]) -> None:
        """Make axes logarithmic, with ticks at steps of each decade."""
        self._log |= dict.fromkeys(which, (steps, written))

    def set_xticks(self, values: Sequence[float]) -> None:
        """Set the places of the numbers of the x axis."""
        self._ticks = [float(value) for value in values], []

    def set_xticklabels(self, labels: Sequence[str], **_how: Any) -> list[Text]:
        """Set what stands there instead of numbers."""
        assert self._ticks is not None
        self._ticks[1].extend(Text(words, (0, 0), {}) for words in labels)
        return self._ticks[1]

    def plot(self, x: Any, y: Any, marks: str = "", **how: Any) -> list[Line]:
        """Draw a line, marks, or both."""
        line = Line.of(x, y, marks, how.pop("transform", self.transData), how)
        self.lines.append(line)
        if line.transform is self.transData:
            self._see(line.x, line.y)
        elif line.transform is self._x_of_data:
            self._see(line.x, ())
        self._put(how.get("zorder", 2.0), line.draw, clipped=how.get("clip_on", True))
        return [line]

    def fill_between(self, x: Any, low: Any, high: Any = 0.0, **how: Any) -> None:
        """Fill the area between two lines."""
        x = np.asarray(x, np.float64)
        low, high = (np.broadcast_to(np.asarray(edge, np.float64), x.shape) for edge in (low, high))
        self._see(np.concatenate([x, x]), np.concatenate([low, high]))
        self._put(1.0, lambda pen, into: svg_marks.area(pen, into, x, low, high, self.transData, how))

    def bar(self, x: Any, height: Any, width: Any, **how: Any) -> None:
        """Draw bars that stand on zero, around their places."""
        left, right, top = (np.asarray(one, np.float64) for one in (x - width / 2, x + width / 2, height))
        self._see(np.concatenate([left, right]), np.append(top, 0.0))

        def draw(pen: Pen, into: Any) -> None:
            for ends in zip(left, right, top, strict=True):
                svg_marks.area(pen, into, np.array(ends[:2]), np.zeros(2), np.full(2, ends[2]), self.transData, how)

        self._put(1.0, draw)

    def axvspan(self, begin: float, end: float, **how: Any) -> None:
        """Shade a range of x over the whole height."""
        self._see((begin, end), ())
        x, foot, head = np.array([begin, end], np.float64), np.zeros(2), np.ones(2)
        self._put(1.0, lambda pen, into: svg_marks.area(pen, into, x, foot, head, self._x_of_data, how))

    def axhline(self, y: float, **how: Any) -> None:
        """Draw a line over the whole width."""
        self._see((), (y,))
        self.lines.append(line := Line.of([0, 1], [y, y], "", self._y_of_data, how))
        self._put(2.0, line.draw)

    def axvline(self, x: float, **how: Any) -> None:
        """Draw a line over the whole height."""
        self._see((x,), ())
        self.lines.append(line := Line.of([x, x], [0, 1], "", self._x_of_data, how))
        self._put(2.0, line.draw)

    def hlines(self, ys: Sequence[float], begins: Sequence[float], ends: Sequence[float], **how: Any) -> None:
        """Draw lines at heights."""
        for y, begin, end in zip(ys, begins, ends, strict=True):
            self._see((begin, end), (y,))
            self._put(2.0, Line.of([begin, end], [y, y], "", self.transData, how).draw)

    def annotate(self, words: str, xy: Any, xytext: Any = None, **how: Any) -> Text:
        """Write a text beside a point, or draw an arrow to it."""
        if "arrowprops" in how:
            ends = np.array([xytext, xy], np.float64)
            self._put(3.0, lambda pen, into: svg_marks.arrow(pen, into, ends, self.transData, how["arrowprops"]))
            return Text("", (0, 0), {})
        of = self._x_of_data if how.get("xycoords") == ("data", "axes fraction") else self.transData
        clip = Extent(self.box) if how.get("annotation_clip") or of is self.transData else None
        text = Text(words, xytext or (0.0, 0.0), how, lambda: of.transform(xy), clip.extents if clip else None)
        self.texts.append(text)
        return text

    def text(self, x: float, y: float, words: str, *, transform: Transform, **how: Any) -> Text:
        """Write a text at a point."""
        text = Text(words, (0.0, 0.0), how, lambda: transform.transform((x, y)))
        self.texts.append(text)
        return text

    def legend(self, **how: Any) -> "Legend":
        """Add a legend of all that has a label."""
        self._legend = Legend(self, [line for line in self.lines if line.label], how)
        return self._legend

    def _see(self, x: Any, y: Any) -> None:
        self._seen["x"].append(np.asarray(x, np.float64))
        self._seen["y"].append(np.asarray(y, np.float64))

    def _put(self, order: float, draw: Callable[[Pen, Any], None], *, clipped: bool = True) -> None:
        self._drawn.append((order, clipped, draw))

    def draw(self, pen: Pen, name: str) -> None:
        """Draw all of it."""
        if self._is_on:
            pen.box(self.box, fill=self._style["back"])
            self._draw_axis(pen)
        inside = pen.clipped(self.box, name) if self._drawn and self._is_on else pen.root
        for _, clipped, draw in sorted(self._drawn, key=lambda one: one[0]):
            draw(pen, inside if clipped else pen.root)
        if self._is_on:
            pen.box(self.box, fill="none", stroke=self.spines["frame"].color, width=0.8)
        for text in self.texts:
            text.draw(pen)
        if self._legend is not None:
            self._legend.draw(pen)

    def _draw_axis(self, pen: Pen) -> None:
        left, bottom, _, top = self.box
        size, color = self._style["size"], self._style["tick"]
        for name, scale in (("x", self._x()), ("y", self._y())):
            steps, written = self._log.get(name, ((1,), None))
            values = ticks(scale, steps)
            said = [written(value, None) for value in values] if written else tick_texts(values)
            if name == "x" and self._ticks is not None:
                values, said = self._ticks[0], [text.words for text in self._ticks[1]]
            for place, words in zip(scale.places(values), said, strict=True):
                if self._style["grid"]:
                    ends = ((place, bottom), (place, top)) if name == "x" else ((left, place), (self.box[2], place))
                    pen.path(pen.root, np.array(ends), **self._style["grid"])
                if name == "x" and self._has_x:
                    pen.text(pen.root, words, (place, bottom - 4 - size), size, ha="center", color=color)
                elif name == "y":
                    pen.text(pen.root, words, (left - 5, place - 0.36 * size), size, ha="right", color=color)
        middle = (left + self.box[2]) / 2, (bottom + top) / 2
        for name, at in (("x", (middle[0], bottom - 30)), ("y", (left - 48, middle[1])), ("title", (left, top + 7))):
            if (how := self._words.get(name)) is not None:
                turn, ha = (90 if name == "y" else 0), ("left" if name == "title" else "center")
                pen.text(pen.root, how["words"], at, how.get("fontsize", 10), ha=ha, color=how["color"], turn=turn)


class Legend:
    """The legend of axes."""

    def __init__(self, axes: Axes, lines: Sequence[Line], how: Mapping[str, Any]) -> None:
        """Take the lines with a label."""
        self._axes, self._lines, self._how = axes, lines, how
        self._texts = [Text(line.label, (0, 0), {}) for line in lines]

    def get_texts(self) -> list[Text]:
        """Return the texts."""
        return self._texts

    def draw(self, pen: Pen) -> None:
        """Draw it at its corner, or at the one with the fewest points."""
        if not self._lines:
            return
        size = self._how.get("fontsize", 10.0)
        width = size * (HANDLE + 3 * PAD) + max(text_width(text.words, size) for text in self._texts)
        height = size * (ENTRY * len(self._lines) + PAD)
        left, bottom = self._corner(width, height, PAD * size)
        if self._axes._is_on:
            colors = {"fill": self._how["facecolor"], "stroke": self._how["edgecolor"]}
            pen.box((left, bottom, left + width, bottom + height), width=0.8, opacity=0.8, **colors)
        for number, (line, text) in enumerate(zip(self._lines, self._texts, strict=True)):
            y = bottom + height - size * (PAD / 2 + ENTRY * (number + 0.5))
            begin = left + PAD * size
            line.sample(pen, begin, begin + HANDLE * size, y)
            at = begin + (HANDLE + PAD) * size, y - 0.36 * size
            pen.text(pen.root, text.words.strip("\u2009"), at, size, color=text.color)

    def _corner(self, width: float, height: float, pad: float) -> tuple[float, float]:
        left, bottom, right, top = self._axes.box
        if (anchor := self._how.get("bbox_to_anchor")) is not None:
            x, y = self._axes.transAxes.transform(anchor)
            return float(x) + pad, float(y) + pad
        across = {"left": left + pad, "right": right - width - pad}
        along = {"upper": top - height - pad, "lower": bottom + pad, "center": (bottom + top - height) / 2}
        places = {one: (across[one.split()[1]], along[one.split()[0]]) for one in CORNERS}
        if (loc := self._how.get("loc", "best")) in places:
            return places[loc]
        spots = np.vstack([np.zeros((0, 2)), *(line.places() for line in self._lines_drawn())])

        def covered(place: tuple[float, float]) -> int:
            inside = (spots >= np.array(place)) & (spots <= np.array(place) + np.array([width, height]))
            return int(inside.all(axis=1).sum())

        return min(places.values(), key=covered)

    def _lines_drawn(self) -> list[Line]:
        return [line for line in self._axes.lines if len(line.x)]


def draw(put: Callable[[Any], None], title: str, inches: tuple[float, float], back: str) -> bytes:
    """Return a figure that ``put`` draws, as SVG."""
    figure = Figure(inches, back)
    put(figure)
    return figure.svg(title)
