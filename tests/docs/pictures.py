"""The pictures of the documentation, drawn as SVG: rows of cells, and boxes with arrows."""

from collections.abc import Mapping, Sequence
from html import escape

from tests.layers import LAYERS

USEFUL, LOST, IDLE, INK, PAPER = "#2f6fde", "#e8833a", "#d9dee5", "#1f2328", "#ffffff"
COLOURS = {"u": USEFUL, "l": LOST, ".": IDLE}
CELL, GAP, TOP = 14, 3, 44
FONT = "font-family='system-ui, sans-serif'"


def text(x: float, y: float, words: str, size: int = 13, anchor: str = "start", weight: str = "normal") -> str:
    return (
        f"<text x='{x:g}' y='{y:g}' {FONT} font-size='{size}' font-weight='{weight}' text-anchor='{anchor}' "
        f"fill='{INK}'>{escape(words)}</text>"
    )


def svg(width: float, height: float, title: str, parts: Sequence[str]) -> str:
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width:g} {height:g}' width='{width:g}' "
        f"height='{height:g}' role='img'>\n<title>{escape(title)}</title>\n"
        f"<rect width='{width:g}' height='{height:g}' fill='{PAPER}'/>\n" + "\n".join(parts) + "\n</svg>\n"
    )


def cells(x: float, rows: Sequence[str]) -> list[str]:
    return [
        f"<rect x='{x + place * (CELL + GAP):g}' y='{TOP + line * (CELL + GAP):g}' width='{CELL}' height='{CELL}' "
        f"rx='2' fill='{COLOURS[kind]}'/>"
        for line, row in enumerate(rows)
        for place, kind in enumerate(row)
        if kind != " "
    ]


class Pair:
    """A criterion by two examples: rows of useful (u), lost (l) and idle (.) cells, and the value of each."""

    def __init__(self, axes: str, low: Sequence[str], value: float, good: Sequence[str]) -> None:
        self.axes, self.low, self.value, self.good = axes, low, value, good

    def draw(self, title: str) -> str:
        right = 340
        lines = max(len(self.low), len(self.good))
        height = TOP + lines * (CELL + GAP) + 28
        parts = [
            text(16, 30, f"value {self.value:g}", weight="bold"),
            text(right, 30, "value 1", weight="bold"),
            *cells(16, self.low),
            *cells(right, self.good),
            text(16, height - 10, self.axes, 12),
        ]
        return svg(620, height, title, parts)


CRITERIA: Mapping[str, Pair] = {
    "host_sync": Pair(
        "One device over time. Blue: a kernel runs. Orange: the device waits for the host.",
        ["uuullluuullluuu"], 0.6, ["uuuuuuuuu"],
    ),
    "device_sync": Pair(
        "Warps of a block over time. Orange: the warp waits at a barrier.",
        ["uuuuuuuu", "uuuullll", "uullllll", "uullllll"], 0.5, ["uuuu", "uuuu", "uuuu", "uuuu"],
    ),
    "divergence": Pair(
        "Lanes of a warp (left to right), instructions (downwards). Orange: the lane is inactive.",
        ["uuuullll", "uuuullll", "lllluuuu", "lllluuuu"], 0.5, ["uuuuuuuu", "uuuuuuuu"],
    ),
    "load_balance_warp": Pair(
        "Warp slots of an SM over time. Grey: the slot is empty, though the launch could fill it.",
        ["uuuuuuuu", "uuuuuuuu", "uu......", "uu......"], 0.63, ["uuuuu", "uuuuu", "uuuuu", "uuuuu"],
    ),
    "load_balance_sm": Pair(
        "SMs over time. Grey: the SM has no more work.",
        ["uuuuuuuu", "uuuu....", "uuuu....", "uuuu...."], 0.63, ["uuuuu", "uuuuu", "uuuuu", "uuuuu"],
    ),
    "l1_granularity": Pair(
        "Bytes that L1 moves for a request. Blue: requested by threads. Orange: fetched and not used.",
        ["ullluuuuulll", "ullluullulll"], 0.42, ["uuuuuuuu", "uu"],
    ),
    "l2_granularity": Pair(
        "Bytes that L2 moves. Blue: requested by threads. Orange: fetched and not used.",
        ["ullluuuuulll", "ullluullulll"], 0.42, ["uuuuuuuu", "uu"],
    ),
    "shared_efficiency": Pair(
        "Banks of shared memory (left to right), passes (downwards). Orange: a bank idles because of a conflict.",
        ["ulululul", "lulululu"], 0.5, ["uuuuuuuu"],
    ),
    "throughput_occupancy": Pair(
        "Across: share of warp slots that can be filled. Down: share of DRAM throughput. Orange: neither is used.",
        ["uuuuuuuu", "uuuuuuuu", "uuuullll", "uuuullll"], 0.75, ["uuuuuuuu", "uuuuuuuu", "uuuuuuuu", "uuuuuuuu"],
    ),
}  # fmt: skip


def layers() -> str:
    parts, height = [], 34
    for place, (names, about) in enumerate(LAYERS):
        y = 10 + place * (height + 6)
        parts += [
            f"<rect x='10' y='{y}' width='820' height='{height}' rx='5' fill='#eef3fb' stroke='{USEFUL}'/>",
            text(24, y + 22, " | ".join(names), weight="bold"),
            text(818, y + 22, about, 12, "end"),
        ]
    return svg(840, 10 + len(LAYERS) * (height + 6) + 4, "Layers of profsvc; imports point down only", parts)


PATH = ("bytes", "detect, read", "tidy tables", "store", "analysis", "result rows", "views", "CLI, HTTP, SQL")


def upload_path() -> str:
    parts, width = [], 96
    for place, words in enumerate(PATH):
        x = 10 + place * (width + 16)
        parts += [
            f"<rect x='{x}' y='14' width='{width}' height='34' rx='5' fill='#eef3fb' stroke='{USEFUL}'/>",
            text(x + width / 2, 36, words, 12, "middle"),
        ]
        if place:
            parts.append(f"<path d='M{x - 14} 31 h10 m-4 -4 l4 4 l-4 4' fill='none' stroke='{INK}'/>")
    return svg(10 + len(PATH) * (width + 16), 62, "An upload in a straight line", parts)


def roofline() -> str:
    """A roofline with a launch below its potential and its ceiling."""
    parts = [
        f"<path d='M60 20 V200 H460' fill='none' stroke='{INK}'/>",
        f"<path d='M60 190 L260 60 H450' fill='none' stroke='{USEFUL}' stroke-width='2.5'/>",
        text(350, 50, "peak arithmetic rate", 12),
        text(66, 100, "peak bandwidth", 12),
        f"<circle cx='180' cy='175' r='5' fill='{LOST}'/>",
        text(192, 180, "measured", 12),
        f"<circle cx='180' cy='130' r='5' fill='{USEFUL}'/>",
        text(192, 138, "potential: all waste removed", 12),
        f"<circle cx='180' cy='112' r='5' fill='none' stroke='{INK}'/>",
        text(192, 108, "ceiling: at peak rates", 12),
        text(260, 222, "operations per byte of DRAM", 12, "middle"),
        text(66, 16, "operations per second", 12),
    ]
    return svg(480, 232, "Roofline with measured launch, potential and ceiling", parts)


def pictures() -> dict[str, str]:
    """Return every picture by its file name."""
    drawn = {f"criterion-{name.replace('_', '-')}.svg": pair.draw(name) for name, pair in CRITERIA.items()}
    return drawn | {"architecture.svg": layers(), "upload.svg": upload_path(), "roofline.svg": roofline()}
