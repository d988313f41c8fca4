"""The SQL of all views of this program, and the fingerprint of it."""

from collections.abc import Iterable, Mapping
from functools import cache

from profsvc.store.schema.catalog import VIEWS, check_counters, columns_statement, create_view_sql


def counter_meanings(counters: Iterable[str] | None) -> tuple[tuple[str, str], ...]:
    """Return the counters of the views with their meanings, by default those of the program."""
    from profsvc import specs

    known = specs.counters()
    names = check_counters(known if counters is None else counters)
    return tuple((name, known[name].meaning if name in known else "a counter") for name in names)


def view_statements(dialect: str, counters: Mapping[str, int], meanings: Mapping[str, str]) -> list[str]:
    """Return the SQL of every view, and of what they show of themselves."""
    views = [create_view_sql(view, dialect, counters, meanings) for view in VIEWS]
    return [*views, columns_statement(meanings)] if dialect == "sqlite" else views


@cache
def views_digest(dialect: str, meanings: tuple[tuple[str, str], ...]) -> str:
    """Return a fingerprint of the views of this program, independent of the numbers of the counters."""
    from hashlib import sha256  # loads OpenSSL

    named = dict(meanings)
    return sha256("\n".join(view_statements(dialect, dict.fromkeys(named, 0), named)).encode()).hexdigest()
