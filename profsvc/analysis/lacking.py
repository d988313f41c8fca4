"""Launches that lack the same counters, which get the same words."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

BITS = 62


def alike(lacks: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Return the rows that differ, in the order they come in, and which of them each row is.

    >>> alike(np.array([[True, False], [False, False], [True, False]]))
    (array([[ True, False],
           [False, False]]), array([0, 1, 0]))
    """
    place = np.zeros(len(lacks), np.int64)
    for begin in range(0, lacks.shape[1], BITS):
        bits = lacks[:, begin : begin + BITS]
        codes = pd.factorize(bits @ (1 << np.arange(bits.shape[1])))[0]
        place = pd.factorize(place * len(lacks) + codes)[0]
    first = np.empty(int(place.max(initial=-1)) + 1, np.intp)
    first[place[::-1]] = np.arange(len(place))[::-1]
    return lacks[first], place
