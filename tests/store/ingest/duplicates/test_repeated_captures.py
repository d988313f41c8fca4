"""A capture that is told twice in one run is refused with the evidence; a repeat of the program is not."""

import io
from pathlib import Path

import pytest
from sqlalchemy import Engine

from profsvc import pipeline, store
from profsvc.errors import InputError

pytestmark = pytest.mark.usefixtures("unanalysed")

GPU = (
    "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB),"
    "Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,Strm,Name\n"
)
EXEC = (
    "API Start (ns),API Dur (ns),Queue Start (ns),Queue Dur (ns),Kernel Start (ns),Kernel Dur (ns),Total Dur (ns),"
    "PID,TID,DevId,API Function,GridXYZ,BlockXYZ,Kernel Name\n"
)
NAMES = ("saxpy(int, float *)", "fill")
TIMES = [(1_000_000 + 7_001 * n, 3_000 + 13 * (n % 5)) for n in range(100)]
TOLD = r"launches of trace.csv \(upload 1\) in this run, .*starts at [0-9]+ ns and takes 30[0-9]+ ns in both"


def gpu_trace(times=TIMES, names=NAMES):
    row = '{},{},14,1,1,1,32,1,1,40,0.000,0.000,,,,,NVIDIA H200 (0),1,7,"{}"\n'
    return GPU + "".join(row.format(*time, names[n % 2]) for n, time in enumerate(times))


def exec_trace(times=TIMES):
    row = '{},9000,,,{},{},9000,311,312,0,cudaLaunchKernel_v7000,1 1 1,32 1 1,"{}"\n'
    rows = [row.format(start - 4_000, start, took, NAMES[n % 2]) for n, (start, took) in enumerate(times)]
    return EXEC + "".join(reversed(rows))


def upload(
    engine: Engine, text: str, run: str = "r", name: str = "trace.csv", files: store.BlobStore | None = None
) -> pipeline.ImportResult:
    return pipeline.ingest(engine, io.BytesIO(text.encode()), name, store.RunInfo(name=run), files=files)


@pytest.mark.parametrize(
    ("again", "found"),
    [
        (exec_trace(), "32 of 32"),
        # A launch more and another less: neither file has all of them.
        (gpu_trace([*TIMES[:99], (9_000_000, 5)]), " of 32"),
        (exec_trace([time if n % 2 else (time[0] + 1, time[1]) for n, time in enumerate(TIMES)]), "16 of 32"),
    ],
)
def test_a_capture_that_is_told_twice_is_refused(engine: Engine, again: str, found: str) -> None:
    upload(engine, gpu_trace())
    with pytest.raises(InputError, match=TOLD) as error:
        upload(engine, again, name="again.csv")
    assert found in str(error.value)
    assert "first delete the other: profsvc delete 1 --upload 1)" in str(error.value)
    assert [run["launches"] for run in store.select(engine, "v1_runs")] == [100]
    upload(engine, again, run="another")


@pytest.mark.parametrize("names", [(NAMES, ("saxpy", "fill")), (("saxpy", "fill"), NAMES)])
def test_the_trace_with_whole_names_represents_one_with_short_names(
    engine: Engine, names: tuple[tuple[str, str], ...]
) -> None:
    for one in names:
        upload(engine, gpu_trace(names=one), name="whole.csv" if one == NAMES else "base.csv")
    assert [run["launches"] for run in store.select(engine, "v1_runs")] == [100]
    assert {launch["kernel"] for launch in store.select(engine, "v1_launches")} == {*NAMES}
    same = {row["file_name"]: row["same_as"] for row in store.select(engine, "v1_uploads")}
    assert same["whole.csv"] is None
    assert same["base.csv"] is not None


@pytest.mark.parametrize(
    "repeat",
    [
        [(start + 1, took) for start, took in TIMES],
        [(start, took + 1) for start, took in TIMES],
        [(start, TIMES[(n + 2) % 100][1]) for n, (start, _) in enumerate(TIMES)],
    ],
)
def test_a_repeat_of_the_program_is_stored(engine: Engine, repeat: list[tuple[int, int]]) -> None:
    upload(engine, gpu_trace())
    upload(engine, gpu_trace(repeat), name="again.csv")
    assert [run["launches"] for run in store.select(engine, "v1_runs")] == [200]


def test_a_file_is_no_twin_of_itself_when_it_is_read_again(engine: Engine, tmp_path: Path) -> None:
    files = store.BlobStore(tmp_path / "files", free_bytes=0)
    upload(engine, gpu_trace(), files=files)
    pipeline.reparse(engine, files, 1)
    assert [run["launches"] for run in store.select(engine, "v1_runs")] == [100]


def test_a_deleted_file_does_not_come_back_beside_its_twin(engine: Engine, tmp_path: Path) -> None:
    files = store.BlobStore(tmp_path / "files", free_bytes=0)
    upload(engine, gpu_trace(), files=files)
    store.delete_upload(engine, 1)
    upload(engine, exec_trace(), files=files)
    with pytest.raises(InputError, match="upload 2"):
        pipeline.undelete(engine, files, 1)
    assert [run["launches"] for run in store.select(engine, "v1_runs")] == [100]
