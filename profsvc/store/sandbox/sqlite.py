"""SQL of users on a SQLite store, run by a separate process that is killed after its time limit."""

import marshal
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from profsvc.errors import ProfsvcError, ServiceError, UsageError
from profsvc.store.connection.errors import user_error
from profsvc.store.sandbox import rules
from profsvc.workers.process import ENVIRONMENT, Limits, first_request, start_worker, to_frame

JOB = Path(__file__).with_name("sqlite_job.py")
MAX_MEMORY_BYTES = 512 << 20
"""Maximum bytes of memory of a query, in addition to the idle process."""
# Five million launches grouped by the names of their kernels sort half a gigabyte, and 15 million too much.
MAX_TEMP_FILE_BYTES = 1 << 30
"""Maximum bytes of a temporary file, which sorts use that do not fit into memory."""
MAX_OPEN_FILES = 12
"""Maximum number of open files: the store, its log, those of the process, and about four temporary files."""
SQLITE_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: rules.MAX_VALUE_BYTES,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: rules.MAX_SQL_CHARS,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 100,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 50,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 1_000_000,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1_000,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
PASSED_VARIABLES = (*ENVIRONMENT, "TMPDIR", "SQLITE_TMPDIR")


@contextmanager
def stream_rows(file: Path, sql: str, params: Mapping[str, Any], seconds: float, most: int) -> Iterator[rules.Rows]:
    """Yield a result with up to ``most`` rows of the query as they arrive."""
    with _worker(request_frame(file, sql, params, seconds, most), seconds) as (pipe, ended):
        kind, *rest = _frame(pipe, ended, seconds)
        if kind != "columns":
            raise _failure((kind, *rest), file, seconds)
        yield rules.Rows(rest[0], _chunks(pipe, ended, file, seconds), is_repeatable=rest[1])


def _chunks(pipe: IO[bytes], ended: Callable[[], bool], file: Path, seconds: float) -> Iterator[list[tuple[Any, ...]]]:
    while True:
        kind, *rest = _frame(pipe, ended, seconds)
        if kind == "end":
            return
        if kind != "rows":
            raise _failure((kind, *rest), file, seconds)
        yield rest[0]


def request_frame(file: Path, sql: str, params: Mapping[str, Any], seconds: float, most: int) -> bytes:
    """Return what the process is sent: the query, and its limits."""
    # The limit of CPU time ends the process even if the parent has died.
    limits = Limits(MAX_MEMORY_BYTES, int(seconds) + 2, MAX_OPEN_FILES, MAX_TEMP_FILE_BYTES)
    query = {"address": f"{file.absolute().as_uri()}?mode=ro", "sql": sql, "params": dict(params), "most": most}
    request = first_request(limits, **query, seconds=seconds, chunk=rules.ROWS_PER_CHUNK, sqlite_limits=SQLITE_LIMITS)
    try:
        return to_frame(request)
    except ValueError:
        raise UsageError("a parameter of a query must be a text, a number, bytes or None") from None


@contextmanager
def _worker(frame: bytes, seconds: float) -> Iterator[tuple[IO[bytes], Callable[[], bool]]]:
    """Start the process; yield its output and a function that tells whether it was killed after the time limit."""
    with start_worker(JOB, PASSED_VARIABLES) as process, rules.kill_timer(seconds, process.kill) as ended:
        assert process.stdin
        assert process.stdout
        with suppress(BrokenPipeError):  # a process that could not start sends nothing
            process.stdin.write(frame)
            process.stdin.flush()
        yield process.stdout, ended


def _frame(pipe: IO[bytes], ended: Callable[[], bool], seconds: float) -> tuple[Any, ...]:
    """Return the next frame; raise an error if the process ended without one."""
    length = int.from_bytes(pipe.read(8), "big")
    body = pipe.read(length)
    if not body or len(body) < length:
        raise rules.timeout_error(seconds) if ended() else rules.resource_error()
    return tuple(marshal.loads(body))


def _failure(frame: tuple[Any, ...], file: Path, seconds: float) -> ProfsvcError:
    """Return the error for a frame of the process."""
    match frame:
        case ("refused", "read", str(name), list(views)):
            return rules.no_view(name, views)
        case ("refused", "call", str(name), _):
            return rules.no_function(name)
        case ("refused", *_):
            return UsageError(rules.ONLY_SELECT)
        case ("late",):
            return rules.timeout_error(seconds)
        case ("memory",):
            return rules.resource_error()
        case ("empty",):
            return UsageError(rules.NO_SELECT)
        case ("error", str(kind), str(words), list(views)):
            return _user_error(kind, words, views, file)
    return ServiceError(f"{file}: internal error: the query process sent an unknown frame: {frame[0]!r}")


def _user_error(kind: str, words: str, views: list[str], file: Path) -> ProfsvcError:
    if views and re.search("disk is full|disk I/O", words):
        return rules.no_space()
    if kind == "store" and re.search("locked|disk|malformed|unable to open|not a database", words):
        return user_error(words, str(file))
    if found := re.match(r"no such table: (?:main\.|temp\.)?(\S+)", words):
        return rules.no_view(found[1], views)
    if "too big" in words or "too large" in words:
        return rules.too_large(words)
    if found := re.search(r"binding parameter :(\w+)", words):
        return rules.no_value(found[1])
    if "one statement at a time" in words:
        return UsageError(rules.ONE_SELECT)
    return rules.query_error(words)
