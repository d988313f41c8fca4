"""Dictionary encoding: a name is written once and then stands in the big tables as a number.

On a server many files come in at once, and those that bring the same new names would wait for each other until the end
of a load, or for ever. So there new names are written in a short transaction of their own, sorted, and stay where the
load fails: a name that nothing refers to does no harm.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice

import numpy as np
import numpy.typing as npt
import pandas as pd
from sqlalchemy import Connection, Engine, select

from profsvc.errors import InputError
from profsvc.store.bulk import insert_rows
from profsvc.store.engine import reading, writing
from profsvc.store.schema import metadata
from profsvc.tables import short_kernel_name

Ints = npt.NDArray[np.int64]
Cells = tuple[str | int | None, ...]

# Table -> the columns that make the name.
KEYS = {
    "texts": ("text",),
    "kernels": ("kernel",),
    "metric_names": ("metric", "section", "statistic"),
    "unit_names": ("unit", "si_unit"),
    "model_names": ("model", "quantity", "unit", "form"),
    "devices": ("name", "compute_capability"),
    "wide_layouts": ("digest",),
    "places": ("key",),
    "shapes": ("key",),
}
COMBINED = {
    "places": ("device_id", "host_id", "process_name_id", "process_id", "device_index", "context", "stream"),
    "shapes": (
        *("kernel_id", "block_x", "block_y", "block_z"),
        *("registers_per_thread", "shared_mem_static_bytes"),
    ),
}


def _cells_of(name: tuple[str, ...]) -> Cells:
    return tuple(int(cell) if cell else None for cell in name[0].split(","))


# Table -> the columns that follow from the name, and how.
DERIVED: Mapping[str, tuple[tuple[str, ...], Callable[[tuple[str, ...]], Cells]]] = {
    "kernels": (("kernel_short",), lambda name: (short_kernel_name(name[0]),)),
    **{table: (columns, _cells_of) for table, columns in COMBINED.items()},
}
CACHED = 100_000
AT_ONCE = 500


def refuse_nul(texts: Iterable[str]) -> None:
    """Raise `InputError` for a text with a NUL: Postgres keeps none, and SQLite's own functions stop there."""
    if wrong := next((text for text in texts if "\0" in text), None):
        raise InputError(f"the file holds the name {wrong[:200]!r} with a NUL character, which no text has; correct it")


class Names(dict[tuple[str, ...], int]):
    """The numbers of the names in one table; a name that is asked for and not there is added.

    Numbers are given in the order of asking, so the same file gives the same numbers. The cache has a limit, so that
    a file with a new name on every line does not fill the memory.
    """

    def __init__(self, store: Connection | Engine, table: str) -> None:
        """Begin with an empty cache of ``table``, one of `KEYS`; without a connection, new names are kept at once."""
        super().__init__()
        # On a server the transaction of a load never holds a name.
        self._store = store.engine if store.dialect.name == "postgresql" else store
        self._table = metadata.tables[table]
        self._id = next(iter(self._table.primary_key))
        self._columns = KEYS[table]

    def __missing__(self, name: tuple[str, ...]) -> int:
        """Look the name up in the table, or add it there."""
        return self.numbers([name])[0]

    def column(self, names: Sequence[tuple[str, ...] | None]) -> list[int | None]:
        """Return the number of each name in a column, None for None; names may come again and again."""
        distinct = list(dict.fromkeys(name for name in names if name is not None))
        number = dict(zip(distinct, self.numbers(distinct), strict=True))
        return [None if name is None else number[name] for name in names]

    def numbers(self, names: Sequence[tuple[str, ...]]) -> list[int]:
        """Return the numbers of names that all differ; those not yet in the table are added in this order."""
        found = {name: number for name in names if (number := self.get(name)) is not None}
        new = [name for name in names if name not in found]
        for begin in range(0, len(new), AT_ONCE):
            found |= self._looked_up(new[begin : begin + AT_ONCE])
        if len(self) + len(new) > CACHED:
            self.clear()
        self.update(islice(found.items(), CACHED))
        return [found[name] for name in names]

    def _looked_up(self, names: list[tuple[str, ...]]) -> dict[tuple[str, ...], int]:
        refuse_nul(text for name in names for text in name)
        if isinstance(self._store, Engine):
            with reading(self._store) as connection:
                found = self._known(connection, names)
            if len(found) == len(names):
                return found
        with writing_names(self._store) as connection:
            found = self._known(connection, names)
            if new := [name for name in names if name not in found]:
                if connection.dialect.name == "postgresql":
                    new.sort()
                columns, cells = DERIVED.get(self._table.name, ((), lambda _: ()))
                rows = [(*name, *cells(name)) for name in new]
                insert_rows(connection, self._table.name, (*self._columns, *columns), rows, known=True)
                found |= self._known(connection, new)
        return found

    def _known(self, connection: Connection, names: list[tuple[str, ...]]) -> dict[tuple[str, ...], int]:
        first, *_ = keys = [self._table.c[column] for column in self._columns]
        query = select(self._id, *keys).where(first.in_(list(dict.fromkeys(name[0] for name in names))))
        found = {tuple(name): number for number, *name in connection.execute(query)}
        return {name: found[name] for name in names if name in found}


@contextmanager
def writing_names(store: Connection | Engine) -> Iterator[Connection]:
    """Give the connection that names are written on: the store's own, or one whose transaction ends here."""
    if isinstance(store, Engine):
        with writing(store) as connection:
            yield connection
    else:
        yield store


class Combinations:
    """The numbers of combinations of whole numbers, a whole column at once."""

    NONE = np.iinfo(np.int64).min

    def __init__(self, store: Connection | Engine, table: str) -> None:
        """Begin with an empty cache of ``table``, one of `COMBINED`."""
        self._names = Names(store, table)
        self._hashes = np.empty(0, np.int64)
        self._rows = np.empty((len(COMBINED[table]), 0), np.int64)
        self._numbers = np.empty(0, np.int64)
        odd = np.random.default_rng(1).integers(1 << 62, size=len(self._rows), dtype=np.int64)
        self._factors = odd * 2 + 1

    def numbers(self, columns: Sequence[Ints]) -> Ints:
        """Return the number of each row of the columns; `NONE` stands for null."""
        if all(len(column) and (column == column[0]).all() for column in columns):
            return np.repeat(self._found([column[:1] for column in columns]), len(columns[0]))
        return self._found(columns)

    def _found(self, columns: Sequence[Ints]) -> Ints:
        hashes = sum(column * factor for column, factor in zip(columns, self._factors, strict=True))
        known = np.zeros(len(hashes), np.bool_)
        numbers = np.empty(len(hashes), np.int64)
        if len(self._hashes):
            place = np.searchsorted(self._hashes, hashes)
            place[place == len(self._hashes)] = 0
            known = np.ones(len(hashes), np.bool_)
            for own, column in zip(self._rows, columns, strict=True):
                known &= own[place] == column
            numbers = self._numbers[place]
        if not known.all():
            new = np.flatnonzero(~known)
            numbers[new] = self._added([column[new] for column in columns], hashes[new])
        return numbers

    def _added(self, columns: Sequence[Ints], hashes: Ints) -> Ints:
        codes, first = self._factorized(columns)
        distinct = np.stack([column[first] for column in columns])
        numbers = np.array(self._names.numbers([(_text_of(row),) for row in distinct.T.tolist()]))
        self._keep(hashes[first], distinct, numbers)
        return numbers[codes]

    def _factorized(self, columns: Sequence[Ints]) -> tuple[Ints, Ints]:
        """Return which of the distinct rows each row is, and where each of these comes first."""
        places = [place for place, column in enumerate(columns) if (column != column[0]).any()]
        if not places:
            return np.zeros(len(columns[0]), np.int64), np.zeros(1, np.int64)
        codes, found = pd.factorize(sum(columns[place] * self._factors[place] for place in places))
        first = _places_of_first(codes, len(found))
        where = first[codes]
        if not all((columns[place][where] == columns[place]).all() for place in places):
            # Two rows share a hash.
            rows = zip(*(columns[place].tolist() for place in places), strict=True)
            codes, found = pd.factorize(pd.Series(list(rows)))
            first = _places_of_first(codes, len(found))
        return codes, first

    def _keep(self, hashes: Ints, rows: Ints, numbers: Ints) -> None:
        if len(self._hashes) > CACHED:
            self._hashes, self._rows, self._numbers = self._hashes[:0], self._rows[:, :0], self._numbers[:0]
        order = np.argsort(together := np.concatenate((self._hashes, hashes)), kind="stable")
        self._hashes = together[order]
        self._rows = np.concatenate((self._rows, rows), axis=1)[:, order]
        self._numbers = np.concatenate((self._numbers, numbers))[order]


def _places_of_first(codes: Ints, count: int) -> Ints:
    """Return where each code comes first."""
    first = np.empty(count, np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    return first


def _text_of(row: Sequence[int]) -> str:
    """Return the key of a combination.

    >>> _text_of([3, Combinations.NONE, -1])
    '3,,-1'
    """
    return ",".join("" if cell == Combinations.NONE else str(cell) for cell in row)
