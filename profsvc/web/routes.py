"""How a route is added: with the scope it needs, the questions it takes, and examples of its answers.

A route that names no scope is closed to everyone; a test walks them all.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fastapi import FastAPI
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import Response

from profsvc.web.site import answered

ERROR = {
    "type": "object",
    "required": ["ok", "error"],
    "properties": {
        "ok": {"const": False},
        "error": {
            "type": "object",
            "required": ["code", "message", "request_id"],
            "properties": {
                "code": {"type": "string", "description": "the kind of error, for programs"},
                "message": {"type": "string", "description": "what, where, what was seen, what to do"},
                "request_id": {"type": "string", "description": "found again in the log of the service"},
            },
        },
    },
    "example": {
        "ok": False,
        "error": {
            "code": "not_found",
            "message": "no run named 'h20'; did you mean 'h200'?",
            "request_id": "5a0c1e3f7b9d2468",
        },
    },
}
SUCCESS = {"type": "object", "required": ["ok"], "properties": {"ok": {"const": True}}}


class Name(PathConvertor):
    """The rest of a path, which is a name: it may hold ends of lines, at which that of Starlette stops."""

    regex = "(?s:.*)"


register_url_convertor("path", Name())


def rows_schema(columns: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the schema of an answer with rows."""
    row: dict[str, Any] = {"type": "object"} | ({"properties": dict(columns)} if columns else {})
    return {
        "type": "object",
        "required": ["ok", "columns", "rows", "truncated"],
        "properties": {
            "ok": {"const": True},
            "columns": {"type": "array", "items": {"type": "string"}},
            "rows": {"type": "array", "items": row},
            "truncated": {"type": "boolean", "description": "there are more rows"},
            "next": {"type": ["string", "null"], "description": "where the next page is"},
        },
    }


def asks(
    name: str, kind: str, what: str, example: Any = None, *, required: bool = False, **more: Any
) -> dict[str, Any]:
    """Return what the description says of a question."""
    said = {"name": name, "in": "query", "required": required, "description": what, "schema": {"type": kind, **more}}
    return said if example is None else {**said, "example": example}


def in_path(name: str, what: str, example: str) -> dict[str, Any]:
    """Return what the description says of a part of the path."""
    return {"name": name, "in": "path", "required": True, "description": what, "schema": {"type": "string"},
            "example": example}  # fmt: skip


def add(
    app: FastAPI,
    path: str,
    handler: Callable[..., Any],
    scope: str,
    *,
    name: str,
    methods: Sequence[str] = ("GET",),
    takes: Sequence[Mapping[str, Any]] = (),
    gives: Mapping[str, Any] | None = None,
    body: Mapping[str, Any] | None = None,
    tag: str = "service",
    statuses: Sequence[int] = (200,),
) -> None:
    """Add a route.

    ``takes`` are its questions (see `asks`), ``gives`` the content of its answer by media type, ``body`` what it is
    sent.
    """
    content = gives or {"application/json": {"schema": SUCCESS}}
    extra: dict[str, Any] = {"x-scope": scope, "parameters": list(takes)}
    if body is not None:
        extra["requestBody"] = {"required": True, "content": body}
    if scope == "anyone":
        extra["security"] = []
    app.add_api_route(
        path,
        handler,
        methods=list(methods),
        name=name,
        operation_id=name,
        response_model=None,
        tags=[tag],
        openapi_extra=extra,
        responses={status: {"description": "the answer", "content": content} for status in statuses},
    )


def add_page(
    app: FastAPI,
    path: str,
    answer: Callable[[Request], Any],
    scope: str,
    *,
    name: str,
    methods: Sequence[str] = ("GET",),
) -> None:
    """Add a route for people: it is not in the description of the interface. A plain function answers in a thread."""

    async def handler(request: Request) -> Response:
        found = await (answer(request) if inspect.iscoroutinefunction(answer) else answered(answer, request))
        response: Response = found
        return response

    app.add_api_route(
        path, handler, methods=list(methods), name=name, response_model=None, include_in_schema=False,
        openapi_extra={"x-scope": scope},
    )  # fmt: skip
