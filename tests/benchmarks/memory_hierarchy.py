"""How long the hit ratios of a trace take, from references to distributions.

Run it with ``python -m tests.benchmarks.memory_hierarchy``: ten million references of warps (``--references`` takes
another number), half of them to lines of their own and half to lines that all warps use, a few of those most; on 132
SMs of 8 blocks, L1 caches of 512 sets of 4 lines and an L2 of 25600 sets of 16. It prints the seconds on the wall and
of the processor, the runs that the budget left, the lines simulated a second, and the distributions.
"""

import argparse
import resource
import time

import numpy as np

from profsvc.formulas.memory_hierarchy import LEVELS, LOAD, STORE, Cache, Hierarchy, Trace, hierarchy_mc

LENGTH, WARPS = 100, 8
H200_LIKE = Hierarchy(132, 8, Cache(512, 4), Cache(25600, 16))


def trace(references: int, seed: int = 1) -> Trace:
    """Make a trace of so many references, to the next hundred."""
    rng = np.random.default_rng(seed)
    warps = -(-references // LENGTH)
    warp, seq = np.repeat(np.arange(warps), LENGTH), np.tile(np.arange(LENGTH), warps)
    own, common = warp * LENGTH // 2 + seq // 2, rng.zipf(1.3, warps * LENGTH) % 2_000_000
    kind = np.where(seq % 10 == 9, STORE, LOAD)
    return Trace(warp // WARPS, warp % WARPS, seq, seq % 2 * 2, 128 * np.where(seq % 2, common, own), kind)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--references", type=int, default=10_000_000)
    parser.add_argument("--order", default="rate")
    given = parser.parse_args()
    made = trace(given.references)
    begin, spent = time.perf_counter(), time.process_time()
    got = hierarchy_mc(made, H200_LIKE, order=given.order)
    seconds, spent = time.perf_counter() - begin, time.process_time() - spent
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    rate = got.lines * got.runs / seconds
    print(f"{got.lines} lines, {got.runs} runs, {seconds:.1f} s ({spent:.1f} s of processor)")
    print(f"{rate:.3g} lines/s, peak memory {peak:.1f} GiB")
    found = got.distribution
    for name, mean, sd, reliable in zip((*LEVELS, "dram_lines"), found.mean, found.sd, found.reliable, strict=True):
        print(f"{name:12} mean {mean:.6g}  sd {sd:.3g}  reliable {bool(reliable)}")


if __name__ == "__main__":
    main()
