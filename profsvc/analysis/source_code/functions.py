"""What accurate functions of single precision cost, by the coefficients of their polynomials in SASS.

A sine, cosine or tangent of an angle from 105,615 on multiplies it by 160 bits of 2 / pi in integers, in a loop of six
turns. The fraction of a turn that is left is converted by a product of doubles with pi / 2 / 2^64.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from profsvc.specs.metrics.accurate_functions import spared_arithmetic

NUMBER = re.compile(r"(?<![\w.])-?(\d+\.\d+(?:e-\d+)?)(?![\w.])")
UPPER_WORD_OF_TURN = "0x3bf921fb"
"""Of pi / 2 / 2^64, a number that no other computation has."""
REDUCTION_LENGTH = 150.0
"""Instructions of a thread, without loads and branches, that such an angle takes: counted in code of CUDA 13.0 for
compute capability 9.0."""


def spared_threads(rows: Sequence[Mapping[str, Any]]) -> float:
    """Return the arithmetic thread instructions that cheaper forms of the functions of a launch spare.

    ``rows`` are its instructions, each with ``sass, thread_instructions_on``. Each call executes the instruction with
    the coefficient once.
    """
    return sum(_spared(row["sass"]) * (row["thread_instructions_on"] or 0) for row in rows)


def reduction_threads(rows: Sequence[Mapping[str, Any]]) -> float:
    """Return the thread instructions that bring large angles of sines, cosines and tangents into one turn.

    ``rows`` as of `spared_threads`.
    """
    calls = sum(row["thread_instructions_on"] or 0 for row in rows if UPPER_WORD_OF_TURN in row["sass"])
    return REDUCTION_LENGTH * calls


@lru_cache(maxsize=1 << 14)
def _spared(sass: str) -> float:
    """Return the arithmetic instructions that a function is longer than its cheaper form, if this is one of it.

    >>> _spared("FFMA R19, R2, R19, 0.1331529766321182251"), _spared("FFMA R1, R2, R3, 0.5")
    (13.0, 0.0)
    """
    return max((spared_arithmetic().get(number, 0.0) for number in NUMBER.findall(sass)), default=0.0)
