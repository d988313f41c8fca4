"""Words that straight code puts together bit by bit, in machine code."""

import pytest

from profsvc.analysis.source_code.assembled_words import NEEDED_PER_BIT, assembled_threads
from profsvc.analysis.source_code.registers import operands

LOAD, STORE = "LDG.E R4, desc[UR4][R2.64]", "STG.E desc[UR4][R8.64], R7"
BITS = 8


def threads(code: list[str], on: int | None = 32) -> float:
    rows = [{"sass": sass, "thread_instructions_on": on} for sass in code]
    return assembled_threads(rows, [operands(sass) for sass in code])


def spread(number: int = BITS, mask: str = "0x1", load: str = LOAD) -> list[str]:
    """Move every bit of a word to twice its place: a shift, a mask, a shift and a sum for each."""
    code = [load, "LOP3.LUT R7, R4, 0x1, RZ, 0xc0, !PT"]
    for bit in range(1, number):
        code += [
            f"SHF.R.U32.HI R5, RZ, {bit:#x}, R4", f"LOP3.LUT R5, R5, {mask}, RZ, 0xc0, !PT",
            f"IMAD.SHL.U32 R6, R5, {1 << bit:#x}, RZ", "LOP3.LUT R7, R6, R7, RZ, 0xfc, !PT",
        ]  # fmt: skip
    return [*code, STORE]


def test_what_whole_words_take_is_not_counted() -> None:
    # The first bit needs a mask alone.
    assert threads(spread()) == 32 * (4 * (BITS - 1) + 1 - NEEDED_PER_BIT * BITS)
    assert threads(spread(), on=None) == 0


def test_a_mask_in_the_sum_takes_a_bit_of_a_word() -> None:
    code = [LOAD, "LOP3.LUT R7, R4, 0x1, RZ, 0xc0, !PT"]
    for bit in range(1, BITS):
        code += [f"SHF.R.U32.HI R5, RZ, {bit:#x}, R4", f"LOP3.LUT R7, R7, {1 << bit:#x}, R5, 0xf8, !PT"]
    assert threads([*code, STORE]) == 32 * (2 * (BITS - 1) + 1 - NEEDED_PER_BIT * BITS)


def test_comparisons_of_a_bit_and_the_values_that_they_choose_move_it() -> None:
    code = [LOAD]
    for bit in range(BITS):
        code += [
            f"SHF.R.U32.HI R5, RZ, {2 * bit:#x}, R4", "LOP3.LUT R5, R5, 0x3, RZ, 0xc0, !PT",
            "ISETP.NE.AND P0, PT, R5, 0x2, PT", f"SEL {'R6' if bit else 'R7'}, RZ, {1 << bit:#x}, P0",
        ]  # fmt: skip
        code += ["LOP3.LUT R7, R6, R7, RZ, 0xfc, !PT"] if bit else []
    assert threads([*code, STORE]) == 32 * (5 * BITS - 1 - NEEDED_PER_BIT * BITS)


def test_a_shift_wants_no_more_of_a_word_than_is_wanted_of_its_result() -> None:
    code = [LOAD, "LOP3.LUT R7, R4, 0x1, RZ, 0xc0, !PT"]
    for bit in range(1, BITS):
        code += [
            f"SHF.R.U32.HI R5, RZ, {bit:#x}, R4", f"IMAD.SHL.U32 R6, R5, {4**bit:#x}, RZ",
            f"LOP3.LUT R7, R6, {4**bit:#x}, R7, 0xe2, !PT",
        ]  # fmt: skip
    assert threads([*code, STORE]) == 32 * (3 * (BITS - 1) + 1 - NEEDED_PER_BIT * BITS)


def test_parts_that_are_together_are_moved_at_once() -> None:
    half = spread()[1:-1]
    other = [one.replace("R7", "R10") for one in half]
    joined = ["IMAD.SHL.U32 R10, R10, 0x10000, RZ", "LOP3.LUT R7, R10, R7, RZ, 0xfc, !PT", STORE]
    assert threads([LOAD, *half, LOAD, *other, *joined]) == 2 * threads(spread())


@pytest.mark.parametrize(
    "code",
    [
        spread(BITS - 1),  # so few bits take as many instructions at once
        spread(mask="0xf"),  # four bits at once
        spread(load="S2R R4, SR_TID.X"),  # an index, and no word of memory
        [one.replace("0xfc", "0x3c") if "R6, R7" in one else "FADD R1, R2, R3" for one in spread()],
    ],
)
def test_other_code_puts_no_words_together(code: list[str]) -> None:
    assert threads(code) == 0


def test_a_bit_that_is_used_otherwise_is_not_moved_alone() -> None:
    code = spread()
    place = code.index("LOP3.LUT R5, R5, 0x1, RZ, 0xc0, !PT")
    used = [*code[: place + 1], "I2FP.F32.U32 R9, R5", *code[place + 1 :]]
    # Neither its mask nor the shift before it counts.
    assert threads(code) - threads(used) == 2 * 32
