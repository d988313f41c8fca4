"""Authorization: allowed host names, request origins, tokens and their scopes."""

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.requests import cookie_parser
from starlette.routing import BaseRoute, Match
from starlette.types import Scope

from profsvc import store
from profsvc.errors import AccessError, MethodError, NotFoundError, TokenError
from profsvc.web.http.cookies import token_cookie
from profsvc.web.http.state import AppState

PUBLIC_SCOPE = "anyone"
"""The scope of a route that needs no token."""
SAFE_METHODS = {"GET", "HEAD", "OPTIONS"}


def scope_of(route: BaseRoute) -> str | None:
    """Return the scope that a route needs; None, which no token has, if it names none."""
    extra: Mapping[str, Any] = getattr(route, "openapi_extra", None) or {}
    return extra.get("x-scope")


def route_of(routes: Sequence[BaseRoute], scope: Scope) -> BaseRoute:
    """Return the route of a request."""
    allowed: set[str] = set()
    for route in routes:
        match, _ = route.matches(scope)
        if match is Match.FULL:
            return route
        if match is Match.PARTIAL:
            allowed |= getattr(route, "methods", None) or set()
    if allowed:
        error = MethodError(f"{scope['method']} is not allowed here; use {' or '.join(sorted(allowed))}")
        error.allowed = tuple(sorted(allowed))
        raise error
    raise NotFoundError("no such path; /openapi.json lists all paths")


def check_host(state: AppState, headers: Mapping[str, str]) -> None:
    """Reject a request for an unknown host name, as in a DNS rebinding attack."""
    host = headers.get("host", "").lower()
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    if "*" in state.hosts or name in state.hosts or (state.any_address and _is_address(name)):
        return
    raise AccessError(
        f"host name {name[:100]!r} is not allowed; use one of {', '.join(sorted(state.hosts))}, "
        "or start the service with --allowed-host NAME"
    )


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def check_origin(method: str, headers: Mapping[str, str]) -> None:
    """Reject cross-site requests of a browser, except links to pages."""
    fetch_site = headers.get("sec-fetch-site", "none")
    follows = headers.get("sec-fetch-mode") == "navigate" and method in SAFE_METHODS
    if fetch_site not in {"same-origin", "none"} and not follows:
        raise AccessError("cross-site requests are not allowed")
    origin = headers.get("origin")
    if method in SAFE_METHODS:
        return
    if origin is not None and origin.partition("://")[2] != headers.get("host"):
        raise AccessError("cross-site requests must not write to this service")
    if origin is None and "sec-fetch-site" not in headers and "authorization" not in headers and "cookie" in headers:
        raise AccessError("a browser request that writes needs the header Origin or Sec-Fetch-Site")


def grant_for(state: AppState, headers: Mapping[str, str]) -> store.Grant | None:
    """Return what a request may do by its token; None if a token is needed and missing."""
    header = headers.get("authorization")
    if header is not None:
        kind, _, token = header.partition(" ")
        grant = store.find_grant(state.engine, token.strip()) if kind.lower() == "bearer" else None
        if grant is None:
            raise TokenError("invalid, expired or revoked token")
        return grant
    # An invalid cookie is ignored: a service on another port may have set it.
    kept = token_cookie(headers, cookie_parser(headers.get("cookie", "")))
    if kept is not None and (found := store.find_grant(state.engine, kept)) is not None:
        return found
    if state.is_public or store.requires_token(state.engine):
        return None
    return store.FULL_ACCESS


def check_scope(needed: str | None, grant: store.Grant | None) -> store.Grant:
    """Raise if the grant lacks the scope; return it otherwise."""
    if needed is None:
        raise AccessError("this path is not accessible")
    if grant is None:
        raise TokenError(
            "authentication needed: send the header `Authorization: Bearer psvc_...`, or set PROFSVC_TOKEN"
        )
    if not grant.allows(needed):
        has = ", ".join(sorted(grant.scopes))
        raise AccessError(f"this needs a token with the scope {needed!r}; yours has: {has}")
    return grant
