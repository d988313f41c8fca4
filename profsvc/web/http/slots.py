"""Slots that the processes of one service share.

A slot is a file, and who has locked it has the slot: the system frees that of a process that was killed. The time of
the file is that of the monotonic clock when the slot was taken, which all processes of a machine share.
"""

import asyncio
import fcntl
import os
import time
from pathlib import Path

POLL_S = 0.005
"""Seconds between two polls for a free slot."""


class SharedSlots:
    """A number of slots; like a semaphore of asyncio, but for several processes.

    Those of one process wait in the order in which they came. Only the first of them polls, so that each process gets
    as many turns as another.
    """

    def __init__(self, folder: Path, name: str, count: int) -> None:
        """Take the files of ``folder`` with this name; processes that give the same ones share the slots."""
        self._paths = [folder / f"{name}-{number}" for number in range(count)]
        self._held: list[int] = []
        self._first = asyncio.Lock()

    async def acquire(self) -> None:
        """Wait for a free slot."""
        async with self._first:
            while not self._take():
                await asyncio.sleep(POLL_S)

    def release(self) -> None:
        """Free a slot of this process."""
        _unlock(self._held.pop())

    def taken_at(self) -> list[float]:
        """Return when each taken slot was taken, by the monotonic clock."""
        found = []
        for path in self._paths:
            if (handle := _locked(path)) is None:
                found.append(path.stat().st_mtime)
            else:
                _unlock(handle)
        return found

    def _take(self) -> bool:
        for path in self._paths:
            if (handle := _locked(path)) is not None:
                now = time.monotonic()
                os.utime(handle, (now, now))
                self._held.append(handle)
                return True
        return False


def _locked(path: Path) -> int | None:
    """Return the handle of a file that is locked now; None if somebody else has locked it."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    return handle


def _unlock(handle: int) -> None:
    fcntl.flock(handle, fcntl.LOCK_UN)
    os.close(handle)
