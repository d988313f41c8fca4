"""The memory traces of a run: cache hit ratios over random warp orders, and the sites with most misses."""

from typing import TYPE_CHECKING, Any

from profsvc import analysis, store

if TYPE_CHECKING:
    from sqlalchemy import Engine

SITES = 10
# Level of a cache, in the order of the results -> its words.
WORDS = {
    "l1_load": "L1, loads",
    "l1_store": "L1, stores",
    "l2_load": "L2, loads that missed L1",
    "l2_store": "L2, stores and atomics",
}


def traces_of_run(engine: "Engine", run_id: int) -> list[dict[str, Any]]:
    """Return one dict per trace: hit ratios with their spread by level, and the sites with most misses.

    ``draws`` are the hit ratios of each order for a histogram; empty for a level without accesses.
    """
    return [_trace(engine, one) for one in store.traces_of_run(engine, run_id)]


def _trace(engine: "Engine", one: store.StoredTrace) -> dict[str, Any]:
    levels = []
    for level, what in WORDS.items() if one.draws else ():
        values = [draw[f"{level}_ratio"] for draw in one.draws]
        known = None not in values
        measures = analysis.draw_statistics(values) if known else dict.fromkeys(("mean", "sd", "p05", "p50", "p95"))
        levels.append({"level": level, "what": what, **measures, "draws": values if known else []})
    sites = store.select(engine, "v1_trace_sites", upload_id=one.about["upload_id"])
    missed = sorted(sites, key=lambda row: (-_to_dram(row), row["site"]))
    return {**one.about, "levels": levels, "sites": missed[:SITES], "sites_in_all": len(sites)}


def _to_dram(site: dict[str, Any]) -> float:
    """Return the approximate number of cache lines of a site from DRAM; accesses that bypass L1 go to L2."""
    lines = site["requests"] * (site["lines_per_request"] or 0.0)
    missed = lines * (1 - (site["l1_ratio"] or 0.0))
    return float(missed * (1 - (site["l2_ratio"] or 0.0)))
