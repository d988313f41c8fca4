"""The counters of a launch by section: speed of light, stall reasons, memory, pipes, occupancy."""

from typing import TYPE_CHECKING, Any

from profsvc import specs, store

if TYPE_CHECKING:
    from sqlalchemy import Engine


def breakdown(engine: "Engine", launch_id: int | None) -> dict[str, list[dict[str, Any]]]:
    """Return the sections of `specs.breakdown` with the values of a launch, without those missing in its export.

    Stall reasons, in cycles per issued instruction, have their ``share`` of all of them as well.

    A kernel with averages only has no launch, so its sections are empty.
    """
    stored = [] if launch_id is None else store.select(engine, "v1_counter_values", launch_id=launch_id)
    known = {row["counter"]: row["value"] for row in stored if row["value"] is not None}
    found: dict[str, list[dict[str, Any]]] = {
        section: [
            {"title": one.title, "counter": one.counter, "kind": one.kind, "value": known[one.counter]}
            for one in shown
            if one.counter in known
        ]
        for section, shown in specs.breakdown().items()
    }
    whole = sum(row["value"] for row in found["stalls"])
    found["stalls"] = [row | {"share": row["value"] / whole if whole else None} for row in found["stalls"]]
    return found
