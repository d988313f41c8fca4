"""The benchmark of partitions compares stores that answer the same."""

from profsvc import store
from tests.benchmarks.partitions import ASKED, measured, stores
from tests.environment import postgres


def test_partitions_hold_the_same_before_and_after_a_deletion(postgres_server: postgres.Server) -> None:
    with stores(postgres_server, runs=4, parts=2) as (plain, split):
        done = [what for what, *_ in measured(plain, split, runs=4, parts=2, rows=30, times=1)]
        assert done == ["load of a run", *ASKED, "older half deleted"]
        for view in ("v1_uploads", "v1_launches", "v1_samples", "v1_kernel_totals"):
            rows = [store.select(engine, view) for engine in (plain, split)]
            assert {row["run_id"] for row in rows[0]} == {3, 4}
            assert [row | {"received_at": ""} for row in rows[0]] == [row | {"received_at": ""} for row in rows[1]]
