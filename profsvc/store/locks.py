"""Locks between our own processes: they queue on a file, and the kernel frees what a dead one held."""

import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from profsvc.errors import ServiceError, StoreBusyError
from profsvc.store.rights import OWN

fcntl: Any
try:
    import fcntl
except ImportError:  # there is no such lock, and the database's own is all there is
    fcntl = None

WAIT_SECONDS = 600.0
NOTICE_SECONDS = 3.0
_mine = threading.local()
log = logging.getLogger("profsvc.store")


@contextmanager
def held(path: Path, what: str, *, shared: bool = False, seconds: float | None = None) -> Iterator[None]:
    """Hold the lock file ``path``, alone or ``shared``; wait for it up to ``seconds``, 10 minutes by default.

    A thread that holds it may take it again. ``what`` is what the others are doing, for the words to the user. Raise
    `StoreBusyError` when the time is up, `ServiceError` if the file cannot be made.
    """
    own: set[Path] = _mine.__dict__.setdefault("paths", set())
    if fcntl is None or path in own:
        yield
        return
    try:
        file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, OWN), "ab")
    except OSError as error:
        raise ServiceError(f"{path} cannot be made: {error.strerror}; check the folder, its disk and rights") from None
    try:
        _take(file, shared, what, WAIT_SECONDS if seconds is None else seconds)
        own.add(path)
        yield
    finally:
        own.discard(path)
        file.close()


def free(file: IO[bytes]) -> bool:
    """Take the lock of an open file alone if nobody holds it; tell whether it was taken."""
    return fcntl is None or _taken(file, fcntl.LOCK_EX)


def _taken(file: IO[bytes], kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without such locks: the database's own is all there is
        return True
    return True


def _take(file: IO[bytes], shared: bool, what: str, seconds: float) -> None:
    """Take a lock. Who waits does so in the kernel's queue, in a thread, because that wait has no end of its own."""
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    if _taken(file, kind):
        return
    waiting = _Waiting(file, kind)
    began = time.monotonic()
    if waiting.done.wait(min(seconds, NOTICE_SECONDS)):
        return
    if seconds > NOTICE_SECONDS:
        log.warning("waiting for another process: %s", what)
        if waiting.done.wait(seconds - (time.monotonic() - began)):
            return
    raise StoreBusyError(f"another process has been busy for more than {seconds:g} s: {what}; repeat later")


class _Waiting(threading.Thread):
    """Waits for a lock; ends with the process, and frees what nobody waits for any longer by the file's closing."""

    def __init__(self, file: IO[bytes], kind: int) -> None:
        super().__init__(daemon=True)
        self.file, self.kind, self.done = file, kind, threading.Event()
        self.start()

    def run(self) -> None:
        """Wait."""
        with suppress(OSError, ValueError):  # it was given up meanwhile, and the file is closed
            fcntl.flock(self.file, self.kind)
            self.done.set()
