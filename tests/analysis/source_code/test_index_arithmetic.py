"""Integer instructions that compute places of memory and nothing else, in machine code."""

import pytest

from profsvc.analysis.source_code.addresses import loops_of
from profsvc.analysis.source_code.index_arithmetic import index_threads
from profsvc.analysis.source_code.registers import operands

THREAD, LOAD = "S2R R0, SR_TID.X", "LDG.E R9, desc[UR8][R2.64]"
SCALED = "IMAD.WIDE R2, R4, 0x4, R6"


def warps(*code: str) -> float:
    """Return how many instructions of full warps are counted, each executed once."""
    rows = [
        {"sass": sass, "address": hex(16 * place), "instructions": 1, "thread_instructions_on": 32.0}
        for place, sass in enumerate(code)
    ]
    return index_threads(rows, [operands(row["sass"]) for row in rows], loops_of(rows)) / 32


def test_what_only_an_address_depends_on_is_counted() -> None:
    assert warps(THREAD, "IADD3 R4, R0, 0x1, RZ", SCALED, LOAD) == 2
    assert warps(THREAD, "IADD3 R4, R0, 0x1, RZ", SCALED, "STG.E desc[UR8][R2.64], R9") == 2
    assert warps(THREAD, "IMAD R4, R0, 0x4, R5", "LDS R9, [R4+0x10]") == 1
    # The uniform datapath is not that of the threads.
    assert warps("ULEA UR4, UR5, UR6, 0x2", "LDS R9, [UR4+0x10]") == 0
    assert warps() == 0


def test_a_bound_of_an_index_belongs_to_it() -> None:
    wrapped = ["ISETP.GE.AND P0, PT, R0, 0x40, PT", "@P0 IADD3 R0, R0, -0x40, RZ", "SEL R4, R0, RZ, !P1"]
    assert warps(THREAD, *wrapped, SCALED, LOAD) == 4
    # One that decides where the code goes on is control.
    assert warps(THREAD, "ISETP.GE.AND P0, PT, R0, 0x40, PT", "@P0 BRA 0x50", SCALED, LOAD, "EXIT") == 1
    assert warps(THREAD, "ISETP.GE.AND P0, PT, R0, 0x40, PT", "@P0 FADD R9, R9, R8", SCALED, LOAD) == 1


@pytest.mark.parametrize(
    "use",
    [
        "STG.E desc[UR8][R10.64], R4", "I2F.U32 R5, R4", "SHFL.IDX PT, R5, R4, R8, 0x1f", "FADD R5, R4, R5",
        "ATOMS.ADD R5, [R8], R4", "VOTE.ANY R5, PT, P0",
    ],
)  # fmt: skip
def test_what_is_used_as_a_value_too_is_the_work_itself(use: str) -> None:
    code = [THREAD, "ISETP.GE.AND P0, PT, R0, 0x40, PT", "SEL R4, R0, RZ, P0", SCALED, LOAD]
    assert warps(*code) == 3
    expected = 2 if "P0" in use else 1
    assert warps(*code, use) == expected


@pytest.mark.parametrize(
    "origin",
    [
        "LDG.E R0, desc[UR8][R12.64]", "LDS R0, [R12]", "SHFL.IDX PT, R0, R1, R8, 0x1f", "MUFU.RCP R0, R1",
        "IMAD R0, R1, 0x41c64e6d, RZ", "IMAD.HI.U32 R0, R1, 0x2aaaaaab, RZ", "POPC R0, R1",
    ],
)  # fmt: skip
def test_places_that_values_hashes_or_divisions_determine_are_not_counted(origin: str) -> None:
    assert warps(origin, "IADD3 R4, R0, 0x1, RZ", SCALED, LOAD) == 0


def test_the_end_of_a_loop_is_followed_to_its_beginning() -> None:
    turn = ["IADD3 R4, R4, 0x1, RZ", "ISETP.NE.AND P0, PT, R4, R5, PT", "@P0 BRA 0x0"]
    assert warps(SCALED, LOAD, *turn) == 2
    # What it leaves is stored behind the loop.
    assert warps(SCALED, LOAD, *turn, "STG.E desc[UR8][R10.64], R4") == 1
    # What a turn loads determines the place of the next.
    assert warps(SCALED, "LDG.E R4, desc[UR8][R2.64]", "IADD3 R4, R4, 0x1, RZ", turn[2]) == 0


def test_both_sides_of_a_branch_are_followed() -> None:
    sides = ["@P0 BRA 0x30", "IADD3 R4, R0, 0x1, RZ", "BRA 0x40", "IADD3 R4, R0, 0x2, RZ"]
    assert warps(*sides, SCALED, LOAD) == 3
    assert warps("IADD3 R4, R0, 0x2, RZ", "@P0 BRA 0x30", "IADD3 R4, R0, 0x1, RZ", SCALED, LOAD) == 3


def test_what_was_not_executed_does_not_count() -> None:
    rows = [
        {"sass": sass, "address": hex(16 * place), "instructions": 1, "thread_instructions_on": on}
        for place, (sass, on) in enumerate([(SCALED, None), (LOAD, None)])
    ]
    assert index_threads(rows, [operands(row["sass"]) for row in rows], []) == 0


def test_many_guards_and_branches_take_time_in_proportion() -> None:
    guarded = ["@P0 IADD3 R4, R4, 0x1, RZ"] * 4000
    assert warps(THREAD, *guarded, SCALED, LOAD) == 4001
    branches = [
        line for turn in range(4000) for line in (f"@P0 BRA {hex(16 * (2 * turn + 3))}", "IADD3 R4, R4, 0x1, RZ")
    ]
    # What so many may have written is taken for a value.
    assert warps(THREAD, *branches, SCALED, LOAD) < 200
