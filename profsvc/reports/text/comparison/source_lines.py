"""Two launches compared line by line, as text for a terminal."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from profsvc.errors import counted
from profsvc.reports.rows import visible
from profsvc.reports.text.cells import fitted_table, page_of
from profsvc.reports.text.launches.source_lines import file_names
from profsvc.reports.text.runs.wall_time import duration

Row = Mapping[str, Any]
COLUMNS = ("before", "after", "change", "stall", "where", "source")
TAB_WIDTH = 4
SHOWN = 20
"""Lines that are shown unless all are asked for."""


def source_changes(before: Row, after: Row, rows: Sequence[Row], width: int | None = None, *, every: bool) -> str:
    """Return what each line takes before and after; ``before`` and ``after`` are the views of both launches."""
    return page_of(_page(before, after, rows, width, every))


def _page(before: Row, after: Row, rows: Sequence[Row], width: int | None, every: bool) -> Iterator[str]:
    launches = (
        f"#{view['launch']['launch_index']} {view['launch']['kernel']} of {view['run']['name']}"
        for view in (before, after)
    )
    yield from (f"{word} {name}" for word, name in zip(("before:", "after: "), launches, strict=True))
    yield ""
    shown = rows if every else rows[:SHOWN]
    names = file_names(row["file"] for row in rows)
    yield from fitted_table(COLUMNS, [_row(row, names) for row in shown], width, ("stall",)) if shown else ["no lines"]
    yield ""
    if len(rows) > len(shown):
        yield f"not shown: {counted(len(rows) - len(shown), 'line')} with less change. All: --all"
    yield "before, after: the share of the samples of the launch that the line has, of its duration where that is known"


def _row(row: Row, names: Mapping[str | None, str]) -> dict[str, str]:
    places = [row["source_line_before"], row["source_line"]]
    stalls = [row["main_stall_before"], row["main_stall"]]
    return {
        "before": _amount(row["time_ns_before"], row["samples_fraction_before"]),
        "after": _amount(row["time_ns"], row["samples_fraction"]),
        "change": ""
        if row["change_ns"] is None
        else f"{'-' if row['change_ns'] < 0 else '+'}{duration(abs(row['change_ns']))}",
        "stall": _then(stalls),
        "where": f"{names[row['file']]}:{_then(places)}",
        "source": visible((row["source_text"] or "(no source text)").expandtabs(TAB_WIDTH).strip()),
    }


def _amount(time_ns: float | None, share: float | None) -> str:
    if share is None:
        return "-"
    return f"{100 * share:.1f} %" if time_ns is None else duration(time_ns)


def _then(values: Sequence[Any]) -> str:
    """Return the value before and after; one if they are equal.

    >>> _then([9, 12]), _then(["Wait", "Wait"]), _then([None, 3])
    ('9 -> 12', 'Wait', '3')
    """
    return " -> ".join(str(value) for value in dict.fromkeys(values) if value is not None)
