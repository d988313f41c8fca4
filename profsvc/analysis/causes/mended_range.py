"""The range of a potential in which eight of ten mended kernels lie."""

import numpy as np
import pandas as pd

from profsvc.analysis.counters.arrays import Counts
from profsvc.analysis.potential.avoidable_work import class_shares
from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.performance.mended_range import mended_range
from profsvc.specs.advice.mended_ranges import mended_ranges


def with_ranges(bounds: pd.DataFrame, causes: pd.DataFrame, counters: pd.DataFrame) -> pd.DataFrame:
    """Return potentials with ``speedup_low`` and ``speedup_high``, by the first cause of each launch.

    ``bounds`` have ``speedup`` and ``flags``, one row for each launch of ``counters`` in its order; ``causes`` are
    those of `profsvc.analysis.causes.rows.launch_causes`. A launch at its limit may be the fastest version already.
    NaN where no cause is known, where the potential itself is only a bound, and at a limit where instructions are not
    counted by class: overhead could not stand out there.
    """
    first = causes.loc[causes["rank"] == 1].set_index("launch_id")["cause"].reindex(counters.index)
    table = {name: (one.least_exponent, one.largest_factor) for name, one in mended_ranges().items()}
    exponent, factor = np.array([table.get(name, (0.0, 1.0)) for name in first]).reshape(-1, 2).T
    flawed = first.isin(table).to_numpy()
    has_classes = np.sum(list(class_shares(Counts(counters)).values()), axis=0) > 0
    is_bound = bounds["flags"].to_numpy(dtype="int64") & int(Flag.LOWER_BOUND | Flag.UPPER_BOUND) > 0
    known = first.notna().to_numpy() & (flawed | has_classes) & ~is_bound
    speedup = np.where(known, bounds["speedup"].to_numpy(dtype="float64"), np.nan)
    low, high = mended_range(speedup, exponent, factor)
    return bounds.assign(speedup_low=low, speedup_high=high)
