"""``/runs/{run}/power``: power and temperature over time, and windows as measured and corrected."""

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI
from sqlalchemy import Engine
from starlette.requests import Request
from starlette.responses import Response

from profsvc import specs, store
from profsvc.analysis.power.components import MODEL as COMPONENTS
from profsvc.analysis.power.options import Options
from profsvc.errors import InputError, NotFoundError, UsageError
from profsvc.reports.plots import heat_map as heat_map_plot
from profsvc.reports.text.models.values import interval
from profsvc.reports.text.power.run_power import alike, own_flags
from profsvc.views.power import components, heat_map, thermal
from profsvc.views.power import plots as power_plots
from profsvc.views.power import run_power as power_view
from profsvc.web.api.power import plan_of
from profsvc.web.http.request_args import RequestArgs
from profsvc.web.http.routes import add_page
from profsvc.web.http.state import app_state
from profsvc.web.pages.rendering import power_tables
from profsvc.web.pages.rendering.figures import SVG_MEDIA_TYPE, Figure, figure, live_figure, missing_figure
from profsvc.web.pages.rendering.filters import name
from profsvc.web.pages.rendering.page import Links, find_run_id, page, path_to
from profsvc.web.pages.rendering.tables import Column, Row, plain_columns, row_reference

HEAT_MAP_MODEL = "heat_map"
MODELS_SHOWN_ABOVE = (HEAT_MAP_MODEL, COMPONENTS)
MAX_FLAG_CHARS = 400
PLAN = "plan"
"""The name of the figure of planned loads."""
# Column of the thermocouple table -> its explanation.
SENSOR_EXPLANATIONS = {"x_mm": "figure.place_mm", "y_mm": "figure.place_mm", "temperature": "figure.temperature_c"}
ALT_TEXTS = {
    "time": "Power, corrected power and temperature over time, with the kernels and loads below. The table of "
    "windows has "
    "the means.",
    "sms": "Power against the number of active SMs, one line per load.",
    "per-watt": "Work per joule against the number of active SMs, relative to the best.",
}


def show_power(request: Request) -> Response:
    """Show the power of a run: all sensors or one."""
    args, engine = RequestArgs(request), app_state(request).engine
    sensor, plan, drawn = args.text("sensor"), plan_of(args), args.text("figure")
    args.reject_unknown()
    number = find_run_id(request, request.path_params["run"])
    info = store.select(engine, "v1_runs", run_id=number)[0]
    map_of_die = _heat_map_figure(engine, number)
    try:
        view = power_view.power(engine, number, Options(sensor=sensor or None))
    except NotFoundError:
        if map_of_die is None or sensor:
            raise
        view = {"run": info, "stored": True, "windows": [], "coefficients": [], "models": [], "quality": []}
    if not view["stored"]:
        view |= {key: _without_row_numbers(view[key]) for key in ("windows", "coefficients", "models", "quality")}
    if drawn:
        return Response(_drawn(engine, view, plan, drawn), media_type=SVG_MEDIA_TYPE)
    sensors = store.select(engine, "v1_sensors", run_id=number, quantity="power")
    return page(
        request,
        "runs/power.html",
        f"Power of run {name(info['name'], 60)}",
        links=_links(request, number, bool(sensors)),
        run=info,
        view=view,
        sensor=sensor,
        sensors=list(dict.fromkeys(str(one["name"]) for one in sensors)),
        pictures=_power_figures(request, engine, view, sensor),
        map_of_die=map_of_die,
        planned=_planned(request, engine, number, plan) if view["windows"] else None,
        plan={field: _as_text(value) for field, value in plan.items()},
        answer_columns=ANSWER_COLUMNS,
        check_columns=CHECK_COLUMNS,
        groups=_sensor_groups(view),
        quality=_quality_warnings(view["quality"], alike(view["windows"])),
        models=[_with_interval(row) for row in view["models"] if row["model"] not in MODELS_SHOWN_ABOVE],
        units=power_tables.unit_power_table(components.by_kernel(view["models"])),
        sm_counts=power_tables.sm_count_table(view),
        model_columns=MODEL_COLUMNS,
        heat=[_with_interval(row) for row in view["models"] if row["model"] == HEAT_MAP_MODEL],
        window_columns=WINDOW_COLUMNS,
        coefficient_columns=COEFFICIENT_COLUMNS,
    )


def _without_row_numbers(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return rows without row numbers: they were computed for the page and are not stored."""
    return [dict(row) | {"item": None} for row in rows]


def _links(request: Request, number: int, has_power: bool) -> Links:
    if not has_power:
        sql = f"select * from v1_power_models where run_id = {number} and model = '{HEAT_MAP_MODEL}'"
        return Links(json=path_to(request, f"/v1/runs/id:{number}/heat-map"), sql=sql)
    sql = (
        f'select "window", sensor, mean_power_w, corrected_power_w, corrected_power_low_w, corrected_power_high_w, '
        f"energy_j, corrected_energy_j, quality, reason\nfrom v1_power where run_id = {number}"
    )
    sensor = request.query_params.get("sensor")
    return Links(json=path_to(request, f"/v1/runs/id:{number}/power", {"sensor": sensor} if sensor else {}),
                 csv=path_to(request, "/v1/power.csv", {"run_id": number}), sql=sql)  # fmt: skip


def _power_figures(request: Request, engine: Engine, view: Mapping[str, Any], sensor: str) -> list[Figure]:
    if not view["windows"]:
        return []
    source = path_to(request, f"/v1/runs/id:{view['run']['run_id']}/power-series", {"sensor": sensor})
    own = f"/runs/{view['run']['run_id']}/power"
    return [
        missing_figure(name(one.title, 120), f"{one.reason[0].upper()}{name(one.reason[1:], 300)}.")
        if one.reason
        else live_figure(name(one.title, 120), f"power-{one.name}", source,
                         path_to(request, own, {"sensor": sensor, "figure": one.name}),
                         description=ALT_TEXTS[one.name])
        for one in power_plots.pictures(engine, view)
    ]  # fmt: skip


def _drawn(engine: Engine, view: Mapping[str, Any], plan: Mapping[str, Any], wanted: str) -> bytes:
    """Return a figure of the page as SVG, for a browser without script."""
    if wanted == PLAN:
        return thermal.drawn(thermal.thermal(engine, view["run"]["run_id"], **plan), "svg")
    found = {one.name: one for one in power_plots.pictures(engine, view)}
    if wanted not in found:
        raise NotFoundError.near("figure", wanted, [*found, PLAN])
    if found[wanted].reason:
        raise NotFoundError(found[wanted].reason)
    return found[wanted].draw()


def _as_text(value: Sequence[float] | float | None) -> str:
    """Return what a field of the plan shows."""
    if value is None:
        return ""
    return f"{value:g}" if isinstance(value, float) else ",".join(f"{one:g}" for one in value)


def _planned(request: Request, engine: Engine, number: int, plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return the temperature under planned loads with its figure, or why it cannot be predicted."""
    try:
        view = thermal.thermal(engine, number, **plan)
    except (InputError, UsageError) as error:
        return {"reason": str(error)}
    answers = [_with_interval(row) for row in view["answers"]]
    peak = next(row["text"] for row in answers if row["quantity"] == "peak_temperature_c")
    words = f"{name(thermal.title(view), 120)}: peak {peak} \u00b0C. Its figures are in the table below."
    asked = [(key, value) for key, value in request.query_params.multi_items() if key in plan]
    drawn = live_figure(
        thermal.title(view), "thermal", path_to(request, f"/v1/runs/id:{number}/thermal", asked),
        path_to(request, f"/runs/{number}/power", [*asked, ("figure", PLAN)]), description=words,
    )  # fmt: skip
    return view | {"figure": drawn, "answers": answers, "reason": ""}


def _heat_map_figure(engine: Engine, number: int) -> Figure | None:
    """Return the heat map of the die, or the reason why there is none; None without thermocouples."""
    try:
        made = heat_map.heat_map(engine, str(number))
    except NotFoundError:
        return None
    except InputError as error:
        return missing_figure("Heat map of the die", str(error))
    found = made.view["heat_map"]
    rows = found["sensors"] if isinstance(found.get("sensors"), list) else []
    columns = plain_columns(rows, (), SENSOR_EXPLANATIONS)
    words = f"{made.title}: {heat_map_plot.hot_spot(made.die_map)}."
    return figure("heat", name(made.title, 120), lambda: heat_map_plot.picture(made.die_map, made.title, "svg"), found,
                  description=words, notes=[words], rows=rows, columns=columns)  # fmt: skip


def _sensor_groups(view: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return windows and coefficients grouped by sensor, with notes on the correction."""
    name_of = {row["sensor_id"]: row["sensor"] or "power" for row in view["windows"]}
    made = []
    for sensor_id, twins in alike(view["windows"]).items():
        windows = [_window_row(row, view["quality"]) for row in view["windows"] if row["sensor_id"] == sensor_id]
        coefficients = [_coefficient_row(row) for row in view["coefficients"] if row["sensor_id"] == sensor_id]
        gpu = "" if windows[0]["gpu_index"] is None else f" of GPU {windows[0]['gpu_index']}"
        made.append(
            {
                "title": f"{', '.join(name_of[twin] for twin in twins)}{gpu}",
                "windows": windows,
                "coefficients": coefficients,
                "corrected": _corrections(windows),
                "refused": _uncorrected_reasons(windows),
            }
        )
    return made


def _window_row(row: Row, quality: Sequence[Row]) -> dict[str, Any]:
    """Return a window with its intervals as text, and its flags."""
    return dict(row) | {
        "warnings": " ".join(own_flags(row, quality))[:MAX_FLAG_CHARS],
        "corrected_w": interval(row, "corrected_power_w", "corrected_power_low_w", "corrected_power_high_w"),
        "corrected_j": interval(row, "corrected_energy_j", "corrected_energy_low_j", "corrected_energy_high_j"),
    }


def _coefficient_row(row: Row) -> dict[str, Any]:
    text = interval(row, "coefficient_w_per_c", "coefficient_low", "coefficient_high")
    clock_mhz = None if row["clock_hz"] is None else row["clock_hz"] / 1e6
    return dict(row) | {"text": text, "clock_mhz": clock_mhz, "is_used": "used" if row["used"] else ""}


def _with_interval(row: Row) -> dict[str, Any]:
    return dict(row) | {"text": interval(row, "value", "low", "high")}


def _corrections(windows: Sequence[Row]) -> list[tuple[str, list[str]]]:
    """Return reference temperatures and coefficients of the correction, each with its windows."""
    found: dict[str, list[str]] = {}
    for row in windows:
        if row["corrected_power_w"] is not None and row["coefficient_w_per_c"] is not None:
            text = (
                f"Corrected to {row['reference_temperature_c']:.4g} \u00b0C with "
                f"{interval(row, 'coefficient_w_per_c', 'coefficient_low', 'coefficient_high')} W/\u00b0C"
            )
            found.setdefault(text, []).append(str(row["window"]))
    return list(found.items())


def _uncorrected_reasons(windows: Sequence[Row]) -> list[tuple[str, list[str]]]:
    """Return the reasons why windows are not corrected, each with its windows."""
    reasons: dict[str, list[str]] = {}
    for row in windows:
        if row["corrected_power_w"] is None:
            reasons.setdefault(row["reason"] or "no reason stored", []).append(str(row["window"]))
    return list(reasons.items())


def _quality_warnings(rows: Sequence[Row], twins: Mapping[Any, Sequence[Any]]) -> list[tuple[Row, list[Row]]]:
    """Return data-quality warnings grouped by flag and sensor: the first and the others; identical sensors once."""
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
    return [(warnings[0], warnings[1:]) for warnings in by_flag.values()]


def _power_column(name: str, title: str, kind: str = "number", of: str = "") -> Column:
    return Column(name, title, kind, explain=f"v1_power.{of or name}", where=row_reference("item"))


def _coefficient_column(name: str, title: str, of: str = "") -> Column:
    return Column(name, title, "number", explain=f"v1_power_coefficients.{of or name}", where=row_reference("item"))


def _model_explanation(row: Row) -> str:
    """Return what explains a number of a power model."""
    name = f"v1_power_models.of_{row['model']}"
    return name if name in specs.computed() else "v1_power_models.value"


WINDOW_COLUMNS = [
    Column("window", "Window", "name", width=40),
    Column("kind", "Kind"),
    _power_column("duration_s", "Duration (s)"),
    _power_column("mean_power_w", "Measured (W)"),
    _power_column("settled_power_w", "Settled (W)"),
    _power_column("mean_temperature_c", "Temperature (\u00b0C)"),
    _power_column("corrected_w", "Corrected (W)", of="corrected_power_w"),
    _power_column("energy_j", "Measured (J)"),
    _power_column("corrected_j", "Corrected (J)", of="corrected_energy_j"),
    _power_column("runtime_energy_j", "Above idle (J)"),
    _power_column("energy_per_launch_j", "J per launch"),
    Column("warnings", "Warnings", "flags"),
]
COEFFICIENT_COLUMNS = [
    Column("load", "Load", "name"),
    Column("law", "Law"),
    Column("form", "Form"),
    _coefficient_column("text", "Coefficient (W/\u00b0C)", "coefficient_w_per_c"),
    _coefficient_column("range_c", "Temperature range (\u00b0C)"),
    _coefficient_column("segments", "Loads"),
    _coefficient_column("clock_mhz", "Clock (MHz)", "clock_hz"),
    Column("is_used", "Used", "flags"),
    Column("basis", "Basis"),
    Column("reason", "Reason for rejection"),
]
MODEL_COLUMNS = [
    Column("model", "Model"),
    Column("quantity", "Quantity"),
    Column("text", "Value [95 % interval]", "number", explain=_model_explanation, where=row_reference("item")),
    Column("unit", "Unit", "unit"),
    Column("sensor", "Sensor", "name"),
    Column("window", "Window", "name"),
    Column("form", "Form"),
    Column("flags", "Flags", "flags"),
    Column("reason", "Reason"),
]
ANSWER_COLUMNS = [
    Column("quantity", "Quantity"),
    Column("text", "Value [95 % interval]", "number", explain="figure.planned"),
    Column("unit", "Unit", "unit"),
    Column("flags", "Flags", "flags"),
    Column("reason", "Reason"),
]
CHECK_COLUMNS = [
    Column("window", "Load", "name"),
    Column("power_w", "Power (W)", "number", explain="v1_power.settled_power_w"),
    Column("duration_s", "Duration (s)", "number", explain="v1_power.duration_s"),
    Column("highest_temperature_c", "Measured (\u00b0C)", "number", explain="v1_power.highest_temperature_c"),
    Column("predicted_c", "Predicted (\u00b0C)", "number", explain="figure.left_out"),
    Column("error_c", "Error (\u00b0C)", "number", explain="figure.left_out"),
]


def register(app: FastAPI) -> None:
    """Add the route."""
    add_page(app, "/runs/{run}/power", show_power, "read", name="power_page", heavy=True)
