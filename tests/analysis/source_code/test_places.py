"""Which loads of a thread are of the same place, however the address is computed, and which places indices tell."""

from typing import Any

import pytest

from profsvc.analysis.source_code.addresses import loops_of
from profsvc.analysis.source_code.places import PlaceCounts, place_counts
from profsvc.analysis.source_code.registers import operands

INDEX = ("S2R R0, SR_TID.X", "S2R R1, SR_CTAID.X", "IMAD R2, R1, c[0x0][0x0], R0", "LDC.64 R4, c[0x0][0x210]")
LOAD = ("IMAD.WIDE R6, R2, 0x4, R4", "LDG.E R8, desc[UR4][R6.64]")


def counts(*sass: str, turns: dict[int, int] | None = None, sectors: int = 40) -> PlaceCounts:
    """Return the counts of code that ten full warps executed, its lines of ``turns`` more often."""
    rows: list[dict[str, Any]] = []
    for place, text in enumerate(sass):
        times = (turns or {}).get(place, 1)
        rows.append(
            {
                "address": hex(0x100 + 0x10 * place), "sass": text, "instructions": 10 * times,
                "thread_instructions_on": 320 * times, "access_size": "32", "ideal_l2_sectors": 40 * times,
                "l2_sectors": sectors * times,
            }
        )  # fmt: skip
    return place_counts(rows, [operands(text) for text in sass], loops_of(rows))


def test_the_same_place_is_known_by_its_number_and_not_by_its_form() -> None:
    # (tid + block * size) * 4 + base, and base + block * size * 4 + tid * 4.
    other = (
        "IMAD R10, R1, c[0x0][0x0], RZ", "SHF.L.U32 R10, R10, 0x2, RZ", "LEA R11, P0, R0, R4, 0x2",
        "IADD3 R12, P1, R11, R10, RZ", "IADD3.X R13, R5, RZ, RZ, P1, !PT", "LDG.E R9, desc[UR4][R12.64]",
    )  # fmt: skip
    found = counts(*INDEX, *LOAD, *other)
    assert (found.requested_bytes, found.again_bytes, found.distinct_sector_bytes) == (2560, 1280, 1280)
    assert counts(*INDEX, *LOAD, *other[:-1], "LDG.E R9, desc[UR4][R12.64+0x4]").again_bytes == 0
    assert counts(*INDEX, *LOAD, "LDC.64 R4, c[0x0][0x218]", *LOAD).again_bytes == 0


def test_a_guarded_write_of_the_same_value_changes_nothing() -> None:
    assert counts(*INDEX, *LOAD, "@!P0 S2R R0, SR_TID.X", INDEX[2], *LOAD).again_bytes == 1280
    assert counts(*INDEX, *LOAD, "@!P0 S2R R0, SR_LANEID", INDEX[2], *LOAD).again_bytes == 0


@pytest.mark.parametrize(
    ("step", "again"),
    [
        (("FADD R9, R9, R8",), 0.75),  # the place stays
        (("IADD3 R2, R2, 0x100, RZ",), 0.0),  # and this one moves on
        (("MOV R3, R2", "IADD3 R3, R3, 0x100, RZ"), 0.75),  # another register moves
    ],
)
def test_a_place_that_no_turn_changes_is_loaded_again_in_each(step: tuple[str, ...], again: float) -> None:
    code = (*INDEX, *LOAD, *step, "@P0 BRA 0x140", "EXIT")
    found = counts(*code, turns=dict.fromkeys(range(4, 7 + len(step)), 4))
    assert found.again_bytes == again * found.requested_bytes > 0 or again == found.again_bytes == 0


def test_turns_of_an_inner_loop_that_starts_again_are_of_the_same_places() -> None:
    inner = ("MOV R3, R2", "IMAD.WIDE R6, R3, 0x4, R4", LOAD[1], "IADD3 R3, R3, 0x100, RZ")
    begin = (*INDEX, *inner, "ISETP.GE.AND P1, PT, R3, 0x1000, PT", "@!P1 BRA 0x150")
    end = ("IADD3 R14, R14, 0x1, RZ", "ISETP.GE.AND P0, PT, R14, 0x3, PT", "@!P0 BRA 0x140", "EXIT")
    turns = dict.fromkeys((4, 10, 11, 12), 3) | dict.fromkeys(range(5, 10), 24)
    found = counts(*begin, *end, turns=turns)
    assert found.again_bytes == pytest.approx(2 / 3 * found.requested_bytes)
    # Where the outer turn tells how many inner ones there are, how much comes again is not known.
    of_outer = (*begin[:-2], "ISETP.GE.AND P1, PT, R3, R14, PT", begin[-1])
    assert counts(*of_outer, *end, turns=turns).again_bytes == 0


@pytest.mark.parametrize(
    ("place", "is_regular"),
    [
        ("IMAD R2, R0, 0x28, R1", True),  # a stride
        ("LDS R2, [R0]", False),
        ("LDG.E R2, desc[UR4][R4.64]", False),
        ("IMAD R2, R0, -0x61c88647, RZ", False),  # a product of a hash function
        ("LOP3.LUT R2, R0, 0x1f, RZ, 0xc0, !PT", True),
    ],
)
def test_places_of_indices_have_a_layout(place: str, is_regular: bool) -> None:
    found = counts(*INDEX, place, "IMAD.WIDE R6, R2, 0x4, R4", "LDG.E R8, desc[UR4][R6.64]", sectors=320)
    loads = 2 if place.startswith("LDG") else 1
    assert found.excess_sectors == 280 * loads
    assert found.regular_excess_sectors == (280 if is_regular or loads == 2 else 0)
    assert (found.regular_excess_of_stores, found.excess_of_stores) == (0, 0)
    # A value that is stored says nothing of where.
    store = "STG.E desc[UR4][R6.64+0x4], R9"
    stored = counts(*INDEX, "LDG.E R9, desc[UR4][R4.64]", place, "IMAD.WIDE R6, R2, 0x4, R4", store, sectors=320)
    assert stored.excess_of_stores == 280
    assert stored.regular_excess_of_stores == (280 if is_regular else 0)


def test_a_walk_is_no_layout_although_its_first_place_is() -> None:
    walk = (*INDEX, *LOAD, "LOP3.LUT R2, R8, 0xffff, RZ, 0xc0, !PT", "@P0 BRA 0x140", "EXIT")
    assert counts(*walk, turns=dict.fromkeys(range(4, 8), 9), sectors=320).regular_excess_sectors == 0


def test_code_that_never_ran_and_code_without_loads_count_nothing() -> None:
    assert counts(*INDEX, *LOAD, turns=dict.fromkeys(range(6), 0)) == PlaceCounts(0, 0, 0, 0, 0, 0, 0)
    assert counts("EXIT") == PlaceCounts(0, 0, 0, 0, 0, 0, 0)
