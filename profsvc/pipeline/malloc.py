"""How the C library manages the memory of a process; without effect on C libraries other than glibc.

By default it makes up to eight arenas per core, and threads of one arena cannot use free memory of another. In the
service up to forty threads handle requests, so every arena would grow to the size of the largest responses; while a
file is read, each of its threads would keep its own blocks.

By default it also returns large freed arrays to the system at once. A file is read in blocks, and the next block would
then get pages that the system must clear first, which is a tenth of the processor time of a meter log. Once a long
file is stored, `free_blocks` returns them, before its analysis imports what takes memory as well.
"""

import ctypes
from contextlib import suppress

MAX_ARENAS = 2
MAX_FREE_BYTES = 16 << 20
"""Of the memory that was freed last, so much is kept by the process."""
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_LARGEST_MMAP_THRESHOLD = 32 << 20


def _set(*options: tuple[int, int]) -> None:
    with suppress(OSError, AttributeError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        for option, value in options:
            mallopt(option, value)


def limit_arenas() -> None:
    """Let all new threads share two arenas."""
    _set((_M_ARENA_MAX, MAX_ARENAS))


def keep_blocks() -> None:
    """Reuse the memory of a block of a file for the next one; for a process that reads files one after another."""
    limit_arenas()
    _set((_M_MMAP_THRESHOLD, _LARGEST_MMAP_THRESHOLD), (_M_TRIM_THRESHOLD, MAX_FREE_BYTES))


def free_blocks() -> None:
    """Return the memory of the blocks of a file to the system."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
