"""Rows of a database that are taken many at once give what they give one by one."""

import io
import sqlite3
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formats.nsys import database as nsys_database
from profsvc.formats.nsys.database_rows import (
    CALLS,
    COPIES,
    GRAPHS_TABLE,
    KERNELS,
    MEMSETS,
    NVTX,
    OPTIONAL_COLUMNS,
    REQUIRED_COLUMNS,
)
from tests.formats.both_ways import READERS

READER = READERS["nsys_database"]
agree = READER.agree

PID = 811 << 24
TID = PID + 7
GOOD = {
    KERNELS: (10, 20, 0, 1, 8, 1, 1, 64, 1, 1, 1, 7, 5, PID, 32, 0, 4096, None, None),
    COPIES: (10, 20, 4096, 1, 0, 1, 7, PID, 0, 2),
    MEMSETS: (10, 20, 4096, 0, 1, 7, PID, 2),
    CALLS: (10, 20, 3, TID, 5),
    NVTX: (10, 20, 59, "step", None, 1, TID),
    GRAPHS_TABLE: (10, 20, 3, PID),
}
ODD = (None, -1, 0, 2, 3, 4, 34, 59, 75, 99, 1.0, 1.5, "1", "x", b"x", 2**63 - 1, -(2**63), PID)


def database(hosts=(), begins=(), **rows):
    """Return a database with rows in the order of the columns that the reader asks for."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("create table META_DATA_EXPORT(name, value)")
        connection.execute("insert into META_DATA_EXPORT values('EXPORT_SCHEMA_VERSION', '3.1')")
        connection.execute("create table StringIds(id, value)")
        connection.execute("insert into StringIds values (1, 'saxpy'), (2, 'fill'), (3, 'cudaLaunchKernel')")
        connection.execute("create table TARGET_INFO_GPU(id, name, cuDevice, computeMajor, computeMinor)")
        connection.execute("insert into TARGET_INFO_GPU values (0, 'GPU A', 1, 9, 0), (1, 'GPU B', 0, 8, 0)")
        connection.execute("create table PROCESSES(globalPid, pid, name)")
        connection.execute("insert into PROCESSES values (0, 811, 'python')")
        connection.execute("create table TARGET_INFO_SYSTEM_ENV(globalVid, devStateName, name, nameEnum, value)")
        variables = [
            (vid, name, value) for vid, host in hosts for name, value in (("CpuCores", "2"), ("Hostname", host))
        ]
        connection.executemany("insert into TARGET_INFO_SYSTEM_ENV values (?, 'Local', ?, 0, ?)", variables)
        connection.execute("create table TARGET_INFO_SESSION_START_TIME(utcEpochNs, utcTime, localTime)")
        connection.executemany("insert into TARGET_INFO_SESSION_START_TIME(utcEpochNs) values (?)", [*zip(begins)])
        for table, some in rows.items():
            columns = (*REQUIRED_COLUMNS[table], *OPTIONAL_COLUMNS[table])
            connection.execute(f"create table {table}({', '.join(columns)})")
            connection.executemany(f"insert into {table} values ({', '.join('?' * len(columns))})", some)
        connection.commit()
        return connection.serialize()


def test_long_tables_are_taken_at_once(monkeypatch):
    monkeypatch.setattr(nsys_database, "_record", None)
    data = database(**{table: [row] * 120 for table, row in GOOD.items()})
    found, lines, *_ = READER.content(data)
    assert {name: len(rows) for name, rows in found.items()} == {
        "launches": 120, "metrics": 360, "transfers": 240, "api_calls": 120, "ranges": 240,
    }  # fmt: skip
    assert (lines[0], lines[2]) == (720, 0)
    assert any(batch.wide for batch in nsys_database.read(io.BytesIO(data)))
    launch = found["launches"][7]
    assert (launch["kernel"], launch["device"], launch["process_name"], launch["launch_index"]) == (
        *("saxpy", "GPU B", "python", 7),
    )


@pytest.mark.parametrize(
    ("hosts", "told"),
    [
        ([], [None, None]),
        ([(1 << 48, "node1")], ["node1", "node1"]),
        ([(1 << 48, "node1"), (2 << 48, "node2")], ["node1", "node2"]),
        ([(3 << 48, "node1"), (2 << 48, "node2")], [None, "node2"]),
        ([(None, "node1")], ["node1", "node1"]),
    ],
)
@pytest.mark.parametrize("times", [1, 80])
def test_a_launch_names_the_host_of_its_process(hosts, told, times):
    place = [*REQUIRED_COLUMNS[KERNELS], *OPTIONAL_COLUMNS[KERNELS]].index("globalPid")
    row = GOOD[KERNELS]
    rows = [(*row[:place], (vm << 48) + PID, *row[place + 1 :]) for vm in (1, 2) for _ in range(times)]
    data = database(hosts, **{KERNELS: rows})
    found = READER.content(data)[0]["launches"]
    assert [launch["host"] for launch in found] == [host for host in told for _ in range(times)]
    agree(data)


@pytest.mark.parametrize(
    ("begins", "told"),
    [
        ([1_795_924_003_356_000_001], "1795924003356000001"),
        ([5, 5], "5"),
        *((begins, None) for begins in ([], [5, 6], [0], [None], ["5"], [2**63 - 1])),
    ],
)
def test_the_start_of_the_session_is_a_fact(begins, told):
    data = database((), begins, **{KERNELS: [GOOD[KERNELS]]})
    *_, last = nsys_database.read(io.BytesIO(data))
    assert last.facts.get("begin_utc_ns") == told


@pytest.mark.parametrize("table", GOOD)
def test_odd_values_among_plain_ones(table):
    row = GOOD[table]
    for place in range(len(row)):
        odd_rows = [(*row[:place], odd, *row[place + 1 :]) for odd in ODD]
        agree(database(**{table: [some for odd in odd_rows for some in (row, row, odd)]}))


def test_what_is_no_range_is_skipped():
    others = [(5, None, 75, "ours", None, 1, TID), (None, None, 4, None, None, None, None)]
    found, lines, *_ = agree(database(**{NVTX: [GOOD[NVTX], *others, GOOD[NVTX]] * 9}))
    assert (len(found["ranges"]), {row["domain"] for row in found["ranges"]}) == (18, {"ours"})
    assert lines[0] == 18


ROWS = st.sampled_from(list(GOOD)).flatmap(
    lambda table: st.tuples(
        st.just(table),
        st.lists(
            st.tuples(st.integers(0, len(GOOD[table]) - 1), st.sampled_from(ODD)).map(
                lambda two: (*GOOD[table][: two[0]], two[1], *GOOD[table][two[0] + 1 :])
            ),
            max_size=8,
        ),
    )
)


@given(ROWS)
def test_any_values_give_the_same_both_ways(given_rows):
    table, rows = given_rows
    agree(database(**{table: rows}))
