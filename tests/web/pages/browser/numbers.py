"""The numbers of a page that lead to no explanation, by reading its HTML."""

import re
from html.parser import HTMLParser
from typing import NamedTuple

VOID = {"br", "hr", "img", "input", "link", "meta", "rect", "line", "option"}
# What is looked at as a whole: a cell, a figure of a list of facts, a tile, what an advice saves.
PLACES = {"td", "dd", "b"}
# A number begins the text, with a sign, and few words follow: a unit, or the bounds of an interval.
NUMBER = re.compile(r"[^\w#(]*(?!0\d)\d+(?:[\u202f,]\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?\s?[×x%]?(?:\s[^\s]{1,14}){0,8}")
DATE = re.compile(r"\d{4}-\d\d(-\d\d.*)?")
SENTENCE = re.compile(r"[a-z]{2,} [a-z]{2,} [a-z]{2,}")


def is_number(text: str) -> bool:
    """Tell whether a text is a number, with or without a unit or an interval; a date or a sentence is none."""
    text = text.strip()
    return bool(NUMBER.fullmatch(text)) and not DATE.fullmatch(text) and not SENTENCE.search(text)


class Place(NamedTuple):
    """A number that stands somewhere without an explanation: in which table and column, or under which title."""

    table: str
    column: str
    text: str


class _Element:
    def __init__(self, tag: str, known: dict[str, str]) -> None:
        self.tag, self.known, self.texts = tag, known, list[str]()
        self.classes = set(known.get("class", "").split())

    @property
    def text(self) -> str:
        return " ".join("".join(self.texts).split())


class Numbers(HTMLParser):
    """Collects in `bare` what is not explained, and in `explained` where the others lead."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.bare: list[Place] = []
        self.explained: list[str] = []
        self._open: list[_Element] = []
        self._caption, self._heads, self._cell, self._title = "", list[tuple[str, bool]](), 0, ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in VOID:
            return
        if tag == "table":
            self._caption, self._heads = "", []
        if tag == "tr":
            self._cell = 0
        self._open.append(_Element(tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        for one in reversed(self._open):
            one.texts.append(data)
            if one.tag in ("svg", "a", "time", "code", "option", "th", "summary") or "named" in one.classes:
                break

    def handle_endtag(self, tag: str) -> None:
        while self._open and tag not in VOID:
            one = self._open.pop()
            self._judge(one)
            if one.tag == tag:
                return

    def _judge(self, one: _Element) -> None:
        if one.tag == "caption":
            self._caption = one.text
        elif one.tag == "th":
            self._heads.append((one.text, "data-explain" in one.known))
            self._cell += any(inner.tag == "tbody" for inner in self._open)
        elif one.tag in ("dt", "h2", "h3"):
            self._title = one.text
        elif one.tag == "a" and "data-explain" in one.known:
            self.explained.append(one.known["href"])
            if any(inner.tag == "th" for inner in self._open):
                next(inner for inner in self._open if inner.tag == "th").known["data-explain"] = ""
        elif self._is_in("documentation"):  # the text around a table says what its numbers are
            return
        elif one.tag == "td":
            head, is_led = self._heads[self._cell] if self._cell < len(self._heads) else ("", False)
            self._cell += 1
            self._take(self._caption, head, one.text, is_led)
        elif self._is_in("schema"):  # what a view holds, in words
            return
        elif one.tag in PLACES or (one.classes & {"big", "muted"} and self._is_in("tile")):
            self._take("", self._title, one.text, False)

    def _is_in(self, name: str) -> bool:
        return any(name in one.classes for one in self._open)

    def _take(self, table: str, column: str, text: str, is_led: bool) -> None:
        if is_number(text) and not is_led:
            self.bare.append(Place(table, column, text))
