"""Memory limits for SQL of users on a Postgres server, which lacks such a limit.

Before a query runs, the estimate of the server predicts how much its aggregates collect. The values of `string_agg`,
`array_agg` and similar functions stay in memory, whereas sorts and groups go to disk. While a query runs on this
machine, the system limits the memory of its server process if this user may set a limit. Otherwise the process is
polled and the query cancelled. Neither works on another machine: set a memory limit for the server there.
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

MAX_MEMORY_BYTES = 512 << 20
"""Maximum bytes for a query, in addition to the memory of its process at the start."""
MAX_AGGREGATE_BYTES = 128 << 20
"""Maximum estimated bytes of its aggregates; growing values need up to four times as much."""
VALUE_OVERHEAD_BYTES = 32
"""Overhead of a collected value in bytes."""
POLL_SECONDS = 0.01
PROC = Path("/proc")
_GATHERS = re.compile(r"\b(?:string|array|jsonb?|jsonb?_object)_agg\w*\(|\bJSON_(?:ARRAY|OBJECT)AGG\(")
Driver = psycopg.Connection[tuple[Any, ...]]


def aggregate_bytes(plan: Mapping[str, Any]) -> float:
    """Return the bytes that aggregates would collect, from a plan of ``EXPLAIN (FORMAT JSON, VERBOSE)``.

    >>> rows = {"Plan Rows": 1e6, "Plan Width": 32}
    >>> aggregate_bytes({"Node Type": "Aggregate", "Output": ["string_agg(x, ','::text)"], "Plans": [rows]})
    64000000.0
    >>> aggregate_bytes({"Node Type": "Aggregate", "Output": ["count(*)"], "Plans": [rows]})
    0.0
    """
    inner = plan.get("Plans", [])
    own = 0.0
    if plan.get("Node Type") in {"Aggregate", "WindowAgg"} and _GATHERS.search(" ".join(plan.get("Output", []))):
        own = sum(part["Plan Rows"] * (part["Plan Width"] + VALUE_OVERHEAD_BYTES) for part in inner[:1])
    return own + sum(map(aggregate_bytes, inner))


@contextmanager
def limit_memory(driver: Driver) -> Iterator[Callable[[], bool]]:
    """Limit the memory of the server process if possible; yield a function that tells if the query was cancelled."""
    pid = driver.info.backend_pid
    start = _bytes(pid, "VmData") if _is_here(driver, pid) else None
    if start is None or _limit(pid, start + MAX_MEMORY_BYTES):
        yield lambda: False
        return
    swollen, over = threading.Event(), threading.Event()
    begun = _bytes(pid, "RssAnon") or 0

    def look() -> None:
        while not over.wait(POLL_SECONDS):
            if (_bytes(pid, "RssAnon") or 0) > begun + MAX_MEMORY_BYTES // 2:  # grows until it is cancelled
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
    """Return whether the local process with that number is the server process: its title names role and database.

    The number may belong to a process on another machine or in another container.
    """
    try:
        words = (PROC / str(pid) / "cmdline").read_bytes().decode("utf-8", "replace")
    except OSError:
        return False
    return words.startswith("postgres") and f" {driver.info.user} {driver.info.dbname} " in words


def _bytes(pid: int, field: str) -> int | None:
    """Return the memory figures of a process from the system; None if unavailable."""
    with suppress(OSError):
        found = re.search(rf"^{field}:\s+(\d+) kB$", (PROC / str(pid) / "status").read_text("ascii"), re.MULTILINE)
        return int(found[1]) << 10 if found else None
    return None


def _limit(pid: int, most: int) -> bool:
    """Limit the private memory of a process, if this user may; return whether the limit was set."""
    if not hasattr(resource, "prlimit"):
        return False
    try:
        _, hard = resource.prlimit(pid, resource.RLIMIT_DATA)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.prlimit(pid, resource.RLIMIT_DATA, (most, hard))
    except (OSError, ValueError):
        return False
    return True
