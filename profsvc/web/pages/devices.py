"""``/devices`` and ``/devices/{name}``: what is known of each device, with its source, and what was measured of it."""

from functools import partial
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc import store, views
from profsvc.reports import characterization_plots
from profsvc.views import device as about
from profsvc.web.asked import Asked
from profsvc.web.pages.figures import figure
from profsvc.web.pages.frame import Links, page, path_to
from profsvc.web.pages.tables import Column, Row
from profsvc.web.pages.words import si
from profsvc.web.routes import add_page
from profsvc.web.site import grant_of, site_of


def _path(row: Row) -> str:
    return f"/devices/{row['name']}"


def _of_device(row: Row) -> dict[str, Any]:
    """The device that a figure is of, for its source."""
    return {"device": row["name"]}


STORED = (
    Column("name", "device", "name", link=_path),
    Column("compute_capability", "compute capability", "number", "v1_devices.compute_capability"),
    Column("sms", "SMs", "number", "sm_count"),
)
CATALOGUE = (
    Column("name", "device", "name", link=_path),
    *(
        Column(name, title, "number", f"device.{figure}", _of_device)
        for name, title, figure in (
            ("compute_capability", "compute capability", "compute_capability"),
            ("sms", "SMs", "sms"),
            ("boost_clock_ghz", "boost clock (GHz)", "boost_clock_hz"),
            ("dram_peak_gb_per_s", "DRAM (GB/s)", "dram_peak_bytes_per_s"),
            ("tdp_w", "power limit (W)", "tdp_w"),
        )
    ),
)
FIGURES = (
    Column("title", "figure"),
    Column("said", "value", "number", lambda row: f"device.{row['figure']}", _of_device),
    Column("source", "source"),
)
COSTS = (
    Column("title", "operation"),
    Column("cycles", "cycles at saturation", "number", "device.cycles"),
    Column("meaning", "which is"),
    Column("repeats", "repeats", "number", "device.repeats"),
    Column("method", "how it was measured"),
)
POINTS = (
    Column("x", "x", "number", "v1_characterizations.x"),
    Column("y", "share of the peak", "number", "v1_characterizations.y"),
    Column("method", "how"),
    Column("line", "line", "number", "v1_characterizations.line"),
)


def devices(request: Request) -> Response:
    """Show the devices."""
    Asked(request).done()
    engine, grant = site_of(request).engine, grant_of(request)
    # The table of devices tells of every project.
    stored = [row for row in views.devices(engine) if row["name"]] if grant.project is None else []
    links = Links(path_to(request, "/v1/devices"), path_to(request, "/v1/devices.csv"), "select * from v1_devices")
    return page(request, "devices.html", "Devices", links=links, stored=stored, catalogue=views.catalogue(),
                is_whole=grant.project is None, tables={"stored": STORED, "catalogue": CATALOGUE})  # fmt: skip


def device(request: Request) -> Response:
    """Show a device."""
    Asked(request).done()
    name = request.path_params["name"]
    view = about.device(site_of(request).engine, name, grant_of(request).project)
    curves = [
        figure(
            f"curve{place}", f"{curve['title']}: {curve['meaning']}",
            partial(characterization_plots.draw, curve), curve, rows=curve["rows"], columns=POINTS,
            description=f"Share of the peak that was measured; it saturates at {curve['saturated']:.3g}.",
        )
        for place, curve in enumerate(view["curves"])
    ]  # fmt: skip
    query = {"device": name}
    links = Links(
        path_to(request, "/v1/characterizations", query), path_to(request, "/v1/characterizations.csv", query),
        f"select * from v1_characterizations where device = {store.quoted(name)}",
    )  # fmt: skip
    rows = [row | {"said": si(row["value"], row["unit"]), "name": name} for row in view["figures"]]
    return page(request, "device.html", name, links=links, view=view, curves=curves, figures=rows,
                tables={"figures": FIGURES, "costs": COSTS})  # fmt: skip


def register(app: FastAPI) -> None:
    """Add the routes."""
    add_page(app, "/devices", devices, "read", name="devices_page")
    add_page(app, "/devices/{name:path}", device, "read", name="device_page")
