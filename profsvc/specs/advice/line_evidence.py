"""Which instructions of a launch a cause lies on, and which instructions others wait for."""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from profsvc.errors import DomainError
from profsvc.specs.advice.causes import causes
from profsvc.specs.table_files import rows_of

FILE, SCOREBOARDS, CALLS = "advice/line_evidence.csv", "advice/scoreboards.csv", "advice/inlined_calls.csv"
COUNTS = (
    "threads", "excess_sectors", "excess_wavefronts", "narrow", "lanes_off", "predicated_off", "alone",
    "indexed_waits", "memory_waits", "tile_waits", "result_waits", "barrier_waits", "uneven_turns", "no_instruction",
)  # fmt: skip
LONG, SHORT = "long", "short"


class LineEvidence(NamedTuple):
    """What tells the instructions of a cause: one of `COUNTS`, of these opcodes without modifiers, or of all."""

    counts: str
    opcodes: frozenset[str]


@cache
def line_evidence() -> Mapping[str, LineEvidence]:
    """Return the evidence of each cause that lies on lines.

    >>> line_evidence()["barriers"].counts
    'barrier_waits'
    """
    found = {}
    for row in rows_of(FILE, ("cause", "counts", "opcodes")):
        if row["cause"] not in causes():
            raise DomainError(f"{FILE}: no cause {row['cause']!r}")
        found[row["cause"]] = LineEvidence(row.one_of("counts", COUNTS), frozenset(row["opcodes"].split()))
    return MappingProxyType(found)


@cache
def scoreboards() -> Mapping[str, str]:
    """Return the scoreboard that each opcode of variable latency sets: long for memory off the chip, else short.

    >>> scoreboards()["LDG"], scoreboards()["LDS"]
    ('long', 'short')
    """
    rows = rows_of(SCOREBOARDS, ("opcode", "scoreboard"))
    return MappingProxyType({row["opcode"]: row.one_of("scoreboard", (LONG, SHORT)) for row in rows})


@cache
def inlined_calls() -> Mapping[str, str]:
    """Return the names of the functions that headers of the toolkit define, as an expression, by a part of their path.

    >>> inlined_calls()["sm_80_rt"]
    '__reduce\\\\w*'
    """
    return MappingProxyType({row["header"]: row["call"] for row in rows_of(CALLS, ("header", "call"))})
