"""Adding routes with their scope, parameters and response examples.

A route without a scope is not accessible at all; a test checks every route.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fastapi import FastAPI
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import Response

from profsvc.web.http.state import app_state, in_worker_thread

ERROR_SCHEMA = {
    "type": "object",
    "required": ["ok", "error"],
    "properties": {
        "ok": {"const": False},
        "error": {
            "type": "object",
            "required": ["code", "message", "request_id"],
            "properties": {
                "code": {"type": "string", "description": "error code for programs"},
                "message": {"type": "string", "description": "what happened, where, what was seen, and what to do"},
                "request_id": {"type": "string", "description": "id of the request in the log of the service"},
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
SUCCESS_SCHEMA = {"type": "object", "required": ["ok"], "properties": {"ok": {"const": True}}}


class PathTail(PathConvertor):
    """The rest of a path as a name, which may contain line ends, unlike that of Starlette."""

    regex = "(?s:.*)"


register_url_convertor("path", PathTail())


def rows_schema(columns: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the JSON schema of a response with rows."""
    row: dict[str, Any] = {"type": "object"} | ({"properties": dict(columns)} if columns else {})
    return {
        "type": "object",
        "required": ["ok", "columns", "rows", "truncated"],
        "properties": {
            "ok": {"const": True},
            "columns": {"type": "array", "items": {"type": "string"}},
            "rows": {"type": "array", "items": row},
            "truncated": {"type": "boolean", "description": "true if there are more rows"},
            "next": {"type": ["string", "null"], "description": "path of the next page"},
        },
    }


def query_param(
    name: str, kind: str, what: str, example: Any = None, *, required: bool = False, **more: Any
) -> dict[str, Any]:
    """Return the OpenAPI description of a query parameter."""
    described = {
        "name": name,
        "in": "query",
        "required": required,
        "description": what,
        "schema": {"type": kind, **more},
    }
    return described if example is None else {**described, "example": example}


def path_param(name: str, what: str, example: str) -> dict[str, Any]:
    """Return the OpenAPI description of a path parameter."""
    return {"name": name, "in": "path", "required": True, "description": what, "schema": {"type": "string"},
            "example": example}  # fmt: skip


def accepted_media(request: Request, offered: Sequence[str]) -> str:
    """Return the media type of ``offered`` that the header Accept of a request prefers; the first if it has none.

    A type by its name comes before a wildcard of the same weight: browsers send both.
    """
    best, found = (0.0, 0), offered[0]
    for part in request.headers.get("accept", "*/*").split(","):
        name, *options = (text.strip().lower() for text in part.split(";"))
        weight = next((option[2:] for option in options if option.startswith("q=")), "1")
        try:
            rank = (float(weight), 3 - name.count("*"))
        except ValueError:
            continue
        for media in offered:
            plain = media.partition(";")[0]
            if name in (plain, f"{plain.partition('/')[0]}/*", "*/*") and rank > best:
                best, found = rank, media
                break
    return found


def add_forms(
    app: FastAPI,
    path: str,
    forms: Mapping[str, Mapping[str, Any]],
    handler: Callable[[str], Callable[..., Any]],
    scope: str,
    *,
    name: str,
    **options: Any,
) -> None:
    """Add a path that answers in several media types, as Accept asks for, the first by default.

    ``forms`` has the schema by media type and suffix: {"json": {"application/json": schema}}. ``handler`` makes the
    handler of a suffix. Each also has a path of its own, such as ``/v1/runs.csv``, for links and ``curl``.
    """
    made = {form: handler(form) for form in forms}
    media = {kind: form for form, content in forms.items() for kind in content}
    for form, one in made.items():
        add_route(app, f"{path}.{form}", one, scope, name=f"{name}_{form}", gives=forms[form], hidden=True, **options)

    async def negotiated(request: Request) -> Response:
        response: Response = await made[media[accepted_media(request, list(media))]](request)
        return response

    negotiated.__doc__ = next(iter(made.values())).__doc__
    gives = {kind: schema for content in forms.values() for kind, schema in content.items()}
    add_route(app, path, negotiated, scope, name=name, gives=gives, **options)


def add_route(
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
    hidden: bool = False,
) -> None:
    """Add a route.

    ``takes`` lists its parameters (see `query_param`), ``gives`` the content of its response by media type, and
    ``body`` the content of its request. A ``hidden`` one is not in the OpenAPI document.
    """
    content = gives or {"application/json": {"schema": SUCCESS_SCHEMA}}
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
        include_in_schema=not hidden,
        responses={status: {"description": "success", "content": content} for status in statuses},
    )


def add_page(
    app: FastAPI,
    path: str,
    answer: Callable[[Request], Any],
    scope: str,
    *,
    name: str,
    methods: Sequence[str] = ("GET",),
    heavy: bool = False,
) -> None:
    """Add an HTML page, which is not part of the OpenAPI document.

    A plain function runs in a thread of pages, or of long pages if it is ``heavy``.
    """

    async def handler(request: Request) -> Response:
        if inspect.iscoroutinefunction(answer):
            response: Response = await answer(request)
            return response
        return await in_worker_thread(answer, request, app_state(request).long_limit if heavy else None)

    app.add_api_route(
        path, handler, methods=list(methods), name=name, response_model=None, include_in_schema=False,
        openapi_extra={"x-scope": scope},
    )  # fmt: skip
