"""Plots of power and temperature over time, of power against active SMs, and of work per joule."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from profsvc.errors import counted
from profsvc.reports.plots import figure as figures
from profsvc.reports.plots.figure import DARK, LIGHT, Theme, shown

Floats = npt.NDArray[np.float64]
WIDE, SQUARE = (10.0, 6.4), (7.6, 5.2)
# Intervals of which the minimum and maximum are drawn: more than a plot has pixel columns.
STRETCHES = 2_000
GAP = 10.0  # longest gap that a line spans, in median intervals
MAX_LANES, LANE_INCHES = 8, 0.22
MIN_LABEL_SHARE = 0.045  # of the width: narrower windows get no label
MAX_LABEL_CHARS, LETTERS = 32, 110


class Track(NamedTuple):
    """Readings over time; NaN where there is none."""

    label: str
    time_s: Floats
    value: Floats


class Band(NamedTuple):
    """A window of time: a kernel, a load or idle time."""

    label: str
    begin_s: float
    end_s: float
    idle: bool = False


class Sweep(NamedTuple):
    """A load on several numbers of SMs, and the law through it with the 95 % prediction interval."""

    label: str
    sms: Floats
    power_w: Floats
    law: str
    curve_sms: Floats
    curve_w: Floats
    low_w: Floats
    high_w: Floats


class Efficiency(NamedTuple):
    """Work per joule on several numbers of SMs; the best, and the range not significantly different from it."""

    label: str
    sms: Floats
    per_joule: Floats
    best: float
    low: float
    high: float


def thinned(time_s: Floats, value: Floats, stretches: int = STRETCHES) -> tuple[Floats, Floats]:
    """Return the minimum and maximum reading of each interval in order, so that no spike is lost.

    NaN marks missing readings and long gaps, where no line is drawn.

    >>> time = np.arange(1000.0)
    >>> t, v = thinned(time, np.where(time == 617, 9.0, 0.0), 10)
    >>> len(t), v.max().item(), t[v.argmax()].item()
    (12, 9.0, 617.0)
    """
    order = np.argsort(time_s, kind="stable")
    t, v = time_s[order], value[order]
    steps = np.diff(t, prepend=t[:1])
    usual = np.median(steps[1:]) if len(t) > 1 else 0.0
    breaks = np.cumsum(steps > GAP * usual) if usual > 0 else np.zeros(len(t), np.intp)
    if len(t) > 2 * stretches:
        edges = np.searchsorted(t, np.linspace(t[0], t[-1], stretches + 1)[1:-1])
        parts = [part for part in np.split(np.arange(len(t)), edges) if part.size]
        kept = np.unique(np.concatenate([_extremes(part, v[part]) for part in parts] + [[0, len(t) - 1]]))
        t, v, breaks = t[kept], v[kept], breaks[kept]
    apart = np.flatnonzero(np.diff(breaks))
    return np.insert(t, apart + 1, (t[apart] + t[apart + 1]) / 2), np.insert(v, apart + 1, np.nan)


def _extremes(part: npt.NDArray[np.intp], value: Floats) -> npt.NDArray[np.intp]:
    """Return the indices of the minimum, the maximum and the first missing value."""
    missing = np.isnan(value)
    found = [part[missing][:1]]
    if not missing.all():
        found.append(part[[np.nanargmin(value), np.nanargmax(value)]])
    return np.concatenate(found)


def lanes(bands: Sequence[Band]) -> list[int]:
    """Return the lane of each band so that bands do not overlap; if no lane is free, the last one.

    >>> lanes([Band("a", 0, 5), Band("b", 1, 2), Band("c", 3, 4), Band("d", 5, 6)])
    [0, 1, 1, 0]
    """
    until: list[float] = []
    chosen = [0] * len(bands)
    for place in sorted(range(len(bands)), key=lambda n: (bands[n].begin_s, -bands[n].end_s)):
        band = bands[place]
        free = next((lane for lane, end in enumerate(until) if end <= band.begin_s), None)
        if free is None and len(until) < MAX_LANES:
            until.append(band.end_s)
            free = len(until) - 1
        chosen[place] = MAX_LANES - 1 if free is None else free
        until[chosen[place]] = max(until[chosen[place]], band.end_s)
    return chosen


def over_time(
    power: Sequence[Track],
    temperature: Sequence[Track],
    bands: Sequence[Band],
    title: str,
    since: str,
    form: str = "svg",
    *,
    dark: bool = False,
) -> bytes:
    """Return a plot of power, temperature and windows on a common time axis.

    The first power track is as measured; others, such as the corrected one, are drawn over it. ``since`` is the origin
    of time.
    """
    theme = DARK if dark else LIGHT

    def draw(figure: Any) -> None:
        tall = LANE_INCHES * (1 + max(lanes(bands), default=0)) + 0.1
        heights = [3.0, *([1.8] if temperature else []), *([tall] if bands else [])]
        axes = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
        rows = iter(axes)
        _tracks(next(rows), power, "power (W)", theme.lines, theme)
        if temperature:
            _tracks(next(rows), temperature, "temperature (\u00b0C)", theme.hot, theme)
        if bands:
            _bands(next(rows), bands, theme)
        axes[0].set_title(shown(title), color=theme.ink, fontsize=11, loc="left", parse_math=False)
        axes[-1].set_xlabel(f"time since {shown(since)} (s)", color=theme.ink, fontsize=9, parse_math=False)

    return figures.picture(draw, title, form, WIDE, theme.back)


def _tracks(axes: Any, tracks: Sequence[Track], label: str, colours: Sequence[str], theme: Theme) -> None:
    figures.plain(axes, theme, label)
    for number, track in enumerate(tracks):
        t, v = thinned(track.time_s, track.value)
        colour = colours[number % len(colours)]
        axes.plot(t, v, color=colour, linewidth=0.9, marker="." if len(t) < 50 else None, markersize=3)
        # matplotlib skips labels that start with an underscore, so the legend gets its own lines.
        axes.plot([], [], color=colour, label=f"\u2009{shown(track.label, MAX_LABEL_CHARS)}")
    if tracks:
        figures.legend(axes, theme)


def _bands(axes: Any, bands: Sequence[Band], theme: Theme) -> None:
    chosen = lanes(bands)
    figures.plain(axes, theme, "windows")
    axes.grid(visible=False)
    axes.set_yticks([])
    axes.set_ylim(max(chosen) + 0.5, -0.5)
    for idle, colour in ((True, theme.idle), (False, theme.busy)):
        own = [(band, lane) for band, lane in zip(bands, chosen, strict=True) if band.idle is idle]
        for lane in sorted({lane for _, lane in own}):
            spans = [(band.begin_s, band.end_s - band.begin_s) for band, at in own if at == lane]
            axes.broken_barh(spans, (lane - 0.42, 0.84), facecolor=colour, edgecolor=theme.back, linewidth=0.4)
    low, high = axes.get_xlim()
    for band, lane in zip(bands, chosen, strict=True):
        share = (band.end_s - band.begin_s) / (high - low)
        if share >= MIN_LABEL_SHARE:
            words = shown(band.label, max(3, int(share * LETTERS)))
            axes.text((band.begin_s + band.end_s) / 2, lane, words, ha="center", va="center", fontsize=7,
                      color=theme.ink, parse_math=False, clip_on=True)  # fmt: skip


def against_sms(sweeps: Sequence[Sweep], title: str, form: str = "svg", *, dark: bool = False) -> bytes:
    """Return a plot of the power of each load against active SMs, with the fitted law and its interval."""
    theme = DARK if dark else LIGHT

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        figures.plain(axes, theme, "power (W)")
        for number, sweep in enumerate(sweeps):
            colour = theme.lines[number % len(theme.lines)]
            axes.plot(sweep.sms, sweep.power_w, "o", color=colour, markersize=5)
            axes.plot(sweep.curve_sms, sweep.curve_w, color=colour, linewidth=1.3)
            axes.fill_between(sweep.curve_sms, sweep.low_w, sweep.high_w, color=colour, alpha=0.18, linewidth=0)
            name = f"\u2009{shown(sweep.label, MAX_LABEL_CHARS)}: {shown(sweep.law, MAX_LABEL_CHARS)} law"
            axes.plot([], [], "o-", color=colour, label=f"{name}, 95 % prediction interval")
        figures.legend(axes, theme)
        axes.set_xlim(left=0)
        axes.set_xlabel("active SMs", color=theme.ink, fontsize=9)
        axes.set_title(shown(title), color=theme.ink, fontsize=11, loc="left", parse_math=False)

    return figures.picture(draw, title, form, SQUARE, theme.back)


def performance_per_watt(curves: Sequence[Efficiency], title: str, form: str = "svg", *, dark: bool = False) -> bytes:
    """Return a plot of work per joule against active SMs, relative to the best; its confidence range is shaded.

    Values are relative because loads count work in different units.
    """
    theme = DARK if dark else LIGHT

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        figures.plain(axes, theme, "work per joule (% of best)")
        for number, curve in enumerate(curves):
            colour = theme.lines[number % len(theme.lines)]
            order = np.argsort(curve.sms)
            known = curve.per_joule[np.isfinite(curve.per_joule)]
            share = 100 * curve.per_joule / (known.max() if known.size else np.nan)
            axes.plot(curve.sms[order], share[order], "o-", color=colour, markersize=5, linewidth=1.3)
            if np.isfinite([curve.low, curve.high]).all():
                axes.axvspan(curve.low, curve.high, color=colour, alpha=0.12, linewidth=0)
            name = f"\u2009{shown(curve.label, MAX_LABEL_CHARS)}: best on {counted(format(curve.best, 'g'), 'SM')}"
            within = (
                "" if not curve.low < curve.high else f" ({curve.low:g} to {curve.high:g} not significantly different)"
            )
            axes.plot([], [], "o-", color=colour, label=name + within)
        figures.legend(axes, theme)
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("active SMs", color=theme.ink, fontsize=9)
        axes.set_title(shown(title), color=theme.ink, fontsize=11, loc="left", parse_math=False)

    return figures.picture(draw, title, form, SQUARE, theme.back)
