"""Opens the tables under ``profsvc/data`` and says which file and which row is wrong."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from profsvc.errors import DomainError, NotFoundError, UsageError

DATA = Path(__file__).parents[1] / "data"
Capability = tuple[int, int]
"""Compute capability as (major, minor), so that 10.0 stands above 9.0."""

ANY: tuple[Capability, Capability] = ((0, 0), (999, 999))
"""From the lowest to the highest capability."""

TOOLS = ("ncu", "nvprof", "nsys", "meter", "sensor", "kineto", "rocprof")


@dataclass(frozen=True)
class Row:
    """One row of a CSV table, with the place it stands at."""

    file: str
    line: int
    cells: Mapping[str, str]

    def __getitem__(self, column: str) -> str:
        """Return the cell of ``column``."""
        return self.cells[column]

    def wrong(self, what: str) -> DomainError:
        """Return the error that this row is wrong."""
        return DomainError(f"{self.file} line {self.line}: {what}")

    def number(self, column: str) -> float:
        """Return the cell of ``column`` as a number."""
        try:
            return float(self[column])
        except ValueError:
            raise self.wrong(f"{column} must be a number but is {self[column]!r}") from None

    def capability(self, column: str, default: Capability) -> Capability:
        """Return the cell of ``column`` as a compute capability; ``default`` if it is empty."""
        if not self[column]:
            return default
        try:
            return capability(self[column])
        except ValueError:
            raise self.wrong(f"{column} must be a compute capability such as 9.0 but is {self[column]!r}") from None

    def one_of(self, column: str, allowed: Sequence[str]) -> str:
        """Return the cell of ``column``, which must be among ``allowed``."""
        if self[column] not in allowed:
            raise self.wrong(f"{column} must be one of {list(allowed)} but is {self[column]!r}")
        return self[column]


def capability(text: str) -> Capability:
    """Read a compute capability.

    >>> capability("9.0") < capability("10.0")
    True
    """
    major, minor = text.split(".")
    return int(major), int(minor)


def capability_range(text: str | None) -> tuple[Capability, Capability]:
    """Return the capability twice, or all of them if it is not known.

    >>> capability_range("8.6")
    ((8, 6), (8, 6))
    """
    if text is None:
        return ANY
    try:
        return capability(text), capability(text)
    except ValueError:
        raise UsageError(f"a compute capability is written as 9.0, not as {text!r}") from None


def known_tool(tool: str) -> str:
    """Return ``tool`` if its metrics are known."""
    if tool not in TOOLS:
        raise NotFoundError.near("tool", tool, TOOLS)
    return tool


def text_of(name: str) -> str:
    """Return the text of the data file ``name``."""
    return (DATA / name).read_text(encoding="utf-8")


def rows_of(name: str, columns: Sequence[str], text: str | None = None) -> Iterator[Row]:
    """Yield the rows of the CSV ``name``, which must have exactly ``columns``."""
    lines = csv.reader((text_of(name) if text is None else text).splitlines())
    header = next(lines, [])
    if header != list(columns):
        raise DomainError(f"{name} line 1: needs the columns {list(columns)} but has {header}")
    for cells in lines:
        if len(cells) != len(header):
            raise DomainError(f"{name} line {lines.line_num}: needs {len(header)} cells but has {len(cells)}")
        yield Row(name, lines.line_num, dict(zip(header, cells, strict=True)))


def tables_of(name: str, text: str | None = None) -> dict[str, dict[str, Any]]:
    """Return the tables of the TOML file ``name`` by their names."""
    import tomllib  # a question about rows reads no such file

    try:
        document = tomllib.loads(text_of(name) if text is None else text)
    except tomllib.TOMLDecodeError as error:
        raise DomainError(f"{name}: {error}") from None
    if stray := [key for key, value in document.items() if not isinstance(value, dict)]:
        raise DomainError(f"{name}: {stray} stand outside a table")
    return document


def tables_of_folder(name: str) -> dict[str, dict[str, Any]]:
    """Return the tables of the TOML files in the folder ``name`` by their names, each joined over the files."""
    joined: dict[str, dict[str, Any]] = {}
    for path in sorted((DATA / name).glob("*.toml")):
        file = f"{name}/{path.name}"
        for table, entries in tables_of(file).items():
            known = joined.setdefault(table, {})
            if twice := sorted(set(known) & set(entries)):
                raise DomainError(f"{file}: {table} {twice} stands in another file, too")
            known.update(entries)
    return joined
