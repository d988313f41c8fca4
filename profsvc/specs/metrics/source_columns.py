"""Columns of source pages of Nsight Compute: what each holds, under its label and under the name of its metric."""

from functools import cache
from typing import NamedTuple

from profsvc.specs.table_files import rows_of

FILE = "metrics/source_columns.csv"
COUNT, TEXT, STALL, NOT_ISSUED, DERIVED, LEFT_OUT = "count", "text", "stall", "not_issued", "derived", "left_out"
KINDS = (COUNT, TEXT, STALL, NOT_ISSUED, DERIVED, LEFT_OUT)


class SourceColumn(NamedTuple):
    """A column: its kind, and the column of ``source_lines`` or the stall reason that it holds."""

    kind: str
    name: str


@cache
def source_columns() -> dict[str, SourceColumn]:
    """Return the known columns by their header.

    Columns ``derived`` follow from others; those ``left_out`` are known and not stored.

    >>> source_columns()["stall_long_sb"]
    SourceColumn(kind='stall', name='Long Scoreboard')
    """
    rows = rows_of(FILE, ("column", "kind", "name"))
    return {row["column"]: SourceColumn(row.one_of("kind", KINDS), row["name"]) for row in rows}
