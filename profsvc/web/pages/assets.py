"""Style and script of the pages: own files, each at a path with the hash of its bytes, so that it never goes stale.

Colours are a table, light and dark, from which the style sheet of the pages and the figures in them is written.
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
from profsvc.reports import power_plots
from profsvc.web.access import ANYONE
from profsvc.web.routes import add_page

FOLDER = Path(__file__).parents[1] / "static"
MEDIA = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
FOREVER = "public, max-age=31536000, immutable"
_HASHED = re.compile(r"(?P<stem>[a-z]+)-(?P<hash>[0-9a-f]{16})(?P<kind>\.[a-z]+)")


class Asset(NamedTuple):
    """A file as it is sent."""

    content: bytes
    media: str
    name: str
    """Its name with the hash in it."""


def palette(theme: Mapping[str, object]) -> dict[str, str]:
    """Return the colours of figures by name, one of a row of them with its place: ``lines-0``."""
    found: dict[str, str] = {}
    for name, colour in theme.items():
        if isinstance(colour, str):
            found[name] = colour
        elif isinstance(colour, tuple):
            found |= {f"{name}-{place}": str(one) for place, one in enumerate(colour)}
    return found


LIGHT = palette(power_plots.LIGHT) | {
    "raised": "#f6f8fa", "edge": "#7d8590", "link": "#0860ca", "on-link": "#ffffff", "good": "#1a7f37",
    "warn": "#8a5a00", "bad": "#c21c28", "track": "#e3e8ee", "mark": "#fff4c7",
}  # fmt: skip
DARK = palette(power_plots.DARK) | {
    "raised": "#161b22", "edge": "#6e7681", "link": "#58a6ff", "on-link": "#0d1117", "good": "#3fb950",
    "warn": "#d9a52b", "bad": "#ff6a61", "track": "#2a313a", "mark": "#3b2f0b",
}  # fmt: skip


def colour_classes() -> dict[str, str]:
    """Return the name of each colour that figures are drawn in, light or dark; one colour has one name."""
    found = {"#000000": "ink"}
    for theme in (power_plots.LIGHT, power_plots.DARK):
        for name, colour in palette(theme).items():
            found.setdefault(colour.lower(), name)
    return found


def _tokens() -> str:
    """Write the colours as custom properties, and the classes that paint parts of figures with them."""

    def said(theme: Mapping[str, str], scheme: str) -> str:
        return f"color-scheme:{scheme};" + "".join(f"--{name}:{colour};" for name, colour in theme.items())

    painted = "".join(
        f".f-{name}{{fill:var(--{name})}}.s-{name}{{stroke:var(--{name})}}" for name in palette(power_plots.LIGHT)
    )
    return (
        f":root{{{said(LIGHT, 'light')}}}\n"
        f"@media (prefers-color-scheme: dark){{:root:not([data-theme=light]){{{said(DARK, 'dark')}}}}}\n"
        f":root[data-theme=dark]{{{said(DARK, 'dark')}}}\n{painted}\n"
    )


def _files() -> Iterator[tuple[str, bytes]]:
    for path in sorted(FOLDER.iterdir()):
        if path.suffix in MEDIA:
            own = path.read_bytes()
            yield path.name, _tokens().encode() + own if path.name == "style.css" else own


@cache
def assets() -> Mapping[str, Asset]:
    """Return the files by their plain names."""
    found = {}
    for name, content in _files():
        stem, kind = name.rsplit(".", 1)
        digest = hashlib.blake2b(content, digest_size=8).hexdigest()
        found[name] = Asset(content, MEDIA[f".{kind}"], f"{stem}-{digest}.{kind}")
    return found


def asset_path(name: str) -> str:
    """Return the path of a file, without what a proxy puts before it."""
    return f"/static/{assets()[name].name}"


def send(request: Request) -> Response:
    """Send a file of the pages."""
    asked = request.path_params["name"]
    match = _HASHED.fullmatch(asked)
    found = assets().get(f"{match['stem']}{match['kind']}") if match else None
    if found is None or found.name != asked:
        raise NotFoundError(f"no file of the pages is named {asked[:100]!r}; load the page anew")
    headers = {"cache-control": FOREVER, "etag": f'"{found.name}"'}
    if request.headers.get("if-none-match") == headers["etag"]:
        return Response(status_code=304, headers=headers)
    return Response(found.content, headers=headers, media_type=found.media)


def register(app: FastAPI) -> None:
    """Add the route."""
    add_page(app, "/static/{name}", send, ANYONE, name="static_file")
