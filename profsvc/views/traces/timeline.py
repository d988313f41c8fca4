"""The timeline of a run: kernels, copies, API calls, ranges, power and temperature on one time axis, as detailed as a
screen shows it.
"""

import json
from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from profsvc import store
from profsvc.analysis.launches.time_levels import MAX_DEPTH, Track, level_of, overlaps, sums_by_name, tracks_of
from profsvc.errors import NotFoundError, UsageError
from profsvc.reports.perfetto import GROUPS, THREADS, TITLES

if TYPE_CHECKING:
    from sqlalchemy import Engine

COLUMNS, MAX_COLUMNS = 600, 2000
MAX_ITEMS = 12_000
"""The most items of an answer; more tracks have fewer columns each."""
MAX_TRACKS = 64
MAX_EVENTS = 8_000_000
HELD_EVENTS = 10_000_000
"""So many events of the runs last looked at stay in memory: 48 bytes each."""
MAX_NAMES = 20
"""Names of an answer whose events are summed, those with most time in view."""
SENSORS = ("power", "temperature")


class Lane(NamedTuple):
    """A track of a stream or thread."""

    kind: str
    group: str
    title: str
    track: Track
    is_approximate: bool
    """Whether events overlap in it, because more than `MAX_DEPTH` do at once: their busy time is then too long."""


class Sensor(NamedTuple):
    """A sensor and its readings in the time of the events."""

    name: str
    quantity: str
    unit: str
    time_ns: NDArray[np.int64]
    value: NDArray[np.float64]


class Events(NamedTuple):
    """The events of a run; their times are since ``begin_ns``."""

    begin_ns: int
    length_ns: int
    names: list[str]
    lanes: list[Lane]
    sensors: list[Sensor]
    events: int
    untimed: int
    left_out: int
    sessions: int
    """Recordings that began at different times."""
    is_aligned: bool
    """Whether every time is in UTC; else each recording counts its own."""


class _Held:
    """Events of runs in memory, least recently used first out."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: OrderedDict[tuple[Any, ...], Events] = OrderedDict()
        self._reading: dict[tuple[Any, ...], Lock] = {}

    def get(self, engine: "Engine", run_id: int) -> Events:
        """Return the events of a run, read once for the files that it has now."""
        uploads = store.select(engine, "v1_uploads", run_id=run_id)
        key = (str(engine.url), run_id, repr(uploads))
        with self._lock:
            own = self._reading.setdefault(key, Lock())
        with own:  # who asks for the same run waits, others do not
            found = self._known.get(key) or _read(engine, run_id)
        with self._lock:
            self._reading.pop(key, None)
            self._known[key] = found
            self._known.move_to_end(key)
            while len(self._known) > 1 and sum(one.events for one in self._known.values()) > HELD_EVENTS:
                self._known.popitem(last=False)
        return found


_HELD = _Held()


def timeline(
    engine: "Engine", run: str | int, from_ns: int | None = None, to_ns: int | None = None, columns: int = COLUMNS
) -> dict[str, Any]:
    """Return what a run did from ``from_ns`` to ``to_ns`` since its first event, in at most so many ``columns``.

    Each lane has items, as parallel lists: start and end, the number of events, their busy time, the place of the name
    of the longest in ``names``, and the launch if the item is one. An item is one event where they are few. A lane is
    ``approximate`` if events overlap in it. ``by_name`` has the events of the span by name: how many, and their time
    within it; of all lanes, those with most time, of ``names_in_span``. Several ``sessions`` of a profiler, such
    as of ranks, are ``aligned`` if the UTC at which each began is known, and ``begin_ns`` is UTC then; else each counts
    from its own begin.
    """
    if not 1 <= columns <= MAX_COLUMNS:
        raise UsageError(f"columns={columns} must be from 1 to {MAX_COLUMNS}")
    held = _HELD.get(engine, store.find_run(engine, run))
    begin, end = 0 if from_ns is None else from_ns, held.length_ns if to_ns is None else to_ns
    if not begin < end:
        raise UsageError(f"from_ns={begin} must be before to_ns={end}")
    each = max(1, min(columns, MAX_ITEMS // max(1, len(held.lanes))))
    levels = [level_of(lane.track, begin, end, each) for lane in held.lanes]
    used = sorted({int(name) for level in levels for name in level.name})
    place = np.zeros(len(held.names) + 1, np.int64)
    place[used] = np.arange(len(used))
    lanes = [
        {"kind": lane.kind, "group": lane.group, "title": lane.title, "of": len(lane.track.start_ns),
         "approximate": lane.is_approximate,
         "busy_of_ns": int(lane.track.busy_ns[-1])}
        | {field: (place[column] if field == "name" else column).tolist() for field, column in level._asdict().items()}
        for lane, level in zip(held.lanes, levels, strict=True)
    ]  # fmt: skip
    by_name = _by_name(held, begin, end)
    return {
        "begin_ns": held.begin_ns, "length_ns": held.length_ns, "from_ns": begin, "to_ns": end, "events": held.events,
        "untimed": held.untimed, "left_out": held.left_out, "sessions": held.sessions,
        "aligned": held.is_aligned,
        "names": [held.names[name] for name in used],
        "by_name": by_name[:MAX_NAMES], "names_in_span": len(by_name),
        "lanes": lanes, "sensors": [_thinned(one, begin, end, columns) for one in held.sensors],
    }  # fmt: skip


def _by_name(held: Events, begin: int, end: int) -> list[dict[str, Any]]:
    events, time_ns = np.zeros((2, len(held.names)), np.int64)
    kind = dict[int, str]()
    for lane in held.lanes:
        own, length = sums_by_name(lane.track, begin, end, len(held.names))
        events += own
        time_ns += length
        kind |= dict.fromkeys(np.flatnonzero(own).tolist(), TITLES[lane.kind])
    order = np.lexsort((np.arange(len(events)), -events, -time_ns))
    return [
        {"name": held.names[at], "kind": kind[at], "events": int(events[at]), "time_ns": int(time_ns[at])}
        for at in order.tolist()
        if events[at]
    ]


def search(engine: "Engine", run: str | int, text: str, match: int | None = None, from_ns: int = 0) -> dict[str, Any]:
    """Return how many events of a run have a text in their name, in any case, their time, and one of them.

    They are counted from 0 by their starts, and after the last comes the first. Without the number of a ``match`` it is
    the first that starts at ``from_ns`` or later. ``match`` is None if no event has the text.
    """
    if not text:
        raise UsageError("text is empty; give a part of the name of an event")
    held = _HELD.get(engine, store.find_run(engine, run))
    named = np.array([text.casefold() in name.casefold() for name in held.names], bool)
    places = [np.flatnonzero(named[lane.track.name]) for lane in held.lanes]
    start = np.concatenate([lane.track.start_ns[own] for lane, own in zip(held.lanes, places, strict=True)])
    time_ns = sum(int((lane.track.end_ns[own] - lane.track.start_ns[own]).sum())
                  for lane, own in zip(held.lanes, places, strict=True))  # fmt: skip
    found: dict[str, Any] = {"text": text, "events": len(start), "time_ns": time_ns, "match": None}
    if not len(start):
        return found
    order = np.argsort(start, kind="stable")
    chosen = int(np.searchsorted(start[order], from_ns)) if match is None else match
    at = int(order[chosen % len(start)])
    which = int(np.searchsorted(np.cumsum([len(own) for own in places]), at, "right"))
    lane = held.lanes[which]
    own = int(places[which][at - sum(len(one) for one in places[:which])])
    return found | {
        "match": {
            "ordinal": chosen % len(start), "lane": which, "group": lane.group, "title": lane.title,
            "start_ns": int(lane.track.start_ns[own]), "end_ns": int(lane.track.end_ns[own]),
            "name": held.names[int(lane.track.name[own])], "number": int(lane.track.number[own]),
        }
    }  # fmt: skip


@store.snapshot
def _read(engine: "Engine", run_id: int) -> Events:
    untimed = {kind: store.untimed_events(engine, run_id, kind) for kind in store.EVENT_KINDS}
    recordings = store.recordings(engine, run_id)
    sources: Sequence[store.Recording | None] = [None] if recordings is None else recordings
    titles = store.titles_of_recordings(recordings or [])
    found = [(source, store.timed_events(engine, run_id, kind, source))
             for kind in store.EVENT_KINDS for source in sources]  # fmt: skip
    every = sum(len(one.start_ns) for _, one in found)
    if not every:
        raise NotFoundError(
            f"run {run_id} has no event with a start time; upload a trace of it (nsys, nvprof, PyTorch or rocprof)"
        )
    if every > MAX_EVENTS:
        raise UsageError(
            f"run {run_id} has {every} events with a start time, more than the {MAX_EVENTS} of a timeline; "
            "look at it in Perfetto: profsvc export perfetto"
        )
    begin = min(int(one.start_ns.min()) for _, one in found if len(one.start_ns))
    stop = max(int(one.end_ns.max()) for _, one in found if len(one.end_ns))
    known = dict[tuple[str, str], int]()
    lanes: list[Lane] = []
    for source, one in found:
        distinct = {name: known.setdefault((one.kind, name), len(known)) for name in dict.fromkeys(one.names)}
        name_of = np.array([distinct[name] for name in one.names], np.int64)[one.name]  # kernels share a short name
        pairs, which = np.unique(np.stack((one.owner, one.thread)), axis=1, return_inverse=True)
        of_file = "" if source is None else titles[source]
        for number, (owner, thread) in enumerate(pairs.T.tolist()):
            own = which.ravel() == number
            tracks = tracks_of(one.start_ns[own] - begin, one.end_ns[own] - begin, name_of[own], one.number[own])
            title = TITLES[one.kind] if thread < 0 else f"{THREADS[one.kind]} {thread}: {TITLES[one.kind]}"
            group = GROUPS[one.kind].format(owner) + of_file
            for depth, track in enumerate(tracks, 1):
                is_deep = overlaps(track)
                deep = f" (deeper than {MAX_DEPTH} at once: approximate)" if is_deep else ""
                level = f", level {depth}" if depth > 1 else ""
                lanes.append(Lane(one.kind, group, title + level + deep, track, is_deep))
    shown = sorted(range(len(lanes)), key=lambda k: -len(lanes[k].track.start_ns))[:MAX_TRACKS]
    kept = [lanes[k] for k in sorted(shown)]
    left_out = every - sum(len(lane.track.start_ns) for lane in kept)
    return Events(
        begin, max(1, stop - begin), [name for _, name in known], kept, _sensors(engine, run_id, begin, stop), every,
        sum(untimed.values()), left_out, _sessions(engine, run_id), recordings is not None,
    )  # fmt: skip


def _sessions(engine: "Engine", run_id: int) -> int:
    facts = [json.loads(row["facts"] or "{}") for row in store.select(engine, "v1_uploads", run_id=run_id)]
    return len({said["begin_utc_ns"] for said in facts if "begin_utc_ns" in said})


def _sensors(engine: "Engine", run_id: int, begin: int, stop: int) -> list[Sensor]:
    """Return the power and temperature sensors of a run that have readings in the time of the events."""
    rows = [row for row in store.select(engine, "v1_sensors", run_id=run_id) if row["quantity"] in SENSORS]
    boards = {row["gpu_index"] for row in rows} - {None}
    found = []
    for row in rows:
        read = store.sensor_readings(engine, row["sensor_id"])
        inside = (read.time_ns >= begin) & (read.time_ns <= stop) & ~np.isnan(read.value)
        if read.clock == "utc" and inside.any():
            order = np.argsort(read.time_ns[inside], kind="stable")
            time_ns, value = read.time_ns[inside][order] - begin, read.value[inside][order]
            of_board = f" of GPU {row['gpu_index']}" if len(boards) > 1 and row["gpu_index"] is not None else ""
            name = str(row["name"] or row["quantity"]) + of_board
            found.append(Sensor(name, row["quantity"], row["unit"] or "", time_ns, value))
    return found


def _thinned(one: Sensor, begin: int, end: int, columns: int) -> dict[str, Any]:
    """Return the readings of a span, of many the least and the largest of each column; one more on each side."""
    low, high = np.searchsorted(one.time_ns, begin, "left"), np.searchsorted(one.time_ns, end, "right")
    part = slice(max(0, int(low) - 1), int(high) + 1)
    time, value = one.time_ns[part], one.value[part]
    if len(time) > 2 * columns:
        edges = np.unique(np.searchsorted(time, np.linspace(time[0], time[-1], columns + 1)[:-1]))
        low_value, high_value = np.minimum.reduceat(value, edges), np.maximum.reduceat(value, edges)
        time, value = np.repeat(time[edges], 2), np.stack((low_value, high_value), 1).ravel()
    return {
        "name": one.name,
        "quantity": one.quantity,
        "unit": one.unit,
        "time_ns": time.tolist(),
        "value": value.tolist(),
    }
