"""Totals of the launches of a file: their number per place, and the range of their sizes per shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from profsvc.store.connection.sql import Connection
from profsvc.store.ingest.inserts.column_values import factorize_numbers, is_constant
from profsvc.store.ingest.inserts.row_insert import insert_rows
from profsvc.tables.column_tables import Integers, integers_of
from profsvc.tables.on_demand import pd

SIZES = ("grid_x", "grid_y", "grid_z", "shared_mem_dynamic_bytes")
COLUMNS = tuple(f"{end}_{name}" for name in SIZES for end in ("min", "max"))
# Stand for the least and the greatest of no value.
NO_MIN, NO_MAX = NONE = 2**63 - 1, -(2**63)
# How each column of totals is summed up: the number of launches, then the ends of `SIZES`.
_SUMS = (np.add, *(np.minimum, np.maximum) * len(SIZES))
MIN_WAITING_ROWS = 1 << 16

Ints = npt.NDArray[np.int64]


class _Totals:
    """The totals of numbers, batch by batch; what waits to be summed up is at most about as long as the totals."""

    def __init__(self, columns: int) -> None:
        """Begin without numbers; each has so many columns of totals."""
        self._numbers = np.empty(0, np.int64)
        self._totals = np.empty((columns, 0), np.int64)
        self._waiting: list[tuple[Ints, Ints]] = []

    def add(self, numbers: Ints, totals: Ints) -> None:
        """Add the totals of distinct numbers in ascending order, one row per column."""
        place = np.searchsorted(self._numbers, numbers)
        if len(place) and place[-1] < len(self._numbers) and (self._numbers[place] == numbers).all():
            for by, column, own in zip(_SUMS, self._totals, totals, strict=False):
                column[place] = by(column[place], own)
            return
        self._waiting.append((numbers, totals))
        if sum(len(own) for own, _ in self._waiting) > max(MIN_WAITING_ROWS, len(self._numbers)):
            self._merge()

    def _merge(self) -> None:
        numbers, totals = zip((self._numbers, self._totals), *self._waiting, strict=True)
        self._waiting = []
        own = np.concatenate(numbers)
        order = np.argsort(own, kind="stable")
        own, every = own[order], np.concatenate(totals, axis=1)[:, order]
        heads = np.flatnonzero(np.diff(own, prepend=own[:1] - 1))
        self._numbers = own[heads]
        self._totals = np.stack([by.reduceat(column, heads) for by, column in zip(_SUMS, every, strict=False)])

    def rows(self) -> list[list[int]]:
        """Return each number with its totals, in their order."""
        if self._waiting:
            self._merge()
        found: list[list[int]] = np.column_stack((self._numbers, *self._totals)).tolist()
        return found


class LaunchTotals:
    """Sums up launches, batch by batch."""

    def __init__(self) -> None:
        """Begin without launches."""
        self._places, self._shapes = _Totals(1), _Totals(len(_SUMS))
        self._waiting: list[tuple[Ints, Ints, list[Integers]]] = []

    def add(self, places: Ints, shapes: Ints, sizes: Mapping[str, Any] | pd.DataFrame) -> None:
        """Add the place and shape of launches, and those of their columns that are `SIZES`."""
        self._waiting.append((places, shapes, [integers_of(sizes[name]) for name in SIZES]))
        if sum(len(waiting) for waiting, *_ in self._waiting) >= MIN_WAITING_ROWS:
            self.sum_up()

    def sum_up(self) -> None:
        """Sum up the pending launches: a batch alone has hardly more launches than shapes."""
        if not self._waiting:
            return
        places, shapes, sizes = zip(*self._waiting, strict=True)
        self._waiting = []
        codes, found = factorize_numbers(np.concatenate(places))
        self._places.add(found, np.bincount(codes)[None])
        codes, found = factorize_numbers(np.concatenate(shapes))
        totals = [np.bincount(codes)]
        for parts in zip(*sizes, strict=True):
            values = Integers(*map(np.concatenate, zip(*((part.values, part.missing) for part in parts), strict=True)))
            totals.append(_extremes(np.minimum, codes, values, len(found), NO_MIN))
            totals.append(_extremes(np.maximum, codes, values, len(found), NO_MAX))
        self._shapes.add(found, np.stack(totals))

    def save(self, connection: Connection, upload_id: int) -> None:
        """Write the totals of a whole upload."""
        self.sum_up()
        places = [(upload_id, *total) for total in self._places.rows()]
        insert_rows(connection, "place_totals", ("upload_id", "place_id", "launches"), places)
        shapes = [(upload_id, *_with_nulls(total)) for total in self._shapes.rows()]
        insert_rows(connection, "shape_totals", ("upload_id", "shape_id", "launches", *COLUMNS), shapes)


def _with_nulls(total: list[int]) -> list[int | None] | list[int]:
    """Return a total with None for the ends of no value, which are rare."""
    return [None if value in NONE else value for value in total] if NO_MIN in total or NO_MAX in total else total


def _extremes(extreme: np.ufunc, codes: Ints, values: Integers, groups: int, none: int) -> Ints:
    """Return the least or greatest value of each group."""
    known = ~values.missing
    if known.all() and is_constant(values.values):
        return np.full(groups, values.values[0])
    found = np.full(groups, none, np.int64)
    if known.all():
        extreme.at(found, codes, values.values)
    elif known.any():
        extreme.at(found, codes[known], values.values[known])
    return found
