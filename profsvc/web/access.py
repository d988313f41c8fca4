"""Who may do what: names that the service answers to, pages of others, tokens and their scopes. All else is refused."""

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.requests import cookie_parser
from starlette.routing import BaseRoute, Match
from starlette.types import Scope

from profsvc import store
from profsvc.errors import AccessError, MethodError, NotFoundError, TokenError
from profsvc.web.site import Site
from profsvc.web.way_in import cookie_of

ANYONE = "anyone"
"""The scope of a route that needs no token."""
SAFE = {"GET", "HEAD", "OPTIONS"}


def scope_of(route: BaseRoute) -> str | None:
    """Return the scope that a route needs; None, which nobody has, where it names none."""
    said: Mapping[str, Any] = getattr(route, "openapi_extra", None) or {}
    return said.get("x-scope")


def route_of(routes: Sequence[BaseRoute], scope: Scope) -> BaseRoute:
    """Return the route that will answer a request."""
    allowed: set[str] = set()
    for route in routes:
        match, _ = route.matches(scope)
        if match is Match.FULL:
            return route
        if match is Match.PARTIAL:
            allowed |= getattr(route, "methods", None) or set()
    if allowed:
        error = MethodError(f"{scope['method']} is not answered here, only {' and '.join(sorted(allowed))}")
        error.allowed = tuple(sorted(allowed))
        raise error
    raise NotFoundError("nothing is at this path; /openapi.json lists what there is")


def check_host(site: Site, headers: Mapping[str, str]) -> None:
    """Refuse a request by a name that is not this service's: a page elsewhere may have made it point here."""
    host = headers.get("host", "").lower()
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    if "*" in site.hosts or name in site.hosts or (site.any_address and _is_address(name)):
        return
    raise AccessError(
        f"this service does not answer to the name {name[:100]!r}; ask by one of {', '.join(sorted(site.hosts))}, "
        "or start it with --allowed-host NAME"
    )


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def check_origin(method: str, headers: Mapping[str, str]) -> None:
    """Refuse what a browser sends on behalf of a page that is not this service's; following a link is no harm."""
    site = headers.get("sec-fetch-site", "none")
    follows = headers.get("sec-fetch-mode") == "navigate" and method in SAFE
    if site not in {"same-origin", "none"} and not follows:
        raise AccessError("a page of another site may not ask this service")
    origin = headers.get("origin")
    if method in SAFE:
        return
    if origin is not None and origin.partition("://")[2] != headers.get("host"):
        raise AccessError("a page of another site may not write to this service")
    if origin is None and "sec-fetch-site" not in headers and "authorization" not in headers and "cookie" in headers:
        raise AccessError("a browser that writes must say by Origin or Sec-Fetch-Site which page it is on")


def grant_for(site: Site, headers: Mapping[str, str]) -> store.Grant | None:
    """Return what a request may do by its token; None without one where one is needed."""
    said = headers.get("authorization")
    if said is not None:
        kind, _, token = said.partition(" ")
        grant = store.grant_of(site.engine, token.strip()) if kind.lower() == "bearer" else None
        if grant is None:
            raise TokenError("the token is not one of this service, has expired, or was revoked")
        return grant
    # A cookie that does not hold counts as none: a service on another port may have left it.
    kept = cookie_of(headers, cookie_parser(headers.get("cookie", "")))
    if kept is not None and (found := store.grant_of(site.engine, kept)) is not None:
        return found
    if site.is_public or store.is_closed(site.engine):
        return None
    return store.EVERYTHING


def check_scope(needed: str | None, grant: store.Grant | None) -> store.Grant:
    """Refuse what the grant does not hold; return it."""
    if needed is None:
        raise AccessError("this path is closed")
    if grant is None:
        raise TokenError("a token is needed: send the header `Authorization: Bearer psvc_...`, or set PROFSVC_TOKEN")
    if not grant.allows(needed):
        has = ", ".join(sorted(grant.scopes))
        raise AccessError(f"this needs a token with the scope {needed!r}; the one given has {has}")
    return grant
