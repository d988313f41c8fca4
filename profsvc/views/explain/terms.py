"""Terms in rows of the views: flags, quantities, power models, kinds; and their rows in a run."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from profsvc import specs, store
from profsvc.views.explain import quantities

if TYPE_CHECKING:
    from sqlalchemy import Engine

Step = dict[str, Any]
KIND = "term"
POWER = "v1_power_models"
# Views and columns in which a term names a row with a value.
ROWS = ((POWER, "quantity"), (POWER, "model"), ("v1_models", "quantity"), ("v1_power_quality", "flag"))
MAX_STEPS = 400
IDENTIFYING_COLUMNS = ("model", "quantity", "sensor", "window", "kernel_short", "form", "label", "text", "message")


def term(name: str) -> Step | None:
    """Return the meaning of a term of the views; None for other names."""
    measured, _, unit = name.partition(":")
    of_device = next((one for one in specs.criteria()["characterization"] if one["name"] == measured), None)
    if of_device is not None:
        unit = f", for {unit}" if unit else ""
        return {"name": name, "kind": KIND, "meaning": f"{of_device['meaning']}{unit}", "counters": []}
    if (figure := specs.measured_figures().get(name)) is not None:
        return {"name": name, "kind": KIND, "meaning": f"measured of a device: {figure.meaning}", "counters": []}
    if not (known := specs.term(name)):
        return _pattern(name)
    found: Step = {"name": name, "kind": KIND, "counters": [],
                   "meaning": "; ".join(f"{of}: {meaning}" for of, meaning in known.items())}  # fmt: skip
    one = specs.computed().get(f"{POWER}.of_{name}") if "model of power" in known else None
    if one is not None:
        found |= {"formula": one.formula, "source": quantities.cited(one.reference, one.section)}
    return found


def _pattern(name: str) -> Step | None:
    """Return the meaning of an anti-parallel pattern, which is a quantity of the rows of models."""
    one = specs.patterns().get(name)
    if one is None:
        return None
    meaning = f"anti-parallel pattern: {one.title}; {one.lost}; measured: {one.metric} ({one.reading})"
    counters = [need[1:] for need in one.needs if need.startswith("@")]
    return {"name": name, "kind": KIND, "meaning": meaning, "counters": counters, "source": one.source.strip("[]")}


def rows_of(engine: "Engine", name: str, run_id: int) -> list[Step]:
    """Return the rows of a run that contain a term, with their values."""
    steps: list[Step] = []
    for view, column in ROWS:
        found = store.select(engine, view, run_id=run_id, **{column: name})
        steps += [_step(view, row) for row in found[: MAX_STEPS - len(steps)]]
    return steps


def _step(view: str, row: Mapping[str, Any]) -> Step:
    said = ", ".join(str(row[part]) for part in IDENTIFYING_COLUMNS if row.get(part) not in (None, ""))
    said = row.get("reason") or f"{view}: {said}"
    return {"launch": row.get("kernel_short"), "name": str(row.get("quantity") or row.get("flag")),
            "value": row.get("value"), "unit": row.get("unit"), "from": said}  # fmt: skip
