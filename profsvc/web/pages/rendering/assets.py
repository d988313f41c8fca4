"""Style sheets and scripts of the pages, each at a path with the hash of its content, so that caches never go stale.

The colours of both themes are written into the style sheet, which also colours the figures.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc.errors import NotFoundError
from profsvc.reports.plots.figure import DARK as FIGURE_DARK
from profsvc.reports.plots.figure import LIGHT as FIGURE_LIGHT
from profsvc.reports.plots.figure import Theme
from profsvc.web.http.authorization import PUBLIC_SCOPE
from profsvc.web.http.routes import add_page

FOLDER = Path(__file__).parents[2] / "static"
MEDIA_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
CACHE_CONTROL = "public, max-age=31536000, immutable"
_HASHED_NAME = re.compile(r"(?P<stem>[a-z]+)-(?P<hash>[0-9a-f]{16})(?P<kind>\.[a-z]+)")


class Asset(NamedTuple):
    """A static file."""

    content: bytes
    media: str
    name: str
    """Its name with the hash."""


def css_colours(theme: Theme) -> dict[str, str]:
    """Return the colours of figures by their CSS names; one of several is numbered: ``lines-0``."""
    found: dict[str, str] = {}
    for name, colour in theme._asdict().items():
        if isinstance(colour, tuple):
            found |= {f"{name}-{number}": one for number, one in enumerate(colour)}
        elif colour.startswith("#"):
            found[name] = colour
    return found


LIGHT = css_colours(FIGURE_LIGHT) | {
    "raised": "#f6f8fa", "edge": "#7d8590", "link": "#0860ca", "on-link": "#ffffff", "good": "#1a7f37",
    "warn": "#8a5a00", "bad": "#c21c28", "track": "#e3e8ee", "mark": "#fff4c7",
}  # fmt: skip
DARK = css_colours(FIGURE_DARK) | {
    "raised": "#161b22", "edge": "#6e7681", "link": "#58a6ff", "on-link": "#0d1117", "good": "#3fb950",
    "warn": "#d9a52b", "bad": "#ff6a61", "track": "#2a313a", "mark": "#3b2f0b",
}  # fmt: skip


def class_by_colour() -> dict[str, str]:
    """Return the CSS class of each colour of figures, light or dark."""
    found = {"#000000": "ink"}
    for theme in (FIGURE_LIGHT, FIGURE_DARK):
        for name, colour in css_colours(theme).items():
            found.setdefault(colour.lower(), name)
    return found


def _theme_css() -> str:
    """Return CSS with the colours as custom properties, and classes that apply them to figures."""

    def declarations(theme: Mapping[str, str], scheme: str) -> str:
        return f"color-scheme:{scheme};" + "".join(f"--{name}:{colour};" for name, colour in theme.items())

    painted = "".join(
        f".f-{name}{{fill:var(--{name})}}.s-{name}{{stroke:var(--{name})}}" for name in css_colours(FIGURE_LIGHT)
    )
    return (
        f":root{{{declarations(LIGHT, 'light')}}}\n"
        f"@media (prefers-color-scheme: dark){{:root:not([data-theme=light]){{{declarations(DARK, 'dark')}}}}}\n"
        f":root[data-theme=dark]{{{declarations(DARK, 'dark')}}}\n{painted}\n"
    )


def _files() -> Iterator[tuple[str, bytes]]:
    for path in sorted(FOLDER.iterdir()):
        if path.suffix in MEDIA_TYPES:
            own = path.read_bytes()
            yield path.name, _theme_css().encode() + own if path.name == "style.css" else own


@cache
def assets() -> Mapping[str, Asset]:
    """Return the static files by their plain names."""
    found = {}
    for name, content in _files():
        stem, kind = name.rsplit(".", 1)
        digest = hashlib.blake2b(content, digest_size=8).hexdigest()
        found[name] = Asset(content, MEDIA_TYPES[f".{kind}"], f"{stem}-{digest}.{kind}")
    return found


def asset_path(name: str) -> str:
    """Return the path of a file without the root path of a proxy."""
    return f"/static/{assets()[name].name}"


def send_asset(request: Request) -> Response:
    """Send a static file."""
    requested = request.path_params["name"]
    match = _HASHED_NAME.fullmatch(requested)
    found = assets().get(f"{match['stem']}{match['kind']}") if match else None
    if found is None or found.name != requested:
        raise NotFoundError(f"no static file {requested[:100]!r}; reload the page")
    headers = {"cache-control": CACHE_CONTROL, "etag": f'"{found.name}"'}
    if request.headers.get("if-none-match") == headers["etag"]:
        return Response(status_code=304, headers=headers)
    return Response(found.content, headers=headers, media_type=found.media)


def register(app: FastAPI) -> None:
    """Add the route."""
    add_page(app, "/static/{name}", send_asset, PUBLIC_SCOPE, name="static_file")
