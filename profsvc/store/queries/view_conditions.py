"""What the rows of a list must satisfy, as conditions of SQL with their values."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from profsvc.errors import NotFoundError, UsageError

MAX_CONDITIONS = 100
"""Conditions of one question: SQLite nests them, and gives up at 1000."""
FILTERS = {
    "": "is",
    "ne": "is not",
    "gt": "is greater than",
    "gte": "is at least",
    "lt": "is less than",
    "lte": "is at most",
    "contains": "contains, whatever the case",
    "null": "1: has no value; 0: has one",
}
_SIGNS = {"": "=", "ne": "<>", "gt": ">", "gte": ">=", "lt": "<", "lte": "<="}


class Condition(NamedTuple):
    """What a row must satisfy: a column, how (a name of `FILTERS`), and the text of the value."""

    column: str
    how: str
    value: str


def conditions_sql(view: str, only: Sequence[Condition], kinds: Mapping[str, str]) -> tuple[list[str], dict[str, Any]]:
    """Return the SQL of conditions and the values in it."""
    if len(only) > MAX_CONDITIONS:
        raise UsageError(f"{len(only)} filters are given; {MAX_CONDITIONS} are taken at most; ask in parts, or by SQL")
    conditions, values = [], dict[str, Any]()
    for number, condition in enumerate(only):
        sql, value = _condition(view, condition, kinds, f"value_{number}")
        conditions.append(sql)
        values |= {} if value is None else {f"value_{number}": value}
    return conditions, values


def require_column(view: str, column: str, kinds: Mapping[str, str]) -> str:
    """Return a column of a view; raise `UsageError` if it has none of this name."""
    if column not in kinds:
        raise UsageError(str(NotFoundError.near(f"column of {view}", column, kinds)))
    return column


def _condition(view: str, condition: Condition, kinds: Mapping[str, str], name: str) -> tuple[str, Any]:
    """Return the SQL of a condition and the value in it; None where it has none."""
    column, how, value = condition
    kind = kinds[require_column(view, column, kinds)]
    if how not in FILTERS:
        raise UsageError(str(NotFoundError.near(f"filter on {column}", how, [how for how in FILTERS if how])))
    if how == "null":
        if value not in {"0", "1"}:
            raise UsageError(f"{column}__null={value!r} must be 1 (has no value) or 0 (has one)")
        return f'"{column}" IS {"NOT " * (value == "0")}NULL', None
    if how == "contains":
        if kind != "text":
            raise UsageError(f"{column} is a number, which contains nothing; ask with {column}__gte and {column}__lte")
        value = str(_value(column, kind, value))
        wanted = value.lower().replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        return f"lower(\"{column}\") LIKE :{name} ESCAPE '\\'", f"%{wanted}%"
    return f'"{column}" {_SIGNS[how]} :{name}', _value(column, kind, value)


def _value(column: str, kind: str, text_of_it: str) -> str | int | float:
    if kind == "text":
        if "\0" in text_of_it:
            raise UsageError(f"{column}: a text holds no NUL character")
        return text_of_it
    try:
        value = int(text_of_it) if kind == "int" else float(text_of_it)
        if text_of_it.isascii() and "_" not in text_of_it and math.isfinite(value) and abs(value) < 2**63:
            return value
    except (ValueError, OverflowError):
        pass
    what = "a whole number" if kind == "int" else "a number"
    raise UsageError(f"{column}={text_of_it!r} must be {what}, as the column holds")
