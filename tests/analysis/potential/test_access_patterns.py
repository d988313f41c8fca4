"""What accesses of memory bring that no value needs, on made-up counters."""

import pandas as pd
import pytest

from profsvc.analysis.counters.arrays import Counts
from profsvc.analysis.potential.access_patterns import (
    gathered_from_dram,
    has_listed_places,
    looked_up,
    lookup_wavefronts,
    unrelated_places,
    unrelated_stores,
    unused_of_l2_loads,
)

GATHER = {
    "l2_tex_read_sectors": 1.1e6, "l2_tex_requests": 1.0e6, "global_load_bytes_requested": 4e6,
    "dram_read_bytes": 0.4e6, "global_store_sectors": 0.0, "global_store_bytes_requested": 0.0,
}  # fmt: skip


def counts(**values: float) -> Counts:
    return Counts(pd.DataFrame([values]))


def test_a_gather_takes_sectors_one_at_a_time_and_a_stride_does_not() -> None:
    assert unrelated_places(counts(**GATHER)) > 0.8
    assert unrelated_places(counts(**GATHER | {"l2_tex_requests": 0.4e6})) == 0
    # Columns: sectors come one at a time, but DRAM brings each byte once.
    assert unrelated_places(counts(**GATHER | {"dram_read_bytes": 4e6, "l2_tex_requests": 1.1e6})) == 0


def test_sectors_that_never_come_back_are_of_a_stride_unless_machine_code_tells_the_places() -> None:
    assert unrelated_places(counts(**GATHER, l2_read_hit_fraction=0.2)) > 0.8
    once = counts(**GATHER, l2_read_hit_fraction=0.0001)
    assert unrelated_places(once) == 0
    assert (
        unrelated_places(counts(**GATHER, l2_read_hit_fraction=0.0001, global_load_regular_excess_fraction=0.0)) > 0.8
    )


def test_places_that_the_load_before_tells_are_unrelated_although_dram_brings_each_byte_once() -> None:
    once = GATHER | {"dram_read_bytes": 4e6, "l2_tex_requests": 1.1e6, "global_load_inst_warp": 1e5}
    assert unrelated_places(counts(**once, global_load_chained_inst_warp=0.0)) == 0
    assert unrelated_places(counts(**once, global_load_chained_inst_warp=1e5)) > 0.8


def test_what_l2_sent_and_nobody_asked_for() -> None:
    assert unused_of_l2_loads(counts(**GATHER)) == pytest.approx(1 - 4 / 35.2)
    local = {"local_load_sectors": 0.5e6, "local_load_l1_hit_fraction": 0.0}
    assert unused_of_l2_loads(counts(**GATHER, **local)) == pytest.approx(1 - 4 / 19.2)


@pytest.mark.parametrize(("sectors", "integers", "listed"), [(18.0, 1.5, True), (32.0, 1.5, False), (18.0, 5.0, False)])
def test_places_of_a_list_take_an_index_and_little_arithmetic(sectors: float, integers: float, listed: bool) -> None:
    loads = counts(
        global_load_inst_warp=10.0, global_load_sectors_per_request=sectors, inst_integer_thread=320 * integers
    )
    assert has_listed_places(loads) == listed
    assert not has_listed_places(counts())


def test_a_table_of_constants_needs_a_wavefront_for_nine_places() -> None:
    assert lookup_wavefronts(counts(constant_idc_requests=100.0, constant_ldc_inst_warp=10.0)) == pytest.approx(10)
    assert lookup_wavefronts(counts(constant_idc_requests=100.0)) == 0, "all may be of one place"
    assert lookup_wavefronts(counts(shared_lookup_wavefronts=7.0)) == 7


@pytest.mark.parametrize(("written", "share"), [(32e6, 7 / 8), (8e6, 0.5), (4e6, 0.0), (1e6, 0.75)])
def test_stores_that_meet_in_l2_are_not_at_unrelated_places(written: float, share: float) -> None:
    stores = {"global_store_bytes_requested": 4e6, "dram_write_bytes": written}
    assert unrelated_stores(counts(**stores, global_store_regular_excess_fraction=0.0)) == share
    assert unrelated_stores(counts(**stores, global_store_regular_excess_fraction=1.0)) == 0
    assert unrelated_stores(counts(**stores)) == 0, "the machine code is not known"


def test_machine_code_tells_a_gather_from_a_stride_where_l2_finds_nothing_again() -> None:
    gather = GATHER | {"global_load_sectors": 1e6, "l2_read_hit_fraction": 0.001}
    assert gathered_from_dram(counts(**gather)) == 0, "it may be a stride"
    assert gathered_from_dram(counts(**gather | {"l2_read_hit_fraction": 0.1})) > 0.8
    assert gathered_from_dram(counts(**gather, global_load_regular_excess_fraction=0.0)) > 0.8
    assert gathered_from_dram(counts(**gather, global_load_regular_excess_fraction=1.0)) == 0


def test_a_table_is_looked_up_where_values_determine_the_places_and_their_neighbours_are_wanted() -> None:
    # Four sectors of a line for each request, and DRAM brings a tenth of what is asked for.
    table = GATHER | {"l2_tex_requests": 0.275e6, "l2_tex_read_sectors": 1.1e6, "dram_read_bytes": 0.4e6}
    assert looked_up(counts(**table, global_load_regular_excess_fraction=0.0)) == pytest.approx(1.0)
    assert looked_up(counts(**table, global_load_regular_excess_fraction=0.75)) == pytest.approx(0.25)
    assert looked_up(counts(**table)) == 0
    assert looked_up(counts(**GATHER, global_load_regular_excess_fraction=0.0)) < 0.2
