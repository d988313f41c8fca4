"""The counters of a launch by section: speed of light, stall reasons, memory, pipes, occupancy."""

from typing import TYPE_CHECKING, Any

from profsvc import specs, store

if TYPE_CHECKING:
    from sqlalchemy import Engine


def breakdown(engine: "Engine", launch_id: int | None) -> dict[str, list[dict[str, Any]]]:
    """Return the sections of `specs.breakdown` with the values of a launch, without those missing in its export.

    A kernel with averages only has no launch, so its sections are empty.
    """
    stored = [] if launch_id is None else store.select(engine, "v1_counter_values", launch_id=launch_id)
    known = {row["counter"]: row["value"] for row in stored if row["value"] is not None}
    return {
        section: [
            {"title": one.title, "counter": one.counter, "kind": one.kind, "value": known[one.counter]}
            for one in shown
            if one.counter in known
        ]
        for section, shown in specs.breakdown().items()
    }
