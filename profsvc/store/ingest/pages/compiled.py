"""Rows of numbers to leaves of a SQLite table, by the compiled module.

The module is optional: `is_available` tells whether it is there. Without it NumPy makes the same pages.
"""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

_pages: Any
try:
    from profsvc.store.ingest.pages import _pages
except ImportError:  # no compiler was there when profsvc was installed
    _pages = None

INTERFACE = 1
"""The version of the compiled module that this code calls; a checkout may have an older one."""
OFF_VARIABLE = "PROFSVC_SPLITTER"
PAGE_BYTES, HEAD_BYTES, POINTER_BYTES, WORD_BYTES = 4096, 8, 2, 8
MAX_RECORD_BYTES = 0x7F
MAX_ID_BYTES = 8


def is_available() -> bool:
    """Return whether the module makes pages: it is there, fits, and PROFSVC_SPLITTER is not 0."""
    return state_of_pages() == "available"


def state_of_pages() -> str:
    """Return what is the matter with the module: available, missing, outdated or off."""
    if _pages is None:
        return "missing"
    if _pages.INTERFACE != INTERFACE:
        return "outdated"
    return "off" if os.environ.get(OFF_VARIABLE) == "0" else "available"


def leaves(
    first_row: int, columns: Sequence[tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]]
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return rows as pages, one after another, and the last row of each page.

    A column is 64-bit integers or doubles, and which of them are null (None: no nulls).
    """
    rows = len(columns[0][0])
    longest = 1 + MAX_ID_BYTES + min(MAX_RECORD_BYTES, 2 + len(columns) * (1 + WORD_BYTES))
    most = -(-rows // ((PAGE_BYTES - HEAD_BYTES) // (longest + POINTER_BYTES)))
    # What a value spills over lies behind the last page.
    pages, last_rows = np.empty(most * PAGE_BYTES + WORD_BYTES, np.uint8), np.empty(most, np.int64)
    given = tuple(
        (values.dtype == np.float64, np.ascontiguousarray(values), None if missing is None else _flags(missing))
        for values, missing in columns
    )
    count = _pages.leaves(first_row, rows, given, pages, last_rows)
    return pages[: count * PAGE_BYTES], last_rows[:count]


def _flags(missing: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    return np.ascontiguousarray(missing)
