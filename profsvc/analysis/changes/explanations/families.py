"""Families of series: those of one kind, in one project and on one device."""

import numpy as np
import numpy.typing as npt
import pandas as pd


def families(heads: pd.DataFrame) -> npt.NDArray[np.intp]:
    """Return the number of the family of each series: those of one kind, in one project and on one device."""
    names = ["project", "device", "kind"]
    named = heads[names].astype(object).where(heads[names].notna(), "")
    return np.asarray(named.groupby(names, sort=False).ngroup(), dtype=np.intp)
