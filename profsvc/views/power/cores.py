"""Runs with known active cores: thermocouples of each core, cores that pair, and power against temperature of sets."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from profsvc import store
from profsvc.analysis.power.windows import IDLE, RUN
from profsvc.errors import InputError, NotFoundError, UsageError, counted
from profsvc.formulas.power.placement import tpc_of_core
from profsvc.pipeline import thermocouples
from profsvc.reports.plots import cores as cores_plot
from profsvc.reports.rows import plain
from profsvc.views.calculators.answers import listed
from profsvc.views.calculators.power.placement import TPCS, core_numbers, tpc_effect

if TYPE_CHECKING:
    from sqlalchemy import Engine

Name = str | int
COLUMNS = (
    "kind", "cores", "active_tpcs", "power_w", "temperature_c", "hot_spot_c", "predicted_c", "error_c", "x_mm", "y_mm",
    "contrast_c", "contrast_low_c", "contrast_high_c", "partner", "correlation", "difference_c", "next_difference_c",
    "note",
)  # fmt: skip
TAG = "cores"
# A mark or level of a power log that names its cores, such as "cores 0-7-1-8".
LOAD = re.compile(r"cores? ([0-9]+(?:-[0-9]+)*)")
MAX_RUNS = 200
HOW_TO_TAG = "upload each run with its active cores, such as: profsvc upload --run core0 --tag cores=0 LOG"


def cores(
    engine: "Engine",
    runs: Sequence[Name],
    idle: Name | None = None,
    calibration: Name | None = None,
    tpcs: int = int(TPCS.default or 1),
    active: int | None = None,
    rc_s: float | None = None,
) -> dict[str, Any]:
    """Return what runs with known active cores show: rows by kind, notes, and the data of the figure.

    The cores of a run are its tag ``cores``, such as 0-7-1-8; loads of a power log may name theirs, such as
    ``cores 0-7-1-8``. With an ``idle`` run, thermocouples show each core alone, the pairs, and the ``active`` cores
    with the coolest predicted hot spot. Without one, power and temperature are compared alone.
    """
    check(runs, tpcs, active)
    found = [store.select(engine, "v1_runs", run_id=store.find_run(engine, name))[0] for name in runs]
    tagged = [(run, _tagged(run)) for run in found]
    configurations = [row for run, chosen in tagged for row in _configurations(engine, run, chosen, tpcs)]
    maps, below = None, None
    with_cores = [(run["run_id"], tuple(sorted(chosen))) for run, chosen in tagged if chosen]
    if idle is not None:
        below = store.select(engine, "v1_runs", run_id=store.find_run(engine, idle))[0]
        plates = None if calibration is None else store.find_run(engine, calibration)
        if not with_cores:
            raise InputError(f"no run has the tag {TAG}; {HOW_TO_TAG}")
        maps = thermocouples.cores_of_runs(engine, with_cores, below["run_id"], active, plates, rc_s)
        if maps.reason:
            raise InputError(f"the thermocouples of these runs cannot be compared: {maps.reason}")
    elif active is not None or calibration is not None:
        raise UsageError("the choice of active cores and the calibration need thermocouples of an idle run: --idle RUN")
    if maps is None and not configurations:
        names = ", ".join(str(run["name"]) for run in found[:5])
        raise NotFoundError(
            f"no power of known active cores in run {names}; {HOW_TO_TAG}, or mark loads such as 'cores 0-7-1-8'"
        )
    notes, figures = _effects(configurations, tpcs)
    rows = [*(maps.alone + maps.sets + maps.options if maps else []), *configurations]
    heat = None
    if maps is not None and maps.cores:
        pairs = [f"{row['cores']}-{row['partner']}" for row in maps.alone if "shares a cluster" in row["note"]
                 and int(row["cores"]) < int(row["partner"])]  # fmt: skip
        heat = {"cores": list(maps.cores), "rise_c": maps.rise_c.tolist(), "x_mm": maps.x_mm.tolist(),
                "y_mm": maps.y_mm.tolist()}  # fmt: skip
        told = [f"pairs of one cluster: {', '.join(pairs)}" if pairs else "no two cores clearly share a cluster"]
        notes = [*told, *_set_errors(maps.sets), *maps.notes, *notes]
    view: dict[str, Any] = plain(
        {
            "runs": [{"run_id": run["run_id"], "name": run["name"]} for run in found],
            "idle": below and {"run_id": below["run_id"], "name": below["name"]},
            "rows": [{name: row.get(name) for name in COLUMNS} for row in rows],
            "notes": notes,
            "maps": heat,
            "figures": [listed(figure) for figure in figures],
        }
    )
    return view


def check(runs: Sequence[Name], tpcs: int, active: int | None) -> None:
    """Raise `UsageError` for what cannot be asked, before any work is done."""
    if not 1 <= len(runs) <= MAX_RUNS:
        raise UsageError(f"{len(runs)} runs were given; allowed: 1 to {MAX_RUNS}")
    if not 1 <= tpcs <= TPCS.maximum:
        raise UsageError(f"--tpcs {tpcs} must be from 1 to {TPCS.maximum:g}")
    if active is not None and active < 1:
        raise UsageError(f"--active {active} must be 1 or more")


def drawn(view: Mapping[str, Any], form: str) -> bytes:
    """Return the picture: the map of each core alone, else power against temperature."""
    if view["maps"]:
        return cores_plot.maps(view["maps"], "Rise of the die with one active core", form)
    if view["figures"]:
        return cores_plot.effect(view["figures"][0], form)
    raise InputError("these runs have neither maps of single cores nor two configurations to draw")


def _tagged(run: Mapping[str, Any]) -> list[int]:
    text = str(json.loads(run["tags"] or "{}").get(TAG, ""))
    try:
        return core_numbers(text) if text else []
    except UsageError as error:
        raise InputError(f"run {run['name']!r}: tag {TAG}: {error}") from None


def _configurations(
    engine: "Engine", run: Mapping[str, Any], chosen: list[int], tpcs: int
) -> list[dict[str, Any]]:  # fmt: skip
    """Return mean power and temperature of the loads of a run whose active cores are known, of its first sensor."""
    windows = store.select(engine, "v1_power", run_id=run["run_id"])
    if not windows:
        return []
    own = [row for row in windows if row["sensor_id"] == windows[0]["sensor_id"] and row["kind"] not in (RUN, IDLE)]
    named = [(core_numbers(match[1]), row) for row in own if (match := LOAD.fullmatch(str(row["load"])))]
    if not named and chosen and own:
        named = [(chosen, max(own, key=lambda row: row["duration_s"]))]
    return [
        {
            "kind": "configuration",
            "cores": "-".join(map(str, numbers)),
            "active_tpcs": len(set(tpc_of_core(numbers, tpcs).tolist())),
            "power_w": row["mean_power_w"] if row["settled_power_w"] is None else row["settled_power_w"],
            "temperature_c": row["mean_temperature_c"],
            "note": f"run {run['name']}, {row['window']}",
        }
        for numbers, row in named
    ]


def _effects(configurations: Sequence[Mapping[str, Any]], tpcs: int) -> tuple[list[str], list[Mapping[str, Any]]]:
    """Return notes and figures of power against temperature, for each number of active cores."""
    groups: dict[int, list[dict[str, Any]]] = {}
    for row in configurations:
        if row["temperature_c"] is not None:
            table = {"cores": row["cores"], "power": row["power_w"], "temperature": row["temperature_c"]}
            groups.setdefault(len(row["cores"].split("-")), []).append(table)
    notes, figures = [], []
    for count, rows in sorted(groups.items()):
        if len(rows) > 1:
            answer = tpc_effect({"table": rows, "tpcs": tpcs})
            notes += [f"{count} active: {words}" for words in answer.notes]
            figures.append(answer.figure or {})
    return notes, figures


def _set_errors(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    errors = np.abs([row["error_c"] for row in rows if row["error_c"] is not None])
    if not errors.size:
        return []
    return [
        f"hot spots of {counted(errors.size, 'measured set')} are predicted from single cores within "
        f"{errors.mean():.2g} \u00b0C on average, {errors.max():.2g} \u00b0C at worst"
    ]
