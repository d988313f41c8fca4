"""A device: specifications with their sources, and its characterization as curves and costs."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from profsvc import specs, store
from profsvc.analysis.launches.characterization import is_same_device
from profsvc.errors import NotFoundError
from profsvc.formulas.performance.characterization import eval_characterization, fit_characterization, saturated

if TYPE_CHECKING:
    from sqlalchemy import Engine

Row = dict[str, Any]
POINTS = 120
COST = "k_"
# Suffix of a specification -> its unit; the first match counts.
UNITS = (
    ("_bytes_per_s", "byte/s"), ("_flop_per_s", "flop/s"), ("_op_per_s", "op/s"), ("_op_per_sm_cycle", "op/cycle"),
    ("_hz", "Hz"), ("_bytes", "byte"), ("_w", "W"), ("_mm", "mm"), ("_bits", "bit"),
)  # fmt: skip
# Part of a specification's name -> its source in the catalogue; the first match counts.
SOURCES = (
    ("clock", "clocks"), ("dram", "dram"), ("memory_bus", "dram"), ("allocation", "allocation"),
    ("granularity", "allocation"), ("reserved", "allocation"), ("lanes", "lanes"), ("sfu", "lanes"),
    ("schedulers", "lanes"), ("l1_", "l1"), ("l2_", "l2"), ("_per_sm_cycle", "tensor_rate"),
    ("sparsity", "tensor_rate"), ("tensor", "tensor"), ("tdp", "tdp"), ("die", "die"), ("sms", "sms"), ("", "limits"),
)  # fmt: skip
WORDS = ("key", "name", "match", "source", "register_allocation_scope", "l1_unified_with_shared_mem")


def device(engine: "Engine", name: str, project: str | None = None) -> dict[str, Any]:
    """Return the specifications of a device, its measured curves and costs; with ``project``, only its measurements.

    Raise `NotFoundError` for a device unknown to the catalogue, all runs and all characterizations.
    """
    figures, sources = _figures(name)
    measured = [row for row in _measured(engine, project) if is_same_device(row["device"], name)]
    if not figures and not measured and name not in _named(engine, project):
        known = {one.name for one in specs.devices().values()}
        raise NotFoundError.near("device", name, known | _named(engine, project))
    groups: dict[str, list[Row]] = {}
    for row in measured:
        groups.setdefault(row["quantity"], []).append(row)
    groups = {quantity: _newest(rows) for quantity, rows in groups.items()}
    return {
        "device": name,
        "figures": figures,
        "sources": sources,
        "curves": [_curve(quantity, rows) for quantity, rows in groups.items() if not quantity.startswith(COST)],
        "costs": [_cost(quantity, rows) for quantity, rows in groups.items() if quantity.startswith(COST)],
    }


def figures_of(name: str) -> list[Row]:
    """Return the specifications of a device with unit and source; empty if it is not in the catalogue."""
    return _figures(name)[0]


def _named(engine: "Engine", project: str | None) -> set[str]:
    """Return the device names of runs, of one project or all."""
    if project is not None:
        return {str(row["device"]) for row in store.select(engine, "v1_runs", project=project)}
    return {str(row["name"]) for row in store.select(engine, "v1_devices")}


def _figures(name: str) -> tuple[list[Row], Row]:
    try:
        known = specs.device(name)
    except NotFoundError:
        return [], {}
    found = []
    for field in dataclasses.fields(known):
        value = getattr(known, field.name)
        if field.name in WORDS or value is None or field.name == "compute_capability":
            continue
        end, unit = next(((end, unit) for end, unit in UNITS if field.name.endswith(end)), ("", ""))
        source = next((s for part, s in SOURCES if part in field.name and s in known.source), "limits")
        found.append(
            {"figure": field.name, "title": field.name.removesuffix(end).replace("_", " "), "value": value,
             "unit": unit, "source": known.source.get(source)}
        )  # fmt: skip
    return found, dict(known.source)


def _measured(engine: "Engine", project: str | None) -> list[Row]:
    return store.list_view(engine, "v1_characterizations", project=project, limit=store.MAX_ROWS).rows


def _newest(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of the newest upload, which replace earlier ones."""
    last = max(row["upload_id"] for row in rows)
    return [row for row in rows if row["upload_id"] == last]


def _curve(quantity: str, rows: Sequence[Row]) -> Row:
    """Return a curve: its points, the fit through the medians of repeats, and its saturation level."""
    x, y = (np.array([row[name] for row in rows], dtype=np.float64) for name in "xy")
    fit = fit_characterization(x, y)
    low, high = float(fit.knots_x.min()), float(fit.knots_x.max())
    wide = low > 0 and high / low > 20
    at = np.geomspace(low, high, POINTS) if wide else np.linspace(low, high, POINTS)
    at = np.clip(at, low, high)
    line = eval_characterization(fit.knots_x, fit.knots_y, at).y if len(fit.knots_x) > 1 else np.full(POINTS, y[0])
    return {
        "quantity": quantity,
        "title": quantity.removeprefix("F_"),
        "meaning": meaning(quantity),
        "x_title": method_of(rows),
        "is_log": wide,
        "rows": [{name: row[name] for name in ("x", "y", "method", "upload_id", "line")} for row in rows],
        "curve": [[float(a), float(b)] for a, b in zip(at, line, strict=True)],
        "saturated": float(saturated(fit.knots_y)),
    }


def meaning(quantity: str) -> str:
    """Return the meaning of a quantity of a characterization."""
    name = quantity.partition(":")[0]
    return next(str(one["meaning"]) for one in specs.criteria()["characterization"] if one["name"] == name)


def method_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the method of measurement from the first row that has one."""
    return next((str(row["method"]) for row in rows if row["method"]), "place in the sweep")


def _cost(quantity: str, rows: Sequence[Row]) -> Row:
    values = [row["y"] for row in rows]
    return {"quantity": quantity, "title": quantity.removeprefix(COST).replace("_", " "), "meaning": meaning(quantity),
            "cycles": float(np.median(values)), "repeats": len(values), "method": method_of(rows)}  # fmt: skip
