"""``/docs`` and ``/docs/{name}``: the documentation, with its pictures. Raw HTML in a page is escaped."""

import posixpath
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from fastapi import FastAPI
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import Response

from profsvc import docs
from profsvc.errors import NotFoundError
from profsvc.web.http.authorization import PUBLIC_SCOPE
from profsvc.web.http.request_args import RequestArgs
from profsvc.web.http.routes import add_page
from profsvc.web.pages.rendering.page import page, path_to

PICTURES = {".svg": "image/svg+xml", ".png": "image/png"}
PICTURE_HEADERS = {"cache-control": "public, max-age=3600"}
NARROW_CHARACTERS = 40  # the line of code that a window of 400 pixels shows


class _Renderer(RendererHTML):
    """Writes tables and pictures into boxes that scroll, tables with the heading above as their caption.

    Tab reaches them and long code. A picture is never smaller than it was drawn, so its text can be read.
    """

    def table_open(self, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
        caption = escape(tokens[index].meta["caption"])
        return (
            f'<div class="wide" role="region" aria-label="{caption}" tabindex="0"><table>\n'
            f'<caption class="visually-hidden">{caption}</caption>\n'
        )

    def table_close(self, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
        return "</table></div>\n"

    def image(self, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
        name = escape(tokens[index].content)
        picture = super().image(tokens, index, options, env)
        return f'<span class="wide picture" role="group" aria-label="{name}" tabindex="0">{picture}</span>'

    def fence(self, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
        block = super().fence(tokens, index, options, env)
        is_long = any(len(line) > NARROW_CHARACTERS for line in tokens[index].content.splitlines())
        return block.replace("<pre>", '<pre tabindex="0">', 1) if is_long else block


_MARKDOWN = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Renderer).enable("table")


@cache
def render(name: str, root: str) -> Markup:
    """Return the body of a page as HTML, without its title; ``root`` is the path of the documentation."""
    tokens = _MARKDOWN.parse(docs.topic(name).text)
    body = tokens[3:]  # the first three are the title
    caption = tokens[1].content
    for token, following in zip(body, [*body[1:], None], strict=True):
        if token.type == "heading_open" and following is not None:
            caption = following.content
            token.attrSet("id", docs.anchor(caption))
        elif token.type == "table_open":
            token.meta["caption"] = caption
        for child in token.children or ():
            for attribute in ("href", "src"):
                if target := child.attrGet(attribute):
                    child.attrSet(attribute, _address(str(target), name, root))
    return Markup(_MARKDOWN.renderer.render(body, _MARKDOWN.options, {}))


def _address(target: str, name: str, root: str) -> str:
    """Return where a link of a page leads in a browser.

    >>> _address("../reference/views.md#v1_runs", "howto/sql", "/docs"), _address("#a", "index", "/docs")
    ('/docs/reference/views#v1_runs', '#a')
    """
    if re.match(r"[a-z]+:|#", target):
        return target
    file, hash_sign, fragment = target.partition("#")
    path = posixpath.normpath(posixpath.join(posixpath.dirname(name), file))
    return f"{root}/{path.removesuffix('.md')}{hash_sign}{fragment}"


def show_documentation(request: Request) -> Response:
    """Show a page of the documentation, or send a picture of one."""
    RequestArgs(request).reject_unknown()
    name = request.path_params.get("name", "index")
    if match := re.fullmatch(r"pictures/([\w-]+)(\.\w+)", name):
        path = docs.FOLDER / "pictures" / f"{match[1]}{match[2]}"
        if match[2] not in PICTURES or not path.is_file():
            raise NotFoundError(f"no picture of the documentation is named {name[:100]!r}")
        return Response(path.read_bytes(), headers=PICTURE_HEADERS, media_type=PICTURES[match[2]])
    topic = docs.topic(name)
    body = render(topic.name, path_to(request, "/docs"))
    return page(request, "docs/documentation.html", topic.title, body=body, is_index=topic.name == "index")


def register(app: FastAPI) -> None:
    """Add the routes."""
    add_page(app, "/docs", show_documentation, PUBLIC_SCOPE, name="documentation")
    add_page(app, "/docs/{name:path}", show_documentation, PUBLIC_SCOPE, name="documentation_page")
