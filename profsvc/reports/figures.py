"""Pictures by matplotlib as SVG or PNG: light or dark, the same bytes for the same data, and no text that acts."""

import io
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from profsvc.errors import UsageError
from profsvc.reports.rows import visible

FORMS = ("svg", "png")
DPI = 150
LONGEST_TITLE = 72
HASH = "profsvc"  # ids of SVG elements depend on it: the same data give the same bytes
LIGHT: Mapping[str, str] = {"ink": "#1b1f24", "soft": "#57606a", "line": "#d0d7de", "back": "#ffffff"}
DARK: Mapping[str, str] = {"ink": "#e6edf3", "soft": "#9198a1", "line": "#3d444d", "back": "#0d1117"}
# matplotlib keeps its settings and the filters of warnings for all threads together.
_LOCK = threading.Lock()


def shown(text: str, longest: int = LONGEST_TITLE) -> str:
    """Return a text of limited length without characters that act.

    >>> shown("saxpy" * 9, 8)
    'saxpysa\u2026'
    """
    text = visible(text)
    return text if len(text) <= longest else text[: longest - 1] + "\u2026"


def plain(axes: Any, theme: Mapping[str, Any], label: str) -> None:
    """Give axes the colours of a theme, a grid, and the label of their y."""
    axes.set_facecolor(theme["back"])
    axes.set_ylabel(label, color=theme["ink"], fontsize=9)
    axes.tick_params(colors=theme["soft"], labelsize=8)
    axes.grid(visible=True, color=theme["line"], linewidth=0.5)
    axes.set_axisbelow(True)
    for side in axes.spines.values():
        side.set_color(theme["line"])


def legend(axes: Any, theme: Mapping[str, Any], **options: Any) -> None:
    """Put the legend on axes; its texts are shown as they are."""
    places = {"loc": "best", "facecolor": theme["back"], "edgecolor": theme["line"], "fontsize": 8} | options
    for words in axes.legend(**places).get_texts():
        words.set_parse_math(False)
        words.set_color(theme["ink"])


def logarithmic(
    axes: Any, which: str, steps: Sequence[int] = (1, 2, 5), written: Callable[..., str] | None = None
) -> None:
    """Make axes logarithmic, with plain numbers, or as they are ``written``."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    axes.tick_params(which="minor", length=0)
    for name in which:
        getattr(axes, f"set_{name}scale")("log")
        axis = getattr(axes, f"{name}axis")
        axis.set_major_locator(LogLocator(10, subs=steps))
        axis.set_major_formatter(FuncFormatter(written or (lambda value, _: f"{value:g}")))
        axis.set_minor_formatter(FuncFormatter(lambda *_: ""))


def form_of(form: str) -> str:
    """Return ``form`` if a picture can be drawn in it; raise `UsageError` otherwise."""
    if form not in FORMS:
        raise UsageError(f"a picture cannot be drawn as {form!r}; choose one of {', '.join(FORMS)}")
    return form


def picture(draw: Callable[[Any], None], title: str, form: str, inches: tuple[float, float], back: str) -> bytes:
    """Return what ``draw`` puts on a figure as SVG or PNG.

    The same figure gives the same bytes with the same version of matplotlib, whatever the user has set for it.
    """
    form_of(form)
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
    """Lay the axes out once; the last digits of the solver differ from call to call."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes in figure.axes:
        axes.set_position([round(edge, 4) for edge in axes.get_position(original=True).bounds], which="original")
        axes.set_position([round(edge, 4) for edge in axes.get_position().bounds], which="active")
