"""Bounded answers on both databases."""

import pytest
from sqlalchemy import Engine, text

from profsvc import store
from profsvc.store.connection.transactions import reading
from profsvc.store.queries.launches import largest
from profsvc.tables import Batch, frame
from tests.store.conftest import info, only_on
from tests.store.queries.launches.test_measured import RUN, put, trace


@pytest.fixture
def run_id(engine: Engine) -> int:
    copies = {"kind": ["HtoD", "DtoH", "HtoD"], "bytes": [2**40, None, 3], "duration_ns": [2e6, 5e6, None]}
    batches = trace([(0, 5.0), (10, None), (20, 7.0), (30, 7.0), (40, 1.0)])
    batches.append(Batch({"transfers": frame("transfers", {**copies, "line": [1, 2, 3]})}))
    return put(engine, "a", batches).run_id


@pytest.mark.parametrize(
    ("limit", "indexes", "more"),
    [(2, [2, 3], True), (4, [2, 3, 0, 4], True), (5, [0, 1, 2, 3, 4], False), (None, [0, 1, 2, 3, 4], False)],
)
def test_the_longest_launches(engine: Engine, run_id: int, limit: int | None, indexes: list[int], more: bool) -> None:
    rows, has_more = store.longest_launches(engine, run_id, limit)
    assert ([row["launch_index"] for row in rows], has_more) == (indexes, more)


def test_launches_of_a_number_and_of_kernels(engine: Engine, run_id: int) -> None:
    assert [row["launch_index"] for row in store.longest_launches(engine, run_id, 9, index=3)[0]] == [3]
    (kernel,), more = store.kernels_by_time(engine, run_id, 9)
    assert (kernel["launches"], kernel["total_ms"], kernel["mean_us"], more) == (5, 20.0 / 1e6, 5.0 / 1e3, False)
    assert isinstance(kernel["launches"], int)
    assert len(store.longest_launches(engine, run_id, 9, kernel_ids=[kernel["kernel_id"]])[0]) == 5
    assert store.longest_launches(engine, run_id, 9, kernel_ids=[]) == ([], False)
    assert store.launch_numbers(engine, run_id) == (0, 4)


def test_rows_about_some_launches(engine: Engine, run_id: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(largest, "IDS_PER_QUERY", 2)
    ids = [row["launch_id"] for row in store.select(engine, "v1_launches")]
    assert store.launch_rows(engine, "v1_launches", run_id, ids[::-1]) == store.select(engine, "v1_launches")
    assert store.launch_rows(engine, "v1_launches", run_id, ids[:3], launch_index=1)[0]["launch_id"] == ids[1]
    assert store.launch_rows(engine, "v1_launches", run_id, []) == []


def test_transfers_by_kind(engine: Engine, run_id: int) -> None:
    assert store.transfers_by_kind(engine, run_id) == [
        {"kind": "DtoH", "count": 1, "duration_ms": 5.0, "bytes": None},
        {"kind": "HtoD", "count": 2, "duration_ms": 2.0, "bytes": 2**40 + 3},
    ]
    assert store.count(engine, "v1_transfers", run_id) == 3


def test_a_run_without_launches_is_answered(engine: Engine) -> None:
    run_id = store.write_upload(engine, info("nothing"), RUN, []).run_id
    assert store.longest_launches(engine, run_id, 3) == ([], False)
    assert store.kernels_by_time(engine, run_id, 3) == ([], False)
    assert store.launch_numbers(engine, run_id) == (None, None)


@pytest.mark.parametrize("view", ["v1_models", "v1_criteria", "v1_potential", "v1_causes"])
def test_rows_of_launches_are_found_by_their_numbers(engine: Engine, run_id: int, view: str) -> None:
    launches = [row["launch_id"] for row in store.select(engine, "v1_launches", run_id=run_id)]
    rows = store.launch_rows(engine, view, run_id, launches)
    assert rows == [row for row in store.select(engine, view, run_id=run_id) if row["launch_id"] is not None]
    if engine.dialect.name != "sqlite":
        return
    among, values = largest.launches_among(engine, view, launches)
    query = f"EXPLAIN QUERY PLAN SELECT m.* FROM {among} AND m.run_id = 1"
    with reading(engine) as connection:
        plan = [row.detail for row in connection.execute(text(query), values)]
    assert any("(run_id=? AND launch_id=?" in step for step in plan), plan  # not all results of the run


@only_on("sqlite", "a server is given the numbers in the text")
def test_a_query_about_launches_has_one_text_up_to_each_power_of_two(engine: Engine) -> None:
    texts = {count: largest.launches_among(engine, "v1_models", range(count)) for count in range(1, 10)}
    assert len({sql for sql, _ in texts.values()}) == 5  # 1, 2, 4, 8 and 16
    assert [*texts[5][1].values()] == [0, 1, 2, 3, 4, None, None, None]
