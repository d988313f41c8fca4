"""A kernel over runs: the newest are found wherever it begins, whole, and nothing of another project is."""

import io
from typing import Any

import pandas as pd
import pytest
from sqlalchemy import Engine, text

from profsvc import pipeline, store
from profsvc.store.connection.transactions import writing
from profsvc.store.queries.kernels import history as kernel_history
from profsvc.store.queries.kernels.history import HistoryFilter
from profsvc.store.schema.results.power import FRAMES
from tests.benchmarks.history import fill, measured
from tests.store.conftest import KERNELS, Filled, batches, info, only_on

RUNS = 6
GEMM, SAXPY = KERNELS


def put(engine: Engine, run: int, file: str = "a", **changes: Any) -> store.StoredUpload:
    """Write a file of four launches to a run: two kernels, of which each is slower run by run."""
    about = store.RunInfo(name=f"run {run}", project=f"p{run % 2}", commit_id=f"c{run}")
    own = {"duration_ns": [100.0 * run + i for i in range(4)], "device": [f"GPU {run % 3}"] * 4} | changes
    return store.write_upload(engine, info(f"{run} {file}"), about, batches(per_batch=4, **own))


def judge(engine: Engine, run_id: int, first: int, worse: float = 0.0) -> None:
    """Write a criterion and the potential of the four launches of a file."""
    ids = [first * 10**9 + i + 1 for i in range(4)]
    value = [0.5 - worse, None, 0.7 - worse, None]
    criteria = pd.DataFrame({"launch_id": ids, "criterion": ["divergence"] * 4, "value": value,
                             "reason": [None, "no counter"] * 2})  # fmt: skip
    potential = pd.DataFrame({"launch_id": ids, "speedup": [2.0, None, 4.0, None], "ideal_ns": [50.0, None, 25.0, None],
                              "duration_ns": [100.0] * 4})  # fmt: skip
    store.save_results(engine, run_id, [{"criteria": criteria, "potential": potential}], "1")


@pytest.fixture
def full(engine: Engine, filled: Filled) -> Engine:
    def fill() -> None:
        for run in range(1, RUNS + 1):
            put(engine, run)

    return filled(fill)


def number(engine: Engine, name: str) -> int:
    return int(store.kernels_named(engine, name)[0]["kernel_id"])


def test_a_kernel_is_found_by_number_by_name_and_by_short_name(full: Engine) -> None:
    gemm = number(full, GEMM)
    assert [row["kernel"] for row in store.kernels_named(full, f"#{gemm}")] == [GEMM]
    assert store.kernels_named(full, str(gemm)) == store.kernels_named(full, "gemm") == store.kernels_named(full, GEMM)
    assert store.kernels_named(full, "gemm", "p1") != []
    for name in ("gem", "", "#", "\u0661", str(10**30), "'; DROP TABLE kernels"):
        assert store.kernels_named(full, name) == []
    assert store.kernels_named(full, "gemm", "elsewhere") == []
    assert str(store.kernel_not_found(full, "saxp")) == "no kernel named 'saxp'; did you mean 'saxpy'?"
    assert "saxpy" not in str(store.kernel_not_found(full, "saxp", "elsewhere"))


def test_the_newest_runs_come_first_and_lead_to_the_older_ones(full: Engine) -> None:
    kernel = number(full, GEMM)
    seen, before = [], None
    while True:
        found, spread = store.durations_of_kernel(full, kernel, HistoryFilter(points=4, before=before))
        seen.append(list(found.runs))
        assert list(spread) == sorted(found.runs)
        if (before := found.older) is None:
            break
    assert seen == [[6, 5, 4, 3], [2, 1]]
    one = store.durations_of_kernel(full, kernel, HistoryFilter(points=RUNS))
    assert one[0].older is None  # as many as there are: nothing is left
    row = one[1][3]
    assert (row["launches"], row["total_ns"], row["min_ns"], row["p50_ns"], row["max_ns"]) == (2, 602, 300, 301, 302)
    run = one[0].runs[3]
    assert (run["project"], run["run"], run["device"], run["commit_id"]) == ("p1", "run 3", "GPU 0", "c3")


def test_runs_of_a_project_and_of_a_device_alone(full: Engine) -> None:
    kernel = number(full, SAXPY)

    def runs(**only: Any) -> list[int]:
        return list(store.durations_of_kernel(full, kernel, HistoryFilter(**only))[0].runs)

    assert runs(project="p1") == [5, 3, 1]
    assert runs(device="GPU 0") == [6, 3]
    assert runs(project="p1", device="GPU 0") == [3]
    assert runs(project="elsewhere") == runs(device="elsewhere") == []


def test_files_of_a_run_are_one_point(full: Engine) -> None:
    kernel = number(full, GEMM)
    put(full, 3, "b", duration_ns=[5.0, 5.0, 7.0, 7.0])
    found, spread = store.durations_of_kernel(full, kernel, HistoryFilter())
    assert list(found.runs) == [3, 6, 5, 4, 2, 1]  # by the newest file
    row = spread[3]
    assert (row["files"], row["launches"], row["timed"], row["total_ns"]) == (2, 4, 4, 614.0)
    assert (row["min_ns"], row["max_ns"]) == (5.0, 302.0)
    assert store.durations_of_kernel(full, kernel, HistoryFilter(points=1))[1][3] == row  # whole on whatever page
    put(full, 9, "c", duration_ns=[None] * 4)
    assert store.durations_of_kernel(full, kernel, HistoryFilter(points=1))[1][7]["p50_ns"] is None


def test_pages_of_one_report_count_once(full: Engine) -> None:
    with writing(full) as connection:
        connection.execute(text("UPDATE uploads SET same_as = 1 WHERE upload_id = 2"))
    assert 2 not in store.durations_of_kernel(full, number(full, GEMM), HistoryFilter())[0].runs


def test_criteria_and_potential_are_those_of_the_kernel_alone(full: Engine) -> None:
    judge(full, 1, 1)
    judge(full, 2, 2, worse=0.25)
    gemm, saxpy = number(full, GEMM), number(full, SAXPY)
    found = store.criterion_of_kernel(full, gemm, "divergence", [1, 2, 3], 10.0)
    assert sorted(found) == [1, 2]
    # Launches of 100 and 102 ns.
    assert found[1]["value"] == pytest.approx((100 * 0.5 + 102 * 0.7) / 202)
    assert (found[1]["low"], found[1]["high"], found[1]["reason"]) == (0.5, 0.7, None)
    assert found[2]["value"] == pytest.approx((200 * 0.25 + 202 * 0.45) / 402)
    missing = store.criterion_of_kernel(full, saxpy, "divergence", [1], 10.0)[1]
    assert (missing["value"], missing["reason"]) == (None, "no counter")
    assert store.criterion_of_kernel(full, gemm, "nothing", [1], 10.0) == {}
    best = store.potential_of_kernel(full, gemm, [1, 2], 10.0)
    assert (best[1]["value"], best[1]["low"], best[1]["high"]) == (pytest.approx(200 / 75), 2.0, 4.0)
    assert store.potential_of_kernel(full, saxpy, [1], 10.0)[1]["value"] is None


def test_a_run_with_means_of_its_kernels_alone_has_those(full: Engine) -> None:
    rows = {"launch_id": [None], "kernel": [GEMM]}
    criteria = pd.DataFrame(rows | {"criterion": ["divergence"], "value": [0.25]})
    potential = pd.DataFrame(rows | {"speedup": [3.0], "ideal_ns": [1.0], "duration_ns": [3.0]})
    store.save_results(full, 1, [{"criteria": criteria, "potential": potential}], "1")
    gemm = number(full, GEMM)
    assert store.criterion_of_kernel(full, gemm, "divergence", [1], 10.0)[1]["value"] == 0.25
    assert store.potential_of_kernel(full, gemm, [1], 10.0)[1]["value"] == 3.0
    assert store.criterion_of_kernel(full, number(full, SAXPY), "divergence", [1], 10.0) == {}


def test_an_older_version_of_the_analysis_is_not_mixed_in(full: Engine) -> None:
    judge(full, 1, 1)
    criteria = pd.DataFrame({"launch_id": [1_000_000_001], "criterion": ["divergence"], "value": [0.9]})
    store.save_results(full, 1, [{"criteria": criteria}], "2")
    assert store.criterion_of_kernel(full, number(full, GEMM), "divergence", [1], 10.0)[1]["value"] == 0.9


def window(load: str, watts: float, kind: str = "load") -> dict[str, Any]:
    """A window of power of a load."""
    row: dict[str, Any] = {c.name: None for c in FRAMES["power_windows"]}
    return row | {"window": load, "kind": kind, "source": "marks", "load": load, "sensor_id": 1, "begin_ns": 0,
                  "end_ns": 10, "duration_s": 1.0, "readings": 9, "mean_power_w": watts}  # fmt: skip


def test_power_is_that_of_the_loads_of_the_names(full: Engine) -> None:
    for run_id in (1, 2, 4):
        rows = [window("saxpy", 100.0 + run_id), window("other", 7.0), window(SAXPY, 200.0 + run_id, "kernel"),
                window("saxpy", 5.0, "idle")]  # fmt: skip
        store.save_power(full, run_id, {"power_windows": pd.DataFrame(rows)}, "1")
    found, rows = store.powers_of_load(full, [SAXPY, "saxpy"], HistoryFilter())
    assert list(found.runs) == [4, 2, 1]
    assert found.older is None
    assert [row["mean_power_w"] for row in rows] == [101.0, 201.0, 102.0, 202.0, 104.0, 204.0]
    found, rows = store.powers_of_load(full, ["saxpy", "saxpy"], HistoryFilter(points=2))
    assert (list(found.runs), found.older) == ([4, 2], 2)
    found, rows = store.powers_of_load(full, ["saxpy"], HistoryFilter(before=2, project="p1"))
    assert (list(found.runs), [row["mean_power_w"] for row in rows]) == ([1], [101.0])
    by_window = window("other load", 9.0) | {"window": "other load, 16 SMs"}
    store.save_power(full, 6, {"power_windows": pd.DataFrame([by_window])}, "1")
    assert [row["mean_power_w"] for row in store.powers_of_load(full, ["other load, 16 SMs"], HistoryFilter())[1]] == [
        9.0
    ]
    assert store.powers_of_load(full, ["gemm"], HistoryFilter()) == (kernel_history.HistoryRuns({}, None), [])


@only_on("sqlite", "a table of few rows is read whole on Postgres; `test_plans` looks at a full one")
def test_the_newest_are_read_off_an_index(full: Engine) -> None:
    seen: list[str] = []
    values = {"kernel_id": 1, "before": 9, "most": 3, "name_0": "saxpy"}
    power = kernel_history._NEWEST_POWER.replace(
        "{loads}", kernel_history._OF_LOAD.format(name="name_0", column="load")
    )
    with writing(full) as connection:
        for query in (kernel_history._NEWEST, power):
            asked = {name: value for name, value in values.items() if f":{name}" in query}
            plan = connection.execute(text("EXPLAIN QUERY PLAN " + query.replace("{among}", "")), asked)
            seen += [row[3] for row in plan]
    whole = [line for line in seen if line.startswith("SCAN") and not line.startswith(("SCAN load_name_0", "SCAN n"))]
    assert whole == []
    assert not [line for line in seen if "TEMP B-TREE" in line and "SUBQUERY" not in line][1:]


def test_the_benchmark_asks_a_full_store_on_both_databases(engine: Engine) -> None:
    fill(engine, runs=1000)
    asked = {(what, quantity): points for what, quantity, points, _, _ in measured(engine, 1000, 1)}
    assert asked["each run has it", "duration"] == asked["from the middle", "divergence"] + 1 == 500
    assert asked["all of it", "potential"] == 1000
    assert asked["rare", "duration"] == 2
    assert asked["one project", "power"] == 50


def test_the_means_of_totals_are_followed_over_runs(engine: Engine) -> None:
    row = '{"frame": {"name": "gemm"}, "metrics": {"count": %d, "time (ns)": %d}}'
    for night in range(3):
        data = f"[{row % (1, 100)}, {row % (3, 340 + night)}]".encode()
        pipeline.ingest(engine, io.BytesIO(data), "profile.hatchet", store.RunInfo(project="p", name=f"night {night}"))
    (kernel,) = store.kernels_named(engine, "gemm", "p")
    assert store.kernels_named(engine, "gemm", "q") == []
    found, means = store.means_of_kernel(engine, kernel["kernel_id"], HistoryFilter(points=2))
    assert [row["run"] for row in found.runs.values()] == ["night 2", "night 1"]
    assert [(means[run]["value"], means[run]["launches"]) for run in found.runs] == [(110.5, 4), (110.25, 4)]
    older, _ = store.means_of_kernel(engine, kernel["kernel_id"], HistoryFilter(before=found.older))
    assert ([row["run"] for row in older.runs.values()], older.older) == (["night 0"], None)
    assert [row["runs"] for row in store.recent_kernels(engine, "p")] == [3]
    assert "did you mean 'gemm'" in str(store.kernel_not_found(engine, "gemn"))
