"""What the key of launches costs while a long file is loaded into Postgres, and what would cost less.

Run it with ``python -m tests.benchmarks.launch_keys``. One connection writes the same launches (1.2 million, as many as
a trace of 1.5 million rows has; ``--rows``) by binary COPY in blocks, as a load does, into tables that differ in their
key and in the width of their numbers. Printed are the processor time of the server for the rows and for what is built
behind them, the write-ahead log, the size, and the median of look-ups of one launch.

The other part asks what a table of its own for each long file would cost, whose key is built at the end: it looks up
launches in a parent with more and more of such tables, which inherit from it or are its partitions, one launch by a
number that is written in the query, and 200 of one file by a join.
"""

import random
import statistics
import time
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psycopg

from profsvc.store.ingest.inserts.postgres_copy import HEADER, TRAILER, Plain, block
from profsvc.store.schema.column_types import IDS_PER_UPLOAD
from tests.benchmarks.loading import DURABLE
from tests.command_line import parser_of
from tests.environment.postgres import Server, server

ROWS_PER_BLOCK = 40_000
FIRST = 7 * IDS_PER_UPLOAD
LOOK_UPS = 300
KEY = "ADD PRIMARY KEY (launch_id)"
TICKS = 100  # of the processor time in /proc, a second
PARTS = (1, 8, 64)
PART_ROWS = 20_000
JOINS, JOINED = 20, 200


class Way(NamedTuple):
    """How launches are kept: whether numbers are narrow, what is made before the rows, and what behind them."""

    title: str
    narrow: bool = False
    before: str = ""
    behind: str = ""


WAYS = (
    Way("as it is: a key row by row", before=f"ALTER TABLE rows {KEY}"),
    Way("no key", before=""),
    Way("a key built behind the rows", behind=f"ALTER TABLE rows {KEY}"),
    Way("BRIN of 128 pages", before="CREATE INDEX ON rows USING brin (launch_id)"),
    Way("BRIN of 4 pages", before="CREATE INDEX ON rows USING brin (launch_id) WITH (pages_per_range = 4)"),
    Way("narrow, a key row by row", narrow=True, before=f"ALTER TABLE rows {KEY}"),
    Way("narrow, a key behind the rows", narrow=True, behind=f"ALTER TABLE rows {KEY}"),
)


def launches(rows: int) -> dict[str, Plain]:
    """Return columns as those of a trace; those that may be narrow have their width."""
    draw = np.random.default_rng(1)
    ones, places = np.ones(rows, np.int64), np.arange(rows, dtype=np.int64)
    return {
        "launch_id": Plain(places + FIRST, None),
        "start_ns": Plain(np.cumsum(draw.integers(1, 50_000, rows)), None),
        "duration_ns": Plain(draw.random(rows) * 1e6, None),
        "place_id": Plain(ones, None, 4),
        "shape_id": Plain(draw.integers(1, 6_720, rows), None, 4),
        "grid_x": Plain(draw.integers(1, 4_096, rows), None, 4),
        "grid_y": Plain(ones, None, 4),
        "grid_z": Plain(ones, None, 4),
        "shared_mem_dynamic_bytes": Plain(0 * ones, None, 4),
        "correlation_id": Plain(places, None, 4),
        "line": Plain(places + 4, None, 4),
    }


def processor_s(session: psycopg.Connection[Any]) -> float:
    """Return the processor time of the server for a connection so far, in seconds."""
    stat = Path(f"/proc/{session.info.backend_pid}/stat").read_text(encoding="ascii")
    words = stat.rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / TICKS


def log_bytes(session: psycopg.Connection[Any]) -> int:
    """Return how many bytes the write-ahead log has had."""
    return int(one(session, "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')"))


def one(session: psycopg.Connection[Any], query: str) -> Any:
    """Return the only value of a query."""
    return (session.execute(query).fetchone() or (None,))[0]


def write(session: psycopg.Connection[Any], columns: dict[str, Plain], table: str = "rows") -> None:
    """Write columns by binary COPY, a block in each statement."""
    words = f"COPY {table} ({', '.join(columns)}) FROM STDIN (FORMAT BINARY)"
    for begin in range(0, len(columns["launch_id"].values), ROWS_PER_BLOCK):
        some = [own._replace(values=own.values[begin : begin + ROWS_PER_BLOCK]) for own in columns.values()]
        with session.cursor() as cursor, cursor.copy(words) as copy:
            for piece in (HEADER, block(some), TRAILER):
                copy.write(piece)


def make(session: psycopg.Connection[Any], columns: dict[str, Plain], kind: str = "") -> None:
    """Make an empty table of columns."""
    types = {name: "float8" if of.values.dtype.kind == "f" else f"int{of.width}" for name, of in columns.items()}
    session.execute(f"CREATE TABLE rows ({', '.join(f'{name} {of}' for name, of in types.items())}) {kind}")


def looked_up_ms(session: psycopg.Connection[Any], numbers: Sequence[int], query: str) -> float:
    """Return the median of the time of a query for each of some numbers, in ms."""
    took = []
    for number in numbers:
        begin = time.perf_counter()
        session.execute(query.format(number)).fetchall()
        took.append(1e3 * (time.perf_counter() - begin))
    return statistics.median(took)


def of_ways(at: Server, given: dict[str, Plain]) -> Iterator[str]:
    """Yield a line for each way to keep launches."""
    rows = len(given["launch_id"].values)
    some = [FIRST + random.Random(place).randrange(rows) for place in range(LOOK_UPS)]
    for way in WAYS:
        columns = given if way.narrow else {name: of._replace(width=8) for name, of in given.items()}
        with at.session("postgres") as session:
            make(session, columns)
            if way.before:
                session.execute(way.before)
            before, log = processor_s(session), log_bytes(session)
            with session.transaction():
                write(session, columns)
                written = processor_s(session)
                if way.behind:
                    session.execute(way.behind)
            done, log = processor_s(session), log_bytes(session) - log
            session.execute("VACUUM ANALYZE rows")
            size = one(session, "SELECT pg_total_relation_size('rows')")
            ms = float("nan")
            if way.before or way.behind:
                ms = looked_up_ms(session, some, "SELECT * FROM rows WHERE launch_id = {}")
            session.execute("DROP TABLE rows")
        yield (f"{way.title:32}{written - before:9.2f}{done - written:9.2f}{log / 1e6:9.0f}{size / 1e6:9.0f}{ms:12.3f}")


def of_parts(at: Server, given: dict[str, Plain], parts: int, is_partitioned: bool) -> str:
    """Return the line of so many tables of a parent, each with the launches of one file."""
    columns = {name: of._replace(values=of.values[:PART_ROWS], width=8) for name, of in given.items()}
    with at.session("postgres") as session:
        make(session, columns, "PARTITION BY RANGE (launch_id)" if is_partitioned else "")
        session.execute(f"ALTER TABLE rows {KEY}")
        for part in range(parts):
            first = FIRST + part * IDS_PER_UPLOAD
            if is_partitioned:
                limits = f"FROM ({first}) TO ({first + IDS_PER_UPLOAD})"
                session.execute(f"CREATE TABLE rows_{part} PARTITION OF rows FOR VALUES {limits}")
            else:
                limits = f"launch_id >= {first} AND launch_id < {first + IDS_PER_UPLOAD}"
                session.execute(f"CREATE TABLE rows_{part} (CHECK ({limits})) INHERITS (rows)")
                session.execute(f"ALTER TABLE rows_{part} {KEY}")
            ids = columns["launch_id"]._replace(values=columns["launch_id"].values - FIRST + first)
            write(session, {**columns, "launch_id": ids}, f"rows_{part}")
        session.execute(f"CREATE TEMP TABLE results AS SELECT launch_id FROM rows_0 ORDER BY random() LIMIT {JOINED}")
        session.execute("VACUUM ANALYZE")
        some = [FIRST + random.Random(place).randrange(PART_ROWS) for place in range(LOOK_UPS)]
        alone = looked_up_ms(session, some, "SELECT * FROM rows WHERE launch_id = {}")
        for other in ("hashjoin", "mergejoin"):
            session.execute(f"SET enable_{other} = off")
        joined = "SELECT * FROM results c JOIN rows l ON l.launch_id = c.launch_id -- {}"
        together = looked_up_ms(session, some[:JOINS], joined)
        session.execute("DROP TABLE rows CASCADE")
    return f"{parts:8}{'partitions' if is_partitioned else 'heirs':>12}{alone:12.3f}{together:12.2f}"


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--rows", type=int, default=1_200_000)
    given = launches(parser.parse_args().rows)
    with server(**DURABLE) as at:
        print(f"{'launches':32}{'rows s':>9}{'behind s':>9}{'log MB':>9}{'MB':>9}{'look-up ms':>12}")
        for line in of_ways(at, given):
            print(line, flush=True)
        print(f"\n{'tables':>8}{'kind':>12}{'look-up ms':>12}{'join ms':>12}")
        for parts, is_partitioned in product(PARTS, (False, True)):
            print(of_parts(at, given, parts, is_partitioned), flush=True)


if __name__ == "__main__":
    main()
