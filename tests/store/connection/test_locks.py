"""Locks between processes: who waits, for how long, and what a dead process leaves."""

import logging
import multiprocessing
import signal
import threading
import time
from pathlib import Path

import pytest

from profsvc.errors import ServiceError, StoreBusyError
from profsvc.store.connection import locks
from profsvc.store.connection.locks import hold_lock

FORK = multiprocessing.get_context("fork")


def hold(path: Path, ready, shared: bool = False, seconds: float = 60.0) -> None:
    with hold_lock(path, "it tests", shared=shared):
        ready.set()
        time.sleep(seconds)


def other(path: Path, **options):
    ready = FORK.Event()
    process = FORK.Process(target=hold, args=(path, ready), kwargs=options)
    process.start()
    assert ready.wait(10)
    return process


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lock"


def test_a_killed_process_holds_nothing(path: Path) -> None:
    process = other(path)
    with pytest.raises(StoreBusyError, match=r"another process has been busy for more than 0\.1 s: it tests; retry"):
        hold_lock(path, "it tests", seconds=0.1).__enter__()
    process.kill()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    with hold_lock(path, "it tests", seconds=0.1):
        pass


def test_who_waits_is_told_and_gets_its_turn(path: Path, monkeypatch, caplog) -> None:
    monkeypatch.setattr(locks, "NOTICE_SECONDS", 0.05)
    process = other(path, seconds=0.5)
    with caplog.at_level(logging.WARNING), hold_lock(path, "it uploads"):
        pass
    process.join()
    assert caplog.messages == ["waiting for another process: it uploads"]


def test_those_who_share_do_not_wait_for_each_other(path: Path) -> None:
    process = other(path, shared=True)
    with hold_lock(path, "it reads", shared=True, seconds=0.1):
        pass
    with pytest.raises(StoreBusyError), hold_lock(path, "it reads", seconds=0.1):
        pass
    process.kill()
    process.join()


def test_a_thread_may_take_it_twice_and_another_waits(path: Path) -> None:
    found = []

    def second() -> None:
        try:
            with hold_lock(path, "it tests", seconds=0.05):
                found.append("held")
        except StoreBusyError:
            found.append("busy")

    for _ in range(2):
        with hold_lock(path, "it tests"), hold_lock(path, "it tests"):
            thread = threading.Thread(target=second)
            thread.start()
            thread.join()
        second()
    assert found == ["busy", "held"] * 2


def test_one_that_gave_up_does_not_keep_others_out(path: Path) -> None:
    def impatient() -> None:
        with pytest.raises(StoreBusyError), hold_lock(path, "", seconds=0.05):
            pass

    with hold_lock(path, "it tests"):
        thread = threading.Thread(target=impatient)
        thread.start()
        thread.join()
    with hold_lock(path, "it tests", seconds=1):
        pass


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ServiceError, match=r"cannot create .*: No such file"), hold_lock(tmp_path / "no" / "lock", ""):
        pass


def test_without_such_locks_nothing_waits(path: Path, monkeypatch) -> None:
    process = other(path)
    monkeypatch.setattr(locks, "fcntl", None)
    with hold_lock(path, "it tests", seconds=0.1):
        pass
    process.kill()
    process.join()
