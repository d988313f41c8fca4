"""The wall time of the devices of a run: what went on, ranked by what could be recovered."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from profsvc import specs, store

if TYPE_CHECKING:
    from sqlalchemy import Engine

Row = Mapping[str, Any]
COLUMNS = (
    "file", "process_id", "device_index", "category", "title", "time_ns", "share", "hidden_ns", "recoverable_ns",
    "events", "wall_ns",
)  # fmt: skip
_LANE = ("upload_id", "process_id", "device_index")


def wall_time(engine: "Engine", run_id: int, uploads: Sequence[Row]) -> list[dict[str, Any]]:
    """Return one dict per device of a trace: its budget, its iterations, and what is unknown; empty without a trace.

    The ``budget`` begins with the kernels; all else follows by what could be recovered, most first. Its ``time_ns`` add
    up to ``wall_ns``. ``names`` are the calls, ranges or late kernels of a category. ``waits_ns`` is what a device
    waits in collectives for the one that arrives last, at most; see `_waits`.
    """
    views = ("v1_wall_time", "v1_wall_time_details", "v1_wall_time_iterations", "v1_wall_time_notes")
    budget, details, iterations, notes = (_by_lane(store.select(engine, view, run_id=run_id)) for view in views)
    files = {upload["upload_id"]: upload["file_name"] for upload in uploads}
    lanes = [
        dict(zip(_LANE, lane, strict=True))
        | {
            "file": files.get(lane[0]),
            "wall_ns": rows[0]["wall_ns"] if rows else None,
            "recoverable_ns": sum(row["recoverable_ns"] or 0 for row in rows),
            "budget": _ranked(rows, details.get(lane, [])),
            "iterations": _iterations(iterations.get(lane, [])),
            "notes": [row["message"] for row in notes.get(lane, [])],
        }
        for lane in budget | notes
        for rows in [budget.get(lane, [])]
    ]
    return [lane | {"waits_ns": waits} for lane, waits in zip(lanes, _waits(lanes), strict=True)]


def _waits(lanes: Sequence[Row]) -> list[int | None]:
    """Return what each device waits in collectives for the one that arrives last, at most, in ns; None if not known.

    Who arrives last does not wait: its collectives are the shortest. What those of the others take beyond that, they
    wait. It is known only if all devices ran the same number of collectives, and if there is more than one device.
    """
    own = [next((row for row in lane["budget"] if row["category"] == "collectives"), None) for lane in lanes]
    known = [row for row in own if row is not None and row["events"]]
    if len(known) < 2 or len(known) < len(own) or len({row["events"] for row in known}) > 1:
        return [None] * len(lanes)
    took = [int(row["time_ns"] + (row["hidden_ns"] or 0)) for row in known]
    return [one - min(took) for one in took]


def flat(lanes: Iterable[Row]) -> list[dict[str, Any]]:
    """Return the budgets of all devices as rows with `COLUMNS`."""
    return [{name: (one | row).get(name) for name in COLUMNS} for one in lanes for row in one["budget"]]


def _by_lane(rows: Iterable[Row]) -> dict[tuple[Any, ...], list[Row]]:
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in _LANE), []).append(row)
    return found


def _ranked(rows: Iterable[Row], details: Iterable[Row]) -> list[dict[str, Any]]:
    known = specs.wall_time_categories()
    found = []
    for row in sorted(rows, key=lambda row: (known[row["category"]].is_recoverable, -row["time_ns"])):
        about = known[row["category"]]
        names = [
            {"name": one["name"], "time_ns": one["time_ns"], "share": one["share"]}
            for one in details
            if one["category"] == row["category"]
        ]
        kept = ("category", "time_ns", "share", "hidden_ns", "recoverable_ns", "events", "run_id", "item")
        words = {"title": about.title, "kind": about.kind, "meaning": about.meaning, "first_step": about.first_step}
        found.append({name: row[name] for name in kept} | words | {"names": names})
    return found


def _iterations(rows: Iterable[Row]) -> dict[str, Any] | None:
    """Return number, median and extremes of the iterations, and their mean by category; None if there are none."""
    times: dict[int, int] = {}
    names: dict[int, str] = {}
    sums: dict[str, int] = {}
    for row in rows:
        number = row["iteration"]
        times[number], names[number] = times.get(number, 0) + row["time_ns"], row["name"]
        sums[row["category"]] = sums.get(row["category"], 0) + row["time_ns"]
    if not times:
        return None
    known = specs.wall_time_categories()
    shortest, longest = min(times, key=lambda one: times[one]), max(times, key=lambda one: times[one])
    mean = [
        {"category": category, "title": known[category].title, "mean_ns": total / len(times)}
        for category, total in sorted(sums.items(), key=lambda one: -one[1])
    ]
    return {
        "count": len(times),
        "median_ns": median(times.values()),
        "shortest": names[shortest],
        "shortest_ns": times[shortest],
        "longest": names[longest],
        "longest_ns": times[longest],
        "by_category": mean,
    }
