"""Rows of delimited text to typed columns, by the compiled module.

The module is optional: `is_available` tells whether it is there. It stops before the first row that is not plain, which
is then read in another way.
"""

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

_splitter: Any
try:
    from profsvc.formats.splitter import _splitter
except ImportError:  # no compiler was there when profsvc was installed
    _splitter = None

INTERFACE = 3
"""The version of the compiled module that this code calls; a checkout may have an older one."""
OFF_VARIABLE = "PROFSVC_SPLITTER"
SKIP, INTEGER, REAL, PLAIN, WHOLE, DECIMAL, CLOCK, TEXT, NUMBERED, VALUE = "sirpwdtcnv"
"""Kinds of columns: checked only; digits; decimal numbers; those without a sign or exponent, of at most 20 characters;
decimal numbers as integers; digits with their decimals, of at most 20 characters; times of the day in ns, with or
without a date before them; texts; names with a number in brackets at their end; any cell, with its place in the block,
and its number where it is plain."""
_VALUES: dict[str, Any] = {
    **dict.fromkeys((INTEGER, WHOLE, DECIMAL, CLOCK), np.int64),
    **dict.fromkeys((REAL, PLAIN, VALUE), np.float64),
    **dict.fromkeys((TEXT, NUMBERED), np.int32),
}
_EXTRA: dict[str, Any] = {DECIMAL: np.int8, CLOCK: np.int32, NUMBERED: np.int64, VALUE: np.dtype((np.int32, 2))}


class Kind(NamedTuple):
    """How the cells of a column are read.

    A number is multiplied by ``factor``, rounded to six decimals if ``rounded``, and must then lie between ``least``
    and ``most``; ``suffix`` must follow it.
    """

    kind: str
    factor: float = 1.0
    least: float = -np.inf
    most: float = np.inf
    rounded: bool = False
    suffix: str = ""


class Cells(NamedTuple):
    """The cells of a column.

    ``values`` are numbers, 0 where ``missing``, or codes of ``texts``; those of `VALUE` are NaN where the number is not
    plain. ``extra`` has the decimals of `DECIMAL`, the codes of the dates of `CLOCK`, the number in brackets of
    `NUMBERED`, where ``missing`` tells of the number, and where the cells of `VALUE` begin and end in the block.
    """

    values: Any
    missing: Any
    extra: Any
    texts: list[str]


def is_available() -> bool:
    """Return whether rows can be split: the module is there, fits, and PROFSVC_SPLITTER is not 0."""
    return state() == "available"


def state() -> str:
    """Return what is the matter with the module: available, missing, outdated or off."""
    if _splitter is None:
        return "missing"
    if _splitter.INTERFACE != INTERFACE:
        return "outdated"
    return "off" if os.environ.get(OFF_VARIABLE) == "0" else "available"


class Rows(NamedTuple):
    """The lines of a block, how many rows at its beginning are plain, and their columns.

    ``stopped`` is the column of the first cell that is not plain; None if all are, or the end of a row is not.
    """

    lines: int
    rows: int
    cells: list[Cells]
    stopped: int | None


def split(
    block: bytes | memoryview,
    kinds: Sequence[Kind],
    separator: str = ",",
    decimal: str = ".",
    blanks: bool = False,
    quoted: bool = False,
    least: int | None = None,
) -> Rows:
    """Return the columns of the plain rows at the beginning of a block.

    ``blanks`` allows one behind each separator; ``quoted`` demands quotes around each cell. A row has all cells, or at
    least so many; those behind are skipped.

    >>> if is_available():
    ...     found = split(b"1.5,gpu 0\\n,gpu 0\\nx,gpu 1\\n", [Kind(REAL, 2.0), Kind(TEXT)])
    ...     assert (found.lines, found.rows, found.stopped, found.cells[1].texts) == (3, 2, 0, ["gpu 0"])
    """
    lines = _splitter.count_lines(block)
    arrays = [_arrays(kind.kind, lines) for kind in kinds]
    columns = tuple(
        (kind.kind, kind.rounded, kind.factor, kind.least, kind.most, kind.suffix, *given)
        for kind, given in zip(kinds, arrays, strict=True)
    )
    rows, texts, stopped = _splitter.split(
        block, separator, decimal, blanks, quoted, len(kinds) if least is None else least, lines, columns
    )
    if rows < lines:
        arrays = [tuple(None if array is None else array[:rows] for array in given) for given in arrays]
    found = [
        Cells(values, missing, extra, distinct)
        for (values, missing, extra), distinct in zip(arrays, texts, strict=True)
    ]
    return Rows(lines, rows, found, None if stopped < 0 else stopped)


def _arrays(kind: str, rows: int) -> tuple[Any, ...]:
    values = np.empty(rows, _VALUES[kind]) if kind in _VALUES else None
    missing = np.empty(rows, np.bool_) if kind not in (SKIP, TEXT, CLOCK, VALUE) else None
    return values, missing, np.empty(rows, _EXTRA[kind]) if kind in _EXTRA else None
