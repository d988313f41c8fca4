"""``/livez``, ``/readyz`` and ``/metrics``: whether the process lives, whether it can work, and what it counted."""

import shutil

from anyio import to_thread
from fastapi import FastAPI
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from profsvc import store
from profsvc.errors import ProfsvcError
from profsvc.web.access import ANYONE
from profsvc.web.routes import add
from profsvc.web.site import Site, site_of


async def live(request: Request) -> Response:
    """Whether the process answers at all."""
    return JSONResponse({"ok": True})


async def ready(request: Request) -> Response:
    """Whether uploads can be taken: each check is ok, or says in a word what fails; 503 if one does."""
    checks = await to_thread.run_sync(_checks, site_of(request))
    whole = set(checks.values()) == {"ok"}
    return JSONResponse({"ok": whole, "checks": checks}, 200 if whole else 503)


def _checks(site: Site) -> dict[str, str]:
    """Look; the words are for anyone, so they name no place."""
    checks = {"store": "ok", "schema": "ok", "disk": "ok", "uploads": "ok"}
    try:
        checks["schema"] = "ok" if store.state(site.engine) == "current" else "behind"
    except ProfsvcError as error:
        checks["store"] = checks["schema"] = error.code()
    try:
        store.must_be_writable(site.engine, site.files)
    except ProfsvcError as error:
        checks["disk"] = error.code()
    if site.receiving.inside >= site.receiving.most or site.reading.is_full(site.limits.full_seconds):
        checks["uploads"] = "overloaded"
    return checks


async def metrics(request: Request) -> Response:
    """What the service counted, as Prometheus reads it."""
    return Response(await to_thread.run_sync(_measured, site_of(request)), media_type=CONTENT_TYPE_LATEST)


def _measured(site: Site) -> bytes:
    meters, checks = site.meters, _checks(site)
    meters.receiving.set(site.receiving.inside)
    meters.queue_depth.set(site.reading.inside)
    meters.db_up.set(checks["store"] == "ok")
    meters.schema_behind.set(checks["schema"] == "behind")
    folder = next(folder for folder in (site.files.folder, *site.files.folder.parents) if folder.is_dir())
    meters.free_bytes.set(shutil.disk_usage(folder).free)
    spool = site.files.spool
    meters.spool_bytes.set(sum(path.stat().st_size for path in spool.glob("*")) if spool.is_dir() else 0)
    return meters.text()


def register(app: FastAPI) -> None:
    """Add the routes."""
    states = {"application/json": {"schema": {"type": "object", "required": ["ok"]}}}
    add(app, "/livez", live, ANYONE, name="is_live", gives=states)
    add(app, "/readyz", ready, ANYONE, name="is_ready", gives=states, statuses=(200, 503))
    add(app, "/metrics", metrics, "read", name="read_metrics", gives={"text/plain": {"schema": {"type": "string"}}})
