"""The timeline of a run as SVG: the busy share of each lane over time, and its sensors."""

from collections.abc import Mapping
from typing import Any
from xml.sax.saxutils import escape

import numpy as np

from profsvc.reports.history_labels import scale_of
from profsvc.reports.plots.figure import LIGHT, shown

LABELS, WIDTH, ROW, TALL, FOOT = 260, 1000, 24, 70, 30
MAX_LABEL_CHARS = 36


def draw(view: Mapping[str, Any]) -> bytes:
    """Return the SVG of a view of `profsvc.views.traces.timeline.timeline`."""
    rows = [(_label(lane), _lane_path(lane, view), ROW, LIGHT.lines[k % 5]) for k, lane in enumerate(view["lanes"])]
    rows += [(_sensor_label(one), _sensor_path(one, view), TALL, LIGHT.hot[one["quantity"] != "temperature"])
             for one in view["sensors"]]  # fmt: skip
    parts, top = [], 0
    for label, path, height, colour in rows:
        parts.append(
            f'<text x="0" y="{top + height - 7}" fill="{LIGHT.ink}">{escape(shown(label, MAX_LABEL_CHARS))}</text>'
            f'<path transform="translate({LABELS},{top})" d="{path}" fill="{colour}" fill-rule="evenodd"/>'
            f'<path d="M{LABELS} {top + height - 1}h{WIDTH}" stroke="{LIGHT.line}"/>'
        )
        top += height
    unit, size = scale_of("ns", [view["to_ns"]])
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        time = view["from_ns"] + share * (view["to_ns"] - view["from_ns"])
        anchor = "end" if share == 1 else "start" if share == 0 else "middle"
        parts.append(f'<text x="{LABELS + share * WIDTH:g}" y="{top + 20}" fill="{LIGHT.muted}" text-anchor="{anchor}">'
                     f"{time / size:.4g} {unit}</text>")  # fmt: skip
    box = f'viewBox="0 0 {LABELS + WIDTH} {top + FOOT}"'
    body = "".join(parts)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" {box} font-family="sans-serif" font-size="13">'
            f'<rect width="100%" height="100%" fill="{LIGHT.back}"/>{body}</svg>').encode()  # fmt: skip


def _label(lane: Mapping[str, Any]) -> str:
    return f"{lane['group']} {lane['title']}"


def _sensor_label(one: Mapping[str, Any]) -> str:
    return f"{one['name']} ({one['unit']})"


def _lane_path(lane: Mapping[str, Any], view: Mapping[str, Any]) -> str:
    """Return a box per item, as high as the share of its time that is busy."""
    begin, length = view["from_ns"], view["to_ns"] - view["from_ns"]
    boxes = []
    for start, end, busy in zip(lane["start_ns"], lane["end_ns"], lane["busy_ns"], strict=True):
        left, right = (WIDTH * min(1.0, max(0.0, (time - begin) / length)) for time in (start, end))
        high = (ROW - 6) * (min(1.0, busy / (end - start)) if end > start else 1.0)
        boxes.append(f"M{left:.1f} {ROW - 3}v{-max(high, 1.0):.1f}h{max(right - left, 0.3):.1f}V{ROW - 3}z")
    return "".join(boxes)


def _sensor_path(one: Mapping[str, Any], view: Mapping[str, Any]) -> str:
    """Return the area under the readings, from the least one."""
    time, value = np.array(one["time_ns"], np.float64), np.array(one["value"], np.float64)
    x = np.clip((time - view["from_ns"]) / (view["to_ns"] - view["from_ns"]), 0, 1) * WIDTH
    low, high = value.min(), value.max()
    y = TALL - 4 - (TALL - 10) * ((value - low) / (high - low) if high > low else np.full_like(value, 0.5))
    return f"M{x[0]:.1f} {TALL - 3}" + _line(x, y) + f"L{x[-1]:.1f} {TALL - 3}z"


def _line(x: Any, y: Any) -> str:
    return "".join(f"L{a:.1f} {b:.1f}" for a, b in zip(x, y, strict=True))
