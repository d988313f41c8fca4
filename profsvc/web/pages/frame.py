"""How a page is made: the templates, what every page knows, and the headers that let it load nothing of others.

A page is a template that extends ``layout.html`` and a function that calls `page`. Every string is escaped, and a name
that a template does not know is an error.
"""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from profsvc import store
from profsvc.errors import NotFoundError, UsageError
from profsvc.web.pages import words
from profsvc.web.pages.assets import asset_path
from profsvc.web.site import grant_of, site_of
from profsvc.web.way_in import THEMES, cookie_of, theme_of

TEMPLATES = Path(__file__).parents[1] / "templates"
MEDIA = "text/html; charset=utf-8"
LONGEST_NUMBER = 19
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {"content-security-policy": POLICY}
# What the head of every page leads to; a page that the service does not have is left out.
NAVIGATION = (
    ("/", "Runs"),
    ("/compare", "Compare"),
    ("/history", "History"),
    ("/findings", "Findings"),
    ("/reports", "Reports"),
    ("/devices", "Devices"),
    ("/sql", "SQL"),
    ("/upload", "Upload"),
)


class Links(NamedTuple):
    """Where what a page shows is found as data: paths with their questions, and the SQL that gives the same rows."""

    json: str = ""
    csv: str = ""
    sql: str = ""


def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, keep_trailing_newline=True, finalize=words.harmless,
    )  # fmt: skip
    made.filters.update(words.FILTERS)
    made.globals["asset_path"] = asset_path
    return made


_TEMPLATES = _environment()


def path_to(request: Request, path: str, query: Mapping[str, Any] | Sequence[tuple[str, Any]] = ()) -> str:
    """Return a path of this service as a browser reaches it, under the path of a proxy; ``path`` is not quoted yet.

    Questions without a value are left out.
    """
    pairs = query.items() if isinstance(query, Mapping) else query
    asked = urlencode([(key, value) for key, value in pairs if value not in (None, "")])
    return f"{request.scope.get('root_path', '')}{quote(path, safe='/:@,')}{'?' * bool(asked)}{asked}"


def has(request: Request, path: str) -> bool:
    """Tell whether the service has a page."""
    known = getattr(request.app.state, "pages", None)
    if known is None:
        known = request.app.state.pages = {getattr(route, "path", "") for route in request.app.routes}
    return path in known


def page(
    request: Request, template: str, title: str, *, links: Links | None = None, status: int = 200, **known: Any
) -> Response:
    """Return a page; a browser that has these bytes already is not sent them again."""
    body = written(request, template, title, links=links or Links(), **known)
    if status != 200:
        return Response(body, status, HEADERS, MEDIA)
    headers = {**HEADERS, "etag": f'W/"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'}
    if headers["etag"] in [tag.strip() for tag in request.headers.get("if-none-match", "").split(",")]:
        return Response(status_code=304, headers=headers)
    return Response(body, status, headers, MEDIA)


def written(request: Request, template: str, title: str, **known: Any) -> bytes:
    """Write a template; ``url`` in it is `path_to`, ``same`` this page with some questions changed."""

    def url(path: str, **query: Any) -> str:
        return path_to(request, path, query)

    def same(**changed: Any) -> str:
        kept = [(key, value) for key, value in request.query_params.multi_items() if key not in changed]
        return path_to(request, _own_path(request), [*kept, *changed.items()])

    always = {
        "title": title,
        "url": url,
        "same": same,
        "here": path_to(request, _own_path(request), request.query_params.multi_items()),
        "theme": theme_of(request.cookies),
        "themes": THEMES,
        "navigation": [(path, name) for path, name in NAVIGATION if has(request, path)],
        "own_path": _own_path(request),
        "has_sql": has(request, "/sql"),
        "has_page": partial(has, request),
        "is_known": cookie_of(request.headers, request.cookies) is not None,
        "links": Links(),
    }
    text = _TEMPLATES.get_template(template).render(always | known)
    return text.encode("utf-8", "backslashreplace")


def _own_path(request: Request) -> str:
    """Return the path of a request without what a proxy puts before it."""
    path: str = request.scope["path"]
    return path.removeprefix(site_of(request).root_path) or "/"


def part(request: Request, template: str, **known: Any) -> Response:
    """Return a piece of a page, for the script to put into it."""
    return Response(written(request, template, "", **known), 200, HEADERS, MEDIA)


def run_of(request: Request, name: str) -> int:
    """Return the number of a run that this request may see: pages lead to runs by number, so a number is one first.

    A run whose name is a number of no run is found by it too.
    """
    engine, project = site_of(request).engine, grant_of(request).project
    if name.isascii() and name.isdigit() and len(name) < LONGEST_NUMBER:
        with suppress(NotFoundError):
            return store.find_run(engine, int(name), project)
    return store.find_run(engine, name, project)


def moved(request: Request, path: str, query: Mapping[str, Any] | None = None) -> Response:
    """Send a browser on to a page, after a form."""
    return RedirectResponse(path_to(request, path, query or {}), 303)


async def fields(request: Request) -> dict[str, str]:
    """Return what a form sent, of each name the last value."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise UsageError(f"a form must come as application/x-www-form-urlencoded, not {kind[:60]!r}")
    from urllib.parse import parse_qsl

    try:
        pairs = parse_qsl((await request.body()).decode("ascii"), keep_blank_values=True, errors="strict")
    except (UnicodeError, ValueError):
        raise UsageError("the form is not readable; it must be URL-encoded UTF-8") from None
    return dict(pairs)
