"""Detect files of one report: pages or copies of it, whose launches have the same order.

The launches of the shorter file must agree with those of the same ordinals in the other, in all columns of a page. A
page of some launches, such as those of one kernel, agrees with the launches of the same process and ID.
Kernels agree by their short names where starts are equal or there are none: pages leave out name spaces that the report
has, and traces of nsys stats may have short names only (``:base``).
Pages print durations with at least three digits, and traces print starts and durations in nanoseconds.
The tables of one run of rocprofv3 leave out the process, or the axes of grids and blocks: there the starts decide.
"""

from typing import Any, NamedTuple

from profsvc.store.connection.postgres import joined_as_written
from profsvc.store.connection.sql import Connection, bindparam, text
from profsvc.store.schema.column_types import IDS_PER_UPLOAD

SAMPLED_LAUNCHES = 32
_AGREE = """
    SELECT count(*) FROM launches a
    JOIN launches b ON b.launch_id = a.launch_id + :shift
    JOIN places p ON p.place_id = a.place_id JOIN places q ON q.place_id = b.place_id
    JOIN shapes s ON s.shape_id = a.shape_id JOIN shapes t ON t.shape_id = b.shape_id
    JOIN kernels k ON k.kernel_id = s.kernel_id JOIN kernels m ON m.kernel_id = t.kernel_id
    WHERE a.launch_id {}
      AND (a.source_id = b.source_id OR a.correlation_id = b.correlation_id OR a.start_ns = b.start_ns)
      AND (p.process_id = q.process_id
           OR (p.process_id IS NULL OR q.process_id IS NULL) AND a.start_ns = b.start_ns)
      AND (k.kernel_id = m.kernel_id OR k.kernel_short = m.kernel_short
           AND (a.start_ns = b.start_ns OR a.start_ns IS NULL AND b.start_ns IS NULL))
      AND {grid} AND {block}
      AND (a.start_ns IS NULL OR b.start_ns IS NULL OR a.start_ns = b.start_ns)
      AND abs(a.duration_ns - b.duration_ns)
          <= CASE WHEN a.start_ns = b.start_ns THEN 0.5 ELSE 0.005 * b.duration_ns END
"""


def _same_size(own: str, other: str) -> str:
    """Compare a grid or block in SQL; a table of rocprof that has only the product of it, as x, agrees by that."""
    equal = " AND ".join(f"coalesce({own}_{axis}, -1) = coalesce({other}_{axis}, -1)" for axis in "xyz")
    products = " = ".join(
        f"CAST({side}_x AS DOUBLE PRECISION) * coalesce({side}_y, 1) * coalesce({side}_z, 1)" for side in (own, other)
    )
    product_only = " OR ".join(f"{side}_y IS NULL AND {side}_z IS NULL" for side in (own, other))
    return f"({equal} OR a.start_ns = b.start_ns AND ({product_only}) AND {products})"


_SIZES = {"grid": _same_size("a.grid", "b.grid"), "block": _same_size("s.block", "t.block")}
_SOME = text(_AGREE.format("IN :some", **_SIZES)).bindparams(bindparam("some", expanding=True))
_ALL = text(_AGREE.format("BETWEEN :first AND :last", **_SIZES))
# Files with another start need no comparison.
_ALIKE = f"""
    SELECT o.upload_id FROM launches x
    JOIN shapes s ON s.shape_id = x.shape_id
    JOIN uploads o ON o.run_id = :run_id AND o.upload_id <> :upload_id AND o.launches > 0
    JOIN launches y ON y.launch_id = o.upload_id * {IDS_PER_UPLOAD} + 1
    JOIN shapes t ON t.shape_id = y.shape_id
    JOIN kernels k ON k.kernel_id = s.kernel_id JOIN kernels m ON m.kernel_id = t.kernel_id
    WHERE x.launch_id = :first AND k.kernel_short = m.kernel_short
      AND abs(x.duration_ns - y.duration_ns) <= 0.005 * {{}}.duration_ns
"""
_ALIKE_BY = {by_other: text(_ALIKE.format("x" if by_other else "y")) for by_other in (False, True)}
_NUMBERED = text("""
    SELECT l.launch_id, p.process_id, l.source_id, l.duration_ns, k.kernel_short,
           coalesce(l.grid_x, -1), coalesce(l.grid_y, -1), coalesce(l.grid_z, -1),
           coalesce(s.block_x, -1), coalesce(s.block_y, -1), coalesce(s.block_z, -1)
    FROM launches l JOIN places p ON p.place_id = l.place_id JOIN shapes s ON s.shape_id = l.shape_id
    JOIN kernels k ON k.kernel_id = s.kernel_id
    WHERE l.launch_id BETWEEN :first AND :last ORDER BY l.launch_id
""")
# Pages print durations with at least three digits.
DURATION_DIGITS_SHARE = 0.005


class LaunchFile(NamedTuple):
    """A file of a run with launches; ``timed``: whether its first one has a start, ``metrics``: how many it has.

    ``letters``: those of the names of its kernels.
    """

    upload_id: int
    file_name: str
    format: str
    launches: int
    timed: int
    metrics: int
    letters: int

    @property
    def tool(self) -> str:
        """Return the tool that wrote the file."""
        return self.format.split("-")[0]

    @property
    def place(self) -> tuple[int, bool, int, int, int]:
        """Return the priority for representing other files: most launches, then a trace, then most metrics.

        Of traces, one with whole names of kernels comes before one that has only the short ones.
        """
        metrics, letters = (self.metrics, -self.letters) if self.timed else (-self.metrics, 0)
        return -self.launches, not self.timed, letters, metrics, self.upload_id

    @property
    def bounds(self) -> dict[str, int]:
        """Return the id range of its launches."""
        return {
            "first": self.upload_id * IDS_PER_UPLOAD + 1,
            "last": self.upload_id * IDS_PER_UPLOAD + IDS_PER_UPLOAD - 1,
        }

    def __str__(self) -> str:
        """Return the name in messages."""
        return f"{self.file_name} (upload {self.upload_id})"


def files_with_same_start(connection: Connection, run_id: int, upload_id: int, *, by_other: bool = False) -> set[int]:
    """Return the files of a run with the same first launch as this one; ``by_other``: those that have it so by theirs.

    How much durations may differ is a share of that of the file which stands for the other.
    """
    values = {"run_id": run_id, "upload_id": upload_id, "first": upload_id * IDS_PER_UPLOAD + 1}
    return set(connection.execute(_ALIKE_BY[by_other], values).scalars())


def same_report(connection: Connection, few: LaunchFile, many: LaunchFile) -> bool:
    """Return whether all launches of a file are launches of the same report in a file with at least as many."""
    count = min(few.launches, SAMPLED_LAUNCHES)
    shift = (many.upload_id - few.upload_id) * IDS_PER_UPLOAD
    some = [few.bounds["first"] + number * few.launches // count for number in range(count)]
    with joined_as_written(connection):
        if connection.execute(_SOME, {"some": some, "shift": shift}).scalar() != count:
            return False
        return connection.execute(_ALL, {**few.bounds, "shift": shift}).scalar() == few.launches


def numbered_launches(connection: Connection, few: LaunchFile, many: LaunchFile) -> dict[int, int] | None:
    """Return the launches of a page of Nsight Compute -> those of another page that have their process and ID.

    None where not all are there, alike in kernel, size and duration, or where an ID does not name one launch.
    """
    if few.tool != "ncu" or many.tool != "ncu" or few.timed or many.timed:
        return None
    others = _by_number(connection, many)
    own = _by_number(connection, few) if others else None
    if not own or not others:
        return None
    found = {}
    for number, (launch_id, duration_ns, *shape) in own.items():
        other_id, other_ns, *other_shape = others.get(number, (0, None))
        if None in (duration_ns, other_ns) or shape != other_shape:
            return None
        if abs(duration_ns - other_ns) > DURATION_DIGITS_SHARE * other_ns:
            return None
        found[launch_id] = other_id
    return found


def _by_number(connection: Connection, file: LaunchFile) -> dict[tuple[int, str], tuple[Any, ...]] | None:
    """Return the launches of a file by process and ID; None if these do not name each of them."""
    rows = connection.execute(_NUMBERED, file.bounds).all()
    found = {(process, number): (launch_id, *rest) for launch_id, process, number, *rest in rows}
    return found if len(found) == len(rows) and not any(None in key for key in found) else None
