"""Bits that loops move one at a time, in machine code."""

import pytest

from profsvc.analysis.source_code.addresses import loops_of
from profsvc.analysis.source_code.bits import bit_by_bit_threads
from profsvc.analysis.source_code.registers import operands

SPREAD = [
    "SHF.R.U32.HI R2, RZ, R4, R11", "LOP3.LUT R6, R2, 0x1, RZ, 0xc0, !PT", "VIADD R4, R4, 0x1",
    "SHF.L.U32 R6, R6, R5, RZ", "VIADD R5, R5, 0x2", "ISETP.NE.AND P0, PT, R5, 0x21, PT",
    "LOP3.LUT R7, R6, R7, RZ, 0xfc, !PT",
]  # fmt: skip


def threads(*body: str, on: int | None = 32) -> float:
    code = [*body, "@P0 BRA 0x0"]
    rows = [
        {"sass": sass, "address": hex(16 * place), "instructions": 1, "thread_instructions_on": on}
        for place, sass in enumerate(code)
    ]
    return bit_by_bit_threads(rows, [operands(row["sass"]) for row in rows], loops_of(rows))


def test_a_loop_that_spreads_bits_takes_one_instruction_for_each_if_words_do_it() -> None:
    assert threads(*SPREAD) == 32 * 8 - 32
    # Two bits in a turn share the counter.
    second = [one.replace("R6", "R8").replace("R2,", "R9,") for one in SPREAD[:2] + SPREAD[3:4]]
    assert threads(*SPREAD, *second) == 32 * 11 - 2 * 32
    assert threads(*SPREAD, on=None) == 0


@pytest.mark.parametrize(
    "other",
    [
        [one for one in SPREAD if "SHF.L" not in one],  # bits are counted, and not moved
        [one.replace("0x1, RZ, 0xc0", "0xff, RZ, 0xc0") for one in SPREAD],  # a byte
        [one.replace("SHF.R", "SHF.L") for one in SPREAD],
        [*SPREAD, "LDS R12, [R5]"],  # a table, which the bit addresses
        [*SPREAD, "STG.E desc[UR4][R8.64], R7"],
        [*SPREAD, *["FADD R1, R2, R3"] * 3],  # eleven instructions a bit: the loop does something else
    ],
)
def test_other_loops_move_no_bits(other: list[str]) -> None:
    assert threads(*other) == 0


def test_bits_outside_of_loops_are_few() -> None:
    rows = [{"sass": sass, "address": "0x0", "instructions": 1, "thread_instructions_on": 32} for sass in SPREAD]
    assert bit_by_bit_threads(rows, [operands(row["sass"]) for row in rows], []) == 0
