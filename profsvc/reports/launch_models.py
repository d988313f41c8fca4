"""What the performance models say of a launch, as a person reads it in a terminal."""

from collections.abc import Iterable, Mapping
from typing import Any

from profsvc.reports.ratios import factor, times

ANY_KIND = "any kind"


def of_models(view: Mapping[str, Any], duration_ns: float | None) -> Iterable[str]:
    """Write the times that models predict beside the measured one, their record, and how far they agree.

    >>> page = of_models({"times": [], "bounds": [], "speedups": [], "agreement": {}, "device": None,
    ...     "missing": [{"title": "Roofline", "reason": "the export has no dram_bytes"}], "assumed": None}, 2000.0)
    >>> list(page)
    ['   models of the time: none', '   Roofline: the export has no dram_bytes']
    """
    if not (view["times"] or view["bounds"] or view["missing"]):
        return
    took = "" if duration_ns is None else f", measured {duration_ns / 1e3:.4g} us"
    yield f"   models of the time{took if view['times'] else ': none'}"
    bounds = {row["model"]: row["bound"] for row in view["bounds"]}
    for row in view["times"]:
        bound = bounds.get(row["model"]) or ""
        typical = f"typical error {factor(row['record']['factor'])}" if row["record"] else ""
        yield (f"   {row['title']:30}{row['time_ns'] / 1e3:>10.4g} us  {factor(row['ratio']):>7}  {bound:14}  "
               f"{typical}").rstrip()  # fmt: skip
    yield from _records(view["times"], view["device"])
    apart = view["agreement"]
    said = []
    if apart.get("time_spread") is not None:
        said.append(f"the models' times differ by {factor(apart['time_spread'])}")
    if apart.get("bound") is not None:
        said.append(f"bound {apart['bound']} ({100 * apart['memory_votes']:.0f} % of the models say memory)")
    if apart.get("speedup_low") is not None:
        said.append(f"potential speedup {times(apart['speedup_low'])} to {times(apart['speedup_high'])}")
    if said:
        yield f"   agreement: {'; '.join(said)}"
    if view["assumed"]:
        yield f"   assumed, as no counter tells: {view['assumed']}"
    yield from (f"   {row['title']}: {row['reason']}" for row in view["missing"])


def _records(rows: Iterable[Mapping[str, Any]], device: str | None) -> Iterable[str]:
    """Say what the typical errors rest on; that is the uncertainty, however well the models agree."""
    known = [row["record"] for row in rows if row["record"]]
    if known:
        one = known[0]
        kind = "" if one["kind"] == ANY_KIND else f" limited by {one['kind']}"
        yield f"   typical error: of predicted over measured times of {one['kernels']} other kernels{kind} on {device}"
    elif rows:
        yield (f"   uncertainty unknown: too few other kernels were measured on {device or 'an unknown device'}, "
               "where these models could be checked")  # fmt: skip
