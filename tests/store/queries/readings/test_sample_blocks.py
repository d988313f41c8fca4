"""Pages of readings leave out blocks, and still have every reading that is asked for, once and in order."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine

from profsvc import store
from profsvc.store.ingest.writers import samples
from profsvc.store.queries.view_conditions import Condition
from profsvc.tables import Batch
from tests.store.ingest.test_events import put
from tests.store.ingest.writers.test_packed_samples import LONG, MS, STEPS, VALUES, series, unpacked
from tests.store.ingest.writers.test_samples import START


@pytest.fixture(autouse=True)
def short_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "MAX_READINGS", 70)


def fill(engine: Engine) -> None:
    """Two sensors in packed blocks and in rows, which take turns, and another file."""
    columns = series(VALUES["missing in the middle"], STEPS // 2 * 20 * MS)
    columns |= {"sensor_index": STEPS % 2, "sample_index": STEPS // 2}
    later = columns | {"elapsed_ns": columns["elapsed_ns"] + 10**10, "time_ns": None}
    later |= {"sample_index": columns["sample_index"] + LONG, "line": 3 * STEPS**2}
    parts = [Batch(unpacked(one, LONG)) for one in (columns, later)]
    put(engine, "a", parts[0], Batch({"samples": parts[1].tables["samples"]}))
    put(engine, "b", parts[0])


def pages(engine: Engine, only: list[Condition], order: list[str], limit: int = 50) -> Iterator[int]:
    after = ""
    while True:
        page = store.list_view(engine, "v1_samples", only, columns=["sample_id"], order=order, limit=limit, after=after)
        yield from (row["sample_id"] for row in page.rows)
        assert page.truncated == (page.after is not None)
        if page.after is None:
            return
        after = page.after


@pytest.mark.parametrize("order", [[], ["-sample_id"]])
def test_pages_follow_each_other(engine: Engine, order: list[str]) -> None:
    fill(engine)
    every = store.select(engine, "v1_samples")
    assert len(every) == 3 * LONG
    times = ("elapsed_ns", "gte", str(30 * 20 * MS)), ("elapsed_ns", "lt", str(10**10 + 3 * 20 * MS))
    asked: list[list[tuple[str, str, str]]] = [
        [],
        [("run_id", "", "1")],
        [("upload_id", "", "1")],
        [("sensor_id", "", "1000000002")],
        [("sensor_id", "", "1000000002"), ("run_id", "", "1")],
        [("upload_id", "", "2"), *times],
        [("sensor_id", "", "1000000001"), *times],
        [("sample_id", "gt", "1000000100"), ("sample_id", "lte", "1000000250")],
        [("sample_id", "", "1000000100")],
        [("elapsed_ns", "", str(30 * 20 * MS))],
        [("elapsed_ns", "ne", "0"), ("run_id", "", "1")],
        [("elapsed_ns", "null", "1")],
        [("time_ns", "gte", str(START + 30 * 20 * MS)), ("time_ns", "lt", str(START + 40 * 20 * MS))],
        [("time_ns", "gt", str(START + 10**10)), ("run_id", "", "1")],
        [("time_ns", "", str(START))],
    ]
    tests = {
        "": int.__eq__, "gte": int.__ge__, "gt": int.__gt__, "lte": int.__le__, "lt": int.__lt__, "ne": int.__ne__,
        "null": lambda cell, _: cell is None,
    }  # fmt: skip
    for conditions in asked:
        wanted = [
            row["sample_id"]
            for row in every
            if all(how == "null" or row[column] is not None for column, how, _ in conditions)
            and all(tests[how](row[column], int(value)) for column, how, value in conditions)
        ]
        found = list(pages(engine, [Condition(*one) for one in conditions], order))
        assert found == sorted(wanted, reverse=bool(order)), conditions
