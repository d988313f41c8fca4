"""Counters by machine code: merged into those of the launch, and none without a page."""

import numpy as np
import pandas as pd

from profsvc.analysis.counters.by_code import (
    AGAIN,
    ALONE,
    BFLOAT16,
    BITS,
    CHAINED,
    DISTINCT,
    FIRST_LANES,
    FUNCTIONS,
    LOCAL_INDEXED,
    LOCAL_VALUED,
    MEETING,
    MEETING_WAITS,
    REGULAR,
    REGULAR_STORES,
    SHARED,
    SHARED_LANES,
    SHARED_WORDS,
    TILE,
    counters_by_code,
    with_machine_code,
)


def row(sass: str, waits: int | None) -> dict[str, object]:
    return {
        "address": "0x100", "sass": sass, "instructions": 1, "thread_instructions": 32,
        "thread_instructions_on": 32, "access_size": None, "l2_sectors": None, "ideal_l2_sectors": None,
        "ideal_shared_wavefronts": None, "long_scoreboard": waits,
    }  # fmt: skip


def test_the_wait_for_a_tile_is_that_of_stores_to_shared_memory() -> None:
    code = {7: [row("@!P0  STS [R5], R4", 30), row("FADD R1, R2, R3", 10)], 9: [row("STS.64 [R5], R4", None)]}
    table, said = counters_by_code(code)
    assert list(table.index) == [7, 9]
    assert table.loc[7, [CHAINED, SHARED, TILE, ALONE, FIRST_LANES]].tolist() == [0, 0, 0.75, 0, 0]
    # Without loads there is no share of them that comes again.
    assert table.loc[7, [AGAIN, DISTINCT, REGULAR, REGULAR_STORES]].isna().all()
    assert np.isnan(table.loc[9, TILE])
    assert said[TILE][0].startswith("source page: ")


def test_launches_without_a_page_keep_their_counters() -> None:
    own = pd.DataFrame({"duration_ns": [1.0, 2.0]}, index=pd.Index([7, 8], name="launch_id"))
    assert with_machine_code((own, {}), {})[0] is own
    table, _ = with_machine_code((own, {}), {8: [row("STS [R5], R4", 1)]})
    assert np.isnan(table.loc[7, TILE])
    assert table.loc[8, ["duration_ns", CHAINED, SHARED, TILE]].tolist() == [2.0, 0.0, 0.0, 1.0]


def test_a_page_without_threads_does_not_tell_which_lanes_are_off() -> None:
    table, _ = counters_by_code({7: [row("STS [R5], R4", 1) | {"thread_instructions": None}]})
    assert table.loc[7, [ALONE, FIRST_LANES, MEETING, MEETING_WAITS]].isna().all()


def test_bytes_of_loads_that_come_again() -> None:
    load = row("LDG.E R4, desc[UR4][R2.64]", 1) | {"l2_sectors": 8, "ideal_l2_sectors": 4, "access_size": "32"}
    table, _ = counters_by_code({7: [load, load | {"address": "0x110"}]})
    assert table.loc[7, [AGAIN, DISTINCT, REGULAR]].tolist() == [0.5, 256.0, 1.0]
    store = row("STG.E desc[UR4][R4.64], R2", 1) | {"l2_sectors": 32, "ideal_l2_sectors": 4, "access_size": "32"}
    table, _ = counters_by_code({7: [load, store | {"address": "0x110"}], 8: [store]})
    assert table[REGULAR_STORES].tolist() == [0.0, 1.0]


def test_values_of_bfloat16_are_counted_by_threads() -> None:
    table, _ = counters_by_code({7: [row("IMAD.U32 R4, R2, 0x10000, RZ", 0), row("FFMA R6, R4, R5, R6", 0)]})
    assert table.loc[7, BFLOAT16] == 32


def test_functions_and_bits_are_counted_by_threads() -> None:
    table, _ = counters_by_code({7: [row("FFMA R1, R2, R3, 0.1331529766321182251", 0)], 8: [row("FADD R1, R2, R3", 0)]})
    assert table[FUNCTIONS].tolist() == [13 * 32, 0]
    assert table[BITS].tolist() == [0, 0]


def test_words_that_are_put_together_bit_by_bit_are_counted_without_a_loop() -> None:
    code = [row("LDG.E R4, desc[UR4][R2.64]", 0), row("LOP3.LUT R7, R4, 0x1, RZ, 0xc0, !PT", 0)]
    for bit in range(1, 32):
        mask = f"LOP3.LUT R7, R7, {1 << bit:#x}, R5, 0xf8, !PT"
        code += [row(f"SHF.R.U32.HI R5, RZ, {bit:#x}, R4", 0), row(mask, 0)]
    assert counters_by_code({7: code})[0].loc[7, BITS] == 32 * (2 * 31 + 1 - 0.75 * 32)


def test_words_of_shared_memory_are_counted_by_the_width_of_their_loads() -> None:
    load = row("LDS.128 R4, [R2]", 0) | {"access_size": "128"}
    table, _ = counters_by_code({7: [load, row("LDS R8, [R2]", 0), row("STS [R2], R8", 0)]})
    assert table.loc[7, SHARED_WORDS] == 5 * 32


def test_lanes_that_are_predicated_off_access_no_shared_memory() -> None:
    full = row("LDS R4, [R5]", 0) | {"ideal_shared_wavefronts": 1}
    half = row("@P0 LDS.128 R4, [R5]", 0) | {
        "ideal_shared_wavefronts": 4, "access_size": "128", "thread_instructions_on": 16,
    }  # fmt: skip
    assert counters_by_code({7: [full, half]})[0].loc[7, SHARED_LANES] == (1 + 2) / (1 + 4)
    # All lanes read one word; and an access that no lane of a warp does has no wavefront.
    same = row("@P0 LDS R4, [R5]", 0) | {"instructions": 2, "thread_instructions": 64, "ideal_shared_wavefronts": 1}
    assert counters_by_code({7: [same]})[0].loc[7, SHARED_LANES] == 1
    assert counters_by_code({7: [row("FADD R1, R2, R3", 0)]})[0].loc[7, [SHARED_LANES, LOCAL_VALUED]].isna().all()


def test_an_array_at_loaded_places() -> None:
    code = [row("LDG.E R4, desc[UR4][R2.64]", 0), row("LDL R7, [R4]", 0), row("STL [R1], R7", 0)]
    assert counters_by_code({7: code})[0].loc[7, [LOCAL_VALUED, LOCAL_INDEXED]].tolist() == [0.5, 0]
