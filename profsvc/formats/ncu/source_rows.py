"""Rows of source pages of Nsight Compute: the header of a table, the cells of a row, and the tidy tables made of them.

Cells are written in quotes, but quotes inside source text are not doubled. So a row is split from its end: the metrics
behind the text hold no quotes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from profsvc.formats.ncu import launches as ncu_launches
from profsvc.formats.parsing.records import MAX_TEXT_CHARS, split_cells
from profsvc.specs.metrics.source_columns import COUNT, NOT_ISSUED, STALL, TEXT, SourceColumn, source_columns
from profsvc.tables import TABLES, ColumnTable, Table

NO_CELL = ("", "-")
"""Cells that say nothing."""
_SEPARATOR = '","'
_LEADING = {"Address": "address", "# Address": "address", "Line No": "line", "# Line": "line", "#": "line"}
_OPCODE = re.compile(r"(?:@!?\w+\s+)?([A-Z][\w.]*)")
# Counts are integers, so three digits behind a sign are thousands; --print-fp adds zeros behind the decimal sign.
_COUNT = re.compile(r"([0-9]{1,3}(?:([,. '\u2019\u00a0\u202f\u2009])[0-9]{3})(?:\2[0-9]{3})*|[0-9]+)(?:[.,]0+)?")
_INT64_DIGITS = 18


class Header(NamedTuple):
    """The columns of a table: what the leading cells are, and the place of each metric behind them.

    ``numbers`` has the first place of a line number and of an address among the leading cells, ``sources`` that of the
    text behind each.
    """

    cells: int
    leading: tuple[str, ...]
    numbers: Mapping[str, int]
    sources: Mapping[str, int]
    counts: tuple[tuple[int, str], ...]
    texts: tuple[tuple[int, str], ...]
    stalls: tuple[tuple[int, str, str], ...]
    unknown: tuple[str, ...]


def column_of(name: str) -> SourceColumn | None:
    """Return what a column holds, under its label, the name of its metric, or both.

    >>> column_of("stall_lg"), column_of("stall_new (Not Issued)")
    (SourceColumn(kind='stall', name='LG Throttle'), SourceColumn(kind='not_issued', name='stall_new'))
    """
    known = source_columns()
    if found := known.get(name) or known.get(ncu_launches.metric_name(name)):
        return found
    if not name.startswith("stall_"):
        return None
    plain = name.removesuffix(" (Not Issued)")
    return SourceColumn(STALL if plain == name else NOT_ISSUED, plain)


def parse_source_header(line: str) -> Header | None:
    """Return the columns of the header of a source page, None if ``line`` is none."""
    if "Source" not in line:
        return None
    cells = split_cells(line.strip())
    if len(cells) > 1 and not cells[-1]:
        cells.pop()
    kinds = [_LEADING.get(cell, "source" if cell == "Source" else "") for cell in cells[:5]]
    leading = kinds[: kinds.index("")] if "" in kinds else kinds
    if leading[:1] == ["line"] and leading[1:2] == ["address"]:  # a number before the address of an instruction
        leading[0] = "number"
    if "source" not in leading or leading[0] == "source":
        return None
    named = [(place, column_of(name), name) for place, name in enumerate(cells[len(leading) :])]
    known = [(place, column.kind, column.name) for place, column, _ in named if column]
    return Header(
        len(cells),
        tuple(leading),
        {what: leading.index(what) for what in leading},
        text_places(leading),
        tuple((place, name) for place, kind, name in known if kind == COUNT),
        tuple((place, name) for place, kind, name in known if kind == TEXT),
        tuple((place, kind, name) for place, kind, name in known if kind in (STALL, NOT_ISSUED)),
        tuple(dict.fromkeys(name for _, column, name in named if column is None)),
    )


def split_row(text: str, header: Header) -> list[str]:
    """Return the cells of a row, the leading ones first; another number of them if it does not fit the header.

    >>> header = parse_source_header('"Line No","Source","Address","Source","# Samples","stall_lg"')
    >>> split_row('"81","asm volatile ("mov %0, %1;" : "=r"(a), "r"(b));","-","-","12","7"', header)
    ['81', 'asm volatile ("mov %0, %1;" : "=r"(a), "r"(b));', '-', '-', '12', '7']
    """
    text = text.strip()
    if not text.startswith('"'):
        return split_cells(text)
    if not text.endswith(('"', '",')) or len(text) < 2:
        return []
    body = text.removesuffix(",")[1:-1]
    if len(cells := body.split(_SEPARATOR)) == header.cells:
        return cells
    head, *metrics = body.rsplit(_SEPARATOR, header.cells - len(header.leading))
    first, *rest = head.split(_SEPARATOR, 1)
    leading = [first, *(rest[0].rsplit(_SEPARATOR, len(header.leading) - 2) if rest else [])]
    if header.leading[:1] == ("number",) and rest:
        leading = [first, *rest[0].split(_SEPARATOR, len(header.leading) - 2)]
    return [*leading, *metrics]


@lru_cache(maxsize=1 << 14)  # most cells are one of few numbers
def parse_count(cell: str) -> int | None:
    """Return a whole number, with signs of thousands or zeros behind a decimal sign; None if it is none.

    >>> parse_count("1,234"), parse_count("35.000000"), parse_count("1.5")
    (1234, 35, None)
    """
    if cell.isascii() and cell.isdigit() and len(cell) <= _INT64_DIGITS:
        return int(cell)
    match = _COUNT.fullmatch(cell.strip())
    digits = re.sub("[^0-9]", "", match[1]) if match else ""
    return int(digits) if digits and len(digits) <= _INT64_DIGITS else None


def opcode_of(sass: str) -> str | None:
    """Return the opcode of an instruction with its modifiers.

    >>> opcode_of("@!P0  LDG.E.CONSTANT R3, desc[UR6][R10.64]")
    'LDG.E.CONSTANT'
    """
    match = _OPCODE.match(sass.strip())
    return match[1] if match else None


class SourceRows:
    """Rows of the tidy tables until the next batch."""

    def __init__(self) -> None:
        """Begin without rows."""
        self.tables: dict[str, list[Mapping[str, object]]] = {}

    def add(self, table: str, row: Mapping[str, object]) -> None:
        """Add a row; columns that it lacks are null."""
        self.tables.setdefault(table, []).append(row)

    def take(self) -> dict[str, Table]:
        """Return the tables and begin new ones."""
        tables, self.tables = self.tables, {}
        return {
            name: ColumnTable.of_values(
                name, {column.name: [row.get(column.name) for row in rows] for column in TABLES[name]}
            )
            for name, rows in tables.items()
        }


def text_places(leading: Sequence[str]) -> dict[str, int]:
    """Return the place of the text behind each leading number: of the source line, and of the instruction."""
    return {what: place + 1 for place, what in enumerate(leading[:-1]) if leading[place + 1] == "source"}


def stored_text(text: str) -> str | None:
    """Return a text of a source page as it is stored: cut, and null for a dash."""
    return None if text in NO_CELL else text[:MAX_TEXT_CHARS]
