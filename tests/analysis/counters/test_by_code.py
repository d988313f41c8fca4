"""Counters by machine code: merged into those of the launch, and none without a page."""

import numpy as np
import pandas as pd

from profsvc.analysis.counters.by_code import CHAINED, SHARED, TILE, counters_by_code, with_machine_code


def row(sass: str, waits: int | None) -> dict[str, object]:
    return {
        "address": "0x100", "sass": sass, "instructions": 1, "thread_instructions_on": 32, "access_size": None,
        "ideal_l2_sectors": None, "long_scoreboard": waits,
    }  # fmt: skip


def test_the_wait_for_a_tile_is_that_of_stores_to_shared_memory() -> None:
    code = {7: [row("@!P0  STS [R5], R4", 30), row("FADD R1, R2, R3", 10)], 9: [row("STS.64 [R5], R4", None)]}
    table, said = counters_by_code(code)
    assert list(table.index) == [7, 9]
    assert table.loc[7].to_dict() == {CHAINED: 0.0, SHARED: 0.0, TILE: 0.75}
    assert np.isnan(table.loc[9, TILE])
    assert said[TILE][0].startswith("source page: ")


def test_launches_without_a_page_keep_their_counters() -> None:
    own = pd.DataFrame({"duration_ns": [1.0, 2.0]}, index=pd.Index([7, 8], name="launch_id"))
    assert with_machine_code((own, {}), {})[0] is own
    table, _ = with_machine_code((own, {}), {8: [row("STS [R5], R4", 1)]})
    assert np.isnan(table.loc[7, TILE])
    assert table.loc[8].to_dict() == {"duration_ns": 2.0, CHAINED: 0.0, SHARED: 0.0, TILE: 1.0}
