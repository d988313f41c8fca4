"""Pages that are the same for every reader until the store changes: a service computes them once."""

import zlib
from collections.abc import Callable
from functools import wraps
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from profsvc import store
from profsvc.web.http.cookies import theme_of, token_cookie
from profsvc.web.http.state import app_state, grant_of

MAX_PACKED_BYTES = 1 << 17
"""Size limit of a kept page, compressed; a page with a few hundred rows has a fifth of it."""


class _Page(NamedTuple):
    packed: bytes
    headers: dict[str, str]


def kept(answer: Callable[[Request], Response]) -> Callable[[Request], Response]:
    """Keep the pages that a function makes of the store and the address alone, with nothing of the clock.

    The key has all else that `render` shows: what the reader may do and see, and the theme.
    """

    @wraps(answer)
    def answered(request: Request) -> Response:
        grant = grant_of(request)
        key = (
            "page", answer.__qualname__, request.scope.get("root_path", ""), request.scope["path"],
            request.scope["query_string"], grant.scopes, grant.project, theme_of(request.cookies),
            token_cookie(request.headers, request.cookies) is not None,
        )  # fmt: skip

        def make() -> _Page | Response:
            response = answer(request)
            if response.status_code != 200:
                return response
            packed = zlib.compress(response.body, 1)
            return _Page(packed, dict(response.headers)) if len(packed) <= MAX_PACKED_BYTES else response

        found = store.kept_answer(app_state(request).engine, key, make, is_worth=lambda made: isinstance(made, _Page))
        if isinstance(found, Response):
            return found
        if found.headers["etag"] in [tag.strip() for tag in request.headers.get("if-none-match", "").split(",")]:
            return Response(status_code=304, headers=_without_length(found.headers))
        return Response(zlib.decompress(found.packed), headers=_without_length(found.headers))

    return answered


def _without_length(headers: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name != "content-length"}
