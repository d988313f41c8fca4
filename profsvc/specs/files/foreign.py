"""Files that are known and not read: how to recognize them, and what to upload instead."""

import re
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from profsvc.specs.table_files import rows_of

FILE, TEXTS_FILE = "files/foreign_files.csv", "files/foreign_texts.csv"


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


class ForeignText(NamedTuple):
    """A kind of text: the pattern of a line that only it has, what it is, what to do."""

    pattern: re.Pattern[str]
    what: str
    do: str


@cache
def foreign_texts() -> tuple[ForeignText, ...]:
    """Return all kinds of texts that are known and not read."""
    rows = rows_of(TEXTS_FILE, ("pattern", "is", "do"))
    return tuple(ForeignText(re.compile(row["pattern"]), row["is"], row["do"]) for row in rows)


def foreign_text(lines: Iterable[str]) -> ForeignText | None:
    """Return the first kind of text that one of these lines shows; None if it is none that is known.

    >>> foreign_text(["| NVIDIA-SMI 535.129.03   Driver Version: 535.129.03 |"]).what
    'the table of nvidia-smi for people'
    """
    known = list(lines)
    return next((kind for kind in foreign_texts() if any(map(kind.pattern.search, known))), None)
