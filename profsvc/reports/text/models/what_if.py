"""What-if predictions of a launch as text for a terminal."""

from collections.abc import Iterable, Mapping
from textwrap import wrap
from typing import Any

from profsvc.reports.ratios import change
from profsvc.reports.rows import cell, render, visible

Row = Mapping[str, Any]
HEADS = {"sms": "SMs", "blocks": "blocks", "block_threads": "threads", "registers": "registers",
         "shared_bytes": "shared bytes", "occupancy": "occupancy", "occupancy_limiter": "limit of blocks",
         "warps": "warps", "frequency_mhz": "MHz", "bandwidth_gb_per_s": "GB/s"}  # fmt: skip
# Columns of the grid and of its blocks are shown only if they differ.
OF_GRID = ("blocks", "block_threads", "registers", "shared_bytes", "occupancy")
RESOURCES = {"registers": "registers per thread", "shared": "bytes of shared memory per block"}
TITLES = {"mwp_cwp": "MWP-CWP", "throughput": "throughput"}
MISSING = {"expected": "the expected time", **TITLES}
OF = {"sms": ("SMs", 1.0), "warps": ("warps", 1.0), "frequency_hz": ("MHz", 1e-6)}
LIMITS = {
    "latency": "latency: too few warps", "dram": "DRAM", "l2": "L2", "l1": "L1 and shared memory", "fp32": "FP32 pipe",
    "fp64": "FP64 pipe", "tensor": "tensor pipe", "xu": "special functions", "integer": "integer pipe",
    "issue": "issue slots", "launch": "block launch",
}  # fmt: skip
LINE = 112
FEW_WARPS = 5
"""Categories of the throughput model up to this one mean too few warps."""


def what_if(view: Row, width: int | None = None) -> str:
    """Return a what-if as text: one row per scenario, suggestions and assumptions."""
    return "\n".join(visible(line) for line in _lines(view, width)) + "\n"


def _lines(view: Row, width: int | None) -> Iterable[str]:
    launch, now = view["launch"], view["rows"][0]
    yield f"#{launch['launch_index']} {launch['kernel_short']} on {launch['device'] or 'an unknown device'}"
    measured = view["measured_us"]
    yield f"measured {cell(measured)} us" if measured is not None else "measured time unknown"
    for row in view["missing"]:
        yield f"{MISSING[row['model']]} is unknown: {row['reason']}"
    yield ""
    several = len({row["device"] for row in view["rows"]}) > 1
    shown = [name for name in HEADS if name not in (*OF_GRID, "occupancy_limiter")
             or len({row[name] for row in view["rows"]}) > 1]  # fmt: skip
    if "occupancy" in shown and "occupancy_limiter" not in shown:
        shown.insert(shown.index("occupancy") + 1, "occupancy_limiter")
    heads = (*(["device"] if several else []), *(HEADS[name] for name in shown), "expected us", "range", "limited by",
             *TITLES.values())  # fmt: skip
    cells = [dict(zip(heads, _cells(row, shown, several), strict=True)) for row in view["rows"]]
    cells[0]["MWP-CWP"] = cells[0]["throughput"] = "now"
    yield from str(render(heads, cells, "table", width=width)).splitlines()
    yield "range: from full overlap of warps and units without queues to no overlap"
    if any(now[f"{model}_us"] is not None for model in TITLES):
        yield f"{' and '.join(TITLES.values())}: change of time by these published models"
    yield from _margins(view["resources"])
    yield from _suggested(view["suggestions"], now["limited_by"])
    waits = now["limited_by"] == "latency"
    if waits:
        yield ""
        yield "limited by latency: more warps, or more independent instructions per warp, would help"
    # The categories are about memory requests: enough warps for them may be too few for other latencies.
    if (number := now["category"]) is not None and not (waits and number > FEW_WARPS):
        own = view["categories"][str(number)]
        yield from ("", f"category {number} of the throughput model: {own['verdict']}", *_wrapped(own["advice"]))
    yield ""
    if view["assumed"]:
        yield from _wrapped(f"assumed (no counter available): {', '.join(view['assumed'])}", "")
    for note in view["notes"]:
        yield from _wrapped(note, "")


def _cells(row: Row, shown: Iterable[str], several: bool) -> Iterable[Any]:
    if several:
        yield row["device"]
    yield from (_number(name, row[name]) for name in shown)
    low, high = row["expected_low_us"], row["expected_high_us"]
    yield "" if row["expected_us"] is None else cell(row["expected_us"])
    if low is None or high is None:
        yield ""
    else:
        yield cell(low) if high - low < 0.005 * high else f"{cell(low)} to {cell(high)}"
    yield LIMITS.get(row["limited_by"], row["limited_by"] or "")
    for model in TITLES:
        own = row[f"{model}_change"]
        yield "" if own is None else change(own)


def _number(name: str, value: Any) -> Any:
    if value is None:
        return ""
    if name == "occupancy":
        return f"{100 * value:.0f} %"
    return value if name not in ("frequency_mhz", "bandwidth_gb_per_s") else f"{value:.0f}"


def _margins(rows: Iterable[Row]) -> Iterable[str]:
    """Yield how many blocks fit with a little more or less of each resource."""
    for place, row in enumerate(rows):
        yield from [""] if place == 0 else []
        blocks = f"{row['blocks']:.0f} {'block' if row['blocks'] == 1 else 'blocks'} per SM"
        text = f"{row['now']:.0f} {RESOURCES[row['resource']]}: up to {row['most']:.0f} keep {blocks}"
        if row["blocks_beyond"] is not None:
            text += f", one more leaves {row['blocks_beyond']:.0f}"
        if row["for_more"] is not None:
            text += f"; {row['for_more']:.0f} or fewer allow {row['blocks_more']:.0f}"
        if not row["next_fits"]:
            text += f" (another block would need {row['next_demand']:.0f} of {row['capacity']:.0f})"
        yield from _wrapped(text, "")


def _suggested(rows: Iterable[Row], limit: str | None) -> Iterable[str]:
    """Yield suggestions to use fewer resources, or that there are none."""
    known = list(rows)
    fewer = [row for row in known if row["value"] < 0.995 * row["now"]]
    if known and not fewer and limit != "latency":
        yield ""
        yield "the models suggest keeping all SMs, all warps and the clock"
    for place, row in enumerate(fewer):
        unit, factor = OF[row["what"]]
        yield from [""] if place == 0 else []
        yield (f"{TITLES[row['model']]} suggests {row['value'] * factor:.0f} of {row['now'] * factor:.0f} {unit}: "
               f"{row['meaning']}")  # fmt: skip


def _wrapped(text: str, indent: str = "  ") -> list[str]:
    return wrap(text, LINE, initial_indent=indent, subsequent_indent="  ") or [""]
