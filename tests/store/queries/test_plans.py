"""On Postgres, too, a question costs what its answer holds: its plan reads no big table whole.

The plans are those of the statements that the program really sends, over a store full enough to have a choice.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import Engine, event, text

from profsvc import pipeline, store
from profsvc.store.connection.transactions import reading, writing
from profsvc.store.queries.kernels.history import HistoryFilter
from profsvc.store.queries.view_conditions import Condition
from profsvc.store.schema.column_types import IDS_PER_UPLOAD
from profsvc.views import history
from tests.benchmarks.history import CRITERIA, KERNELS, fill
from tests.conftest import copied
from tests.environment import postgres

RUNS, READINGS = 16_000, 4  # readings of the sensor of a run that has one
FEWER = dict.fromkeys(("metrics", "criteria", "potential"), 1)
MOST = 1000  # rows of a table that one of these answers may take
BIG = {
    *("runs", "uploads", "launches", "kernel_totals", "criteria", "potential", "metrics", "counters"),
    *("sensors", "samples", "sample_blocks", "power_windows"),
    *("wide_blocks", "wide_constants", "wide_lists", "wide_cells"),
}
MORE = (
    f"INSERT INTO sample_blocks SELECT sensor_id, sensor_id, sensor_id + {READINGS - 1}, 0, 1 FROM sensors",
    "INSERT INTO samples SELECT s.sensor_id + n, n, 0, 0, 1.0, NULL, 0, 0"
    f" FROM sensors s, generate_series(0, {READINGS - 1}) n",
    "INSERT INTO counters SELECT launch_id, 1002, 1.0, NULL, NULL FROM launches",
    "INSERT INTO wide_layouts VALUES (1, 'two columns')",
    "INSERT INTO wide_columns SELECT 1, min(metric_id), place, min(unit_id), 1.0"
    " FROM metrics, generate_series(0, 1) place GROUP BY place",
    "INSERT INTO wide_blocks SELECT launch_id, 1, 1, launch_id * 2 FROM launches",
    "INSERT INTO wide_constants SELECT launch_id * 2, '1', 1.0, NULL, NULL FROM launches",
    "INSERT INTO wide_lists SELECT launch_id, '', '2.5' FROM launches",
    "INSERT INTO wide_cells SELECT launch_id * 2 + 1, launch_id, NULL FROM launches",
)
RUN = RUNS // 2  # has power
Ask = Callable[[Engine], Any]


def rows(view: str, **only: int) -> Ask:
    return lambda engine: store.select(engine, view, **only)


def page(view: str, **only: int) -> Ask:
    conditions = [Condition(name, "", str(value)) for name, value in only.items()]
    return lambda engine: store.list_view(engine, view, conditions)


def sql(query: str) -> Ask:
    def ask(engine: Engine) -> Any:
        with reading(engine) as connection:
            return connection.execute(text(query)).all()

    return ask


def past(quantity: str) -> Ask:
    return lambda engine: history.history(engine, "saxpy(int)", quantity, HistoryFilter(points=30))


OF_RUN = ("runs", "uploads", "launches", "kernel_totals", "counter_values", "metrics", "rules", "sensors", "power")
OF_RUN += ("criteria", "criteria_history", "potential", "models", "transfers", "api_calls", "ranges")
OF_LAUNCH = ("launches", "counters", "counter_values", "metrics", "rules", "criteria", "potential", "models")
PAGES = ("runs", "uploads", "launches", "counters", "kernel_totals", "criteria")
QUESTIONS: dict[str, Ask] = {
    **{f"{name} of a run": rows(f"v1_{name}", run_id=RUN) for name in OF_RUN},
    **{f"{name} of a launch": rows(f"v1_{name}", launch_id=RUN * IDS_PER_UPLOAD + 1) for name in OF_LAUNCH},
    **{f"first page of {name}": page(f"v1_{name}") for name in PAGES},
    **{
        f"page of {name} of a run": page(f"v1_{name}", run_id=RUN) for name in (*PAGES, "metrics", "sensors", "samples")
    },
    **{f"history of {quantity}": past(quantity) for quantity in ("duration", "divergence", "potential", "power")},
    "list of runs": lambda engine: store.list_runs(engine),
    "list of launches": lambda engine: store.list_launches(engine, RUN),
    "samples of a run": sql(f"SELECT * FROM v1_samples WHERE run_id = {RUN}"),
    "samples of a sensor": sql(
        f"SELECT * FROM v1_samples WHERE sensor_id = {RUN * IDS_PER_UPLOAD + 1} ORDER BY sample_id"
    ),
    "sensors with their means": lambda engine: store.sensors(engine, RUN),
    "power of a run": lambda engine: pipeline.power.power_of_run(engine, RUN),
    "mean counters of runs": lambda engine: store.mean_counters(engine, CRITERIA, [RUN - 1, RUN]),
    "earlier power of the board of runs": lambda engine: store.earlier_power_of_board(engine, RUN),
    "boards of runs": lambda engine: store.runs_by_board(engine, [RUN - 1, RUN]),
    "what is unfinished of a run": lambda engine: store.unfinished(engine, RUN),
    "facts of runs": lambda engine: store.facts_of_runs(engine, [RUN - 1, RUN], KERNELS, CRITERIA),
    "what two runs are compared by": lambda engine: store.kernels_of_run(engine, RUN),
}


@pytest.fixture(scope="module")
def full(postgres_server: postgres.Server, postgres_whole_template: str) -> Iterator[Engine]:
    """A store with many runs; tests only read it."""
    with copied(postgres_server, postgres_whole_template) as url:
        engine = store.open_store(url)
        fill(engine, RUNS, FEWER)
        with writing(engine) as connection:
            for query in MORE:
                connection.execute(text(query))
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("VACUUM ANALYZE"))
        yield engine
        engine.dispose()


def sent(engine: Engine, ask: Ask) -> list[tuple[str, Any]]:
    """Return the queries that a question sends, with their values."""
    found: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, values: Any, *_: Any) -> None:
        if statement.split(None, 1)[0].upper() == "SELECT":
            found.append((statement, values))

    event.listen(engine, "before_cursor_execute", note)
    try:
        ask(engine)
    finally:
        event.remove(engine, "before_cursor_execute", note)
    return found


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", ()):
        yield from nodes(below)


def read(engine: Engine, ask: Ask) -> dict[str, int]:
    """Return how many rows of each big table a question looks at, at most in one query."""
    found: dict[str, int] = {}
    with reading(engine) as connection:
        for statement, values in sent(engine, ask):
            words = f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {statement}"
            for node in nodes(connection.exec_driver_sql(words, values).scalar_one()[0]["Plan"]):
                if (table := node.get("Relation Name")) in BIG:
                    passed = sum(node.get(f"Rows Removed by {why}", 0) for why in ("Filter", "Index Recheck"))
                    looked = round((node["Actual Rows"] + passed) * node["Actual Loops"])
                    found[table] = max(found.get(table, 0), looked)
    return found


def test_what_reads_a_table_whole_is_seen(full: Engine) -> None:
    whole = {"launches": 3 * RUNS, "uploads": RUNS}  # which file stands for a launch is known of the file
    assert read(full, sql("SELECT sum(duration_ns) FROM v1_launches")) == whole
    assert read(full, sql("SELECT * FROM v1_launches WHERE grid_x = 7"))["launches"] == 3 * RUNS


@pytest.mark.parametrize("question", QUESTIONS)
def test_no_big_table_is_read_whole(full: Engine, question: str) -> None:
    looked = read(full, QUESTIONS[question])
    assert looked != {}
    counted = {"runs"} if question == "list of runs" else {""}  # up to a limit of its own
    assert {table: rows for table, rows in looked.items() if rows > MOST and table not in counted} == {}


def test_what_is_asked_has_an_answer(full: Engine) -> None:
    empty = [name for name, ask in QUESTIONS.items() if name.endswith("a run") and not ask(full)]
    assert empty == ["rules of a run", "models of a run", "transfers of a run", "api_calls of a run", "ranges of a run"]
    assert len(QUESTIONS["samples of a sensor"](full)) == len(QUESTIONS["samples of a run"](full)) == READINGS
