"""Files that only their own tool can read: how to recognize them, and the command that converts them."""

from functools import cache
from typing import NamedTuple

from profsvc.specs.table_files import rows_of

FILE = "foreign_files.csv"


class ForeignFile(NamedTuple):
    """A kind of file: how its name ends, the bytes that it begins with where they are known, what it is, what to do."""

    ending: str
    begins: bytes
    what: str
    do: str


@cache
def foreign_files() -> tuple[ForeignFile, ...]:
    """Return all kinds of files that are known and not read.

    >>> next(kind.what for kind in foreign_files() if kind.ending == ".nsys-rep")
    'a Nsight Systems report'
    """
    rows = rows_of(FILE, ("ending", "begins", "is", "do"))
    return tuple(ForeignFile(row["ending"], bytes.fromhex(row["begins"]), row["is"], row["do"]) for row in rows)
