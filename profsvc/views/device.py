"""A device: specifications with their sources, and its characterization as curves and costs."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from profsvc import specs, store
from profsvc.analysis.launches.characterization import fit_of, is_same_device
from profsvc.errors import NotFoundError, first_of
from profsvc.formulas.performance.characterization import eval_characterization, median_spread, saturated

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
    ("sparsity", "tensor_rate"), ("tensor", "tensor"), ("tdp", "tdp"), ("fan", "fan"), ("die", "die"),
    ("sms", "sms"), ("", "limits"),
)  # fmt: skip
FIGURE = ("figure", "value", "unit", "source")
NOT_CHARACTERIZED = (
    "is not characterized: these figures are of its data sheet, and a unit counts as saturated at 80 % of peak. "
    "Measure it with: profsvc characterize"
)
SUMMARY = ("quantity", "value", "unit", "spread", "x", "repeats", "method")
WORDS = ("key", "name", "match", "source", "register_allocation_scope", "l1_unified_with_shared_mem")


def device(engine: "Engine", name: str, project: str | None = None) -> dict[str, Any]:
    """Return the specifications of a device, its measured curves and costs; with ``project``, only its measurements.

    Raise `NotFoundError` for a device unknown to the catalogue, all runs and all characterizations.
    """
    figures, sources = _figures(name)
    measured = characterizations_of(all_measured(engine, project), name)
    if not figures and not measured and name not in _named(engine, project):
        known = {one.name for one in specs.devices().values()}
        raise NotFoundError.near("device", name, known | _named(engine, project))
    return {"device": name, "figures": figures, "sources": sources, **characterization(measured)}


def characterization(measured: Sequence[Row]) -> dict[str, Any]:
    """Return the curves, costs and figures of a device out of its rows of v1_characterizations."""
    groups: dict[str, list[Row]] = {}
    for row in measured:
        groups.setdefault(row["quantity"], []).append(row)
    kinds = specs.quantities()
    of_kind: dict[str, list[tuple[str, list[Row]]]] = {}
    for quantity, rows in groups.items():
        of_kind.setdefault(kinds.get(quantity, ""), []).append((quantity, _newest(rows)))
    return {
        "curves": [_curve(*one) for one in of_kind.get(specs.FUNCTION, [])],
        "costs": [_cost(*one) for one in of_kind.get(specs.COST, [])],
        "measured": [row for one in of_kind.get(specs.FIGURE, []) for row in _points(*one)],
    }


def summary(measured: Sequence[Row], name: str) -> list[Row]:
    """Return a row for each curve, cost and figure that was measured of the device called ``name``."""
    found = characterization(characterizations_of(measured, name))
    if not any(found.values()):
        known = first_of(sorted({repr(str(row["device"])) for row in measured})) or "no device"
        raise NotFoundError(
            f"no characterization of {name!r}; {known} is characterized. Measure it with: profsvc characterize"
        )
    curves = [
        {"quantity": one["quantity"], "value": one["saturated"], "unit": "share of peak", "spread": one["spread"],
         "x": f"{one['low']:.4g} to {one['high']:.4g}", "repeats": len(one["rows"]), "method": one["x_title"]}
        for one in found["curves"]
    ]  # fmt: skip
    costs = [{**one, "value": one["cycles"], "unit": "cycle", "x": None} for one in found["costs"]]
    return [{column: row[column] for column in SUMMARY} for row in [*curves, *costs, *found["measured"]]]


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


def characterizations_of(measured: Sequence[Row], name: str) -> list[Row]:
    """Return the rows of v1_characterizations that are of the device called ``name``."""
    same = {device: is_same_device(device, name) for device in {str(row["device"]) for row in measured}}
    return [row for row in measured if same[str(row["device"])]]


def all_measured(engine: "Engine", project: str | None = None) -> list[Row]:
    """Return the rows of v1_characterizations that count: of the newest upload of each device and quantity."""
    return store.newest_characterizations(engine, project)


def _newest(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of the newest upload, which replace earlier ones."""
    last = max(row["upload_id"] for row in rows)
    return [row for row in rows if row["upload_id"] == last]


def _curve(quantity: str, rows: Sequence[Row]) -> Row:
    """Return a curve: its points, the fit through the medians of repeats, and its saturation level."""
    x, y = (np.array([row[name] for row in rows], dtype=np.float64) for name in "xy")
    fit = fit_of(quantity, x, y)
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
        "low": low,
        "high": high,
        "spread": _widest(x, y),
    }


def _widest(x: ArrayLike, y: ArrayLike) -> float | None:
    """Return the widest interval of a median among the points of a sweep, None where all have too few repeats."""
    x, y = np.asarray(x), np.asarray(y)
    _, place, count = np.unique(x, return_inverse=True, return_counts=True)
    repeats = np.split(y[np.argsort(place, kind="stable")], np.cumsum(count)[:-1])
    spreads = [median_spread(values) for values in repeats if len(values) > 1]
    return max((one for one in spreads if np.isfinite(one)), default=None)


def _points(quantity: str, rows: Sequence[Row]) -> list[Row]:
    """Return the median of each point of a figure, with the half-width of its interval."""
    at: dict[Any, list[float]] = {}
    for row in rows:
        at.setdefault(row["x"], []).append(row["y"])
    unit = specs.measured_figures()[quantity].unit
    return [
        {"quantity": quantity, "title": quantity.replace("_", " "), "x": x, "value": float(np.median(values)),
         "unit": unit, "spread": _or_none(median_spread(values)), "repeats": len(values), "method": method_of(rows)}
        for x, values in at.items()
    ]  # fmt: skip


def _or_none(value: float) -> float | None:
    return value if np.isfinite(value) else None


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
            "cycles": float(np.median(values)), "spread": _or_none(median_spread(values)), "repeats": len(values),
            "method": method_of(rows)}  # fmt: skip
