import threading
from collections import Counter
from typing import Any

import pytest
from sqlalchemy import Engine

from profsvc import store
from profsvc.errors import AccessError, NotFoundError, UsageError
from profsvc.store import Condition
from profsvc.store.connection.transactions import in_transaction
from profsvc.store.queries.rows import ORDER
from profsvc.store.queries.view_pages import KEYS, UPLOAD_RANGE_KEYS
from profsvc.store.schema.column_types import IDS_PER_UPLOAD
from tests.store.conftest import Filled, batches, info, only_on
from tests.store.ingest.writers.test_samples import HEAT, POWER, log, sample


@pytest.fixture
def full(engine: Engine, filled: Filled) -> Engine:
    """Three runs in two projects, with four launches each."""

    def fill() -> None:
        for number, project in enumerate(("lab", "lab", "other")):
            run = store.RunInfo(project=project, name=f"run{number}", tags={"branch": "main"})
            store.write_upload(engine, info(str(number)), run, batches())

    return filled(fill)


def rows(engine: Engine, view: str, *only: Condition, **options: object) -> list[dict]:
    return store.list_view(engine, view, only, **options).rows


def test_every_view_is_listed_as_it_is_selected(full: Engine) -> None:
    for view in store.VIEWS:
        shown = [
            c for c in store.column_kinds_of(view) if not view.startswith("v1_counters") or c in store.VIEWS[view][1]
        ]
        page = store.list_view(full, view, columns=shown, limit=50)
        assert page.rows == [{c: row[c] for c in shown} for row in store.select(full, view)[:50]]
        assert page.columns == shown


def test_keys_are_unique_and_as_the_views_are_ordered(full: Engine) -> None:
    for view, key in KEYS.items():
        assert key in ORDER[view].split(", ")
        found = [row[key] for row in store.select(full, view)]
        assert found == sorted(set(found))


@pytest.mark.parametrize("order", [[], ["launch_id"], ["-launch_id"], ["kernel_short", "-duration_ns"], ["-stream"]])
def test_pages_make_the_whole(full: Engine, order: list[str]) -> None:
    whole = rows(full, "v1_launches", order=order, limit=100)
    assert len(whole) == 12
    found, after = [], ""
    while True:
        page = store.list_view(full, "v1_launches", order=order, limit=5, after=after)
        found += page.rows
        assert page.truncated == (page.after is not None)
        if page.after is None:
            break
        after = page.after
    assert found == whole


@pytest.fixture
def mixed(engine: Engine, filled: Filled) -> Engine:
    """Runs of two projects whose files take turns, some without launches, as many files as a page and more."""

    def fill() -> None:
        for number in range(12):
            run = store.RunInfo(project=("lab", "other")[number % 3 == 1], name=f"run{number % 3}")
            launches = (3, 0, 1)[number % 5 % 3]
            store.write_upload(engine, info(str(number)), run, batches(launches, begin_ns=1000 * number))

    return filled(fill)


SOUGHT: tuple[tuple[Condition, ...], ...] = (
    (),
    (Condition("run_id", "", "1"),),
    (Condition("run_id", "", "2"), Condition("grid_x", "gte", "2")),
    (Condition("run_id", "", "3"), Condition("kernel_short", "", "saxpy")),
    (Condition("upload_id", "", "6"),),
    (Condition("upload_id", "", "6"), Condition("run_id", "", "1")),
    (Condition("run_id", "", "1"), Condition("launch_id", "gt", str(4 * IDS_PER_UPLOAD + 2))),
    (Condition("run_id", "", "99"),),
)


@pytest.mark.parametrize("order", [[], ["-launch_id"]])
@pytest.mark.parametrize("project", [None, "lab", "nobody"])
def test_pages_of_files_that_take_turns_make_the_whole(mixed: Engine, order: list[str], project: str | None) -> None:
    """Each page is compared with the one answer that SQL gives for all rows at once."""
    for only in SOUGHT:
        asked = {"order": order, "project": project, "columns": ["launch_id", "run_id", "upload_id", "kernel", "line"]}
        whole = store.query(mixed, *store.select_statement("v1_launches", only, **asked))
        expected = [dict(zip(whole.columns, row, strict=True)) for row in whole.rows]
        for limit in (1, 2, 3, 100):
            found, after = [], ""
            while True:
                page = store.list_view(mixed, "v1_launches", only, limit=limit, after=after, **asked)
                found += page.rows
                assert len(page.rows) == limit or page.after is None
                if page.after is None:
                    break
                after = page.after
            assert found == expected, (only, limit)


def test_every_view_of_files_is_paged_by_run_and_by_project(mixed: Engine) -> None:
    for view, key in KEYS.items():
        if key in UPLOAD_RANGE_KEYS:
            for options in ({"only": [Condition("run_id", "", "1")]}, {"project": "lab"}):
                whole = store.query(mixed, *store.select_statement(view, columns=[key, "run_id"], **options))
                page = store.list_view(mixed, view, columns=[key, "run_id"], **options)
                assert [tuple(row.values()) for row in page.rows] == whole.rows, view


def test_a_page_read_while_files_come_and_go_has_whole_files(engine: Engine) -> None:
    """Files of a run are added, and the run deleted, between and during the questions of a reader."""
    over, seen, wrong = threading.Event(), set[int](), list[object]()

    def read() -> None:
        while not over.is_set():
            page = store.list_view(engine, "v1_launches", project="lab")
            counts = Counter(row["upload_id"] for row in page.rows)
            seen.add(len(counts))
            if set(counts.values()) - {5} or [r["launch_id"] for r in page.rows] != sorted(
                r["launch_id"] for r in page.rows
            ):
                wrong.append(counts)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for turn in range(6):
            for file in range(2):
                run = store.RunInfo(project="lab", name=f"run{turn}")
                begin = 1000 * (2 * turn + file)
                found = store.write_upload(engine, info(f"{turn} {file}"), run, batches(5, begin_ns=begin))
            if turn % 2:
                store.delete_run(engine, found.run_id)
    finally:
        over.set()
        reader.join()
    assert wrong == []
    assert len(seen) > 1


@only_on("sqlite", "Postgres has plans of its own, see test_plans")
def test_a_page_of_a_run_costs_what_it_holds(mixed: Engine) -> None:
    """The steps of SQLite's machine for a page do not grow with the launches of the run."""
    run = store.RunInfo(project="lab", name="large")
    begin = store.write_upload(mixed, info("large"), run, batches(4000, 2000)).upload_id * IDS_PER_UPLOAD
    steps = dict[str, int]()

    def counted(name: str, **options: Any) -> None:
        with mixed.connect() as connection, connection.begin(), in_transaction(mixed, connection):
            driver: Any = connection.connection.driver_connection
            driver.set_progress_handler(lambda: steps.update({name: steps.get(name, 0) + 1}), 100)
            assert len(store.list_view(mixed, "v1_launches", limit=4, **options).rows) == 4
            driver.set_progress_handler(None, 0)

    of_run = {"only": [Condition("run_id", "", "4")]}
    counted("small", only=[Condition("run_id", "", "3")])
    counted("first", **of_run)
    counted("deep", **of_run, after=f"k{begin + 3900}")
    counted("last", **of_run, order=["-launch_id"])
    counted("project", project="lab", after=f"k{begin + 2000}")
    counted("sorted", **of_run, order=["-duration_ns"])
    assert max(steps[name] for name in ("first", "deep", "last", "project")) < 3 * steps["small"]
    assert steps["sorted"] > 10 * steps["first"]  # else nothing is counted


def test_conditions(full: Engine) -> None:
    def ids(*only: tuple[str, str, str]) -> list[int]:
        return [
            r["launch_index"]
            for r in rows(full, "v1_launches", Condition("run_id", "", "1"), *(Condition(*o) for o in only))
        ]

    assert ids(("duration_ns", "gt", "1250.5")) == [2, 3]
    assert ids(("duration_ns", "gte", "1250.5"), ("duration_ns", "lt", "1251.5")) == [1, 2]
    assert ids(("duration_ns", "lte", "1e3")) == []
    assert ids(("kernel_short", "", "saxpy")) == [1, 3]
    assert ids(("kernel_short", "ne", "saxpy")) == [0, 2]
    assert ids(("kernel", "contains", "NS::GEMM<")) == [0, 2]
    assert ids(("kernel", "contains", "_aksomething%")) == []
    assert ids(("stream", "null", "1"), ("launch_index", "", "3")) == [3]
    assert ids(("stream", "null", "0")) == []
    assert ids(("start_ns", "", str(2**60 + 1))) == [1]
    assert ids(("kernel", "", "'; DROP TABLE runs; --")) == []


def test_pages_of_a_run_a_file_and_a_sensor_hold_all_of_theirs(full: Engine) -> None:
    moments = [sample(i % 2, i // 2, None, None, i * 10**6) for i in range(8)]
    for number, run in enumerate(("run0", "run1", "run0")):
        about = store.RunInfo(project="lab", name=run)
        store.write_upload(full, info(f"log {number}"), about, [log((POWER, HEAT), *moments)])
    for view in ("v1_samples", "v1_sensors", "v1_launches"):
        key = KEYS[view]
        whole = sorted(store.select(full, view), key=lambda row: row[key])
        for column, value in ((c, row[c]) for row in whole for c in ("run_id", "upload_id", "sensor_id") if c in row):
            theirs = [row[key] for row in whole if row[column] == value]
            only = Condition(column, "", str(value))
            assert [row[key] for row in rows(full, view, only, columns=[key])] == theirs
            assert [row[key] for row in rows(full, view, only, order=[f"-{key}"])] == theirs[::-1] != []
            assert rows(full, view, Condition(column, "", str(2**63 - 1))) == []
    assert len(rows(full, "v1_samples", Condition("run_id", "", "1"), Condition("upload_id", "", "6"))) == 8
    assert rows(full, "v1_samples", Condition("run_id", "", "1"), Condition("upload_id", "", "5")) == []


def test_a_project_sees_its_own_alone(full: Engine) -> None:
    assert [r["name"] for r in rows(full, "v1_runs", project="lab")] == ["run0", "run1"]
    assert {r["run_id"] for r in rows(full, "v1_launches", project="other")} == {3}
    assert rows(full, "v1_metrics", project="nobody") == []
    assert rows(full, "v1_columns", project="lab", limit=1)
    with pytest.raises(AccessError, match="v1_kernels tells of every project, and the token is for the project 'lab'"):
        store.list_view(full, "v1_kernels", project="lab")


def test_the_statement_of_a_list_is_answered_by_the_sandbox(full: Engine) -> None:
    only = [Condition("kernel", "contains", "saxpy"), Condition("duration_ns", "gt", "1251")]
    sql, values = store.select_statement(
        "v1_launches", only, columns=["run_id", "duration_ns"], project="lab", order=["-run_id"]
    )
    assert store.query(full, sql, values).rows == [(2, 1251.5), (1, 1251.5)]


WRONG = (
    ({"only": [Condition("kernle", "", "a")]}, "no column of v1_launches named 'kernle'; did you mean 'kernel'"),
    ({"only": [Condition("kernel", "like", "a")]}, "no filter on kernel named 'like'"),
    ({"only": [Condition("launch_id", "", "1_0")]}, "must be a whole number"),
    ({"only": [Condition("duration_ns", "", "inf")]}, "must be a number"),
    ({"only": [Condition("launch_id", "", str(2**63))]}, "must be a whole number"),
    ({"only": [Condition("kernel", "", "\0")]}, "no NUL"),
    ({"only": [Condition("launch_id", "contains", "1")]}, "contains nothing"),
    ({"only": [Condition("kernel", "null", "")]}, "must be 1"),
    ({"order": ["-nothing"]}, "named 'nothing'"),
    ({"columns": ['a" FROM runs --']}, "no column of v1_launches"),
    ({"limit": 0}, "1 to 10000 rows"),
    ({"after": "k-1"}, "begin without it"),
    ({"after": "o1"}, "begin without it"),
    ({"after": "k1", "order": ["kernel"]}, "begin without it"),
)


def test_what_cannot_be_listed_is_refused(full: Engine) -> None:
    for options, words in WRONG:
        with pytest.raises(UsageError) as caught:
            store.list_view(full, "v1_launches", **options)
        assert words in str(caught.value)


def test_no_other_table_can_be_listed(full: Engine) -> None:
    for name in ("tokens", "runs", "v1_runs; --", "V1_RUNS"):
        with pytest.raises(NotFoundError, match="no view named"):
            store.list_view(full, name)


def test_a_run_is_found_by_number_name_and_project(full: Engine) -> None:
    store.write_upload(full, info("n"), store.RunInfo(project="other", name="2"), batches())
    assert store.find_run(full, "2") == 4
    assert store.find_run(full, 2) == 2
    assert store.find_run(full, "3") == 3
    assert store.find_run(full, "other/run2") == store.find_run(full, "run2", "other") == 3
    for name in ("run2", 3, "3", "other/run2"):
        with pytest.raises(NotFoundError) as caught:
            store.find_run(full, name, "lab")
        assert "'run0'" in str(caught.value)
        assert "run2" not in str(caught.value).partition(";")[2]
    for name in ("-1", "1e0", "٣", "9" * 40):
        with pytest.raises(NotFoundError):
            store.find_run(full, name)
