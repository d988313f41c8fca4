"""The application: every route behind the door, and the description of them all."""

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
from profsvc.web import health, history, pages, plots, power, reports, runs, sql, uploads, views
from profsvc.web.answers import tagged
from profsvc.web.asked import Asked
from profsvc.web.door import Door
from profsvc.web.pages.failed import refusal
from profsvc.web.routes import ERROR, add
from profsvc.web.site import Site

GROUPS = (uploads, views, sql, power, plots, runs, history, reports, health, pages)
WORTH_PACKING = 1000


def create_app(site: Site) -> FastAPI:
    """Make the application of a service."""
    app = FastAPI(title="profsvc", version=settings.version(), openapi_url=None, docs_url=None, redoc_url=None,
                  redirect_slashes=False)  # fmt: skip
    app.state.site = site
    for group in GROUPS:
        group.register(app)
    described = {"type": "object", "required": ["openapi", "info", "paths"]}
    add(app, "/openapi.json", describe, "read", name="describe", gives={"application/json": {"schema": described}})
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _refused)
    app.add_middleware(GZipMiddleware, minimum_size=WORTH_PACKING, compresslevel=4)
    app.add_middleware(Door, site=site)
    return app


async def describe(request: Request) -> Response:
    """The description of this interface, as OpenAPI."""
    Asked(request).done()
    app: FastAPI = request.app
    described = description(app)
    described["servers"] = [{"url": request.scope["root_path"] or "/"}]
    return tagged(request, described)


def description(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI description: what FastAPI gathers, with the one shape of errors and the tokens."""
    if app.openapi_schema is None:
        made = get_openapi(title=app.title, version=app.version, routes=app.routes)
        parts = made.setdefault("components", {})
        parts["schemas"] = {"Error": ERROR}
        parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        made["security"] = [{"token": []}, {}]
        wrong = {
            "description": "refused",
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
        }
        for operations in made["paths"].values():
            for operation in operations.values():
                operation["responses"].pop("422", None)
                operation["responses"]["default"] = wrong
        app.openapi_schema = made
    return dict(app.openapi_schema)


async def _refused(request: Request, error: Exception) -> Response:
    """Answer what the framework refuses in the one shape of errors."""
    said: ProfsvcError = UsageError(str(error))
    if isinstance(error, HTTPException):
        said = (NotFoundError if error.status_code == 404 else UsageError)(str(error.detail))
    return refusal(request, said, request.scope["profsvc.request_id"])
