"""Thermocouples on the die of a run: the heat map, of one run or the difference of two, and the turned spacer."""

from typing import TYPE_CHECKING, Any, NamedTuple

from profsvc import store
from profsvc.analysis.sensor_series import QUANTITIES
from profsvc.analysis.thermocouples import DieMap
from profsvc.errors import InputError, NotFoundError, ProfsvcError
from profsvc.pipeline import thermocouples
from profsvc.reports import heat_map as of_map
from profsvc.views.power import Row, rows_of

if TYPE_CHECKING:
    import pandas as pd
    from sqlalchemy import Engine

Name = str | int
ROWS = ("model", "quantity", "sensor", "value", "low", "high", "unit", "form", "flags", "reason")


class Shown(NamedTuple):
    """A heat map as it is shown: ``run``, ``minus``, ``calibration``, ``models`` and ``heat_map``, and what to draw."""

    view: dict[str, Any]
    die_map: DieMap
    title: str


def heat_map(
    engine: "Engine", run: Name, minus: Name | None = None, calibration: Name | None = None, rc_s: float | None = None
) -> Shown:
    """Return the heat map of a run, less that of ``minus``, with the offsets of ``calibration`` taken off.

    Raise `NotFoundError` for a run without a thermocouple on the die, and `InputError` with the reason where its
    readings make no map.
    """
    info, below, plates = (_run(engine, name) for name in (run, minus, calibration))
    found = thermocouples.map_of_run(engine, info["run_id"], _number(below), _number(plates), rc_s)
    if found.die_map is None:
        raise _refusal(engine, info, f"run {info['name']!r} has no heat map: {found.reason}")
    title = f"Heat map of run {info['name']}" + (f" minus run {below['name']}" if below else "")
    runs = {"run": info, "minus": below or None, "calibration": plates or None}
    view = {**runs, "models": _models(engine, found.rows, info), "heat_map": of_map.data(found.die_map, title)}
    return Shown(view, found.die_map, title)


def rotated(
    engine: "Engine", run: Name, second: Name, angle_deg: float, calibration: Name | None = None,
    rc_s: float | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Return whether a run and a ``second`` one, its spacer turned or (by 0 degrees) put back, show the same chip.

    ``passed`` with the ``reason`` where it was not; raise as `heat_map` does where there is no answer.
    """
    info, again, plates = (_run(engine, name) for name in (run, second, calibration))
    numbers = info["run_id"], again["run_id"], angle_deg, _number(plates), rc_s
    found = thermocouples.turned(engine, *numbers)
    if found.passed is None:
        names = f"{info['name']!r} and {again['name']!r}"
        raise _refusal(engine, info, f"runs {names} tell nothing of the spacer: {found.reason}")
    runs = {"run": info, "rotated": again, "calibration": plates or None, "angle_deg": angle_deg}
    return {**runs, "passed": found.passed, "reason": found.reason, "models": _models(engine, found.rows, info)}


def _run(engine: "Engine", name: Name | None) -> Row:
    """The row of a run that is named; empty where none is."""
    return {} if name is None else store.select(engine, "v1_runs", run_id=store.find_run(engine, name))[0]


def _number(run: Row) -> int | None:
    return run.get("run_id")


def _models(engine: "Engine", rows: "pd.DataFrame", info: Row) -> list[Row]:
    return rows_of("power_models", rows, info, store.select(engine, "v1_sensors", run_id=info["run_id"]))


def _refusal(engine: "Engine", info: Row, words: str) -> ProfsvcError:
    """The error of a run that tells nothing: its thermocouples are not there, or what they read does not do."""
    sensors = store.select(engine, "v1_sensors", run_id=info["run_id"])
    on_die = [one for one in sensors if one["quantity"] in QUANTITIES and None not in (one["x_mm"], one["y_mm"])]
    return InputError(words) if on_die else NotFoundError(words)
