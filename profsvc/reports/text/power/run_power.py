"""The power of a run as text for a terminal, and as an HTML file with plots."""

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import Any

from profsvc.errors import counted
from profsvc.reports.html_style import STYLE
from profsvc.reports.rows import render, visible
from profsvc.reports.text.cells import middle, several
from profsvc.reports.text.models.values import MAX_SHOWN, interval, models
from profsvc.reports.text.power.heat_map import HEAT, lines_of

Row = Mapping[str, Any]
HEADS = ("window", "s", "W", "W settled", "\u00b0C", "W corrected", "J", "J corrected", "warnings")
COMPONENTS = "components"
PARTS = ("windows", "coefficients", "models", "quality")


def power(view: Row, width: int | None = None) -> str:
    """Return the power of a run as text: windows, corrections, models and warnings by sensor."""
    info = view["run"]
    lines = [f"power of run {info['name']} (id {info['run_id']}) of project {info['project']}"]
    if not view["stored"]:
        lines.append("  computed for this call only; stored results are unchanged")
    heat = [row for row in view["models"] if row["model"] in HEAT]
    units = [row for row in view["models"] if row["model"] == COMPONENTS]
    view = {**view, "models": [row for row in view["models"] if row["model"] not in (*HEAT, COMPONENTS)]}
    twins = alike(view["windows"])
    ids = dict.fromkeys(row["sensor_id"] for key in PARTS for row in view[key])
    for sensor_id in ids:
        own = {key: [row for row in view[key] if row["sensor_id"] == sensor_id] for key in PARTS}
        if not own["windows"] or sensor_id in twins:
            lines += ["", *_sensor(own, width)]
            lines += [f"  {_name(view, twin)} has identical readings" for twin in twins.get(sensor_id, [])[1:]]
    lines += ["", *lines_of(heat, width)] if heat else []
    if units:
        kernels = len({row["window"] for row in units})
        lines += ["", f"power of each unit for {counted(kernels, 'kernel')}: profsvc power id:{info['run_id']} --ipp"]
    return "\n".join(visible(line) for line in lines) + "\n"


def alike(windows: Sequence[Row]) -> dict[Any, list[Any]]:
    """Return sensors by number, each with the sensors that have identical readings in every window.

    A driver may report one reading under two names, as ``power.draw`` and ``power.draw.average``.
    """
    read: dict[Any, list[Any]] = {}
    for row in windows:
        what = (row["gpu_index"], row["device"], row["window"], row["mean_power_w"], row["energy_j"])
        read.setdefault(row["sensor_id"], []).append(what)
    found: dict[Any, list[Any]] = {}
    first: dict[Any, Any] = {}
    for sensor_id, values in read.items():
        is_known = all(power is not None for *_, power, _ in values)
        found.setdefault(first.setdefault(tuple(values), sensor_id) if is_known else sensor_id, []).append(sensor_id)
    return found


def own_flags(window: Row, quality: Sequence[Row]) -> list[str]:
    """Return the flags of this window, without those of the whole sensor."""
    about = [row for row in quality if row["sensor_id"] == window["sensor_id"] and row["window"] == window["window"]]
    return list(dict.fromkeys(str(row["flag"]) for row in about))


def _sensor(own: Mapping[str, Sequence[Row]], width: int | None) -> Iterable[str]:
    first = next(row for rows in own.values() for row in rows)
    yield _name(own, first["sensor_id"])
    if own["windows"]:
        rows = [_window(row, own_flags(row, own["quality"])) for row in own["windows"]]
        yield from str(render(HEADS, rows, "table", width=width)).splitlines()
        yield from _corrections(own["windows"])
    for part in (_coefficients(own["coefficients"]), models(own["models"]), _quality(own["quality"])):
        yield from part


def _name(own: Mapping[str, Sequence[Row]], sensor_id: Any) -> str:
    first = next(row for key in PARTS for row in own[key] if row["sensor_id"] == sensor_id)
    gpu = "" if first["gpu_index"] is None else f" of GPU {first['gpu_index']}"
    device = f" ({first['device']})" if first["device"] else ""
    return f"{first['sensor'] or 'the whole run'}{gpu}{device}"


def _window(row: Row, flags: Sequence[str]) -> dict[str, Any]:
    cells = (
        middle(str(row["window"]), 32),
        row["duration_s"],
        row["mean_power_w"],
        row["settled_power_w"],
        row["mean_temperature_c"],
        interval(row, "corrected_power_w", "corrected_power_low_w", "corrected_power_high_w"),
        row["energy_j"],
        interval(row, "corrected_energy_j", "corrected_energy_low_j", "corrected_energy_high_j"),
        "; ".join(flags),
    )
    return dict(zip(HEADS, cells, strict=True))


def _corrections(windows: Sequence[Row]) -> Iterable[str]:
    """Yield the coefficients of the correction, and why windows are not corrected."""
    used = dict.fromkeys(
        f"corrected to {row['reference_temperature_c']:.4g} \u00b0C with "
        f"{interval(row, 'coefficient_w_per_c', 'coefficient_low', 'coefficient_high')} W/\u00b0C"
        for row in windows
        if row["corrected_power_w"] is not None and row["coefficient_w_per_c"] is not None
    )
    yield from (f"  {words}; 95 % confidence intervals" for words in used)
    reasons: dict[str, list[str]] = {}
    for row in windows:
        if row["corrected_power_w"] is None:
            reasons.setdefault(row["reason"] or "no reason stored", []).append(str(row["window"]))
    for reason, labels in reasons.items():
        yield f"  not corrected ({_some(labels, len(windows))}): {reason}"


def _some(labels: Sequence[str], of: int) -> str:
    if len(labels) == of:
        return "all windows" if of > 1 else labels[0]
    return several(labels, MAX_SHOWN)


def _coefficients(rows: Sequence[Row]) -> Iterable[str]:
    if rows:
        yield "  temperature coefficients"
    for row in rows:
        value = interval(row, "coefficient_w_per_c", "coefficient_low", "coefficient_high")
        clock = "" if row["clock_hz"] is None else f" at {row['clock_hz'] / 1e6:.4g} MHz"
        over = "" if row["range_c"] is None else f", over {row['range_c']:.3g} \u00b0C"
        used = " (used)" if row["used"] else ""
        refused = f": {row['reason']}" if row["reason"] else ""
        what = f"{value} W/\u00b0C" if value else "none"
        load = f", {row['load']} only" if row["load"] else ""
        basis = f", from {row['basis']}" if row["basis"] else ""
        yield f"    {row['law']}, {row['form']}{clock}{load}: {what}{over}{used}{basis}{refused}"


def _quality(rows: Sequence[Row]) -> Iterable[str]:
    if rows:
        yield "  data-quality warnings"
    flags: dict[str, list[Row]] = {}
    for row in rows:
        flags.setdefault(str(row["flag"]), []).append(row)
    for flag, own in flags.items():
        for row in own[:MAX_SHOWN]:
            label = f"{row['window']}: " if row["window"] else ""
            yield f"    {flag}: {label}{row['message']}"
        if len(own) > MAX_SHOWN:
            yield f"    {flag}: and {len(own) - MAX_SHOWN} more: -o json"


def page(view: Row, pictures: Sequence[tuple[str, Callable[..., bytes]]], missing: Sequence[str] = ()) -> str:
    """Return power as one HTML file: plots (title, function), light and dark, and the text.

    ``missing`` are the reasons of missing plots.
    """
    title = f"Power of run {visible(str(view['run']['name']))}"
    shown = "\n".join(
        f'<picture><source media="(prefers-color-scheme: dark)" srcset="{_inline(draw(dark=True))}">'
        f'<img src="{_inline(draw())}" alt="{escape(visible(name))}" style="max-width: 100%"></picture>'
        for name, draw in pictures
    )
    shown += "".join(f"<p>{escape(visible(reason))}</p>\n" for reason in missing)
    return (
        f'<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{escape(title)}</title>\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>\n'
        f"<body>\n<h1>{escape(title)}</h1>\n{shown}\n"
        f'<div class="wide"><pre>{escape(power(view, 200))}</pre></div>\n</body></html>\n'
    )


def _inline(svg: bytes) -> str:
    """Return an SVG as a data URL, in which a browser runs no scripts."""
    return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode('ascii')}"
