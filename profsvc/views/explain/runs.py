"""The derivation of a result of a whole run from its launches."""

from typing import TYPE_CHECKING, Any

from profsvc import specs, store

if TYPE_CHECKING:
    from sqlalchemy import Engine

Step = dict[str, Any]
MAX_LAUNCHES = 10
# Name -> the column of v1_potential, and its formula from the launches.
OF_POTENTIAL = {
    "potential": (
        "speedup",
        "sum of duration_ns / sum of ideal_ns; a launch without potential counts with its duration",
    ),
    "v1_potential.speedup_ceiling": (
        "speedup_ceiling",
        "sum of duration_ns / sum of duration_ns / ceiling of each, 0 where a launch has no ceiling",
    ),
    "v1_potential.ideal_ns": ("ideal_ns", "sum; a launch without ideal time counts with its duration"),
}
OF_POTENTIAL["v1_potential.speedup"] = OF_POTENTIAL["potential"]
OF_CRITERIA = "mean over the launches that have it, weighted by their duration"


def run_steps(engine: "Engine", name: str, run_id: int) -> list[Step]:
    """Return a result of the whole run and its inputs; empty for other names."""
    whole = {"run_id": run_id, "launch_id": None, "kernel": None}
    if name in OF_POTENTIAL:
        column, rule = OF_POTENTIAL[name]
        parts = [part for part in ("duration_ns", "ideal_ns") if part != column]
        found, view = store.select(engine, "v1_potential", **whole), "v1_potential"
    elif name in {one["name"] for one in specs.criteria()["criterion"] if one["level"] == "launch"}:
        column, rule, parts, view = "value", OF_CRITERIA, ["share", "speedup"], "v1_criteria"
        found = store.select(engine, view, criterion=name, **whole)
    else:
        return []
    return [
        {"launch": None, "name": title, "value": row[of], "unit": "ns" if of.endswith("_ns") else "1", "from": said}
        for row in found
        for title, of, said in (
            (name, column, row["reason"] or rule),
            *((f"{view}.{part}", part, "whole run") for part in parts if row[part] is not None),
        )
    ]  # fmt: skip


def longest(engine: "Engine", name: str, run_id: int) -> tuple[list[Step], bool]:
    """Return the same result of the longest launches, and whether there are more launches."""
    launches, more = store.list_launches(engine, run_id, limit=MAX_LAUNCHES)
    ids, column = [one["launch_id"] for one in launches], OF_POTENTIAL.get(name, ("value",))[0]
    rows = store.launch_rows(engine, "v1_potential" if name in OF_POTENTIAL else "v1_criteria", run_id, ids)
    found = {row["launch_id"]: row[column] for row in rows if name in OF_POTENTIAL or row["criterion"] == name}
    return [
        {"launch": one["launch_index"], "launch_id": one["launch_id"], "name": one["kernel_short"],
         "value": found[one["launch_id"]], "unit": "ns" if column.endswith("_ns") else "1",
         "duration_ns": one["duration_ns"]}
        for one in launches if found.get(one["launch_id"]) is not None
    ], more  # fmt: skip
