"""All routes as one, which looks only at those that the first two parts of a path can mean.

The framework tries one route after the other, by a regular expression each. With hundreds of them that takes a fifth of
the processor time of all pages.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import zip_longest

from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

INDEXED_PARTS = 2
MAX_KEPT = 4096
"""Beginnings of paths whose routes are kept. Clients may send any number of others."""
_FOUND = "profsvc.route"


class RouteIndex(BaseRoute):
    """Finds the route of a request in the order in which they were given."""

    def __init__(self, routes: Sequence[BaseRoute]) -> None:
        """Index routes with a path."""
        self._routes = [(route, _parts(getattr(route, "path", ""))) for route in routes]
        self._possible = lru_cache(MAX_KEPT)(self._find_possible)

    def possible(self, scope: Scope) -> Sequence[BaseRoute]:
        """Return the routes that may match a request, in their order."""
        return self._possible(_parts(scope["path"].removeprefix(scope.get("root_path", ""))))

    def _find_possible(self, parts: tuple[str, ...]) -> Sequence[BaseRoute]:
        return [route for route, known in self._routes if _may_match(known, parts)]

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match the first route that matches; else the first that only the method keeps from it."""
        best: tuple[Match, Scope] = Match.NONE, {}
        for route in self.possible(scope) if scope["type"] == "http" else ():
            match, child = route.matches(scope)
            if match.value > best[0].value:
                best = match, {**child, _FOUND: route}
            if match is Match.FULL:
                break
        return best

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on to the route that was found."""
        await scope[_FOUND].handle(scope, receive, send)


def _parts(path: str) -> tuple[str, ...]:
    return tuple(path.split("/", INDEXED_PARTS + 1)[1 : INDEXED_PARTS + 1])


def _may_match(known: Sequence[str], parts: Sequence[str]) -> bool:
    """Tell whether the begin of a path may be one of a route; what is in braces may be several parts.

    >>> _may_match(("runs", "{run_id}"), ("runs", "7")), _may_match(("runs",), ("runs", "7"))
    (True, False)
    """
    for one, other in zip_longest(known, parts):
        if one is not None and "{" in one:
            return True
        if one != other:
            return False
    return True
