"""What asynchronous copies would save of tiles that go through registers."""

import pandas as pd
import pytest

from profsvc import specs
from profsvc.analysis.causes.attribution import lost_time
from profsvc.analysis.potential.peaks import peaks
from tests.analysis.causes.sample_launches import FLAWS, QUIET

TILES = QUIET | FLAWS["few_loads_in_flight"] | {
    "stall_tile_fraction": 1.0, "shared_store_inst_warp": 5e5, "global_ldgsts_inst_warp": 0.0,
    "lsu_latency_global_cycles": 700.0,
}  # fmt: skip


def shares(*launches: dict[str, float]) -> pd.DataFrame:
    counters = pd.DataFrame(list(launches))
    return lost_time(counters, peaks(counters, specs.figures("NVIDIA H200", "9.0"))[0])


def test_copies_hide_what_a_block_does_between_two_tiles() -> None:
    waits = {"stall_wait_warp_cycles": TILES["stall_long_scoreboard_warp_cycles"]}
    own, hidden = shares(TILES, TILES | waits)["no_asynchronous_copies"]
    table = shares(TILES | waits, TILES | waits | {"dram_throughput_fraction": 0.9})
    assert hidden > own, "half of the time the block computes, and could load meanwhile"
    assert table["dependent_instructions"][0] < table["dependent_instructions"][1]
    assert table["no_asynchronous_copies"][1] < table["no_asynchronous_copies"][0], "memory is busy all the time"
    assert table.sum(axis=1).tolist() == pytest.approx([1, 1], abs=0.02)


def test_a_place_that_comes_from_the_load_before_is_not_known_ahead() -> None:
    loads = TILES["global_load_inst_warp"]
    table = shares(TILES, TILES | {"global_load_chained_inst_warp": loads})
    assert table["no_asynchronous_copies"][0] > 0.1
    assert table["no_asynchronous_copies"][1] == 0


def test_copies_that_are_there_and_tiles_that_are_loaded_once_save_nothing() -> None:
    once = {"barrier_inst_warp": 16896.0, "warps_launched": 8448.0}
    table = shares(TILES | {"global_ldgsts_inst_warp": 1e5}, TILES | once)
    assert table["no_asynchronous_copies"].tolist() == pytest.approx([0, 0])
