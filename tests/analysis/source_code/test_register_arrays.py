"""An array in registers whose place is found by comparisons, in made-up machine code."""

import pytest

from profsvc.analysis.source_code.register_arrays import register_array_threads
from profsvc.analysis.source_code.registers import operands


def threads(*code: str) -> float:
    rows = [{"sass": one, "thread_instructions_on": 10} for one in code]
    return register_array_threads(rows, [operands(one) for one in code])


def comparison(place: int, predicate: str, word: str = "EQ") -> str:
    number = hex(4 * place) if place else "RZ"
    return f"ISETP.{word}.AND {predicate}, PT, R30, {number}, PT"


STORED = [
    line
    for place in range(4)
    for line in (comparison(place, f"P{place}"), f"@P{place}   IMAD.MOV.U32 R{place}, RZ, RZ, R20")
]


def test_a_value_is_stored_where_the_place_is() -> None:
    assert threads("IMAD.SHL.U32 R30, R34, 0x4, RZ", *STORED) == 80


def test_a_value_is_selected_by_the_place() -> None:
    loaded = [
        line
        for place in range(5)
        for line in (comparison(place, "P1", "NE"), f"FSEL R9, R{place}, R9, !P1", "FADD R11, R9, R12")
    ]
    assert threads(*loaded) == 100


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(STORED[:6], id="three places"),
        pytest.param([one.replace("0x8", "0x9") for one in STORED], id="a number of no place"),
        pytest.param([*STORED[:4], "VIADD R30, R30, 0x4", *STORED[4:]], id="another place"),
        pytest.param([one.replace("ISETP", "@P6 ISETP") for one in STORED], id="comparisons of a case"),
        pytest.param([], id="no code"),
    ],
)
def test_other_comparisons_are_of_the_program(code: list[str]) -> None:
    assert threads(*code) == 0


def test_a_predicate_that_was_written_again_is_of_no_place() -> None:
    assert threads(*STORED, "FSETP.GT.AND P3, PT, R1, R2, PT", "@P3   MOV R3, R20") == 80
    assert threads(*STORED, "@P3   FADD R3, R20, R21") == 80
