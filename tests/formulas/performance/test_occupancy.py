"""Occupancy and staircase: every device of the catalogue, limits, what no count of registers can change."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formulas.numerics.flags import FORMS, Flag
from profsvc.formulas.performance.occupancy import (
    RESOURCES,
    Limits,
    occupancy,
    resource_demand,
    staircase,
    warps_resident,
)
from profsvc.specs import devices
from tests.formulas.contract import holds

GTX = Limits(24, 8, 512, 8192, 16384)
GH100 = Limits(64, 32, 1024, 65536, 233472, 32, 256, "warp", 4, 128, 1024)
threads, registers, shared = st.integers(1, 1024), st.integers(0, 255), st.integers(0, 65536)


@pytest.mark.parametrize("key", devices())
def test_every_device_of_the_catalogue_is_filled_by_256_threads_and_not_by_32(key: str) -> None:
    device = devices()[key]
    limits = Limits(**{field: getattr(device, field) for field in Limits._fields})
    got = occupancy([32, 256], 10, 0, limits)
    assert got.blocks[0] == min(device.max_blocks_per_sm, device.max_warps_per_sm)
    assert got.occupancy[1] == 1
    assert not got.flags.any()


@given(threads, registers, shared)
def test_what_is_resident_fits(T: int, r: int, s: int) -> None:
    for limits in (GTX, GH100):
        got = occupancy(T, r, s, limits)
        assert 0 <= got.occupancy <= 1
        assert got.active_warps == warps_resident(got.blocks, T, limits.warp_size) <= limits.max_warps_per_sm
        assert got.blocks * T * r <= limits.registers_per_sm
        assert got.blocks * s <= limits.shared_mem_per_sm_bytes
        assert got.allowed[got.limiter] == got.blocks == got.allowed.min()
        assert bool(got.flags & Flag.TAIL_EFFECT) == (T % 32 > 0)
        assert bool(got.flags & Flag.INPUT_SUSPECT) == (got.blocks == 0)


@pytest.mark.parametrize(
    ("T", "r", "blocks"),
    [(32, 64, 32), (32, 32, 64), (64, 64, 16), (96, 64, 10), (160, 168, 2), (352, 168, 1), (416, 168, 0)],
)
def test_warps_of_a_block_take_registers_one_by_one_in_any_part_of_the_sm(T: int, r: int, blocks: int) -> None:
    """A part of 16384 registers holds 8 warps of 64 registers, 3 of 168; four parts hold 32 and 12 of any blocks."""
    assert occupancy(T, r, 0, GH100).allowed[RESOURCES.index("registers")] == blocks


@given(st.integers(1, 32), st.integers(1, 255))
def test_by_registers_fit_all_warps_of_the_parts_and_no_more(warps: int, r: int) -> None:
    allowed = occupancy(32 * warps, r, 0, GH100).allowed[RESOURCES.index("registers")]
    of_sm = 4 * (16384 // (-(-r * 32 // 256) * 256))
    assert allowed * warps <= of_sm < (allowed + 1) * warps


@given(threads, registers, shared)
def test_more_of_anything_never_holds_more(T: int, r: int, s: int) -> None:
    for limits in (GTX, GH100):
        here = occupancy(T, r, s, limits).blocks
        assert occupancy(T + 1, r, s, limits).blocks <= here
        assert occupancy(T, r + 1, s, limits).blocks <= here
        assert occupancy(T, r, s + 1, limits).blocks <= here


@given(st.integers(1, 16), st.integers(1, 64), st.integers(1, 16384))
def test_forms_agree_on_full_warps_without_steps(warps: int, r: int, s: int) -> None:
    ours, theirs = (occupancy(32 * warps, r, s, GTX, form) for form in FORMS)
    np.testing.assert_array_equal(ours.allowed, theirs.allowed)


@pytest.mark.parametrize(
    ("T", "r", "s", "limiter"),
    [(32, 0, 0, "blocks"), (256, 10, 0, "warps"), (256, 20, 0, "registers"), (64, 10, 8000, "shared")],
)
def test_limiter_is_the_resource_that_is_used_up(T: int, r: int, s: int, limiter: str) -> None:
    assert RESOURCES[occupancy(T, r, s, GTX).limiter] == limiter


def test_edges() -> None:
    got = occupancy([0, 256, 256, 256, 513], [10, np.nan, 10, 64, 10], [0, 0, -1, 0, 0], GTX)
    np.testing.assert_array_equal(got.blocks, [np.nan, np.nan, np.nan, 0, 0])
    assert got.limiter.tolist() == [-1, -1, -1, RESOURCES.index("registers"), RESOURCES.index("blocks")]
    assert [bool(f & Flag.INPUT_SUSPECT) for f in got.flags] == [False, True, True, True, True]
    assert got.flags[0] & Flag.ZERO_DENOM
    assert occupancy([], [], [], GTX).allowed.shape == (0, 4)
    assert occupancy(np.ones((2, 1)), np.ones(3), 0, GTX).allowed.shape == (2, 3, 4)
    with pytest.raises(ValueError, match="no form 'core'; allowed: 'block', 'warp'"):
        occupancy(32, 1, 0, GTX._replace(register_allocation_scope="core"))
    with pytest.raises(TypeError, match="registers_per_thread has dtype"):
        occupancy(32, "10", 0, GTX)


@given(st.integers(0, 5000), st.integers(1, 500))
def test_staircase_rises_at_the_slots(groups: int, slots: int) -> None:
    got = staircase([groups, groups + slots], slots)
    assert got.waves[1] == got.waves[0] + 1
    assert (got.waves * slots >= [groups, groups + slots]).all()
    assert ((got.utilization > 0) & (got.utilization <= 1)).all()
    assert bool(got.flags[1] & Flag.TAIL_EFFECT) == (groups % slots > 0)


@pytest.mark.parametrize(
    ("groups", "slots", "waves", "flag"),
    [(5, 0, np.nan, Flag.ZERO_DENOM), (-1, 4, np.nan, Flag.INPUT_SUSPECT), (0, 4, 0, Flag.NOT_APPLICABLE)],
)
def test_staircase_edges(groups: Any, slots: Any, waves: float, flag: Flag) -> None:
    got = staircase(groups, slots)
    np.testing.assert_array_equal(got.waves, waves)
    assert got.flags == flag


@given(st.integers(1, 16), st.integers(1, 200))
def test_resident_blocks_fit_and_one_more_does_not(warps: int, registers: int) -> None:
    threads = 32 * warps
    endless = GTX._replace(max_blocks_per_sm=1e9, max_warps_per_sm=1e9)
    blocks = occupancy(threads, registers, 0, endless, "as_published").blocks
    fits = resource_demand([blocks, blocks + 1], threads, registers, 8192).fits
    assert fits.tolist() == [True, False]


def test_demand_keeps_its_promises() -> None:
    holds(resource_demand, {"blocks": 3.0, "threads_per_block": 256.0, "per_thread": 10.0, "capacity": 8192.0})
