"""What arrays in local memory cost beside their accesses, on made-up counters."""

import numpy as np
import pandas as pd
import pytest

from profsvc.analysis.counters.arrays import Counts
from profsvc.analysis.potential.avoidable_work import avoidable_instructions
from profsvc.analysis.potential.local_arrays import address_share, unrolled_instructions, valued_share
from profsvc.analysis.potential.useful_time import memory_wavefronts

LOOP = {
    "inst_local_indexed_thread": 320.0, "inst_local_loop_overhead_thread": 960.0,
    "inst_local_loop_others_thread": 800.0,
}  # fmt: skip


def counts(**values: float) -> Counts:
    return Counts(pd.DataFrame([values]))


def test_unrolled_loops_spare_the_accesses_and_what_goes_beyond_the_overhead_of_a_tuned_kernel() -> None:
    assert unrolled_instructions(counts(**LOOP), 0.2) == 320 + 960 - 160
    assert unrolled_instructions(counts(**LOOP), 2.0) == 320
    # Integers may be all that the loop computes.
    assert unrolled_instructions(counts(**LOOP | {"inst_local_loop_others_thread": 0.0}), 0.2) == 0
    assert unrolled_instructions(counts(), 0.2) == 0


def test_an_address_of_an_array_takes_three_instructions() -> None:
    known = {"inst_integer_thread": 3000.0, "inst_bit_thread": 840.0}
    assert address_share(counts(**LOOP, **known)) == pytest.approx(0.25)
    assert address_share(counts(**known)) == address_share(counts(**LOOP)) == 0


ARRAY = {
    "inst_executed_warp": 100.0, "local_load_inst_warp": 20.0, "local_store_inst_warp": 10.0,
    "register_spill_inst_warp": 0.0, "inst_fp32_thread": 1600.0, "inst_ldst_thread": 1600.0,
}  # fmt: skip


@pytest.mark.parametrize(("valued", "avoidable"), [(np.nan, 0.3), (0.0, 0.3), (0.5, 0.15), (1.0, 0.0)])
def test_an_array_at_places_that_values_determine_needs_its_accesses(valued: float, avoidable: float) -> None:
    found = counts(**ARRAY, local_valued_place_fraction=valued)
    assert avoidable_instructions(found)["local_memory"] == pytest.approx(avoidable)
    assert valued_share(found) == np.nan_to_num(valued)


def test_unrolling_spares_more_of_a_loop_than_its_accesses() -> None:
    assert avoidable_instructions(counts(**ARRAY, **LOOP))["local_memory"] == pytest.approx(1120 / 3200)
    spilled = avoidable_instructions(counts(**ARRAY | {"register_spill_inst_warp": 1.0}, **LOOP))
    assert (spilled["local_memory"], spilled["register_spills"]) == (0, pytest.approx(0.3))


def test_each_access_at_such_a_place_is_at_best_a_wavefront_of_shared_memory() -> None:
    known = {"global_load_inst_warp": 5.0, "global_store_inst_warp": 5.0, **ARRAY}
    loads, stores, _ = memory_wavefronts(counts(**known, local_valued_place_fraction=0.5), np.zeros(1))
    assert (loads, stores) == (5 + 10, 5 + 5)
    loads, stores, _ = memory_wavefronts(counts(**known), np.zeros(1))
    assert (loads, stores) == (5, 5)
