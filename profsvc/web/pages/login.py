"""``/login``, ``/logout`` and ``/theme``: what a browser is to keep."""

from anyio import to_thread
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc import store
from profsvc.errors import TokenError, UsageError
from profsvc.web.access import ANYONE
from profsvc.web.asked import Asked
from profsvc.web.pages.frame import fields, page, path_to
from profsvc.web.routes import add_page
from profsvc.web.site import site_of
from profsvc.web.way_in import SECONDS, THEME, THEMES, cookie_name, is_local

YEAR = 365 * 24 * 3600


def _sent_on(request: Request, after: str) -> Response:
    """Lead to a page of this service; what leads elsewhere is not followed."""
    root_path = site_of(request).root_path
    place = after if is_local(after, root_path) else path_to(request, "/")
    return Response(status_code=303, headers={"location": place})


def _cookie(request: Request, response: Response, name: str, value: str, seconds: int, *, hidden: bool) -> Response:
    response.set_cookie(
        name, value, max_age=seconds, path=site_of(request).root_path or "/", secure=request.url.scheme == "https",
        httponly=hidden, samesite="strict",
    )  # fmt: skip
    return response


def show(request: Request) -> Response:
    """Ask for a token."""
    asked = Asked(request)
    after = asked.text("after")
    asked.done()
    return page(request, "login.html", "Log in", after=after or path_to(request, "/"))


async def enter(request: Request) -> Response:
    """Let the browser keep a token that holds."""
    said = await fields(request)
    token = said.get("token", "").strip()
    grant = await to_thread.run_sync(store.grant_of, site_of(request).engine, token)
    if grant is None:
        raise TokenError("this token is not one of this service, has expired, or was revoked")
    response = _sent_on(request, said.get("after", ""))
    return _cookie(request, response, cookie_name(request.headers), token, SECONDS, hidden=True)


async def leave(request: Request) -> Response:
    """Let the browser forget the token."""
    return _cookie(request, _sent_on(request, ""), cookie_name(request.headers), "", 0, hidden=True)


async def paint(request: Request) -> Response:
    """Let the browser keep whether pages are light or dark."""
    said = await fields(request)
    if (theme := said.get("theme", "")) not in THEMES:
        raise UsageError(f"theme={theme[:40]!r} is not known; it can be {' or '.join(THEMES)}")
    # The script of the pages has changed the colours already, and stays where it is.
    is_script = "text/html" not in request.headers.get("accept", "")
    answer = Response(status_code=204) if is_script else _sent_on(request, said.get("after", ""))
    return _cookie(request, answer, THEME, theme, YEAR, hidden=False)


def register(app: FastAPI) -> None:
    """Add the routes."""
    add_page(app, "/login", show, ANYONE, name="login_page")
    add_page(app, "/login", enter, ANYONE, name="login", methods=["POST"])
    add_page(app, "/logout", leave, ANYONE, name="logout", methods=["POST"])
    add_page(app, "/theme", paint, ANYONE, name="theme", methods=["POST"])
