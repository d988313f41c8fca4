"""Findings that belong together: series that moved with a clock, with each other, or for the same kernel."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

Row = Mapping[str, Any]
Event = dict[str, Any]
CLOCK, TOGETHER, SHIFT, KERNEL = "clock", "together", "shift", "kernel"
CLOCKS = {"sm_clock_hz": 1.25, "log_clock_hz": 2.0}
"""Clocks of runs, and how far the change of a time may exceed that of its clock; a log also has idle readings."""
SETTINGS = (
    "device",
    "host",
    "driver_version",
    "vbios_version",
    "cuda_version",
    "ecc",
    "mig",
    "power_limit_w",
    "throttled",
    "temperature_c",
    "log_utilization",
    "compiler",
)
"""Facts that may move every kernel of a run, as may its tags."""
TAG = "tag:"
MARK_NUMBERS = re.compile(r"(, \d+ SMs?)?( \(\d+\))?$")
"""What follows the name of a load where it is marked several times, or with its busy SMs."""
WINDOW_KINDS = ("power", "energy")
LEADING = {kind: place for place, kind in enumerate(("duration", *WINDOW_KINDS))}
MIN_TOGETHER, MIN_SHARE = 3, 0.5
FAR, FAR_RATIO = 3.0, 2.0
"""Beyond so many distances of the quartiles, and so many times the median, a change is not part of a common one."""
MAX_LEAN_P = 0.01
"""Probability of chance from which on the other kernels say nothing by leaning the same way."""
MAX_SHIFT_REST = 0.2
"""Share of the larger change of time that may be left over where time moved from one kernel to another."""


class Siblings(NamedTuple):
    """Durations beside those that have findings since adjacent nights."""

    board: tuple[Any, Any]  # project and device
    runs: tuple[int, ...]  # that the findings begin with
    changes: list[float]  # of the other durations, relative


def find_events(
    found: Sequence[Row],
    series_of_run: Callable[[Row], int],
    totals: Mapping[tuple[str, str], tuple[float, float]],
    siblings: Sequence[Siblings] = (),
) -> list[Event]:
    """Return the findings that are one event, as indices of ``found``, each in at most one.

    ``series_of_run`` returns how many durations the first run of a finding has. ``totals`` are the times per run before
    and since, by series and kernel; ``siblings`` what the others did where findings begin within two nights, for noise
    moves their begins. An event has kind, members, slower, low and high (the smallest and largest relative change of
    its durations), of (durations of the run), and for a clock its fact, before and after; for a shift ``from_ns`` and
    ``to_ns``, the changes of both times per run; for a change of kernels together ``leaning``, how many of the others
    went the same way, and ``asked``, of how many, where these make it one.

    >>> clock = {"fact": "sm_clock_hz", "title": "SM clock", "unit": "Hz", "before": 2e9, "after": 1.88e9}
    >>> slow = {"project": "p", "device": "d", "run_id": 7, "kind": "duration", "kernel": "k", "series": "s",
    ...         "before": 100.0, "after": 106.0, "differences": [clock]}
    >>> (event,) = find_events([slow, slow | {"kernel": "l"}], lambda row: 2, {})
    >>> event["kind"], event["members"], event["slower"]
    ('clock', [0, 1], True)
    """
    runs: dict[tuple[Any, ...], list[int]] = {}
    for place, row in enumerate(found):
        runs.setdefault((row["project"], row["device"], row["run_id"]), []).append(place)
    near = [[place for run in one.runs for place in runs.get((*one.board, run), ())] for one in siblings]
    asked = [(own, find) for own in runs.values() for find in (_with_clock, _together)]
    asked += [(own, partial(_together, others=one.changes)) for own, one in zip(near, siblings, strict=True) if own]
    asked += [(own, find) for own in runs.values() for find in (_shifted, _of_kernels)]
    events: list[Event] = []
    for own, find in asked:
        free = [place for place in own if not any(place in event["members"] for event in events)]
        events += find(found, free, series_of_run(found[own[0]]), totals)
    order = {place: number for number, own in enumerate(runs.values()) for place in own}
    return sorted(events, key=lambda event: order[event["members"][0]])


def _durations(found: Sequence[Row], places: Sequence[int]) -> list[int]:
    return [place for place in places if found[place]["kind"] == "duration" and found[place]["before"]]


def _change(row: Row) -> float:
    return float((row["after"] - row["before"]) / abs(row["before"]))


def _event(kind: str, found: Sequence[Row], members: Sequence[int], of: int, **more: Any) -> Event:
    changes = sorted(_change(found[place]) for place in _durations(found, members))
    ends = {"low": changes[0], "high": changes[-1], "slower": changes[0] > 0} if changes else {}
    return {"kind": kind, "members": list(members), "of": of, **ends, **more}


def _clock_of(row: Row) -> Row | None:
    by_name = {one["fact"]: one for one in row["differences"] if one["fact"] in CLOCKS and one["before"]}
    return next((by_name[name] for name in CLOCKS if name in by_name), None)


def _with_clock(found: Sequence[Row], free: Sequence[int], of: int, totals: Any) -> list[Event]:
    """Durations that changed against a clock by no more than it did, and the finding of the clock itself."""
    members, clock = [], None
    for place in _durations(found, free):
        own = _clock_of(found[place])
        if own is None:
            continue
        expected, change = own["before"] / own["after"] - 1, _change(found[place])
        if expected * change > 0 and abs(change) <= CLOCKS[own["fact"]] * abs(expected):
            members.append(place)
            clock = clock or own
    if clock is None:
        return []
    members += [place for place in free if found[place]["kind"] == "clock"]
    told = {name: clock[name] for name in ("fact", "title", "unit", "before", "after")}
    return [_event(CLOCK, found, members, of, **told)]


def _together(
    found: Sequence[Row], free: Sequence[int], of: int, totals: Any, others: Sequence[float] = ()
) -> list[Event]:
    """Half of the durations of a run or more, all slower or all faster; or fewer, if the others lean the same way."""
    events = []
    for sign in (1, -1):
        members = [place for place in _durations(found, free) if sign * _change(found[place]) > 0]
        alone, leaning = _without_far(found, members), {}
        if len(members) >= MIN_TOGETHER and len(alone) < MIN_SHARE * of and (lean := _leaning(others, sign)):
            alone = _without_far(found, members, others)
            leaning = {"leaning": lean, "asked": len(others)}
        if len(alone) >= (MIN_TOGETHER if leaning else max(MIN_TOGETHER, MIN_SHARE * of)):
            settings = (_settings(found[place]) for place in alone)
            first = next((own for own in settings if own), [])  # one that begins a night early has none
            events.append(_event(TOGETHER, found, alone, of, settings=first, **leaning))
    return events


def _settings(row: Row) -> list[Row]:
    return [one for one in row["differences"] if one["fact"] in SETTINGS or str(one["fact"]).startswith(TAG)]


def _leaning(others: Sequence[float], sign: int) -> int:
    """Return how many of the other durations went one way, if that is beyond chance; else 0."""
    from scipy.special import bdtrc

    same = sum(sign * change > 0 for change in others)
    return same if same and bdtrc(same - 1, len(others), 0.5) <= MAX_LEAN_P else 0


def _without_far(found: Sequence[Row], members: Sequence[int], others: Sequence[float] = ()) -> list[int]:
    """Return the members that did not change far more than the others: those have a reason of their own.

    ``others``: changes of the other durations, which count too. Far is beyond the outer fence of Tukey, three times the
    distance of the quartiles, and twice the median.
    """
    if len(members) < MIN_TOGETHER:
        return list(members)
    changes = [abs(_change(found[place])) for place in members]
    quarter, half, three = np.quantile([*changes, *map(abs, others)], [0.25, 0.5, 0.75])
    fence = max(three + FAR * (three - quarter), FAR_RATIO * half)
    return [place for place, change in zip(members, changes, strict=True) if change <= fence]


def _shifted(
    found: Sequence[Row], free: Sequence[int], of: int, totals: Mapping[tuple[str, str], tuple[float, float]]
) -> list[Event]:
    """Pairs of kernels of which one takes about as much less time per run as the other takes more."""
    moved = {}
    for place in _durations(found, free):
        row = found[place]
        if (pair := totals.get((str(row["series"]), str(row["kernel"])))) is not None:
            moved[place] = pair[1] - pair[0]
    events: list[Event] = []
    for more in sorted((place for place in moved if moved[place] > 0), key=lambda place: -moved[place]):
        used = {member for event in events for member in event["members"]}
        fewer = [place for place in moved if moved[place] < 0 and place not in used]
        if not fewer:
            break
        best = min(fewer, key=lambda place: abs(moved[place] + moved[more]))
        if abs(moved[best] + moved[more]) <= MAX_SHIFT_REST * max(abs(moved[best]), moved[more]):
            ends = {"from_ns": moved[best], "to_ns": moved[more]}
            events.append(_event(SHIFT, found, [more, best], of, **ends))
    return events


def _of_kernels(found: Sequence[Row], free: Sequence[int], of: int, totals: Any) -> list[Event]:
    """Several quantities of one kernel, or of one load; a duration leads, then power."""
    named = {found[place]["subject"]: found[place]["kernel"] for place in free if found[place]["kernel"]}
    kernels: dict[str, list[int]] = {}
    for place in free:
        row = found[place]
        # A power window that is marked by the name of a kernel is of that kernel.
        load = load_name(str(row["subject"]))
        kernel = row["kernel"] or named.get(load) or (load if row["kind"] in WINDOW_KINDS else None)
        if kernel and row["kind"]:
            kernels.setdefault(str(kernel), []).append(place)
    return [
        _event(KERNEL, found, sorted(places, key=lambda place: LEADING.get(found[place]["kind"], len(LEADING))), of)
        for places in kernels.values()
        if len(places) > 1
    ]


def load_name(subject: str) -> str:
    """Return the name that a load is marked by, without its number and its busy SMs.

    >>> load_name("saxpy, 132 SMs (3)"), load_name("saxpy")
    ('saxpy', 'saxpy')
    """
    return MARK_NUMBERS.sub("", subject)
