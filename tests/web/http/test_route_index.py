"""The index of routes finds what trying one route after the other finds."""

import re

import pytest
from starlette.routing import Match

from profsvc.web import app
from profsvc.web.http.route_index import RouteIndex

VALUES = ("7", "x.csv", "a/b", "launches", "")


def one_after_the_other(routes, scope):
    best = Match.NONE, None
    for route in routes:
        match, _ = route.matches(scope)
        if match.value > best[0].value:
            best = match, route
        if match is Match.FULL:
            break
    return best


@pytest.mark.parametrize("root_path", ["", "/tools/profsvc"])
def test_the_same_route_is_found(root_path):
    index, wrong = app._route_index(), []
    known = {re.sub(r"\{[^}]*\}", value, route.path) for route in app._routes() for value in VALUES}
    for path in {more for one in known for more in (one, f"{one}/", f"{one}/x", f"/{one}", one[:-1])}:
        scope = {"type": "http", "path": root_path + path, "root_path": root_path, "method": "GET"}
        # A route of another method matches in part, so those of a path are looked for once.
        of_path = [route for route in app._routes() if route.matches(scope)[0] is not Match.NONE]
        for method in ("GET", "POST", "PUT"):
            match, child = index.matches(scope | {"method": method})
            if (match, child.get("profsvc.route")) != one_after_the_other(of_path, scope | {"method": method}):
                wrong.append((method, path))
    assert not wrong


def test_few_routes_are_tried():
    index = app._route_index()
    assert len(index.possible({"path": "/runs/7", "root_path": ""})) < len(app._routes()) / 20
    assert RouteIndex([]).matches({"type": "http", "path": "/", "root_path": "", "method": "GET"}) == (Match.NONE, {})
