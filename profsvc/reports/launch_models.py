"""What the performance models say of a launch, as a person reads it in a terminal."""

from collections.abc import Iterable, Mapping
from typing import Any


def of_models(view: Mapping[str, Any], duration_ns: float | None) -> Iterable[str]:
    """Write the times that models predict beside the measured one, what they call the bound, and how far they differ.

    >>> page = of_models({"times": [], "bounds": [], "speedups": [], "agreement": {}, "missing": [
    ...     {"title": "Roofline", "reason": "the export has no dram_bytes"}], "assumed": None}, 2000.0)
    >>> list(page)
    ['   models of the time: none', '   Roofline: the export has no dram_bytes']
    """
    if not (view["times"] or view["bounds"] or view["missing"]):
        return
    took = "" if duration_ns is None else f", measured {duration_ns / 1e3:.4g} us"
    yield f"   models of the time{took if view['times'] else ': none'}"
    bounds = {row["model"]: row["bound"] for row in view["bounds"]}
    for row in view["times"]:
        ratio = "" if row["ratio"] is None else f"x{row['ratio']:.2f}"
        bound = bounds.get(row["model"], "")
        yield f"   {row['title']:30}{row['time_ns'] / 1e3:>10.4g} us  {ratio:>7}  {bound}".rstrip()
    apart = view["agreement"]
    said = []
    if apart.get("time_spread") is not None:
        said.append(f"the times differ by a factor of {apart['time_spread']:.2f}")
    if apart.get("bound") is not None:
        said.append(f"bound {apart['bound']} ({100 * apart['memory_votes']:.0f} % of the models say memory)")
    if apart.get("speedup_low") is not None:
        said.append(f"potential speedup {apart['speedup_low']:.2f}x to {apart['speedup_high']:.2f}x")
    if said:
        yield f"   uncertainty: {'; '.join(said)}"
    if view["assumed"]:
        yield f"   assumed, as no counter tells: {view['assumed']}"
    yield from (f"   {row['title']}: {row['reason']}" for row in view["missing"])
