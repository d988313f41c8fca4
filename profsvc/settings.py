"""One table of settings: name, default, help. Each is read from the environment as ``PROFSVC_<NAME>``.

The rest of the program gets values as arguments; only the front doors read this table.
"""

import math
import os
from collections.abc import Mapping
from typing import NamedTuple

from profsvc.errors import UsageError


class Setting(NamedTuple):
    """A setting; the type of the default is the type of the setting."""

    name: str
    default: str | int | float
    help: str


SETTINGS = (
    Setting("store", "", "Store to use: a path or a database URL. Empty: a SQLite file in your data folder."),
    Setting("sql_seconds", 10.0, "Time limit of a query given by a user, in seconds."),
    Setting("sql_export_seconds", 600.0, "Time limit of a query whose whole result is written, in seconds."),
    Setting("sql_rows", 10000, "Row limit of a query given by a user; a longer result is cut, loudly."),
)


def load(environment: Mapping[str, str] | None = None) -> dict[str, str | int | float]:
    """Return every setting by name, from ``environment`` (default: the process's) or, unset or empty, its default.

    >>> load({"PROFSVC_SQL_ROWS": "5"})["sql_rows"]
    5
    """
    environment = os.environ if environment is None else environment
    values: dict[str, str | int | float] = {}
    for name, default, _ in SETTINGS:
        variable = f"PROFSVC_{name.upper()}"
        text = environment.get(variable, "")
        try:
            values[name] = _read(text, default) if text else default
        except ValueError:
            kind = "a whole number" if isinstance(default, int) else "a number"
            raise UsageError(f"{variable} is {text!r} but must be {kind} above 0, such as {default}") from None
    return values


def _read(text: str, default: str | int | float) -> str | int | float:
    """Read a setting as the type of its default; every number is a limit, so it is finite and above 0."""
    if isinstance(default, str):
        return text
    value = type(default)(text)
    if not 0 < value < math.inf:
        raise ValueError(text)
    return value
