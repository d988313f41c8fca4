"""Values of bfloat16 in machine code: shifts that arithmetic reads, and none that integers do."""

import pytest

from profsvc.analysis.source_code.bfloat16 import unpacked_threads
from profsvc.analysis.source_code.registers import operands


def threads(*code: str) -> float:
    rows = [{"sass": one, "thread_instructions_on": 32} for one in code]
    return unpacked_threads(rows, [operands(one) for one in code])


@pytest.mark.parametrize(
    "unpacking",
    [
        "SHF.L.U32 R4, R2, 0x10, RZ", "IMAD.U32 R4, R2, 0x10000, RZ", "IMAD.SHL.U32 R4, R2.reuse, 0x10000, RZ",
        "LOP3.LUT R4, R2, 0xffff0000, RZ, 0xc0, !PT", "PRMT R4, RZ, 0x7610, R2", "PRMT R4, RZ, 0x5410, R2",
    ],
)  # fmt: skip
def test_what_puts_a_half_word_above_is_unpacked_where_arithmetic_or_a_tile_reads_it(unpacking: str) -> None:
    assert threads(unpacking, "FFMA R6, R4, R5, R6", "FFMA R7, R4, R5, R7") == 32
    assert threads(unpacking, "STS [R8], R4") == 32, "a tile in shared memory, whose products are of floats"
    assert threads(unpacking, "IADD3 R6, R4, R5, RZ") == 0
    assert threads(unpacking, "MOV R4, R8", "FFMA R6, R4, R5, R6") == 0, "the register has another value by then"


def test_other_shifts_and_permutations_are_of_integers() -> None:
    for other in ("IMAD.SHL.U32 R4, R2, 0x10, RZ", "SHF.L.U32 R4, R2, 0x2, RZ", "PRMT R4, R2, 0x7632, R4"):
        assert threads(other, "FFMA R6, R4, R5, R6") == 0


def test_a_page_without_counts_of_predicates_counts_none() -> None:
    code = ("IMAD.U32 R4, R2, 0x10000, RZ", "FADD R5, R4, R4")
    rows = [{"sass": one, "thread_instructions_on": None} for one in code]
    assert unpacked_threads(rows, [operands(row["sass"]) for row in rows]) == 0
