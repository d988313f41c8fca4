"""The events of a trace in the order of their starts: kernels, copies, API calls, ranges, and launches that wait."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Engine, text

from profsvc import specs
from profsvc.analysis.launches.iterations import RangeTotal
from profsvc.analysis.launches.wall_time import CODES, NO_LANE, NO_NAME, NO_PROCESS, Activity
from profsvc.store.connection.transactions import reading
from profsvc.store.query.timelines import columns_of
from profsvc.store.query.traces.lanes import IS_GRAPH, ROUNDED, TIMED, Trace, of_files, of_trace


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
            f" WHERE {of_trace(table, files[table], own, processes)} AND {TIMED.format('e')} AND {condition}"
            " ORDER BY e.start_ns"
        )

    shapes = " JOIN shapes s ON s.shape_id = e.shape_id"
    no_graph = f"NOT coalesce({IS_GRAPH}, 1 = 0)"
    found = [
        _device(engine, ordered("launches", "e.place_id, s.kernel_id", joins=shapes), trace.places,
                _categories(engine, trace, "kernel")),
        _device(engine, ordered("transfers", "e.process_id, e.device_index, e.kind_id"), trace.keys,
                _categories(engine, trace, "transfer")),
        _device(engine, ordered("ranges", "e.process_id, NULL, 0", IS_GRAPH), trace.keys, {0: CODES["graphs"]}),
        _host(engine, ordered("api_calls", "e.process_id, e.name_id"), _categories(engine, trace, "call")),
        _host(engine, ordered("ranges", "e.process_id, e.name_id", no_graph), None),
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
            f" WHERE {of_files(table, files)}) n ON n.number = x.text_id"
        )
    with reading(engine) as connection:
        rows = connection.execute(text(query)).all()
    return {number: CODES[specs.activity_category(kind, name)] for number, name in rows}


def _device(engine: Engine, query: str, lanes: Mapping[Any, int], categories: Mapping[int, int]) -> Iterator[Activity]:
    """Yield events of devices; those of no lane are left out."""
    for start, end, *place, name in columns_of(engine, query):
        keys = place[0] if len(place) == 1 else list(zip(*place, strict=True))
        lane = np.array([lanes.get(key, NO_LANE) for key in keys], np.int64)
        category = np.array([categories[number] for number in name], np.int64)
        none = np.full(lane.size, NO_NAME)
        found = Activity(_whole(start), _whole(end), category, lane, none, none)
        yield found.take(lane != NO_LANE)


def _host(engine: Engine, query: str, categories: Mapping[int, int] | None) -> Iterator[Activity]:
    """Yield calls with their categories, or ranges."""
    for start, end, process, name in columns_of(engine, query):
        category = (
            np.full(len(start), CODES["host_ranges"])
            if categories is None
            else np.array([categories[number] for number in name], np.int64)
        )
        owner = np.array([NO_PROCESS if one is None else one for one in process], np.int64)
        yield Activity(_whole(start), _whole(end), category, np.full(len(start), NO_LANE), owner, _whole(name))


def _whole(values: Sequence[int]) -> "np.ndarray[Any, np.dtype[np.int64]]":
    return np.array(values, np.int64)


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
        f" WHERE {of_trace('api_calls', calls, trace.files['launches'], trace.processes)} AND {TIMED.format('e')}"
        f" AND e.correlation_id IS NOT NULL GROUP BY {group}{single}"
        f") c ON c.correlation_id = l.correlation_id{same}"
        f" WHERE {of_files('launches', trace.files['launches'], 'l')} AND {TIMED.format('l')}"
        " ORDER BY c.end_ns"
    )
    for start, end, place, kernel, call in columns_of(engine, query):
        lane = np.array([trace.places.get(one, NO_LANE) for one in place], np.int64)
        category = np.full(lane.size, CODES["not_started"])
        found = Activity(_whole(start), _whole(end), category, lane, np.full(lane.size, NO_PROCESS), _whole(kernel))
        lead = _whole(call) - found.end
        early.joined += lead.size
        early.launches += int((lead > 0).sum())
        early.most_ns = max(early.most_ns, int(lead.max()))
        yield found.take((lane != NO_LANE) & (found.end > found.start))


def range_totals(engine: Engine, trace: Trace) -> list[RangeTotal]:
    """Return the names of ranges of a trace: number, name, process, how many have times, and their total time."""
    files = trace.files["ranges"]
    if not files:
        return []
    query = (
        "SELECT e.name_id, x.text, e.process_id, count(*), sum(e.duration_ns) FROM ranges e"
        " JOIN texts x ON x.text_id = e.name_id"
        f" WHERE {of_trace('ranges', files, trace.files['launches'], trace.processes)} AND {TIMED.format('e')}"
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
        f" WHERE {of_files('ranges', trace.files['ranges'])} AND {TIMED.format('e')} AND {condition}"
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
