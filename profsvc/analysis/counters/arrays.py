"""Counters of launches as arrays."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Counts:
    """The counters of launches as float64 arrays; what is absent, negative or infinite reads as NaN.

    Each counter is converted when it is first asked for, and kept: formulas ask for the same ones hundreds of times.
    """

    def __init__(self, counters: pd.DataFrame) -> None:
        """Take a table with one row per launch and one column per counter."""
        self._counters = counters
        self._arrays: dict[str, Array] = {}
        self.index = counters.index

    def __getitem__(self, name: str) -> Array:
        """Return one counter over the launches, as an array that cannot be written to."""
        found = self._arrays.get(name)
        if found is None:
            found = self._arrays[name] = self._converted(name)
            found.flags.writeable = False
        return found

    def _converted(self, name: str) -> Array:
        if name not in self._counters:
            return np.full(len(self._counters), np.nan)
        values = self._counters[name].to_numpy(dtype="float64", na_value=np.nan)
        return np.where((values >= 0) & np.isfinite(values), values, np.nan)

    def has(self, name: str) -> bool:
        """Tell whether there is a column for a counter."""
        return name in self._counters

    def total(self, *names: str) -> Array:
        """Sum of counters, NaN only where all are."""
        parts = np.array([self[n] for n in names])
        return np.where(np.isnan(parts).all(axis=0), np.nan, np.nansum(parts, axis=0))

    def lacks(self, *names: str) -> NDArray[np.bool_]:
        """Tell of which launches one of the counters is not known."""
        absent: NDArray[np.bool_] = np.isnan(np.array([self[name] for name in names])).any(axis=0)
        return absent
