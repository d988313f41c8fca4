"""Whether registers could hold the arrays of a thread, by what determines the places in them."""

from typing import Any

import pytest

from profsvc.analysis.source_code.addresses import loops_of
from profsvc.analysis.source_code.local_arrays import NONE, LocalCounts, local_counts
from profsvc.analysis.source_code.registers import operands

FRAME = "VIADD R1, R1, 0xffffffc0"  # 16 words
LOADED = ("LDG.E R4, desc[UR4][R2.64]", "LEA R6, R4, R1, 0x2")


def counts(*sass: str, turns: dict[int, int] | None = None) -> LocalCounts:
    """Return the counts of code that ten full warps executed, its lines of ``turns`` more often."""
    rows: list[dict[str, Any]] = []
    for place, text in enumerate(sass):
        times = (turns or {}).get(place, 1)
        rows.append(
            {
                "address": hex(0x100 + 0x10 * place), "sass": text, "instructions": 10 * times,
                "thread_instructions_on": 320 * times,
            }
        )  # fmt: skip
    return local_counts(rows, [operands(text) for text in sass], loops_of(rows))


def test_a_loaded_value_determines_a_place() -> None:
    found = counts(FRAME, "STL [R1+0x4], R5", *LOADED, "LDL R7, [R6]", "STL [R6], R8", "EXIT")
    assert (found.warps, found.valued_warps) == (30, 20)
    assert found[2:] == (0, 0, 0)
    assert counts(FRAME, *LOADED, "EXIT") == NONE


LOOP = (
    "LEA R6, R5, R1, 0x2", "LDL R7, [R6]", "FADD R8, R8, R7", "IADD3 R5, R5, 0x1, RZ",
    "ISETP.GE.AND P0, PT, R5, c[0x0][0x210], PT", "@!P0 BRA 0x110", "EXIT",
)  # fmt: skip


@pytest.mark.parametrize("frame", [FRAME, "IADD3 R1, R1, -0x40, RZ"])
def test_a_loop_through_an_array_could_be_unrolled(frame: str) -> None:
    found = counts(frame, *LOOP, turns=dict.fromkeys(range(1, 7), 16))
    assert found == LocalCounts(160, 0, 16 * 320, 4 * 16 * 320, 16 * 320)


@pytest.mark.parametrize("frame", [FRAME, "NOP"])
def test_an_array_with_fewer_places_than_the_loop_has_turns_could_not(frame: str) -> None:
    found = counts(frame, *LOOP, turns=dict.fromkeys(range(1, 7), 17))
    assert found == LocalCounts(170, 0, 0, 0, 0)
