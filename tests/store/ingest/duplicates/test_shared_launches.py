"""Launches that several files of a run tell of are one launch with several sources, in every order of uploads."""

from itertools import permutations
from pathlib import Path

import pytest
from sqlalchemy import Engine

from profsvc import pipeline, store
from tests.inputs.uploads import ingest_all, without_analysis
from tests.store.conftest import mostly_on_sqlite
from tests.store.queries.told import One, details, program, raw, sums, trace, truth, upload

ALL = program()
FILES = {
    "raw": raw(ALL), "details": details(ALL), "cut": raw(ALL[:19]), "some": raw(ALL[6:12]), "trace": trace(ALL),
    "cut trace": trace(ALL[:19]),
}  # fmt: skip


PAIRS = (
    ("raw", "details"), ("details", "raw"), ("cut", "raw"), ("raw", "cut"), ("some", "trace"), ("trace", "some"),
    ("cut trace", "trace"), ("trace", "cut trace"), ("cut", "trace", "raw"), ("details", "cut", "raw"),
)  # fmt: skip
ORDERS = tuple(permutations(("raw", "details", "trace")))
# In which order files come is the program's affair; a few orders show that both databases answer alike.
ON_BOTH = {("details", "raw"), ("trace", "some"), ("cut", "trace", "raw"), ORDERS[1], ORDERS[4]}
Names = tuple[str, ...]


def upload_all(engine: Engine, names: Names) -> None:
    for name in names:
        upload(engine, FILES[name], f"{name}.csv")


def assert_each_launch_counts_once(engine: Engine, names: Names) -> None:
    expected = truth(ALL, traced="trace" in names)
    assert sums(engine) == expected
    (run,) = store.select(engine, "v1_runs")
    assert (run["launches"], run["gpu_time_ns"]) == expected
    (totals,) = store.query(engine, "select sum(launches), sum(total_ns) from v1_kernel_totals").rows
    assert tuple(totals) == expected
    told = sum(19 if "cut" in name else 6 if name == "some" else 34 for name in names)
    assert sums(engine, "v1_launches_all")[0] == told
    (sources,) = store.query(engine, "select sum(sources) from v1_launches").rows
    assert sources == (told,)


@pytest.mark.usefixtures("unanalysed")
@mostly_on_sqlite("names", (("raw",), *PAIRS), ON_BOTH, "+".join)
def test_each_launch_counts_once_whatever_files_tell_of_it(engine: Engine, names: Names) -> None:
    upload_all(engine, names)
    assert_each_launch_counts_once(engine, names)


@mostly_on_sqlite("names", ORDERS, ON_BOTH, "+".join)
def test_counters_of_all_files_are_those_of_the_launch(engine: Engine, names: Names) -> None:
    ingest_all(engine, [(FILES[name].encode(), f"{name}.csv") for name in names], store.RunInfo(name="r"))
    assert_each_launch_counts_once(engine, names)
    launches = "select launch_id from v1_launches"
    for view, count in (("v1_criteria", 8), ("v1_potential", 1)):
        query = f"select count(*), count(distinct launch_id) from {view} where launch_id in ({launches})"
        assert store.query(engine, query).rows == [(34 * count, 34)]
        (every,) = store.query(engine, f"select count(*) from {view} where launch_id is not null").rows
        assert every == (34 * count,)
    rows = store.select(engine, "v1_counter_values")
    by_counter = {name: [row["value"] for row in rows if row["counter"] == name] for name in
                  ("dram_read_bytes", "achieved_occupancy_fraction", "duration_ns")}  # fmt: skip
    # The raw page alone has the bytes, the details page alone the occupancy; both have the time, one of them exactly.
    assert by_counter["dram_read_bytes"] == [one.ns * 64 for one in ALL]
    assert by_counter["achieved_occupancy_fraction"] == [0.5] * 34
    assert by_counter["duration_ns"] == pytest.approx([2 * one.ns + 1 for one in ALL], rel=1e-12)
    metrics = store.query(engine, "select metric, count(*), count(distinct launch_id) from v1_metrics group by metric")
    found = {name: counts for name, *counts in metrics.rows}
    assert found["gpu__time_duration.sum"] == found["Achieved Occupancy"] == [34, 34]
    joined = "select count(*) from v1_launches l join v1_metrics m on m.launch_id = l.launch_id"
    assert store.query(engine, f"{joined} and m.metric = 'dram__bytes_read.sum'").rows == [(34,)]


def criteria_of_launches(engine: Engine) -> list[tuple[object, ...]]:
    """Return the values of all criteria of launches."""
    rows = [row for row in store.select(engine, "v1_criteria") if row["launch_id"] is not None]
    return [(row["kernel"], row["criterion"], row["value"], row["reason"]) for row in rows]


def test_a_launch_counts_with_the_time_of_the_trace_and_its_criteria_with_their_own(engine: Engine) -> None:
    upload(engine, FILES["raw"], "raw.csv")
    alone = store.select(engine, "v1_potential", launch_id=None)[0]
    before = criteria_of_launches(engine)
    assert before
    upload(engine, FILES["trace"], "trace.csv")
    assert criteria_of_launches(engine) == before
    (whole,) = store.select(engine, "v1_potential", launch_id=None, kernel=None)
    assert whole["duration_ns"] == pytest.approx(sum(one.ns for one in ALL))
    assert whole["speedup"] == pytest.approx(alone["speedup"])
    times = store.select(engine, "v1_potential", launch_id=store.select(engine, "v1_launches")[0]["launch_id"])
    assert times[0]["duration_ns"] == pytest.approx(2 * ALL[0].ns + 1)


def test_what_several_files_tell_is_told_apart_again_when_one_goes_and_comes_back(
    engine: Engine, tmp_path: Path
) -> None:
    files = store.BlobStore(tmp_path / "files", free_bytes=0)
    with without_analysis():
        numbers = {name: upload(engine, FILES[name], f"{name}.csv", files=files).upload_id for name in
                   ("cut", "raw", "details", "trace")}  # fmt: skip
    whole = truth(ALL, traced=True)
    for gone in ("trace", "raw", "details", "cut"):
        store.delete_upload(engine, numbers[gone] or 0)
        assert sums(engine) == (truth(ALL, traced=False) if gone == "trace" else whole)
        with without_analysis():
            pipeline.undelete(engine, files, numbers[gone] or 0)
        assert sums(engine) == whole
        pipeline.reparse(engine, files, numbers[gone] or 0)
        assert sums(engine) == whole
        assert len(store.select(engine, "v1_counter_values", counter="dram_read_bytes")) == 34
    assert {row["same_as"] for row in store.select(engine, "v1_uploads")} == {None, numbers["trace"]}


@pytest.mark.usefixtures("unanalysed")
def test_a_profile_of_another_program_counts_beside_a_trace_and_says_why(engine: Engine) -> None:
    other = [one._replace(grid=one.grid * 2) for one in ALL[:5]]
    upload(engine, FILES["trace"], "trace.csv")
    upload(engine, raw(other), "raw.csv")
    assert sums(engine)[0] == 34 + 5
    (row,) = store.select(engine, "v1_uploads", upload_id=2)
    assert row["same_as"] is None
    assert row["same_as_reason"] == (
        "not taken for launches of trace.csv (upload 1), and counted beside them: it has saxpy(int, float *) "
        "<<<(64, 1, 1), (256, 1, 1)>>> 2 times, that file never"
    )


@pytest.mark.usefixtures("unanalysed")
def test_a_profile_in_another_order_is_not_taken_for_the_launches_of_a_trace(engine: Engine) -> None:
    upload(engine, raw([ALL[1], ALL[0]]), "raw.csv")
    upload(engine, trace(ALL[:2]), "trace.csv")
    assert sums(engine)[0] == 4
    assert "in another order" in store.upload(engine, 1)["same_as_reason"]


@pytest.mark.usefixtures("unanalysed")
def test_which_of_many_like_launches_was_profiled_is_said_to_be_unknown(engine: Engine) -> None:
    same = [One("saxpy(int, float *)", ns=1_000 + n) for n in range(20)]
    upload(engine, trace(same), "trace.csv")
    upload(engine, raw(same[5:8]), "raw.csv")
    assert sums(engine) == truth(same, traced=True)
    assert "cannot be told" in store.upload(engine, 2)["same_as_reason"]


@pytest.mark.usefixtures("unanalysed")
def test_a_profile_is_longer_than_a_trace_that_ended_early(engine: Engine) -> None:
    upload(engine, FILES["cut trace"], "trace.csv")
    upload(engine, FILES["raw"], "raw.csv")
    assert sums(engine) == truth(ALL, traced=False)
    assert store.upload(engine, 1)["same_as"] == 2


@pytest.mark.usefixtures("unanalysed")
def test_copies_of_a_capture_that_is_told_twice_count_once(engine: Engine) -> None:
    copy = "500,100,9,,,,,,,,,,4.000,40.000,Pageable,Device,NVIDIA H200 (0),1,7,[CUDA memcpy HtoD]\n"
    for name in ("cut trace", "trace"):
        upload(engine, FILES[name] + copy, f"{name}.csv")
    assert len(store.select(engine, "v1_transfers")) == 1
    assert len(store.select(engine, "v1_transfers_all")) == 2


@pytest.mark.usefixtures("unanalysed")
def test_streams_and_processes_are_told_by_what_runs_on_them(engine: Engine) -> None:
    """Two tools number the streams and the devices otherwise, and the trace has them interleaved."""
    left = [One("left(int)", n + 1, stream=13) for n in range(8)]
    right = [One("right(int)", n + 1, stream=14) for n in range(8)]
    upload(engine, raw([*left, *right]), "raw.csv")
    mixed = [one._replace(stream=one.stream + 7) for pair in zip(left, right, strict=True) for one in pair]
    upload(engine, trace(mixed), "trace.csv")
    assert sums(engine) == truth(mixed, traced=True)
    assert "cannot be told" not in store.upload(engine, 1)["same_as_reason"]


@pytest.mark.usefixtures("unanalysed")
def test_a_kernel_of_an_amd_gpu_is_no_launch_of_an_nvidia_gpu(engine: Engine) -> None:
    row = '"KERNEL_DISPATCH",1,1,{},{},1,"saxpy",{},{},{},0,0,256,1,1,270336,1,1\n'
    header = (
        '"Kind","Agent_Id","Queue_Id","Thread_Id","Dispatch_Id","Kernel_Id","Kernel_Name","Correlation_Id",'
        '"Start_Timestamp","End_Timestamp","Private_Segment_Size","Group_Segment_Size","Workgroup_Size_X",'
        '"Workgroup_Size_Y","Workgroup_Size_Z","Grid_Size_X","Grid_Size_Y","Grid_Size_Z"\n'
    )
    began = 1_551_401_624_448_706
    amd = header + row.format(9, 1, 1, began, began + 131_072) + row.format(9, 2, 2, began + 200_000, began + 200_998)
    nvidia = (Path(__file__).parents[4] / "fixtures" / "ncu_raw" / "plain.csv").read_text()
    upload(engine, nvidia, "nvidia.csv")
    upload(engine, amd, "amd.csv")
    assert sums(engine)[0] == 4
    reasons = [one["same_as_reason"] for one in store.select(engine, "v1_uploads") if one["same_as_reason"]]
    assert reasons == [
        "not taken for launches of amd.csv (upload 2), and counted beside them: ncu measures GPUs of NVIDIA, and "
        "rocprof those of AMD"
    ]
