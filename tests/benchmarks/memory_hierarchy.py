"""How long the hit ratios of a trace take, and in how much memory, from references to distributions.

Run it with ``python -m tests.benchmarks.memory_hierarchy``: ten million references of warps (``--references`` takes
another number), half of them to lines of their own and half to lines that all warps use, a few of those most; on 132
SMs of 8 blocks, L1 caches of 512 sets of 4 lines and an L2 of 25600 sets of 16. The trace comes in
parts. It prints the seconds on the wall and of the processor, the runs that the budget left, the lines simulated a
second, the memory, and the distributions.
"""

import resource
import time
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from profsvc.formulas.memory_hierarchy import LEVELS, LOAD, STORE, Cache, Hierarchy, Trace, hierarchy_of, pack
from profsvc.formulas.memory_hierarchy.simulation import MIN_RUNS
from tests.command_line import parser_of

LENGTH, WARPS, WARPS_AT_ONCE = 100, 8, 8_000
H200_LIKE = Hierarchy(132, 8, Cache(512, 4), Cache(25600, 16))


def trace(references: int, seed: int = 1) -> Trace:
    """Make a trace of so many references, to the next hundred."""
    return _warps(np.arange(-(-references // LENGTH)), seed)


def parts(references: int, seed: int = 1) -> Iterator[Trace]:
    """Yield a trace of so many references, some warps at a time."""
    warps = -(-references // LENGTH)
    for begin in range(0, warps, WARPS_AT_ONCE):
        yield _warps(np.arange(begin, min(begin + WARPS_AT_ONCE, warps)), seed + begin)


def _warps(warps: NDArray[np.int64], seed: int) -> Trace:
    rng = np.random.default_rng(seed)
    warp, seq = np.repeat(warps, LENGTH), np.tile(np.arange(LENGTH), warps.size)
    own, common = warp * LENGTH // 2 + seq // 2, rng.zipf(1.3, warp.size) % 2_000_000
    kind = np.where(seq % 10 == 9, STORE, LOAD)
    return Trace(warp // WARPS, warp % WARPS, seq, seq % 2 * 2, 128 * np.where(seq % 2, common, own), kind)


def main() -> None:
    """Print the table."""
    parser = parser_of(__doc__)
    parser.add_argument("--references", type=int, default=10_000_000)
    parser.add_argument("--order", default="rate")
    given = parser.parse_args()
    began_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    begin, spent = time.perf_counter(), time.process_time()
    packed = pack(parts(given.references))
    packing = time.perf_counter() - begin
    got = hierarchy_of(packed, H200_LIKE, order=given.order)
    seconds, spent = time.perf_counter() - begin, time.process_time() - spent
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    rate = got.lines * got.runs / (seconds - packing)
    print(f"{got.lines} lines, {got.runs} of {MIN_RUNS} runs: {'' if got.runs == MIN_RUNS else 'sampled, '}", end="")
    print(f"{seconds:.1f} s, {packing:.1f} s of them to make and pack the trace ({spent:.1f} s of processor)")
    print(f"{rate:.3g} lines/s, peak memory {peak_mib} MiB, {began_mib} MiB of it before the trace")
    found = got.distribution
    for name, mean, sd, reliable in zip((*LEVELS, "dram_lines"), found.mean, found.sd, found.reliable, strict=True):
        print(f"{name:12} mean {mean:.6g}  sd {sd:.3g}  reliable {bool(reliable)}")


if __name__ == "__main__":
    main()
