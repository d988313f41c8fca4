"""All metrics of a launch under the tool's own names, beside those of another launch."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from profsvc import store
from profsvc.errors import NotFoundError
from profsvc.views.launches.listing import launches_of

if TYPE_CHECKING:
    from sqlalchemy import Engine

Row = dict[str, Any]
LAUNCH = ("run_id", "launch_id", "launch_index", "kernel", "kernel_short", "duration_ns")
COLUMNS = (
    "section", "metric", "unit", "value", "raw_text", "baseline", "baseline_text", "change", "change_fraction",
)  # fmt: skip


@store.snapshot
def launch_metrics(
    engine: "Engine", run_id: int, kernel: str, baseline: tuple[int, str] | None = None, search: str = ""
) -> dict[str, Any]:
    """Return the metrics of a launch, and with ``baseline`` (run, launch) how each differs.

    A launch is a number, ``id:`` and a launch_id, or a kernel, whose longest launch counts. ``search`` are words that
    section or metric must contain. ``change`` is value - baseline, and ``change_fraction`` its share of the baseline;
    rows are then ordered by it, largest first, and texts that differ come before numbers that do not.
    """
    own = _launch(engine, run_id, kernel)
    other = None if baseline is None else _launch(engine, *baseline)
    values = _metrics(engine, own)
    others = {} if other is None else _metrics(engine, other)
    words = search.lower().split()
    rows = [
        _row(key, values.get(key), others.get(key))
        for key in dict.fromkeys([*values, *others])
        if all(word in f"{key[0]} {key[1]}".lower() for word in words)
    ]
    if other is not None:
        rows.sort(key=_order)
    return {"launch": own, "baseline": other, "metrics": rows, "total": len({*values, *others})}


def _launch(engine: "Engine", run_id: int, kernel: str) -> Row:
    found, _ = launches_of(engine, run_id, kernel, 1)
    if not found:
        raise NotFoundError(f"run {run_id} has no launch {kernel!r}; see v1_launches")
    return {name: found[0][name] for name in LAUNCH}


def _metrics(engine: "Engine", launch: Mapping[str, Any]) -> dict[tuple[str, str, str], Row]:
    """Return the metrics of a launch by section, name and statistic; of several the first."""
    found: dict[tuple[str, str, str], Row] = {}
    for row in store.select(engine, "v1_metrics", launch_id=launch["launch_id"]):
        found.setdefault((row["section"] or "", row["metric"], row["statistic"] or ""), row)
    return found


def _row(key: tuple[str, str, str], own: Row | None, other: Row | None) -> Row:
    section, metric, statistic = key
    known: Row = own or other or {}
    value, before = (one["value"] if one else None for one in (own, other))
    # Values of different units are not subtracted.
    same = own is not None and other is not None and own["si_unit"] == other["si_unit"]
    change = value - before if same and value is not None and before is not None else None
    return {
        "section": section or None,
        "metric": f"{metric} ({statistic})" if statistic else metric,
        "unit": known.get("si_unit") or known.get("unit"),
        "value": value,
        "raw_text": own["raw_text"] if own else None,
        "baseline": before,
        "baseline_text": other["raw_text"] if other else None,
        "change": change,
        "change_fraction": change / abs(before) if change is not None and before else None,
    }


def _order(row: Mapping[str, Any]) -> tuple[int, float, str]:
    """Order by the share of the change, then what appeared, then texts that differ, then what is the same."""
    if row["change_fraction"]:
        return 0, -abs(row["change_fraction"]), row["metric"]
    if row["change"]:
        return 1, 0.0, row["metric"]
    return (2 if row["raw_text"] != row["baseline_text"] else 3), 0.0, row["metric"]


def differing(rows: Iterable[Mapping[str, Any]]) -> int:
    """Return how many metrics differ.

    >>> differing([{"change": 0.0, "raw_text": "1", "baseline_text": "1"}, {"change": 2.0}])
    1
    """
    return sum(
        bool(row["change"]) or (row["change"] is None and row["raw_text"] != row["baseline_text"]) for row in rows
    )
