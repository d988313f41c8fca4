"""Responses: success, error, and rows as JSON, CSV or NDJSON.

Success is ``{"ok": true, ...}``. An error is ``{"ok": false, "error": {"code", "message", "request_id"}}`` with the
HTTP status of its class. Rows are ``columns``, ``rows``, ``truncated`` and ``next``; CSV and NDJSON contain only rows.
"""

import hashlib
import io
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from functools import partial
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from profsvc import store
from profsvc.errors import MethodError, OverloadedError, ProfsvcError, StoreBusyError, StoreLostError, TokenError
from profsvc.reports import export
from profsvc.reports.rows import distinct, plain, render
from profsvc.web.http.state import app_state

MEDIA_TYPES = {"json": "application/json", "csv": "text/csv; charset=utf-8", "ndjson": "application/x-ndjson"}
MIN_CHUNK_BYTES = 1 << 16
RETRY_AFTER_S = {StoreBusyError: 5, StoreLostError: 2}


def success(
    request: Request, body: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return ``{"ok": true, ...}``; 304 if the client has the same bytes."""
    return json_response(request, {"ok": True, **body}, status, headers)


def json_response(
    request: Request, document: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a JSON document; 304 if the client has the same bytes."""
    return _with_etag(request, _json_bytes(document), MEDIA_TYPES["json"], status, headers or {})


def rows_response(
    request: Request, form: str, page: store.Page, name: str, following: str | None, *, raw: bool = False
) -> Response:
    """Return a page of rows in a format; a truncated CSV or NDJSON has the header X-Truncated."""
    headers = {"link": f'<{following}>; rel="next"', "x-truncated": "true"} if page.truncated and following else {}
    if form == "json":
        body = {"columns": page.columns, "rows": page.rows, "truncated": page.truncated, "next": following}
        return success(request, body, headers=headers)
    text = render(page.columns, page.rows, form, raw=raw)
    headers["content-disposition"] = f'attachment; filename="{name}.{form}"'
    return _with_etag(request, str(text).encode(), MEDIA_TYPES[form], 200, headers)


class ClosingResponse(StreamingResponse):
    """A streamed response that closes its sources when it ends or fails."""

    def __init__(self, chunks: Iterator[bytes], sources: AsyncExitStack, **options: Any) -> None:
        """Send ``chunks``, then close ``sources``."""
        super().__init__(chunks, **options)
        self._sources = sources

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response."""
        async with self._sources:
            await super().__call__(scope, receive, send)


async def stream_query(
    request: Request,
    form: str,
    query: str,
    values: Mapping[str, Any],
    name: str,
    *,
    raw: bool = False,
    objects: Collection[str] = (),
) -> Response:
    """Stream all rows of a query. After a failure the last line is the error, and the connection is closed.

    ``objects`` are columns of JSON text that are returned as objects.
    """
    state = app_state(request)
    seconds = state.limits.sql_export_seconds
    async with AsyncExitStack() as sources:
        await sources.enter_async_context(state.query_limit.slot(request))
        opened = ExitStack()
        sources.push_async_callback(run_in_threadpool, opened.close)
        rows = await run_in_threadpool(partial(state.ask, store.export, query, values, seconds=seconds))
        found = await run_in_threadpool(opened.enter_context, rows)
        headers = {"content-disposition": f'attachment; filename="{name}.{form}"'}
        chunks = _with_error_line(_encoded_chunks(form, found, raw=raw, objects=objects), form)
        return ClosingResponse(chunks, sources.pop_all(), media_type=MEDIA_TYPES[form], headers=headers)


def _encoded_chunks(form: str, found: store.Rows, *, raw: bool, objects: Collection[str]) -> Iterator[bytes]:
    """Yield the column names and rows as text in chunks."""
    columns = distinct(found.columns)
    head = _encode(form, columns, [], raw)
    pieces = [head]
    places = [columns.index(name) for name in objects if name in columns]
    for part in found.chunks:
        if places:
            part = [_parse_json_cells(row, places) for row in part]
        pieces.append(_encode(form, columns, part, raw)[len(head) :])
        if sum(map(len, pieces)) >= MIN_CHUNK_BYTES:
            yield b"".join(pieces)
            pieces.clear()
    yield b"".join(pieces)


def _parse_json_cells(row: Sequence[Any], places: Collection[int]) -> tuple[Any, ...]:
    return tuple(json.loads(value) if k in places and isinstance(value, str) else value for k, value in enumerate(row))


def _encode(form: str, columns: Sequence[str], part: Sequence[Any], raw: bool) -> bytes:
    buffer = io.BytesIO()
    export.write(form, columns, [part], buffer, raw=raw)
    return buffer.getvalue()


def _with_error_line(chunks: Iterator[bytes], form: str) -> Iterator[bytes]:
    try:
        yield from chunks
    except ProfsvcError as error:
        body = {"ok": False, "error": {"code": error.code(), "message": str(error)}}
        yield (
            _json_bytes(body) + b"\n"
            if form == "ndjson"
            else f'"error: {str(error).replace(chr(34), chr(39))}"\n'.encode()
        )
        raise


def error_response(error: ProfsvcError, request_id: str) -> Response:
    """Return the response for an error."""
    body = {"code": error.code(), "message": str(error), "request_id": request_id}
    headers = {}
    if isinstance(error, TokenError):
        headers["www-authenticate"] = 'Bearer realm="profsvc"'
    if isinstance(error, MethodError):
        headers["allow"] = ", ".join(error.allowed)
    retry_s = next((seconds for kind, seconds in RETRY_AFTER_S.items() if isinstance(error, kind)), None)
    if retry := error.retry_s if isinstance(error, OverloadedError) else retry_s:
        headers["retry-after"] = str(retry)
    return Response(_json_bytes({"ok": False, "error": body}), error.status, headers, MEDIA_TYPES["json"])


def _json_bytes(value: Mapping[str, Any]) -> bytes:
    return json.dumps(plain(value), ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")


def _with_etag(request: Request, body: bytes, media: str, status: int, headers: Mapping[str, str]) -> Response:
    """Return a response with an ETag; 304 if the client has the same bytes."""
    named = dict(headers)
    if request.method == "GET" and status == 200:
        named["etag"] = tag = f'W/"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
        if tag in [known.strip() for known in request.headers.get("if-none-match", "").split(",")]:
            return Response(status_code=304, headers=named)
    return Response(body, status, named, media)
