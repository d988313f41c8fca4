"""Reads a table that a user gives: CSV with a comma, semicolon or tab, or rows of JSON."""

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from profsvc.errors import NotFoundError, UsageError, wrong_cell_count
from profsvc.views.calculators.declaration import Input
from profsvc.views.calculators.units import factor_to, shown, split_number

MAX_TEXT_BYTES = 900_000
"""Below the size limit of a request."""
MAX_ROWS, MAX_COLUMNS = 10_000, 200
HEAD = re.compile(r"(.*?)\s*(?:[(\[]([^()\[\]]*)[)\]])?\s*", re.DOTALL)
ValueOf = Callable[[Input, Any], Any]


def read_table(one: Input, given: Any, value_of: ValueOf) -> list[dict[str, Any]]:
    """Return the rows of a table by column; every cell is checked like an input."""
    lines = _rows_of_json(given) if isinstance(given, list) else _lines_of_csv(given)
    _, head = next(lines, (0, []))
    columns = _columns(one, head)
    rows: list[dict[str, Any]] = []
    most = int(min(MAX_ROWS, one.maximum))
    for line, cells in lines:
        if len(cells) != len(columns):
            raise UsageError(f"line {line}: {wrong_cell_count(len(cells), len(columns))}")
        if len(rows) == most:
            raise UsageError(f"it has more than {most} rows")
        rows.append(_row(one, line, columns, cells, value_of))
    if not rows:
        raise UsageError(f"it has no rows; needed: the columns {', '.join(c.name for c in one.columns)}, and rows")
    return rows


def _row(
    one: Input, line: int, columns: Sequence[tuple[Input, str]], cells: Sequence[Any], value_of: ValueOf
) -> dict[str, Any]:
    found: dict[str, Any] = {column.name: None for column in one.columns}
    for (column, unit), cell in zip(columns, cells, strict=True):
        try:
            if unit and isinstance(cell, str) and cell.strip():
                cell = split_number(cell)[0] * factor_to(unit, column.unit)
            found[column.name] = value_of(column, cell)
        except UsageError as error:
            raise UsageError(f"line {line}, {column.name}: {error}") from None
    for column in one.columns:
        if found[column.name] is None and column.default:
            found[column.name] = value_of(column, None)
    return found


def _columns(one: Input, head: Sequence[str]) -> list[tuple[Input, str]]:
    """Return the columns that the head names, each with the unit in its title."""
    known = {column.name: column for column in one.columns}
    found: list[tuple[Input, str]] = []
    for title in head:
        name, unit = _name_and_unit(str(title))
        if name in {column.name for column, _ in found}:
            raise UsageError(f"line 1: there are two columns {shown(name)}")
        if name not in known and not (one.more_columns and name):
            raise UsageError(f"line 1: {NotFoundError.near('column', name, known)}")
        found.append((known.get(name) or Input(name, one.more_columns), unit))
    present = {column.name for column, _ in found}
    if missing := [column.name for column in one.columns if column.default is None and column.name not in present]:
        raise UsageError(
            f"line 1: the column {' and '.join(missing)} is missing; it has {', '.join(present) or 'none'}"
        )
    return found


def _name_and_unit(title: str) -> tuple[str, str]:
    """Return the name of a column and its unit.

    >>> _name_and_unit("Power (mW)"), _name_and_unit("active SMs")
    (('power', 'mW'), ('active_sms', ''))
    """
    found = HEAD.fullmatch(title.strip())
    name, unit = (found[1], found[2]) if found else (title, "")
    return re.sub(r"[\s-]+", "_", name.strip().lower()), (unit or "").strip()


def _lines_of_csv(given: Any) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines with their numbers, the head first; lines that are blank or begin with # are skipped."""
    if not isinstance(given, str):
        raise UsageError(f"{shown(given)} is not a table as CSV")
    if len(given) > MAX_TEXT_BYTES:
        raise UsageError(f"it has {len(given)} characters; allowed: {MAX_TEXT_BYTES}")
    if "\0" in given:
        raise UsageError("it holds NUL characters, so it is not CSV")
    text = given.removeprefix("\ufeff")
    head = next((line for line in text.splitlines() if line.strip() and not line.startswith("#")), "")
    delimiter = max(",;\t", key=head.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        for cells in reader:
            if len(cells) > MAX_COLUMNS:
                raise UsageError(f"line {reader.line_num}: it has more than {MAX_COLUMNS} cells")
            if any(cell.strip() for cell in cells) and not cells[0].startswith("#"):
                yield reader.line_num, cells
    except csv.Error as error:
        raise UsageError(f"line {reader.line_num}: {error}") from None


def _rows_of_json(given: Sequence[Any]) -> Iterator[tuple[int, list[Any]]]:
    """Yield the names of rows given as objects, then their values; rows count from line 2, as in a file."""
    names: dict[str, None] = {}
    for line, row in enumerate(given, 2):
        if not isinstance(row, Mapping):
            raise UsageError(f"line {line}: {shown(row)} is not an object of columns")
        names |= dict.fromkeys(map(str, row))
    yield 1, [*names]
    for line, row in enumerate(given, 2):
        yield line, [row.get(name) for name in names]
