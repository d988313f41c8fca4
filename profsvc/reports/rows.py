"""Rows in the formats of ``-o``: table, csv, json, ndjson, md, parquet.

table and md show control characters and bidirectional marks as escapes. csv follows RFC 4180; a text that a spreadsheet
would run as a formula gets a ``'`` in front: one that starts with ``= + - @`` (also full-width or after spaces), a tab,
a carriage return or NUL, and is not a number. json, ndjson and parquet keep every text unchanged.
"""

import csv
import io
import json
import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

from profsvc.errors import UsageError

FORMATS = ("table", "csv", "json", "ndjson", "md", "parquet")
WIDTH = 160
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\0")
INVISIBLE = {"\u00ad", "\u180e", "\ufeff", *map(chr, range(32)), *map(chr, range(0x200B, 0x2010))} | {
    *map(chr, range(0x202A, 0x202F)),
    *map(chr, range(0x2060, 0x2070)),
}
SIGNED = re.compile(r"[+-](?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
MARKDOWN = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;"} | {sign: f"\\{sign}" for sign in ("\\", "|", "`", "*", "[", "]")}
)
Row = Mapping[str, Any]


def known(form: str) -> str:
    """Return ``form`` if it is an output format; raise `UsageError` otherwise."""
    if form not in FORMATS:
        raise UsageError(f"-o {form!r} is not an output format; choose one of {', '.join(FORMATS)}")
    return form


def plain(value: Any) -> Any:
    """Return ``value`` for JSON: NaN and infinities become null, numpy scalars Python numbers, bytes hex.

    >>> plain(float("nan")) is None, plain(2.5), plain({"a": [float("inf")]})
    (True, 2.5, {'a': [None]})
    """
    kind = type(value)
    if value is None or kind is str or kind is int or kind is bool:
        return value
    if kind is float:
        return value if math.isfinite(value) else None
    if kind is dict or isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, bytes):
        return value.hex()
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def visible(text: str) -> str:
    r"""Return ``text`` with control characters, line ends and bidirectional marks as escapes.

    >>> print(visible("saxpy\x1b[2J"))
    saxpy\x1b[2J
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def flat(value: Any) -> Any:
    """Return ``value`` for a table: an object or a list as JSON text.

    >>> flat({"branch": "main"}), flat(2.5)
    ('{"branch": "main"}', 2.5)
    """
    value = plain(value)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value


def cell(value: Any) -> str:
    """Return ``value`` as text: four significant digits, empty for null, control characters escaped.

    >>> cell(0.123456), cell(None), cell(1234567.0), cell(3)
    ('0.1235', '', '1234567', '3')
    """
    value = flat(value)
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, float):
        return visible(str(value))
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return f"{value:.0f}" if abs(value) >= 10000 else f"{value:.4g}"


def distinct(names: Sequence[str]) -> list[str]:
    """Number duplicate column names of a join.

    >>> distinct(["value", "value", "value_2"])
    ['value', 'value_3', 'value_2']
    """
    distinct: list[str] = []
    for place, name in enumerate(names):
        number, new = 1, name
        while new in distinct or (number > 1 and new in names[place + 1 :]):
            number += 1
            new = f"{name}_{number}"
        distinct.append(new)
    return distinct


def _table(columns: Sequence[str], rows: Sequence[Row], width: int | None) -> str:
    numeric = [all(isinstance(plain(r.get(c)), int | float | None) for r in rows) for c in columns]
    cells = [[cell(r.get(c)) for c in columns] for r in rows]
    headings = [visible(column) for column in columns]
    widths = [max(map(len, column)) for column in zip(headings, *cells, strict=True)]
    fits = not cells or sum(widths) + 2 * (len(widths) - 1) <= (width or WIDTH)  # without rows, whole names
    if fits and all(map(str.isascii, chain(headings, *cells))):
        return "".join(_aligned(line, widths, numeric) for line in [headings, *cells])
    return _wrapped(headings, cells, numeric, width or WIDTH)


def _aligned(line: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    """Return a line of a table that fits; that of `_wrapped`, which waits for rich, would be the same."""
    padded = [one.rjust(w) if right else one.ljust(w) for one, w, right in zip(line, widths, numeric, strict=True)]
    return "  ".join(padded).rstrip() + "\n"


def _wrapped(headings: Sequence[str], cells: Sequence[Sequence[str]], numeric: Sequence[bool], width: int) -> str:
    """Return a table whose texts continue on further lines, or that has wide characters."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for heading, right in zip(headings, numeric, strict=True):
        table.add_column(Text(heading), justify="right" if right else "left", no_wrap=right, overflow="ellipsis")
    for row in cells:
        table.add_row(*map(Text, row))
    text = io.StringIO()
    console = Console(file=text, width=width, color_system=None, highlight=False)
    console.print(table)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n"


def field(value: Any, raw: bool = False) -> Any:
    """Return a value as a CSV field that no spreadsheet runs as a formula; unchanged if ``raw``.

    >>> field("=1+1"), field("-1.5"), field("=1+1", raw=True), field(" \\uff1d1+1") == "' \\uff1d1+1"
    ("'=1+1", '-1.5', '=1+1', True)
    """
    value = flat(value)
    if not raw and isinstance(value, str) and _is_formula(value):
        return f"'{value}"
    return value


def _is_formula(text: str) -> bool:
    """Tell whether a spreadsheet may run a text, ignoring leading spaces, line ends and invisible characters."""
    if text.startswith(FORMULA[4:]):
        return True
    if text.isascii() and text[:1].isalnum():
        return False
    first = next((at for at, sign in enumerate(text) if not sign.isspace() and sign not in INVISIBLE), len(text))
    seen = text[first:]
    # Full-width and small signs count as well.
    return unicodedata.normalize("NFKC", seen[:1]).startswith(FORMULA[:4]) and not SIGNED.fullmatch(seen.rstrip())


class Lines:
    """The target of `csv`, which quotes carriage returns only if its lines end in CRLF; the CR is removed here."""

    def __init__(self, write: Callable[[str], object]) -> None:
        """Pass every line to ``write``."""
        self._write = write

    def write(self, line: str) -> None:
        """Write a line of `csv`."""
        self._write(line.removesuffix("\r\n") + "\n")


def _csv(columns: Sequence[str], rows: Sequence[Row], raw: bool) -> str:
    text = io.StringIO()
    writer = csv.writer(Lines(text.write), lineterminator="\r\n")
    writer.writerow([field(c, raw) for c in columns])
    writer.writerows([[field(r.get(c), raw) for c in columns] for r in rows])
    return text.getvalue()


def _markdown(columns: Sequence[str], rows: Sequence[Row]) -> str:
    def line(values: Sequence[Any]) -> str:
        return "| " + " | ".join(cell(value).translate(MARKDOWN) for value in values) + " |"

    body = [line([r.get(c) for c in columns]) for r in rows]
    return "\n".join([line(columns), "|" + "---|" * len(columns), *body]) + "\n"


def _parquet(columns: Sequence[str], rows: Sequence[Row]) -> bytes:
    import pyarrow
    import pyarrow.parquet

    def array(values: list[Any]) -> Any:
        try:
            return pyarrow.array(values)
        except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError):  # numbers and texts in one column
            return pyarrow.array([None if value is None else str(value) for value in values])

    table = pyarrow.table({c: array([flat(r.get(c)) for r in rows]) for c in columns})
    sink = io.BytesIO()
    pyarrow.parquet.write_table(table, sink)
    return sink.getvalue()


def render(
    columns: Sequence[str],
    rows: Sequence[Row],
    form: str,
    truncated: bool = False,
    width: int | None = None,
    raw: bool = False,
) -> str | bytes:
    """Return ``rows`` in ``form``; only the given columns in their order; ``raw`` keeps formulas in csv.

    >>> print(render(["kernel", "us"], [{"kernel": "k<1>", "us": 2.5}], "csv"), end="")
    kernel,us
    k<1>,2.5
    """
    if known(form) == "table":
        return _table(columns, rows, width)
    if form == "csv":
        return _csv(columns, rows, raw)
    if form == "md":
        return _markdown(columns, rows)
    if form == "parquet":
        return _parquet(columns, rows)
    records = [{c: plain(r.get(c)) for c in columns} for r in rows]
    if form == "ndjson":
        return "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records)
    whole = {"ok": True, "columns": list(columns), "rows": records, "truncated": truncated}
    return json.dumps(whole, ensure_ascii=False, indent=1) + "\n"
