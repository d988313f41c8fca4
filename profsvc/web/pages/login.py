"""``/login``, ``/logout`` and ``/theme``: cookies of the browser."""

from anyio import to_thread
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc import store
from profsvc.errors import TokenError, UsageError
from profsvc.web.http.authorization import PUBLIC_SCOPE
from profsvc.web.http.cookies import THEME_COOKIE, THEMES, TOKEN_COOKIE_SECONDS, cookie_name, is_local_path
from profsvc.web.http.request_args import RequestArgs
from profsvc.web.http.routes import add_page
from profsvc.web.http.state import app_state
from profsvc.web.pages.rendering.page import form_fields, page, path_to

THEME_COOKIE_SECONDS = 365 * 24 * 3600


def _redirect_local(request: Request, after: str) -> Response:
    """Redirect to a page of this service; to the list of runs if ``after`` leads elsewhere."""
    root_path = app_state(request).root_path
    place = after if is_local_path(after, root_path) else path_to(request, "/")
    return Response(status_code=303, headers={"location": place})


def _with_cookie(
    request: Request, response: Response, name: str, value: str, seconds: int, *, hidden: bool
) -> Response:
    response.set_cookie(
        name, value, max_age=seconds, path=app_state(request).root_path or "/", secure=request.url.scheme == "https",
        httponly=hidden, samesite="strict",
    )  # fmt: skip
    return response


def show_login(request: Request) -> Response:
    """Show the login form."""
    args = RequestArgs(request)
    after = args.text("after")
    args.reject_unknown()
    return page(request, "login.html", "Log in", after=after or path_to(request, "/"))


async def log_in(request: Request) -> Response:
    """Store a valid token in a cookie."""
    fields = await form_fields(request)
    token = fields.get("token", "").strip()
    grant = await to_thread.run_sync(store.find_grant, app_state(request).engine, token)
    if grant is None:
        raise TokenError("invalid, expired or revoked token")
    response = _redirect_local(request, fields.get("after", ""))
    return _with_cookie(request, response, cookie_name(request.headers), token, TOKEN_COOKIE_SECONDS, hidden=True)


async def log_out(request: Request) -> Response:
    """Delete the cookie of the token."""
    return _with_cookie(request, _redirect_local(request, ""), cookie_name(request.headers), "", 0, hidden=True)


async def set_theme(request: Request) -> Response:
    """Store the theme in a cookie."""
    fields = await form_fields(request)
    if (theme := fields.get("theme", "")) not in THEMES:
        raise UsageError(f"theme={theme[:40]!r} is not a theme; choose {' or '.join(THEMES)}")
    # The script has already switched the theme, so no redirect is needed.
    is_script = "text/html" not in request.headers.get("accept", "")
    answer = Response(status_code=204) if is_script else _redirect_local(request, fields.get("after", ""))
    return _with_cookie(request, answer, THEME_COOKIE, theme, THEME_COOKIE_SECONDS, hidden=False)


def register(app: FastAPI) -> None:
    """Add the routes."""
    add_page(app, "/login", show_login, PUBLIC_SCOPE, name="login_page")
    add_page(app, "/login", log_in, PUBLIC_SCOPE, name="login", methods=["POST"])
    add_page(app, "/logout", log_out, PUBLIC_SCOPE, name="logout", methods=["POST"])
    add_page(app, "/theme", set_theme, PUBLIC_SCOPE, name="theme", methods=["POST"])
