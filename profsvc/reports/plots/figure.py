"""Figures as SVG or PNG: light or dark, reproducible, with escaped texts; by matplotlib unless they are plain SVG."""

import io
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from profsvc.errors import UsageError
from profsvc.reports.plots import svg_figure
from profsvc.reports.rows import visible

FORMS = ("svg", "png")
DPI = 150
MAX_TITLE_CHARS = 72
HASH = "profsvc"  # ids of SVG elements depend on it: the same data give the same bytes


class Theme(NamedTuple):
    """The colours of figures and of the pages that they stand in."""

    ink: str
    """Text and axes of emphasis."""
    muted: str
    """Secondary text, ticks and guide lines."""
    line: str
    """Grids, frames and shaded ranges."""
    back: str
    lines: tuple[str, ...]
    """Series, in their order."""
    hot: tuple[str, ...]
    """Temperatures; the first also marks regressions."""
    idle: str
    """Windows without load."""
    busy: str
    """Windows with load."""
    map: str
    """Colour map of temperatures, by the name that matplotlib has for it."""
    difference: str
    """Colour map of differences of temperatures."""


LIGHT = Theme(
    ink="#1b1f24",
    muted="#57606a",
    line="#d0d7de",
    back="#ffffff",
    lines=("#0969da", "#bc4c00", "#1a7f37", "#8250df", "#bf3989", "#57606a"),
    hot=("#cf222e", "#9a6700", "#57606a"),
    idle="#d0d7de",
    busy="#a5c9f3",
    map="inferno",
    difference="RdBu_r",
)
DARK = Theme(
    ink="#e6edf3",
    muted="#9198a1",
    line="#3d444d",
    back="#0d1117",
    lines=("#4493f8", "#f0883e", "#3fb950", "#ab7df8", "#db61a2", "#9198a1"),
    hot=("#f85149", "#d29922", "#9198a1"),
    idle="#3d444d",
    busy="#1f4f8f",
    map="plasma",
    difference="berlin",
)
# Settings of matplotlib and filters of warnings are shared by all threads.
_LOCK = threading.Lock()


def shown(text: str, longest: int = MAX_TITLE_CHARS) -> str:
    """Return a text of limited length with escaped control characters.

    >>> shown("saxpy" * 9, 8)
    'saxpysa\u2026'
    """
    text = visible(text)
    return text if len(text) <= longest else text[: longest - 1] + "\u2026"


def plain(axes: Any, theme: Theme, label: str) -> None:
    """Apply the colours of a theme, a grid and a y label to axes."""
    axes.set_facecolor(theme.back)
    axes.set_ylabel(label, color=theme.ink, fontsize=9)
    axes.tick_params(colors=theme.muted, labelsize=8)
    axes.grid(visible=True, color=theme.line, linewidth=0.5)
    axes.set_axisbelow(True)
    for side in axes.spines.values():
        side.set_color(theme.line)


def legend(axes: Any, theme: Theme, **options: Any) -> None:
    """Add a legend to axes, with its texts unparsed."""
    places = {"loc": "best", "facecolor": theme.back, "edgecolor": theme.line, "fontsize": 8} | options
    for words in axes.legend(**places).get_texts():
        words.set_parse_math(False)
        words.set_color(theme.ink)


def logarithmic(
    axes: Any, which: str, steps: Sequence[int] = (1, 2, 5), written: Callable[..., str] | None = None
) -> None:
    """Make axes logarithmic, with plain numbers or those of ``written``."""
    if isinstance(axes, svg_figure.Axes):
        axes.set_logarithmic(which, steps, written or (lambda value, _: f"{value:g}"))
        return
    from matplotlib.ticker import FuncFormatter, LogLocator

    axes.tick_params(which="minor", length=0)
    for name in which:
        getattr(axes, f"set_{name}scale")("log")
        axis = getattr(axes, f"{name}axis")
        axis.set_major_locator(LogLocator(10, subs=steps))
        axis.set_major_formatter(FuncFormatter(written or (lambda value, _: f"{value:g}")))
        axis.set_minor_formatter(FuncFormatter(lambda *_: ""))


def form_of(form: str) -> str:
    """Return ``form`` if it is an image format; raise `UsageError` otherwise."""
    if form not in FORMS:
        raise UsageError(f"unknown image format {form!r}; choose one of {', '.join(FORMS)}")
    return form


def picture(
    draw: Callable[[Any], None],
    title: str,
    form: str,
    inches: tuple[float, float],
    back: str,
    *,
    is_plain: bool = False,
) -> bytes:
    """Return the figure of ``draw`` as SVG or PNG.

    The same figure gives the same bytes with the same version of matplotlib, independent of user settings. One that
    ``is_plain`` needs no matplotlib as SVG, since it uses no more than `svg_figure` has.
    """
    if form_of(form) == "svg" and is_plain:
        return svg_figure.draw(draw, shown(title), inches, back)
    import matplotlib
    from matplotlib.figure import Figure

    target = io.BytesIO()
    with _LOCK, matplotlib.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font", category=UserWarning)
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": HASH})
        figure = Figure(figsize=inches, facecolor=back, layout="constrained")
        draw(figure)
        _settle(figure)
        words = {"Title": shown(title), "Date": None, "Creator": None}
        figure.savefig(target, format=form, dpi=DPI, metadata=words if form == "svg" else {"Software": None})
    return target.getvalue()


def _settle(figure: Any) -> None:
    """Compute the layout once and round it, because the last digits of the solver vary.

    Nothing is drawn for that. Without a layout matplotlib draws a figure once when it is saved, and else twice.
    """
    figure.get_layout_engine().execute(figure)
    figure.set_layout_engine(None)
    for axes in figure.axes:
        axes.set_position([round(edge, 4) for edge in axes.get_position(original=True).bounds], which="original")
        axes.set_position([round(edge, 4) for edge in axes.get_position().bounds], which="active")
