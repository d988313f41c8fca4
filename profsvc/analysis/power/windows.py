"""The windows of a run in which power is summed up: the whole log, the loads and idle times in it, kernels.

What the user marked comes first, then kernels that a trace has on the same clock; without either the levels of the
power itself tell. All times in ns on the clock of the power log.
"""

import re
from collections import Counter
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pandas as pd

from profsvc.analysis.power.logs import Ints
from profsvc.kernel_names import short_kernel_name

COLUMNS = ("window", "load", "kind", "source", "kernel", "active_sms", "launches", "begin_ns", "end_ns")
RUN, IDLE, LOAD, KERNEL = "run", "idle", "load", "kernel"
# Words of a name: random_forest and restore are loads.
IDLE_NAME = re.compile(
    r"(?<![a-z])(?:idl(?:e|ing)|rest(?:ing)?|paus(?:e|ed|ing)|sleep(?:ing)?|cool(?:ing|[-_ ]?down)?)(?![a-z])",
    re.IGNORECASE,
)
LEVELS = "change_points"


def window_table(rows: list[dict[str, object]]) -> pd.DataFrame:
    """Make a table of windows; what a row does not say is null, and equal labels are counted.

    >>> rows = [{"window": "idle", "begin_ns": 0, "end_ns": 5}, {"window": "idle", "begin_ns": 7, "end_ns": 9}]
    >>> window_table(rows)["window"].tolist()
    ['idle', 'idle (2)']
    """
    seen: Counter[object] = Counter()
    for row in rows:
        seen[row["window"]] += 1
        if (number := seen[row["window"]]) > 1:
            row["window"] = f"{row['window']} ({number})"
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    return table.astype({"active_sms": "Int64", "launches": "Int64", "begin_ns": "int64", "end_ns": "int64"})


def whole_log(begin_ns: int, end_ns: int) -> pd.DataFrame:
    """Return the one window of all that a log covers."""
    return window_table([{"window": RUN, "kind": RUN, "source": "log", "begin_ns": begin_ns, "end_ns": end_ns}])


def mark_windows(marks: pd.DataFrame) -> pd.DataFrame:
    """Return a window for each mark: ``name``, ``domain``, ``start_ns``, ``duration_ns``, ``active_sms``, ``launches``.

    What is named after rest (idle, pause, sleep, ...) is idle, all else is load; marks of one domain are one load.
    """
    rows: list[dict[str, object]] = []
    for row in marks.to_dict("records"):
        load = row["name"] if pd.isna(row["domain"]) else row["domain"]
        begin = int(row["start_ns"])
        window = {"window": row["name"], "load": load, "kind": IDLE if IDLE_NAME.search(str(load)) else LOAD}
        window |= {"active_sms": row["active_sms"], "launches": row["launches"], "source": "marks"}
        rows.append(window | {"begin_ns": begin, "end_ns": begin + round(row["duration_ns"])})
    return window_table(rows)


def kernel_windows(launches: pd.DataFrame, least_s: float, gap_s: float) -> pd.DataFrame:
    """Return a window for each stretch in which one kernel ran again and again, at most ``gap_s`` between two launches.

    ``launches``: kernel, start_ns, duration_ns. Stretches shorter than ``least_s`` are left out, no sensor follows
    them; where all are, the stretches in which any kernel ran are the windows.
    """
    known = launches.dropna(subset=["start_ns", "duration_ns"]).sort_values("start_ns", kind="stable")
    if known.empty:
        return window_table([])
    codes, names = pd.factorize(known["kernel"])
    start = known["start_ns"].to_numpy(np.int64)
    end = start + known["duration_ns"].to_numpy(np.float64).astype(np.int64)
    rows: list[dict[str, object]] = []
    for head, tail, begin, stop in _stretches(codes, start, end, least_s, gap_s):
        kernel = str(names[codes[head]])
        label = {"window": short_kernel_name(kernel), "load": kernel, "kind": KERNEL, "kernel": kernel}
        rows.append(label | {"launches": tail - head, "begin_ns": begin, "end_ns": stop})
    for head, tail, begin, stop in () if rows else _stretches(np.zeros_like(codes), start, end, least_s, gap_s):
        rows.append(
            {"window": "busy", "load": "busy", "kind": LOAD, "launches": tail - head, "begin_ns": begin, "end_ns": stop}
        )
    return window_table([row | {"source": "launches"} for row in rows])


def _stretches(codes: Ints, start: Ints, end: Ints, least_s: float, gap_s: float) -> Iterable[tuple[int, ...]]:
    """First and last but one launch, begin and end of each stretch that is long enough."""
    latest = np.maximum.accumulate(end)
    fresh = np.ones(len(start), dtype=bool)
    fresh[1:] = (codes[1:] != codes[:-1]) | (start[1:] - latest[:-1] > gap_s * 1e9)
    heads = np.flatnonzero(fresh)
    ends = np.maximum.reduceat(end, heads)
    long = ends - start[heads] >= least_s * 1e9
    columns = heads, np.append(heads[1:], len(start)), start[heads], ends
    return zip(*(column[long].tolist() for column in columns), strict=True)


def level_windows(begin_ns: Ints, end_ns: Ints, rests: npt.NDArray[np.bool_]) -> pd.DataFrame:
    """Return a window for each level of the power: idle where the board rested, else a load."""
    return window_table(
        [
            {
                "window": IDLE if rest else f"level {number}",
                "load": IDLE if rest else f"level {number}",
                "kind": IDLE if rest else LOAD,
                "source": LEVELS,
                "begin_ns": begin,
                "end_ns": end,
            }
            for number, (begin, end, rest) in enumerate(zip(begin_ns, end_ns, rests, strict=True), 1)
        ]
    )
