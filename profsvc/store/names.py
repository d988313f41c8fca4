"""Dictionary encoding: a name is written once and then stands in the big tables as a number."""

from collections.abc import Sequence
from itertools import islice

from sqlalchemy import Connection, select

from profsvc.store.bulk import insert_rows
from profsvc.store.schema import metadata
from profsvc.tables import short_kernel_name

# Table -> the columns that make the name.
KEYS = {
    "texts": ("text",),
    "kernels": ("kernel",),
    "metric_names": ("metric", "section", "statistic"),
    "unit_names": ("unit", "si_unit"),
    "model_names": ("model", "quantity", "unit", "form"),
    "devices": ("name", "compute_capability"),
    "wide_layouts": ("digest",),
}
CACHED = 100_000
AT_ONCE = 500


class Names(dict[tuple[str, ...], int]):
    """The numbers of the names in one table; a name that is asked for and not there is added.

    Numbers are given in the order of asking, so the same file gives the same numbers. The cache has a limit, so that
    a file with a new name on every line does not fill the memory.
    """

    def __init__(self, connection: Connection, table: str) -> None:
        """Begin with an empty cache of ``table``, one of `KEYS`."""
        super().__init__()
        self._connection = connection
        self._table = metadata.tables[table]
        self._id = next(iter(self._table.primary_key))
        self._columns = KEYS[table]

    def __missing__(self, name: tuple[str, ...]) -> int:
        """Look the name up in the table, or add it there."""
        return self.numbers([name])[0]

    def numbers(self, names: Sequence[tuple[str, ...]]) -> list[int]:
        """Return the numbers of names that all differ; those not yet in the table are added in this order."""
        found = {name: number for name in names if (number := self.get(name)) is not None}
        new = [name for name in names if name not in found]
        for begin in range(0, len(new), AT_ONCE):
            found |= self._added(new[begin : begin + AT_ONCE])
        if len(self) + len(new) > CACHED:
            self.clear()
        self.update(islice(found.items(), CACHED))
        return [found[name] for name in names]

    def _added(self, names: list[tuple[str, ...]]) -> dict[tuple[str, ...], int]:
        rows = [(*name, short_kernel_name(name[0])) for name in names] if self._table.name == "kernels" else names
        columns = (*self._columns, *(["kernel_short"] if self._table.name == "kernels" else []))
        first, *_ = keys = [self._table.c[column] for column in self._columns]
        query = select(self._id, *keys).where(first.in_(list(dict.fromkeys(name[0] for name in names))))

        def known() -> dict[tuple[str, ...], int]:
            return {tuple(name): number for number, *name in self._connection.execute(query)}

        found = known()
        if new := [row for name, row in zip(names, rows, strict=True) if name not in found]:
            insert_rows(self._connection, self._table.name, columns, new, known=True)
            found = known()
        return {name: found[name] for name in names}
