"""What a launch loses to causes that do not stand out, and another version of it loses as well."""

import numpy as np
import pandas as pd

from profsvc.analysis.causes.attribution import UNEXPLAINED
from profsvc.analysis.causes.rows import is_proven
from profsvc.analysis.counters.arrays import Counts
from profsvc.analysis.potential.avoidable_work import class_shares
from profsvc.specs.advice.causes import least_shares

REMAINING = 0.17
"""Share of what causes that do not stand out take of the time which versions without the flaw lose, too.

On 726 pairs of versions the potential has the smallest mean error with 0.2, and with 0.18 to 0.21 on all sets but one;
the median of the errors rises from 0.17 on."""
LONGEST = 1.5
"""The most by which what remains makes the ideal time longer: beside a large flaw small causes are not known so well.

At 1.5 the order of these pairs is as good as without a limit."""


@np.errstate(all="ignore")
def without_remaining(
    rows: pd.DataFrame, bounds: pd.DataFrame, counters: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return causes and potential of launches without the time that any version loses.

    Kernels without a flaw have waits and waste below the least share of each cause: tuning does not remove all of it.
    Where instructions are not counted by class, overhead cannot stand out, and nothing is known to remain.
    ``rows`` are those of `profsvc.analysis.causes.rows.launch_causes`, ``bounds`` have ``duration_ns``, ``ideal_ns``
    and ``speedup``, one row for each launch of ``counters`` in its order. What is taken from the savings is added to
    the ideal times, so that savings still add up to the loss. The rank of a cause stays. Launches whose ideal time is
    not known keep their rows.
    """
    place = counters.index.get_indexer(pd.Index(rows["launch_id"]))
    share, flaw = rows["saving_fraction"].to_numpy(dtype="float64"), rows["kind"].to_numpy() == "flaw"
    least, proven = np.full(len(rows), np.inf), np.zeros(len(rows))
    for name, own in rows.groupby("cause").indices.items():
        if name in least_shares():
            least[own] = least_shares()[str(name)].share
            proven[own] = is_proven(str(name), counters)[place[own]]
    duration, ideal = (bounds[column].to_numpy(dtype="float64") for column in ("duration_ns", "ideal_ns"))
    has_classes = np.sum(list(class_shares(Counts(counters)).values()), axis=0) > 0
    below = flaw & ~((share > least) & (proven > 0)) & (has_classes & ~np.isnan(ideal))[place]
    remains = np.where(below & (rows["cause"].to_numpy() != UNEXPLAINED), REMAINING * share, 0.0)
    of_launch = np.bincount(place, weights=remains, minlength=len(counters))
    most = (LONGEST - 1) * ideal / duration
    remains = remains * np.where(of_launch > most, most / of_launch, 1.0)[place]
    of_launch = np.fmin(of_launch, np.where(np.isnan(most), 0.0, most))
    # The limit of a launch without a cause tells all that is lost.
    taken = np.where(rows["kind"].to_numpy() == "limit", of_launch[place], remains)
    low, high = (np.clip(rows[name].to_numpy(dtype="float64") - taken, 0, None) for name in ("low", "high"))
    longer = ideal + of_launch * duration
    causes = rows.assign(
        saving_fraction=share - remains, saving_ns=(share - remains) * duration[place], low=low, high=high
    )
    speedup = np.where(of_launch > 0, duration / longer, bounds["speedup"].to_numpy(dtype="float64"))
    return causes, bounds.assign(ideal_ns=longer, speedup=speedup)
