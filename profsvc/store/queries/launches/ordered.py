"""The numbers of the launches of a run in an order, some at a time, without reading all launches of long files.

A launch that several files contain counts once. Null comes last in every order, and equal launches are ordered by
number. Short files are read whole; of long ones the ends of the orders are stored, see
`profsvc.store.ingest.writers.listed_launches`. Only what lies between these ends needs all launches.
"""

from collections.abc import Collection, Iterable, Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from profsvc.store.connection.sql import Connection, text
from profsvc.store.schema.column_types import IDS_PER_UPLOAD, WHOLE_RUN_ID
from profsvc.store.schema.view_definition import UPLOAD_ID_RANGE_SQL, text_of

_STANDING = "u.run_id = :run_id AND u.same_as IS NULL"
_FILES = f"""
    SELECT u.upload_id, u.launches, coalesce(b.depth, 0) AS depth
    FROM uploads u LEFT JOIN launch_lists b ON b.upload_id = u.upload_id
    WHERE {_STANDING} AND u.launches > 0 ORDER BY u.upload_id
"""
_FILES_OF_KERNELS = f"""
    SELECT u.upload_id, sum(t.launches) AS launches, coalesce(min(b.kernel_depth), 0) AS depth
    FROM uploads u JOIN kernel_totals t ON t.upload_id = u.upload_id
    LEFT JOIN launch_lists b ON b.upload_id = u.upload_id
    WHERE {_STANDING} AND t.kernel_id IN ({{kernels}}) GROUP BY u.upload_id ORDER BY u.upload_id
"""
_KERNELS = f"""
    SELECT k.kernel_short, k.kernel_id, sum(t.launches) AS launches
    FROM uploads u JOIN kernel_totals t ON t.upload_id = u.upload_id JOIN kernels k ON k.kernel_id = t.kernel_id
    WHERE {_STANDING} AND u.upload_id IN ({{files}}){{among}}
    GROUP BY k.kernel_short, k.kernel_id ORDER BY k.kernel_short{{down}}, k.kernel_id
"""
_ALL = (
    f"SELECT l.launch_id, l.duration_ns FROM uploads u JOIN launches l ON l.launch_id / {IDS_PER_UPLOAD} = u.upload_id"
    f" AND l.launch_id {UPLOAD_ID_RANGE_SQL} WHERE u.upload_id IN ({{files}}){{among}}"
)
_ALL_OF_FILE = "SELECT l.launch_id FROM launches l WHERE l.launch_id BETWEEN {first} AND {last}{among}"
_LISTED = (
    "SELECT l.launch_id, l.duration_ns FROM listed_launches l"
    " WHERE l.upload_id IN ({files}) AND l.kernel_id IN ({kernels})"
)
_AMONG = " AND l.shape_id IN (SELECT h.shape_id FROM shapes h WHERE h.kernel_id IN ({kernels}))"
_RESULTS = (
    "FROM runs r JOIN {table} p ON p.run_id = r.run_id AND p.version_id = r.version_id"
    f" WHERE r.run_id = :run_id AND p.kernel_id = {WHOLE_RUN_ID}"
)
_COUNTED = (
    f"FROM uploads u JOIN counters p ON p.launch_id {UPLOAD_ID_RANGE_SQL} WHERE u.run_id = :run_id"
    " AND p.counter_id = (SELECT x.text_id FROM texts x WHERE x.text = '{counter}')"
)
# Order by what few launches have -> its value and its rows.
_SPARSE = {
    "potential": ("p.speedup", _RESULTS.format(table="potential")),
    "ceiling": ("p.speedup_ceiling", _RESULTS.format(table="potential")),
    "limit": (text_of("p.bound_id"), _RESULTS.format(table="potential")),
    "saving": ("p.saving_ns", f"{_RESULTS.format(table='causes')} AND p.rank = 1"),
    "compute": ("p.value", _COUNTED.format(counter="sol_sm_fraction")),
    "memory": ("p.value", _COUNTED.format(counter="sol_memory_fraction")),
}
_OF_FILES = f" AND p.launch_id / {IDS_PER_UPLOAD} IN ({{files}})"
_OF_KERNELS = f" AND EXISTS (SELECT 1 FROM launches l WHERE l.launch_id = p.launch_id{_AMONG})"


class _File(NamedTuple):
    """A file whose launches count; ``depth`` is the length of its lists, 0 if it has none.

    ``hidden`` of its launches are not asked for, and ``launches`` are the others.
    """

    upload_id: int
    launches: int
    depth: int
    hidden: int = 0

    def lists(self, count: int) -> bool:
        """Return whether its lists have the first ``count`` launches of an order."""
        return min(count, self.launches) + self.hidden <= self.depth


class LaunchOrder:
    """The launches of a run, of all kernels or of some."""

    def __init__(
        self,
        connection: Connection,
        run_id: int,
        kernel_ids: Collection[int] | None = None,
        upload_id: int | None = None,
    ) -> None:
        """Look up the files of the run, or one of them."""
        self.connection, self.values = connection, {"run_id": run_id}
        self.kernel_ids = None if kernel_ids is None else _listed(kernel_ids) or "NULL"
        self.among = "" if kernel_ids is None else _AMONG.format(kernels=self.kernel_ids)
        query = _FILES if kernel_ids is None else _FILES_OF_KERNELS.format(kernels=self.kernel_ids)
        rows = connection.execute(text(query), self.values)
        files = [_File(row.upload_id, int(row.launches), row.depth) for row in rows]
        self.files = [file for file in files if upload_id in {None, file.upload_id}]
        self.total = sum(file.launches for file in self.files)
        self.has_lists = any(file.depth for file in self.files)

    def numbers(self, order: str, most: int, skip: int = 0) -> list[int]:
        """Return up to ``most`` launch numbers after ``skip``, in the order ``name``, or downwards in ``-name``."""
        name, down = order.removeprefix("-"), order.startswith("-")
        if not self.files:
            return []
        if name == "duration":
            return self._by_duration(down, most, skip)
        if name == "kernel":
            return self._by_kernel(down, most, skip)
        if name == "launch":
            return self._by_number(self.files, down, most, skip)
        return self._by_value(*_SPARSE[name], down, most, skip)

    def _by_duration(self, down: bool, most: int, skip: int) -> list[int]:
        listed = [file for file in self.files if file.lists(skip + most)]
        parts = ((_LISTED, listed), (_ALL, [file for file in self.files if file not in listed]))
        rows = " UNION ALL ".join(self._rows(part, files) for part, files in parts if files)
        order = f"duration_ns{' DESC' * down} NULLS LAST, launch_id"
        return self._page(f"SELECT launch_id FROM ({rows}) o ORDER BY {order}", most, skip)

    def _rows(self, part: str, files: Sequence[_File]) -> str:
        kernels = str(WHOLE_RUN_ID) if self.kernel_ids is None else self.kernel_ids
        return part.format(files=_listed(file.upload_id for file in files), kernels=kernels, among=self.among)

    def _by_number(self, files: Sequence[_File], down: bool, most: int, skip: int, condition: str = "") -> list[int]:
        """Return launches by number, file by file; files before the page need not be read."""
        found: list[int] = []
        for file in files[::-1] if down else files:
            if len(found) == most:
                break
            if skip < file.launches:
                found += self._of_file(file, down, most - len(found), skip, condition)
            skip = max(0, skip - file.launches)
        return found

    def _of_file(self, file: _File, down: bool, most: int, skip: int, condition: str) -> list[int]:
        order = f"{condition} ORDER BY l.launch_id{' DESC' * down}"
        if self.kernel_ids is not None and file.lists(skip + most):
            return self._page(self._rows(_LISTED, [file]) + order, most, skip)
        first, last = file.upload_id * IDS_PER_UPLOAD + 1, (file.upload_id + 1) * IDS_PER_UPLOAD - 1
        if self.kernel_ids is None and not file.hidden:
            highest = self._page(_ALL_OF_FILE.format(first=first, last=last, among=" ORDER BY 1 DESC"), 1, 0)[0]
            if highest - first + 1 == file.launches:  # no number is missing, so those before the page are known
                first, last, skip = (first, highest - skip, 0) if down else (first + skip, last, 0)
        return self._page(_ALL_OF_FILE.format(first=first, last=last, among=self.among) + order, most, skip)

    def _by_kernel(self, down: bool, most: int, skip: int) -> list[int]:
        """Return launches by the short names of their kernels, whose numbers of launches are stored."""
        files = [file.upload_id for file in self.files]
        among = "" if self.kernel_ids is None else f" AND t.kernel_id IN ({self.kernel_ids})"
        query = _KERNELS.format(down=" DESC" * down, files=_listed(files), among=among)
        rows = self.connection.execute(text(query), self.values).all()
        found: list[int] = []
        for _, group in groupby(rows, attrgetter("kernel_short")):
            kernels = list(group)
            launches = sum(int(kernel.launches) for kernel in kernels)
            if len(found) == most:
                break
            if skip < launches:
                ids = [kernel.kernel_id for kernel in kernels]
                named = LaunchOrder(self.connection, self.values["run_id"], ids)
                of_files = [file for file in named.files if file.upload_id in files]
                found += named._by_number(of_files, False, most - len(found), skip)
            skip = max(0, skip - launches)
        return found

    def _by_value(self, value: str, source: str, down: bool, most: int, skip: int) -> list[int]:
        """Return launches by a value, then those without in the order of their numbers."""
        source = f"{source} AND {value} IS NOT NULL"
        rows = source + _OF_FILES.format(files=_listed(file.upload_id for file in self.files))
        rows += "" if self.kernel_ids is None else _OF_KERNELS.format(kernels=self.kernel_ids)
        order = f"ORDER BY {value}{' DESC' * down}, p.launch_id"
        found = self._page(f"SELECT p.launch_id {rows} {order}", most, skip)
        if len(found) == most:
            return found
        query = text(f"SELECT p.launch_id / {IDS_PER_UPLOAD}, count(*) {rows} GROUP BY 1")
        valued = {int(file): int(count) for file, count in self.connection.execute(query, self.values)}
        rest = [
            file._replace(launches=file.launches - count, hidden=count)
            for file in self.files
            for count in [valued.get(file.upload_id, 0)]
        ]
        before = sum(valued.values())
        condition = f" AND NOT EXISTS (SELECT 1 {source} AND p.launch_id = l.launch_id)" if before else ""
        return found + self._by_number(rest, False, most - len(found), max(0, skip - before), condition)

    def _page(self, query: str, most: int, skip: int) -> list[int]:
        values = (self.values if ":run_id" in query else {}) | {"most": most, "skip": skip}
        return list(self.connection.execute(text(f"{query} LIMIT :most OFFSET :skip"), values).scalars())


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(str(int(number)) for number in numbers)
