import dataclasses
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait

import pandas as pd
import pytest
from sqlalchemy import Engine, text

from profsvc import store
from profsvc.errors import DomainError, NotFoundError, UsageError
from profsvc.specs.advice.causes import causes
from profsvc.store.connection.transactions import in_transaction, reading, writing
from profsvc.store.ingest.inserts.dictionaries import NAME_COLUMNS
from profsvc.store.results import writer
from profsvc.store.schema.tables import metadata
from tests.store.conftest import KERNELS, batches, info, only_on

VIEWS = ("v1_criteria", "v1_potential", "v1_models", "v1_causes", "v1_counters")
FIRST, SECOND = 1_000_000_001, 1_000_000_002


def results(value: float = 0.5) -> dict[str, pd.DataFrame]:
    return {
        "counters": pd.DataFrame(
            {
                "launch_id": [FIRST, FIRST, SECOND],
                "counter": ["dram_read_bytes", "ipc_sm", "ipc_sm"],
                "value": [value, 2.0, float("nan")],
                "expression": ["dram__bytes_read.sum", "@x / 2", None],
                "reason": [None, None, "not in the export"],
            }
        ),
        "criteria": pd.DataFrame(
            {
                "launch_id": pd.Series([FIRST, SECOND, None, None], dtype="Int64"),
                "kernel": [KERNELS[0], KERNELS[1], KERNELS[0], None],
                "criterion": ["divergence"] * 4,
                "value": [value, None, value, value],
                "speedup": [1 / value, None, 1.0, float("inf")],
                "flags": [0b1000001, 0, 2, 0],
                "reason": [None, "no counter", None, None],
            }
        ),
        "potential": pd.DataFrame(
            {
                "launch_id": [FIRST, None],
                "bound": ["dram", None],
                "speedup": [1.5, None],
                "reason": [None, "no bound"],
                "speedup_low": [1.25, None],
                "speedup_high": [2.0, None],
            }
        ),
        "models": pd.DataFrame(
            {
                "launch_id": [FIRST, FIRST],
                "model": ["mwp_cwp"] * 2,
                "quantity": ["mwp", "cwp"],
                "value": [5.9, 10.8],
                "form": ["consistent"] * 2,
                "label": ["departure", None],
            }
        ),
        "causes": pd.DataFrame(
            {
                "launch_id": [FIRST, FIRST],
                "rank": [1, 2],
                "cause": ["cache_thrashing", "memory_limit"],
                "saving_ns": [600 * value, 0.0],
                "saving_fraction": [value, 0.0],
                "low": [0.0, 0.0],
                "high": [value, 0.0],
            }
        ),
    }


@pytest.fixture(autouse=True)
def staged(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """On SQLite many results are written as pages of another file; a server takes them as they are, however many."""
    monkeypatch.setattr(writer, "MIN_STAGED_ROWS", 10**9 if request.node.callspec.params["url"] == "sqlite" else 0)


@pytest.fixture
def analysed(engine: Engine, stored: store.StoredUpload) -> Engine:
    store.save_results(engine, 1, [results()], "1.0")
    return engine


def test_results_are_read_back(analysed: Engine) -> None:
    rows = {(r["launch_id"], r["kernel"]): r for r in store.select(analysed, "v1_criteria", run_id=1)}
    assert set(rows) == {(FIRST, KERNELS[0]), (SECOND, KERNELS[1]), (None, KERNELS[0]), (None, None)}
    assert rows[FIRST, KERNELS[0]]["flags"] == "ZERO_DENOM UPPER_BOUND"
    assert (rows[SECOND, KERNELS[1]]["value"], rows[SECOND, KERNELS[1]]["reason"]) == (None, "no counter")
    assert rows[None, None]["speedup"] == float("inf")
    assert store.potential(analysed, 1)["bound"].tolist() == [None, "dram"]
    ranges = store.potential(analysed, 1)[["speedup_low", "speedup_high"]].dropna().to_numpy().tolist()
    assert ranges == [[1.25, 2.0]]
    assert store.models(analysed, 1)["quantity"].tolist() == ["cwp", "mwp"]
    assert store.select(analysed, "v1_criteria", launch_id=FIRST)[0]["analysis_version"] == "1.0"
    assert store.select(analysed, "v1_runs")[0]["analysis_version"] == "1.0"


def test_counters_are_columns(analysed: Engine) -> None:
    rows = store.select(analysed, "v1_counters", run_id=1)
    assert [(r["launch_id"] % 10, r["dram_read_bytes"], r["ipc_sm"], r["duration_ns"]) for r in rows] == [
        (1, 0.5, 2.0, 1250.0),  # the durations are columns of the launches
        (2, None, None, 1250.5),
        (3, None, None, 1251.0),
        (4, None, None, 1251.5),
    ]
    wide = store.counters(analysed, 1)
    assert wide.columns.tolist() == ["dram_read_bytes", "ipc_sm"]
    assert wide.loc[FIRST].tolist() == [0.5, 2.0]
    assert wide.loc[SECOND].isna().all()


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (1.0, "1"), (0.5, "0.5"), (1 / 3, "0.3333333333333333"), (0.1 + 0.2, "0.30000000000000004"),
        (1234567890123456.0, "1234567890123456"), (1e20, "1e+20"), (1e-5, "1e-05"),
    ],
)  # fmt: skip
def test_evidence_is_one_text_on_all_databases_with_all_digits(
    engine: Engine, stored: store.StoredUpload, value: float, told: str
) -> None:
    store.save_results(engine, 1, [results(value)], "1.0")
    evidence = store.select(engine, "v1_causes", run_id=1, rank=1)[0]["evidence"].replace(" ", "")
    assert evidence == f'[{{"counter":"dram_read_bytes","value":{told},"unit":"byte"}}]'


def test_causes_have_their_words_and_their_evidence(analysed: Engine) -> None:
    rows = store.parse_json_columns("v1_causes", store.select(analysed, "v1_causes", run_id=1))
    assert [(r["rank"], r["cause"], r["kind"], r["saving_ns"]) for r in rows] == [
        (1, "cache_thrashing", "flaw", 300.0),
        (2, "memory_limit", "limit", 0.0),
    ]
    thrashing = causes()["cache_thrashing"]
    assert (rows[0]["title"], rows[0]["first_step"]) == (thrashing.title, thrashing.first_step)
    assert rows[0]["evidence"] == [{"counter": "dram_read_bytes", "value": 0.5, "unit": "byte"}]
    assert rows[1]["evidence"] == rows[0]["evidence"], "all that the limit shows and that is known"
    (costly,) = store.costly_causes(analysed, 1, 10)
    assert (costly["kernel"], costly["cause"], costly["saving_ns"]) == (KERNELS[0], "cache_thrashing", 300.0)


def test_a_cause_keeps_the_words_of_its_version(analysed: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    words = dict(causes()) | {"cache_thrashing": dataclasses.replace(causes()["cache_thrashing"], title="New words")}
    monkeypatch.setattr(store.results.writer, "causes", lambda: words)
    store.save_results(analysed, 1, [results(0.25)], "1.1")
    history = store.select(analysed, "v1_causes_history", launch_id=FIRST, rank=1)
    assert sorted((r["title"], r["is_current"]) for r in history) == [("Cache thrashing", 0), ("New words", 1)]
    assert [r["title"] for r in store.select(analysed, "v1_causes", rank=1)] == ["New words"]


def test_the_same_version_replaces_and_another_keeps(analysed: Engine) -> None:
    store.save_results(analysed, 1, [results(0.25)], "1.0")
    assert len(store.criteria(analysed, 1)) == 4
    store.save_results(analysed, 1, [results(0.75)], "1.1")
    current = store.select(analysed, "v1_criteria", launch_id=FIRST)
    assert [(r["value"], r["analysis_version"]) for r in current] == [(0.75, "1.1")]
    history = store.select(analysed, "v1_criteria_history", launch_id=FIRST)
    assert [(r["value"], r["analysis_version"], r["is_current"]) for r in history] == [
        (0.25, "1.0", 0),
        (0.75, "1.1", 1),
    ]
    assert store.counters(analysed, 1).loc[FIRST, "dram_read_bytes"] == 0.75


def test_parts_are_kept_together_or_not_at_all(analysed: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store.results.writer, "MAX_MEMORY_BYTES", 1)
    whole = {view: store.select(analysed, view) for view in VIEWS}
    cut = [{name: table.iloc[place : place + 1] for name, table in results().items()} for place in range(4)]
    store.save_results(analysed, 1, iter([*cut, {}]), "1.0")
    assert {view: store.select(analysed, view) for view in whole} == whole

    def breaking() -> Iterator[dict[str, pd.DataFrame]]:
        yield results(0.25)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.save_results(analysed, 1, breaking(), "1.1")
    with pytest.raises(DomainError, match="no results are named"):
        store.save_results(analysed, 1, [results(0.25), {"horoscope": pd.DataFrame()}], "1.1")
    assert {view: store.select(analysed, view) for view in whole} == whole


def test_results_of_one_run_leave_others_alone(analysed: Engine) -> None:
    store.write_upload(analysed, info("b"), store.RunInfo(), batches())
    other = results()
    for table in other.values():
        table["launch_id"] += 1_000_000_000
    store.save_results(analysed, 2, [other], "1.0")
    store.save_results(analysed, 1, [dict.fromkeys(results(), pd.DataFrame())], "1.0")
    assert store.criteria(analysed, 1).empty
    assert store.counters(analysed, 1).empty
    assert len(store.criteria(analysed, 2)) == 4
    assert len(store.counters(analysed, 2)) == 2


def test_wrong_results_are_refused(analysed: Engine) -> None:
    with pytest.raises(DomainError, match="lack the columns"):
        store.save_results(analysed, 1, [{"criteria": pd.DataFrame({"launch_id": [FIRST]})}], "1.0")
    with pytest.raises(DomainError, match="have no column"):
        store.save_results(analysed, 1, [{"potential": results()["potential"].assign(colour=1)}], "1.0")
    with pytest.raises(DomainError, match="no results are named"):
        store.save_results(analysed, 1, [{"horoscope": pd.DataFrame()}], "1.0")
    with pytest.raises(NotFoundError):
        store.save_results(analysed, 9, [results()], "1.0")


def test_a_counter_says_what_it_was_computed_by(analysed: Engine) -> None:
    rows = {row["counter"]: row for row in store.select(analysed, "v1_counter_values", launch_id=FIRST)}
    assert (rows["dram_read_bytes"]["value"], rows["dram_read_bytes"]["expression"]) == (0.5, "dram__bytes_read.sum")
    (metric,) = store.select(analysed, "v1_metrics", launch_id=FIRST, metric="dram__bytes_read.sum")
    assert (metric["raw_text"], metric["unit"], metric["upload_id"], metric["line"]) == ("0,000", "Kbyte", 1, 3)


def test_metrics_of_an_upload(analysed: Engine) -> None:
    every = store.metrics(analysed, 1)
    assert every.columns.tolist() == ["launch_id", "section", "metric", "value", "si_unit"]
    assert every["metric"].tolist() == ["dram__bytes_read.sum", "L2 Hit"] * 4
    assert every["section"].tolist() == [None, "Memory"] * 4
    assert every["value"].tolist()[2] == 1e6
    assert every["value"].isna().sum() == 4
    some = store.metrics(analysed, 1, [FIRST, SECOND + 1])
    assert some["launch_id"].unique().tolist() == [FIRST, SECOND + 1]
    assert store.metrics(analysed, 1, []).empty == store.metrics(analysed, 9).empty


def test_runs_are_found_by_name_number_and_project(analysed: Engine) -> None:
    store.write_upload(analysed, info("b"), store.RunInfo(project="lab", name="first"), batches())
    store.write_upload(analysed, info("c"), store.RunInfo(project="lab", name="1"), batches())
    assert store.find_run(analysed, "2") == store.find_run(analysed, "lab/first") == 2
    assert store.find_run(analysed, "first", project="lab") == 2
    assert store.find_run(analysed, "1") == 3
    assert [store.find_run(analysed, f"id:{number}") for number in (1, 2, 3)] == [1, 2, 3]
    with pytest.raises(NotFoundError):
        store.find_run(analysed, "id:4")
    with pytest.raises(NotFoundError):
        store.find_run(analysed, "id:1", project="lab")
    with pytest.raises(UsageError, match="several runs: default/first"):
        store.find_run(analysed, "first")
    with pytest.raises(NotFoundError, match="did you mean 'first'"):
        store.find_run(analysed, "frist")
    assert len(store.runs(analysed, "lab")) == 2
    assert len(store.uploads(analysed, 1)) == 1
    assert store.rules(analysed, 1).empty
    with pytest.raises(NotFoundError):
        store.upload(analysed, 99)


def test_only_views_and_their_columns_are_selected(engine: Engine) -> None:
    with pytest.raises(NotFoundError, match="did you mean 'v1_runs'"):
        store.select(engine, "runs")
    with pytest.raises(NotFoundError, match="column of v1_runs"):
        store.select(engine, "v1_runs", **{"name; DROP": 1})


def test_a_device_is_described(analysed: Engine) -> None:
    store.describe_device(analysed, 1, 132, {"l2_size_bytes": 62914560})
    assert store.select(analysed, "v1_devices") == [
        {
            "device_id": 1,
            "name": "NVIDIA H200",
            "compute_capability": "9.0",
            "sms": 132,
            "facts": '{"l2_size_bytes": 62914560}',
        }
    ]
    with pytest.raises(NotFoundError, match="no device has the number 7"):
        store.describe_device(analysed, 7, None, {})


def left(engine: Engine) -> set[str]:
    with reading(engine) as connection:
        return {t for t in metadata.tables if connection.execute(text(f"SELECT count(*) FROM {t}")).scalar_one()}


def test_a_deleted_run_takes_its_results_with_it(analysed: Engine) -> None:
    assert left(analysed) >= {"counters", "criteria", "potential", "models", "causes"}
    store.delete_run(analysed, 1)
    assert left(analysed) <= {"facts", "deleted_uploads", *NAME_COLUMNS}


@only_on("postgresql", "on SQLite one process writes at a time")
def test_a_run_is_deleted_after_its_results_are_written_and_has_none_later(analysed: Engine) -> None:
    with ThreadPoolExecutor(1) as pool:
        with writing(analysed) as connection, in_transaction(analysed, connection):
            store.save_results(analysed, 1, [results(0.75)], "2")
            deleting = pool.submit(store.delete_run, analysed, 1)
            assert not wait([deleting], 0.2).done
        deleting.result(60)
    assert left(analysed) <= {"facts", "deleted_uploads", *NAME_COLUMNS}
    with pytest.raises(NotFoundError, match="no run has the number 1"):
        store.save_results(analysed, 1, [results()], "2")


def test_deleting_leaves_no_orphans(analysed: Engine) -> None:
    store.write_upload(analysed, info("b"), store.RunInfo(name="first"), batches(begin_ns=7))
    store.write_upload(analysed, info("c"), store.RunInfo(name="other"), batches())
    store.delete_upload(analysed, 1)
    assert store.launches(analysed, 1)["upload_id"].unique().tolist() == [2]
    assert store.criteria(analysed, 1).empty
    assert len(store.select(analysed, "v1_metrics")) == 16
    store.delete_run(analysed, 1)
    store.delete_run(analysed, 2)
    assert left(analysed) <= {"facts", "deleted_uploads", *NAME_COLUMNS}
    again = store.write_upload(analysed, info(), store.RunInfo(), batches())
    assert (again.upload_id, again.run_id) == (4, 3)  # numbers of what was deleted are not given again
    with pytest.raises(NotFoundError, match="no upload has the number 1"):
        store.delete_upload(analysed, 1)
