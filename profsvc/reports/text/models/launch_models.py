"""The results of the performance models of a launch as text for a terminal."""

from collections.abc import Iterable, Mapping
from typing import Any

from profsvc.reports.ratios import factor, times

ANY_KIND = "any kind"


def model_lines(view: Mapping[str, Any], duration_ns: float | None) -> Iterable[str]:
    """Yield the predicted times of the models, their typical errors and their agreement.

    >>> page = model_lines({"times": [], "bounds": [], "speedups": [], "agreement": {}, "device": None,
    ...     "missing": [{"title": "Roofline", "reason": "the export has no dram_bytes"}], "assumed": None}, 2000.0)
    >>> list(page)
    ['   predicted time: none', '   Roofline: the export has no dram_bytes']
    """
    if not (view["times"] or view["bounds"] or view["missing"]):
        return
    took = "" if duration_ns is None else f", measured {duration_ns / 1e3:.4g} us"
    yield f"   predicted time{took if view['times'] else ': none'}"
    bounds = {row["model"]: row["bound"] for row in view["bounds"]}
    for row in view["times"]:
        bound = bounds.get(row["model"]) or ""
        typical = f"typical error {factor(row['record']['factor'])}" if row["record"] else ""
        yield (f"   {row['title']:30}{row['time_ns'] / 1e3:>10.4g} us  {factor(row['ratio']):>7}  {bound:14}  "
               f"{typical}").rstrip()  # fmt: skip
    yield from _records(view["times"], view["device"])
    if sentences := agreement(view["agreement"]):
        yield f"   agreement: {'; '.join(sentences)}"
    if view["assumed"]:
        yield f"   assumed (no counter available): {view['assumed']}"
    yield from (f"   {row['title']}: {row['reason']}" for row in view["missing"])


def agreement(found: Mapping[str, Any]) -> list[str]:
    """Return sentences on how far the models agree.

    >>> agreement({"bound": "disputed", "memory_votes": 0.6, "speedup_low": 2.2, "speedup_high": 3.092})
    ['the models disagree on the bottleneck (60 % say memory)', 'the speedup estimates are 2.20x to 3.09x']
    """
    sentences = []
    if found.get("time_spread") is not None:
        sentences.append(f"the predicted times differ by {factor(found['time_spread'])}")
    if found.get("bound") == "disputed":
        sentences.append(f"the models disagree on the bottleneck ({100 * found['memory_votes']:.0f} % say memory)")
    elif found.get("bound") is not None:
        sentences.append(f"all models say {found['bound']}-bound")
    if found.get("speedup_low") is not None:
        low, high = times(found["speedup_low"]), times(found["speedup_high"])
        sentences.append(f"the speedup estimates are {low} to {high}")
    return sentences


def _records(rows: Iterable[Mapping[str, Any]], device: str | None) -> Iterable[str]:
    """Yield what the typical errors are based on."""
    known = [row["record"] for row in rows if row["record"]]
    if known:
        one = known[0]
        kind = "" if one["kind"] == ANY_KIND else f" limited by {one['kind']}"
        yield (
            f"   typical error: median factor between predicted and measured time of {one['kernels']} other "
            f"kernels{kind} on {device}"
        )
    elif rows:
        yield (f"   uncertainty unknown: too few other kernels were measured on {device or 'an unknown device'}")
