"""``/runs/{run}/power``: power, temperature and what ran on one axis of time; windows as measured and corrected."""

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI
from sqlalchemy import Engine
from starlette.requests import Request
from starlette.responses import Response

from profsvc import specs, store
from profsvc.analysis.power import Options
from profsvc.errors import InputError, NotFoundError
from profsvc.reports import heat_map as of_map
from profsvc.reports.model_text import interval
from profsvc.reports.power_text import alike, own_flags
from profsvc.views import heat_map, power_pictures
from profsvc.views import power as of_power
from profsvc.web.asked import Asked
from profsvc.web.pages.figures import Figure, figure, without
from profsvc.web.pages.frame import Links, page, path_to, run_of
from profsvc.web.pages.tables import Column, Row, columns_of, row_of
from profsvc.web.pages.words import name
from profsvc.web.routes import add_page
from profsvc.web.site import site_of

HEAT = "heat_map"
MOST_FLAGS = 400
# Number of a thermocouple -> what explains it.
PLACED = {"x_mm": "figure.place_mm", "y_mm": "figure.place_mm", "temperature": "figure.temperature_c"}
DESCRIBED = {
    "time": "Power, corrected power and temperature over time, and under them what ran. The table of windows has the "
            "mean of each.",
    "sms": "Power against the number of SMs at work, a line a load.",
    "per-watt": "Work a joule does against the number of SMs at work, as share of the best.",
}  # fmt: skip


def show(request: Request) -> Response:
    """Show the power of a run, of all its sensors or of one."""
    asked, engine = Asked(request), site_of(request).engine
    sensor = asked.text("sensor")
    asked.done()
    number = run_of(request, request.path_params["run"])
    info = store.select(engine, "v1_runs", run_id=number)[0]
    map_of_die = _map(engine, number)
    try:
        view = of_power.power(engine, number, Options(sensor=sensor or None))
    except NotFoundError:
        if map_of_die is None or sensor:
            raise
        view = {"run": info, "stored": True, "windows": [], "coefficients": [], "models": [], "quality": []}
    if not view["stored"]:
        view |= {key: _without_numbers(view[key]) for key in ("windows", "coefficients", "models", "quality")}
    sensors = store.select(engine, "v1_sensors", run_id=number, quantity="power")
    return page(
        request, "power.html", f"Power of run {name(info['name'], 60)}", links=_links(request, number, bool(sensors)),
        run=info, view=view, sensor=sensor, sensors=list(dict.fromkeys(str(one["name"]) for one in sensors)),
        pictures=_pictures(engine, view), map_of_die=map_of_die, groups=_groups(view),
        quality=_quality(view["quality"], alike(view["windows"])),
        models=[_spanned(row) for row in view["models"] if row["model"] != HEAT], model_columns=MODELS,
        heat=[_spanned(row) for row in view["models"] if row["model"] == HEAT], window_columns=WINDOWS,
        coefficient_columns=COEFFICIENTS,
    )  # fmt: skip


def _without_numbers(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Rows that were computed for the page alone: the store has none of their numbers."""
    return [dict(row) | {"item": None} for row in rows]


def _links(request: Request, number: int, has_power: bool) -> Links:
    if not has_power:
        sql = f"select * from v1_power_models where run_id = {number} and model = '{HEAT}'"
        return Links(json=path_to(request, f"/v1/runs/{number}/heat-map"), sql=sql)
    sql = f'select "window", sensor, mean_power_w, corrected_power_w, corrected_power_low_w, corrected_power_high_w, ' \
          f"energy_j, corrected_energy_j, quality, reason\nfrom v1_power where run_id = {number}"  # fmt: skip
    return Links(json=path_to(request, f"/v1/runs/{number}/power", request.query_params),
                 csv=path_to(request, "/v1/power.csv", {"run_id": number}), sql=sql)  # fmt: skip


def _pictures(engine: Engine, view: Mapping[str, Any]) -> list[Figure]:
    if not view["windows"]:
        return []
    said = [view["run"]["run_id"], view["windows"], view["models"]]
    return [
        without(name(one.title, 120), f"{one.reason[0].upper()}{name(one.reason[1:], 300)}.")
        if one.reason
        else figure(f"power-{one.name}", name(one.title, 120), one.draw, said, description=DESCRIBED[one.name])
        for one in power_pictures.pictures(engine, view)
    ]


def _map(engine: Engine, number: int) -> Figure | None:
    """The heat map of the die; nothing where no thermocouple is on it, and the reason where they make no map."""
    try:
        made = heat_map.heat_map(engine, str(number))
    except NotFoundError:
        return None
    except InputError as error:
        return without("Heat map of the die", str(error))
    found = made.view["heat_map"]
    rows = found["sensors"] if isinstance(found.get("sensors"), list) else []
    columns = columns_of(rows, (), PLACED)
    words = f"{made.title}: {of_map.hot_spot(made.die_map)}."
    return figure("heat", name(made.title, 120), lambda: of_map.picture(made.die_map, made.title, "svg"), found,
                  description=words, notes=[words], rows=rows, columns=columns)  # fmt: skip


def _groups(view: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The windows and coefficients sensor by sensor, with what is said of all of them in words."""
    name_of = {row["sensor_id"]: row["sensor"] or "power" for row in view["windows"]}
    made = []
    for sensor_id, twins in alike(view["windows"]).items():
        windows = [_window(row, view["quality"]) for row in view["windows"] if row["sensor_id"] == sensor_id]
        coefficients = [_coefficient(row) for row in view["coefficients"] if row["sensor_id"] == sensor_id]
        gpu = "" if windows[0]["gpu_index"] is None else f" of GPU {windows[0]['gpu_index']}"
        made.append({
            "title": f"{', '.join(name_of[twin] for twin in twins)}{gpu}", "windows": windows,
            "coefficients": coefficients, "corrected": _corrected(windows), "refused": _refused(windows),
        })  # fmt: skip
    return made


def _window(row: Row, quality: Sequence[Row]) -> dict[str, Any]:
    """A window with its intervals as text, and its own flags."""
    return dict(row) | {
        "beware": " ".join(own_flags(row, quality))[:MOST_FLAGS],
        "corrected_w": interval(row, "corrected_power_w", "corrected_power_low_w", "corrected_power_high_w"),
        "corrected_j": interval(row, "corrected_energy_j", "corrected_energy_low_j", "corrected_energy_high_j"),
    }


def _coefficient(row: Row) -> dict[str, Any]:
    text = interval(row, "coefficient_w_per_c", "coefficient_low", "coefficient_high")
    clock_mhz = None if row["clock_hz"] is None else row["clock_hz"] / 1e6
    return dict(row) | {"text": text, "clock_mhz": clock_mhz, "is_used": "used" if row["used"] else ""}


def _spanned(row: Row) -> dict[str, Any]:
    return dict(row) | {"text": interval(row, "value", "low", "high")}


def _corrected(windows: Sequence[Row]) -> list[str]:
    """Say at which temperature the corrected figures are, and what they are corrected with."""
    return list(dict.fromkeys(
        f"Corrected to {row['reference_temperature_c']:.4g} \u00b0C with "
        f"{interval(row, 'coefficient_w_per_c', 'coefficient_low', 'coefficient_high')} W/\u00b0C; intervals of 95 %."
        for row in windows
        if row["corrected_power_w"] is not None and row["coefficient_w_per_c"] is not None
    ))  # fmt: skip


def _refused(windows: Sequence[Row]) -> list[tuple[str, list[str]]]:
    """Why windows are not corrected, each reason with the windows that it is about."""
    reasons: dict[str, list[str]] = {}
    for row in windows:
        if row["corrected_power_w"] is None:
            reasons.setdefault(row["reason"] or "no reason is stored", []).append(str(row["window"]))
    return list(reasons.items())


def _quality(rows: Sequence[Row], twins: Mapping[Any, Sequence[Any]]) -> list[tuple[Row, list[Row]]]:
    """What to beware of: of each flag of a sensor what is said first, and the rest; of sensors that are alike once."""
    again = {twin for same in twins.values() for twin in same[1:]}
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        if row["sensor_id"] in again:
            continue
        one = found.setdefault((row["flag"], row["message"]), dict(row) | {"windows": []})
        one["windows"] += [f"{row['sensor']}, {row['window']}" if row["window"] else str(row["sensor"] or "the run")]
    by_flag: dict[tuple[str, Any], list[Row]] = {}
    for (flag, _), one in found.items():
        by_flag.setdefault((flag, one["sensor_id"]), []).append(one)
    return [(said[0], said[1:]) for said in by_flag.values()]


def _power(name: str, title: str, kind: str = "number", of: str = "") -> Column:
    return Column(name, title, kind, explain=f"v1_power.{of or name}", where=row_of("item"))


def _fitted(name: str, title: str, of: str = "") -> Column:
    return Column(name, title, "number", explain=f"v1_power_coefficients.{of or name}", where=row_of("item"))


def _model(row: Row) -> str:
    """Return what explains a number of a model of power."""
    name = f"v1_power_models.of_{row['model']}"
    return name if name in specs.computed() else "v1_power_models.value"


WINDOWS = [
    Column("window", "Window", "name", width=40),
    Column("kind", "Kind"),
    _power("duration_s", "s"),
    _power("mean_power_w", "W measured"),
    _power("settled_power_w", "W settled"),
    _power("mean_temperature_c", "\u00b0C"),
    _power("corrected_w", "W corrected", of="corrected_power_w"),
    _power("energy_j", "J measured"),
    _power("corrected_j", "J corrected", of="corrected_energy_j"),
    _power("runtime_energy_j", "J above idle"),
    _power("energy_per_launch_j", "J a launch"),
    Column("beware", "Beware", "flags"),
]
COEFFICIENTS = [
    Column("load", "Load", "name"),
    Column("law", "Law"),
    Column("form", "Form"),
    _fitted("text", "W/\u00b0C", "coefficient_w_per_c"),
    _fitted("range_c", "Seen over (\u00b0C)"),
    _fitted("segments", "Loads"),
    _fitted("clock_mhz", "Clock (MHz)", "clock_hz"),
    Column("is_used", "", "flags"),
    Column("basis", "Rests on"),
    Column("reason", "Why it is refused"),
]
MODELS = [
    Column("model", "Model"),
    Column("quantity", "Quantity"),
    Column("text", "Value and interval", "number", explain=_model, where=row_of("item")),
    Column("unit", "Unit", "name"),
    Column("sensor", "Sensor", "name"),
    Column("window", "Window", "name"),
    Column("form", "Form"),
    Column("flags", "Flags", "flags"),
    Column("reason", "Why not"),
]


def register(app: FastAPI) -> None:
    """Add the route."""
    add_page(app, "/runs/{run}/power", show, "read", name="power_page")
