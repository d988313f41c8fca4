"""``/livez``, ``/readyz`` and ``/metrics``: liveness, readiness and Prometheus metrics."""

import shutil

from anyio import to_thread
from fastapi import FastAPI
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from profsvc import store
from profsvc.errors import ProfsvcError
from profsvc.web.http.authorization import PUBLIC_SCOPE
from profsvc.web.http.routes import add_route
from profsvc.web.http.state import AppState, app_state

REPLICA = "replica"


async def get_liveness(request: Request) -> Response:
    """Liveness: the process responds."""
    return JSONResponse({"ok": True})


async def get_readiness(request: Request) -> Response:
    """Readiness for uploads: every check is ok or an error code; 503 if one fails."""
    checks = await to_thread.run_sync(_run_checks, app_state(request))
    is_ready = {state for name, state in checks.items() if name != REPLICA} == {"ok"}
    return JSONResponse({"ok": is_ready, "checks": checks}, 200 if is_ready else 503)


def _run_checks(state: AppState) -> dict[str, str]:
    """Run the checks. The result is public, so it contains no paths. Without its replica a service goes on."""
    checks = {"store": "ok", "schema": "ok", "disk": "ok", "uploads": "ok"}
    try:
        checks["schema"] = "ok" if store.schema_state(state.engine) == "current" else "behind"
    except ProfsvcError as error:
        checks["store"] = checks["schema"] = error.code()
    try:
        store.require_writable(state.engine, state.files)
    except ProfsvcError as error:
        checks["disk"] = error.code()
    if state.receiving_limit.in_use >= state.receiving_limit.capacity or state.parsing_limit.is_full(
        state.limits.full_seconds
    ):
        checks["uploads"] = "overloaded"
    if state.replica is not None:
        try:
            checks[REPLICA] = state.replica.place().state
        except ProfsvcError as error:
            checks[REPLICA] = error.code()
    return checks


async def get_metrics(request: Request) -> Response:
    """Metrics of the service in the Prometheus text format."""
    return Response(await to_thread.run_sync(_collect_metrics, app_state(request)), media_type=CONTENT_TYPE_LATEST)


def _collect_metrics(state: AppState) -> bytes:
    metrics, checks = state.metrics, _run_checks(state)
    metrics.db_up.set(checks["store"] == "ok")
    metrics.replica_used.set(checks.get(REPLICA) == "ok")
    metrics.schema_behind.set(checks["schema"] == "behind")
    folder = next(folder for folder in (state.files.folder, *state.files.folder.parents) if folder.is_dir())
    metrics.free_bytes.set(shutil.disk_usage(folder).free)
    spool = state.files.spool
    metrics.spool_bytes.set(sum(path.stat().st_size for path in spool.glob("*")) if spool.is_dir() else 0)
    return metrics.text()


def register(app: FastAPI) -> None:
    """Add the routes."""
    states = {"application/json": {"schema": {"type": "object", "required": ["ok"]}}}
    add_route(app, "/livez", get_liveness, PUBLIC_SCOPE, name="is_live", gives=states)
    add_route(app, "/readyz", get_readiness, PUBLIC_SCOPE, name="is_ready", gives=states, statuses=(200, 503))
    add_route(
        app, "/metrics", get_metrics, "read", name="read_metrics", gives={"text/plain": {"schema": {"type": "string"}}}
    )
