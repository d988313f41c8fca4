"""The memory traces on the page of a run: hit ratios over random warp orders, and the sites with most misses."""

from functools import partial
from typing import Any

from sqlalchemy import Engine

from profsvc.errors import NotFoundError
from profsvc.reports.plots import models as drawing
from profsvc.views.models import plots as model_plots
from profsvc.web.pages.rendering.figures import Figure, figure
from profsvc.web.pages.rendering.tables import Column, Row, plain_columns

LEVEL_COLUMNS = (
    Column("what", "cache"),
    Column("mean", "hit ratio", "percent", "trace.mean"),
    Column("sd", "standard deviation", "percent", "trace.sd"),
    *(Column(f"p{part:02}", f"{part} % quantile", "percent", "trace.quantile") for part in (5, 50, 95)),
)
SITE_COLUMNS = (
    Column("site", "source site", "name"),
    *(Column(name, title, kind, f"v1_trace_sites.{name}") for name, title, kind in (
        ("requests", "requests", "number"), ("lines_per_request", "lines per request", "number"),
        ("l1_ratio", "L1 hit ratio", "percent"), ("l2_ratio", "L2 hit ratio", "percent"),
    )),
)  # fmt: skip
# Size of the simulation and of its caches.
SIMULATION_FACTS = {
    "references_read": "references", "lines": "lines requested", "blocks": "blocks",
    "blocks_left_out": "blocks left out", "draws": "random orders", "sms": "SMs", "slots": "blocks per SM",
    "l1_sets": "L1 sets", "l1_ways": "lines per L1 set", "l2_sets": "L2 sets", "l2_ways": "lines per L2 set",
    "line_bytes": "bytes per line",
}  # fmt: skip
FIGURE_EXPLANATIONS = {
    "mean": "trace.mean", "sd": "trace.sd", **dict.fromkeys(("p05", "p50", "p95"), "trace.quantile"),
    **dict.fromkeys(("from_ratio", "to_ratio"), "figure.ratio"), "orders": "figure.orders",
}  # fmt: skip


def trace_section(engine: Engine, run_id: int, traces: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the template variables of the traces of a run; empty without traces."""
    if not traces:
        return {}
    return {
        "traces": [_trace_values(one) for one in traces],
        "levels": LEVEL_COLUMNS,
        "sites": SITE_COLUMNS,
        "histogram": _histogram_figure(engine, run_id),
    }


def _trace_values(one: Row) -> dict[str, Any]:
    known = [
        (title, one.get(name), f"v1_traces.{name}")
        for name, title in SIMULATION_FACTS.items()
        if one.get(name) is not None
    ]
    return dict(one) | {"facts": [("simulated device", one["device"]), *known]}


def _histogram_figure(engine: Engine, run_id: int) -> Figure | None:
    try:
        data = model_plots.plot(engine, run_id, "hits")
    except NotFoundError:
        return None  # the reason is shown with the trace
    columns = plain_columns(data["rows"], (), FIGURE_EXPLANATIONS)
    words = "Histogram of the hit ratio over random orders, one panel per cache."
    return figure("hits", data["title"], partial(drawing.draw, data), data, description=words, notes=data["notes"],
                  rows=data["rows"], columns=columns)  # fmt: skip
