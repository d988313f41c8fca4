"""How much memory a service keeps that it does not use: threads free what they took to a pool of their own (an arena).

By default the C library makes up to eight pools for each core, and what lies free in one is of no use to a thread of
another. A request is answered on any of forty threads, so every pool grows to what the largest answers took.
"""

import ctypes
from contextlib import suppress

ARENAS = 2
_M_ARENA_MAX = -8


def share_arenas() -> None:
    """Let all threads that begin from now on share two pools; where the C library is another, it is left as it is."""
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, ARENAS)
