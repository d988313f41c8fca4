"""A mail server and a web server on this machine, which keep what they are sent and answer what a test tells them."""

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Mailbox:
    """What a mail server was told: the envelopes as they came, and the mails."""

    def __init__(self) -> None:
        self.port = 0
        self.commands: list[str] = []
        self.raw: list[bytes] = []
        self.answers: dict[str, list[str]] = {}

    def mails(self) -> list[EmailMessage]:
        return [message_from_bytes(raw, policy=default) for raw in self.raw]

    def answer(self, command: str, usual: str) -> str:
        waiting = self.answers.get(command)
        return waiting.pop(0) if waiting else usual


@contextmanager
def mail_server() -> Iterator[Mailbox]:
    box = Mailbox()

    class Talk(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(b"220 test\r\n")
            while line := self.rfile.readline():
                text = line.decode().rstrip("\r\n")
                box.commands.append(text)
                verb = text.split(" ")[0].split(":")[0].upper()
                usual = {"EHLO": "250-test\r\n250 8BITMIME", "DATA": "354 go", "QUIT": "221 bye"}.get(verb, "250 ok")
                said = box.answer(verb, usual)
                if said == "hang up":
                    return
                self.wfile.write(f"{said}\r\n".encode())
                if verb == "QUIT":
                    return
                if said.startswith("354"):
                    self._take()

        def _take(self) -> None:
            lines = []
            while (line := self.rfile.readline()) != b".\r\n":
                lines.append(line.removeprefix(b".") if line.startswith(b"..") else line)
            box.raw.append(b"".join(lines))
            self.wfile.write(f"{box.answer('END', '250 taken')}\r\n".encode())

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Talk) as server:
        box.port = server.server_address[1]
        yield from _serving(server, box)


class Hook:
    """What a webhook was sent, and the answers that it is to give first."""

    def __init__(self) -> None:
        self.url = ""
        self.bodies: list[Any] = []
        self.raw: list[tuple[dict[str, str], bytes]] = []
        self.answers: list[tuple[int, dict[str, str], bytes]] = []


@contextmanager
def web_server() -> Iterator[Hook]:
    hook = Hook()

    class Take(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["content-length"]))
            hook.raw.append(({name.lower(): value for name, value in self.headers.items()}, raw))
            hook.bodies.append(json.loads(raw))
            status, headers, body = hook.answers.pop(0) if hook.answers else (200, {}, b"ok")
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Take) as server:
        hook.url = f"http://127.0.0.1:{server.server_address[1]}/hooks/s3cret"
        yield from _serving(server, hook)


def _serving(server: socketserver.BaseServer, what: Any) -> Iterator[Any]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield what
    finally:
        server.shutdown()
        thread.join(10)
