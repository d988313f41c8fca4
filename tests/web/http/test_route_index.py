"""The index of routes finds what trying one route after the other finds."""

import re

import pytest
from starlette.routing import Match

from profsvc.web import app
from profsvc.web.http.route_index import RouteIndex

VALUES = ("7", "x.csv", "a/b", "launches", "")


def one_after_the_other(scope):
    best = Match.NONE, None
    for route in app._routes():
        match, _ = route.matches(scope)
        if match.value > best[0].value:
            best = match, route
        if match is Match.FULL:
            break
    return best


@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
@pytest.mark.parametrize("root_path", ["", "/tools/profsvc"])
def test_the_same_route_is_found(method, root_path):
    index, wrong = app._route_index(), []
    known = {re.sub(r"\{[^}]*\}", value, route.path) for route in app._routes() for value in VALUES}
    for path in {more for one in known for more in (one, f"{one}/", f"{one}/x", f"/{one}", one[:-1])}:
        scope = {"type": "http", "path": root_path + path, "root_path": root_path, "method": method}
        match, child = index.matches(scope)
        if (match, child.get("profsvc.route")) != one_after_the_other(scope):
            wrong.append(path)
    assert not wrong


def test_few_routes_are_tried():
    index = app._route_index()
    assert len(index.possible({"path": "/runs/7", "root_path": ""})) < len(app._routes()) / 20
    assert RouteIndex([]).matches({"type": "http", "path": "/", "root_path": "", "method": "GET"}) == (Match.NONE, {})
