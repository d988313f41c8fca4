"""Transfers, calls, ranges, summaries and values of kernels go in as readers yield them and come out of their views."""

from typing import Any

import pytest
from sqlalchemy import Engine, text

from profsvc import store
from profsvc.errors import InputError
from profsvc.store.connection.transactions import reading, writing
from profsvc.store.ingest.inserts import dictionaries
from profsvc.store.ingest.writers import encoder
from profsvc.tables import TABLES, Batch, frame
from tests.store.conftest import KERNELS, batches, info

BIG = 2**60 + 1
# Of each table a row with every cell and one with as few as may be.
FULL: dict[str, dict[str, Any]] = {
    "transfers": {
        "kind": "HtoD", "start_ns": BIG, "duration_ns": 1250.5, "bytes": BIG + 2, "source_memory": "Pageable",
        "target_memory": "Device", "device_index": 1, "device": "NVIDIA H200", "process_id": 7, "context": 1,
        "stream": 13, "line": 5,
    },
    "api_calls": {
        "name": "cudaLaunchKernel", "start_ns": BIG, "duration_ns": 2.5, "process_id": 7, "thread_id": BIG + 4,
        "correlation_id": BIG + 6, "line": 2**53 + 1,
    },
    "ranges": {
        "name": "epoch 1", "start_ns": BIG, "duration_ns": 1e18, "domain": "training", "process_id": 7,
        "thread_id": BIG + 4, "active_sms": 132, "launches": BIG + 8, "line": 5,
    },
    "kernel_summaries": {
        "category": "kernel", "kernel": KERNELS[0], "calls": BIG, "total_ns": 12.5, "mean_ns": 2.5, "min_ns": 1.0,
        "max_ns": 4.0, "total_bytes": None, "device_index": 0, "line": 5,
    },
}  # fmt: skip
FEW: dict[str, dict[str, Any]] = {
    "transfers": {"kind": "memset", "line": 6},
    "api_calls": {"name": "cudaFree", "line": 6},
    "ranges": {"name": "mark", "line": 6},
    "kernel_summaries": {"category": "memory", "kernel": "[CUDA memcpy HtoD]", "calls": 2, "line": 6},
}
KEYS = {"transfers": "transfer_id", "api_calls": "call_id", "ranges": "range_id", "kernel_summaries": "summary_id"}


def batch(name: str, *rows: dict[str, Any]) -> Batch:
    cells = {column.name: [row.get(column.name) for row in rows] for column in TABLES[name]}
    return Batch({name: frame(name, cells)}, lines_stored=len(rows))


def put(engine: Engine, content: str, *parts: Batch, run: str = "r", **given: Any) -> store.StoredUpload:
    return store.write_upload(engine, info(content), store.RunInfo(name=run, **given), iter(parts))


@pytest.mark.parametrize("name", FULL)
def test_rows_come_back_as_they_went_in(engine: Engine, name: str) -> None:
    put(engine, "a", batch(name, FULL[name]), batch(name, FEW[name], FULL[name]))
    rows = store.select(engine, f"v1_{name}", run_id=1)
    assert [row[KEYS[name]] for row in rows] == [1_000_000_001, 1_000_000_002, 1_000_000_003]
    assert {(row["run_id"], row["upload_id"]) for row in rows} == {(1, 1)}
    want = [{column.name: row.get(column.name) for column in TABLES[name]} for row in (FULL[name], FEW[name])]
    assert [{column: row[column] for column in want[0]} for row in rows] == [want[0], want[1], want[0]]
    found = store.table(engine, f"v1_{name}")
    integers = [column.name for column in TABLES[name] if column.kind == "int"]
    assert found[integers].iloc[0].tolist() == [FULL[name][column] for column in integers]  # not rounded by a null


@pytest.mark.parametrize("name", FULL)
def test_deleting_an_upload_leaves_the_rows_of_others(engine: Engine, name: str) -> None:
    put(engine, "a", batch(name, FULL[name]))
    again = put(engine, "a", batch(name, FULL[name]))
    assert again.known
    put(engine, "b", batch(name, FULL[name], FEW[name]))
    assert len(store.select(engine, f"v1_{name}")) == 3
    store.delete_upload(engine, 1)
    assert [row["upload_id"] for row in store.select(engine, f"v1_{name}")] == [2, 2]
    store.delete_run(engine, 1)
    with reading(engine) as connection:
        assert connection.execute(text(f"SELECT count(*) FROM {name}")).scalar_one() == 0


def test_only_kernels_are_kernels(engine: Engine) -> None:
    put(engine, "a", batch("kernel_summaries", FULL["kernel_summaries"], FEW["kernel_summaries"]))
    assert [row["kernel_short"] for row in store.select(engine, "v1_kernel_summaries")] == ["gemm", None]
    assert [row["kernel"] for row in store.select(engine, "v1_kernels")] == [KERNELS[0]]
    assert len(store.select(engine, "v1_kernel_summaries", kernel="[CUDA memcpy HtoD]")) == 1


def test_a_named_device_stands_in_for_transfers_without(engine: Engine) -> None:
    put(engine, "a", batch("transfers", FEW["transfers"], FULL["transfers"]), device="A100")
    assert [row["device"] for row in store.select(engine, "v1_transfers")] == ["A100", "NVIDIA H200"]
    assert store.select(engine, "v1_runs")[0]["device"] == "A100"


def test_a_run_of_transfers_alone_takes_their_device_and_launches_say_it_better(engine: Engine) -> None:
    put(engine, "a", batch("transfers", FEW["transfers"]), batch("transfers", FULL["transfers"]))
    put(engine, "b", batch("transfers", FULL["transfers"]), *batches(), run="both")
    alone, both = store.select(engine, "v1_runs")
    assert (alone["device"], alone["compute_capability"]) == ("NVIDIA H200", None)
    assert (both["device"], both["compute_capability"]) == ("NVIDIA H200", "9.0")


def test_a_new_name_on_every_row_is_numbered_in_the_order_of_the_file(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dictionaries, "MAX_CACHED_NAMES", 700)
    rows = [{"name": f"step {i // 2}", "domain": f"step {i}", "line": i + 1} for i in range(2400)]
    put(engine, "a", *(batch("ranges", *rows[begin : begin + 800]) for begin in range(0, 2400, 800)))
    found = store.select(engine, "v1_ranges")
    assert [(row["name"], row["domain"]) for row in found] == [(row["name"], row["domain"]) for row in rows]
    with reading(engine) as connection:
        query = "SELECT text FROM texts WHERE text LIKE 'step %' ORDER BY text_id"
        numbered = connection.execute(text(query)).scalars().all()
    first = [f"step {i}" for i in range(400)]  # those of a batch; a server gets them sorted
    assert numbered[:400] == (first if engine.dialect.name == "sqlite" else sorted(first))
    assert len(numbered) == 2400


def test_names_that_are_there_get_their_number(engine: Engine) -> None:
    with writing(engine) as connection:
        first = dictionaries.Names(connection, "metric_names")
        made = first.numbers([("m", "", "avg"), ("m", "", "max"), ("m", "s", "")])
        second = dictionaries.Names(connection, "metric_names")
        assert second.numbers([("m", "s", ""), ("n", "", "")]) == [made[2], made[2] + 1]
        assert second["m", "", "max"] == made[1]


def test_too_many_rows_are_refused(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder, "IDS_PER_UPLOAD", 3)
    row = FEW["api_calls"]
    put(engine, "a", batch("api_calls", row, row))
    with pytest.raises(InputError, match="a file may have 2 api calls; split it"):
        put(engine, "b", batch("api_calls", row, row), batch("api_calls", row))


def test_values_of_a_kernel_say_so(engine: Engine) -> None:
    cells = {
        "kernel": [*[KERNELS[0]] * 3, None],
        "invocations": [BIG, BIG, BIG, None],
        "statistic": ["min", "max", "avg", None],
        "metric": ["ipc", "ipc", "ipc", "clock"],
        "raw_text": ["1", "3", "2", "x"],
        "value": [1.0, 3.0, 2.0, None],
        "si_unit": ["1", "1", "1", None],
        "reason": [None, None, None, "not a number"],
        "line": [5, 5, 5, 6],
    }
    put(engine, "a", *batches(2), Batch({"metrics": frame("metrics", cells)}, lines_stored=2))
    rows = store.select(engine, "v1_metrics", launch_id=None)
    for column in ("kernel", "invocations", "statistic", "metric", "value", "si_unit", "reason"):
        assert [row[column] for row in rows] == cells[column]
    assert [row["kernel_short"] for row in rows] == ["gemm"] * 3 + [None]
    assert [row["launch_id"] for row in rows] == [None] * 4
    of_launches = [row for row in store.select(engine, "v1_metrics", upload_id=1) if row["launch_id"]]
    assert {(row["invocations"], row["statistic"]) for row in of_launches} == {(None, None)}
    assert len(store.select(engine, "v1_metrics", kernel=KERNELS[0], statistic="max")) == 1
    assert store.metrics(engine, 1)["metric"].tolist() == ["dram__bytes_read.sum", "L2 Hit"] * 2


def test_copies_that_are_summed_up_by_time_and_by_size_are_counted_once(engine: Engine) -> None:
    copies = {"category": "memory", "kernel": "[CUDA memcpy HtoD]", "calls": 3}
    times, sizes = copies | {"total_ns": 12.5, "line": 5}, copies | {"total_bytes": 4096.0, "line": 9}
    put(engine, "times", batch("kernel_summaries", times))
    put(engine, "sizes", batch("kernel_summaries", sizes))
    put(engine, "alone", batch("kernel_summaries", sizes), run="sizes alone")
    query = "select run_id, sum(calls), sum(total_ns), sum(total_bytes) from v1_kernel_summaries group by run_id"
    assert store.query(engine, f"{query} order by run_id").rows == [(1, 3, 12.5, 4096.0), (2, 3, None, 4096.0)]
