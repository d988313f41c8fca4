"""What a launch would take otherwise, as a person reads it in a terminal."""

from collections.abc import Iterable, Mapping
from textwrap import wrap
from typing import Any

from profsvc.reports.rows import cell, render, visible

Row = Mapping[str, Any]
HEADS = ("SMs", "warps", "MHz", "GB/s", "MWP-CWP", "limited by", "throughput", "limited by ", "expected us")
TITLES = {"mwp_cwp": "MWP-CWP", "throughput": "throughput"}
OF = {"sms": ("SMs", 1.0), "warps": ("warps", 1.0), "frequency_hz": ("MHz", 1e-6)}
LINE = 112


def what_if(view: Row, width: int | None = None) -> str:
    """Write the page of a what-if: the launch as the models see it, a row a scenario, suggestions, what is assumed."""
    return "\n".join(visible(line) for line in _lines(view, width)) + "\n"


def _lines(view: Row, width: int | None) -> Iterable[str]:
    launch, now = view["launch"], view["rows"][0]
    yield f"#{launch['launch_index']} {launch['kernel_short']} on {launch['device'] or 'an unknown device'}"
    measured = view["measured_us"]
    yield f"measured {cell(measured)} us" if measured is not None else "its time was not measured"
    for model, title in TITLES.items():
        if now[f"{model}_us"] is not None:
            share = f", x{now[f'{model}_us'] / measured:.2f} of it" if measured else ""
            yield f"{title} says {cell(now[f'{model}_us'])} us{share}: believe its changes more than its times"
    for row in view["missing"]:
        yield f"{TITLES[row['model']]} has no answer: {row['reason']}"
    yield ""
    several = len({row["device"] for row in view["rows"]}) > 1
    heads = (*(["device"] if several else []), *HEADS)
    cells = [dict(zip(heads, _cells(row, several), strict=True)) for row in view["rows"]]
    cells[0]["MWP-CWP"] = cells[0]["throughput"] = "now"
    yield from str(render(heads, cells, "table", width=width)).splitlines()
    yield "changes are of the time; expected: the measured time with the change, by either model"
    yield from _suggested(view["suggestions"])
    if (number := now["category"]) is not None:
        own = view["categories"][str(number)]
        yield from ("", f"category {number} of the throughput model: {own['verdict']}", *_wrapped(own["advice"]))
    yield ""
    if view["assumed"]:
        yield from _wrapped(f"assumed, as no counter tells: {', '.join(view['assumed'])}", "")
    for note in view["notes"]:
        yield from _wrapped(note, "")


def _cells(row: Row, several: bool) -> Iterable[Any]:
    if several:
        yield row["device"]
    yield from (row["sms"], row["warps"], f"{row['frequency_mhz']:.0f}", f"{row['bandwidth_gb_per_s']:.0f}")
    for model in TITLES:
        change = row[f"{model}_change"]
        yield "" if change is None else f"{100 * change:+.0f} %"
        yield row[f"{model}_bound"] or ""
    low, high = row["expected_low_us"], row["expected_high_us"]
    if low is None or high is None:
        yield ""
    else:
        yield cell(low) if high - low < 0.005 * high else f"{cell(low)} to {cell(high)}"


def _suggested(rows: Iterable[Row]) -> Iterable[str]:
    """Write the suggestions that ask for less than there is now; where none does, say so."""
    known = list(rows)
    fewer = [row for row in known if row["value"] < 0.995 * row["now"]]
    if known and not fewer:
        yield ""
        yield "the models suggest to keep all SMs, all warps and the clock"
    for place, row in enumerate(fewer):
        unit, factor = OF[row["what"]]
        yield from [""] if place == 0 else []
        yield (f"{TITLES[row['model']]} suggests {row['value'] * factor:.0f} of {row['now'] * factor:.0f} {unit}: "
               f"{row['meaning']}")  # fmt: skip


def _wrapped(text: str, indent: str = "  ") -> list[str]:
    return wrap(text, LINE, initial_indent=indent, subsequent_indent="  ") or [""]
