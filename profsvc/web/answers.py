"""Answers: one shape of success, one of failure, and rows as JSON, CSV or NDJSON.

Success is ``{"ok": true, ...}``, failure ``{"ok": false, "error": {"code", "message", "request_id"}}`` with the status
of the error's kind. Rows are ``columns``, ``rows``, ``truncated`` and ``next``. CSV and NDJSON hold rows alone.
"""

import hashlib
import io
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from profsvc import store
from profsvc.errors import MethodError, OverloadedError, ProfsvcError, StoreBusyError, StoreLostError, TokenError
from profsvc.reports import whole
from profsvc.reports.rows import distinct, plain, render
from profsvc.web.site import site_of

FORMS = {"json": "application/json", "csv": "text/csv; charset=utf-8", "ndjson": "application/x-ndjson"}
PIECE = 1 << 16
RETRY_S = {OverloadedError: 5, StoreBusyError: 5, StoreLostError: 2}


def success(
    request: Request, body: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return ``{"ok": true, ...}``; what a browser has already is not sent again."""
    return tagged(request, {"ok": True, **body}, status, headers)


def tagged(
    request: Request, document: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a JSON document as it is."""
    return _tagged(request, _json(document), FORMS["json"], status, headers or {})


def rows(
    request: Request, form: str, page: store.Page, name: str, following: str | None, *, raw: bool = False
) -> Response:
    """Return a page of rows in a form; a CSV or NDJSON that is not whole says so in its head."""
    headers = {"link": f'<{following}>; rel="next"', "x-truncated": "true"} if page.truncated and following else {}
    if form == "json":
        body = {"columns": page.columns, "rows": page.rows, "truncated": page.truncated, "next": following}
        return success(request, body, headers=headers)
    text = render(page.columns, page.rows, form, raw=raw)
    headers["content-disposition"] = f'attachment; filename="{name}.{form}"'
    return _tagged(request, str(text).encode(), FORMS[form], 200, headers)


class Streamed(StreamingResponse):
    """An answer whose sources are let go of when it ends, however it ends."""

    def __init__(self, chunks: Iterator[bytes], sources: AsyncExitStack, **options: Any) -> None:
        """Send ``chunks``, then close ``sources``."""
        super().__init__(chunks, **options)
        self._sources = sources

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        async with self._sources:
            await super().__call__(scope, receive, send)


async def streamed(
    request: Request,
    form: str,
    query: str,
    values: Mapping[str, Any],
    name: str,
    *,
    raw: bool = False,
    objects: Collection[str] = (),
) -> Response:
    """Return all rows of a query as they come. If it fails on the way, its last line says so, and it breaks off.

    ``objects`` are columns of JSON texts whose objects are wanted.
    """
    site = site_of(request)
    seconds = site.limits.sql_export_seconds
    async with AsyncExitStack() as sources:
        await sources.enter_async_context(site.asking.turn())
        opened = ExitStack()
        sources.push_async_callback(run_in_threadpool, opened.close)
        asked = store.export(site.engine, query, values, seconds=seconds)
        found = await run_in_threadpool(opened.enter_context, asked)
        headers = {"content-disposition": f'attachment; filename="{name}.{form}"'}
        chunks = _loud(_written(form, found, raw=raw, objects=objects), form)
        return Streamed(chunks, sources.pop_all(), media_type=FORMS[form], headers=headers)


def _written(form: str, found: store.Rows, *, raw: bool, objects: Collection[str]) -> Iterator[bytes]:
    """Yield the rows as text, the names of the columns first, in pieces worth sending."""
    columns = distinct(found.columns)
    head = _text(form, columns, [], raw)
    pieces = [head]
    places = [columns.index(name) for name in objects if name in columns]
    for part in found.chunks:
        if places:
            part = [_opened(row, places) for row in part]
        pieces.append(_text(form, columns, part, raw)[len(head) :])
        if sum(map(len, pieces)) >= PIECE:
            yield b"".join(pieces)
            pieces.clear()
    yield b"".join(pieces)


def _opened(row: Sequence[Any], places: Collection[int]) -> tuple[Any, ...]:
    return tuple(json.loads(value) if k in places and isinstance(value, str) else value for k, value in enumerate(row))


def _text(form: str, columns: Sequence[str], part: Sequence[Any], raw: bool) -> bytes:
    buffer = io.BytesIO()
    whole.write(form, columns, [part], buffer, raw=raw)
    return buffer.getvalue()


def _loud(chunks: Iterator[bytes], form: str) -> Iterator[bytes]:
    try:
        yield from chunks
    except ProfsvcError as error:
        said = {"ok": False, "error": {"code": error.code(), "message": str(error)}}
        yield _json(said) + b"\n" if form == "ndjson" else f'"error: {str(error).replace(chr(34), chr(39))}"\n'.encode()
        raise


def failure(error: ProfsvcError, request_id: str) -> Response:
    """Return the answer for an error."""
    said = {"code": error.code(), "message": str(error), "request_id": request_id}
    headers = {}
    if isinstance(error, TokenError):
        headers["www-authenticate"] = 'Bearer realm="profsvc"'
    if isinstance(error, MethodError):
        headers["allow"] = ", ".join(error.allowed)
    if retry := next((seconds for kind, seconds in RETRY_S.items() if isinstance(error, kind)), None):
        headers["retry-after"] = str(retry)
    return Response(_json({"ok": False, "error": said}), error.status, headers, FORMS["json"])


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(plain(value), ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")


def _tagged(request: Request, body: bytes, media: str, status: int, headers: Mapping[str, str]) -> Response:
    """Give an answer that was read a tag of its bytes; return 304 where the client has them."""
    named = dict(headers)
    if request.method == "GET" and status == 200:
        named["etag"] = tag = f'W/"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
        if tag in [known.strip() for known in request.headers.get("if-none-match", "").split(",")]:
            return Response(status_code=304, headers=named)
    return Response(body, status, named, media)
