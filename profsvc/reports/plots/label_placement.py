"""Placement of labels at points of a plot without overlap: the nearest free position, with a leader line if it is far.

Positions are in pixels of the figure; boxes are (left, bottom, right, top).
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from profsvc.reports.plots.figure import Theme

Floats = npt.NDArray[np.float64]
Spot = tuple[float, float]
REACHES = (4.0, 10.0, 18.0, 28.0, 40.0, 56.0, 76.0, 100.0, 130.0)
"""Distances of a label from its point, in the order of trial."""
TURNS = (0, 8, 4, 12, 2, 14, 6, 10, 1, 15, 7, 9, 3, 13, 5, 11)
"""Directions in sixteenths of a turn: right, left, above, below, then between."""
LED = 14.0  # minimum distance for a leader line
MARK, EVERY, ROOM = 5.0, 5.0, 2.0  # half a mark, length of line pieces, margin around labels
OVER_LINE, OUTSIDE = 0.2, 4.0  # cost per pixel over a line, or outside, relative to one over a label


class Label(NamedTuple):
    """A label at a point in data coordinates."""

    x: float
    y: float
    words: str


def places(anchors: Floats, sizes: Floats, taken: Floats, lines: Floats, frame: Floats) -> Floats:
    """Return the box of each label: near its point, without overlap with others or ``taken``, inside the frame.

    ``anchors`` are (x, y), ``sizes`` (width, height); ``lines`` are boxes to avoid if possible.
    The nearest box without cost is chosen, otherwise the one with the lowest cost.

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
    """Yield boxes around a point, nearest first."""
    for reach, turn in itertools.product(REACHES, TURNS):
        angle = turn * math.pi / 8
        away = np.array([math.cos(angle), math.sin(angle)])
        low = anchor + away * (reach + size / 2) - size / 2
        yield np.concatenate([low, low + size])


def _overlap(box: Floats, others: Floats) -> float:
    """Return the area of overlap of a box with others."""
    if not len(others):
        return 0.0
    width = np.minimum(box[2], others[:, 2]) - np.maximum(box[0], others[:, 0])
    height = np.minimum(box[3], others[:, 3]) - np.maximum(box[1], others[:, 1])
    return float((width.clip(0) * height.clip(0)).sum())


def _outside(box: Floats, frame: Floats) -> float:
    inside = np.minimum(box[2:], frame[2:]) - np.maximum(box[:2], frame[:2])
    return float(np.prod(box[2:] - box[:2]) - np.prod(inside.clip(0)))


def put(
    axes: Any, labels: Sequence[Label], marks: Sequence[Spot], theme: Theme,
    arrows: Sequence[tuple[Spot, Spot]] = (), **how: Any,
) -> None:  # fmt: skip
    """Draw labels in axes with a final layout, clear of ``marks``, existing texts, lines and arrows."""
    if not labels:
        return
    texts = [axes.annotate(one.words, (one.x, one.y), (0, 0), textcoords="offset points", color=theme.ink,
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
    """Return lines and arrows of axes as small boxes."""
    pieces = [np.zeros((0, 2))]
    drawn = [one for one in axes.lines if one.get_linestyle() != "None" and len(one.get_xdata()) > 1]
    paths = [one.get_transform().transform(np.column_stack([one.get_xdata(), one.get_ydata()])) for one in drawn]
    for path in paths + [axes.transData.transform(arrow) for arrow in arrows]:
        for begin, end in itertools.pairwise(path):
            count = int(min(np.hypot(*(end - begin)) / EVERY, 2000)) + 2 if np.isfinite([begin, end]).all() else 0
            pieces.append(begin + (end - begin) * np.linspace(0, 1, count)[:, None])
    spots = np.vstack(pieces)
    return np.hstack([spots - 1, spots + 1])


def _move(axes: Any, text: Any, anchor: Floats, box: Floats, theme: Theme) -> None:
    """Move a label to its box, with a leader line if it is far from its point."""
    text.set_in_layout(False)
    middle = (box[:2] + box[2:]) / 2
    text.set_position(tuple((middle - anchor) * 72 / axes.figure.dpi))
    nearest = np.clip(anchor, box[:2], box[2:])
    if np.hypot(*(nearest - anchor)) > LED:
        ends = axes.transData.inverted().transform([anchor, nearest])
        axes.plot(ends[:, 0], ends[:, 1], color=theme.muted, linewidth=0.6, zorder=1.5)
