"""Limits and error messages for SQL of users on both databases."""

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from profsvc.errors import StoreRightsError, TimeLimitError, UsageError, nearest_names

MAX_SQL_CHARS = 100_000
"""Maximum number of characters of a query."""
MAX_VALUE_BYTES = 1_000_000
"""Maximum bytes of a value on SQLite and of a row on Postgres; computing one value cannot be interrupted."""
ROWS_PER_CHUNK = 64
"""Rows in memory while a result is streamed."""
GRACE_SECONDS = 0.4
"""Seconds after the time limit at which a running query is killed."""

ONLY_SELECT = "only a SELECT is answered: nothing can be written, attached, copied or set"
ONE_SELECT = "one SELECT is answered at a time; ask the second one by itself"
NO_SELECT = "there is no SELECT in the query"

# A parameter name outside of texts, quoted names, comments and casts.
PARAMETER_OR_TEXT = re.compile(
    r"""[eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | /\*.*?\*/
    | \$(?P<tag>(?:[A-Za-z_]\w*)?)\$.*?\$(?P=tag)\$ | :: | (?<!\w):(?P<name>[A-Za-z_]\w*)""",
    re.VERBOSE | re.DOTALL,
)
# The part of a message that names the cause of an error, on both databases.
_ERROR_SUBJECT = re.compile(
    r"""(?:near|at or near)\ "(?P<near>[^"]+)" | no\ such\ (?:column|function):\ (?P<lite>[^\s;]+)
    | column\ "?(?P<column>[^"\s]+)"?\ does\ not\ exist | function\ (?P<function>\w+)\(
    | ^'(?P<view>[^']+)'\ cannot\ be\ read | ^the\ function\ '(?P<called>[^']+)'
    | no\ value\ for\ (?P<value>:\w+)""",
    re.VERBOSE,
)


def parameter_names(sql: str) -> list[str]:
    """Return the parameter names of a query, in order.

    >>> parameter_names("select ':a', b::text from v1_runs where run_id = :run or name = :name -- :c")
    ['run', 'name']
    """
    return list(dict.fromkeys(found["name"] for found in PARAMETER_OR_TEXT.finditer(sql) if found["name"] is not None))


def error_position(sql: str, words: str) -> tuple[int, int] | None:
    """Return the line and column of the cause of an error, if it occurs only once in the query.

    >>> error_position("select a\\nfrom v1_runs wher b", 'invalid query: near "b": syntax error')
    (2, 19)
    """
    named = _ERROR_SUBJECT.search(words)
    if named is None:
        return None
    wanted = next(word for word in named.groups() if word is not None)
    edges = [r"(?<!\w)" * (wanted[0].isalnum() or wanted[0] == "_"), r"(?!\w)" * (wanted[-1].isalnum())]
    places = [found.start() for found in re.finditer(edges[0] + re.escape(wanted) + edges[1], sql, re.IGNORECASE)]
    if len(places) != 1:
        return None
    return sql.count("\n", 0, places[0]) + 1, places[0] - (sql.rfind("\n", 0, places[0]) + 1) + 1


class Rows(NamedTuple):
    """The rows of a query in small batches."""

    columns: list[str]
    chunks: Iterator[Sequence[tuple[Any, ...]]]
    is_repeatable: bool = False
    """Whether the query gives the same as long as the store does not change; false also where that is not known."""


@contextmanager
def kill_timer(seconds: float, end: Callable[[], object]) -> Iterator[Callable[[], bool]]:
    """Call ``end`` after the time limit and a grace period; yield a function that tells whether it was called."""
    over = threading.Event()

    def at_last() -> None:
        over.set()
        end()

    timer = threading.Timer(seconds + GRACE_SECONDS, at_last)
    timer.daemon = True
    timer.start()
    try:
        yield over.is_set
    finally:
        timer.cancel()
        timer.join()


def timeout_error(seconds: float) -> TimeLimitError:
    """Return the error for a query that exceeded its time limit."""
    return TimeLimitError(
        f"the query took longer than {seconds:g} s and was stopped; select less data, such as one run"
    )


def resource_error() -> UsageError:
    """Return the error for a query that exceeds its limit of memory or processor time."""
    return UsageError("the query was stopped at its limit of memory or time; select less data, such as one run")


def no_value(name: str) -> UsageError:
    """Return the error for a query with a parameter that has no value."""
    return query_error(f"no value for :{name}; add --param {name}=VALUE")


def no_view(name: str, views: Sequence[str]) -> UsageError:
    """Return the error for a query that reads a table other than ``views``."""
    near = nearest_names(f"v1_{name.removeprefix('v1_')}", views, most=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return UsageError(f"{name!r} cannot be read, only the views can{hint or ': ' + ', '.join(views)}")


def view_not_granted(name: str) -> StoreRightsError:
    """Return the error for a view that exists, and that the role for queries may not read.

    >>> str(view_not_granted("v1_runs"))
    'the database role for queries may not read v1_runs; its owner can run: GRANT SELECT ON v1_runs TO the role'
    """
    return StoreRightsError(
        f"the database role for queries may not read {name}; its owner can run: GRANT SELECT ON {name} TO the role"
    )


def no_function(name: str) -> UsageError:
    """Return the error for a query that calls a function that may write, wait or reveal hidden data."""
    return UsageError(f"the function {name!r} is not allowed")


def too_large(words: str) -> UsageError:
    """Return the error for a query that is too long or computes a value that is too large."""
    return UsageError(f"a value or the query is larger than allowed ({words})")


def no_space() -> UsageError:
    """Return the error for a query whose sorts exceed the limit of temporary files."""
    return UsageError(
        "the query needs more temporary disk space than allowed or available; sort or group less data, such as one "
        "run, or group by kernel_id instead of kernel; v1_kernel_totals has sums of launches (profsvc help howto/sql)"
    )


def division_error(words: str) -> UsageError:
    """Return the error for a division by zero, which is null on SQLite and an error on Postgres."""
    return query_error(f"{words}; use a / nullif(b, 0), which is null for b = 0 on both databases")


def query_error(words: str) -> UsageError:
    """Return the error for a query that the database rejects."""
    hint = "; `select * from VIEW limit 1` shows the columns of a view" if "column" in words else ""
    return UsageError(f"invalid query: {words}{hint}")
