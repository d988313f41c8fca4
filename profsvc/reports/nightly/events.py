"""Findings that belong together, as text."""

from collections.abc import Mapping, Sequence
from typing import Any

from profsvc.analysis.changes.events import CLOCK, KERNEL, SHIFT, load_name
from profsvc.errors import counted
from profsvc.reports.nightly.content import amount, percent, short
from profsvc.reports.nightly.differences import difference_text

Row = Mapping[str, Any]
MIN_MISSING = 3
MIN_MISSING_SHARE = 0.5  # of the kernels that ran each night, from which a run may have ended early


def event_text(event: Row, found: Sequence[Row]) -> str:
    """Return an event in one sentence; ``found`` are the findings that its members are indices of.

    >>> event = {"kind": "clock", "members": [0, 1], "of": 3, "low": 0.058, "high": 0.062, "slower": True,
    ...          "title": "SM clock", "unit": "Hz", "before": 2e9, "after": 1.88e9}
    >>> event_text(event, [{"kind": "duration"}, {"kind": "duration"}])
    'SM clock 2 GHz to 1.88 GHz (-6.0 %): 2 of 3 kernels slower by 5.8 to 6.2 %'
    """
    rows = [found[place] for place in event["members"]]
    if event["kind"] == SHIFT:
        more, less = (_name(row) for row in rows[:2])
        times = f"{amount(-event['from_ns'], 'ns')} less and {amount(event['to_ns'], 'ns')} more per run"
        return f"time moved from {less} to {more}: {times}"
    if event["kind"] == KERNEL:
        return _kernel_text(rows)
    durations = sum(row["kind"] == "duration" for row in rows)
    several = f"{durations} of {counted(event['of'], 'kernel')} {kernels_text(event)}"
    if event["kind"] == CLOCK:
        change = 100 * (event["after"] / event["before"] - 1)
        both = " to ".join(amount(event[side], event["unit"]) for side in ("before", "after"))
        return f"{event['title']} {both} ({change:+.1f} %): {several}"
    settings = ", ".join(map(difference_text, event["settings"]))
    several += f" together{_leaning_text(event)}"
    return several + (f": {settings}" if settings else "; no clock, driver or host is known to differ")


def _leaning_text(event: Row) -> str:
    """Return how many of the other kernels went the same way, none of them for sure."""
    if not event.get("leaning"):
        return ""
    every = event["leaning"] == event["asked"]
    lean = "all" if every else f"{event['leaning']} of"
    return f" ({lean} {counted(event['asked'], 'other')} a little {'slower' if event['slower'] else 'faster'} too)"


def _kernel_text(rows: Sequence[Row]) -> str:
    """Return which quantities of a kernel changed; a time that was bought with power says so."""
    quantities = ", ".join(dict.fromkeys(_quantity(row) for row in rows))
    first, *others = rows
    power = next((row for row in others if row["kind"] == "power"), None)
    changes = [row["after"] / row["before"] - 1 if row and row["before"] else 0.0 for row in (first, power)]
    if first["kind"] != "duration":
        loads = len({row["subject"] for row in rows})
        name = load_name(str(first["subject"])) if loads > 1 else _name(first)
        changed = {_quantity(row): percent(row) for row in reversed(rows)}  # of several loads the first
        said = ", ".join(f"{quantity} {changed[quantity]}" for quantity in quantities.split(", "))
        return f"{short(name)}: {said}{f' in {loads} loads' if loads > 1 else ''}"
    if changes[0] * changes[1] >= 0:
        return f"{_name(first)}: {quantities}"
    how = ("faster", "with more power") if changes[0] < 0 else ("slower", "with less power")
    said = f"{_name(first)} {how[0]} by {100 * abs(changes[0]):.2g} % {how[1]} ({100 * changes[1]:+.2g} %)"
    energy = next((row for row in others if row["kind"] == "energy" and row["before"]), None)
    each = f"{_quantity(energy)} {100 * (energy['after'] / energy['before'] - 1):+.2g} %" if energy else ""
    return f"{said}, {each or 'energy without a finding'}"


def kernels_text(event: Row) -> str:
    """Return by how much the kernels of an event changed.

    >>> kernels_text({"slower": False, "low": -0.05, "high": -0.0499})
    'faster by 5 %'
    """
    ends = [f"{100 * size:.2g}" for size in sorted((abs(event["low"]), abs(event["high"])))]
    return f"{'slower' if event['slower'] else 'faster'} by {' to '.join(dict.fromkeys(ends))} %"


def event_count(events: Sequence[Row]) -> list[str]:
    """Return how many events that are no regression or improvement of one kernel there are, as words."""
    clocks = sum(event["kind"] == CLOCK for event in events)
    shifts = sum(event["kind"] == SHIFT for event in events)
    common = sum(event["kind"] not in (CLOCK, SHIFT, KERNEL) for event in events)
    names = {"change of the clock": clocks, "change of all kernels": common, "shift of time": shifts}
    plural = {"change of the clock": "changes of the clock", "change of all kernels": "changes of all kernels",
              "shift of time": "shifts of time"}  # fmt: skip
    return [f"{count} {name if count == 1 else plural[name]}" for name, count in names.items() if count]


def kernel_counts(rows: Sequence[Row]) -> list[str]:
    """Return how many kernels are new, vanished, back or launched differently, as words.

    >>> kernel_counts([{"change": "appeared"}, {"change": "launched"}, {"change": "launched"}])
    ['1 new kernel', '2 kernels launched differently']
    """
    words = {"renamed": "renamed {}", "appeared": "new {}", "vanished": "vanished {}",
             "returned": "{} back", "launched": "{} launched differently"}  # fmt: skip
    said = []
    for change, form in words.items():
        own = [row for row in rows if row["change"] == change]
        if own:
            text = f"{len(own)} {form.format('kernel' if len(own) == 1 else 'kernels')}"
            most = max(own, key=_renamed_change) if change == "renamed" else None
            early = " (a run may have ended early)" if change == "vanished" and ended_early(own) else ""
            said.append(f"{text} ({_name(most)} {100 * _signed_change(most):+.1f} %)" if most else text + early)
    return said


def ended_early(rows: Sequence[Row]) -> list[tuple[Row, int]]:
    """Return a vanished kernel of each history of which so many are missing that its run may have ended early, and how
    many are.

    >>> own = {"change": "vanished", "project": "a", "device": None, "branch": None}
    >>> [missing for _, missing in ended_early([own | {"of": 5}] * 4 + [{"change": "appeared"}])]
    [4]
    >>> ended_early([own | {"of": 9}] * 4)
    []
    """
    histories: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row["change"] == "vanished" and row.get("of"):  # reports of before lack it
            histories.setdefault(tuple(row[name] for name in ("project", "device", "branch", "of")), []).append(row)
    return [
        (own[0], len(own)) for own in histories.values()
        if len(own) >= MIN_MISSING and len(own) >= MIN_MISSING_SHARE * own[0]["of"]
    ]  # fmt: skip


def _signed_change(row: Row) -> float:
    return float(row["time_ns"] / row["before_ns"] - 1)


def _renamed_change(row: Row) -> float:
    return abs(_signed_change(row))


def kernel_change_text(row: Row) -> str:
    """Return what changed about a kernel in the runs of a night."""
    if row["change"] == "renamed":
        both = f"{amount(row['before_ns'], 'ns')} to {amount(row['time_ns'], 'ns')} per launch"
        noise = "" if row["noise"] is None else f"; run-to-run noise {100 * row['noise']:.2g} %"
        said = f"was {short(row['kernel_before'])}: {both} ({100 * _signed_change(row):+.1f} %{noise})"
        changed = "".join(f"; {difference_text(one)}" for one in row["differences"])
        return f"{said}{changed}; history continues ({row['because']})"
    if row["change"] == "returned":
        both = f"{amount(row['time_ns'], 'ns')} per launch, {amount(row['before_ns'], 'ns')} before"
        return f"back after {counted(row['nights'], 'night')} without it ({both})"
    if row["differences"]:
        return ", ".join(map(difference_text, row["differences"]))
    refused = f"; not taken for a renamed kernel: {row['because']}" if row.get("because") else ""
    new = row["change"] == "appeared"
    return f"{'new' if new else 'vanished'} ({amount(row['time_ns'], 'ns')} per launch){refused}"


def _name(row: Row) -> str:
    return short(row.get("label") or row["subject"])


def _quantity(row: Row) -> str:
    return str(row["quantity"]).replace("_", " ")
