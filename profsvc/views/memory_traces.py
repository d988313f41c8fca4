"""The memory traces of a run: how often the caches answered, over random orders of the warps, and where not."""

from typing import TYPE_CHECKING, Any

from profsvc import store
from profsvc.analysis.memory_traces import spread
from profsvc.formulas.memory_hierarchy import LEVELS

if TYPE_CHECKING:
    from sqlalchemy import Engine

SITES = 10
WORDS = {
    "l1_load": "L1, loads",
    "l1_store": "L1, stores",
    "l2_load": "L2, loads that missed L1",
    "l2_store": "L2, stores and atomics",
}


def of_run(engine: "Engine", run_id: int) -> list[dict[str, Any]]:
    """Return a dict a trace: what it is, each level's hit ratio with its spread, and the sites with most misses.

    ``draws`` are the hit ratios of each order, for a histogram; a level that no reference reaches has none.
    """
    return [_trace(engine, one) for one in store.traces_of_run(engine, run_id)]


def _trace(engine: "Engine", one: store.StoredTrace) -> dict[str, Any]:
    levels = []
    for level in LEVELS if one.draws else ():
        values = [draw[f"{level}_ratio"] for draw in one.draws]
        known = None not in values
        measures = spread(values) if known else dict.fromkeys(("mean", "sd", "p05", "p50", "p95"))
        levels.append({"level": level, "what": WORDS[level], **measures, "draws": values if known else []})
    sites = store.select(engine, "v1_trace_sites", upload_id=one.about["upload_id"])
    missed = sorted(sites, key=lambda row: (-_to_dram(row), row["site"]))
    return {**one.about, "levels": levels, "sites": missed[:SITES], "sites_in_all": len(sites)}


def _to_dram(site: dict[str, Any]) -> float:
    """Lines of a site that no cache had, about: what never reaches L1 goes to L2."""
    lines = site["requests"] * (site["lines_per_request"] or 0.0)
    missed = lines * (1 - (site["l1_ratio"] or 0.0))
    return float(missed * (1 - (site["l2_ratio"] or 0.0)))
