"""``/v1/runs/{run}/power``, ``/thermal``, ``/unit-power``, ``/sm-counts``, ``/heat-map``, ``/rotated``; components.

A run can be given as ``project/name``. A slash written as ``%2F`` is part of the name of the run, so that a run may be
named ``power``.
"""

import base64
import math
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc.errors import AccessError
from profsvc.web.api import runs
from profsvc.web.http.request_args import RequestArgs
from profsvc.web.http.responses import success
from profsvc.web.http.routes import SUCCESS_SCHEMA, add_route, path_param, query_param
from profsvc.web.http.state import app_state, grant_of, in_worker_thread

if TYPE_CHECKING:
    from profsvc.views.power.plots import Drawn

MIN_REFERENCE_C, MAX_REFERENCE_C = -60.0, 150.0  # as on the command line
DEFAULT_ROTATION_DEG = 90.0
PICTURES_SCHEMA = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["name", "title", "data"],
        "properties": {
            "name": {"type": "string"},
            "title": {"type": "string"},
            "data": {"type": "string", "description": "content of the file as base64"},
        },
    },
}
_RESPONSE_PROPERTIES: dict[str, Any] = {"ok": {"const": True}, "pictures": PICTURES_SCHEMA}
RESPONSE_CONTENT = {"application/json": {"schema": {**SUCCESS_SCHEMA, "properties": _RESPONSE_PROPERTIES}}}
CALIBRATION_PARAMETER = query_param("calibration", "string", "calibration run between plates of one temperature")
RC_PARAMETER = query_param("rc_s", "number", "time constant of the chip in s, for logs that start with the load")
PARAMETERS: dict[str, list[dict[str, Any]]] = {
    "power": [
        query_param(
            "reference_temperature",
            "number",
            "correct to this temperature, in degrees C",
            minimum=MIN_REFERENCE_C,
            maximum=MAX_REFERENCE_C,
        ),
        query_param("host_power", "number", "power of the host in W, subtracted from a wall meter", minimum=0),
        query_param("sensor", "string", "only this power sensor, by name or number"),
        query_param("temperature_sensor", "string", "its temperature sensor, by name or number"),
        query_param(
            "offset", "number", "seconds by which the clock of the temperature log is ahead of that of the power log"
        ),
        query_param("draw", "string", "also return the plots in this format", enum=["svg", "png", "html"]),
    ],
    "power-series": [
        query_param("sensor", "string", "only this power sensor, by name or number"),
        query_param("from", "number", "first second; default: the begin of the log"),
        query_param("to", "number", "last second; default: the end of the log"),
    ],
    "unit-power": [],
    "sm-counts": [
        query_param("sensor", "string", "only this power sensor, by name or number"),
        query_param("kernel", "string", "a launch on fewer SMs by the models, by number or (part of) a kernel's name"),
    ],
    "heat-map": [
        query_param("minus", "string", "subtract the map of this run, for example an idle one"),
        CALIBRATION_PARAMETER,
        RC_PARAMETER,
        query_param("draw", "string", "also return the map as an image in this format", enum=["svg", "png"]),
    ],
    "thermal": [
        query_param("load", "number", "board power of each load in W; repeatable"),
        query_param("duration", "number", "duration of each load in s; repeatable"),
        query_param("start", "number", "temperature at the start in degrees C; default: the idle board"),
        query_param("limit", "number", "temperature whose time is wanted, in degrees C"),
        query_param("draw", "string", "also return the figure in this format", enum=["svg", "png"]),
    ],
    "rotated": [
        query_param("second", "string", "the run with the rotated spacer", required=True),
        query_param(
            "angle",
            "number",
            f"degrees counter-clockwise, 0 if it was only remounted; default: {DEFAULT_ROTATION_DEG:g}",
        ),
        CALIBRATION_PARAMETER,
        RC_PARAMETER,
    ],
}

CORES_PARAMETERS = [
    query_param("run", "string", "run with the tag cores, such as 0-7-1-8; repeatable", required=True),
    query_param("idle", "string", "idle run with the thermocouples on the die"),
    CALIBRATION_PARAMETER,
    RC_PARAMETER,
    query_param("tpcs", "integer", "clusters of the device; SM k is in cluster k mod this; default: 7"),
    query_param("active", "integer", "find so many cores with the coolest predicted hot spot"),
]


def _parse_in_range(least: float, most: float, text: str) -> float:
    value = float(text)
    if not (math.isfinite(value) and least <= value <= most):
        raise ValueError
    return value


def _number_in_range(
    args: RequestArgs, name: str, what: str, least: float = -math.inf, most: float = math.inf
) -> float | None:
    """Return a number in a range; None if it is missing."""
    kind: Callable[[str], float | None] = partial(_parse_in_range, least, most)
    return args.number(name, kind, None, what)


def _rc_s(args: RequestArgs) -> float | None:
    return _number_in_range(args, "rc_s", "a finite number of s above 0", math.ulp(0.0))


def _encode_pictures(pictures: "Iterable[Drawn]") -> dict[str, Any]:
    return {"pictures": [one._asdict() | {"data": base64.b64encode(one.data).decode("ascii")} for one in pictures]}


def _answer_power(request: Request) -> Response:
    from profsvc.analysis.power.options import Options
    from profsvc.views.power import plots as power_plots
    from profsvc.views.power import run_power as power_view

    args, engine = RequestArgs(request), app_state(request).engine
    degrees = f"{MIN_REFERENCE_C:g} to {MAX_REFERENCE_C:g} degrees C"
    options = Options(
        _number_in_range(args, "reference_temperature", degrees, MIN_REFERENCE_C, MAX_REFERENCE_C),
        _number_in_range(args, "host_power", "a finite number of W, not negative", 0.0),
        args.text("temperature_sensor") or None,
        args.text("sensor") or None,
        _number_in_range(args, "offset", "a finite number of s"),
    )
    form = args.choice("draw", ("", *power_plots.FORMS), "")
    args.reject_unknown()
    view = power_view.power(engine, runs.run_id_of(request, request.path_params["run"]), options)
    return success(request, view | (_encode_pictures(power_plots.drawn(engine, view, form)) if form else {}))


def _answer_power_series(request: Request) -> Response:
    from profsvc.views.power import plots as power_plots

    args = RequestArgs(request)
    sensor = args.text("sensor") or None
    span_s = (
        _number_in_range(args, "from", "a finite number of s"),
        _number_in_range(args, "to", "a finite number of s"),
    )
    args.reject_unknown()
    number = runs.run_id_of(request, request.path_params["run"])
    return success(request, power_plots.series(app_state(request).engine, number, sensor, span_s))


def _answer_unit_power(request: Request) -> Response:
    from profsvc.views.power import components

    RequestArgs(request).reject_unknown()
    number = runs.run_id_of(request, request.path_params["run"])
    return success(request, components.unit_powers(app_state(request).engine, number))


def _answer_sm_counts(request: Request) -> Response:
    from profsvc.views.power import sm_counts

    args, engine = RequestArgs(request), app_state(request).engine
    sensor, kernel = args.text("sensor") or None, args.text("kernel") or None
    args.reject_unknown()
    number = runs.run_id_of(request, request.path_params["run"])
    view = sm_counts.launch_sm_counts(engine, number, kernel) if kernel else sm_counts.sm_counts(engine, number, sensor)
    return success(request, view)


def _answer_heat_map(request: Request) -> Response:
    from profsvc.reports.plots.heat_map import picture
    from profsvc.views.power import heat_map
    from profsvc.views.power.plots import Drawn

    args = RequestArgs(request)
    minus, calibration = (_other_run(request, args.text(name)) for name in ("minus", "calibration"))
    rc_s, form = _rc_s(args), args.choice("draw", ("", "svg", "png"), "")
    args.reject_unknown()
    number = runs.run_id_of(request, request.path_params["run"])
    made = heat_map.heat_map(app_state(request).engine, number, minus, calibration, rc_s)
    drawn = [Drawn("heat-map", made.title, picture(made.die_map, made.title, form))] if form else []
    return success(request, made.view | (_encode_pictures(drawn) if form else {}))


def _answer_rotated(request: Request) -> Response:
    from profsvc.views.power import heat_map

    args = RequestArgs(request)
    second = runs.run_id_of(request, args.required("second", runs.RUN_DESCRIPTION))
    calibration, rc_s = _other_run(request, args.text("calibration")), _rc_s(args)
    angle = _number_in_range(args, "angle", "a finite number of degrees")
    args.reject_unknown()
    number = runs.run_id_of(request, request.path_params["run"])
    turned = DEFAULT_ROTATION_DEG if angle is None else angle
    return success(request, heat_map.rotated(app_state(request).engine, number, second, turned, calibration, rc_s))


def plan_of(args: RequestArgs) -> dict[str, Any]:
    """Return the plan of loads that a request asks for."""
    return {
        "load": args.numbers("load", "W"),
        "duration": args.numbers("duration", "s"),
        "start": _number_in_range(args, "start", "a finite number of degrees C"),
        "limit": _number_in_range(args, "limit", "a finite number of degrees C"),
    }


def _answer_thermal(request: Request) -> Response:
    from profsvc.views.power import thermal
    from profsvc.views.power.plots import Drawn

    args = RequestArgs(request)
    plan, form = plan_of(args), args.choice("draw", ("", "svg", "png"), "")
    args.reject_unknown()
    number = runs.run_id_of(request, request.path_params["run"])
    view = thermal.thermal(app_state(request).engine, number, **plan)
    drawn = [Drawn("thermal", thermal.title(view), thermal.drawn(view, form))] if form else []
    return success(request, view | (_encode_pictures(drawn) if form else {}))


def _other_run(request: Request, run: str) -> int | None:
    return runs.run_id_of(request, run) if run else None


def _answer_components(request: Request) -> Response:
    from profsvc.views.power import components as power_components

    args, project = RequestArgs(request), grant_of(request).project
    device = args.text("device") or None
    args.reject_unknown()
    if project is not None:
        raise AccessError(f"components are fitted over all projects, but your token is limited to {project!r}")
    return success(request, power_components.components(app_state(request).engine, device))


def _answer_cores(request: Request) -> Response:
    from profsvc.views.power import cores

    args = RequestArgs(request)
    given = args.texts("run")
    others = {name: _other_run(request, args.text(name)) for name in ("idle", "calibration")}
    active = args.count("active", 1, cores.MAX_RUNS) if args.text("active") else None
    tpcs, rc_s = args.count("tpcs", 7, 10_000), _rc_s(args)
    args.reject_unknown()
    cores.check(given, tpcs, active)
    numbers = [runs.run_id_of(request, name) for name in given]
    return success(
        request, cores.cores(app_state(request).engine, numbers, **others, tpcs=tpcs, active=active, rc_s=rc_s)
    )


async def _in_limited_thread(work: Callable[[Request], Response], request: Request) -> Response:
    """Run in a thread within the query limit, because some results are computed on request."""
    return await in_worker_thread(work, request, app_state(request).long_limit)


def _run_handler(word: str, work: Callable[[Request], Response], says: str) -> Callable[[Request], Awaitable[Response]]:
    async def in_worker_thread(request: Request) -> Response:
        if not request.scope.get("raw_path", b"").endswith(b"/" + word.encode()):
            request.path_params["run"] += f"/{word}"  # the slash is part of the name
            return await runs.get_run(request)
        return await _in_limited_thread(work, request)

    in_worker_thread.__doc__ = says
    return in_worker_thread


async def get_cores(request: Request) -> Response:
    """Runs with known active cores: each core alone, cores of one cluster, and power against temperature of sets."""
    return await _in_limited_thread(_answer_cores, request)


async def get_components(request: Request) -> Response:
    """Power of each unit of a device, fitted to all kernels with power and counters."""
    return await _in_limited_thread(_answer_components, request)


def register(app: FastAPI) -> None:
    """Add the routes, before that of a run, whose name may contain anything."""
    for word, work, says in (
        ("power", _answer_power, "Power and energy of a run by window, as measured and corrected to one temperature."),
        ("thermal", _answer_thermal, "Temperature of the board of a run under planned loads."),
        ("power-series", _answer_power_series, "Power and temperature over time, against SMs, and work per joule."),
        ("unit-power", _answer_unit_power, "Power of each unit for the kernels of a run, beside the measured power."),
        ("sm-counts", _answer_sm_counts, "Power, work per joule and energy saved on several numbers of SMs."),
        ("heat-map", _answer_heat_map, "Heat map of the die of a run from its thermocouples in steady state."),
        ("rotated", _answer_rotated, "Whether a run and one with a rotated spacer agree."),
    ):
        path = path_param("run", runs.RUN_DESCRIPTION, "h200")
        add_route(
            app,
            f"/v1/runs/{{run:path}}/{word}",
            _run_handler(word, work, says),
            "read",
            name=f"show_{word.replace('-', '_')}",
            takes=[path, *PARAMETERS[word]],
            gives=RESPONSE_CONTENT,
            tag="runs",
        )
    device = query_param("device", "string", "device by name; required if power was measured on several")
    add_route(app, "/v1/cores", get_cores, "read", name="compare_cores", takes=CORES_PARAMETERS, tag="runs")
    add_route(app, "/v1/components", get_components, "read", name="fit_components", takes=[device], tag="runs")
