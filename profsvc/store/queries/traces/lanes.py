"""The events of traces for the wall time: kernels, copies, API calls and ranges, in the order of their starts.

A trace is one file with launches and their times, with what other files of the run say of its processes: tools write
kernels, copies and calls into files of their own. Files of several processes or ranks are several traces.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from profsvc.store.connection.sql import Connection, Engine, text
from profsvc.store.connection.transactions import reading, scanning
from profsvc.store.queries.rows import select
from profsvc.store.queries.traces.timelines import timed_files
from profsvc.store.schema.column_types import IDS_PER_UPLOAD, REPEATED_BITS

MAX_NS = 3 * 10**18  # the difference of two such times is still a 64-bit integer
MAX_LANES = 256
GRAPH_DOMAIN = "CUDA graph"
UNPLACED = "copies, memory sets and graphs without a device, which could be of several, are not in the wall time: {}"
UNTIMED = "{} without a usable start or duration are not in the wall time: {}"
GRAPHS_UNSEEN = (
    "{} launches of CUDA graphs have none of their kernels in the file, so the time that they took counts as idle; "
    "profile with --cuda-graph-trace=node"
)
_KEYS = {"launches": "launch_id", "transfers": "transfer_id", "api_calls": "call_id", "ranges": "range_id"}
ROUNDED = "CAST(round(CAST({0}.duration_ns AS NUMERIC)) AS BIGINT)"
TIMED = (
    f"{{0}}.start_ns BETWEEN -{MAX_NS} AND {MAX_NS} AND {{0}}.duration_ns >= 0 AND {{0}}.duration_ns <= {float(MAX_NS)}"
)
_GRAPH_LAUNCH = "text LIKE 'cudaGraphLaunch%' OR text LIKE 'cuGraphLaunch%'"
IS_GRAPH = f"e.domain_id = (SELECT x.text_id FROM texts x WHERE x.text = '{GRAPH_DOMAIN}')"
# Tables with what ran on devices, and the condition for it.
_ON_DEVICES = {"launches": "1 = 1", "transfers": "1 = 1", "ranges": IS_GRAPH}
# What tells their process and device, and the columns that it is grouped by.
_SPAN_COLUMNS = {
    "launches": ("e.place_id", "e.place_id"),
    "transfers": ("e.process_id, e.device_index", "e.process_id, e.device_index"),
    "ranges": ("e.process_id, NULL AS device_index", "e.process_id"),
}


class TracedLane(NamedTuple):
    """A device of a process of a trace, with its first start and last end."""

    process: int | None
    device: int | None
    begin: int
    stop: int


class Trace(NamedTuple):
    """One trace of a run: its files by table, its lanes, and which of them each process and device is.

    ``places`` is for launches, by the number of the place; ``keys`` for copies, by process and device, and for graphs,
    by process and None. ``processes`` are those that other files may tell of; None for all. A trace that was not read,
    as it has too many events, has only its number of ``events``.
    """

    upload_id: int
    files: Mapping[str, Sequence[int]]
    lanes: Sequence[TracedLane]
    places: Mapping[int, int]
    keys: Mapping[tuple[int | None, int | None], int]
    processes: Sequence[int] | None
    notes: Sequence[str]
    events: int


class _Span(NamedTuple):
    process: int | None
    device: int | None
    events: int
    begin: int
    stop: int
    place: int | None = None


def traces_with_times(engine: Engine, run_id: int, most_events: int | None = None) -> list[Trace]:
    """Return the traces of a run; none if nothing that ran on a device has times.

    Of a trace with more than ``most_events`` events only their number is returned: no event of it is read.
    """
    uploads = select(engine, "v1_uploads", run_id=run_id)
    with reading(engine) as connection:
        query = text("SELECT upload_id, repeats FROM uploads WHERE run_id = :run_id ORDER BY upload_id")
        repeats = {row[0]: row[1] or 0 for row in connection.execute(query, {"run_id": run_id})}
    kernels = list(timed_files(engine, run_id)) if any(row["launches"] for row in uploads) else []
    with scanning(engine) as connection:
        files = {
            table: [
                upload
                for upload in _files_with_rows(connection, table, run_id)
                if not repeats[upload] & REPEATED_BITS[table]
            ]
            for table in ("transfers", "api_calls", "ranges")
        }
        parts: list[tuple[Sequence[int], Mapping[str, Sequence[int]], Sequence[int] | None]]
        if len(kernels) < 2:
            parts = [(kernels, files, None)]
        else:
            processes = {upload: _processes(connection, upload) for upload in kernels}
            parts = [([upload], *_files_of(upload, processes, files)) for upload in kernels]
        found = [_trace(connection, *part, most_events) for part in parts]
    return [one for one in found if one is not None]


def graphs_without_kernels(engine: Engine, run_id: int) -> int:
    """Return how many CUDA graphs of a run were traced as a whole, or were launched and left nothing in the trace."""
    uploads = [row["upload_id"] for row in select(engine, "v1_uploads", run_id=run_id)]
    with reading(engine) as connection:
        query = text(f"SELECT count(*) FROM ranges e WHERE {file_condition('ranges', uploads)} AND {IS_GRAPH}")
        whole = int(connection.execute(query).scalar_one()) if uploads else 0
        return whole or _graphs_unseen(connection, {"api_calls": uploads, "launches": uploads})


def _graphs_unseen(connection: Connection, files: Mapping[str, Sequence[int]]) -> int:
    """Return how many graphs were launched; 0 where the trace has kernels of one, as it then has those of all."""
    names = connection.execute(text(f"SELECT text_id FROM texts WHERE {_GRAPH_LAUNCH}")).scalars().all()
    if not names or not (files["api_calls"] and files["launches"]):
        return 0
    work = f"SELECT l.correlation_id FROM launches l WHERE {file_condition('launches', files['launches'], 'l')}"
    seen = f"max(CASE WHEN e.correlation_id IN ({work} AND l.correlation_id IS NOT NULL) THEN 1 ELSE 0 END)"
    query = text(
        f"SELECT count(DISTINCT e.correlation_id), {seen} FROM api_calls e"
        f" WHERE {file_condition('api_calls', files['api_calls'])} AND e.name_id IN ({', '.join(map(str, names))})"
        " AND e.correlation_id IS NOT NULL"
    )
    launched, is_seen = connection.execute(query).one()
    return 0 if is_seen else int(launched)


def _files_with_rows(connection: Connection, table: str, run_id: int) -> Sequence[int]:
    first = f"u.upload_id * {IDS_PER_UPLOAD}"
    condition = f"e.{_KEYS[table]} BETWEEN {first} AND {first} + {IDS_PER_UPLOAD - 1}"
    query = text(
        f"SELECT u.upload_id FROM uploads u WHERE u.run_id = :run_id"
        f" AND EXISTS (SELECT 1 FROM {table} e WHERE {condition}) ORDER BY u.upload_id"
    )
    return connection.execute(query, {"run_id": run_id}).scalars().all()


def file_condition(table: str, uploads: Sequence[int], name: str = "e") -> str:
    """Return the condition that a row is of one of these files."""
    key = f"{name}.{_KEYS[table]}"
    ranges = (
        f"{key} BETWEEN {upload * IDS_PER_UPLOAD} AND {upload * IDS_PER_UPLOAD + IDS_PER_UPLOAD - 1}"
        for upload in uploads
    )
    return f"({' OR '.join(ranges)})" if uploads else "1 = 0"


def _processes(connection: Connection, upload_id: int) -> set[int]:
    query = text(
        "SELECT DISTINCT p.process_id FROM launches e JOIN places p ON p.place_id = e.place_id"
        f" WHERE p.process_id IS NOT NULL AND {file_condition('launches', [upload_id])}"
    )
    return set(connection.execute(query).scalars())


def _files_of(
    upload: int, processes: Mapping[int, set[int]], files: Mapping[str, Sequence[int]]
) -> tuple[dict[str, list[int]], list[int]]:
    """Return the files of a trace among several, and the processes that no other of them has."""
    others = set[int]().union(*(some for one, some in processes.items() if one != upload))
    own = {table: [one for one in some if one == upload or one not in processes] for table, some in files.items()}
    return own, sorted(processes[upload] - others)


def _trace(
    connection: Connection,
    kernels: Sequence[int],
    files: Mapping[str, Sequence[int]],
    processes: Sequence[int] | None,
    most_events: int | None,
) -> Trace | None:
    """Return a trace; None if nothing that ran on a device has times."""
    tables = {**files, "launches": kernels}
    first = min(kernels or [*files["transfers"], *files["ranges"]], default=0)
    events = sum(_rows_at_most(connection, table, uploads) for table, uploads in tables.items())
    if most_events is not None and events > most_events:
        known = any(_any_timed(connection, table, tables[table], kernels, processes) for table in _ON_DEVICES)
        return Trace(first, tables, [], {}, {}, processes, [], events) if known else None
    launches, copies, graphs = (_spans(connection, table, tables[table], kernels, processes) for table in _ON_DEVICES)
    keys = _merged_keys([*launches, *(one for one in copies if one.device is not None)])
    unplaced = 0
    places, of_key = {}, {}
    for span in (*launches, *copies, *graphs):
        key = _key_of(span, keys)
        if key is None and not keys:
            key = span.process, span.device
            keys[key] = span
        if key is None:
            unplaced += span.events
            continue
        keys[key] = keys[key]._replace(
            events=keys[key].events + span.events,
            begin=min(keys[key].begin, span.begin),
            stop=max(keys[key].stop, span.stop),
        )
        if span.place is None:
            of_key[span.process, span.device] = key
        else:
            places[span.place] = key
    notes = [UNPLACED.format(unplaced)] if unplaced else []
    for table, name, spans in (("launches", "launches", launches), ("transfers", "copies and memory sets", copies)):
        timed = sum(span.events for span in spans)
        if untimed := _count(connection, table, tables[table], kernels, processes) - timed:
            notes.append(UNTIMED.format(name, untimed))
    if not graphs and (unseen := _graphs_unseen(connection, tables)):
        notes.append(GRAPHS_UNSEEN.format(unseen))
    if not keys:
        return None
    kept = sorted(keys, key=lambda key: -keys[key].events)[:MAX_LANES]
    if len(keys) > MAX_LANES:
        notes.append(f"{len(keys)} devices of processes; only the {MAX_LANES} with most events have a wall time")
    kept.sort(key=lambda key: (key[0] is not None, key[0] or 0, key[1] is not None, key[1] or 0))
    number = {key: place for place, key in enumerate(kept)}
    return Trace(
        first,
        tables,
        [TracedLane(*key, keys[key].begin, keys[key].stop) for key in kept],
        {place: number[key] for place, key in places.items() if key in number},
        {name: number[key] for name, key in of_key.items() if key in number},
        processes,
        notes,
        events,
    )


def _any_timed(
    connection: Connection, table: str, uploads: Sequence[int], own: Sequence[int], processes: Sequence[int] | None
) -> bool:
    """Tell whether something that ran on a device has times."""
    condition = f"{trace_condition(table, uploads, own, processes)} AND {TIMED.format('e')} AND {_ON_DEVICES[table]}"
    return connection.execute(text(f"SELECT 1 FROM {table} e WHERE {condition} LIMIT 1")).first() is not None


def _count(
    connection: Connection, table: str, uploads: Sequence[int], own: Sequence[int], processes: Sequence[int] | None
) -> int:
    condition = trace_condition(table, uploads, own, processes)
    return int(connection.execute(text(f"SELECT count(*) FROM {table} e WHERE {condition}")).scalar_one())


def _rows_at_most(connection: Connection, table: str, uploads: Sequence[int]) -> int:
    """Return how many rows files have in a table, by the numbers of their last ones."""
    query = f"SELECT max(e.{_KEYS[table]}) FROM {table} e WHERE "
    last = (connection.execute(text(query + file_condition(table, [upload]))).scalar() or 0 for upload in uploads)
    return sum(number % IDS_PER_UPLOAD for number in last)


def _spans(
    connection: Connection, table: str, uploads: Sequence[int], own: Sequence[int], processes: Sequence[int] | None
) -> list[_Span]:
    """Return number, first start and last end of events by process and device; of launches by place."""
    if not uploads:
        return []
    names, grouped = _SPAN_COLUMNS[table]
    query = (
        f"SELECT {names}, count(*) AS events, min(e.start_ns) AS first_ns,"
        f" max(e.start_ns + {ROUNDED.format('e')}) AS last_ns FROM {table} e"
        f" WHERE {trace_condition(table, uploads, own, processes)} AND {TIMED.format('e')} AND {_ON_DEVICES[table]}"
        f" GROUP BY {grouped}"
    )
    if table == "launches":  # the few places are joined to the sums, since many rows are slow to group by more columns
        query = (
            "SELECT p.process_id, p.device_index, s.events, s.first_ns, s.last_ns, s.place_id"
            f" FROM ({query}) s JOIN places p ON p.place_id = s.place_id"
        )
    return [_Span(*row) for row in connection.execute(text(query))]


def trace_condition(
    table: str, uploads: Sequence[int], own: Sequence[int], processes: Sequence[int] | None, name: str = "e"
) -> str:
    """Return the condition that a row belongs to a trace: it is in its file, or of one of its processes."""
    if processes is None or table == "launches":
        return file_condition(table, uploads, name)
    named = f"{name}.process_id IN ({', '.join(map(str, processes))})" if processes else "1 = 0"
    mine, others = ([one for one in uploads if (one in own) is wanted] for wanted in (True, False))
    return f"({file_condition(table, mine, name)} OR ({file_condition(table, others, name)} AND {named}))"


def _merged_keys(spans: Sequence[_Span]) -> dict[tuple[int | None, int | None], _Span]:
    """Return the lanes, each with no event yet."""
    found: dict[tuple[int | None, int | None], _Span] = {}
    for span in spans:
        key = (span.process, span.device)
        if _key_of(span, found) is None or key[1] is not None:
            found.setdefault(key, span._replace(events=0))
    return found


def _key_of(span: _Span, keys: Mapping[tuple[int | None, int | None], _Span]) -> tuple[int | None, int | None] | None:
    """Return the lane of events: theirs by process and device, else the only one that it can be."""
    wanted = (span.process, span.device)
    if wanted in keys:
        return wanted
    possible = [
        key for key in keys
        if all(None in (own, known) or own == known for own, known in zip(wanted, key, strict=True))
    ]  # fmt: skip
    return possible[0] if len(possible) == 1 else None
