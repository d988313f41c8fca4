"""Memory traces as text for a terminal."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from profsvc.errors import counted
from profsvc.reports.rows import cell, render

Row = Mapping[str, Any]
LEVELS = {"what": "cache", "mean": "hit ratio", "sd": "sd", "p05": "5 %", "p50": "50 %", "p95": "95 %"}
SITES = {
    "site": "site",
    "requests": "requests",
    "lines_per_request": "lines per request",
    "l1_ratio": "L1 ratio",
    "l2_ratio": "L2 ratio",
}


def traces(found: Sequence[Row], width: int | None = None) -> Iterator[str]:
    """Yield each trace: simulation size, hit ratios with their spread, and the sites with most misses."""
    for one in found:
        yield ""
        head = f"memory trace of upload {one['upload_id']}" + (f", kernel {one['kernel']}" if one["kernel"] else "")
        if not one["levels"]:
            yield f"{head}: not simulated: {one['reason']}"
            continue
        left_out = f" ({one['blocks_left_out']:,} further blocks left out)" if one["blocks_left_out"] else ""
        blocks, lines = counted(f"{one['blocks']:,}", "block"), counted(f"{one['lines']:,}", "line")
        yield f"{head}: {blocks}{left_out}, {lines} in {_orders(one['draws'])}"
        sizes = ", ".join(f"{level.upper()} {_size(one, level)}" for level in ("l1", "l2"))
        yield f"  {one['device']}: {counted(one['sms'], 'SM')} with {counted(one['slots'], 'block')} each, {sizes}"
        yield from _table(LEVELS, one["levels"], width)
        more = one["sites_in_all"] - len(one["sites"])
        yield "  sites with most cache lines from DRAM" + (f", and {more} more in v1_trace_sites" if more else "")
        yield from _table(SITES, one["sites"], width)


def _orders(draws: int) -> str:
    from profsvc.formulas.memory_hierarchy.simulation import MIN_RUNS  # few runs have traces to wait for NumPy

    return f"{draws} random orders" + (f" (smaller traces get {MIN_RUNS})" if draws < MIN_RUNS else "")


def _size(one: Row, level: str) -> str:
    sets, ways = one[f"{level}_sets"], one[f"{level}_ways"]
    return f"{sets} sets of {counted(ways, 'line')} of {one['line_bytes']} B"


def _table(columns: Mapping[str, str], rows: Sequence[Row], width: int | None) -> list[str]:
    named = [{title: _shown(name, row[name]) for name, title in columns.items()} for row in rows]
    return [f"  {line}" for line in str(render(list(columns.values()), named, "table", width=width)).splitlines()]


def _shown(name: str, value: Any) -> Any:
    return "no accesses" if name == "mean" and value is None else value if isinstance(value, str) else cell(value)
