"""How much memory a user's SQL may take in a Postgres server, which has no such limit of its own.

Before a query runs, the server's own estimate tells how much its aggregates would gather: what `string_agg`,
`array_agg` and their like have taken in stays in memory, where sorts and groups go to the disk. While it runs, the
system holds the process that answers it, where that process is on this machine: by a limit that it is given, where
this user may give one, else by looking at it and cancelling the query. On another machine neither can be done: a
server of one's own needs a limit there.
"""

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg

try:
    import resource
except ModuleNotFoundError:  # Windows
    resource = None  # type: ignore[assignment]

MEMORY = 512 << 20
"""Bytes that a query may take beside what its process has at the start."""
GATHERED = 128 << 20
"""Bytes that its aggregates may gather by the estimate; they take up to four times that while they grow."""
ROW = 32
"""Bytes of a gathered value beside itself."""
LOOK_SECONDS = 0.01
PROCESSES = Path("/proc")
_GATHERS = re.compile(r"\b(?:string|array|jsonb?|jsonb?_object)_agg\w*\(|\bJSON_(?:ARRAY|OBJECT)AGG\(")
Driver = psycopg.Connection[tuple[Any, ...]]


def gathered(plan: Mapping[str, Any]) -> float:
    """Return the bytes that the aggregates of a plan would gather, as ``EXPLAIN (FORMAT JSON, VERBOSE)`` prints it.

    >>> rows = {"Plan Rows": 1e6, "Plan Width": 32}
    >>> gathered({"Node Type": "Aggregate", "Output": ["string_agg(x, ','::text)"], "Plans": [rows]})
    64000000.0
    >>> gathered({"Node Type": "Aggregate", "Output": ["count(*)"], "Plans": [rows]})
    0.0
    """
    inner = plan.get("Plans", [])
    own = 0.0
    if plan.get("Node Type") in {"Aggregate", "WindowAgg"} and _GATHERS.search(" ".join(plan.get("Output", []))):
        own = sum(part["Plan Rows"] * (part["Plan Width"] + ROW) for part in inner[:1])
    return own + sum(map(gathered, inner))


@contextmanager
def bounded(driver: Driver) -> Iterator[Callable[[], bool]]:
    """Hold the memory of the server's process as far as can be; give what tells whether the query was cancelled."""
    pid = driver.info.backend_pid
    start = _bytes(pid, "VmData") if _is_here(driver, pid) else None
    if start is None or _limit(pid, start + MEMORY):
        yield lambda: False
        return
    swollen, over = threading.Event(), threading.Event()
    begun = _bytes(pid, "RssAnon") or 0

    def look() -> None:
        while not over.wait(LOOK_SECONDS):
            if (_bytes(pid, "RssAnon") or 0) > begun + MEMORY // 2:  # it grows on until it heeds the word
                swollen.set()
                with suppress(psycopg.Error):
                    driver.cancel()
                return

    watch = threading.Thread(target=look, name="memory of a query", daemon=True)
    watch.start()
    try:
        yield swollen.is_set
    finally:
        over.set()
        watch.join()


def _is_here(driver: Driver, pid: int) -> bool:
    """Tell whether a process of this machine with that number is the one that answers: it names who and what it serves.

    A number of a process on another machine, or in another container, may be anyone's here.
    """
    try:
        words = (PROCESSES / str(pid) / "cmdline").read_bytes().decode("utf-8", "replace")
    except OSError:
        return False
    return words.startswith("postgres") and f" {driver.info.user} {driver.info.dbname} " in words


def _bytes(pid: int, field: str) -> int | None:
    """Return what the system says of the memory of a process, None where it does not."""
    with suppress(OSError):
        found = re.search(rf"^{field}:\s+(\d+) kB$", (PROCESSES / str(pid) / "status").read_text("ascii"), re.MULTILINE)
        return int(found[1]) << 10 if found else None
    return None


def _limit(pid: int, most: int) -> bool:
    """Have the system refuse a process more memory of its own than that, where this user may; tell whether it does."""
    if not hasattr(resource, "prlimit"):
        return False
    try:
        _, hard = resource.prlimit(pid, resource.RLIMIT_DATA)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.prlimit(pid, resource.RLIMIT_DATA, (most, hard))
    except (OSError, ValueError):
        return False
    return True
