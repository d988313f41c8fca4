"""One made-up program as several tools tell of it: pages of a profile, parts of it, and traces."""

import io
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sqlalchemy import Engine

from profsvc import pipeline, store

PAGE = "ID,Process ID,Process Name,Host Name,Kernel Name,Context,Stream,Block Size,Grid Size,Device,CC"
SPEED = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
RAW = (
    f"{PAGE},gpu__time_duration.sum,dram__bytes_read.sum,{SPEED},device__attribute_display_name\n"
    ",,,,,,,,,,,ns,byte,%,\n"
)
DETAILS = f"{PAGE},Section Name,Metric Name,Metric Unit,Metric Value\n"
TRACE = (
    "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB),"
    "Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,Strm,Name\n"
)


class One(NamedTuple):
    """A launch: kernel, blocks, threads, time of it undisturbed, stream, process, device."""

    kernel: str
    grid: int = 64
    block: int = 256
    ns: int = 1_000
    stream: int = 7
    process: int = 576
    device: int = 0


def program(count: int = 34) -> list[One]:
    """The launches of a program: three kernels in turn, one of them with two grids."""
    names = ("reduce(const float *, float *)", "saxpy(int, float *)", "reduce(const float *, float *)")
    return [One(names[n % 3], (64, 32, 16)[n % 3], ns=1_000 + 37 * n) for n in range(count)]


def _begin(number: int, one: One) -> str:
    kernel = f'"{one.kernel}"'
    where = f'"({one.block}, 1, 1)","({one.grid}, 1, 1)",{one.device},9.0'
    return f"{number},{one.process},cases,127.0.0.1,{kernel},1,{one.stream},{where}"


def slowed(one: One) -> int:
    """How long a launch takes under the profiler."""
    return 2 * one.ns + 1


def raw(launches: Iterable[One]) -> str:
    """A raw page."""
    return RAW + "".join(
        f"{_begin(n, one)},{slowed(one)},{one.ns * 64},40,NVIDIA H200\n" for n, one in enumerate(launches)
    )


def details(launches: Iterable[One]) -> str:
    """A details page, with durations of three digits and a metric that the raw page lacks."""
    speed = "GPU Speed Of Light Throughput"
    rows = []
    for n, one in enumerate(launches):
        rows.append(f"{_begin(n, one)},{speed},Duration,us,{slowed(one) / 1e3:.2f}\n")
        rows.append(f"{_begin(n, one)},Occupancy,Achieved Occupancy,%,50.0\n")
    return DETAILS + "".join(rows)


def trace(launches: Iterable[One], start: int = 1_000_000, step: int = 9_001) -> str:
    """A trace: a process has one file, so it names none."""
    row = '{},{},{},{},1,1,{},1,1,40,0.000,0.000,,,,,NVIDIA H200 ({}),1,{},"{}"\n'
    return TRACE + "".join(
        row.format(start + n * step, one.ns, 100 + n, one.grid, one.block, one.device, one.stream, one.kernel)
        for n, one in enumerate(launches)
    )


def upload(
    engine: Engine, text: str, name: str, run: str = "r", files: store.BlobStore | None = None
) -> pipeline.ImportResult:
    """Store a file in a run."""
    return pipeline.ingest(engine, io.BytesIO(text.encode()), name, store.RunInfo(name=run), files=files)


def sums(engine: Engine, view: str = "v1_launches") -> tuple[int, float]:
    """How many launches a view has, and their time."""
    (row,) = store.query(engine, f"select count(*), sum(duration_ns) from {view}").rows
    return int(row[0]), float(row[1])


def truth(launches: Sequence[One], *, traced: bool) -> tuple[int, float]:
    """How many launches there are, and their time as the trace or the profile has it."""
    return len(launches), float(sum(one.ns if traced else slowed(one) for one in launches))
