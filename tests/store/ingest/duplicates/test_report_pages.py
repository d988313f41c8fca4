"""Several pages of one report are one run's launches once."""

import io
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from profsvc import pipeline, store
from profsvc.errors import InputError
from profsvc.formats.ncu import report as ncu_report
from tests.store.queries import told

FIXTURES = Path(__file__).parents[4] / "fixtures"
RAW = FIXTURES / "ncu_raw" / "h200_three_launches.csv.gz"
DETAILS = FIXTURES / "ncu_details" / "h200_three_launches_min.csv.gz"


def upload(engine: Engine, path: Path, run: str) -> pipeline.ImportResult:
    with path.open("rb") as stream:
        return pipeline.ingest(engine, stream, path.name, store.RunInfo(name=run))


@pytest.mark.parametrize("order", [(RAW, DETAILS), (DETAILS, RAW)])
def test_pages_of_one_report_count_once(tmp_path: Path, order: tuple[Path, Path]) -> None:
    engine = store.open_store(str(tmp_path / "s.sqlite"), pooled=True)
    first, second = (upload(engine, path, "r") for path in order)
    run = store.select(engine, "v1_runs", name="r")[0]
    assert run["launches"] == 3
    assert run["device"] == "NVIDIA H200"
    # The raw page has the exact times, whichever came first.
    raw, details = (first, second) if order[0] == RAW else (second, first)
    assert store.upload(engine, details.upload_id or 0)["same_as"] == raw.upload_id
    assert run["gpu_time_ns"] == 1_430_144.0
    launches = store.select(engine, "v1_launches", run_id=run["run_id"])
    assert {one["upload_id"] for one in launches} == {raw.upload_id}
    every = store.select(engine, "v1_launches_all", upload_id=details.upload_id)
    assert [one["same_as"] for one in every] == [one["launch_id"] for one in launches]
    whole = store.select(engine, "v1_potential", run_id=run["run_id"], launch_id=None)[0]
    assert whole["duration_ns"] == pytest.approx(run["gpu_time_ns"], rel=1e-3)
    engine.dispose()


@pytest.mark.usefixtures("unanalysed")
def test_another_run_has_its_own_launches(tmp_path: Path) -> None:
    engine = store.open_store(str(tmp_path / "s.sqlite"), pooled=True)
    upload(engine, RAW, "a")
    upload(engine, DETAILS, "b")
    assert [one["launches"] for one in store.select(engine, "v1_runs")] == [3, 3]
    engine.dispose()


REPORT = [
    FIXTURES / "h200_report" / name
    for name in (
        *("ncu_report.ncu-rep.zst", "ncu_raw_base.csv.gz", "ncu_details.csv.gz", "ncu_source.csv.gz"),
        "ncu_source_sass.csv.gz",
    )
]


@pytest.mark.usefixtures("unanalysed")
@pytest.mark.skipif(not ncu_report.package_folder(), reason="the package ncu-report is not installed")
@pytest.mark.parametrize(
    ("url", "files"),
    [("sqlite", REPORT), ("sqlite", REPORT[::-1]), ("staged", REPORT), ("postgresql", REPORT[::-1])],
    ids=["sqlite-report first", "sqlite-report last", "staged-report first", "postgresql-report last"],
    indirect=["url"],
)
def test_a_report_beside_its_pages_counts_once(engine: Engine, files: list[Path]) -> None:
    counts = (
        "select count(*), sum(duration_ns) from v1_launches",
        "select count(*), count(distinct metric) from v1_metrics where metric = 'gpu__time_duration.sum'",
        "select count(*), count(estimated_speedup) from v1_rules",
        "select count(*), sum(samples) from v1_source_lines where kind = 'instruction'",
        "select count(*), sum(samples) from v1_source_lines where kind = 'line'",
    )
    for path in files:
        upload(engine, path, "r")
    found = [tuple(store.query(engine, query).rows[0]) for query in counts]
    assert found == [(2, 140_672.0), (2, 1), (28, 17), (176, 1471), (9, 1471)]


@pytest.mark.usefixtures("unanalysed")
def test_a_report_may_have_longer_names_than_its_pages(engine: Engine) -> None:
    kernels = ["void at::native::norm<float, (int)4>(float *)", "void at::norm<float, 4>(float *)"]
    for place, kernel in enumerate(kernels):
        told.upload(engine, told.raw([told.One(kernel, ns=1_000 + n) for n in range(3)]), f"{place}.csv")
    assert told.sums(engine) == (3, 6_009.0)


def only(page: str, launches: list[told.One], places: list[int]) -> str:
    """Return a page with the rows of some launches, in this order."""
    head = told.RAW if page.startswith(told.RAW) else told.DETAILS
    rows = page.removeprefix(head).splitlines(keepends=True)
    each = len(rows) // len(launches)
    return head + "".join("".join(rows[place * each : place * each + each]) for place in places)


PROGRAM = told.program(12)
TURNS = [*range(0, 12, 2), *range(1, 12, 2)]


@pytest.mark.usefixtures("unanalysed")
@pytest.mark.parametrize("places", [range(1, 12, 3), range(6, 12), TURNS, [11]], ids=["kernel", "end", "turns", "last"])
@pytest.mark.parametrize("is_last", [True, False], ids=["after the whole page", "before it"])
def test_a_page_of_some_launches_or_in_another_order_counts_once(
    engine: Engine, places: list[int], is_last: bool
) -> None:
    pages = [(told.raw(PROGRAM), "raw.csv"), (only(told.details(PROGRAM), PROGRAM, [*places]), "details.csv")]
    for text, name in pages if is_last else pages[::-1]:
        told.upload(engine, text, name)
    assert told.sums(engine) == told.truth(PROGRAM, traced=False)
    query = """
        select count(*), max(abs(a.value - b.value) / a.value) from v1_metrics a join v1_metrics b
        on a.launch_id = b.launch_id and a.metric = 'gpu__time_duration.sum' and b.metric = 'Duration'
    """
    (row,) = store.query(engine, query).rows
    assert row[0] == len([*places])
    assert row[1] < 0.005


@pytest.mark.usefixtures("unanalysed")
def test_a_page_again_of_some_launches_repeats_no_metric(engine: Engine) -> None:
    told.upload(engine, told.raw(PROGRAM), "raw.csv")
    told.upload(engine, only(told.raw(PROGRAM), PROGRAM, [3, 7, 5]), "some.csv")
    (row,) = store.query(engine, "select count(*) from v1_metrics where metric = 'gpu__time_duration.sum'").rows
    assert row[0] == len(PROGRAM)


@pytest.mark.usefixtures("unanalysed")
@pytest.mark.parametrize("change", [{"process": 577}, {"ns": 5_000}, {"grid": 65}, {"kernel": "axpy(int, float *)"}])
def test_launches_that_differ_count_beside_the_page(engine: Engine, change: dict[str, Any]) -> None:
    told.upload(engine, told.raw(PROGRAM), "raw.csv")
    others = [one._replace(**change) for one in PROGRAM]
    told.upload(engine, only(told.details(others), others, [4, 7]), "details.csv")
    assert told.sums(engine)[0] == len(PROGRAM) + 2


@pytest.mark.usefixtures("unanalysed")
def test_two_captures_in_one_page_are_not_told_apart_by_their_numbers(engine: Engine) -> None:
    again = [one._replace(ns=one.ns + 1) for one in PROGRAM]
    told.upload(engine, told.raw(PROGRAM) + told.raw(again), "raw.csv")
    told.upload(engine, only(told.details(PROGRAM), PROGRAM, [4, 7]), "details.csv")
    assert told.sums(engine)[0] == 2 * len(PROGRAM) + 2


TRACE = """\
"Kind","Agent_Id","Queue_Id","Thread_Id","Dispatch_Id","Kernel_Id","Kernel_Name","Correlation_Id","Start_Timestamp",\
"End_Timestamp","Workgroup_Size_X","Workgroup_Size_Y","Workgroup_Size_Z","Grid_Size_X","Grid_Size_Y","Grid_Size_Z"
"KERNEL_DISPATCH","Agent 4",1,77,1,12,"tile(float*)",1,2050726000,2050729000,16,16,1,64,64,1
"KERNEL_DISPATCH","Agent 4",1,77,2,12,"tile(float*)",2,2050746000,2050750000,16,16,1,64,64,1
"""
COUNTERS = """\
"Correlation_Id","Dispatch_Id","Agent_Id","Queue_Id","Process_Id","Thread_Id","Grid_Size","Kernel_Id","Kernel_Name",\
"Workgroup_Size","Counter_Name","Counter_Value","Start_Timestamp","End_Timestamp"
1,1,"Agent 4",1,99,77,4096,12,"tile(float*)",256,"SQ_WAVES",64,2050726000,2050729000
2,2,"Agent 4",1,99,77,4096,12,"tile(float*)",256,"SQ_WAVES",64,2050746000,2050750000
"""


@pytest.mark.parametrize("order", [(TRACE, COUNTERS), (COUNTERS, TRACE)], ids=["trace first", "counters first"])
def test_the_trace_and_the_counters_of_one_run_of_rocprofv3_count_once(engine: Engine, order: tuple[str, str]) -> None:
    for content in order:
        with io.BytesIO(content.encode()) as stream:
            pipeline.ingest(engine, stream, "rocprof.csv", store.RunInfo(name="r"))
    launches = store.select(engine, "v1_launches")
    assert [(one["start_ns"], one["grid_x"], one["grid_y"], one["block_y"]) for one in launches] == [
        (2050726000, 4, 4, 16),
        (2050746000, 4, 4, 16),
    ]
    assert store.select(engine, "v1_runs")[0]["launches"] == 2
    assert [row["value"] for row in store.select(engine, "v1_metrics") if row["metric"] == "SQ_WAVES"] == [64, 64]
    # Another size is another launch, and the file is refused as before.
    with (
        io.BytesIO(COUNTERS.replace("4096", "8192").encode()) as stream,
        pytest.raises(InputError, match="count twice"),
    ):
        pipeline.ingest(engine, stream, "other.csv", store.RunInfo(name="r"))
