"""A form with files (multipart/form-data), as browsers send it without script: fields to memory, files to the spool."""

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from typing import IO, Any, NamedTuple

from anyio import to_thread
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import Request

from profsvc.errors import UsageError

KIND = b"multipart/form-data"
MOST_PARTS = 200
MOST_FIELD = 64 << 10


class Part(NamedTuple):
    """A file of a form."""

    file_name: str
    file: IO[bytes]


class Form:
    """What a form has sent; `fields` in their order, and `files`, which are gone when ``held`` is closed."""

    def __init__(self, boundary: bytes, spool: Callable[[], Any], held: ExitStack) -> None:
        """Begin to read one whose parts ``boundary`` divides; ``spool`` gives the folder for files."""
        self.fields: list[tuple[str, str]] = []
        self.files: list[Part] = []
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
        """Take a piece of the body."""
        try:
            self._parser.write(chunk)
        except FormParserError as error:
            raise UsageError(f"the form cannot be read: {error}") from None

    def _begin(self) -> None:
        self._parts += 1
        if self._parts > MOST_PARTS:
            raise UsageError(f"a form may have {MOST_PARTS} fields and files; send fewer at once")
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
            file = self._held.enter_context(tempfile.TemporaryFile(dir=self._spool()))  # noqa: SIM115  # held until the form ends
            self.files.append(Part(file_name, file))
        else:
            self._field, self._text = name, bytearray()

    def _on_data(self, data: bytes, start: int, end: int) -> None:
        if self._field is None:
            self.files[-1].file.write(data[start:end])
            return
        self._text += data[start:end]
        if len(self._text) > MOST_FIELD:
            raise UsageError(f"the field {self._field[:40]!r} has more than {MOST_FIELD} bytes")

    def _end(self) -> None:
        if self._field is not None:
            self.fields.append((self._field, self._text.decode("utf-8", "replace")))


async def received(request: Request, spool: Callable[[], Any], held: ExitStack) -> Form:
    """Read the form that a request brings; its files are gone when ``held`` is closed."""
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    if kind != KIND or not (boundary := options.get(b"boundary")):
        raise UsageError("files of a form must come as multipart/form-data; or send one file to /v1/uploads as it is")
    form = Form(boundary, spool, held)
    async for chunk in request.stream():
        if chunk:
            await to_thread.run_sync(form.write, chunk)
    return form
