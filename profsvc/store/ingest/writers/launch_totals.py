"""Totals of the launches of a file: their number per place, and the range of their sizes per shape."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sqlalchemy import Connection

from profsvc.store.ingest.writers.bulk_insert import IntegerArrays, insert_rows, integer_arrays

SIZES = ("grid_x", "grid_y", "grid_z", "shared_mem_dynamic_bytes")
COLUMNS = tuple(f"{end}_{name}" for name in SIZES for end in ("min", "max"))
# Stand for the least and the greatest of no value.
NO_MIN, NO_MAX = NONE = 2**63 - 1, -(2**63)

Ints = npt.NDArray[np.int64]


class LaunchTotals:
    """Sums up launches, batch by batch."""

    def __init__(self) -> None:
        """Begin without launches."""
        self._places: Counter[int] = Counter()
        self._shapes: Counter[int] = Counter()
        self._ranges: dict[int, list[int]] = {}

    def add(self, places: Ints, shapes: Ints, sizes: "Mapping[str, Any] | pd.DataFrame") -> None:
        """Add the place and shape of launches, and those of their columns that are `SIZES`."""
        _count(self._places, places)
        codes, found = _count(self._shapes, shapes)
        ranges = np.empty((len(found), len(COLUMNS)), np.int64)
        for column, name in enumerate(SIZES):
            values = integer_arrays(sizes[name])
            ranges[:, 2 * column] = _extremes(np.minimum, codes, values, len(found), NO_MIN)
            ranges[:, 2 * column + 1] = _extremes(np.maximum, codes, values, len(found), NO_MAX)
        for shape, own in zip(found.tolist(), ranges.tolist(), strict=True):
            before = self._ranges.get(shape)
            self._ranges[shape] = own if before is None else [
                max(pair) if place % 2 else min(pair) for place, pair in enumerate(zip(own, before, strict=True))
            ]  # fmt: skip

    def save(self, connection: Connection, upload_id: int) -> None:
        """Write the totals of a whole upload."""
        places = [(upload_id, *total) for total in sorted(self._places.items())]
        insert_rows(connection, "place_totals", ("upload_id", "place_id", "launches"), places)
        shapes = [
            (
                upload_id,
                shape,
                launches,
                *(None if value in NONE else value for value in self._ranges[shape]),
            )
            for shape, launches in sorted(self._shapes.items())
        ]
        insert_rows(connection, "shape_totals", ("upload_id", "shape_id", "launches", *COLUMNS), shapes)


def _count(totals: Counter[int], numbers: Ints) -> tuple[npt.NDArray[np.intp], Ints]:
    """Add how often each number occurs; return the code of each number, and the distinct ones."""
    codes, found = pd.factorize(numbers)
    for number, count in zip(found.tolist(), np.bincount(codes).tolist(), strict=True):
        totals[number] += count
    return codes, found


def _extremes(extreme: np.ufunc, codes: npt.NDArray[np.intp], values: IntegerArrays, groups: int, none: int) -> Ints:
    """Return the least or greatest value of each group."""
    found = np.full(groups, none, np.int64)
    known = ~values.missing
    if known.all():
        extreme.at(found, codes, values.values)
    elif known.any():
        extreme.at(found, codes[known], values.values[known])
    return found
