"""What a user's SQL can and cannot do, on both kinds of database; the attacks are under ``attacks``."""

import hashlib
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from profsvc import store
from profsvc.errors import ProfsvcError, ServiceError, UsageError
from profsvc.store.connection.transactions import writing
from profsvc.store.connection.urls import file_of
from tests.conftest import COUNTERS
from tests.environment import postgres
from tests.store.conftest import batches, info, only_on

TOKEN = "s3cret-token"
LISTS = {
    database: tomllib.loads((Path(__file__).parents[1] / "attacks" / f"{database}.toml").read_text(encoding="utf-8"))
    for database in ("sqlite", "postgresql")
}
# Everything that a query could have changed: rows, definitions, sequences, large objects, roles, locks.
TABLES = "SELECT oid::regclass::text FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
COUNTED = """
    SELECT (SELECT count(*) FROM pg_class WHERE relpersistence <> 't'), (SELECT count(*) FROM pg_proc),
           (SELECT count(*) FROM pg_largeobject_metadata), (SELECT count(*) FROM pg_roles),
           (SELECT count(*) FROM pg_extension), (SELECT count(*) FROM pg_prepared_xacts),
           (SELECT string_agg(s::text, ' ' ORDER BY s::text) FROM pg_sequences s),
           (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory')
"""


@contextmanager
def guarded_by(state: Callable[[], str]) -> Iterator[None]:
    """Lend a store to the tests of this module; after the last of them its ``state`` must be what it was."""
    before = state()
    yield
    assert state() == before, "a query of this module changed the store; run its tests one by one to see which"


def planted(url: str) -> Engine:
    engine = store.open_store(url, COUNTERS)
    store.write_upload(engine, info(), store.RunInfo(name="first", tags={"branch": "main"}), batches())
    with writing(engine) as connection:
        connection.exec_driver_sql("CREATE TABLE secrets (token TEXT)")
        connection.execute(text("INSERT INTO secrets VALUES (:token)"), {"token": TOKEN})
    return engine


@pytest.fixture(scope="module")
def on_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    file = tmp_path_factory.mktemp("guarded") / "store.sqlite"
    engine = planted(str(file))
    with guarded_by(lambda: hashlib.sha256(file.read_bytes()).hexdigest()):
        yield engine
    engine.dispose()


@pytest.fixture(scope="module")
def on_postgresql(postgres_server: postgres.Server, postgres_template: str) -> Iterator[Engine]:
    name = postgres_server.database(postgres_template)
    engine = planted(postgres_server.url(name).render_as_string(hide_password=False))

    with postgres_server.session(name) as session:

        def state() -> str:
            tables = sorted(name for (name,) in session.execute(TABLES))
            rows = " UNION ALL ".join(f"SELECT '{name}', t::text FROM {name} t" for name in tables)
            seen = sorted(session.execute(rows)) + list(session.execute(COUNTED))
            return hashlib.sha256(str(seen).encode()).hexdigest()

        with guarded_by(state):
            yield engine
    engine.dispose()
    left = postgres_server.left(name)
    postgres_server.drop(name)
    assert left == []


@pytest.fixture(params=["sqlite", "postgresql"])
def guarded(request: pytest.FixtureRequest) -> Engine:
    found: Engine = request.getfixturevalue(f"on_{request.param}")
    return found


@pytest.fixture
def quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to stand in and to put temporary files into, in which nothing may be left."""
    monkeypatch.chdir(tmp_path)
    for name in ("TMPDIR", "SQLITE_TMPDIR"):
        monkeypatch.setenv(name, str(tmp_path))
    return tmp_path


def attacks(kind: str) -> pytest.MarkDecorator:
    cases = [(database, sql) for database, lists in LISTS.items() for sql in lists[kind]]
    ids = [f"{database}-{n}-{sql[:40]!r}" for n, (database, sql) in enumerate(cases)]
    return pytest.mark.parametrize(("guarded", "sql"), cases, indirect=["guarded"], ids=ids)


@attacks("refused")
def test_attacks_are_refused(guarded: Engine, quiet: Path, sql: str) -> None:
    started = time.perf_counter()
    with pytest.raises(UsageError) as caught:
        store.query(guarded, sql, seconds=5)
    assert time.perf_counter() - started < 5.5
    assert "longer than" not in str(caught.value)
    assert TOKEN not in str(caught.value)
    assert list(quiet.iterdir()) == []


@attacks("stopped")
def test_bombs_are_stopped_in_time(guarded: Engine, quiet: Path, sql: str) -> None:
    took = []
    for _ in range(3):  # the machine may be busy with something else
        started = time.perf_counter()
        with pytest.raises(UsageError, match=r"longer than|limit of memory|temporary disk|larger than"):
            store.query(guarded, sql, seconds=0.2)
        took.append(time.perf_counter() - started)
        if took[-1] < 0.7:
            break
    assert min(took) < 0.7
    assert list(quiet.iterdir()) == []


@attacks("harmless")
def test_what_looks_like_an_attack_and_is_none(guarded: Engine, quiet: Path, sql: str) -> None:
    answer = store.query(guarded, sql, seconds=5)
    assert answer.columns
    assert TOKEN not in str(answer)
    assert list(quiet.iterdir()) == []


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT :k", r"no value for :k; add --param k=VALUE \(line 1, column 8\)"),
        ("SELECT 1; SELECT 2", "one SELECT is answered at a time"),
    ],
)
def test_both_databases_say_the_same_of_what_is_left_out_or_too_much(guarded: Engine, sql: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        store.query(guarded, sql)


QUESTIONS = [
    ("SELECT name, launches FROM v1_runs", [("first", 4)]),
    ("SELECT name FROM v1_runs;", [("first",)]),
    ("SELECT count(*) FROM v1_launches", [(4,)]),
    ("SELECT count(*) FROM v1_metrics", [(8,)]),
    ("SELECT 1 FROM v1_launches LIMIT 1", [(1,)]),
    ("SELECT r.name FROM v1_runs r JOIN v1_uploads u USING (run_id)", [("first",)]),
    ("SELECT r.name, r.name FROM v1_runs r", [("first", "first")]),
    ("SELECT ipc_sm FROM v1_counters WHERE launch_id = 1000000001", [(None,)]),
    ("WITH x AS (SELECT kernel_short AS k, count(*) AS n FROM v1_launches GROUP BY 1) SELECT max(n) FROM x", [(2,)]),
    ("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 3) SELECT sum(x) FROM c", [(6,)]),
    ("SELECT launch_index, row_number() OVER (ORDER BY duration_ns DESC) FROM v1_launches LIMIT 1", [(3, 1)]),
    ("SELECT sum(duration_ns), sum(launch_index), avg(launch_index) FROM v1_launches", [(5003.0, 6, 1.5)]),
    ("SELECT launch_index FROM v1_launches ORDER BY duration_ns DESC", [(3,), (2,), (1,), (0,)]),
    ("VALUES (1)", [(1,)]),
]


@pytest.mark.parametrize(("sql", "rows"), QUESTIONS)
def test_questions_are_answered(guarded: Engine, sql: str, rows: list[tuple[object, ...]]) -> None:
    answer = store.query(guarded, sql)
    assert answer.rows == rows
    assert not answer.truncated


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT json_extract(tags, '$.branch') FROM v1_runs", [("main",)]),
        ("SELECT key, value FROM v1_runs, json_each(tags) WHERE run_id = 1", [("branch", "main")]),
    ],
)
def test_tags_are_json_for_sqlite(on_sqlite: Engine, sql: str, rows: list[tuple[object, ...]]) -> None:
    assert store.query(on_sqlite, sql).rows == rows


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT tags::json ->> 'branch' FROM v1_runs", [("main",)]),
        ("SELECT key, value FROM v1_runs, json_each_text(tags::json) WHERE run_id = 1", [("branch", "main")]),
        ("SELECT 1.50::numeric, 2::numeric, true, date '2026-01-31', ARRAY[1]", [(1.5, 2, True, "2026-01-31", "{1}")]),
        ("SELECT '(:a)', E'\\':a', $$:a$$, 1::text, :a -- :a", [("(:a)", "':a", ":a", "1", "x")]),
    ],
)
def test_what_postgres_alone_has(on_postgresql: Engine, sql: str, rows: list[tuple[object, ...]]) -> None:
    assert store.query(on_postgresql, sql, {"a": "x"}).rows == rows


@pytest.mark.parametrize("view", store.VIEWS)
def test_every_view_is_open(guarded: Engine, view: str) -> None:
    answer = store.query(guarded, f"SELECT * FROM {view}")
    assert answer.columns[: len(store.VIEWS[view][1])] == list(store.VIEWS[view][1])


def test_a_division_by_zero_is_null_or_says_how_to_make_it_so(guarded: Engine) -> None:
    query = "SELECT run_id / {} AS share FROM v1_runs"
    assert {row[0] for row in store.query(guarded, query.format("nullif(0 * run_id, 0)")).rows} == {None}
    if guarded.dialect.name == "sqlite":
        assert {row[0] for row in store.query(guarded, query.format("(0 * run_id)")).rows} == {None}
        return
    with pytest.raises(UsageError, match=r"division by zero; use a / nullif\(b, 0\)"):
        store.query(guarded, query.format("(0 * run_id)"))


def test_parameters_rows_and_their_limit(guarded: Engine) -> None:
    sql = "SELECT launch_index AS i FROM v1_launches WHERE run_id = :r AND kernel_short = :k ORDER BY 1"
    values = {"r": "1", "k": "gemm"}
    for most, answer in ((9, [(0,), (2,)]), (2, [(0,), (2,)]), (1, [(0,)]), (0, [])):
        assert store.query(guarded, sql, values, max_rows=most) == (["i"], answer, len(answer) < 2)
    with pytest.raises(UsageError, match="invalid query"):
        store.query(guarded, sql, {"r": 1})
    for hostile in ("' OR 1=1 --", "$1", ":r", "\\", "gemm' UNION SELECT token FROM secrets --"):
        assert store.query(guarded, sql, {"r": "1", "k": hostile}).rows == []


@pytest.mark.parametrize("value", [None, 3, 2.5, "text", b"bytes", "\U0001f600"])
def test_values_of_every_type_come_back(guarded: Engine, value: object) -> None:
    assert store.query(guarded, "SELECT :v AS v", {"v": value}).rows == [(value,)]


def test_a_value_of_another_type_is_refused(on_sqlite: Engine) -> None:
    with pytest.raises(UsageError, match="must be a text, a number, bytes or None"):
        store.query(on_sqlite, "SELECT :v", {"v": object()})


def test_an_answer_has_a_limit_of_bytes(guarded: Engine) -> None:
    wide = {
        "sqlite": "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT zeroblob(900000) FROM c",
        "postgresql": "SELECT w FROM (SELECT string_agg(md5(i::text), '') AS w FROM generate_series(1, 30000) i) x,"
        " generate_series(1, 100)",
    }
    many = store.query(guarded, wide[guarded.dialect.name], seconds=20)
    assert many.truncated
    assert 60 < len(many.rows) < 75


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT * FROM v1_run", "'v1_run' cannot be read, only the views can; did you mean v1_runs"),
        ("SELECT * FROM launches", "did you mean v1_launches"),
        ("SELECT colour FROM v1_runs", "colour.* shows the columns of a view"),
        ("SELEC 1", "syntax error"),
        ("DELETE FROM runs", "nothing can be written"),
        (f"SELECT '{'x' * 200_000}'", "a value or the query is larger than allowed"),
    ],
)
def test_refusals_say_what_to_do(guarded: Engine, sql: str, words: str) -> None:
    with pytest.raises(ProfsvcError, match=words):
        store.query(guarded, sql)


@pytest.mark.parametrize("sql", [f"SELECT {'(' * 2000}1{')' * 2000}", f"SELECT {' UNION ALL SELECT '.join('1' * 100)}"])
def test_deep_and_long_queries_are_refused(on_sqlite: Engine, sql: str) -> None:
    with pytest.raises(UsageError):
        store.query(on_sqlite, sql)


def test_an_export_gives_every_row_in_small_pieces(guarded: Engine) -> None:
    series = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 20000) SELECT x FROM c"
    with store.export(guarded, series) as found:
        chunks = list(found.chunks)
    assert [x for chunk in chunks for (x,) in chunk] == list(range(1, 20001))
    assert max(map(len, chunks)) <= 64


def test_an_export_has_a_time_limit_of_its_own(guarded: Engine) -> None:
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 1000000000) SELECT x FROM c"
    started = time.perf_counter()
    with (
        pytest.raises(UsageError, match=r"longer than 0\.3 s"),
        store.export(guarded, endless + " ORDER BY x", seconds=0.3) as found,
    ):
        list(found.chunks)
    assert time.perf_counter() - started < 2


def test_an_export_that_nobody_reads_to_the_end_is_ended(guarded: Engine) -> None:
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 1000000000) SELECT x FROM c"
    with store.export(guarded, endless) as found:
        assert next(iter(found.chunks))[0] == (1,)
    assert store.query(guarded, "SELECT 1").rows == [(1,)]


@only_on("sqlite", "a server's database cannot be unlinked")
def test_a_store_that_has_gone(engine: Engine) -> None:
    file_of(engine).unlink()
    with pytest.raises(ServiceError, match="cannot be opened"):
        store.query(engine, "SELECT 1")
