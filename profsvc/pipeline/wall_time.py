"""The wall time of a run by what went on, from its traces."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from profsvc import store
from profsvc.analysis.launches.iterations import RangeTotal, follow_each_other, range_groups, without_numbers
from profsvc.analysis.launches.wall_time import (
    CATEGORIES,
    FIRST_GAP,
    NO_PROCESS,
    Lane,
    LaneWallTime,
    wall_time_of_lanes,
)

if TYPE_CHECKING:
    from sqlalchemy import Engine

HOST_RANGES = "host_ranges"
MAX_ITERATIONS = 1_000
MAX_NAMES = 20
# The wall time of longer traces is added up when somebody asks for it: an upload of them would take half as long again.
MAX_EVENTS_AT_UPLOAD = 1_000_000
TOO_LONG = "{:,} events are too many to add up during an upload; run: profsvc analyze id:{}"
NO_CALLS = "the trace has no API calls of the host, so what the host did in the gaps is unknown"
NO_LAUNCH_CALLS = "no launch of the trace is joined to its call, so launch latency is unknown"
EARLY = (
    "launches that begin before the call that launched them: {}, by up to {:.4g} us; the clocks of host and device "
    "differ, so parts of gaps are as uncertain as this"
)
FEW_ITERATIONS = "only the first {} iterations have rows of their own"
Row = dict[str, Any]


@store.snapshot
def wall_time_of_run(engine: "Engine", run_id: int, *, asked: bool) -> list[Row]:
    """Return the rows of the wall time of a run as they are stored; none without a trace.

    Kernels, transfers, calls and ranges are read in turns: over one connection, since each further one takes longer
    than a short trace.

    Of a very long trace it is only added up where somebody ``asked`` for it; else what to do is noted.
    """
    rows: list[Row] = []
    most_events = None if asked else MAX_EVENTS_AT_UPLOAD
    for trace in store.traces_with_times(engine, run_id, most_events):
        if most_events is not None and trace.events > most_events:
            message = TOO_LONG.format(trace.events, run_id)
            rows.append({"part": "note", "upload_id": trace.upload_id, "wall_ns": 0, "message": message})
        else:
            rows += _named(engine, _rows_of_trace(engine, trace))
    return rows


def _rows_of_trace(engine: "Engine", trace: "store.Trace") -> Iterator[Row]:
    totals, early = store.range_totals(engine, trace), store.EarlyLaunches()
    iterations = {lane.process: _iterations(engine, trace, totals, lane.process) for lane in trace.lanes}
    lanes = [
        Lane(
            one.begin,
            one.stop,
            NO_PROCESS if one.process is None else one.process,
            [(begin, end) for begin, end, _ in iterations[one.process] if begin < one.stop and end > one.begin],
        )
        for one in trace.lanes
    ]
    found = wall_time_of_lanes(lanes, store.trace_streams(engine, trace, early))
    for traced, lane, times in zip(trace.lanes, lanes, found, strict=True):
        about = {"upload_id": trace.upload_id, "process_id": traced.process, "device_index": traced.device}
        about |= {"wall_ns": lane.stop - lane.begin}
        named = {begin: name for begin, _, name in iterations[traced.process]}
        for row in (*_budget(times), *_details(times), *_of_iterations(lane, times, named)):
            yield about | row
        for text in _notes(trace, early, len(lane.iterations)):
            yield about | {"part": "note", "message": text}


def _iterations(
    engine: "Engine", trace: "store.Trace", totals: Sequence[RangeTotal], process: int | None
) -> Sequence[tuple[int, int, int]]:
    """Return start, end and name of the iterations that a process marked."""
    for group in range_groups(totals):
        if None in (group.process, process) or group.process == process:
            found = store.ranges_named(engine, trace, group.names, group.process, MAX_ITERATIONS)
            found = [one for one in found if one[1] > one[0]]
            if follow_each_other(found):
                return found
    return []


def _budget(times: LaneWallTime) -> Iterable[Row]:
    for category, exposed, active, events in zip(
        CATEGORIES, times.exposed.tolist(), times.active.tolist(), times.events.tolist(), strict=True
    ):
        if exposed or active or events:
            yield {
                "part": "budget",
                "category": category,
                "time_ns": exposed,
                "hidden_ns": active - exposed,
                "events": events,
            }


def _details(times: LaneWallTime) -> Iterable[Row]:
    for code in range(FIRST_GAP, len(CATEGORIES)):
        for (category, name), total in times.details.items():
            if category == code:
                yield {"part": "detail", "category": CATEGORIES[code], "time_ns": total, "name": name}


def _of_iterations(lane: Lane, times: LaneWallTime, named: Mapping[int, int]) -> Iterable[Row]:
    for number, ((begin, _), row) in enumerate(zip(lane.iterations, times.of_iterations.tolist(), strict=True)):
        for category, exposed in zip(CATEGORIES, row, strict=True):
            if exposed:
                about = {"part": "iteration", "iteration": number, "start_ns": begin, "name": named[begin]}
                yield about | {"category": category, "time_ns": exposed}


def _notes(trace: "store.Trace", early: "store.EarlyLaunches", iterations: int) -> Iterator[str]:
    yield from trace.notes
    if not trace.files["api_calls"]:
        yield NO_CALLS
    elif not early.joined:
        yield NO_LAUNCH_CALLS
    if early.launches:
        yield EARLY.format(early.launches, early.most_ns / 1e3)
    if iterations >= MAX_ITERATIONS:
        yield FEW_ITERATIONS.format(iterations)


def _named(engine: "Engine", rows: Iterable[Row]) -> list[Row]:
    """Return the rows with names in place of their numbers; of the details those with most time, once per name.

    Ranges whose names differ by numbers only have one name, with # for each number.
    """
    found, numbers, details = list(rows), {True: set[int](), False: set[int]()}, dict[tuple[Any, ...], Row]()
    for row in found:
        if "name" in row:
            numbers[_is_kernel(row)].add(row["name"])
    name_of, kept = store.names_of(engine, numbers[True], numbers[False]), []
    named = [row | {"name": name_of(_is_kernel(row), row["name"])} if "name" in row else row for row in found]
    ranges = {row["name"] for row in named if row["part"] == "detail" and row["category"] == HOST_RANGES}
    alike = Counter(map(without_numbers, ranges))
    for row in named:
        if row["part"] == "detail":  # kernels with other template arguments have one short name
            name = row["name"]
            if row["category"] == HOST_RANGES and alike[without_numbers(name)] > 1:
                name = without_numbers(name)
            key = row["process_id"], row["device_index"], row["category"], name
            time_ns = row["time_ns"] + (details[key]["time_ns"] if key in details else 0)
            details[key] = row | {"name": name, "time_ns": time_ns}
        else:
            kept.append(row)
    ranked = sorted(details.values(), key=lambda row: (-row["time_ns"], row["name"]))
    places = Counter[tuple[Any, ...]]()
    for row in ranked:
        category = row["process_id"], row["device_index"], row["category"]
        places[category] += 1
        if places[category] <= MAX_NAMES:
            kept.append(row)
    return kept


def _is_kernel(row: Mapping[str, Any]) -> bool:
    return bool(row["part"] == "detail" and row["category"] == CATEGORIES[FIRST_GAP])
