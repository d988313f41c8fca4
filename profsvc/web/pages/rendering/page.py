"""Rendering of pages: templates, common variables, and headers that forbid foreign content.

A page is a template that extends ``layout.html`` and a function that calls `page`. All strings are escaped, and unknown
template variables are errors.
"""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from profsvc import store
from profsvc.errors import NotFoundError, UsageError
from profsvc.web.http.cookies import THEMES, theme_of, token_cookie
from profsvc.web.http.state import app_state, grant_of
from profsvc.web.pages.rendering import cells, filters
from profsvc.web.pages.rendering.assets import asset_path

TEMPLATES = Path(__file__).parents[2] / "templates"
MEDIA_TYPE = "text/html; charset=utf-8"
MAX_NUMBER_DIGITS = 19
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
PAGE_HEADERS = {"content-security-policy": CONTENT_SECURITY_POLICY}
SETTINGS = "/settings"
"""The page that only the scope admin may open."""
# Links in the header of every page; pages that do not exist are omitted.
NAVIGATION = (
    ("/", "Runs"),
    ("/compare", "Compare"),
    ("/history", "History"),
    ("/findings", "Findings"),
    ("/reports", "Reports"),
    ("/devices", "Devices"),
    ("/models", "Models"),
    ("/sql", "SQL"),
    ("/upload", "Upload"),
    (SETTINGS, "Settings"),
)


class Links(NamedTuple):
    """Links to the data of a page: JSON, CSV, and SQL for the same rows."""

    json: str = ""
    csv: str = ""
    sql: str = ""


def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, keep_trailing_newline=True, finalize=filters.escape_unsafe, auto_reload=False,
    )  # fmt: skip
    made.filters.update(filters.FILTERS)
    made.globals["asset_path"] = asset_path
    return made


_TEMPLATES = _environment()


def path_to(request: Request, path: str, query: Mapping[str, Any] | Sequence[tuple[str, Any]] = ()) -> str:
    """Return a URL path of this service with the root path of a proxy; ``path`` is not quoted yet.

    Parameters without a value are omitted.
    """
    return path_below(request.scope.get("root_path", ""), path, query)


def path_below(root_path: str, path: str, query: Mapping[str, Any] | Sequence[tuple[str, Any]] = ()) -> str:
    """Return a URL path below the root path of a proxy, as `path_to` does."""
    pairs = query.items() if isinstance(query, Mapping) else query
    query_string = urlencode([(key, value) for key, value in pairs if value not in (None, "")])
    return f"{root_path}{quote(path, safe='/:@,')}{'?' * bool(query_string)}{query_string}"


def fixed_part(template: str, root_path: str, **known: Any) -> Markup:
    """Return a part of pages that is the same for every reader, to be kept; in it ``url`` is `path_below`."""

    def url(path: str, **query: Any) -> str:
        return path_below(root_path, path, query)

    return Markup(_TEMPLATES.get_template(template).render(url=url, **known))  # a template escapes what it shows


def route_exists(request: Request, path: str) -> bool:
    """Tell whether the service has a page."""
    known = getattr(request.app.state, "pages", None)
    if known is None:
        known = request.app.state.pages = {getattr(route, "path", "") for route in request.app.routes}
    return path in known


def page(
    request: Request, template: str, title: str, *, links: Links | None = None, status: int = 200, **known: Any
) -> Response:
    """Return a page; 304 if the browser has the same bytes."""
    body = render(request, template, title, links=links or Links(), **known)
    if status != 200:
        return Response(body, status, PAGE_HEADERS, MEDIA_TYPE)
    headers = {**PAGE_HEADERS, "etag": f'W/"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'}
    if headers["etag"] in [tag.strip() for tag in request.headers.get("if-none-match", "").split(",")]:
        return Response(status_code=304, headers=headers)
    return Response(body, status, headers, MEDIA_TYPE)


def render(request: Request, template: str, title: str, **known: Any) -> bytes:
    """Render a template; in it ``url`` is `path_to`, and ``same`` this page with changed parameters."""

    def url(path: str, **query: Any) -> str:
        return path_to(request, path, query)

    def same(**changed: Any) -> str:
        kept = [(key, value) for key, value in request.query_params.multi_items() if key not in changed]
        return path_to(request, _own_path(request), [*kept, *changed.items()])

    always = {
        "title": title,
        "url": url,
        "same": same,
        "explained_number": partial(cells.explained, url),
        "cells": partial(cells.cells, url),
        "here": path_to(request, _own_path(request), request.query_params.multi_items()),
        "theme": theme_of(request.cookies),
        "themes": THEMES,
        "navigation": [(path, name) for path, name in NAVIGATION if _may_open(request, path)],
        "own_path": _own_path(request),
        "has_sql": route_exists(request, "/sql"),
        "has_page": partial(route_exists, request),
        "is_known": token_cookie(request.headers, request.cookies) is not None,
        "links": Links(),
    }
    text = _TEMPLATES.get_template(template).render(always | known)
    return text.encode("utf-8", "backslashreplace")


def _may_open(request: Request, path: str) -> bool:
    """Tell whether the service has a page, and this request may open it."""
    grant: store.Grant | None = request.scope.get("profsvc.grant")
    return route_exists(request, path) and (path != SETTINGS or (grant is not None and grant.allows("admin")))


def _own_path(request: Request) -> str:
    """Return the path of a request without the root path of a proxy."""
    path: str = request.scope["path"]
    return path.removeprefix(app_state(request).root_path) or "/"


def page_fragment(request: Request, template: str, **known: Any) -> Response:
    """Return a fragment of a page, which the script inserts."""
    return Response(render(request, template, "", **known), 200, PAGE_HEADERS, MEDIA_TYPE)


def find_run_id(request: Request, name: str) -> int:
    """Return the number of a run that this request may see, by number or else by name."""
    engine, project = app_state(request).engine, grant_of(request).project
    if name.isascii() and name.isdigit() and len(name) < MAX_NUMBER_DIGITS:
        with suppress(NotFoundError):
            return store.find_run(engine, int(name), project)
    return store.find_run(engine, name, project)


def redirect(request: Request, path: str, query: Mapping[str, Any] | None = None) -> Response:
    """Redirect a browser to a page after a form."""
    return RedirectResponse(path_to(request, path, query or {}), 303)


async def form_fields(request: Request) -> dict[str, str]:
    """Return the fields of a form; of repeated fields the last value."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise UsageError(f"a form must be sent as application/x-www-form-urlencoded, not {kind[:60]!r}")
    from urllib.parse import parse_qsl

    try:
        pairs = parse_qsl((await request.body()).decode("ascii"), keep_blank_values=True, errors="strict")
    except (UnicodeError, ValueError):
        raise UsageError("invalid form; it must be URL-encoded UTF-8") from None
    return dict(pairs)
