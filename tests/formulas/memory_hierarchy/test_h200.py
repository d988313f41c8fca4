"""Hit ratios and DRAM traffic of simulated kernels against what an H200 counted for the same kernels."""

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from profsvc import specs
from profsvc.analysis.launches.memory_traces import device_caches
from profsvc.formulas.memory_hierarchy import LOAD, Trace, hierarchy_of, pack

CAPTURED = Path(__file__).parents[3] / "fixtures" / "cache_patterns" / "h200.csv"
POINTS = 0.03
# Loads of a kernel that takes seconds to simulate; ``python -m tests.benchmarks.memory_hierarchy`` has longer ones.
MOST_LOADS = 3_000_000
LOADS_AT_ONCE = 1 << 18


def rows(*kernels: str) -> list[dict[str, str]]:
    """Rows of the capture."""
    with CAPTURED.open(newline="", encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["kernel"] in kernels and _loads(row) <= MOST_LOADS]


def _loads(row: dict[str, str]) -> int:
    return int(row["second"] or 1) * int(row["blocks"]) * int(row["threads"])


def _threads(blocks: int, threads: int) -> tuple[np.ndarray, np.ndarray]:
    thread = np.arange(blocks * threads)
    return thread // threads, thread % threads


def _trace(blocks: int, threads: int, address: np.ndarray, epoch: np.ndarray | int = 0) -> Iterator[Trace]:
    """Loads of 4 bytes, some blocks at a time; ``address`` has a row per step and a column per thread of the grid."""
    block, lane = _threads(blocks, threads)
    step = np.arange(address.shape[0])[:, np.newaxis]
    together = threads * max(1, LOADS_AT_ONCE // (threads * step.size))
    for first in range(0, block.size, together):
        some = slice(first, first + together)
        own = address[:, some]
        at = (np.broadcast_to(x, own.shape).ravel() for x in (block[some], lane[some] // 32, step, own, epoch))
        block_of, warp, seq, place, passed = at
        yield Trace(block_of, warp, seq, 0, place, LOAD, 4, passed)


def parts_of(row: dict[str, str]) -> Iterator[Trace]:
    """References of a kernel of the capture, in parts: memory that is new costs more than what is done in it."""
    first, second, blocks, threads = (int(row[name]) for name in ("first", "second", "blocks", "threads"))
    thread = np.arange(blocks * threads)
    if row["kernel"] == "col_sum":  # s += a[row * pitch + i]
        return _trace(blocks, threads, 4 * (thread * first + np.arange(second)[:, np.newaxis]))
    if row["kernel"] == "row_sum":  # s += a[i * pitch + column]
        return _trace(blocks, threads, 4 * (thread + first * np.arange(second)[:, np.newaxis]))
    if row["kernel"] == "stream_twice":  # each block reads the same bytes, twice
        lane = _threads(blocks, threads)[1]
        steps = np.tile(np.arange(first * 256 // threads), 2)[:, np.newaxis]
        return _trace(blocks, threads, 4 * (lane + threads * steps), np.repeat([0, 1], steps.size // 2)[:, np.newaxis])
    steps = np.tile(np.arange(second // 32), 2)[:, np.newaxis]
    return _trace(1, 32, first * (thread + 32 * steps))


def simulated(row: dict[str, str], runs: int = 8) -> tuple[np.ndarray, np.ndarray, float]:
    """Mean hit ratios, ratios of all runs, and mean bytes from DRAM."""
    runs = runs if int(row["blocks"]) <= 16 else 1  # large grids hardly vary
    caches = device_caches(specs.device("H200"), int(row["threads"]) // 32)
    packed = pack(parts_of(row), caches.line_bytes, sector_bytes=caches.sector_bytes)
    found = hierarchy_of(packed, caches, runs=runs)
    return found.distribution.mean, found.ratios, 128 * float(found.dram_lines.mean())


def shares(row: dict[str, str]) -> tuple[float, float]:
    """Hit ratios of L1 and L2 that were counted."""
    l1, l2 = (int(row[f"{level}_hit_sectors"]) / int(row[f"{level}_sectors"]) for level in ("l1", "l2"))
    return l1, l2


@pytest.mark.parametrize("row", rows("col_sum", "row_sum"), ids=lambda row: f"{row['kernel']} {row['first']}")
def test_columns_and_rows_of_a_matrix_hit_as_an_h200_does(row: dict[str, str]) -> None:
    mean, _, dram_bytes = simulated(row, runs=2)  # the order of the blocks changes nothing here
    l1, l2 = shares(row)
    assert abs(mean[0] - l1) < POINTS
    assert abs(mean[2] - l2) < POINTS
    assert dram_bytes == pytest.approx(int(row["dram_read_bytes"]), rel=POINTS)


@pytest.mark.parametrize("row", rows("stream_twice"), ids=lambda row: f"{row['first']} KB {row['blocks']} blocks")
def test_a_stream_that_is_read_twice_hits_where_it_fits(row: dict[str, str]) -> None:
    mean, ratios, dram_bytes = simulated(row)
    l1, _ = shares(row)
    if int(row["first"]) in (64, 128, 512, 1024):
        assert abs(mean[0] - l1) < POINTS
    # Near the size of L1 what shared memory takes of it and the hash decide: the interval holds what was counted.
    assert ratios[0].min() - POINTS <= l1 <= ratios[0].max() + POINTS
    assert dram_bytes == pytest.approx(int(row["dram_read_bytes"]), rel=POINTS, abs=4096)
