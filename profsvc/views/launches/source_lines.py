"""The source of a launch: its lines and instructions by samples, with their stall reasons."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from profsvc import store
from profsvc.analysis.source_code.inlined import Line
from profsvc.analysis.source_code.line_times import is_of_toolkit, times_by_cause
from profsvc.errors import NotFoundError
from profsvc.kernel_names import matching_kernels
from profsvc.specs.advice.causes import causes as causes_by_name
from profsvc.store.schema.contents.source import COUNTS

if TYPE_CHECKING:
    from sqlalchemy import Engine

LINES = 20
"""Default number of lines shown."""
MAX_ROWS = 10_000
"""Lines, and instructions, of a launch that are considered: those with most samples."""
MAX_OTHERS = 100
OF_NO_CAUSE = 0.2
"""What time of a line that no cause explains counts beside what causes save there, for the order of lines.

A line with most of the time need not lose any. Of 506 flawed lines 471 come first with this, and 456 if both count
alike; with 0.1 to 0.5 it is 467 to 471. With 0, lines of launches at their limit are in no order."""
SELECTED = "Selected"
EXPORT = "ncu -i REPORT.ncu-rep --csv --page source --print-source cuda,sass > source.csv"
_PLACE = ("line_id", "kind", "file", "source_line", "source_text")
_OWN = ("address", "opcode", "sass", "repeated", "access_operation", "address_space", "access_size")
_SHOWN = ("samples_fraction", "main_stall", "threads_per_instruction", *COUNTS)

Row = dict[str, Any]


@store.snapshot
def source_lines(engine: "Engine", run_name: str | int, kernel: str = "", limit: int | None = LINES) -> Row:
    """Return the source lines of a launch, those where most can be saved first, each with its instructions.

    ``kernel`` is a launch number, ``id:`` and a launch_id, or a name or part of it; of several launches the one with
    most samples is shown and ``others`` lists the rest. Each line has ``time_fraction``, the share of the time that it
    causes (see `profsvc.analysis.source_code.line_times`), and ``saving_fraction``, the part of it that causes could
    save. Lines are ordered by the saving and a fifth of the other time, or by samples where machine code or samples
    are missing. Without line information every instruction is a line, ordered in the same way. ``main_cause`` is the
    cause that has most of a line's time, with ``main_cause_fraction`` of that of the launch; None where none lies on
    it.
    """
    run_id = store.find_run(engine, run_name)
    info = store.parse_json_columns("v1_runs", store.select(engine, "v1_runs", run_id=run_id))[0]
    meant = _meant(store.launches_with_source(engine, run_id), run_name, kernel)
    meant.sort(key=lambda one: (-(one["samples"] or 0), one["source_id"]))
    chosen = meant[0]
    others = {(one["launch_id"], one["source_id"] * (one["launch_id"] is None)): one for one in meant[1:]}
    others.pop((chosen["launch_id"], chosen["source_id"] * (chosen["launch_id"] is None)), None)
    lines = _lines(engine, run_id, chosen)
    shown = lines if limit is None else lines[:limit]
    _add_stalls(engine, shown)
    return {
        "run": info,
        "launch": chosen,
        "others": list(others.values())[:MAX_OTHERS],
        "lines": shown,
        "lines_in_all": len(lines),
    }


def _meant(launches: Sequence[Row], run_name: str | int, kernel: str) -> list[Row]:
    """Return the launches with source that a name or number means."""
    if not launches:
        raise NotFoundError(f"run {run_name!r} has no source page; upload one made with:\n{EXPORT}")
    if not kernel:
        return list(launches)
    if numbered := re.fullmatch(r"id:(\d+)", kernel, re.ASCII):
        found = [one for one in launches if one["launch_id"] == int(numbered[1])]
        if not found:
            raise NotFoundError(f"no source page of run {run_name!r} has the launch with the launch_id {numbered[1]}")
        return found
    if re.fullmatch(r"#?\d+", kernel, re.ASCII):
        index = int(kernel.lstrip("#"))
        found = [one for one in launches if one["launch_index"] == index]
        if not found:
            raise NotFoundError(f"no source page of run {run_name!r} has launch #{index}; see v1_source_kernels")
        return found
    meant = set(matching_kernels(kernel, [one["kernel"] for one in launches]))
    found = [one for one in launches if one["kernel"] in meant]
    found = found or [one for one in launches if kernel in one["kernel"]]
    if not found:
        raise NotFoundError.near("kernel with a source page", kernel, {str(one["kernel_short"]) for one in launches})
    return found


def _rows(engine: "Engine", run_id: int, launch: Row, kind: str) -> list[Row]:
    """Return the rows of one kind with most samples."""
    by = "source_id" if launch["launch_id"] is None else "launch_id"
    asked = [("run_id", run_id), (by, launch[by]), ("kind", kind)]
    only = [store.Condition(column, "", str(value)) for column, value in asked]
    columns = (*_PLACE, *_OWN, *_SHOWN)
    view = "v1_source_lines"
    return store.list_view(engine, view, only, columns=columns, order=["-samples"], limit=MAX_ROWS).rows


def _lines(engine: "Engine", run_id: int, launch: Row) -> list[Row]:
    """Return all lines, those where most can be saved first, each with its instructions in ``sass``."""
    instructions = _rows(engine, run_id, launch, "instruction")
    of_line: dict[tuple[Any, Any], list[Row]] = {}
    for row in instructions:
        of_line.setdefault((row["file"], row["source_line"]), []).append(row)
    lines = _rows(engine, run_id, launch, "line")
    if not lines and any(line is not None for _, line in of_line):
        lines = [_sum(rows, launch) for rows in of_line.values()]
    lines = lines or _rows(engine, run_id, launch, "ptx") or instructions
    texts = {(row["file"], row["source_line"]): row["source_text"] or "" for row in lines if row["kind"] == "line"}
    times = _times(engine, run_id, launch["launch_id"], instructions, texts)
    for line in lines:
        known = times if line["kind"] == "line" or lines is instructions else {}
        line |= _caused(known, _place(line))
        line["sass_text"] = line["sass"]  # of an instruction without a source line
        own = of_line.get((line["file"], line["source_line"]), []) if line["kind"] == "line" else []
        line["sass"] = [{name: row[name] for name in ("line_id", *_OWN, *_SHOWN)} for row in own]
    return sorted(
        lines,
        key=lambda row: (
            -_weight(row),
            -(row["samples"] or 0),
            row["file"] or "",
            row["source_line"] or 0,
        ),
    )


def _times(
    engine: "Engine", run_id: int, launch_id: int | None, instructions: Sequence[Row], texts: Mapping[Line, str]
) -> dict[str | None, dict[Line, float]]:
    """Return the share of the time that each line causes, by cause and `_place`; empty without machine code.

    Without line information each instruction is a line.
    """
    places = {row["address"]: row for row in reversed(instructions) if row["sass"] and not row["repeated"]}
    # An instruction of a header of the toolkit may stand at the line that calls it, too.
    callers = {row["address"]: _place(row) for row in reversed(instructions) if not is_of_toolkit(row["file"] or "")}
    for address, row in places.items():
        file, line = callers.get(address, _place(row))
        if row["file"] is not None and is_of_toolkit(row["file"]):
            places[address] = row | {"file": file, "source_line": line}
    rows = sorted(places.values(), key=lambda row: int(row["address"], 16))
    if all(row["source_line"] is None for row in rows):
        rows = [row | dict(zip(("file", "source_line"), _place(row), strict=True)) for row in rows]
    stalls = store.stalls_of_lines(engine, [row["line_id"] for row in rows])
    causes = [] if launch_id is None else store.launch_rows(engine, "v1_causes", run_id, [launch_id])
    return times_by_cause([row | {"stalls": stalls.get(row["line_id"], {})} for row in rows], causes, texts)


def _place(row: Row) -> Line:
    """Return the file and line of a row; of an instruction without a line, its address in place of the line."""
    if row["source_line"] is not None or row["address"] is None:
        return row["file"], row["source_line"]
    return None, int(row["address"], 16)


def _weight(line: Row) -> float:
    """Return what the order of lines goes by.

    >>> _weight({"time_fraction": 0.75, "saving_fraction": 0.25})
    0.35
    >>> _weight({"time_fraction": None, "saving_fraction": None})
    0.0
    """
    saving = line["saving_fraction"] or 0.0
    return saving + OF_NO_CAUSE * ((line["time_fraction"] or 0.0) - saving)


def _caused(times: Mapping[str | None, Mapping[Line, float]], place: Line) -> Row:
    """Return the share of the time that a line causes, that which causes save, and the cause that has most of it."""
    own = {cause: of_line.get(place, 0.0) for cause, of_line in times.items()}
    known = [cause for cause in own if cause is not None and own[cause] > 0]
    main = max(known, key=lambda cause: own[cause], default=None)
    return {
        "time_fraction": sum(own.values()) if times else None,
        "saving_fraction": sum(own[cause] for cause in known) if times else None,
        "main_cause": main,
        "main_cause_title": None if main is None else causes_by_name()[main].title,
        "main_cause_fraction": None if main is None else own[main],
    }


def _sum(rows: Sequence[Row], launch: Row) -> Row:
    """Return a line from its instructions, where a report has no row for it."""
    first = rows[0]
    counts = {
        name: sum(row[name] or 0 for row in rows) if any(row[name] is not None for row in rows) else None
        for name in COUNTS
    }
    made: Row = {name: first[name] for name in _PLACE} | dict.fromkeys((*_OWN, *_SHOWN)) | counts
    share = counts["samples"] / launch["samples"] if counts["samples"] is not None and launch["samples"] else None
    return made | {"kind": "line", "line_id": None, "samples_fraction": share}


def _add_stalls(engine: "Engine", lines: Sequence[Row]) -> None:
    """Add to lines their samples per stall reason, the main reason, and its share of the samples of the line."""
    own = [[row["line_id"] for row in (line["sass"] if line["line_id"] is None else [line])] for line in lines]
    found = store.stalls_of_lines(engine, sorted({number for numbers in own for number in numbers}))
    for line, numbers in zip(lines, own, strict=True):
        stalls: Counter[str] = Counter()
        for number in numbers:
            stalls.update(found.get(number, {}))
        line["stalls"] = dict(stalls.most_common())
        line["main_stall"] = main_stall(stalls)
        of_line = stalls[line["main_stall"]] if line["main_stall"] else None
        line["main_stall_fraction"] = of_line / line["samples"] if of_line and line["samples"] else None


def main_stall(stalls: Mapping[str, int]) -> str | None:
    """Return the stall reason with most samples; a selected warp does not stall.

    >>> main_stall({"Selected": 9, "Wait": 3, "Long Scoreboard": 3})
    'Long Scoreboard'
    """
    reasons = [reason for reason in stalls if reason != SELECTED]
    return min(reasons, key=lambda reason: (-stalls[reason], reason), default=None)
