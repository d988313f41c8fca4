"""The wall time of devices as text for a terminal."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from profsvc.errors import counted
from profsvc.reports.rows import render, visible
from profsvc.reports.text.cells import middle, page_of

Row = Mapping[str, Any]
NOTICEABLE_SHARE = 0.1
"""Share of the wall time outside of kernels from which the first screen tells of it."""
SUMMARY_ROWS = 3
MAX_NAME_CHARS = 60
NAMES_PER_CATEGORY = 3
COLUMNS = ("what went on", "time", "share", "could save", "hidden", "events")
NO_TRACE = "no file of the run has the times of kernels or copies, so its wall time is unknown"
EXPLANATION = (
    "time: every instant counts once, for the first category active in it, so the rows add up; could save: at most, if "
    "the category took no time; hidden: further time of it behind rows with more useful work"
)


def wall_time(view: Row, width: int | None = None) -> str:
    """Return the wall time of every device of a run."""
    info, lines = view["run"], []
    lines.append(visible(f"wall time of run {info['name']} (id {info['run_id']})"))
    for lane in view["wall_time"]:
        lasted = "unknown" if lane["wall_ns"] is None else duration(lane["wall_ns"])
        lines += ["", visible(f"{device_name(lane)}: {lasted}"), *(_table(lane, width) if lane["budget"] else [])]
        lines += [f"  {line}" for line in _iterations(lane["iterations"])]
        lines += [f"  {visible(line)}" for line in collective_waits(lane, view["wall_time"])]
        lines += [f"  {visible(note)}" for note in lane["notes"]]
    lines += ["", EXPLANATION if view["wall_time"] else NO_TRACE]
    return page_of(lines)


def device_name(lane: Row) -> str:
    """Name a device of a trace."""
    names = [
        "device" if lane["device_index"] is None else f"device {lane['device_index']}",
        *([] if lane["process_id"] is None else [f"process {lane['process_id']}"]),
        *([] if lane["file"] is None else [str(lane["file"])]),
    ]
    return ", ".join(names)


def _table(lane: Row, width: int | None) -> list[str]:
    rows = []
    for row in lane["budget"]:
        saved = "kernel budget" if row["recoverable_ns"] is None else duration(row["recoverable_ns"])
        cells = (row["title"], duration(row["time_ns"]), _percent(row["share"]), saved, duration(row["hidden_ns"]))
        rows.append(dict(zip(COLUMNS, (*cells, row["events"] or None), strict=True)))
        for one in row["names"][:NAMES_PER_CATEGORY]:
            name = middle(visible(str(one["name"])), MAX_NAME_CHARS)
            part = (f"  {name}", duration(one["time_ns"]), _percent(one["share"]))
            rows.append(dict(zip(COLUMNS, (*part, None, None, None), strict=True)))
    return [f"  {line}" for line in str(render(list(COLUMNS), rows, "table", width=width)).splitlines()]


def collective_waits(lane: Row, lanes: Sequence[Row]) -> Iterator[str]:
    """Say what a device of a run waits in collectives for others, or that the others wait for it."""
    if lane.get("waits_ns"):
        last = next(one for one in lanes if one["waits_ns"] == 0)
        yield f"waits up to {duration(lane['waits_ns'])} in collectives for {device_name(last)}"
    elif lane.get("waits_ns") == 0 and any(one["waits_ns"] for one in lanes):
        yield "arrives last at collectives: the others wait for it"


def _iterations(found: Row | None) -> Iterator[str]:
    if found:
        yield visible(
            f"{counted(found['count'], 'iteration')}: median {duration(found['median_ns'])}, shortest "
            f"{duration(found['shortest_ns'])} ({found['shortest']}), longest {duration(found['longest_ns'])} "
            f"({found['longest']})"
        )
        means = ", ".join(f"{one['title']} {duration(one['mean_ns'])}" for one in found["by_category"][:SUMMARY_ROWS])
        yield f"mean of an iteration: {means}"


def summary(lanes: Sequence[Row], width: int) -> list[str]:
    """Return what the first screen says of the device that waits longest; nothing if no device waits noticeably."""
    waiting = [lane for lane in lanes if lane["recoverable_ns"] >= NOTICEABLE_SHARE * (lane["wall_ns"] or 0) > 0]
    if not waiting:
        return []
    worst = max(waiting, key=lambda lane: lane["recoverable_ns"])
    share = _percent(worst["recoverable_ns"] / worst["wall_ns"])
    name = device_name({**worst, "file": worst["file"] if len({lane["upload_id"] for lane in lanes}) > 1 else None})
    head = visible(f"Wall time {duration(worst['wall_ns'])} on {name}: no compute kernel runs in {share} of it.")
    most = [row for row in worst["budget"] if row["recoverable_ns"]][:SUMMARY_ROWS]
    rows = [
        f"   {row['title']}: up to {duration(row['recoverable_ns'])} ({_percent(row['share'])})"
        + (visible(f", most in {middle(str(row['names'][0]['name']), 40)}") if row["names"] else "")
        for row in most
    ]
    step = textwrap.shorten(most[0]["first_step"], width - 3, placeholder=" ...")
    return [*(middle(line, width) for line in (head, *rows)), f"   {step}"]


def _percent(share: float | None) -> str | None:
    if share is None:
        return None
    return f"{100 * share:.{3 if share >= 0.1 else 2}g} %"


def duration(ns: float) -> str:
    """Write a time with three or four digits.

    >>> duration(2_120_600), duration(81_820), duration(17_060_000_000), duration(96)
    ('2.121 ms', '81.82 us', '17.06 s', '96 ns')
    """
    for limit, factor, unit in ((1e3, 1, "ns"), (1e6, 1e3, "us"), (1e9, 1e6, "ms")):
        if ns < limit * 0.99995:
            return f"{ns / factor:.4g} {unit}"
    return f"{ns / 1e9:.4g} s"
