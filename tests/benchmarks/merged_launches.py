"""Host synchronization of a program of many launches, before and after its launches were made fewer.

Run it with ``python -m tests.benchmarks.merged_launches``. ``fixtures/merged_launches`` has traces of 100 steps of
twelve kernels on an NVIDIA H200: launched one by one (``launches``), as a CUDA graph, merged into one kernel, and with
a result read by the host every 50th step only (``batched``). The criterion c is the share of the time in which a kernel
runs. The speedup follows from c and the busy time before and after; the clock of the program tells what it was, in the
run that was traced and without a trace, where launches and reads cost less. No change may save more than 1 / c allows.
"""

import csv
import gzip
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np

from profsvc.formulas.criteria import host_sync
from tests.command_line import parser_of

RECORD = Path(__file__).parents[2] / "fixtures" / "merged_launches"
BEFORE, SAME_KERNELS, MERGED = "launches", ("graph_node", "batched"), "merged"


class Change(NamedTuple):
    """What a change promised, and the speedup by the clock of the program, in the traced run and without a trace."""

    mode: str
    values: int
    before: float
    after: float
    predicted: float
    traced: float
    untraced: float
    bound: float


def busy_share(mode: str, values: int) -> tuple[float, float]:
    """Return the criterion of a trace, and the time in which a kernel runs [ns]."""
    with gzip.open(RECORD / f"{mode}_{values}_gpu_trace.csv.gz", "rt", encoding="utf-8", newline="") as file:
        kernels = [row for row in csv.DictReader(file) if row["GrdX"]]
    start = np.array([int(row["Start (ns)"]) for row in kernels])
    found = host_sync(start, np.array([float(row["Duration (ns)"]) for row in kernels]))
    return float(found.value), float(found.busy)


def clock(name: str) -> dict[tuple[str, int], float]:
    """Return the median time of a step by mode and size [us]."""
    times: dict[tuple[str, int], list[float]] = {}
    with (RECORD / name).open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            times.setdefault((row["mode"], int(row["values"])), []).append(float(row["us"]) / int(row["steps"]))
    return {key: median(some) for key, some in times.items()}


def changes() -> list[Change]:
    """Return every change at every size."""
    traced, untraced = clock("traced.csv"), clock("times.csv")
    found = []
    for values in sorted({values for _, values in untraced}):
        before, busy = busy_share(BEFORE, values)
        for mode in (*SAME_KERNELS, MERGED):
            after, less = busy_share(mode, values)
            own = mode.removesuffix("_node")
            found.append(
                Change(
                    mode,
                    values,
                    before,
                    after,
                    after / before * busy / less,
                    traced[BEFORE, values] / traced[mode, values],
                    untraced[BEFORE, values] / untraced[own, values],
                    busy / less / before,
                )
            )
    return found


def main() -> None:
    """Print every change."""
    print("change      values   c before  after  predicted  traced  untraced  at most (1/c, same kernels)")
    for one in changes():
        print(
            f"{one.mode:10} {one.values:8} {one.before:8.3f} {one.after:8.3f} {one.predicted:9.2f}x {one.traced:6.2f}x"
            f" {one.untraced:8.2f}x {one.bound:8.2f}x"
        )


if __name__ == "__main__":
    parser_of(__doc__).parse_args()
    main()
