"""Dictionary encoding: a name is stored once, and the big tables refer to it by number.

On a server, parallel uploads with the same new names would wait for each other until the end of an upload, or deadlock.
So new names are written there in a short separate transaction, sorted. They stay if the upload fails, because an unused
name does no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from itertools import islice

import numpy as np
import numpy.typing as npt
from sqlalchemy import Engine

from profsvc.kernel_names import short_kernel_name
from profsvc.store.connection.sql import Connection
from profsvc.store.connection.transactions import in_transaction, reading, writing
from profsvc.store.ingest.inserts.column_values import is_constant
from profsvc.store.ingest.inserts.row_insert import insert_new, insert_rows, reject_nul
from profsvc.store.schema.tables import metadata

Ints = npt.NDArray[np.int64]
Cells = tuple[str | int | None, ...]

# Table -> the columns that form the name.
NAME_COLUMNS = {
    "texts": ("text",),
    "kernels": ("kernel",),
    "metric_names": ("metric", "section", "statistic"),
    "unit_names": ("unit", "si_unit"),
    "model_names": ("model", "quantity", "unit", "form"),
    "cause_names": ("cause", "title", "kind", "first_step", "evidence"),
    "devices": ("name", "compute_capability"),
    "wide_layouts": ("digest",),
    "places": ("key",),
    "shapes": ("key",),
}
COMBINATION_COLUMNS = {
    "places": ("device_id", "host_id", "process_name_id", "process_id", "device_index", "context", "stream"),
    "shapes": (
        *("kernel_id", "block_x", "block_y", "block_z"),
        *("registers_per_thread", "shared_mem_static_bytes"),
    ),
}


def _cells_of(name: tuple[str, ...]) -> Cells:
    cells = name[0].split(",")
    return tuple(int(cell) if cell else None for cell in cells) if "" in cells else tuple(map(int, cells))


# Table -> the columns that are derived from the name, and how.
DERIVED_COLUMNS: Mapping[str, tuple[tuple[str, ...], Callable[[tuple[str, ...]], Cells]]] = {
    "kernels": (("kernel_short",), lambda name: (short_kernel_name(name[0]),)),
    **{table: (columns, _cells_of) for table, columns in COMBINATION_COLUMNS.items()},
}
MAX_CACHED_NAMES = 100_000
NAMES_PER_QUERY = 500
# With so many slots, most hashes of the cache are found without a search.
SLOT_BITS = 16


_NONE = -(2**63)
_TOGETHER: ContextVar[ExitStack | None] = ContextVar("together", default=None)
"""What ends the transaction of the current `names_together`, which begins with the first new name."""


class Names(dict[tuple[str, ...], int]):
    """The numbers of the names in one table; looking up a missing name adds it.

    Numbers are assigned in the order of lookups, so the same file gets the same numbers. The size of the cache is
    limited, so that a file with a new name on every line does not fill the memory.
    """

    def __init__(self, store: Connection | Engine, table: str) -> None:
        """Begin with an empty cache of ``table``, one of `NAME_COLUMNS`; an engine commits new names at once."""
        super().__init__()
        # On a server the transaction of an upload never locks a name.
        self._store = store.engine if store.dialect.name == "postgresql" else store
        self._table = table
        self._id = next(iter(metadata.tables[table].primary_key)).name
        self._columns = NAME_COLUMNS[table]

    def __missing__(self, name: tuple[str, ...]) -> int:
        """Return the number of the name in the table; add a missing name."""
        return self.numbers([name])[0]

    def column(self, names: Sequence[tuple[str, ...] | None]) -> list[int | None]:
        """Return the number of each name in a column, None for None; names may repeat."""
        distinct = list(dict.fromkeys(name for name in names if name is not None))
        number = dict(zip(distinct, self.numbers(distinct), strict=True))
        return [None if name is None else number[name] for name in names]

    def numbers(self, names: Sequence[tuple[str, ...]]) -> list[int]:
        """Return the numbers of distinct names; missing names are added in this order."""
        found = {name: number for name in names if (number := self.get(name)) is not None}
        new = [name for name in names if name not in found]
        for begin in range(0, len(new), NAMES_PER_QUERY):
            found |= self._looked_up(new[begin : begin + NAMES_PER_QUERY])
        if len(self) + len(new) > MAX_CACHED_NAMES:
            self.clear()
        self.update(islice(found.items(), MAX_CACHED_NAMES))
        return [found[name] for name in names]

    def _looked_up(self, names: list[tuple[str, ...]]) -> dict[tuple[str, ...], int]:
        reject_nul(cell for name in names for cell in name)
        found: dict[tuple[str, ...], int] = {}
        if isinstance(self._store, Engine):
            with reading(self._store) as connection:
                found = self._known(connection, names)
            if len(found) == len(names):
                return found
        derived, cells = DERIVED_COLUMNS.get(self._table, ((), lambda _: ()))
        columns = (*self._columns, *derived)
        with writing_names(self._store) as connection:
            if connection.dialect.name == "postgresql":
                new = sorted(name for name in names if name not in found)
                cells_of_new = zip(*((*name, *cells(name)) for name in new), strict=True)
                given = dict(zip(columns, map(list, cells_of_new), strict=True))
                stored = insert_new(connection, self._table, given, (self._id, *self._columns))
                found |= {tuple(name): number for number, *name in stored}
                others = [name for name in new if name not in found]  # another upload wrote them in this moment
                return found | self._known(connection, others) if others else found
            found = self._known(connection, names)
            if new := [name for name in names if name not in found]:
                rows = [(*name, *cells(name)) for name in new]
                insert_rows(connection, self._table, columns, rows, known=True)
                found |= self._known(connection, new)
        return found

    def _known(self, connection: Connection, names: list[tuple[str, ...]]) -> dict[tuple[str, ...], int]:
        columns = ", ".join(self._columns)
        first = tuple(dict.fromkeys(name[0] for name in names))
        # The driver takes the names as they are: to make a statement of them takes longer than to find them.
        server = connection.dialect.name == "postgresql"
        among = "= ANY(%s)" if server else f"IN ({', '.join('?' * len(first))})"
        query = f"SELECT {self._id}, {columns} FROM {self._table} WHERE {self._columns[0]} {among}"
        rows = connection.exec_driver_sql(query, ([*first],) if server else first)
        found = {tuple(name): number for number, *name in rows}
        return {name: found[name] for name in names if name in found}


@contextmanager
def writing_names(store: Connection | Engine) -> Iterator[Connection]:
    """Yield the connection for writing names: that of the upload, or a new one that commits at the end."""
    if not isinstance(store, Engine):
        yield store
        return
    if (together := _TOGETHER.get()) is not None:
        connection = together.enter_context(writing(store))
        together.enter_context(in_transaction(store, connection))
        yield connection
        return
    with writing(store) as connection:
        yield connection


@contextmanager
def names_together(store: Connection | Engine) -> Iterator[None]:
    """Commit all new names of the block at once: SQLite waits for the disk at every commit.

    On a server parallel uploads would wait for each other, so names are committed there as they come.
    """
    if store.dialect.name != "sqlite":
        yield
        return
    with ExitStack() as opened:
        token = _TOGETHER.set(opened)
        try:
            yield
        finally:
            _TOGETHER.reset(token)


class Combinations:
    """The numbers of combinations of integers, for whole columns at once."""

    NONE = _NONE

    def __init__(self, store: Connection | Engine, table: str) -> None:
        """Begin with an empty cache of ``table``, one of `COMBINATION_COLUMNS`."""
        self._names = Names(store, table)
        self._hashes = np.empty(0, np.int64)  # in ascending order
        self._slots = np.zeros(1 << SLOT_BITS, np.int32)  # by the first bits of a hash, a place that it may have
        self._rows = np.empty((len(COMBINATION_COLUMNS[table]), 0), np.int64)
        self._numbers = np.empty(0, np.int64)
        odd = np.random.default_rng(1).integers(1 << 62, size=len(self._rows), dtype=np.int64)
        self._factors = odd * 2 + 1

    def numbers(self, columns: Sequence[Ints]) -> Ints:
        """Return the number of each row of the columns; `NONE` means null."""
        # One value stands for a column of equal values.
        short = [column[:1] if is_constant(column) else column for column in columns]
        if all(len(column) == 1 for column in short):
            return np.repeat(self._found(short, 1), len(columns[0]))
        return self._found(short, len(columns[0]))

    def _found(self, columns: Sequence[Ints], rows: int) -> Ints:
        hashes = sum(column * factor for column, factor in zip(columns, self._factors, strict=True))
        known = np.zeros(rows, np.bool_)
        numbers = np.empty(rows, np.int64)
        if len(self._hashes):
            place = self._slots.take(_first_bits(hashes))
            missed = np.flatnonzero(self._hashes.take(place) != hashes)
            place[missed] = np.searchsorted(self._hashes, hashes[missed]) % len(self._hashes)
            known = np.ones(rows, np.bool_)
            for own, column in zip(self._rows, columns, strict=True):
                known &= (own == column)[place] if len(column) == 1 else own[place] == column
            numbers = self._numbers[place]
        if not known.all():
            new = np.flatnonzero(~known)
            numbers[new] = self._added([np.broadcast_to(column, rows)[new] for column in columns], hashes[new])
        return numbers

    def _added(self, columns: Sequence[Ints], hashes: Ints) -> Ints:
        codes, first = self._factorized(columns)
        distinct = np.stack([column[first] for column in columns])
        numbers = np.array(self._names.numbers([(_text_of(row),) for row in distinct.T.tolist()]))
        self._keep(hashes[first], distinct, numbers)
        return numbers[codes]

    def _factorized(self, columns: Sequence[Ints]) -> tuple[Ints, Ints]:
        """Return the code of each row, and the first position of each distinct row."""
        places = [place for place, column in enumerate(columns) if (column != column[0]).any()]
        if not places:
            return np.zeros(len(columns[0]), np.int64), np.zeros(1, np.int64)
        hashes = sum(columns[place] * self._factors[place] for place in places)
        _, first, codes = np.unique(hashes, return_index=True, return_inverse=True)
        codes, first = _by_occurrence(codes, first)
        where = first[codes]
        if not all((columns[place][where] == columns[place]).all() for place in places):
            # Two different rows share a hash.
            numbers: dict[tuple[int, ...], int] = {}
            rows = zip(*(columns[place].tolist() for place in places), strict=True)
            codes = np.array([numbers.setdefault(row, len(numbers)) for row in rows])
            first = _first_positions(codes, len(numbers))
        return codes, first

    def _keep(self, hashes: Ints, rows: Ints, numbers: Ints) -> None:
        if len(self._hashes) > MAX_CACHED_NAMES:
            self._hashes, self._rows, self._numbers = self._hashes[:0], self._rows[:, :0], self._numbers[:0]
            self._slots[:] = 0
        order = np.argsort(together := np.concatenate((self._hashes, hashes)), kind="stable")
        self._hashes = together[order]
        self._slots[_first_bits(self._hashes)] = np.arange(len(self._hashes))
        self._rows = np.concatenate((self._rows, rows), axis=1)[:, order]
        self._numbers = np.concatenate((self._numbers, numbers))[order]


def _first_bits(hashes: Ints) -> npt.NDArray[np.int64]:
    """Return the first bits of hashes as whole numbers.

    >>> _first_bits(np.array([-1, 0])).tolist() == [2**SLOT_BITS - 1, 0]
    True
    """
    return (hashes.view(np.uint64) >> np.uint64(64 - SLOT_BITS)).view(np.int64)


def _first_positions(codes: Ints, count: int) -> Ints:
    """Return the first position of each code."""
    first = np.empty(count, np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    return first


def _by_occurrence(codes: Ints, first: Ints) -> tuple[Ints, Ints]:
    """Return codes and their first positions, numbered in the order of these.

    >>> _by_occurrence(np.array([1, 0, 1]), np.array([1, 0]))
    (array([0, 1, 0]), array([0, 1]))
    """
    order = np.argsort(first)
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return places[codes], first[order]


def _text_of(row: Sequence[int]) -> str:
    """Return the key of a combination.

    >>> _text_of([3, Combinations.NONE, -1])
    '3,,-1'
    """
    return ",".join(["" if cell == _NONE else str(cell) for cell in row] if _NONE in row else map(str, row))
