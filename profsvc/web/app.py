"""The application: all routes behind the request guard, and their OpenAPI document."""

from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response

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
    reports,
    run_changes,
    runs,
    sql,
    timeline,
    uploads,
    views,
)
from profsvc.web.http.request_args import RequestArgs
from profsvc.web.http.responses import json_response
from profsvc.web.http.routes import ERROR_SCHEMA, add_route
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
    reports,
    administration,
    health,
    pages,
)
MIN_GZIP_BYTES = 1000


def create_app(state: AppState) -> FastAPI:
    """Make the application of a service."""
    app = FastAPI(title="profsvc", version=settings.version(), openapi_url=None, docs_url=None, redoc_url=None,
                  redirect_slashes=False)  # fmt: skip
    app.state.profsvc = state
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
    app.add_exception_handler(HTTPException, _framework_error)
    app.add_exception_handler(RequestValidationError, _framework_error)
    app.add_middleware(GZipMiddleware, minimum_size=MIN_GZIP_BYTES, compresslevel=4)
    app.add_middleware(RequestGuard, state=state)
    return app


async def get_openapi_document(request: Request) -> Response:
    """The OpenAPI description of this API."""
    RequestArgs(request).reject_unknown()
    app: FastAPI = request.app
    described = openapi_document(app)
    described["servers"] = [{"url": request.scope["root_path"] or "/"}]
    return json_response(request, described)


def openapi_document(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document of FastAPI, with the error schema and the token scheme."""
    if app.openapi_schema is None:
        document = get_openapi(title=app.title, version=app.version, routes=app.routes)
        parts = document.setdefault("components", {})
        parts["schemas"] = {"Error": ERROR_SCHEMA}
        parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"token": []}, {}]
        error = {
            "description": "error",
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
        }
        for operations in document["paths"].values():
            for operation in operations.values():
                operation["responses"].pop("422", None)
                operation["responses"]["default"] = error
        app.openapi_schema = document
    return dict(app.openapi_schema)


async def _framework_error(request: Request, error: Exception) -> Response:
    """Return an error of the framework in the error schema."""
    reported: ProfsvcError = UsageError(str(error))
    if isinstance(error, HTTPException):
        reported = (NotFoundError if error.status_code == 404 else UsageError)(str(error.detail))
    return error_answer(request, reported, request.scope["profsvc.request_id"])
