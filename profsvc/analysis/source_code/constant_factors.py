"""Multiply-adds of half precision with a constant factor, which are sums or moves: SASS.

Compilers divide sums of pairs between two pipes: half of them are a product with one and a sum. A register is set to a
constant by a product with zero. Neither is a product of two matrices.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from profsvc.analysis.source_code.registers import Operands

FACTORS = re.compile(r"HFMA2\S*\s+R\w+,\s*([^,\s]+),\s*([^,\s]+)")
CONSTANT = re.compile(r"-?(?:RZ|\d|\+?INF|\+?QNAN)")


def constant_factor_threads(rows: Sequence[Mapping[str, Any]], code: Sequence[Operands]) -> float:
    """Return the thread instructions of a launch that multiply pairs of half precision with a constant, and add.

    ``rows`` are its instructions, each with ``sass, thread_instructions_on``; ``code`` their operands.
    """
    return float(
        sum(
            rows[place]["thread_instructions_on"] or 0
            for place, own in enumerate(code)
            if own.opcode == "HFMA2" and has_constant_factor(rows[place]["sass"])
        )
    )


def has_constant_factor(sass: str) -> bool:
    """Whether a multiply-add of half precision has a constant for one of its two factors.

    >>> has_constant_factor("HFMA2.MMA R4, R2, 1, 1, R4"), has_constant_factor("HFMA2 R4, R2, R3, 0.5, 0.5")
    (True, False)
    """
    factors = FACTORS.search(sass)
    return factors is not None and any(CONSTANT.match(one) for one in factors.groups())
