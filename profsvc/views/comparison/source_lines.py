"""Two launches compared line by line: what each source line takes, before and after."""

from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

Row = Mapping[str, Any]
Key = tuple[str, str | int, int]
COLUMNS = (
    "file", "source_line_before", "source_line", "source_text", "time_ns_before", "time_ns", "change_ns",
    "samples_fraction_before", "samples_fraction", "main_stall_before", "main_stall", "instructions_before",
    "instructions", "l2_sectors_before", "l2_sectors",
)  # fmt: skip
_COMPARED = ("samples_fraction", "main_stall", "instructions", "l2_sectors")


def source_changes(before: Row, after: Row, took: tuple[float | None, float | None]) -> list[dict[str, Any]]:
    """Return a row with `COLUMNS` for each source line of two views of source lines, most change first.

    ``took`` are the durations of both launches in ns. A line takes its share of the samples of its launch; where a
    duration is unknown, times are None, and lines are in the order of the change of their share. Lines are the same if
    their file has the same name and they have the same text, whatever their number; without a text, the same number.
    A line that only one of both has is None in the other.
    """
    sides = [_by_key(view["lines"]) for view in (before, after)]
    rows = []
    for key in dict.fromkeys([*sides[1], *sides[0]]):
        old, new = (side.get(key) for side in sides)
        shown = new or old or {}
        row: dict[str, Any] = {
            "file": shown["file"],
            "source_line_before": None if old is None else old["source_line"],
            "source_line": None if new is None else new["source_line"],
            "source_text": shown["source_text"] or shown["sass_text"],
        }
        for suffix, one, whole in (("_before", old, took[0]), ("", new, took[1])):
            share = 0.0 if one is None else one["samples_fraction"]
            row[f"time_ns{suffix}"] = None if share is None or whole is None else share * whole
            row |= {f"{name}{suffix}": None if one is None else one[name] for name in _COMPARED}
        times = row["time_ns"], row["time_ns_before"]
        row["change_ns"] = None if None in times else times[0] - times[1]
        rows.append({name: row[name] for name in COLUMNS})
    return sorted(rows, key=_change, reverse=True)


def _change(row: Row) -> float:
    if row["change_ns"] is not None:
        return abs(float(row["change_ns"]))
    return abs(float(row["samples_fraction"] or 0.0) - float(row["samples_fraction_before"] or 0.0))


def _by_key(lines: Iterable[Row]) -> dict[Key, Row]:
    """Return lines by file, text, and how many lines with this text come before."""
    found: dict[Key, Row] = {}
    for line in sorted(lines, key=_place):
        text = (line["source_text"] or line["sass_text"] or "").strip() or line["source_line"] or 0
        same = PurePath(line["file"] or "").name, text
        number = 0
        while (*same, number) in found:
            number += 1
        found[*same, number] = line
    return found


def _place(line: Row) -> tuple[str, int, str]:
    return line["file"] or "", line["source_line"] or 0, line["address"] or ""
