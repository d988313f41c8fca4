"""Parsing of multipart/form-data: fields in memory, files in the spool."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import IO, Any, NamedTuple

from anyio import to_thread
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import Request

from profsvc import store
from profsvc.errors import UsageError

FORM_MEDIA_TYPE = b"multipart/form-data"
MAX_PARTS = 200
MAX_FIELD_BYTES = 64 << 10


class FormFile(NamedTuple):
    """A file of a form."""

    file_name: str
    file: IO[bytes]


class Form:
    """A received form: `fields` in their order, and `files`, which are deleted when ``held`` is closed."""

    def __init__(self, boundary: bytes, spool: Callable[[], Any], held: ExitStack) -> None:
        """Start a parser for parts separated by ``boundary``; ``spool`` returns the folder for files."""
        self.fields: list[tuple[str, str]] = []
        self.files: list[FormFile] = []
        self._spool, self._held = spool, held
        self._parts = 0
        self._head: dict[bytes, bytes] = {}
        self._name = self._value = b""
        self._field: str | None = None
        self._text = bytearray()
        callbacks: Any = {
            "on_part_begin": self._begin,
            "on_header_field": self._on_name,
            "on_header_value": self._on_value,
            "on_header_end": self._end_header,
            "on_headers_finished": self._end_headers,
            "on_part_data": self._on_data,
            "on_part_end": self._end,
        }
        self._parser = MultipartParser(boundary, callbacks)

    def write(self, chunk: bytes) -> None:
        """Parse a part of the body."""
        try:
            self._parser.write(chunk)
        except FormParserError as error:
            raise UsageError(f"the form cannot be read: {error}") from None

    def _begin(self) -> None:
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise UsageError(f"a form may have at most {MAX_PARTS} fields and files; send fewer at once")
        self._head, self._field, self._name, self._value = {}, None, b"", b""

    def _on_name(self, data: bytes, start: int, end: int) -> None:
        self._name += data[start:end]

    def _on_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _end_header(self) -> None:
        self._head[self._name.lower()] = self._value
        self._name = self._value = b""

    def _end_headers(self) -> None:
        _, options = parse_options_header(self._head.get(b"content-disposition", b""))
        name, file_name = (options.get(key, b"").decode("utf-8", "replace") for key in (b"name", b"filename"))
        if b"filename" in options:
            file = self._held.enter_context(store.arriving_file(self._spool()))
            self.files.append(FormFile(file_name, file))
        else:
            self._field, self._text = name, bytearray()

    def _on_data(self, data: bytes, start: int, end: int) -> None:
        if self._field is None:
            store.write_chunk(data[start:end], self.files[-1].file)
            return
        self._text += data[start:end]
        if len(self._text) > MAX_FIELD_BYTES:
            raise UsageError(f"the field {self._field[:40]!r} has more than {MAX_FIELD_BYTES} bytes")

    def _end(self) -> None:
        if self._field is not None:
            self.fields.append((self._field, self._text.decode("utf-8", "replace")))


async def read_form(request: Request, spool: Callable[[], Any], held: ExitStack) -> Form:
    """Read the form of a request; its files are deleted when ``held`` is closed."""
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    if kind != FORM_MEDIA_TYPE or not (boundary := options.get(b"boundary")):
        raise UsageError(
            "files of a form must be sent as multipart/form-data; or send one file as the body to /v1/uploads"
        )
    form = Form(boundary, spool, held)
    async for chunk in request.stream():
        if chunk:
            await to_thread.run_sync(form.write, chunk)
    return form
