"""Texts at points of a plot, none over another: each at the nearest free place, a line leads to it where that is far.

All places are pixels of the figure; boxes are left, bottom, right and top.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Spot = tuple[float, float]
REACHES = (4.0, 10.0, 18.0, 28.0, 40.0, 56.0, 76.0, 100.0, 130.0)
"""How far a text may lie from its point, tried one after the other."""
TURNS = (0, 8, 4, 12, 2, 14, 6, 10, 1, 15, 7, 9, 3, 13, 5, 11)
"""Sixteenths of a turn in which it may lie: right, left, above, below, then between."""
LED = 14.0  # a text further away is led to by a line
MARK, EVERY, ROOM = 5.0, 5.0, 2.0  # half a mark, a piece of a line, and what texts keep free around them
OVER_LINE, OUTSIDE = 0.2, 4.0  # what a pixel over a line, or outside, costs of one over a text


class Label(NamedTuple):
    """A text at a point, in the figures of the axes."""

    x: float
    y: float
    words: str


def places(anchors: Floats, sizes: Floats, taken: Floats, lines: Floats, frame: Floats) -> Floats:
    """Return the box of each text: as near to its point as it lies over no other, over nothing ``taken``, and inside.

    ``anchors`` are (x, y), ``sizes`` (width, height); ``lines`` are boxes that texts had better not lie on.
    The nearest box that costs nothing is taken; where there is none, the one that costs least.

    >>> places(np.array([[50.0, 50.0]] * 2), np.array([[20.0, 10.0]] * 2), np.zeros((0, 4)), np.zeros((0, 4)),
    ...        np.array([0.0, 0.0, 100.0, 100.0])).tolist()
    [[54.0, 45.0, 74.0, 55.0], [26.0, 45.0, 46.0, 55.0]]
    """
    found: list[Floats] = []
    for anchor, size in zip(anchors, sizes, strict=True):
        others = np.vstack([taken, *[box[None, :] for box in found]]) if found else taken
        best, least = None, math.inf
        for box in _candidates(anchor, size):
            wide = box + np.array([-ROOM, -ROOM, ROOM, ROOM])
            cost = _overlap(wide, others) + OVER_LINE * _overlap(box, lines) + OUTSIDE * _outside(box, frame)
            if cost < least - 1e-9:
                best, least = box, cost
            if cost == 0:
                break
        found.append(np.zeros(4) if best is None else best)
    return np.array(found).reshape(-1, 4)


def _candidates(anchor: Floats, size: Floats) -> Any:
    """Yield boxes around a point, the nearest first."""
    for reach, turn in itertools.product(REACHES, TURNS):
        angle = turn * math.pi / 8
        away = np.array([math.cos(angle), math.sin(angle)])
        low = anchor + away * (reach + size / 2) - size / 2
        yield np.concatenate([low, low + size])


def _overlap(box: Floats, others: Floats) -> float:
    """Area that a box has in common with others."""
    if not len(others):
        return 0.0
    width = np.minimum(box[2], others[:, 2]) - np.maximum(box[0], others[:, 0])
    height = np.minimum(box[3], others[:, 3]) - np.maximum(box[1], others[:, 1])
    return float((width.clip(0) * height.clip(0)).sum())


def _outside(box: Floats, frame: Floats) -> float:
    inside = np.minimum(box[2:], frame[2:]) - np.maximum(box[:2], frame[:2])
    return float(np.prod(box[2:] - box[:2]) - np.prod(inside.clip(0)))


def put(
    axes: Any, labels: Sequence[Label], marks: Sequence[Spot], theme: Mapping[str, Any],
    arrows: Sequence[tuple[Spot, Spot]] = (), **how: Any,
) -> None:  # fmt: skip
    """Write texts into axes that are laid out already, clear of ``marks``, of the texts there, its lines and arrows."""
    if not labels:
        return
    texts = [axes.annotate(one.words, (one.x, one.y), (0, 0), textcoords="offset points", color=theme["ink"],
                           ha="center", va="center", parse_math=False, **how) for one in labels]  # fmt: skip
    anchors = axes.transData.transform([(one.x, one.y) for one in labels])
    sizes = np.array([text.get_window_extent().size for text in texts])
    known = [one.get_window_extent().extents for one in axes.texts if one not in texts and one.get_text()]
    spots = axes.transData.transform(marks) if len(marks) else np.zeros((0, 2))
    taken = np.vstack([np.hstack([spots - MARK, spots + MARK]), *[np.asarray(box)[None, :] for box in known]])
    boxes = places(anchors, sizes, taken, _lines(axes, arrows), np.asarray(axes.get_window_extent().extents))
    for text, anchor, box in zip(texts, anchors, boxes, strict=True):
        _move(axes, text, anchor, box, theme)


def _lines(axes: Any, arrows: Sequence[tuple[Spot, Spot]]) -> Floats:
    """Return the lines of axes, and arrows in them, as small boxes along them."""
    pieces = [np.zeros((0, 2))]
    drawn = [one for one in axes.lines if one.get_linestyle() != "None" and len(one.get_xdata()) > 1]
    paths = [one.get_transform().transform(np.column_stack([one.get_xdata(), one.get_ydata()])) for one in drawn]
    for path in paths + [axes.transData.transform(arrow) for arrow in arrows]:
        for begin, end in itertools.pairwise(path):
            count = int(min(np.hypot(*(end - begin)) / EVERY, 2000)) + 2 if np.isfinite([begin, end]).all() else 0
            pieces.append(begin + (end - begin) * np.linspace(0, 1, count)[:, None])
    spots = np.vstack(pieces)
    return np.hstack([spots - 1, spots + 1])


def _move(axes: Any, text: Any, anchor: Floats, box: Floats, theme: Mapping[str, Any]) -> None:
    """Move a text to its box, and lead a line to it from its point where that is far."""
    text.set_in_layout(False)
    middle = (box[:2] + box[2:]) / 2
    text.set_position(tuple((middle - anchor) * 72 / axes.figure.dpi))
    nearest = np.clip(anchor, box[:2], box[2:])
    if np.hypot(*(nearest - anchor)) > LED:
        ends = axes.transData.inverted().transform([anchor, nearest])
        axes.plot(ends[:, 0], ends[:, 1], color=theme["soft"], linewidth=0.6, zorder=1.5)
