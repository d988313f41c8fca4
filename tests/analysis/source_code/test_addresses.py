"""What the addresses of loads depend on: the load of the turn before, and which parts of the block index."""

from typing import Any

import pytest

from profsvc.analysis.source_code.addresses import LoadCounts, loops_of
from profsvc.analysis.source_code.addresses import load_counts as counts_of
from profsvc.analysis.source_code.registers import operands


def rows(*sass: str, size: str = "32") -> list[dict[str, Any]]:
    """Return instructions that ten full warps executed each."""
    return [
        {
            "address": hex(0x100 + 0x10 * place), "sass": text, "instructions": 10, "thread_instructions_on": 320,
            "access_size": size, "ideal_l2_sectors": 40,
        }
        for place, text in enumerate(sass)
    ]  # fmt: skip


def load_counts(code: list[dict[str, Any]]) -> LoadCounts:
    return counts_of(code, [operands(row["sass"]) for row in code], loops_of(code))


def test_a_list_is_walked_load_by_load() -> None:
    walk = ("LDG.E R4, desc[UR4][R2.64]", "IMAD.WIDE R2, R4, 0x10, R6", "@P0 BRA 0x100", "EXIT")
    assert load_counts(rows(*walk)).chained_warps == 10
    # The address is counted up: the loads of all turns may be under way at once.
    row = ("LDG.E R4, desc[UR4][R2.64]", "IADD3 R2, P1, R2, 0x10, RZ", "@P0 BRA 0x100", "EXIT")
    assert load_counts(rows(*row)).chained_warps == 0
    # An index is loaded and its place: a chain of two, but none from turn to turn.
    gather = ("LDG.E R4, [R2.64]", "IMAD.WIDE R8, R4, 0x4, R6", "LDG.E R9, [R8.64]", "IADD3 R2, R2, 0x4, RZ")
    assert load_counts(rows(*gather, "@P0 BRA 0x100")).chained_warps == 0


def test_a_loop_that_never_came_back_has_no_chain() -> None:
    walk = rows("LDG.E R4, [R2.64]", "IMAD.WIDE R2, R4, 0x10, R6", "@P0 BRA 0x100", "EXIT")
    walk[2]["instructions"] = 0
    assert load_counts(walk).chained_warps == 0


QUOTIENT = ("S2R R0, SR_CTAID.X", "S2R R1, SR_TID.X", "IMAD.HI.U32 R4, R3, R0, RZ")
REMAINDER = (*QUOTIENT, "IADD3 R5, -R4, RZ, RZ", "IMAD R6, R5, R7, R0")


@pytest.mark.parametrize(
    ("index", "is_shared"),
    [
        ((*QUOTIENT, "IMAD R8, R4, 0x100, R1"), True),
        ((*REMAINDER, "IMAD R8, R6, 0x100, R1"), True),
        ((*REMAINDER, "IMAD R8, R6, 0x100, R4", "IADD3 R8, R8, R1, RZ"), False),
        ((*QUOTIENT, "IMAD R8, R0, 0x100, R1"), False),
        (
            ("S2R R0, SR_CTAID.X", "S2R R1, SR_TID.X", "LOP3.LUT R4, R0, 0x7, RZ, 0xc0, !PT", "IADD3 R8, R4, R1, RZ"),
            True,
        ),
        (("S2R R0, SR_CTAID.X", "S2R R2, SR_CTAID.Y", "S2R R1, SR_TID.X", "IADD3 R8, R0, R1, RZ"), True),
        (("S2R R0, SR_CTAID.X", "S2R R2, SR_CTAID.Y", "S2R R1, SR_TID.X", "IADD3 R8, R0, R2, R1"), False),
        (("S2R R1, SR_TID.X", "MOV R8, R1"), False),
        # The thread and the block together: a shift by the size of the block parts them.
        (("S2R R0, SR_CTAID.X", "S2R R1, SR_TID.X", "IMAD R4, R0, 0x100, R1", "SHF.R.U32.HI R8, RZ, 0x5, R4"), False),
        # A place that was loaded is anywhere.
        ((*QUOTIENT, "LDG.E R8, [R4.64]"), None),
        ((*QUOTIENT, "CALL.REL.NOINC 0x100", "IMAD R8, R4, 0x100, R1"), False),
    ],
)
def test_places_of_a_part_of_the_block_index_are_those_of_several_blocks(
    index: tuple[str, ...], is_shared: bool | None
) -> None:
    found = load_counts(rows(*index, "IMAD.WIDE R10, R8, 0x4, R12", "LDG.E R16, desc[UR4][R10.64]")).shared_bytes
    # The load of the index itself is one of several blocks.
    assert found == {True: 1280, False: 0, None: 40}[is_shared]


def test_lanes_that_load_the_same_ask_for_it_once() -> None:
    uniform = rows("S2R R0, SR_CTAID.X", "LDG.E.64 R16, desc[UR4][R10.64]", size="64")
    assert load_counts(uniform).shared_bytes == 80
    several = rows("S2R R0, SR_CTAID.X", "S2R R1, SR_TID.X", "LDG.E R16, desc[UR4][R1.64]")
    several[2]["ideal_l2_sectors"] = 10
    assert load_counts(several).shared_bytes == 320
