import hashlib
import time
from pathlib import Path

import pytest
from sqlalchemy import Engine

from profsvc import store
from profsvc.errors import ProfsvcError, ServiceError, UsageError
from profsvc.store.engine import file_of, writing
from tests.store.conftest import only_on

pytestmark = only_on("sqlite", "SQL of users is answered there only, so far")

ATTACKS = [
    "ATTACH DATABASE 'stolen.db' AS other",
    "VACUUM INTO 'stolen.db'",
    "VACUUM",
    "PRAGMA query_only = 0",
    "PRAGMA database_list",
    "SELECT * FROM pragma_database_list",
    "SELECT * FROM pragma_table_info('runs')",
    "SELECT count(*) FROM pragma_database_list",
    "SELECT 1 FROM PRAGMA_Database_List",
    "SELECT * FROM dbstat",
    "SELECT * FROM sqlite_master",
    "SELECT * FROM sqlite_schema",
    "SELECT * FROM sqlite_temp_master",
    "SELECT * FROM sqlite_stmt",
    "SELECT load_extension('evil.so')",
    "SELECT writefile('stolen.db', 'x')",
    "SELECT readfile('/etc/passwd')",
    "SELECT edit('x')",
    "SELECT fts3_tokenizer('simple')",
    "INSERT INTO runs (project, name, created_at) VALUES ('x', 'y', 'z')",
    "INSERT INTO v1_runs (name) VALUES ('x')",
    "WITH x AS (SELECT 1) INSERT INTO runs (project, name, created_at) SELECT 'x', 'y', 'z'",
    "UPDATE runs SET name = 'x'",
    "DELETE FROM runs",
    "DROP VIEW v1_runs",
    "DROP TABLE runs",
    "CREATE TABLE x (y)",
    "CREATE TEMP TABLE x (y)",
    "CREATE TEMP VIEW v1_x AS SELECT * FROM secret",
    "CREATE TEMP TRIGGER x AFTER INSERT ON runs BEGIN SELECT 1; END",
    "CREATE VIRTUAL TABLE temp.x USING fts5(y)",
    "ALTER TABLE runs ADD COLUMN x",
    "REINDEX",
    "ANALYZE",
    "BEGIN",
    "SAVEPOINT x",
    "COMMIT",
    "DETACH DATABASE main",
    "SELECT 1; SELECT 2",
    "SELECT 1; DROP TABLE runs",
    "",
    "-- nothing",
    "SELECT hex(zeroblob(450000000))",
    "SELECT replace(hex(zeroblob(400000)), '00', hex(zeroblob(400000)))",
    f"SELECT {'(' * 2000}1{')' * 2000}",
    f"SELECT {' UNION ALL SELECT '.join(['1'] * 100)}",
    f"SELECT '{'x' * 200_000}'",
]
READS_OF_BASE_TABLES = [
    "SELECT * FROM secret",
    "SELECT token FROM main.secret",
    "SELECT count(*) FROM secret",
    "SELECT 1 FROM secret",
    "SELECT rowid FROM secret",
    "SELECT count(*) FROM sqlite_master",
    "SELECT count(*) FROM Secret",
    "SELECT name FROM runs",
    "SELECT count(*) FROM runs",
    "SELECT (SELECT token FROM secret) FROM v1_runs",
    "SELECT * FROM v1_runs, secret",
    "SELECT * FROM v1_runs WHERE EXISTS (SELECT 1 FROM secret WHERE token LIKE 's%')",
    "SELECT * FROM v1_runs ORDER BY (SELECT token FROM secret)",
    "SELECT name FROM v1_runs UNION SELECT token FROM secret",
    "WITH v1_runs AS (SELECT * FROM secret) SELECT * FROM v1_runs",
    "WITH v1_runs(a) AS MATERIALIZED (SELECT token FROM secret) SELECT a FROM v1_runs",
    "WITH n AS (SELECT * FROM secret) SELECT * FROM n",
    "WITH x AS (WITH v1_uploads AS (SELECT token FROM secret) SELECT * FROM v1_uploads) SELECT * FROM x",
    "SELECT * FROM (SELECT token FROM secret) AS v1_runs",
    "SELECT * FROM main.v1_runs",
    "EXPLAIN SELECT token FROM secret",
]


@pytest.fixture
def guarded(engine: Engine, stored: store.Stored, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Engine:
    with writing(engine) as connection:
        connection.exec_driver_sql("CREATE TABLE secret (token TEXT)")
        connection.exec_driver_sql("INSERT INTO secret VALUES ('s3cret')")
    monkeypatch.chdir(tmp_path)
    return engine


def digest(engine: Engine) -> str:
    return hashlib.sha256(file_of(engine).read_bytes()).hexdigest()  # type: ignore[union-attr]


@pytest.mark.parametrize("sql", ATTACKS + READS_OF_BASE_TABLES)
def test_attacks_are_refused(guarded: Engine, tmp_path: Path, sql: str) -> None:
    before, files = digest(guarded), set(tmp_path.iterdir())
    started = time.perf_counter()
    with pytest.raises(UsageError) as caught:
        store.query(guarded, sql, seconds=1)
    assert time.perf_counter() - started < 2
    assert digest(guarded) == before
    assert set(tmp_path.iterdir()) == files
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("sql", READS_OF_BASE_TABLES)
def test_the_views_are_named_to_who_reads_a_table(guarded: Engine, sql: str) -> None:
    with pytest.raises(UsageError, match="only the views can: v1_"):
        store.query(guarded, sql)


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT name, launches FROM v1_runs", [("first", 4)]),
        ("SELECT count(*) FROM v1_launches", [(4,)]),
        ("SELECT count(*) FROM v1_metrics", [(8,)]),
        ("SELECT 1 FROM v1_launches LIMIT 1", [(1,)]),
        ("SELECT r.name FROM v1_runs r JOIN v1_uploads u USING (run_id)", [("first",)]),
        ("SELECT ipc_sm FROM v1_counters WHERE launch_id = 1000000001", [(None,)]),
        (
            "WITH x AS (SELECT kernel_short AS k, count(*) AS n FROM v1_launches GROUP BY 1) SELECT max(n) FROM x",
            [(2,)],
        ),
        ("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 3) SELECT sum(x) FROM c", [(6,)]),
        ("SELECT json_extract(tags, '$.branch') FROM v1_runs", [("main",)]),
        ("SELECT key, value FROM v1_runs, json_each(tags) WHERE run_id = 1", [("branch", "main")]),
        ("SELECT launch_index, row_number() OVER (ORDER BY duration_ns DESC) FROM v1_launches LIMIT 1", [(3, 1)]),
        ("VALUES (1)", [(1,)]),
    ],
)
def test_questions_are_answered(guarded: Engine, sql: str, rows: list[tuple[object, ...]]) -> None:
    answer = store.query(guarded, sql)
    assert answer.rows == rows
    assert not answer.truncated


@pytest.mark.parametrize("view", store.VIEWS)
def test_every_view_is_open(guarded: Engine, view: str) -> None:
    answer = store.query(guarded, f"SELECT * FROM {view}")
    assert answer.columns[: len(store.VIEWS[view][1])] == list(store.VIEWS[view][1])
    plan = store.query(guarded, f"EXPLAIN QUERY PLAN SELECT * FROM {view}")
    assert plan.rows


def test_parameters_rows_and_their_limit(guarded: Engine) -> None:
    sql = "SELECT launch_index AS i FROM v1_launches WHERE run_id = :r AND kernel_short = :k ORDER BY 1"
    assert store.query(guarded, sql, {"r": "1", "k": "gemm"}) == (["i"], [(0,), (2,)], False)
    assert store.query(guarded, sql, {"r": "1", "k": "gemm"}, max_rows=2) == (["i"], [(0,), (2,)], False)
    assert store.query(guarded, sql, {"r": "1", "k": "gemm"}, max_rows=1) == (["i"], [(0,)], True)
    with pytest.raises(UsageError, match="the query is wrong"):
        store.query(guarded, sql, {"r": 1})


def test_time_and_memory_are_limited(guarded: Engine) -> None:
    started = time.perf_counter()
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT {} FROM c"
    with pytest.raises(UsageError, match=r"longer than 0\.3 s and was stopped"):
        store.query(guarded, endless.format("count(*)"), seconds=0.3)
    assert time.perf_counter() - started < 1
    many = store.query(guarded, endless.format("zeroblob(900000)"), seconds=5)
    assert many.truncated
    assert len(many.rows) < 100
    assert len(store.query(guarded, "SELECT printf('%.*c', 900000000, 'x')").rows[0][0] or "") <= 1_000_000


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT * FROM v1_run", "did you mean v1_runs"),
        ("SELECT * FROM launches", "did you mean v1_launches"),
        ("SELECT colour FROM v1_runs", "no such column: colour; .* shows the columns of a view"),
        ("SELEC 1", "syntax error"),
        ("DELETE FROM runs", "nothing can be written"),
        ("SELECT load_extension('x')", "'load_extension' is not allowed"),
    ],
)
def test_refusals_say_what_to_do(guarded: Engine, sql: str, words: str) -> None:
    with pytest.raises(ProfsvcError, match=words):
        store.query(guarded, sql)


def test_a_store_that_has_gone(engine: Engine) -> None:
    file_of(engine).unlink()  # type: ignore[union-attr]
    with pytest.raises(ServiceError, match="cannot be opened"):
        store.query(engine, "SELECT 1")
