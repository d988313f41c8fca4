"""The events of a trace in the order of their starts: kernels, copies, API calls, ranges, and launches that wait."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from profsvc import specs
from profsvc.analysis.launches.iterations import RangeTotal
from profsvc.analysis.launches.wall_time import CODES, NO_LANE, NO_NAME, NO_PROCESS, Activity
from profsvc.store.connection.sql import Engine, text
from profsvc.store.connection.transactions import reading
from profsvc.store.queries.traces.lanes import IS_GRAPH, ROUNDED, TIMED, Trace, file_condition, trace_condition
from profsvc.store.queries.traces.timelines import integer_columns

NO_DEVICE = NO_PROCESS
EVENTS_PER_FETCH = 1 << 13
"""Events of each stream in memory; adding up their times takes some 400 bytes for each."""
_OWNER = f"coalesce(e.process_id, {NO_PROCESS})"
Ints = NDArray[np.int64]


@dataclass
class EarlyLaunches:
    """Launches that begin before the call that launched them, by at most ``most_ns``, of those joined to their call."""

    joined: int = 0
    launches: int = 0
    most_ns: int = 0


def trace_streams(engine: Engine, trace: Trace, early: EarlyLaunches) -> list[Iterator[Activity]]:
    """Return the events of a trace in streams, each in the order of its starts; open each only once.

    ``early`` is filled in as the streams are read.
    """
    files, own, processes = trace.files, trace.files["launches"], trace.processes
    end = f"e.start_ns + {ROUNDED.format('e')}"

    def ordered(table: str, columns: str, condition: str = "1 = 1", joins: str = "") -> str:
        return (
            f"SELECT e.start_ns, {end}, {columns} FROM {table} e{joins}"
            f" WHERE {trace_condition(table, files[table], own, processes)} AND {TIMED.format('e')} AND {condition}"
            " ORDER BY e.start_ns"
        )

    shapes = " JOIN shapes s ON s.shape_id = e.shape_id"
    no_graph = f"NOT coalesce({IS_GRAPH}, 1 = 0)"
    on_place = partial(_mapped, meanings=trace.places, missing=NO_LANE)
    on_pair = partial(_lanes_of_pairs, lanes=trace.keys)
    launches = ordered("launches", "e.place_id, s.kernel_id", joins=shapes)
    transfers = ordered("transfers", f"{_OWNER}, coalesce(e.device_index, {NO_DEVICE}), e.kind_id")
    graphs = ordered("ranges", f"{_OWNER}, {NO_DEVICE}, 0", IS_GRAPH)
    found = [
        _device(engine, launches, 1, on_place, _categories(engine, trace, "kernel")),
        _device(engine, transfers, 2, on_pair, _categories(engine, trace, "transfer")),
        _device(engine, graphs, 2, on_pair, {0: CODES["graphs"]}),
        _host(engine, ordered("api_calls", f"{_OWNER}, e.name_id"), _categories(engine, trace, "call")),
        _host(engine, ordered("ranges", f"{_OWNER}, e.name_id", no_graph), None),
    ]  # fmt: skip
    if own and files["api_calls"]:
        found.append(_not_started(engine, trace, early))
    return found


def _categories(engine: Engine, trace: Trace, kind: str) -> dict[int, int]:
    """Return the category of each kernel, kind of transfer or call of a trace, by the number of its name."""
    table, column = {
        "kernel": ("launches", ""),
        "transfer": ("transfers", "kind_id"),
        "call": ("api_calls", "name_id"),
    }[kind]
    files = trace.files[table]
    if kind == "kernel":
        among = ", ".join(map(str, files)) or "0"
        query = (
            "SELECT DISTINCT k.kernel_id, k.kernel_short FROM kernel_totals t JOIN kernels k"
            f" ON k.kernel_id = t.kernel_id WHERE t.upload_id IN ({among})"
        )
    else:
        query = (
            f"SELECT x.text_id, x.text FROM texts x JOIN (SELECT DISTINCT e.{column} AS number FROM {table} e"
            f" WHERE {file_condition(table, files)}) n ON n.number = x.text_id"
        )
    with reading(engine) as connection:
        rows = connection.execute(text(query)).all()
    return {number: CODES[specs.activity_category(kind, name)] for number, name in rows}


def _device(
    engine: Engine, query: str, columns: int, lane_of: Callable[..., Ints], categories: Mapping[int, int]
) -> Iterator[Activity]:
    """Yield events of devices, whose place has so many ``columns``; those of no lane are left out."""
    for start, end, *place, name in integer_columns(engine, query, columns + 3, EVENTS_PER_FETCH):
        lane = lane_of(*place)
        none = np.full(lane.size, NO_NAME)
        yield Activity(start, end, _mapped(name, categories, NO_NAME), lane, none, none).take(lane != NO_LANE)


def _lanes_of_pairs(process: Ints, device: Ints, *, lanes: Mapping[tuple[int | None, int | None], int]) -> Ints:
    """Return the lanes of processes and devices."""
    # Numbers of pairs are sorted much faster than pairs.
    (processes, of_process), (devices, of_device) = (np.unique(one, return_inverse=True) for one in (process, device))
    found, which = np.unique(of_process * len(devices) + of_device, return_inverse=True)
    pairs = zip(processes[found // len(devices)].tolist(), devices[found % len(devices)].tolist(), strict=True)
    known = [(None if one == NO_PROCESS else one, None if other == NO_DEVICE else other) for one, other in pairs]
    return np.array([lanes.get(pair, NO_LANE) for pair in known], np.int64)[which]


def _mapped(values: Ints, meanings: Mapping[int, int], missing: int) -> Ints:
    """Return the meaning of each value.

    >>> _mapped(np.array([7, 3, 5]), {3: 30, 7: 70}, -1)
    array([70, 30, -1])
    """
    known = np.array(sorted(meanings), np.int64)
    found = np.array([meanings[number] for number in known.tolist()] + [missing], np.int64)
    place = np.searchsorted(known, values)
    return found[np.where(np.append(known, 0)[place] == values, place, known.size)]


def _host(engine: Engine, query: str, categories: Mapping[int, int] | None) -> Iterator[Activity]:
    """Yield calls with their categories, or ranges."""
    for start, end, process, name in integer_columns(engine, query, 4, EVENTS_PER_FETCH):
        lane = np.full(start.size, NO_LANE)
        ranges = np.full(start.size, CODES["host_ranges"])
        category = ranges if categories is None else _mapped(name, categories, CODES["other_calls"])
        yield Activity(start, end, category, lane, process, name)


def _not_started(engine: Engine, trace: Trace, early: EarlyLaunches) -> Iterator[Activity]:
    """Yield the time of each launch between the end of the call that launched it and its start.

    A call of the runtime and the call of the driver inside it may have one number: the work is submitted when the
    first returns. Numbers that several processes use are of no use where the launches do not name their process.
    """
    named = all(lane.process is not None for lane in trace.lanes)
    calls = trace.files["api_calls"]
    group = "e.correlation_id, e.process_id" if named else "e.correlation_id"
    single = "" if named else " HAVING min(coalesce(e.process_id, -1)) = max(coalesce(e.process_id, -1))"
    same = " AND c.process_id = p.process_id" if named else ""
    query = (
        "SELECT c.end_ns, l.start_ns, l.place_id, s.kernel_id, c.begin_ns"
        " FROM launches l JOIN places p ON p.place_id = l.place_id"
        " JOIN shapes s ON s.shape_id = l.shape_id JOIN ("
        f"SELECT {group}, min(e.start_ns + {ROUNDED.format('e')}) AS end_ns, min(e.start_ns) AS begin_ns"
        " FROM api_calls e"
        f" WHERE {trace_condition('api_calls', calls, trace.files['launches'], trace.processes)}"
        f" AND {TIMED.format('e')} AND e.correlation_id IS NOT NULL GROUP BY {group}{single}"
        f") c ON c.correlation_id = l.correlation_id{same}"
        f" WHERE {file_condition('launches', trace.files['launches'], 'l')} AND {TIMED.format('l')}"
        " ORDER BY c.end_ns"
    )
    for start, end, place, kernel, call in integer_columns(engine, query, 5, EVENTS_PER_FETCH):
        lane = _mapped(place, trace.places, NO_LANE)
        category, process = np.full(lane.size, CODES["not_started"]), np.full(lane.size, NO_PROCESS)
        early.joined += lane.size
        early.launches += int((call > end).sum())
        early.most_ns = max(early.most_ns, int((call - end).max()))
        found = Activity(start, end, category, lane, process, kernel)
        yield found.take((lane != NO_LANE) & (end > start))


def range_totals(engine: Engine, trace: Trace) -> list[RangeTotal]:
    """Return the names of ranges of a trace: number, name, process, how many have times, and their total time."""
    files = trace.files["ranges"]
    if not files:
        return []
    query = (
        "SELECT e.name_id, x.text, e.process_id, count(*), sum(e.duration_ns) FROM ranges e"
        " JOIN texts x ON x.text_id = e.name_id"
        f" WHERE {trace_condition('ranges', files, trace.files['launches'], trace.processes)} AND {TIMED.format('e')}"
        f" AND NOT coalesce({IS_GRAPH}, 1 = 0) GROUP BY e.name_id, x.text, e.process_id"
    )
    with reading(engine) as connection:
        return [tuple(row) for row in connection.execute(text(query))]


def ranges_named(
    engine: Engine, trace: Trace, names: Sequence[int], process: int | None, most: int
) -> list[tuple[int, int, int]]:
    """Return start, end and name of the first ranges of a process with these names, in the order of their starts."""
    condition = "e.process_id IS NULL" if process is None else f"e.process_id = {int(process)}"
    query = text(
        f"SELECT e.start_ns, e.start_ns + {ROUNDED.format('e')}, e.name_id FROM ranges e"
        f" WHERE {file_condition('ranges', trace.files['ranges'])} AND {TIMED.format('e')} AND {condition}"
        f" AND e.name_id IN ({', '.join(str(int(name)) for name in names)}) ORDER BY e.start_ns LIMIT {int(most)}"
    )
    with reading(engine) as connection:
        return [tuple(row) for row in connection.execute(query)]


def names_of(engine: Engine, kernels: Collection[int], texts: Collection[int]) -> Callable[[bool, int], str]:
    """Return a function from whether a number is of a kernel, and the number, to its name."""
    found: dict[tuple[bool, int], str] = {}
    tables = ((True, "kernels", "kernel_id", "kernel_short", kernels), (False, "texts", "text_id", "text", texts))
    with reading(engine) as connection:
        for is_kernel, table, key, name, numbers in tables:
            if numbers:
                query = f"SELECT {key}, {name} FROM {table} WHERE {key} IN ({', '.join(map(str, sorted(numbers)))})"
                found |= {(is_kernel, number): said for number, said in connection.execute(text(query))}
    return lambda is_kernel, number: found[is_kernel, number]
