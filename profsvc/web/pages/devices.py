"""``/devices`` and ``/devices/{name}``: specifications with their sources, and characterizations."""

from functools import partial
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc import store, views
from profsvc.reports.plots import characterization as characterization_plots
from profsvc.views import device as device_view
from profsvc.web.http.request_args import RequestArgs
from profsvc.web.http.routes import add_page
from profsvc.web.http.state import app_state, grant_of
from profsvc.web.pages.rendering.figures import figure
from profsvc.web.pages.rendering.filters import si
from profsvc.web.pages.rendering.page import Links, page, path_to
from profsvc.web.pages.rendering.tables import Column, Row


def _device_path(row: Row) -> str:
    return f"/devices/{row['name']}"


def _device_of_row(row: Row) -> dict[str, Any]:
    """Return the device of a row, for the source of its values."""
    return {"device": row["name"]}


STORED_COLUMNS = (
    Column("name", "device", "name", link=_device_path),
    Column("compute_capability", "compute capability", "number", "v1_devices.compute_capability"),
    Column("sms", "SMs", "number", "sm_count"),
)
CATALOGUE_COLUMNS = (
    Column("name", "device", "name", link=_device_path),
    *(
        Column(name, title, "number", f"device.{figure}", _device_of_row)
        for name, title, figure in (
            ("compute_capability", "compute capability", "compute_capability"),
            ("sms", "SMs", "sms"),
            ("boost_clock_ghz", "boost clock (GHz)", "boost_clock_hz"),
            ("dram_peak_gb_per_s", "DRAM (GB/s)", "dram_peak_bytes_per_s"),
            ("tdp_w", "power limit (W)", "tdp_w"),
        )
    ),
)
FIGURE_COLUMNS = (
    Column("title", "specification"),
    Column("said", "value", "number", lambda row: f"device.{row['figure']}", _device_of_row),
    Column("source", "source"),
)
COST_COLUMNS = (
    Column("title", "operation"),
    Column("cycles", "cycles at saturation", "number", "device.cycles"),
    Column("meaning", "meaning"),
    Column("spread", "spread", "number", "device.spread"),
    Column("repeats", "repeats", "number", "device.repeats"),
    Column("method", "method"),
)
MEASURED_COLUMNS = (
    Column("title", "figure"),
    Column("x", "at", "number", "v1_characterizations.x"),
    Column("said", "value", "number", "v1_characterizations.y"),
    Column("spread", "spread", "number", "device.spread"),
    Column("repeats", "repeats", "number", "device.repeats"),
    Column("method", "how, or what the place is"),
)
POINT_COLUMNS = (
    Column("x", "x", "number", "v1_characterizations.x"),
    Column("y", "share of peak", "number", "v1_characterizations.y"),
    Column("method", "method"),
    Column("line", "line", "number", "v1_characterizations.line"),
)


def show_devices(request: Request) -> Response:
    """Show the devices."""
    RequestArgs(request).reject_unknown()
    engine, grant = app_state(request).engine, grant_of(request)
    # The list of devices covers all projects.
    stored = [row for row in views.devices(engine) if row["name"]] if grant.project is None else []
    links = Links(path_to(request, "/v1/devices"), path_to(request, "/v1/devices.csv"), "select * from v1_devices")
    return page(
        request,
        "devices.html",
        "Devices",
        links=links,
        stored=stored,
        catalogue=views.catalogue(),
        sees_all_projects=grant.project is None,
        tables={"stored": STORED_COLUMNS, "catalogue": CATALOGUE_COLUMNS},
    )


def show_device(request: Request) -> Response:
    """Show a device."""
    RequestArgs(request).reject_unknown()
    name = request.path_params["name"]
    view = device_view.device(app_state(request).engine, name, grant_of(request).project)
    curves = [
        figure(
            f"curve{place}", f"{curve['title']}: {curve['meaning']}",
            partial(characterization_plots.draw, curve), curve, rows=curve["rows"], columns=POINT_COLUMNS,
            description=f"Measured share of peak; saturated at {curve['saturated']:.3g}, valid from {curve['low']:.4g} "
            f"to {curve['high']:.4g}.",
        )
        for place, curve in enumerate(view["curves"])
    ]  # fmt: skip
    query = {"device": name}
    links = Links(
        path_to(request, "/v1/characterizations", query), path_to(request, "/v1/characterizations.csv", query),
        f"select * from v1_characterizations where device = {store.quote_literal(name)}",
    )  # fmt: skip
    rows = [row | {"said": si(row["value"], row["unit"]), "name": name} for row in view["figures"]]
    measured = [row | {"said": si(row["value"], row["unit"])} for row in view["measured"]]
    return page(request, "device.html", name, links=links, view=view, curves=curves, figures=rows, measured=measured,
                tables={"figures": FIGURE_COLUMNS, "costs": COST_COLUMNS, "measured": MEASURED_COLUMNS})  # fmt: skip


def register(app: FastAPI) -> None:
    """Add the routes."""
    add_page(app, "/devices", show_devices, "read", name="devices_page")
    add_page(app, "/devices/{name:path}", show_device, "read", name="device_page")
