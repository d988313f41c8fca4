"""Blocks of counters of small files are joined, and each launch keeps its own values and sources."""

import numpy as np
import pandas as pd

from profsvc.analysis.counters.merged import MAX_WAITING_KINDS, CountersBlock, joined_blocks


def block(
    launch_id: int, names: tuple[str, ...] = ("duration_ns", "dram_read_bytes"), tool: str = "ncu"
) -> CountersBlock:
    table = pd.DataFrame({name: [float(launch_id)] for name in names}, index=pd.Index([launch_id], name="launch_id"))
    kept = (table.set_axis([launch_id + 1000]), {name: np.array([name], object) for name in names})
    return table, {names[0]: np.array([f"of {launch_id}"], object)}, tool, [kept]


def test_blocks_of_one_kind_are_joined_in_their_order() -> None:
    first, second = joined_blocks(map(block, range(1, 6)), 3)
    assert (list(first[0].index), list(second[0].index)) == ([1, 2, 3], [4, 5])
    assert first[0]["dram_read_bytes"].tolist() == [1, 2, 3]
    assert first[1]["duration_ns"].tolist() == ["of 1", "of 2", "of 3"]
    assert [part.index[0] for part, _ in first[3]] == [1001, 1002, 1003]


def test_other_counters_and_other_tools_stay_apart() -> None:
    given = [block(1), block(2, ("duration_ns",)), block(3, tool="nvprof"), block(4), block(5, ("duration_ns",))]
    assert [(list(table.index), tool) for table, _, tool, _ in joined_blocks(given, 3)] == [
        ([1, 4], "ncu"),
        ([2, 5], "ncu"),
        ([3], "nvprof"),
    ]


def test_a_source_that_one_block_lacks_is_missing_for_its_launches() -> None:
    table, _, tool, kept = block(2)
    joined = next(joined_blocks([block(1), (table, {}, tool, kept)], 5))
    assert joined[1]["duration_ns"].tolist() == ["of 1", None]


def test_few_kinds_wait_at_once() -> None:
    taken = 0

    def blocks() -> "list[CountersBlock]":
        return [block(number, (f"counter_{number}",)) for number in range(MAX_WAITING_KINDS + 2)]

    for number, (table, *_) in enumerate(joined_blocks(blocks(), 200)):
        assert list(table.index) == [number]
        taken += 1
    assert taken == MAX_WAITING_KINDS + 2
