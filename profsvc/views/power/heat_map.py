"""Thermocouples on the die: the heat map of a run or the difference of two, and the rotation test."""

from typing import TYPE_CHECKING, Any, NamedTuple

from profsvc import store
from profsvc.analysis.thermocouples.heat_map import DieMap
from profsvc.analysis.thermocouples.series import QUANTITIES
from profsvc.errors import InputError, NotFoundError, ProfsvcError
from profsvc.pipeline import thermocouples
from profsvc.reports.plots import heat_map as heat_map_plot
from profsvc.views.power.run_power import Row, rows_of

if TYPE_CHECKING:
    import pandas as pd
    from sqlalchemy import Engine

Name = str | int
ROWS = ("model", "quantity", "sensor", "value", "low", "high", "unit", "form", "flags", "reason")


class Shown(NamedTuple):
    """A heat map: the view with ``run``, ``minus``, ``calibration``, ``models`` and ``heat_map``, and its die map."""

    view: dict[str, Any]
    die_map: DieMap
    title: str


def heat_map(
    engine: "Engine", run: Name, minus: Name | None = None, calibration: Name | None = None, rc_s: float | None = None
) -> Shown:
    """Return the heat map of a run, minus that of ``minus``, corrected by the offsets of ``calibration``.

    Raise `NotFoundError` for a run without thermocouples on the die, and `InputError` with the reason if its readings
    give no map.
    """
    info, below, plates = (_run(engine, name) for name in (run, minus, calibration))
    found = thermocouples.map_of_run(engine, info["run_id"], _number(below), _number(plates), rc_s)
    if found.die_map is None:
        raise _refusal(engine, info, f"run {info['name']!r} has no heat map: {found.reason}")
    title = f"Heat map of run {info['name']}" + (f" minus run {below['name']}" if below else "")
    runs = {"run": info, "minus": below or None, "calibration": plates or None}
    view = {**runs, "models": _models(engine, found.rows, info), "heat_map": heat_map_plot.data(found.die_map, title)}
    return Shown(view, found.die_map, title)


def rotated(
    engine: "Engine", run: Name, second: Name, angle_deg: float, calibration: Name | None = None,
    rc_s: float | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Return whether a run and a ``second`` one with a rotated or (0 degrees) remounted spacer agree.

    ``passed``, and the ``reason`` if not; raises like `heat_map` if the test is not possible.
    """
    info, again, plates = (_run(engine, name) for name in (run, second, calibration))
    numbers = info["run_id"], again["run_id"], angle_deg, _number(plates), rc_s
    found = thermocouples.rotation_of_runs(engine, *numbers)
    if found.passed is None:
        names = f"{info['name']!r} and {again['name']!r}"
        raise _refusal(engine, info, f"rotation test of runs {names} not possible: {found.reason}")
    runs = {"run": info, "rotated": again, "calibration": plates or None, "angle_deg": angle_deg}
    return {**runs, "passed": found.passed, "reason": found.reason, "models": _models(engine, found.rows, info)}


def _run(engine: "Engine", name: Name | None) -> Row:
    """Return the row of a run; empty without a name."""
    return {} if name is None else store.select(engine, "v1_runs", run_id=store.find_run(engine, name))[0]


def _number(run: Row) -> int | None:
    return run.get("run_id")


def _models(engine: "Engine", rows: "pd.DataFrame", info: Row) -> list[Row]:
    return rows_of("power_models", rows, info, store.select(engine, "v1_sensors", run_id=info["run_id"]))


def _refusal(engine: "Engine", info: Row, words: str) -> ProfsvcError:
    """Return the error of a run without thermocouples, or with unusable readings."""
    sensors = store.select(engine, "v1_sensors", run_id=info["run_id"])
    on_die = [one for one in sensors if one["quantity"] in QUANTITIES and None not in (one["x_mm"], one["y_mm"])]
    return InputError(words) if on_die else NotFoundError(words)
