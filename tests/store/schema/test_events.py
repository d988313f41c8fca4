"""Totals that several reports of nsys stats print of the same events count once."""

import io
import sqlite3
from contextlib import closing
from itertools import permutations
from pathlib import Path

import pytest
from sqlalchemy import Engine

from profsvc import pipeline, store
from profsvc.store.queries.nightly_series import series_of_runs
from profsvc.store.queries.runs.comparison import kernels_of_run

KERNELS = """\
Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name
60.0,6000,2,3000.0,3000.0,2000,4000,1.0,"saxpy(int, float *)"
40.0,4000,1,4000.0,4000.0,4000,4000,0.0,fill
"""
GRIDS = """\
Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),GridXYZ,BlockXYZ,Name
20.0,2000,1,2000.0,2000.0,2000,2000,0.0,   8    1    1, 256    1    1,"saxpy(int, float *)"
40.0,4000,1,4000.0,4000.0,4000,4000,0.0,  16    1    1, 256    1    1,"saxpy(int, float *)"
40.0,4000,1,4000.0,4000.0,4000,4000,0.0,   8    1    1, 256    1    1,fill
"""
BOTH = """\
Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Category,Operation
50.0,6000,2,3000.0,3000.0,2000,4000,1.0,CUDA_KERNEL,"saxpy(int, float *)"
30.0,4000,1,4000.0,4000.0,4000,4000,0.0,CUDA_KERNEL,fill
20.0,500,5,100.0,100.0,100,100,0.0,MEMORY_OPER,[CUDA memcpy Host-to-Device]
"""
COPIES = """\
Time (%),Total Time (ns),Count,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Operation
100.0,500,5,100.0,100.0,100,100,0.0,[CUDA memcpy Host-to-Device]
"""
SIZES = """\
Total (MB),Count,Avg (MB),Med (MB),Min (MB),Max (MB),StdDev (MB),Operation
1.500,5,0.300,0.300,0.300,0.300,0.000,[CUDA memcpy Host-to-Device]
"""
SUMS = "select category, sum(total_ns), sum(calls) from v1_kernel_summaries{} group by category order by category"


def upload(engine: Engine, text: str, run: str = "r") -> None:
    pipeline.ingest(engine, io.BytesIO(text.encode()), "a.csv", store.RunInfo(name=run))


def sums(engine: Engine, every: str = "") -> list[tuple[object, ...]]:
    return [tuple(row) for row in store.query(engine, SUMS.format(every)).rows]


@pytest.mark.usefixtures("unanalysed")
@pytest.mark.parametrize("reports", list(permutations([KERNELS, GRIDS, BOTH])))
def test_reports_of_one_capture_count_once_in_any_order(engine: Engine, reports: tuple[str, ...]) -> None:
    for text in reports:
        upload(engine, text)
    assert sums(engine) == [("kernel", 10_000, 3), ("memory", 500, 5)]
    assert sums(engine, "_all") == [("kernel", 30_000, 9), ("memory", 500, 5)]
    found = store.query(engine, "select distinct report from v1_kernel_summaries order by 1").rows
    assert [row[0] for row in found] == ["cuda_gpu_kern_sum", "cuda_gpu_sum"]


@pytest.mark.parametrize(
    ("reports", "kernels", "memory"),
    [
        ([GRIDS], [(10_000, 3)], []),
        ([GRIDS, BOTH], [(10_000, 3)], [(500, 5)]),
        ([KERNELS, COPIES, SIZES, BOTH], [(10_000, 3)], [(500, 5)]),
        ([BOTH, SIZES], [(10_000, 3)], [(500, 5)]),
        ([KERNELS.replace("fill", "other"), BOTH], [(14_000, 4)], [(500, 5)]),
    ],
)
def test_reports_in_one_file_count_once(
    engine: Engine, reports: list[str], kernels: list[tuple[int, int]], memory: list[tuple[int, int]]
) -> None:
    upload(engine, "\n".join(reports))
    expected = [("kernel", *one) for one in kernels] + [("memory", *one) for one in memory]
    assert sums(engine) == expected


def test_each_run_has_its_own_reports(engine: Engine) -> None:
    upload(engine, KERNELS, "a")
    upload(engine, BOTH, "b")
    assert sums(engine) == [("kernel", 20_000, 6), ("memory", 500, 5)]


def test_means_of_kernels_are_those_of_one_report(engine: Engine) -> None:
    upload(engine, GRIDS.replace(",fill", ",third"))
    upload(engine, BOTH)
    times = store.kernel_times(engine, 1).set_index("kernel")
    assert times["launches"].to_dict() == {"saxpy(int, float *)": 2, "fill": 1, "third": 1}
    assert times["mean_ns"].to_dict() == {"saxpy(int, float *)": 3_000, "fill": 4_000, "third": 4_000}
    compared = kernels_of_run(engine, 1)
    assert {name: (one["launches"], one["mean_ns"]) for name, one in compared.items()} == {
        "saxpy(int, float *)": (2, 3_000),
        "fill": (1, 4_000),
        "third": (1, 4_000),
    }
    nightly = series_of_runs(engine, [1], ["means"])["means"]
    assert nightly.set_index("kernel")["value"].to_dict() == times["mean_ns"].to_dict()


def test_the_work_grows_with_the_summaries_and_not_with_their_square(tmp_path: Path) -> None:
    def steps(kernels: int) -> int:
        engine = store.open_store(str(tmp_path / f"{kernels}.sqlite"))
        head, row = KERNELS.splitlines()[0] + "\n", '60.0,6000,2,3000.0,3000.0,2000,4000,1.0,"saxpy<{}>(int)"\n'
        upload(engine, head + "".join(map(row.format, range(kernels))))
        head, row = BOTH.splitlines()[0] + "\n", row.replace(',"', ',CUDA_KERNEL,"')
        upload(engine, head + "".join(map(row.format, range(kernels))))
        count = 0

        def counted() -> None:
            nonlocal count
            count += 1

        with closing(sqlite3.connect(str(tmp_path / f"{kernels}.sqlite"))) as connection:
            connection.set_progress_handler(counted, 100)
            (found,) = connection.execute("select count(*) from v1_kernel_summaries where run_id = 1").fetchone()
        engine.dispose()
        assert found == kernels
        return count

    assert steps(800) < 6 * steps(200)
