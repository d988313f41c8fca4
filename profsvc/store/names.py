"""Dictionary encoding: a name is written once and then stands in the big tables as a number."""

from sqlalchemy import Connection, insert, select

from profsvc.store.schema import metadata
from profsvc.tables import short_kernel_name

# Table -> the columns that make the name.
KEYS = {
    "texts": ("text",),
    "kernels": ("kernel",),
    "metric_names": ("metric", "section"),
    "unit_names": ("unit", "si_unit"),
    "model_names": ("model", "quantity", "unit", "form"),
    "devices": ("name", "compute_capability"),
}
CACHED = 100_000


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
        given = dict(zip(self._columns, name, strict=True))
        query = select(self._id).where(*(self._table.c[column] == value for column, value in given.items()))
        number = self._connection.execute(query).scalar()
        if number is None:
            if "kernel" in given:
                given["kernel_short"] = short_kernel_name(given["kernel"])
            number = self._connection.execute(insert(self._table).values(given).returning(self._id)).scalar_one()
        if len(self) >= CACHED:
            self.clear()
        self[name] = int(number)
        return int(number)
