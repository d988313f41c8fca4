"""What holds for a user's SQL on either database: the limits, and the words for what passes them."""

import difflib
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from profsvc.errors import UsageError

MAX_SQL = 100_000
"""Characters of a query."""
MAX_VALUE = 1_000_000
"""Bytes of a value on SQLite, and of a row on Postgres: the time limit does not interrupt what makes one."""
CHUNK = 64
"""Rows that are in memory at once while a result is streamed."""
GRACE = 0.4
"""Seconds after the time limit at which a query that has not stopped by itself is ended by force."""

ONLY_SELECT = "only a SELECT is answered: nothing can be written, attached, copied or set"
ONE_SELECT = "one SELECT is answered at a time; ask the second one by itself"
NO_SELECT = "there is no SELECT in the query"

# A name for a value outside of texts, quoted names, comments and casts.
TOKEN = re.compile(
    r"""[eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | /\*.*?\*/
    | \$(?P<tag>(?:[A-Za-z_]\w*)?)\$.*?\$(?P=tag)\$ | :: | (?<!\w):(?P<name>[A-Za-z_]\w*)""",
    re.VERBOSE | re.DOTALL,
)
# How both databases name what they stumbled over.
_STUMBLED = re.compile(
    r"""(?:near|at or near)\ "(?P<near>[^"]+)" | no\ such\ (?:column|function):\ (?P<lite>[^\s;]+)
    | column\ "?(?P<column>[^"\s]+)"?\ does\ not\ exist | function\ (?P<function>\w+)\(
    | ^'(?P<view>[^']+)'\ cannot\ be\ read | ^the\ function\ '(?P<called>[^']+)'
    | no\ value\ for\ (?P<value>:\w+)""",
    re.VERBOSE,
)


def names_in(sql: str) -> list[str]:
    """Return the names of the values in a query, in their order.

    >>> names_in("select ':a', b::text from v1_runs where run_id = :run or name = :name -- :c")
    ['run', 'name']
    """
    return list(dict.fromkeys(found["name"] for found in TOKEN.finditer(sql) if found["name"] is not None))


def place_of(sql: str, words: str) -> tuple[int, int] | None:
    """Return the line and column of what an error names, where it stands once in the query.

    >>> place_of("select a\\nfrom v1_runs wher b", 'the query is wrong: near "b": syntax error')
    (2, 19)
    """
    named = _STUMBLED.search(words)
    if named is None:
        return None
    wanted = next(word for word in named.groups() if word is not None)
    edges = [r"(?<!\w)" * (wanted[0].isalnum() or wanted[0] == "_"), r"(?!\w)" * (wanted[-1].isalnum())]
    places = [found.start() for found in re.finditer(edges[0] + re.escape(wanted) + edges[1], sql, re.IGNORECASE)]
    if len(places) != 1:
        return None
    return sql.count("\n", 0, places[0]) + 1, places[0] - (sql.rfind("\n", 0, places[0]) + 1) + 1


class Rows(NamedTuple):
    """The rows of a query as they come, a few at a time."""

    columns: list[str]
    chunks: Iterator[Sequence[tuple[Any, ...]]]


@contextmanager
def ending(seconds: float, end: Callable[[], object]) -> Iterator[Callable[[], bool]]:
    """Call ``end`` once the time limit and its grace are over; give what tells whether that has happened."""
    over = threading.Event()

    def at_last() -> None:
        over.set()
        end()

    timer = threading.Timer(seconds + GRACE, at_last)
    timer.daemon = True
    timer.start()
    try:
        yield over.is_set
    finally:
        timer.cancel()
        timer.join()


def late(seconds: float) -> UsageError:
    """Return the error of a query that passed its time limit."""
    return UsageError(f"the query took longer than {seconds:g} s and was stopped; ask for less, such as one run")


def spent() -> UsageError:
    """Return the error of a query that would take, or took, more memory or time of a processor than it may."""
    return UsageError("the query needs more memory or time than allowed and was stopped; ask for less, such as one run")


def no_value(name: str) -> UsageError:
    """Return the error of a query with a name that has no value."""
    return wrong(f"it has no value for :{name}; give one, as with --param {name}=VALUE")


def no_view(name: str, views: Sequence[str]) -> UsageError:
    """Return the error of a query that reads what is not one of ``views``."""
    near = difflib.get_close_matches(f"v1_{name.removeprefix('v1_')}", views, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]}?" if near else ""
    return UsageError(f"{name!r} cannot be read, only the views can{hint or ': ' + ', '.join(views)}")


def no_function(name: str) -> UsageError:
    """Return the error of a query that calls a function which may write, wait, or tell what is nobody's business."""
    return UsageError(f"the function {name!r} is not allowed")


def too_large(words: str) -> UsageError:
    """Return the error of a query with a value, or a text of its own, that passes its limit."""
    return UsageError(f"a value or the query is larger than allowed ({words})")


def no_space() -> UsageError:
    """Return the error of a query whose sorts fill more than their share of the disk."""
    return UsageError(
        "the query needs more temporary space than allowed, or than the disk of temporary files has; "
        "sort or group less, such as one run"
    )


def zero(words: str) -> UsageError:
    """Return the error of a division by zero, which SQLite takes for null and Postgres refuses."""
    return wrong(f"{words}; write a / nullif(b, 0), which is null where b is 0, on SQLite as on Postgres")


def wrong(words: str) -> UsageError:
    """Return the error of a query that the database does not understand."""
    hint = "; `select * from VIEW limit 1` shows the columns of a view" if "column" in words else ""
    return UsageError(f"the query is wrong: {words}{hint}")
