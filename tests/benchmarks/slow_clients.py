"""Connections that say nothing, or drip, beside honest requests: how long those take, and when the others are cut.

python -m tests.benchmarks.slow_clients [CONNECTIONS, default 1100]
"""

import logging
import socket
import statistics
import tempfile
import time
from pathlib import Path

import httpx

from tests.command_line import parser_of

BEGUN = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Slow: "
BODY = b"POST /v1/uploads HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n"
ASKED = 100


def honest(url: str) -> list[float]:
    """Ask one after the other, each by a connection of its own; return the seconds each took."""
    seconds = []
    for _ in range(ASKED):
        began = time.monotonic()
        assert httpx.get(f"{url}/v1/runs", timeout=30).status_code == 200
        seconds.append(time.monotonic() - began)
    return seconds


def told(what: str, seconds: list[float]) -> None:
    """Print how long requests took."""
    p99 = sorted(seconds)[int(0.99 * len(seconds)) - 1]
    print(f"{what}: median {1e3 * statistics.median(seconds):.1f} ms, p99 {1e3 * p99:.1f} ms")


def alive(lines: list[socket.socket]) -> int:
    """Count the connections that the other side has not ended; send a byte to each."""
    left = 0
    for line in lines:
        try:
            line.send(b"a")
            line.setblocking(False)
            left += line.recv(1) != b""
        except BlockingIOError:
            left += 1
        except OSError:
            continue
    return left


def attack(port: int, count: int, begin: bytes) -> list[socket.socket]:
    """Open connections that begin a request and end none."""
    lines = []
    for _ in range(count):
        line = socket.create_connection(("127.0.0.1", port), 30)
        line.sendall(begin)
        lines.append(line)
    return lines


def main() -> None:
    """Serve an empty store and attack it."""
    from profsvc import store
    from profsvc.web.http.state import AppState
    from profsvc.web.server import max_connections
    from tests.web.conftest import running

    parser = parser_of(__doc__)
    parser.add_argument("connections", nargs="?", type=int, default=1100, help="slow connections [%(default)s]")
    count = parser.parse_args().connections
    logging.disable(logging.CRITICAL)
    max_connections()
    with tempfile.TemporaryDirectory() as folder:
        engine = store.open_store(str(Path(folder) / "store.sqlite"))
        with running(AppState(engine, store.blob_store_of(engine, free_bytes=1)), connections=800) as service:
            told("idle", honest(service.url))
            for what, begin, many in (("heads", BEGUN, count), ("bodies", BODY, 50)):
                lines = attack(service.port, many, begin)
                began = time.monotonic()
                told(f"beside {many} slow {what}", honest(service.url))
                while (left := alive(lines)) and time.monotonic() - began < 90:
                    time.sleep(1)
                print(f"{many} slow {what}: {left} alive after {time.monotonic() - began:.0f} s")
                for line in lines:
                    line.close()
        engine.dispose()


if __name__ == "__main__":
    main()
