"""The number of malloc arenas, which decides how much unused memory the service keeps.

By default the C library makes up to eight arenas per core, and threads of one arena cannot use free memory of another.
Requests are handled by up to forty threads, so every arena would grow to the size of the largest responses.
"""

import ctypes
from contextlib import suppress

MAX_ARENAS = 2
_M_ARENA_MAX = -8


def limit_arenas() -> None:
    """Let all new threads share two arenas; without effect on C libraries other than glibc."""
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, MAX_ARENAS)
