"""The memory traces of a run, as a part of its page: hit ratios over orders of the warps, and where they miss."""

from functools import partial
from typing import Any

from sqlalchemy import Engine

from profsvc.errors import NotFoundError
from profsvc.reports import model_plots as drawing
from profsvc.views import model_plots
from profsvc.web.pages.figures import Figure, figure
from profsvc.web.pages.tables import Column, Row, columns_of

LEVELS = (
    Column("what", "cache"),
    Column("mean", "hit ratio", "percent", "trace.mean"),
    Column("sd", "sd over orders", "percent", "trace.sd"),
    *(Column(f"p{part:02}", f"{part} % of orders below", "percent", "trace.quantile") for part in (5, 50, 95)),
)
SITES = (
    Column("site", "site in the source", "name"),
    *(Column(name, title, kind, f"v1_trace_sites.{name}") for name, title, kind in (
        ("requests", "requests", "number"), ("lines_per_request", "lines a request", "number"),
        ("l1_ratio", "L1 hit ratio", "percent"), ("l2_ratio", "L2 hit ratio", "percent"),
    )),
)  # fmt: skip
# What was simulated, and on which caches.
ABOUT = {
    "references_read": "references", "lines": "lines asked for", "blocks": "blocks",
    "blocks_left_out": "blocks left out", "draws": "random orders", "sms": "SMs", "slots": "blocks an SM",
    "l1_sets": "sets of L1", "l1_ways": "lines a set of L1", "l2_sets": "sets of L2", "l2_ways": "lines a set of L2",
    "line_bytes": "bytes a line",
}  # fmt: skip
NUMBERS = {
    "mean": "trace.mean", "sd": "trace.sd", **dict.fromkeys(("p05", "p50", "p95"), "trace.quantile"),
    **dict.fromkeys(("from_ratio", "to_ratio"), "figure.ratio"), "orders": "figure.orders",
}  # fmt: skip


def part_of(engine: Engine, run_id: int, traces: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what the template needs to show the traces of a run; empty where it has none."""
    if not traces:
        return {}
    return {
        "traces": [_trace(one) for one in traces],
        "levels": LEVELS,
        "sites": SITES,
        "drawn": _drawn(engine, run_id),
    }


def _trace(one: Row) -> dict[str, Any]:
    known = [(title, one.get(name), f"v1_traces.{name}") for name, title in ABOUT.items() if one.get(name) is not None]
    return dict(one) | {"facts": [("caches of", one["device"]), *known]}


def _drawn(engine: Engine, run_id: int) -> Figure | None:
    try:
        data = model_plots.plot(engine, run_id, "hits")
    except NotFoundError:
        return None  # the reason stands with the trace
    columns = columns_of(data["rows"], (), NUMBERS)
    words = "How many of the orders have which hit ratio, a panel a cache."
    return figure("hits", data["title"], partial(drawing.draw, data), data, description=words, notes=data["notes"],
                  rows=data["rows"], columns=columns)  # fmt: skip
