"""What holds for a user's SQL on either database: the limits, and the words for what passes them."""

import difflib
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
NO_SELECT = "there is no SELECT in the query"


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


def no_view(name: str, views: Sequence[str]) -> UsageError:
    """Return the error of a query that reads what is not one of ``views``."""
    near = difflib.get_close_matches(f"v1_{name.removeprefix('v1_')}", views, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]}?" if near else ""
    return UsageError(f"{name!r} cannot be read, only the views can: {', '.join(views)}{hint}")


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


def wrong(words: str) -> UsageError:
    """Return the error of a query that the database does not understand."""
    hint = "; `select * from VIEW limit 1` shows the columns of a view" if "column" in words else ""
    return UsageError(f"the query is wrong: {words}{hint}")
