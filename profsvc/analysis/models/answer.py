"""One quantity that a model answers with, of many launches."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from profsvc.formulas.numerics.flags import CONSISTENT

Array = NDArray[np.float64]
NO_NAMES: Mapping[int, str] = {}
TIME_MODELS = ("mwp_cwp", "benefit", "throughput")
BOUND_MODELS = ("benefit", "roofline", "time_bound")
"""The models that say how long a launch takes, and what bounds it."""


class Answer(NamedTuple):
    """One value per launch, NaN where the model has none; ``names`` tells what a coded value means."""

    quantity: str
    value: Any
    unit: str = "1"
    flags: Any = 0
    form: str = CONSISTENT
    names: Mapping[int, str] = NO_NAMES


def decode(value: Any) -> Array:
    """Codes as numbers, NaN for -1, which means unknown."""
    codes = np.asarray(value, dtype=np.float64)
    return np.where(codes < 0, np.nan, codes)
