"""Figures inside pages: what matplotlib draws as SVG, made to follow the colours of the page and to be read aloud.

The picture is the one that the command line writes. Its colours become classes, because a page runs no inline style;
its ids get the figure's name before them; what describes it comes first in it.
"""

import hashlib
import json
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any, NamedTuple
from xml.etree import ElementTree

from markupsafe import Markup

from profsvc.errors import DomainError
from profsvc.reports.figures import shown
from profsvc.reports.rows import plain, visible
from profsvc.web.pages.assets import colour_classes
from profsvc.web.pages.tables import Column, Row, columns_of

SVG = "{http://www.w3.org/2000/svg}"
HREF = "{http://www.w3.org/1999/xlink}href"
MOST_BYTES = 64 << 20
LONGEST_TITLE, LONGEST_NOTE = 200, 600
KEPT_AS_ATTRIBUTE = {
    "clip-path", "fill", "fill-opacity", "fill-rule", "font-size", "font-style", "font-weight", "opacity", "stroke",
    "stroke-dasharray", "stroke-dashoffset", "stroke-linecap", "stroke-linejoin", "stroke-miterlimit",
    "stroke-opacity", "stroke-width", "text-anchor", "image-rendering",
}  # fmt: skip
# The page says these for all figures, or they change nothing.
LEFT = {"font-family", "font-variant", "font-stretch", "white-space", "transform-box", "transform-origin",
        "-inkscape-font-specification"}  # fmt: skip
_FONT = re.compile(r"^(?:(?P<style>italic|oblique)\s+)?(?:(?P<weight>bold|\d{3})\s+)?(?P<size>[\d.]+px)\s")


class Figure(NamedTuple):
    """A figure of a page: a title, the picture or why there is none, what is assumed in it, and its numbers."""

    title: str
    svg: Markup | None
    reason: str = ""
    notes: Sequence[str] = ()
    columns: Sequence[Column] = ()
    rows: Sequence[Row] = ()


def figure(
    name: str, title: str, draw: Callable[[], bytes], data: Any, *, description: str = "", notes: Sequence[str] = (),
    rows: Sequence[dict[str, Any]] = (), columns: Sequence[Column] = (),
) -> Figure:  # fmt: skip
    """Return a figure. ``draw`` gives the SVG in the light colours; it is asked once for the same ``data``.

    ``name`` begins the ids in it, and must be another one for each figure of a page; ``rows`` are its numbers.
    """
    title, notes = shown(title, LONGEST_TITLE), [shown(note, LONGEST_NOTE) for note in notes]
    said = description or f"{title}. Its numbers stand in the table behind it."
    key = hashlib.blake2b(
        json.dumps([name, title, said, plain(data)], default=str, sort_keys=True).encode("utf-8", "backslashreplace")
    ).digest()
    svg = _DRAWN.get(key, lambda: inline(draw(), name, title, said))
    return Figure(title, svg, notes=notes, columns=columns or columns_of(list(rows)), rows=rows)


def without(title: str, reason: str) -> Figure:
    """Return the place of a figure that cannot be drawn."""
    return Figure(title, None, reason)


class _Drawn:
    """Figures as they were drawn, the newest, up to so many bytes."""

    def __init__(self, most_bytes: int) -> None:
        self._most, self._held, self._lock = most_bytes, 0, Lock()
        self._known: OrderedDict[bytes, Markup] = OrderedDict()

    def get(self, key: bytes, draw: Callable[[], Markup]) -> Markup:
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
        made = draw()
        with self._lock:
            if key not in self._known:
                self._known[key] = made
                self._held += len(made)
            while self._held > self._most and len(self._known) > 1:
                self._held -= len(self._known.popitem(last=False)[1])
        return made


_DRAWN = _Drawn(MOST_BYTES)


def inline(svg: bytes, name: str, title: str, description: str) -> Markup:
    """Return an SVG of matplotlib as it can stand in a page."""
    # The bytes are our own; texts of uploads in them were escaped when they were drawn.
    root = ElementTree.fromstring(svg)
    for gone in (f"{SVG}metadata", f"{SVG}title"):
        for one in root.findall(gone):
            root.remove(one)
    for parent in root.iter():
        for style in [one for one in parent if one.tag == f"{SVG}style"]:
            parent.remove(style)
    for one in root.iter():
        _settle(one, name)
    _settle_whole(root, name, title, description)
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def _settle_whole(root: ElementTree.Element, name: str, title: str, description: str) -> None:
    """Give a picture the words for who does not see it, and the colour of what has none."""
    for attribute in ("width", "height", "version"):
        root.attrib.pop(attribute, None)
    root.attrib |= {"role": "img", "aria-labelledby": f"{name}-title {name}-text", "stroke-linejoin": "round",
                    "stroke-linecap": "butt", "class": "f-ink"}  # fmt: skip
    for place, (tag, words) in enumerate((("title", title), ("desc", description))):
        said = ElementTree.Element(tag, {"id": f"{name}-{'title' if tag == 'title' else 'text'}"})
        said.text = visible(words)
        root.insert(place, said)


def _settle(one: ElementTree.Element, name: str) -> None:
    """Turn the style of an element into attributes and classes, and its ids and references into this figure's."""
    one.tag = one.tag.removeprefix(SVG)
    painted: list[str] = []
    for key, value in _declared(one.attrib.pop("style", "")):
        _take(one, key, value, painted)
    for key in ("fill", "stroke"):
        if key in one.attrib:
            value = one.attrib.pop(key)
            _take(one, key, value, painted)
    if painted:
        one.attrib["class"] = " ".join(painted)
    if "id" in one.attrib:
        one.attrib["id"] = f"{name}-{one.attrib['id']}"
    if (link := one.attrib.pop(HREF, None)) is not None:
        one.attrib["href"] = f"#{name}-{link[1:]}" if link.startswith("#") else link
    if "clip-path" in one.attrib:
        one.attrib["clip-path"] = one.attrib["clip-path"].replace("url(#", f"url(#{name}-")
    for key in [key for key in one.attrib if key.startswith("{")]:
        del one.attrib[key]


def _declared(style: str) -> list[tuple[str, str]]:
    pairs = [part.partition(":") for part in style.split(";") if part.strip()]
    return [(key.strip(), value.strip()) for key, _, value in pairs]


def _take(one: ElementTree.Element, key: str, value: str, painted: list[str]) -> None:
    if key in ("fill", "stroke") and (known := colour_classes().get(value.lower())):
        painted.append(f"{key[0]}-{known}")
    elif key == "font":
        _take_font(one, value)
    elif key in KEPT_AS_ATTRIBUTE:
        one.attrib[key] = value
    elif key not in LEFT:
        raise DomainError(f"a figure has the style {key!r}, which has no place in a page; add it to KEPT_AS_ATTRIBUTE")


def _take_font(one: ElementTree.Element, value: str) -> None:
    if found := _FONT.match(value):
        one.attrib["font-size"] = found["size"]
        for key in ("style", "weight"):
            if found[key]:
                one.attrib[f"font-{key}"] = found[key]


def table_of(view: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers and notes of a picture's view as `figure` takes them."""
    return {"rows": view["rows"], "notes": view.get("notes", ())}
