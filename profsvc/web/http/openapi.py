"""The OpenAPI document of the service, and the index of its paths."""

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from profsvc.web.http.routes import ERROR_SCHEMA


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


def operations(app: FastAPI) -> dict[str, dict[str, Any]]:
    """Return what the document says of each operation by its id, with its method and path."""
    return {
        operation["operationId"]: {**operation, "method": method.upper(), "path": path}
        for path, group in openapi_document(app)["paths"].items()
        for method, operation in group.items()
    }


def first_sentence(operation: Mapping[str, Any]) -> str:
    """Return what an operation does, without how its rows are filtered."""
    return str(operation["description"]).split("\n")[0].partition(" Filter by any column")[0]


def index_of(app: FastAPI, root: str, version: str) -> dict[str, Any]:
    """Return the versions of the API, and its paths with a sentence each."""
    links = {"self": "/v1", "openapi": "/openapi.json", "docs": "/docs/api", "health": "/readyz", "metrics": "/metrics"}
    return {
        "service": "profsvc",
        "version": version,
        "versions": [{"name": "v1", "href": f"{root}/v1", "state": "current"}],
        "links": {name: root + path for name, path in links.items()},
        "paths": [
            {
                "href": root + one["path"],
                "method": one["method"],
                "name": name,
                "what": first_sentence(one),
                "scope": one["x-scope"],
                "media_types": sorted({kind for said in one["responses"].values() for kind in said["content"]}),
                "group": one["tags"][0],
            }
            for name, one in operations(app).items()
        ],
    }
