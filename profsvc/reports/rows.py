"""Rows in the formats of ``-o``: table, csv, json, ndjson, md, parquet.

Data goes to stdout as it is; words go to stderr. A cut result says so in every format that has a place for it.
"""

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from profsvc.errors import UsageError

FORMATS = ("table", "csv", "json", "ndjson", "md", "parquet")
Row = Mapping[str, Any]


def plain(value: Any) -> Any:
    """Return ``value`` as JSON can hold it: NaN and infinities become null, numpy scalars Python numbers.

    >>> plain(float("nan")) is None, plain(2.5)
    (True, 2.5)
    """
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def cell(value: Any) -> str:
    """Return ``value`` as a person reads it: four significant digits, nothing for null.

    >>> cell(0.123456), cell(None), cell(1234567.0), cell(3)
    ('0.1235', '', '1234567', '3')
    """
    value = plain(value)
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, float):
        return str(value)
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return f"{value:.0f}" if abs(value) >= 10000 else f"{value:.4g}"


def _table(columns: Sequence[str], rows: Sequence[Row], width: int | None) -> str:
    numeric = {c for c in columns if all(isinstance(plain(r.get(c)), int | float | None) for r in rows)}
    table = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for column in columns:
        right = column in numeric
        table.add_column(column, justify="right" if right else "left", no_wrap=right, overflow="ellipsis")
    for row in rows:
        table.add_row(*[Text(cell(row.get(c))) for c in columns])
    console = Console(file=io.StringIO(), width=width or 160, color_system=None, highlight=False)
    console.print(table)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines()) + "\n"  # type: ignore[attr-defined]


def _csv(columns: Sequence[str], rows: Sequence[Row]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([["" if (v := plain(r.get(c))) is None else v for c in columns] for r in rows])
    return out.getvalue()


def _markdown(columns: Sequence[str], rows: Sequence[Row]) -> str:
    def line(values: Sequence[str]) -> str:
        escaped = (v.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ").replace("<", "&lt;") for v in values)
        return "| " + " | ".join(escaped) + " |"

    body = [line([cell(r.get(c)) for c in columns]) for r in rows]
    return "\n".join([line(columns), "|" + "---|" * len(columns), *body]) + "\n"


def _parquet(columns: Sequence[str], rows: Sequence[Row]) -> bytes:
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError as error:
        raise UsageError("-o parquet needs pyarrow; install it with: pip install 'profsvc[parquet]'") from error
    table = pyarrow.table({c: [plain(r.get(c)) for r in rows] for c in columns})
    sink = io.BytesIO()
    pyarrow.parquet.write_table(table, sink)
    return sink.getvalue()


def render(
    columns: Sequence[str], rows: Sequence[Row], form: str, truncated: bool = False, width: int | None = None
) -> str | bytes:
    """Return ``rows`` in ``form``; only the given columns, in their order.

    >>> print(render(["kernel", "us"], [{"kernel": "k<1>", "us": 2.5}], "csv"), end="")
    kernel,us
    k<1>,2.5
    """
    if form == "table":
        return _table(columns, rows, width)
    if form == "csv":
        return _csv(columns, rows)
    if form == "md":
        return _markdown(columns, rows)
    if form == "parquet":
        return _parquet(columns, rows)
    records = [{c: plain(r.get(c)) for c in columns} for r in rows]
    if form == "ndjson":
        return "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records)
    if form == "json":
        whole = {"ok": True, "columns": list(columns), "rows": records, "truncated": truncated}
        return json.dumps(whole, ensure_ascii=False, indent=1) + "\n"
    raise UsageError(f"-o {form!r} is not an output format; choose one of {', '.join(FORMATS)}")
