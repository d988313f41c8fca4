"""Occupancy and tiles: the worked example of the source, and what Nsight Compute prints for real launches."""

import pytest

from profsvc import store
from profsvc.errors import NotFoundError, UsageError
from profsvc.views.calculators.answers import calculate
from profsvc.views.calculators.catalog import CALCULATORS

OCCUPANCY, TILES = CALCULATORS["occupancy-limits"], CALCULATORS["tiles"]


def test_the_eleventh_register_costs_a_block() -> None:
    rows = calculate(OCCUPANCY, {"device": "8800GTX", "registers": "9,10,11", "shared": "2048"})["rows"]
    assert [(row["blocks"], row["active_threads"]) for row in rows] == [(3, 768), (3, 768), (2, 512)]
    assert [row["limiter"] for row in rows] == ["warps", "warps", "registers"]
    assert (rows[2]["registers_for_next"], rows[2]["registers_fit"]) == (8448, False)  # the source prints 8488


def test_a_grid_is_counted_in_warps_and_waves() -> None:
    (row,) = calculate(OCCUPANCY, {"device": "8800GTX", "registers": "10", "grid": "3"})["rows"]
    assert (row["grid_warps"], row["waves"]) == (24, 1)
    assert row["last_wave_filled"] == 3 / 48


def test_sizes_of_a_tile() -> None:
    given = {"device": "8800GTX", "tile": "4,8,12,16,32", "registers": "10"}
    rows = {row["tile"]: row for row in calculate(TILES, given)["rows"]}
    assert (rows[4]["warp_lanes_used"], rows[4]["active_threads"]) == (0.5, 128)
    assert (rows[8]["blocks_wanted"], rows[8]["blocks"], rows[8]["active_threads"]) == (12, 8, 512)
    assert rows[12]["threads"] / 32 == 4.5
    assert (rows[16]["active_threads"], rows[16]["demand_of_available"]) == (768, pytest.approx(0.125))
    assert rows[16]["limited_gflop_per_s"] == pytest.approx(43.2)
    assert (rows[32]["blocks"], rows[32]["limiter"]) == (0, "a block does not fit")
    notes = calculate(TILES, given)["notes"]
    assert any("172.8 GB/s of 86.4" in note for note in notes)


def test_an_h200_has_the_blocks_that_nsight_compute_prints(flawed) -> None:
    counters = store.table(flawed, "v1_counters", run_id=1)
    shapes = store.table(flawed, "v1_launches", run_id=1).set_index("launch_id")
    wrong = 0
    for _, row in counters.iterrows():
        shape = shapes.loc[row["launch_id"]]
        shared = row["shared_mem_static_bytes"] + row["shared_mem_dynamic_bytes"]
        given = {"threads": shape["block_x"] * shape["block_y"] * shape["block_z"], "shared": shared,
                 "registers": row["registers_per_thread"]}  # fmt: skip
        (found,) = calculate(OCCUPANCY, {name: str(int(value)) for name, value in given.items()})["rows"]
        wrong += found["blocks"] != row["blocks_per_sm_theoretical"]
    assert (len(counters), wrong) == (92, 0)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(NotFoundError, match="no device named"):
        calculate(OCCUPANCY, {"device": "9999XYZ"})
    with pytest.raises(UsageError, match="250000 combinations"):
        calculate(OCCUPANCY, {"threads": "1:500", "shared": "1:500"})
