"""Inline figures: SVG that follows the theme of the page and has a text alternative.

Colours become classes, because the content security policy forbids inline styles. Ids get the name of the figure as
prefix, and title and description come first.
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
from profsvc.reports.plots.figure import shown
from profsvc.reports.rows import plain, visible
from profsvc.web.pages.rendering.assets import class_by_colour
from profsvc.web.pages.rendering.tables import Column, Row, plain_columns

SVG = "{http://www.w3.org/2000/svg}"
HREF = "{http://www.w3.org/1999/xlink}href"
SVG_MEDIA_TYPE = "image/svg+xml"
CACHE_BYTES = 64 << 20
MAX_TITLE_CHARS, MAX_NOTE_CHARS = 200, 600
SVG_ATTRIBUTES = {
    "clip-path", "fill", "fill-opacity", "fill-rule", "font-size", "font-style", "font-weight", "opacity", "stroke",
    "stroke-dasharray", "stroke-dashoffset", "stroke-linecap", "stroke-linejoin", "stroke-miterlimit",
    "stroke-opacity", "stroke-width", "text-anchor", "image-rendering",
}  # fmt: skip
# Set by the page for all figures, or without effect.
IGNORED_STYLES = {"font-family", "font-variant", "font-stretch", "white-space", "transform-box", "transform-origin",
        "-inkscape-font-specification"}  # fmt: skip
_FONT = re.compile(r"^(?:(?P<style>italic|oblique)\s+)?(?:(?P<weight>bold|\d{3})\s+)?(?P<size>[\d.]+px)\s")


class Figure(NamedTuple):
    """A figure: a title, the SVG or the reason why it is missing, notes and data."""

    title: str
    svg: Markup | None
    reason: str = ""
    notes: Sequence[str] = ()
    columns: Sequence[Column] = ()
    rows: Sequence[Row] = ()
    chart: str = ""
    """The kind of the live chart that the script draws instead."""
    source: str = ""
    """The path of the data of the live chart, in the API."""
    image: str = ""
    """The path of the static figure where it is not part of the page."""
    description: str = ""
    """The text alternative of that image."""


def live_figure(
    title: str, chart: str, source: str, image: str, *, notes: Sequence[str] = (),
    rows: Sequence[dict[str, Any]] = (), columns: Sequence[Column] = (), description: str = "",
) -> Figure:  # fmt: skip
    """Return a figure that the script draws of the data at ``source``; without script ``image`` is loaded."""
    notes = [shown(note, MAX_NOTE_CHARS) for note in notes]
    return Figure(shown(title, MAX_TITLE_CHARS), None, "", notes, columns or plain_columns(list(rows)), rows,
                  chart, source, image, description)  # fmt: skip


def figure(
    name: str, title: str, draw: Callable[[], bytes], data: Any, *, description: str = "", notes: Sequence[str] = (),
    rows: Sequence[dict[str, Any]] = (), columns: Sequence[Column] = (),
) -> Figure:  # fmt: skip
    """Return a figure. ``draw`` returns the SVG in light colours; it is called once for the same ``data``.

    ``name`` is the prefix of its ids and must be unique on a page; ``rows`` are its data.
    """
    title, notes = shown(title, MAX_TITLE_CHARS), [shown(note, MAX_NOTE_CHARS) for note in notes]
    alt_text = description or f"{title}. Its data is in the table below."
    key = hashlib.blake2b(
        json.dumps([name, title, alt_text, plain(data)], default=str, sort_keys=True).encode(
            "utf-8", "backslashreplace"
        )
    ).digest()
    svg = _CACHE.get(key, lambda: inline_svg(draw(), name, title, alt_text))
    return Figure(title, svg, "", notes, columns or plain_columns(list(rows)), rows)


def missing_figure(title: str, reason: str) -> Figure:
    """Return a placeholder for a figure that cannot be drawn."""
    return Figure(title, None, reason)


class _FigureCache:
    """A cache of drawn figures, least recently used first out, limited in bytes."""

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


_CACHE = _FigureCache(CACHE_BYTES)


def inline_svg(svg: bytes, name: str, title: str, description: str) -> Markup:
    """Return an SVG of a plot for embedding in a page."""
    # The SVG is our own; uploaded texts were escaped when it was drawn.
    root = ElementTree.fromstring(svg)
    for gone in (f"{SVG}metadata", f"{SVG}title"):
        for one in root.findall(gone):
            root.remove(one)
    for parent in root.iter():
        for style in [one for one in parent if one.tag == f"{SVG}style"]:
            parent.remove(style)
    for one in root.iter():
        _convert_element(one, name)
    _label_root(root, name, title, description)
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def _label_root(root: ElementTree.Element, name: str, title: str, description: str) -> None:
    """Add title, description and the default colour to the root element."""
    for attribute in ("width", "height", "version"):
        root.attrib.pop(attribute, None)
    root.attrib |= {"role": "img", "aria-labelledby": f"{name}-title {name}-text", "stroke-linejoin": "round",
                    "stroke-linecap": "butt", "class": "f-ink"}  # fmt: skip
    for place, (tag, words) in enumerate((("title", title), ("desc", description))):
        label = ElementTree.Element(tag, {"id": f"{name}-{'title' if tag == 'title' else 'text'}"})
        label.text = visible(words)
        root.insert(place, label)


def _convert_element(one: ElementTree.Element, name: str) -> None:
    """Convert the style of an element to attributes and classes, and prefix its ids and references."""
    one.tag = one.tag.removeprefix(SVG)
    painted: list[str] = []
    for key, value in _declarations(one.attrib.pop("style", "")):
        _apply_style(one, key, value, painted)
    for key in ("fill", "stroke"):
        if key in one.attrib:
            value = one.attrib.pop(key)
            _apply_style(one, key, value, painted)
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


def _declarations(style: str) -> list[tuple[str, str]]:
    pairs = [part.partition(":") for part in style.split(";") if part.strip()]
    return [(key.strip(), value.strip()) for key, _, value in pairs]


def _apply_style(one: ElementTree.Element, key: str, value: str, painted: list[str]) -> None:
    if key in ("fill", "stroke") and (known := class_by_colour().get(value.lower())):
        painted.append(f"{key[0]}-{known}")
    elif key == "font":
        _apply_font(one, value)
    elif key in SVG_ATTRIBUTES:
        one.attrib[key] = value
    elif key not in IGNORED_STYLES:
        raise DomainError(f"a figure has the style {key!r}, which has no place in a page; add it to KEPT_AS_ATTRIBUTE")


def _apply_font(one: ElementTree.Element, value: str) -> None:
    if found := _FONT.match(value):
        one.attrib["font-size"] = found["size"]
        for key in ("style", "weight"):
            if found[key]:
                one.attrib[f"font-{key}"] = found[key]


def table_of(view: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data and notes of a view as arguments of `figure`."""
    return {"rows": view["rows"], "notes": view.get("notes", ())}
