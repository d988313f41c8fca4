"""What accurate functions of single precision cost, by the coefficients of their polynomials in SASS."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from profsvc.specs.metrics.accurate_functions import spared_arithmetic

NUMBER = re.compile(r"(?<![\w.])-?(\d+\.\d+(?:e-\d+)?)(?![\w.])")


def spared_threads(rows: Sequence[Mapping[str, Any]]) -> float:
    """Return the arithmetic thread instructions that cheaper forms of the functions of a launch spare.

    ``rows`` are its instructions, each with ``sass, thread_instructions_on``. Each call executes the instruction with
    the coefficient once.
    """
    return sum(_spared(row["sass"]) * (row["thread_instructions_on"] or 0) for row in rows)


@lru_cache(maxsize=1 << 14)
def _spared(sass: str) -> float:
    """Return the arithmetic instructions that a function is longer than its cheaper form, if this is one of it.

    >>> _spared("FFMA R19, R2, R19, 0.1331529766321182251"), _spared("FFMA R1, R2, R3, 0.5")
    (13.0, 0.0)
    """
    return max((spared_arithmetic().get(number, 0.0) for number in NUMBER.findall(sass)), default=0.0)
