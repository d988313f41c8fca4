"""``/v1/runs/{run}/power``, ``/heat-map``, ``/rotated`` and ``/v1/components``: power and heat of runs.

A run may be asked for as ``project/name``: where the slash is written as ``%2F`` it belongs to the name of the run, so
that a run may be called ``power`` itself.
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
from profsvc.web import runs
from profsvc.web.answers import success
from profsvc.web.asked import Asked
from profsvc.web.routes import SUCCESS, add, asks, in_path
from profsvc.web.site import answered, grant_of, site_of

if TYPE_CHECKING:
    from profsvc.views.power_pictures import Drawn

COLDEST_C, HOTTEST_C = -60.0, 150.0  # those of the command line
TURN_DEG = 90.0
PICTURES = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["name", "title", "data"],
        "properties": {
            "name": {"type": "string"},
            "title": {"type": "string"},
            "data": {"type": "string", "description": "the bytes of the file, as base64"},
        },
    },
}
_OK: dict[str, Any] = {"ok": {"const": True}, "pictures": PICTURES}
GIVES = {"application/json": {"schema": {**SUCCESS, "properties": _OK}}}
CALIBRATION = asks("calibration", "string", "the run between plates of one temperature")
RC_S = asks("rc_s", "number", "time constant of the chip in s, of logs that begin with the load")
TAKES: dict[str, list[dict[str, Any]]] = {
    "power": [
        asks("reference_temperature", "number", "correct to this temperature, in degrees C", minimum=COLDEST_C,
             maximum=HOTTEST_C),
        asks("host_power", "number", "power of the host in W, taken off what a wall meter read", minimum=0),
        asks("sensor", "string", "only this power sensor, by name or number"),
        asks("temperature_sensor", "string", "the temperature sensor that goes with it, by name or number"),
        asks("offset", "number", "seconds that the clock of the temperature log is ahead of the power log's"),
        asks("draw", "string", "besides the pictures, in this form", enum=["svg", "png", "html"]),
    ],
    "heat-map": [
        asks("minus", "string", "take off the map of this run, such as an idle one"),
        CALIBRATION, RC_S,
        asks("draw", "string", "besides the map as a picture, in this form", enum=["svg", "png"]),
    ],
    "rotated": [
        asks("second", "string", "the run with the spacer turned", required=True),
        asks("angle", "number", f"degrees counter-clockwise, 0 if it was put back; else {TURN_DEG:g}"),
        CALIBRATION, RC_S,
    ],
}  # fmt: skip


def _within(least: float, most: float, text: str) -> float:
    value = float(text)
    if not (math.isfinite(value) and least <= value <= most):
        raise ValueError
    return value


def _number(asked: Asked, name: str, what: str, least: float = -math.inf, most: float = math.inf) -> float | None:
    """Return a number that lies in a range; None where it is not given."""
    kind: Callable[[str], float | None] = partial(_within, least, most)
    return asked.number(name, kind, None, what)


def _rc_s(asked: Asked) -> float | None:
    return _number(asked, "rc_s", "a finite number of s above 0", math.ulp(0.0))


def _drawn(pictures: "Iterable[Drawn]") -> dict[str, Any]:
    return {"pictures": [one._asdict() | {"data": base64.b64encode(one.data).decode("ascii")} for one in pictures]}


def _power(request: Request) -> Response:
    from profsvc.analysis.power import Options
    from profsvc.views import power, power_pictures

    asked, engine = Asked(request), site_of(request).engine
    degrees = f"{COLDEST_C:g} to {HOTTEST_C:g} degrees C"
    options = Options(
        _number(asked, "reference_temperature", degrees, COLDEST_C, HOTTEST_C),
        _number(asked, "host_power", "a finite number of W, not negative", 0.0),
        asked.text("temperature_sensor") or None,
        asked.text("sensor") or None,
        _number(asked, "offset", "a finite number of s"),
    )
    form = asked.among("draw", ("", *power_pictures.FORMS), "")
    asked.done()
    view = power.power(engine, runs.number_of(request, request.path_params["run"]), options)
    return success(request, view | (_drawn(power_pictures.drawn(engine, view, form)) if form else {}))


def _heat_map(request: Request) -> Response:
    from profsvc.reports.heat_map import picture
    from profsvc.views import heat_map
    from profsvc.views.power_pictures import Drawn

    asked = Asked(request)
    minus, calibration = (_other(request, asked.text(name)) for name in ("minus", "calibration"))
    rc_s, form = _rc_s(asked), asked.among("draw", ("", "svg", "png"), "")
    asked.done()
    number = runs.number_of(request, request.path_params["run"])
    made = heat_map.heat_map(site_of(request).engine, number, minus, calibration, rc_s)
    drawn = [Drawn("heat-map", made.title, picture(made.die_map, made.title, form))] if form else []
    return success(request, made.view | (_drawn(drawn) if form else {}))


def _rotated(request: Request) -> Response:
    from profsvc.views import heat_map

    asked = Asked(request)
    second = runs.number_of(request, asked.needed("second", runs.RUN))
    calibration, rc_s = _other(request, asked.text("calibration")), _rc_s(asked)
    angle = _number(asked, "angle", "a finite number of degrees")
    asked.done()
    number = runs.number_of(request, request.path_params["run"])
    turned = TURN_DEG if angle is None else angle
    return success(request, heat_map.rotated(site_of(request).engine, number, second, turned, calibration, rc_s))


def _other(request: Request, run: str) -> int | None:
    return runs.number_of(request, run) if run else None


def _components(request: Request) -> Response:
    from profsvc.views import power_components

    asked, project = Asked(request), grant_of(request).project
    device = asked.text("device") or None
    asked.done()
    if project is not None:
        raise AccessError(f"components are fitted over all projects, and the token is for {project!r} alone")
    return success(request, power_components.components(site_of(request).engine, device))


async def _in_turn(work: Callable[[Request], Response], request: Request) -> Response:
    """Work in a thread, few at once: some of it is computed anew for the request."""
    async with site_of(request).asking.turn():
        return await answered(work, request)


def _of_run(word: str, work: Callable[[Request], Response], says: str) -> Callable[[Request], Awaitable[Response]]:
    async def answered(request: Request) -> Response:
        if not request.scope.get("raw_path", b"").endswith(b"/" + word.encode()):
            request.path_params["run"] += f"/{word}"  # the slash was written as a part of the name
            return await runs.run(request)
        return await _in_turn(work, request)

    answered.__doc__ = says
    return answered


async def components(request: Request) -> Response:
    """What each unit of a device draws, fitted to all kernels with a power and counters."""
    return await _in_turn(_components, request)


def register(app: FastAPI) -> None:
    """Add the routes; they come before the one of a run, whose name may hold anything."""
    for word, work, says in (
        ("power", _power, "Power and energy of a run, window by window, as measured and at one temperature."),
        ("heat-map", _heat_map, "The thermocouples on the die of a run as a map, once they have settled."),
        ("rotated", _rotated, "Whether a run and one with the spacer turned show the same chip."),
    ):
        path = in_path("run", runs.RUN, "h200")
        add(app, f"/v1/runs/{{run:path}}/{word}", _of_run(word, work, says), "read",
            name=f"show_{word.replace('-', '_')}", takes=[path, *TAKES[word]], gives=GIVES, tag="runs")  # fmt: skip
    device = asks("device", "string", "device by name; needed where power was measured on several")
    add(app, "/v1/components", components, "read", name="fit_components", takes=[device], tag="runs")
