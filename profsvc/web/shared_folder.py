"""The folder that the processes of one service share; whichever of them lives longest removes it.

Each process holds a shared lock of the folder, which the kernel releases when the process dies. Who can get the
exclusive lock is the last one. Where all were killed at once, the next service of this user removes what they left.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

fcntl: Any
try:
    import fcntl
except ImportError:  # without file locks only the process that made the folder removes it
    fcntl = None

PREFIX = "profsvc-serve-"
_places: set[int] = set()
"""What this process holds; a process that it forks holds none of that, and what it needs by itself."""


@contextmanager
def shared_folder() -> Iterator[Path]:
    """Make a folder; at the end remove it, unless another process uses it still."""
    _remove_abandoned()
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    with held(folder):
        yield folder


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Use a folder until the end of the block; the last of all processes that do so removes it."""
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    _places.add(place)
    try:
        if fcntl:
            fcntl.flock(place, fcntl.LOCK_SH)
        yield
    finally:
        if _is_last(place):
            shutil.rmtree(folder, ignore_errors=True)
        _places.remove(place)
        os.close(place)


def _let_go() -> None:
    for place in _places:
        os.close(place)
    _places.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)


def _is_last(place: int) -> bool:
    with suppress(BlockingIOError):
        if fcntl:
            fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def _remove_abandoned() -> None:
    """Remove the folders of services of this user of which no process is left."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*") if fcntl else ():
        with suppress(OSError):
            if folder.lstat().st_uid == os.geteuid():
                place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
                try:
                    if _is_last(place):
                        shutil.rmtree(folder, ignore_errors=True)
                finally:
                    os.close(place)
