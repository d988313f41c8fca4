"""The first screen of a run: where most time can be saved, one sentence each, and what to look at next."""

import re
import shlex
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import count, repeat
from typing import Any, NamedTuple

from profsvc.analysis.causes.sentence import sentence
from profsvc.errors import counted
from profsvc.reports.kernel_names import labelled
from profsvc.reports.rows import visible
from profsvc.reports.text.cells import bounded, middle, wrapped
from profsvc.reports.text.runs import wall_time

Row = Mapping[str, Any]
MAX_SAVINGS = 5
MAX_LINES = 29
MAX_WIDTH = 100
MIN_KERNEL_CHARS = 20
INDENT = "   "


class Line(NamedTuple):
    """One line of the screen; ``kind`` (title, heading, row, text or command) decides its colour."""

    kind: str
    text: str


class Saving(NamedTuple):
    """Time that removing one cause would save in all launches of one kernel and grid, and a sentence about it."""

    kernel: str
    launches: int
    number: int | None
    took_us: float
    saved_us: float
    potential: str
    text: str


def savings(view: Mapping[str, Any]) -> list[Saving]:
    """Return kernels and causes of a run by the time they cost; launches of one kernel with other grids are separate.

    A kernel without causes counts with its potential speedup.
    """
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in labelled([row for row in view["launches"] if row["potential"] and row["duration_us"]]):
        groups.setdefault((row["kernel_full"], *(row.get("grid") or ())), []).append(row)
    several = [key[0] for key in groups]
    found: list[Saving] = []
    for (kernel, *grid), rows in groups.items():
        name = str(rows[0]["kernel"])
        if several.count(kernel) > 1:
            name += f" grid {'x'.join(map(str, grid))}"
        found += _of_kernel(name, rows, 1)
    for row in labelled([row for row in view["means"] if row["potential"] and row["duration_us"]]):
        found += _of_kernel(row["kernel"], [row | {"launch": None}], row["launches"] or 1)
    return sorted(found, key=lambda one: -one.saved_us)


def _of_kernel(name: str, rows: Sequence[Row], count: int) -> list[Saving]:
    """Return what each cause costs the launches of a kernel; ``count`` launches stand behind each row."""
    took = count * sum(row["duration_us"] for row in rows)
    saved = count * sum(map(_saved_us, rows))
    most = max(rows, key=_saved_us)
    whole = (name, len(rows) * count, most["launch"], took)
    potential = bounded(took / (took - saved), most["flags"])
    pairs = [(row, cause) for row in rows for cause in row["causes"] if cause["kind"] == "flaw"]
    if not any(row["causes"] for row in rows):
        return [Saving(*whole, saved, potential, f"Limited by {_lower(most['bound'])}. {_first_step(most['first'])}")]
    found = []
    for named in dict.fromkeys(cause["cause"] for _, cause in pairs):
        own = [(row, cause) for row, cause in pairs if cause["cause"] == named]
        costs = count * sum(row["duration_us"] * cause["saving_fraction"] for row, cause in own)
        row, shown = max(own, key=lambda pair: pair[0]["duration_us"] * pair[1]["saving_fraction"])
        text = sentence({**shown, "saving_ns": 1e3 * costs}, 1e3 * took)
        found.append(Saving(*whole[:2], row["launch"], took, costs, potential, text))
    return found


def _saved_us(row: Row) -> float:
    return float(row["duration_us"] * (1 - 1 / row["potential"]))


def overview(view: Mapping[str, Any], width: int, program: str = "profsvc") -> list[Line]:
    """Return the lines of the first screen, at most ``width`` wide except for commands.

    ``program`` is what a shell needs in front of each command.
    """
    width = min(width, MAX_WIDTH)
    found = [one for one in savings(view) if one.saved_us > 0][:MAX_SAVINGS]
    title = [*_title(view, width, only_longest=bool(found)), Line("text", "")]
    last = []
    if waiting := wall_time.summary(view["wall_time"], width):
        last += [Line("text", ""), Line("heading", waiting[0]), *(Line("text", text) for text in waiting[1:])]
    last += [Line("text", ""), Line("heading", "Next:")]
    last += [Line("command", text) for one in _commands(view, found) for text in shell_lines(program, one, width)]
    if found:
        return [*title, *_table(found, width, MAX_LINES - len(title) - len(last)), *last]
    lines = [Line("text", text) for text in wrapped(_why_none(view), width)]
    most = _most_time(view, width)
    return [*title, *lines, *([Line("text", "")] if most else []), *most, *last]


def _title(view: Mapping[str, Any], width: int, *, only_longest: bool) -> list[Line]:
    info, whole = view["run"], view["potential"]
    logged = dict.fromkeys(sensor["device"] for sensor in view["sensors"] if sensor["device"])
    device = info["device"] or info["devices"] or ", ".join(logged) or "unknown device"
    text = f"Run {info['name']} (id {info['run_id']}, project {info['project']}) on {device}"
    if view["total_launches"]:
        text += f": {counted(view['total_launches'], 'launch')}"
        text += f", {_time(info['gpu_time_ns'] / 1e3)}." if info["gpu_time_ns"] else "."
    lines = [Line("title", part) for part in textwrap.wrap(visible(text), width)]
    if whole and whole["speedup"] is not None:
        saved = _time((whole["duration_ns"] - whole["ideal_ns"]) / 1e3)
        potential = bounded(whole["speedup"], whole["flags"])
        text = f"Potential speedup {potential}: up to {saved} less with the same algorithm."
        lines += [Line("text", part) for part in textwrap.wrap(text, width)]
    if view["run"].get("archived"):
        text = visible(f"Its rows are {view['run']['archived']}")
        lines += [Line("text", part) for part in wrapped(text, width)]
    elif view["truncated"] and only_longest:
        shown = len(view["launches"])
        text = f"Only the {shown} longest of {view['total_launches']} launches are considered here; --all shows all."
        lines += [Line("text", part) for part in textwrap.wrap(text, width)]
    return lines


def _table(found: Sequence[Saving], width: int, most: int) -> list[Line]:
    """One row per kernel and cause, with a sentence below it; at most so many lines, but always the first."""
    cells = [(_time(one.took_us), _time(one.saved_us), one.potential) for one in found]
    heads = ("takes", "can save", "potential")
    head, *rows = _columns("Most time can be saved in", partial(map, _name, found), heads, cells, width)
    lines = [Line("heading", head)]
    for number, (one, row) in enumerate(zip(found, rows, strict=True), 1):
        told = [Line("text", INDENT + part) for part in textwrap.wrap(visible(one.text), width - len(INDENT))]
        if number > 1 and len(lines) + 1 + len(told) > most:
            break
        lines += [Line("row", row), *told]
    return lines


def _columns(
    title: str, names: Callable[[Iterable[int]], Iterable[str]], heads: Sequence[str], cells: Sequence[Sequence[str]],
    width: int,
) -> list[str]:  # fmt: skip
    """Return a head and numbered rows of one width; ``names`` makes each name from the characters that it may have."""
    sizes = [max(len(head), *(len(row[place]) for row in cells)) for place, head in enumerate(heads)]
    room = max(width - sum(sizes) - 2 * len(sizes) - 3, MIN_KERNEL_CHARS)
    first = list(names(repeat(room)))
    room = min(room, max(map(len, (title, *first))))
    rows = [("", title, heads), *zip(map(str, count(1)), first, cells, strict=False)]
    return [
        f"{number:>2} {name:{room}}" + "".join(f"  {cell:>{size}}" for cell, size in zip(values, sizes, strict=True))
        for number, name, values in rows
    ]


def _first_step(first: str) -> str:
    """Write the first hint as a sentence.

    >>> _first_step("Branch divergence: up to 96 % less time")
    'Start with branch divergence: up to 96 % less time.'
    """
    if found := re.fullmatch(r"(.+): (up to \d+ % less time)", first):
        return f"Start with {_lower(found[1])}: {found[2]}."
    return f"{first}." if first else ""


def _name(one: Saving, room: int) -> str:
    """Return the name of a kernel with the launch, or the one of several alike that can save most.

    >>> _name(Saving("copy", 6, 13, 890.4, 681.9, "4.27x", ""), 60), _name(Saving("sum", 6, None, 2, 1, "2x", ""), 60)
    ('copy (6 launches, most in #13)', 'sum (6 launches)')
    """
    which = "" if one.number is None else f"#{one.number}"
    if one.launches > 1:
        which = ", ".join([counted(one.launches, "launch"), *([f"most in {which}"] if which else [])])
    after = f" ({which})" if which else ""
    return middle(visible(one.kernel), room - len(after)) + after


def _most_time(view: Mapping[str, Any], width: int) -> list[Line]:
    """One row per kernel, for launches of which only the times are known."""
    rows = [row for row in labelled(_kernels(view), "name", "kernel") if row["total_ms"]][:MAX_SAVINGS]
    heads, whole = ("launches", "take", "mean", "share"), view["run"]["gpu_time_ns"]
    if not view["total_launches"]:
        whole = 1e6 * sum(row["total_ms"] for row in _kernels(view))
    cells = []
    for row in rows:
        share = f"{1e8 * row['total_ms'] / whole:.3g} %" if whole else ""
        cells.append((f"{row['launches']}", _time(1e3 * row["total_ms"]), _time(row["mean_us"]), share))
    if not rows:
        return []
    names = partial(map, middle, [visible(str(row["name"])) for row in rows])
    head, *lines = _columns("Most time is spent in", names, heads, cells, width)
    return [Line("heading", head), *(Line("row", line) for line in lines)]


def _kernels(view: Mapping[str, Any]) -> list[Row]:
    """Return the kernels of a run by their time, from totals where not all launches are there, or none."""
    if view["kernels"]:
        return list(view["kernels"])
    times: dict[str, list[float]] = {}
    for row in view["launches"]:
        if row["duration_us"]:
            times.setdefault(row["kernel_full"], []).append(row["duration_us"])
    found = [
        {"kernel": kernel, "launches": len(own), "total_ms": sum(own) / 1e3, "mean_us": sum(own) / len(own)}
        for kernel, own in times.items()
    ]
    if not view["total_launches"]:
        found += [
            {"kernel": row["kernel"], "launches": row["calls"], "total_ms": row["total_ns"] / 1e6,
             "mean_us": row["total_ns"] / row["calls"] / 1e3}
            for row in view["summaries"]
            if row["category"] == "kernel" and row["calls"] and row["total_ns"]
        ]  # fmt: skip
    return sorted(found, key=lambda row: -row["total_ms"])


def _why_none(view: Mapping[str, Any]) -> str:
    """Say why there is nothing to list."""
    rows = [*view["launches"], *view["means"]]
    if view["run"].get("archived") and not rows:
        return f"Its launches are archived; totals by kernel: profsvc show id:{view['run']['run_id']} --all"
    if any(row["potential"] for row in rows):
        return "Every kernel is already at its limit; no time can be saved with the same algorithm."
    if rows:
        return visible(f"No potential speedup: {rows[0]['reason']}")
    if any(row["category"] == "kernel" for row in view["summaries"]):
        return "This run has totals per kernel and no single launches; potential needs metrics of launches."
    if kinds := dict.fromkeys(sensor["quantity"] for sensor in view["sensors"]):
        held = f"It has sensor readings ({', '.join(kinds)})."
    elif lines := [f"{one['lines_stored']} of {one['format']}" for one in view["uploads"] if one["lines_stored"]]:
        held = f"It has other lines: {', '.join(lines)}."
    else:
        held = ""
    return visible(f"This run has no kernel launches. {held}".rstrip())


def _commands(view: Mapping[str, Any], found: Sequence[Saving]) -> list[str]:
    """Return three commands that continue from here."""
    run = f"id:{view['run']['run_id']}"
    commands = []
    if found:
        first = found[0]
        commands.append(
            f"show {run} --kernel {first.number if first.number is not None else shlex.quote(first.kernel)}"
        )
    if wall_time.summary(view["wall_time"], MAX_WIDTH):
        commands.append(f"show {run} --wall-time")
    if any(sensor["quantity"] == "power" for sensor in view["sensors"]):
        commands.append(f"power {run}")
    commands.append(f"show {run} --all")
    commands += (
        [f"sql --example top_kernels --param run={run}"] if view["launches"] else [f"runs --limit {MAX_SAVINGS}"]
    )
    return [*commands, "explain potential"][:3]


def shell_lines(program: str, command: str, width: int) -> list[str]:
    r"""Return a command for a shell, continued on a second line where one line would be too wide.

    >>> shell_lines("profsvc --store /tmp/a/long/path.sqlite", "show 1 --all", 40)
    ['  profsvc --store /tmp/a/long/path.sqlite \\', '    show 1 --all']
    """
    whole = f"  {program} {command}"
    return [whole] if len(whole) <= width else [f"  {program} \\", f"    {command}"]


def _time(us: float) -> str:
    """Write a time with three or four digits.

    >>> _time(2120.6), _time(81.82), _time(17_060_000)
    ('2.121 ms', '81.82 us', '17.06 s')
    """
    for limit, unit in ((1e3, "us"), (1e6, "ms")):
        if us < limit * 0.99995:
            return f"{us * 1e3 / limit:.4g} {unit}"
    return f"{us / 1e6:.4g} s"


def _lower(text: str | None) -> str:
    """Write a title inside a sentence: an abbreviation keeps its capitals.

    >>> _lower("Issue slots"), _lower("DRAM"), _lower("L1 and shared memory pipe")
    ('issue slots', 'DRAM', 'L1 and shared memory pipe')
    """
    text = text or "unknown"
    return text[0].lower() + text[1:] if text[1:2].islower() else text
