"""One quantity that a model answers with, of many launches."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from profsvc.formulas.flags import CONSISTENT

Array = NDArray[np.float64]
NOTHING: Mapping[int, str] = {}


class Answer(NamedTuple):
    """A value a launch, NaN where the model has none; ``names`` tells what a coded value means."""

    quantity: str
    value: Any
    unit: str = "1"
    flags: Any = 0
    form: str = CONSISTENT
    names: Mapping[int, str] = NOTHING


def coded(value: Any) -> Array:
    """Codes as numbers, NaN where -1 says that none is known."""
    codes = np.asarray(value, dtype=np.float64)
    return np.where(codes < 0, np.nan, codes)
