"""Locks between profsvc processes: file locks, which the kernel releases when a process dies."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from profsvc.errors import ServiceError, StoreBusyError
from profsvc.store.connection.file_permissions import PRIVATE_MODE

fcntl: Any
try:
    import fcntl
except ImportError:  # without file locks only the lock of the database remains
    fcntl = None

MAX_WAIT_SECONDS = 600.0
NOTICE_SECONDS = 3.0
_held_by_thread = threading.local()


@contextmanager
def hold_lock(path: Path, what: str, *, shared: bool = False, seconds: float | None = None) -> Iterator[None]:
    """Hold the lock file ``path``, exclusive or ``shared``; wait for it up to ``seconds``, 10 minutes by default.

    A thread that holds it may take it again. ``what`` describes the activity of the holder in messages. Raise
    `StoreBusyError` after the timeout, `ServiceError` if the file cannot be created.
    """
    own: set[Path] = _held_by_thread.__dict__.setdefault("paths", set())
    if fcntl is None or path in own:
        yield
        return
    try:
        file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE_MODE), "ab")
    except OSError as error:
        raise ServiceError(f"cannot create {path}: {error.strerror}; check the folder and its permissions") from None
    try:
        _wait_for(file, shared, what, MAX_WAIT_SECONDS if seconds is None else seconds)
        own.add(path)
        yield
    finally:
        own.discard(path)
        file.close()


def try_lock(file: IO[bytes]) -> bool:
    """Take the exclusive lock of an open file if it is free; return whether it was taken."""
    return fcntl is None or _try(file, fcntl.LOCK_EX)


def _try(file: IO[bytes], kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # without file locks only the lock of the database remains
        return True
    return True


def _wait_for(file: IO[bytes], shared: bool, what: str, seconds: float) -> None:
    """Take a lock. A thread waits in the queue of the kernel, because that wait has no timeout."""
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    if _try(file, kind):
        return
    waiting = _WaitingThread(file, kind)
    began = time.monotonic()
    if waiting.done.wait(min(seconds, NOTICE_SECONDS)):
        return
    if seconds > NOTICE_SECONDS:
        import logging

        logging.getLogger("profsvc.store").warning("waiting for another process: %s", what)
        if waiting.done.wait(seconds - (time.monotonic() - began)):
            return
    raise StoreBusyError(f"another process has been busy for more than {seconds:g} s: {what}; retry later")


class _WaitingThread(threading.Thread):
    """Waits for a lock; ends with the process. Closing the file releases a lock that is no longer wanted."""

    def __init__(self, file: IO[bytes], kind: int) -> None:
        super().__init__(daemon=True)
        self.file, self.kind, self.done = file, kind, threading.Event()
        self.start()

    def run(self) -> None:
        """Wait."""
        with suppress(OSError, ValueError):  # the wait was abandoned and the file closed
            fcntl.flock(self.file, self.kind)
            self.done.set()


def lock_file_of(file: Path) -> Path:
    """Return the lock file for writers to a SQLite store."""
    return Path(f"{file.absolute()}.lock")
