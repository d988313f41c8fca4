"""Files that only the tool that wrote them reads: how they are told, and what makes one of them that is read."""

from functools import cache
from typing import NamedTuple

from profsvc.specs.files import rows_of

FILE = "foreign_files.csv"


class Foreign(NamedTuple):
    """A kind of file: how its name ends, the bytes that it begins with where they are known, what it is, what to do."""

    ending: str
    begins: bytes
    what: str
    do: str


@cache
def foreign_files() -> tuple[Foreign, ...]:
    """Return all kinds of files that are known and not read.

    >>> next(kind.what for kind in foreign_files() if kind.ending == ".ncu-rep")
    'a report of Nsight Compute'
    """
    rows = rows_of(FILE, ("ending", "begins", "is", "do"))
    return tuple(Foreign(row["ending"], bytes.fromhex(row["begins"]), row["is"], row["do"]) for row in rows)
