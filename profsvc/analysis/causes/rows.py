"""The causes of each launch as rows: what each costs, and between which limits."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from profsvc.analysis.causes import IDEAL_TIME_ERROR, MEASURED_TIME_ERROR
from profsvc.analysis.causes.alternatives import with_alternatives
from profsvc.analysis.causes.attribution import UNEXPLAINED, lost_time, savings
from profsvc.analysis.counters.arrays import Counts
from profsvc.analysis.potential.access_patterns import has_listed_places, looks_up_tables, unused_of_l2_loads
from profsvc.analysis.potential.avoidable_work import POSSIBLE, class_shares
from profsvc.analysis.potential.launch_potential import start_ns
from profsvc.analysis.potential.repeated_loads import evicted_share, read_again
from profsvc.formulas.performance.lost_time import saving_interval
from profsvc.specs.advice.causes import causes, least_shares

COLUMNS = ("launch_id", "rank", "cause", "kind", "saving_ns", "saving_fraction", "low", "high")
LIMITS_OF_UNITS = {
    "dram": ("memory_limit", "unrelated_accesses"),
    "l2": ("memory_limit", "unrelated_accesses"),
    "l1": ("shared_memory_limit",),
}
"""Limits that a launch may have by the unit that its ideal time depends on; of the other units: arithmetic."""
START_LIMIT = "launch_limit"


def launch_causes(counters: pd.DataFrame, figures: pd.DataFrame, bounds: pd.DataFrame) -> pd.DataFrame:
    """Return one row per launch and cause, with the columns `COLUMNS`.

    ``counters`` has one row per launch and one column per counter, and the launches as index; ``figures`` are the peak
    rates of `profsvc.analysis.potential.peaks`, ``bounds`` the potential with ``ideal_ns``, ``ideal_bound`` and
    ``duration_ns``, both in the same order.

    Rank 1 is the answer: the cause that exceeds the share from which on it stands out by the largest factor, or the
    limit of a launch of which no proven cause does. After those that stand out come the others in the same order;
    half counts of what is not proven. What else the answer may mean stands among them, see `with_alternatives`.
    ``low`` and ``high`` are the limits of ``saving_fraction``.

    The savings of a launch add up to what it loses over its ideal time; what no cause explains is a row of its own. A
    launch without counts of stalls has no row; where the ideal time is not known, savings are shares of the time,
    without limits.
    """
    shares = lost_time(counters, figures)
    duration, ideal = (bounds[name].to_numpy(dtype="float64") for name in ("duration_ns", "ideal_ns"))
    with np.errstate(all="ignore"):
        loss = np.clip(1 - ideal / duration, 0, 1)
    flaws = savings(shares, loss)
    names, amounts = [str(name) for name in flaws], flaws.to_numpy()
    proven = np.column_stack([is_proven(name, counters) for name in names])
    errors = np.array([MEASURED_TIME_ERROR if _is_measured(name) else IDEAL_TIME_ERROR for name in names])
    interval = saving_interval(amounts, loss[:, None], proven, errors)
    least = np.array([np.inf if name == UNEXPLAINED else least_shares()[name].share for name in names])
    excess = amounts / least
    stands_out = (excess > 1) & (proven > 0)
    has_gain = np.isnan(loss) | stands_out.any(axis=1)
    # Where no unit works as long as blocks take to start and to drain, none of them is the limit.
    is_start = 2 * start_ns(Counts(counters)) > ideal
    limits = np.where(is_start, START_LIMIT, _limits(shares, bounds["ideal_bound"].tolist()))
    known = shares.notna().any(axis=1).to_numpy()
    place, column = np.nonzero((amounts > 0) & known[:, None])
    own = np.flatnonzero(known)
    none = np.zeros(len(own))
    sure = excess * np.where(proven > 0, 1, POSSIBLE)
    found = [table[place, column] for table in (amounts, *interval, sure, 1.0 * stands_out)]
    # All that is lost, while no cause stands out, is the most that the launch could gain.
    nothing = (none, none, np.where(has_gain[own], 0.0, loss[own]), none, none)
    share, low, high, far, stands = (np.concatenate(pair) for pair in zip(found, nothing, strict=True))
    # What is unexplained names no cause: it stands behind those that are. The limit is last, or the answer.
    kind = np.concatenate([np.array(names)[column] == UNEXPLAINED, np.where(has_gain[own], 2, -1)])
    cause = np.concatenate([np.array(names, dtype=object)[column], np.array(limits, dtype=object)[own]])
    of = np.concatenate([place, own])
    order = np.lexsort((-far, -stands, kind, of))
    of, share, cause = of[order], share[order], cause[order]
    kinds = {name: one.kind for name, one in causes().items()}
    values = (
        counters.index.to_numpy()[of], np.arange(len(of)) - np.searchsorted(of, of) + 1, cause,
        pd.Series(cause, dtype=object).map(kinds), share * duration[of], share, low[order], high[order],
    )  # fmt: skip
    rows = pd.DataFrame(dict(zip(COLUMNS, values, strict=True)))
    return with_alternatives(rows, counters, bounds["ideal_bound"].tolist())


def _is_measured(cause: str) -> bool:
    return causes()[cause].avoidable == "measured"


def is_proven(cause: str, counters: pd.DataFrame) -> NDArray[np.float64]:
    """Tell for each launch whether its counters prove that the work of a cause is avoidable: 1, else 0.

    Of overhead a limit is known where instructions are counted by class; the order of a list of places is free, and so
    is that of blocks, where more bytes come again for other blocks than are unused. A cache can hold a part of a table.
    """
    avoidable = causes()[cause].avoidable
    if avoidable == "by list":
        c = Counts(counters)
        comes_again = np.fmax(read_again(c), evicted_share(c)) > unused_of_l2_loads(c)
        return np.asarray(has_listed_places(c) | comes_again | looks_up_tables(c), dtype=np.float64)
    if avoidable != "by class":
        return np.full(len(counters), float(avoidable in ("proven", "measured")))
    return np.asarray(np.sum(list(class_shares(Counts(counters)).values()), axis=0) > 0, dtype=np.float64)


def _limits(shares: pd.DataFrame, units: list[str | None]) -> list[str]:
    """Return which limit each launch is at: of those of its unit the one that takes most of the time."""
    every = tuple(str(name) for name in shares if causes()[str(name)].kind == "limit")
    taken = [dict(zip(every, row, strict=True)) for row in shares[list(every)].fillna(0.0).to_numpy().tolist()]
    found = []
    for unit, own in zip(units, taken, strict=True):
        names = LIMITS_OF_UNITS.get(unit, ("arithmetic_limit",)) if isinstance(unit, str) else every
        found.append(max(names, key=own.__getitem__))
    return found
