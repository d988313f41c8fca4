"""Events on a time axis at the level of detail of a screen: each event, or columns of time and what was busy then."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
MAX_DEPTH = 16


class Track(NamedTuple):
    """Events that do not overlap, in the order of their starts."""

    start_ns: Ints
    end_ns: Ints
    name: Ints
    number: Ints
    busy_ns: Ints
    """Time of the events before each, and of all."""


class Level(NamedTuple):
    """What is shown of a track: items of one event, or of several with the name of the longest."""

    start_ns: Ints
    end_ns: Ints
    events: Ints
    busy_ns: Ints
    name: Ints
    number: Ints


def tracks_of(start_ns: Ints, end_ns: Ints, name: Ints, number: Ints) -> list[Track]:
    """Return events as tracks: an event that overlaps another of its track stands in a deeper one.

    >>> events = [np.array(column) for column in ([0, 2, 9], [8, 5, 12], [0, 1, 0], [7, 8, 9])]
    >>> [track.start_ns.tolist() for track in tracks_of(*events)]
    [[0, 9], [2]]
    """
    order = np.lexsort((-end_ns, start_ns))
    columns = [column[order] for column in (start_ns, end_ns, name, number)]
    depth = depths(columns[0], columns[1])
    return [_track(*(column[depth == k] for column in columns)) for k in range(int(depth.max(initial=-1)) + 1)]


def _track(start_ns: Ints, end_ns: Ints, name: Ints, number: Ints) -> Track:
    return Track(start_ns, end_ns, name, number, np.concatenate([[0], np.cumsum(end_ns - start_ns)]))


def depths(start_ns: Ints, end_ns: Ints) -> Ints:
    """Return the depth of each event, sorted by start: the first free track, or the deepest.

    >>> depths(np.array([0, 2, 3, 9]), np.array([8, 5, 4, 12]))
    array([0, 1, 2, 0])
    """
    latest = np.maximum.accumulate(end_ns)
    if not (start_ns[1:] < latest[:-1]).any():
        return np.zeros(len(start_ns), np.int64)
    free_from: list[int] = []
    found = np.empty(len(start_ns), np.int64)
    for at, (begin, end) in enumerate(zip(start_ns.tolist(), end_ns.tolist(), strict=True)):
        depth = next((k for k, free in enumerate(free_from) if free <= begin), len(free_from))
        if depth == MAX_DEPTH:
            depth -= 1
        if depth == len(free_from):
            free_from.append(end)
        free_from[depth] = max(end, free_from[depth])
        found[at] = depth
    return found


def overlaps(track: Track) -> bool:
    """Tell whether events of a track overlap: it is the deepest one, and more events than tracks ran at once.

    >>> overlaps(_track(*(np.array(c) for c in ([0, 4], [5, 6], [0, 0], [1, 2]))))
    True
    """
    return bool((track.start_ns[1:] < np.maximum.accumulate(track.end_ns)[:-1]).any())


def level_of(track: Track, from_ns: int, to_ns: int, columns: int) -> Level:
    """Return what a track shows of a span: every event if they are at most ``columns``, else so many columns of time.

    A column with events or busy time is an item. Sums over all items are those of the events in the span.

    >>> track = _track(*(np.array(c) for c in ([0, 4, 5], [3, 5, 9], [0, 1, 2], [1, 2, 3])))
    >>> level_of(track, 0, 10, 2).busy_ns.tolist(), level_of(track, 0, 10, 2).events.tolist()
    ([4, 4], [2, 1])
    >>> level_of(track, 3, 6, 8).start_ns.tolist()
    [4, 5]
    """
    low = int(np.searchsorted(track.end_ns, from_ns, "right")) if _is_sorted(track.end_ns) else 0
    high = int(np.searchsorted(track.start_ns, to_ns, "left"))
    if high - low <= columns:
        part = slice(low, max(low, high))
        begin, end = track.start_ns[part], track.end_ns[part]
        inside = (end > from_ns) | (begin >= from_ns)
        begin, end = begin[inside], end[inside]
        return Level(begin, end, np.ones_like(begin), end - begin, track.name[part][inside], track.number[part][inside])
    edges = from_ns + (np.arange(columns + 1) * (to_ns - from_ns)) // columns
    places = np.searchsorted(track.start_ns, edges, "left")
    busy, events = np.diff(_busy_until(track, edges)), np.diff(places)
    kept = np.flatnonzero((events > 0) | (busy > 0))
    return Level(
        edges[kept], edges[kept + 1], events[kept], busy[kept], _longest(track, places, kept), np.zeros_like(kept)
    )


def sums_by_name(track: Track, from_ns: int, to_ns: int, names: int) -> tuple[Ints, Ints]:
    """Return for each of so many names how many events of a span have it, and their time within the span.

    >>> track = _track(*(np.array(c) for c in ([0, 4, 5], [3, 5, 9], [0, 1, 0], [1, 2, 3])))
    >>> [sums.tolist() for sums in sums_by_name(track, 2, 6, 2)]
    [[2, 1], [2, 1]]
    """
    low = int(np.searchsorted(track.end_ns, from_ns, "left")) if _is_sorted(track.end_ns) else 0
    high = max(low, int(np.searchsorted(track.start_ns, to_ns, "left")))
    begin, end, name = track.start_ns[low:high], track.end_ns[low:high], track.name[low:high]
    inside = (end > from_ns) | (begin >= from_ns)
    length = np.minimum(end, to_ns) - np.maximum(begin, from_ns)
    events = np.bincount(name[inside], minlength=names)
    # Doubles have whole nanoseconds up to 104 days.
    return events, np.bincount(name[inside], length[inside], names).astype(np.int64)


def _is_sorted(values: Ints) -> bool:
    return bool((values[1:] >= values[:-1]).all())


def _busy_until(track: Track, times: Ints) -> Ints:
    """Return the busy time of a track until each time."""
    place = np.searchsorted(track.start_ns, times, "left")
    last = np.maximum(place - 1, 0)
    over = np.where(place > 0, np.maximum(track.end_ns[last] - times, 0), 0) if len(track.end_ns) else 0
    return np.asarray(track.busy_ns[place] - over)


def _longest(track: Track, places: Ints, kept: Ints) -> Ints:
    """Return the name of the longest event that starts in each column; of none, that of the event under way."""
    length = track.end_ns - track.start_ns
    found = np.empty(len(kept), np.int64)
    for at, (low, high) in enumerate(zip(places[kept].tolist(), places[kept + 1].tolist(), strict=True)):
        found[at] = low + int(length[low:high].argmax()) if high > low else max(0, low - 1)
    return track.name[found]
