"""The application: all routes behind the request guard."""

from collections.abc import Sequence
from functools import cache

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute

from profsvc import settings
from profsvc.errors import NotFoundError, ProfsvcError, UsageError
from profsvc.web import pages
from profsvc.web.api import (
    administration,
    health,
    history,
    models,
    plots,
    power,
    renames,
    reports,
    run_changes,
    runs,
    sql,
    timeline,
    uploads,
    views,
)
from profsvc.web.http.openapi import index_of, openapi_document
from profsvc.web.http.request_args import RequestArgs
from profsvc.web.http.responses import json_response, success
from profsvc.web.http.route_index import RouteIndex
from profsvc.web.http.routes import accepted_media, add_route
from profsvc.web.http.state import AppState
from profsvc.web.middleware import RequestGuard
from profsvc.web.pages.errors import error_answer

ROUTE_MODULES = (
    uploads,
    views,
    sql,
    power,
    plots,
    timeline,
    runs,
    run_changes,
    history,
    models,
    renames,
    reports,
    administration,
    health,
    pages,
)
MIN_GZIP_BYTES = 1000


class Application(FastAPI):
    """An application that finds its routes by an index."""

    @property
    def routes(self) -> list[BaseRoute]:
        """Return all routes."""
        return list(_routes())


def create_app(state: AppState) -> FastAPI:
    """Make the application of a service."""
    app = Application(title="profsvc", version=settings.version(), openapi_url=None, docs_url=None, redoc_url=None,
                  redirect_slashes=False)  # fmt: skip
    app.state.profsvc = state
    app.router.routes.append(_route_index())
    app.add_exception_handler(HTTPException, _framework_error)
    app.add_exception_handler(RequestValidationError, _framework_error)
    app.add_middleware(GZipMiddleware, minimum_size=MIN_GZIP_BYTES, compresslevel=4)
    app.add_middleware(RequestGuard, state=state)
    return app


@cache
def _routes() -> Sequence[BaseRoute]:
    """Return all routes. They hold nothing of a service, so those of one process share them."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    for group in ROUTE_MODULES:
        group.register(app)
    described = {"type": "object", "required": ["openapi", "info", "paths"]}
    add_route(
        app,
        "/openapi.json",
        get_openapi_document,
        "read",
        name="describe",
        gives={"application/json": {"schema": described}},
    )
    add_route(app, "/v1", get_index, "read", name="index")
    return app.routes


@cache
def _route_index() -> RouteIndex:
    return RouteIndex(_routes())


async def get_index(request: Request) -> Response:
    """What the service offers: its versions, and every path with a sentence; a browser goes to its page of them."""
    RequestArgs(request).reject_unknown()
    if accepted_media(request, ("application/json", "text/html")) == "text/html":
        return RedirectResponse(f"{request.scope['root_path']}/docs/api", 303, {"vary": "Accept"})
    return success(request, index_of(request.app, request.scope["root_path"], settings.version()))


async def get_openapi_document(request: Request) -> Response:
    """The OpenAPI description of this API."""
    RequestArgs(request).reject_unknown()
    app: FastAPI = request.app
    described = openapi_document(app)
    described["servers"] = [{"url": request.scope["root_path"] or "/"}]
    return json_response(request, described)


async def _framework_error(request: Request, error: Exception) -> Response:
    """Return an error of the framework in the error schema."""
    reported: ProfsvcError = UsageError(str(error))
    if isinstance(error, HTTPException):
        reported = (NotFoundError if error.status_code == 404 else UsageError)(str(error.detail))
    return error_answer(request, reported, request.scope["profsvc.request_id"])
