"""Processes of one socket get as many connections each; here they are acceptors of one event loop."""

import asyncio
import errno
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from profsvc.web.http.accepting import Acceptor, ConnectionCounts, forget
from profsvc.web.server import listening_socket
from tests.environment.event_loop import run_async


class Kept(asyncio.Protocol):
    """A connection of a process, which counts them."""

    def __init__(self, own: set["Kept"], counts: ConnectionCounts) -> None:
        self.own, self.counts = own, counts

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.own.add(self)
        self.counts.tell(len(self.own))

    def connection_lost(self, _exc: Exception | None) -> None:
        self.own.discard(self)
        self.counts.tell(len(self.own))


class Process:
    """What one process of a service has."""

    def __init__(self, line: socket.socket, file: Path, place: int, processes: int = 2) -> None:
        self.own = set[Kept]()
        self.counts = ConnectionCounts(file, processes, place)
        self.line = line.dup()
        self.acceptor = Acceptor(self.line, lambda: Kept(self.own, self.counts), self.counts)

    async def end(self) -> None:
        self.acceptor.close()
        await self.acceptor.wait_closed()
        self.line.close()
        for one in list(self.own):
            one.transport.close()
        await until(lambda: not self.own)


@pytest.fixture
def line():
    with listening_socket("127.0.0.1", 0) as line:
        yield line


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0.005)


def clients(line: socket.socket, number: int) -> list[socket.socket]:
    return [socket.create_connection(line.getsockname()) for _ in range(number)]


def close(*of: socket.socket) -> None:
    for one in of:
        one.close()


def test_each_process_gets_as_many_and_makes_up_for_those_that_close(line, tmp_path):
    async def run() -> None:
        first, second = (Process(line, tmp_path / "counts", place) for place in (0, 1))
        both = (first, second)
        opened = clients(line, 40)
        await until(lambda: sum(len(one.own) for one in both) == 40)
        assert [len(one.own) for one in both] == [20, 20]
        close(*opened)
        await until(lambda: not first.own and not second.own)
        more = clients(line, 11)
        await until(lambda: sum(len(one.own) for one in both) == 11)
        assert sorted(len(one.own) for one in both) == [5, 6]
        close(*more)
        for one in both:
            await one.end()

    run_async(run)


def test_connections_that_a_busy_process_leaves_are_taken(line, tmp_path):
    async def run() -> None:
        busy = ConnectionCounts(tmp_path / "counts", 2, 1)  # has none, and accepts none
        one = Process(line, tmp_path / "counts", 0)
        opened = clients(line, 5)
        await until(lambda: len(one.own) == 5)
        busy.tell(9)
        opened += clients(line, 3)
        await until(lambda: len(one.own) == 8)
        close(*opened)
        await one.end()

    run_async(run)


def test_nobody_waits_for_a_process_that_ended_or_has_not_begun(tmp_path):
    file = tmp_path / "counts"
    forget(file, 1)  # before there is any
    own = ConnectionCounts(file, 3, 0)
    own.tell(4)
    assert not own.is_ahead()
    other = ConnectionCounts(file, 3, 1)
    assert own.is_ahead()
    assert not other.is_ahead()
    forget(file, 1)
    assert not own.is_ahead()


def test_after_closing_nothing_is_accepted(line, tmp_path):
    async def run() -> None:
        one = Process(line, tmp_path / "counts", 0, 1)
        opened = clients(line, 1)
        await until(lambda: len(one.own) == 1)
        one.acceptor.close()
        opened += clients(line, 1)
        await asyncio.sleep(0.1)
        assert len(one.own) == 1
        close(*opened)
        await one.end()

    run_async(run)


def test_a_system_without_room_is_asked_again(line, tmp_path, monkeypatch):
    monkeypatch.setattr("profsvc.web.http.accepting.RETRY_S", 0.05)
    seen = []

    class Full(socket.socket):
        def accept(self):
            seen.append(1)
            if len(seen) < 3:
                raise OSError(errno.EMFILE, "too many files")
            return super().accept()

        def dup(self):
            return Full(fileno=super().dup().detach())

    async def run() -> None:
        with Full(fileno=line.dup().detach()) as full:
            one = Process(full, tmp_path / "counts", 0, 1)
        opened = clients(line, 1)
        await until(lambda: len(one.own) == 1)
        assert len(seen) >= 3
        close(*opened)
        await one.end()

    run_async(run)
