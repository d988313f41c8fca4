"""The source of a launch as text for a terminal: the lines where most can be saved, then source beside SASS."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import PureWindowsPath
from typing import Any

from profsvc.errors import counted
from profsvc.kernel_names import NO_NAME
from profsvc.reports.rows import visible
from profsvc.reports.text.cells import fitted_table, page_of

Row = Mapping[str, Any]
TOP_LINES = 5
TOP_INSTRUCTIONS = 3
MAX_OTHERS = 10
TAB_WIDTH = 4
MAX_PARTS = 16
"""Folders of a path that its name may have."""
LEAST_DIFFERENCE = 0.01
"""From this on what a line causes, as a share of the time, stands beside its samples."""
INLINED = "inlined code is listed at several lines, and its samples count at each"
COLUMNS = ("samples", "stall", "instructions", "where", "source and SASS")


def source_lines(view: Mapping[str, Any], width: int | None = None, *, every: bool = False) -> str:
    """Return the source of a launch; with ``every``, all instructions of the lines."""
    return page_of(_page(view, width, every))


def _page(view: Mapping[str, Any], width: int | None, every: bool) -> Iterator[str]:
    launch, lines = view["launch"], view["lines"]
    yield f"#{launch['launch_index']} {launch['kernel'] or NO_NAME}"
    samples = "no samples" if launch["samples"] is None else counted(launch["samples"], "sample")
    unmatched = f"; launch unknown: {launch['reason']}" if launch["reason"] else ""
    yield f"   {samples}{unmatched}{f'; {INLINED}' if counts_twice(view) else ''}"
    names = file_names(line["file"] for line in lines)
    for line in lines[:TOP_LINES]:
        if line["samples"] or line.get("time_fraction"):
            yield f"   {summary(line, names)}"
    yield ""
    rows = [row for line in sorted(lines, key=_by_line) for row in _rows(line, names, every)]
    for text in fitted_table(COLUMNS, rows, None if width is None else width - 3, ("instructions",)):
        yield f"   {text}"
    hidden = view["lines_in_all"] - len(lines)
    left_out = 0 if every else sum(len(line["sass"]) - len(_instructions(line, every)) for line in lines)
    if hidden or left_out:
        yield ""
        named = [counted(hidden, "line")] * bool(hidden) + [counted(left_out, "instruction")] * bool(left_out)
        yield f"   not shown: {' and '.join(named)} where less can be saved. All: --all"
    if view["others"]:
        yield ""
        listed = ": " + ", ".join(f"#{one['launch_index']}" for one in view["others"][:MAX_OTHERS])
        others = counted(len(view["others"]), "launch")
        yield f"   {others} with fewer samples{listed}. One of them: --kernel NUMBER"


def counts_twice(view: Mapping[str, Any]) -> bool:
    """Return whether the lines of a launch have visibly more samples together than it has.

    >>> counts_twice({"launch": {"samples": 9}, "lines": [{"samples": 9}, {"samples": 8}, {"samples": None}]})
    True
    >>> counts_twice({"launch": {"samples": 9}, "lines": [{"samples": 9}]})
    False
    """
    of_launch = view["launch"]["samples"]
    return (
        of_launch is not None
        and sum(line["samples"] or 0 for line in view["lines"]) > (1 + LEAST_DIFFERENCE) * of_launch
    )


def file_names(files: Iterable[str | None]) -> dict[str | None, str]:
    """Return the shortest end of the path of each file that no other of them has.

    >>> file_names(["/solver/step.cu", "/src/mesh/step.cu", "/src/a.cu"])
    {'/solver/step.cu': 'solver/step.cu', '/src/mesh/step.cu': 'mesh/step.cu', '/src/a.cu': 'a.cu'}
    """
    paths = {file: PureWindowsPath(file or "").parts[-MAX_PARTS:] for file in dict.fromkeys(files)}
    ends: dict[tuple[str, ...], int] = {}
    for parts in paths.values():
        for begin in range(len(parts)):
            ends[parts[begin:]] = ends.get(parts[begin:], 0) + 1
    names = {}
    for file, parts in paths.items():
        own = (parts[begin:] for begin in reversed(range(len(parts))) if ends[parts[begin:]] == 1)
        names[file] = next((PureWindowsPath(*one).as_posix() for one in own), file or "")
    return names


def summary(line: Row, names: Mapping[str | None, str]) -> str:
    """Return a line with its share of the samples, its main stall reason, what it causes and why, as a sentence.

    ``names`` are those of its file, see `file_names`.

    >>> names = file_names(["/src/a.cu"])
    >>> summary({"file": "/src/a.cu", "source_line": 45, "address": None, "samples_fraction": 0.92,
    ...          "main_stall": "Long Scoreboard", "samples": 92}, names)
    'a.cu line 45: 92.0 % of the samples, Long Scoreboard'
    >>> summary({"file": "/src/a.cu", "source_line": 44, "address": None, "samples_fraction": 0.01,
    ...          "main_stall": "Wait", "samples": 1, "time_fraction": 0.92}, names)
    'a.cu line 44: 1.0 % of the samples, Wait; it causes 92.0 % of the time'
    >>> summary({"file": "/src/a.cu", "source_line": 44, "address": None, "samples_fraction": 0.92,
    ...          "main_stall": "Wait", "samples": 92, "time_fraction": 0.92, "main_cause_title": "Barriers",
    ...          "main_cause_fraction": 0.5}, names)
    'a.cu line 44: 92.0 % of the samples, Wait; Barriers: 50.0 % of the time'
    """
    share = counted(line["samples"], "sample")
    if line["samples_fraction"] is not None:
        share = f"{100 * line['samples_fraction']:.1f} % of the samples"
    caused = line.get("time_fraction")
    # Waits for what a line loads, or for its barrier, are sampled on other lines.
    told = ""
    if caused is not None and abs(caused - (line["samples_fraction"] or 0.0)) >= LEAST_DIFFERENCE:
        told = f"; it causes {100 * caused:.1f} % of the time"
    lost = line.get("main_cause_fraction") or 0.0
    if lost >= LEAST_DIFFERENCE:
        told += f"; {line['main_cause_title']}: {100 * lost:.1f} % of the time"
    return f"{_place(line, names)}: {', '.join(part for part in (share, line['main_stall']) if part)}{told}"


def _place(line: Row, names: Mapping[str | None, str]) -> str:
    if line["source_line"] is None:
        return f"instruction at {line['address']}"
    return f"{names[line['file']]} line {line['source_line']}".strip()


def _by_line(line: Row) -> tuple[str, int, int]:
    return line["file"] or "", line["source_line"] or 0, int(line["address"] or "0", 16)


def _instructions(line: Row, every: bool) -> list[Row]:
    """Return the instructions of a line to show, in the order of the code."""
    shown = [row for row in line["sass"] if row["samples"]][:TOP_INSTRUCTIONS] if not every else line["sass"]
    return sorted(shown, key=lambda row: int(row["address"], 16))


def _rows(line: Row, names: Mapping[str | None, str], every: bool) -> Iterator[dict[str, Any]]:
    where = "" if line["source_line"] is None else f"{names[line['file']]}:{line['source_line']}"
    yield _row(line, where or line["address"], line["source_text"] or line["sass_text"] or "(no source text)")
    for row in _instructions(line, every):
        yield _row(row, f"  {row['address']}", f"    {row['sass']}")


def _row(row: Row, where: str, text: str) -> dict[str, Any]:
    share = row["samples_fraction"]
    return {
        "samples": "" if share is None else f"{100 * share:5.1f} %",
        "stall": row["main_stall"] or "",
        "instructions": row["instructions"],
        "where": where,
        "source and SASS": visible(text.expandtabs(TAB_WIDTH)),
    }
