"""Families of series: those of one kind, in one project and on one device."""

import numpy as np
import numpy.typing as npt
import pandas as pd


def families(heads: pd.DataFrame) -> npt.NDArray[np.intp]:
    """Return the number of the family of each series: those of one kind, in one project and on one device."""
    number = np.zeros(len(heads), dtype=np.intp)
    for name in ("project", "device", "kind"):
        codes, names = pd.factorize(heads[name].astype(object).fillna(""))
        number = pd.factorize(number * len(names) + codes)[0]
    return number
