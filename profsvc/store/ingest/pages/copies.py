"""Columns to rows of a binary COPY of Postgres, by the compiled module.

The module is optional: `is_available` tells whether it is there. Without it NumPy makes the same bytes.
"""

import os
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from profsvc.store.ingest.pages.compiled import OFF_VARIABLE

_copies: Any
try:
    from profsvc.store.ingest.pages import _copies
except ImportError:  # no compiler was there when profsvc was installed
    _copies = None

INTERFACE = 1
"""The version of the compiled module that this code calls; a checkout may have an older one."""
MAX_COLUMNS = 64
HEAD_BYTES, LENGTH_BYTES = 2, 4
TEXT = 0  # in place of the bytes of a number


class PlainColumn(Protocol):
    """A column as numbers of 64 bits, or as places in ``texts``, and which of them have a value (None: all)."""

    @property
    def values(self) -> npt.NDArray[Any]:
        """The values of all rows."""

    @property
    def there(self) -> npt.NDArray[np.bool_] | None:
        """Which rows have a value."""

    @property
    def width(self) -> int:
        """The bytes of a number: 2, 4 or 8."""

    @property
    def texts(self) -> Sequence[bytes] | None:
        """The texts, None for a column of numbers."""


def is_available() -> bool:
    """Return whether the module lays out rows: it is there, fits, and PROFSVC_SPLITTER is not 0."""
    return state_of_copies() == "available"


def state_of_copies() -> str:
    """Return what is the matter with the module: available, missing, outdated or off."""
    if _copies is None:
        return "missing"
    if _copies.INTERFACE != INTERFACE:
        return "outdated"
    return "off" if os.environ.get(OFF_VARIABLE) == "0" else "available"


def rows(columns: Sequence[PlainColumn]) -> memoryview:
    """Return rows in the format of COPY, from at most `MAX_COLUMNS` columns of equal length."""
    count = len(columns[0].values)
    given: list[tuple[Any, ...]] = []
    size = count * (HEAD_BYTES + LENGTH_BYTES * len(columns))
    for column in columns:
        values = np.ascontiguousarray(column.values)
        missing = None if column.there is None else ~column.there
        if column.texts is None:
            given.append((column.width, values, missing, None, None))
            size += count * column.width
            continue
        lengths = np.fromiter(map(len, column.texts), np.int64, len(column.texts))
        given.append((TEXT, values, missing, b"".join(column.texts), np.cumsum(lengths)))
        size += int(lengths[values if missing is None else values[~missing]].sum())
    target = np.empty(size, np.uint8)
    return target[: _copies.rows(count, tuple(given), target)].data
