"""Registers of machine code: what instructions write and read, and which one a waiting instruction waits for."""

import pytest

from profsvc.analysis.source_code.registers import jumps, operands, producers

LOADS = frozenset({"LDG"})


@pytest.mark.parametrize(
    ("sass", "written", "read"),
    [
        ("IADD3 R22, P0, R20, R12, RZ", ("R22", "P0"), ("R20", "R12")),
        ("IADD3.X R35, R8, UR15, RZ, P0, !PT", ("R35",), ("R8", "UR15", "P0")),
        ("IMAD.WIDE R12, R19, 0x10, R4", ("R12", "R13"), ("R19", "R4")),
        ("LDG.E.128.CONSTANT R4, desc[UR10][R12.64+0x2000]", ("R4", "R5", "R6", "R7"), ("UR10", "R12", "R13")),
        ("@!P0  STS.64 [R5+0x40], R4", (), ("R5", "R4", "R5", "P0")),
        ("ISETP.GE.AND P0, PT, R17, R16, PT", ("P0",), ("R17", "R16")),
        ("DFMA R2, R4, R6, R8", ("R2", "R3"), ("R4", "R5", "R6", "R7", "R8", "R9")),
        ("SHFL.BFLY PT, R5, R14, 0x10, 0x1f", ("R5",), ("R14",)),
        ("FADD R9, |R8|, -R9", ("R9",), ("R8", "R9")),
        ("BAR.SYNC.DEFER_BLOCKING 0x0", (), ()),
        ("EXIT", (), ()),
    ],
)
def test_operands(sass: str, written: tuple[str, ...], read: tuple[str, ...]) -> None:
    found = operands(sass)
    assert (found.written, found.read) == (written, read)


def test_a_use_waits_for_the_load_that_wrote_its_register_last() -> None:
    code = [
        operands(one)
        for one in (
            "LDG.E R4, [R2.64]",
            "LDG.E R6, [R2.64+0x4]",
            "LDG.E R4, [R2.64+0x8]",
            "FADD R8, R4, R6",
            "FADD R8, R8, R8",
        )
    ]
    assert producers(code, [], 3, LOADS) == [1, 2]
    assert producers(code, [], 4, LOADS) == []


def test_what_is_loaded_at_the_end_of_a_loop_is_awaited_at_its_beginning() -> None:
    sass = ["FADD R8, R4, R8", "IADD3 R2, R2, 0x4, RZ", "LDG.E R4, [R2.64]", "@P0 BRA 0x100", "EXIT"]
    code = [operands(one) for one in sass]
    ((name, place, target),) = jumps(sass, [f"0x{100 + 10 * one}" for one in range(len(sass))])
    assert (name, place, target) == ("BRA", 3, 0)
    assert producers(code, [(target, place)], 0, LOADS) == [2]
    assert producers(code, [], 0, LOADS) == []


def test_a_register_is_not_overwritten_before_a_store_has_read_it() -> None:
    code = [operands(one) for one in ("LDG.E R9, [R2.64]", "STG.E [R2.64], R4", "MOV R4, RZ")]
    assert producers(code, [], 2, LOADS) == [1]
