"""Lanes that are off in all warps alike: those behind the first ones, and all but one in a long section."""

from typing import Any

import pytest

from profsvc.analysis.source_code.addresses import loops_of
from profsvc.analysis.source_code.lanes import (
    STEP_LENGTH,
    LaneCounts,
    lane_counts,
    predicated_off_between_barriers,
)
from profsvc.analysis.source_code.registers import operands


def counts(*code: tuple[str, int, float | None]) -> LaneCounts:
    """Return the counts of instructions, each with how many warps executed it and how many lanes were on."""
    rows: list[dict[str, Any]] = [
        {
            "sass": sass, "instructions": warps, "long_scoreboard": 3, "address": hex(16 * place),
            "thread_instructions": None if lanes is None else round(warps * lanes),
        }
        for place, (sass, warps, lanes) in enumerate(code)
    ]  # fmt: skip
    return lane_counts(rows, [operands(row["sass"]) for row in rows], loops_of(rows))


def section(lanes: float, length: int, comparison: str = "ISETP.GT.U32.AND") -> list[tuple[str, int, float | None]]:
    before: list[tuple[str, int, float | None]] = [
        (f"{comparison} P0, PT, R3, 0x13, PT", 10, 32), ("@P0 BRA 0x900", 10, 32),
    ]  # fmt: skip
    return [*before, *[("FADD R1, R2, R3", 10, lanes)] * length, ("EXIT", 10, 32)]


def test_the_first_lanes_of_all_warps_work() -> None:
    assert counts(*section(20, 5)) == LaneCounts(12 * 50, 0)
    # Another number in each warp, or every second lane, is a path of data.
    assert counts(*section(20.5, 5)) == LaneCounts(0, 0)
    assert counts(*section(16, 5, "ISETP.NE.U32.AND")) == LaneCounts(0, 0)
    assert counts(*section(32, 5)) == LaneCounts(0, 0)


@pytest.mark.parametrize(("length", "alone"), [(31, 0), (32, 320)])
def test_a_section_of_one_thread_is_long_enough_to_be_shared(length: int, alone: int) -> None:
    assert counts(*section(1, length)) == LaneCounts(0, alone)


def test_turns_of_a_loop_make_a_section_long() -> None:
    loop = [("FADD R1, R2, R3", 10, 1.0), ("FMUL R1, R2, R3", 1000, 1.0), ("@P1 BRA 0x100", 1000, 1.0)]
    assert counts(*loop).alone_warps == 2010


@pytest.mark.parametrize(("leaves", "off"), [("EXIT", 24 * 1000), ("BRA 0x900", 0)])
def test_lanes_that_ended_are_on_no_other_path_whatever_warps_do_at_the_border(leaves: str, off: int) -> None:
    branch = [("ISETP.LT.U32.AND P0, PT, R6, 0x20, P0", 1000, 32.0), (f"@!P0 {leaves}", 1000, 24.0)]
    assert counts(*branch, ("FADD R1, R2, R3", 1000, 7.996)).first_lanes_off == off
    assert counts(*branch, ("FADD R1, R2, R3", 1000, 7.9)).first_lanes_off == 0, "each warp has its own number"


def test_one_thread_that_asks_whether_others_have_come_is_at_a_meeting() -> None:
    asks = ("LD.E.STRONG.GPU R9, desc[UR8][R6.64+0x4]", 1000, 1.0)
    rest = [("ATOM.E.ADD.STRONG.GPU PT, R9, desc[UR8][R6.64+0x4], R9", 10, 1.0), asks, ("@P0 BRA 0x10", 1000, 1.0)]
    assert counts(*rest) == LaneCounts(0, 0, 2010, 9)
    # A loop that stores does work, and one that loads what nobody writes meanwhile does not wait for it.
    assert counts(*rest[:2], ("STG.E desc[UR8][R2.64], R9", 1000, 1.0), rest[2]) == LaneCounts(0, 3010)
    own = ("LDG.E R9, desc[UR8][R6.64+0x4]", 1000, 1.0)
    assert counts(rest[0], own, rest[2]) == LaneCounts(0, 2010)
    assert counts(rest[0], *[(sass, warps, 32.0) for sass, warps, _ in rest[1:]]).meeting_warps == 0


def test_nothing_is_known_without_counts_or_a_branch() -> None:
    assert counts(("FADD R1, R2, R3", 0, 4), ("FADD R1, R2, R3", 10, None)) == LaneCounts(0, 0)
    assert counts(("FADD R1, R2, R3", 10, 4)) == LaneCounts(0, 0)


@pytest.mark.parametrize(("length", "off"), [(1, 24), (STEP_LENGTH - 1, 24 * (STEP_LENGTH - 1)), (STEP_LENGTH, 0)])
def test_false_predicates_between_two_barriers_are_of_a_step(length: int, off: int) -> None:
    code = ["@P0 FADD R1, R2, R3", "BAR.SYNC.DEFER_BLOCKING 0x0", *["@P0 FADD R1, R2, R3"] * length, "BAR.SYNC 0x0"]
    rows: list[dict[str, Any]] = [
        {"sass": one, "thread_instructions": 32, "thread_instructions_on": 8 if one.startswith("@") else 32}
        for one in [*code, "@P0 FADD R1, R2, R3"]
    ]
    assert predicated_off_between_barriers(rows, [operands(row["sass"]) for row in rows]) == off
