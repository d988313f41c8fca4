"""Which kernels, copies and API calls of a trace belong to which category of the wall time, by their names."""

import re
from functools import cache

from profsvc.specs.table_files import rows_of
from profsvc.specs.traces.wall_time import KERNELS, wall_time_categories

FILE = "traces/activities.csv"


def read_activities(text: str | None = None) -> dict[str, list[tuple[re.Pattern[str], str]]]:
    """Read ``activities.csv``: patterns of names of kernels, copies and calls, the first that matches counts."""
    found: dict[str, list[tuple[re.Pattern[str], str]]] = {"kernel": [], "transfer": [], "call": []}
    for row in rows_of(FILE, ("kind", "pattern", "category"), text):
        row.one_of("category", list(wall_time_categories()))
        try:
            pattern = re.compile(row["pattern"], re.DOTALL)
        except re.error as error:
            raise row.wrong(f"the pattern {row['pattern']!r} is no regular expression: {error}") from None
        found[row.one_of("kind", list(found))].append((pattern, row["category"]))
    return found


_activities = cache(read_activities)


def activity_category(kind: str, name: str) -> str:
    """Return the category of a kernel, transfer or call by its name; kernels are searched, the others match as a whole.

    >>> activity_category("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL"), activity_category("kernel", "gemm")
    ('collectives', 'kernels')
    >>> activity_category("transfer", "PtoP"), activity_category("call", "cudaLaunchKernel_v7000")
    ('device_copies', 'launch_calls')
    """
    for pattern, category in _activities()[kind]:
        if pattern.search(name) if kind == "kernel" else pattern.fullmatch(name):
            return category
    return KERNELS
