"""Rows of a sensor log, transposed and grouped by GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from profsvc.formats.columnar.categorical import CategoryColumn
from profsvc.formats.parsing.timestamps import Int64s

Value = TypeVar("Value")


@dataclass(frozen=True)
class GpuRows:
    """The rows of one GPU in a chunk; without ``rows`` these are all rows, and nothing is copied."""

    key: object
    rows: Int64s | None
    lines: Int64s
    ns: Int64s | None

    @property
    def first(self) -> int:
        """The place of the first row."""
        return 0 if self.rows is None else int(self.rows[0])

    @property
    def last(self) -> int:
        """The place of the last row."""
        return len(self.lines) - 1 if self.rows is None else int(self.rows[-1])

    def of(self, values: Any) -> Any:
        """Return these rows of a column of the chunk."""
        return values if self.rows is None or values is None else values[self.rows]


@dataclass
class Chunk:
    """Valid rows, transposed: their cells column by column, line numbers, timestamps and GPUs.

    ``owners`` are the places in ``keys`` of the GPU of each row; without them all rows are of one GPU.
    """

    columns: Sequence[CategoryColumn]
    lines: Int64s
    ns: Int64s | None
    keys: Sequence[object]
    owners: Int64s | None = None

    @cached_property
    def groups(self) -> list[GpuRows]:
        """The rows of each GPU."""
        if self.owners is None:
            return [GpuRows(self.keys[0], None, self.lines, self.ns)]
        found = [(key, np.flatnonzero(self.owners == place)) for place, key in enumerate(self.keys)]
        return [GpuRows(key, rows, self.lines[rows], None if self.ns is None else self.ns[rows]) for key, rows in found]

    def part(self, rows: Int64s) -> Chunk:
        """Return the rows at these places."""
        columns = [cells.part(rows) for cells in self.columns]
        ns = None if self.ns is None else self.ns[rows]
        if self.owners is None:
            return Chunk(columns, self.lines[rows], ns, self.keys)
        return Chunk(columns, self.lines[rows], ns, *owners_of(self.keys, self.owners[rows]))


def first_seen(values: Sequence[Value], codes: Int64s) -> tuple[Int64s, list[Value]]:
    """Return the rows as places in the distinct values, and these in the order in which they come.

    ``codes`` are the places of the values of the rows, which may repeat a value.

    >>> first_seen(["a", "b", "b"], np.array([2, 0, 1]))
    (array([0, 1, 0]), ['b', 'a'])
    """
    known: dict[Value, int] = {}
    _, first = np.unique(codes, return_index=True)
    places = np.zeros(len(values), np.int64)
    for code in codes[np.sort(first)].tolist():
        places[code] = known.setdefault(values[code], len(known))
    return places[codes], list(known)


def owners_of(keys: Sequence[object], codes: Int64s) -> tuple[Sequence[object], Int64s | None]:
    """Return the distinct keys of rows in their order, and the place of the key of each row; None if there is one key.

    ``codes`` are the places of the keys of the rows in ``keys``, which may repeat a key.
    """
    if (codes == codes[0]).all():
        return [keys[int(codes[0])]], None
    numbers = {key: place for place, key in reversed(list(enumerate(keys)))}
    owners, kept = first_seen([numbers[key] for key in keys], codes)
    return [keys[int(place)] for place in kept], None if len(kept) == 1 else owners
