"""A sink on a thread of its own: all rows in their order, no more of them waiting than may, and no error lost."""

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from profsvc.errors import NotFoundError
from profsvc.store.ingest.inserts import writer_thread
from profsvc.store.ingest.inserts.writer_thread import MAX_WAITING_WRITES
from profsvc.store.ingest.staging import Columns


class Slow:
    """A sink that works when it is told to."""

    def __init__(self, fails_at: int | None = None) -> None:
        self.taken: list[tuple[str, Any]] = []
        self.threads: set[int] = set()
        self.prepared: set[int] = set()
        self.go, self.begun = threading.Event(), threading.Event()
        self.closed = 0
        self.fails_at = fails_at

    def write(self, table: str, columns: Columns) -> None:
        self.begun.set()
        assert self.go.wait(60)
        self.threads.add(threading.get_ident())
        if len(self.taken) == self.fails_at:
            raise NotFoundError("no such sink")
        self.taken.append((table, columns["a"]))

    def prepare(self, table: str, columns: Columns) -> Callable[[], None]:
        self.prepared.add(threading.get_ident())
        return partial(self.write, table, columns)

    def close(self) -> None:
        self.closed += 1


def fill(sink: writer_thread.WriterThread, count: int, begin: int = 0) -> None:
    for number in range(begin, begin + count):
        sink.write(f"t{number % 2}", {"a": number})


def test_rows_are_taken_in_their_order_by_one_other_thread() -> None:
    slow = Slow()
    slow.go.set()
    with writer_thread.in_writer_thread(slow) as sink:
        fill(sink, 50)
        sink.close()
        assert slow.taken == [(f"t{number % 2}", number) for number in range(50)]
        assert slow.closed == 1
    assert len(slow.threads) == 1
    assert slow.prepared == {threading.get_ident()}
    assert threading.get_ident() not in slow.threads


def test_the_next_are_read_meanwhile_but_only_a_few() -> None:
    slow = Slow()
    with writer_thread.in_writer_thread(slow) as sink:
        fill(sink, MAX_WAITING_WRITES)  # none of them is done
        assert slow.taken == []
        one_more = threading.Thread(target=fill, args=(sink, 1, MAX_WAITING_WRITES))
        one_more.start()
        one_more.join(0.05)
        assert one_more.is_alive()
        slow.go.set()
        one_more.join(60)
        sink.close()
        assert len(slow.taken) == MAX_WAITING_WRITES + 1


@pytest.mark.parametrize("act", [lambda sink: fill(sink, 1, 9), lambda sink: sink.close()], ids=["write", "close"])
def test_what_goes_wrong_there_is_raised_here(
    act: Callable[[writer_thread.WriterThread], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_thread, "GRACE_SECONDS", 0.01)
    slow = Slow(fails_at=0)
    slow.go.set()
    with pytest.raises(NotFoundError, match="no such sink"), writer_thread.in_writer_thread(slow) as sink:  # noqa: PT012  # the end of the block is under test
        fill(sink, MAX_WAITING_WRITES)
        act(sink)
    assert slow.closed == 0


def test_an_upload_that_fails_ends_what_runs_and_drops_what_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_thread, "GRACE_SECONDS", 0.01)
    slow = Slow()
    with pytest.raises(KeyboardInterrupt), writer_thread.in_writer_thread(slow, slow.go.set) as sink:  # noqa: PT012  # the end of the block is under test
        fill(sink, MAX_WAITING_WRITES)
        assert slow.begun.wait(60)
        raise KeyboardInterrupt
    assert slow.taken == [("t0", 0)]
    assert slow.closed == 0
    assert all(future.done() for future in sink.waiting)


def test_an_upload_that_fails_does_not_wait_for_what_it_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_thread, "GRACE_SECONDS", 20.0)
    slow, cancelled = Slow(), list[bool]()
    with pytest.raises(KeyboardInterrupt), writer_thread.in_writer_thread(slow, lambda: cancelled.append(True)) as sink:  # noqa: PT012  # the end of the block is under test
        fill(sink, MAX_WAITING_WRITES)
        assert slow.begun.wait(60)
        sink.waiting.append(sink.pool.submit(slow.write, "t1", {"a": 1}))
        threading.Timer(0.05, slow.go.set).start()
        raise KeyboardInterrupt
    assert slow.taken == [("t0", 0)]
    assert cancelled == []
