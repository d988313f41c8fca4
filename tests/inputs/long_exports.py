"""Exports of any length, as profilers, boards and meters write them: the lines, and a file of them."""

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from string import Template

TYPES = ("float", "double", "__half", "int", "long long", "unsigned char")
KERNELS = tuple(
    f"void layer{number % 7}::{name}<{kind}, int={number}, bool=1>({kind} const *, {kind}*, int, layer::Params<{kind}>)"
    for number, (name, kind) in enumerate(
        (name, kind)
        for name in ("gemm", "reduce_along_rows", "elementwise_kernel_with_index", "transpose", "softmax_warp_forward",
                     "im2col", "batch_norm_collect_statistics", "scan_by_key", "radix_sort", "embedding_backward")
        for kind in TYPES
    )
)  # fmt: skip


def gpu_trace(rows: int) -> Iterator[str]:
    yield "==1== Profiling result:\n"
    yield (
        '"Start","Duration","Grid X","Grid Y","Grid Z","Block X","Block Y","Block Z","Registers Per Thread",'
        '"Static SMem","Dynamic SMem","Size","Throughput","SrcMemType","DstMemType","Device","Context","Stream",'
        '"Name","Correlation_ID"\n'
    )
    yield "s,us,,,,,,,,KB,B,MB,GB/s,,,,,,,\n"
    draw, start = random.Random(1), 0.0
    for row in range(rows):
        start += draw.random() * 1e-4
        duration = 1 + draw.random() * 900
        if row % 5:
            name = f"{KERNELS[draw.randrange(60)]} [{row}]"
            middle = f"{draw.randrange(1, 4096)},1,1,256,1,1,{draw.randrange(16, 128)},1.000000,0,,,,"
        else:
            name, size = "[CUDA memcpy HtoD]", 64 * draw.random()
            middle = f',,,,,,,,,{size:.6f},{size / 1024 / duration * 1e6:.6f},"Pageable","Device"'
        yield f'{start:.9f},{duration:.6f},{middle},"Tesla V100-SXM2-16GB (0)","1","7","{name}",{row}\n'


def nsys_trace(rows: int) -> Iterator[str]:
    yield (
        "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB),"
        "Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name\n"
    )
    draw, start = random.Random(4), 10**9
    for row in range(rows):
        start += draw.randrange(1, 10**5)
        duration = draw.randrange(10**3, 10**6)
        if row % 5 == 4:
            size = draw.randrange(1, 1 << 26)
            middle = f",,,,,,,,,{size / 1e6:.3f},{size * (10**9 // duration) / 1e6:.3f},Pageable,Device"
            name = "[CUDA memcpy Host-to-Device]"
        else:
            resources = f"{draw.randrange(16, 128)},{draw.choice((0, 4, 16)) / 1e3:.3f},0.000"
            middle = f"{draw.randrange(1, 4096)},1,1,256,1,1,{resources},,,,"
            name = f'"{KERNELS[draw.randrange(60)]}"'
        yield f"{start},{duration},{row},{middle},NVIDIA H200 (0),1,,7,{name}\n"


def nsys_calls(rows: int) -> Iterator[str]:
    yield "Start (ns),Duration (ns),Name,Result,CorrID,Pid,Tid,T-Pri,Thread Name\n"
    draw, start = random.Random(7), 10**9
    for row in range(rows):
        start += draw.randrange(1, 10**5)
        name = draw.choice(("cudaLaunchKernel_v7000", "cudaMemcpyAsync_v3020", "cudaStreamSynchronize_v3020"))
        yield f"{start},{draw.randrange(10**3, 10**6)},{name},0,{row},4711,4711,20,python\n"


KINETO = {
    '"ph": "X", "cat": "cpu_op", "name": "aten::$name", "pid": 1102, "tid": 1102, "ts": $ts, "dur": $dur, "args": '
    '{"External id": $row, "Sequence number": $row, "Fwd thread id": 1, "Ev Idx": $row}': 30,
    '"ph": "X", "cat": "cpu_op", "name": "aten::$name", "pid": 1102, "tid": 1102, "ts": $ts, "dur": $dur, "args": '
    '{"External id": $row, "Record function id": 0, "Concrete Inputs": ["", "", "[1, 1]", "False"], "Input type": '
    '["float", "float", "ScalarList", "Scalar"], "Input Strides": [[200704, 3136, 56, 1], [576, 9, 3, 1], [], []], '
    '"Input Dims": [[$dim, 64, 56, 56], [64, 64, 3, 3], [], []], "Ev Idx": $row}': 5,
    '"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1102, "tid": 1102, "ts": $ts, "dur": $dur, '
    '"args": {"External id": $row, "cbid": 211, "correlation": $row}': 22,
    '"ph": "f", "id": $row, "pid": 0, "tid": 7, "ts": $ts, "cat": "ac2g", "name": "ac2g", "bp": "e"': 22,
    '"ph": "s", "id": $row, "pid": 1102, "tid": 1102, "ts": $ts, "cat": "ac2g", "name": "ac2g"': 9,
    '"ph": "X", "cat": "kernel", "name": "$kernel", "pid": 0, "tid": 7, "ts": $ts, "dur": $dur, "args": '
    '{"External id": $row, "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": $row, '
    '"registers per thread": 32, "shared memory": 0, "blocks per SM": 14.545455, "warps per SM": 116.363640, '
    '"grid": [$dim, 1, 1], "block": [256, 1, 1], "est. achieved occupancy %": 100}': 7,
    '"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy DtoD (Device -> Device)", "pid": 0, "tid": 7, "ts": $ts, "dur": '
    '$dur, "args": {"External id": $row, "device": 0, "context": 1, "stream": 7, "correlation": $row, "bytes": 256, '
    '"memory bandwidth (GB/s)": 0.2}': 3,
    '"ph": "s", "id": $row, "pid": 1102, "tid": 1102, "ts": $ts, "cat": "fwdbwd", "name": "fwdbwd"': 1,
    '"ph": "X", "cat": "gpu_user_annotation", "name": "step#$dim", "pid": 0, "tid": 7, "ts": $ts, "dur": $dur, '
    '"args": {"External id": $row}': 1,
}  # fmt: skip


def kineto(rows: int) -> Iterator[str]:
    yield '{"schemaVersion": 1, "displayTimeUnit": "ms", "baseTimeNanoseconds": 0, "traceEvents": [\n'
    draw, ns = random.Random(5), 10**15
    # The arguments stand on a line of their own.
    events = [Template("  {\n    " + text.replace(', "args": ', ',\n    "args": ') + "\n  },\n") for text in KINETO]
    for row in range(rows):
        ns += draw.randrange(1, 10**5)
        (event,) = draw.choices(events, KINETO.values())
        yield event.substitute(
            name=KERNELS[draw.randrange(60)].split("::")[1][:12], kernel=KERNELS[draw.randrange(60)], row=row,
            dim=draw.randrange(1, 256), ts=f"{ns // 1000}.{ns % 1000:03}", dur=f"{draw.randrange(900_000) / 1000}",
        )  # fmt: skip
    yield '{"ph": "M", "name": "process_name", "pid": 0, "ts": 0, "args": {"name": "python"}}]}\n'


def ncu_raw(kernels: int, metrics: int = 800) -> Iterator[str]:
    fixed = ("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size",
             "Grid Size", "Device", "CC")  # fmt: skip
    names = [f"sm__inst_executed_pipe_{number}.sum" for number in range(metrics)]
    yield ",".join(f'"{name}"' for name in (*fixed, *names)) + "\n"
    yield ",".join(['""'] * len(fixed) + ['"inst"'] * metrics) + "\n"
    draw = random.Random(3)
    for kernel in range(kernels):
        head = (kernel, 1, "app", "host", KERNELS[kernel % 2], 1, 7, "(256, 1, 1)", "(80, 1, 1)", 0, "9.0")
        values = (f"{draw.random() * 10 ** draw.randrange(9):.2f}" for _ in names)
        yield ",".join(f'"{cell}"' for cell in (*head, *values)) + "\n"


def details(rows: int) -> Iterator[str]:
    names = ("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size",
             "Grid Size", "Device", "CC", "Section Name", "Metric Name", "Metric Unit", "Metric Value", "Rule Name",
             "Rule Type", "Rule Description", "Estimated Speedup Type", "Estimated Speedup")  # fmt: skip
    yield ",".join(f'"{name}"' for name in names) + "\n"
    draw = random.Random(7)
    for row in range(rows):
        launch, metric = divmod(row, 80)
        cells = (launch, 1, "app", "host", KERNELS[launch % 60], 1, 7, "(256, 1, 1)", "(80, 1, 1)", 0, "9.0",
                 f"Section {metric // 10}", f"Metric {metric}", "%", f"{100 * draw.random():.2f}", "", "", "", "",
                 "")  # fmt: skip
        yield ",".join(f'"{cell}"' for cell in cells) + "\n"


def smi_log(rows: int) -> Iterator[str]:
    yield "timestamp, index, power.draw [W], temperature.gpu, clocks.current.sm [MHz], utilization.gpu [%]\n"
    draw, start = random.Random(2), datetime(2026, 3, 1)
    for row in range(rows):
        moment = (start + timedelta(milliseconds=50 * row)).strftime("%Y/%m/%d %H:%M:%S.%f")[:-3]
        yield (
            f"{moment}, 0, {60 + 600 * draw.random():.2f} W, {draw.randrange(30, 80)}, "
            f"{draw.randrange(345, 1980)} MHz, {draw.randrange(101)} %\n"
        )


def power_log(rows: int) -> Iterator[str]:
    yield "timestamp, power.draw [W]\n"
    draw, start = random.Random(2), datetime(2026, 3, 1)
    for row in range(rows):
        moment = (start + timedelta(milliseconds=20 * row)).strftime("%Y/%m/%d %H:%M:%S.%f")[:-3]
        yield f"{moment}, {60 + 600 * draw.random():.2f} W\n"


def meter_log(rows: int) -> Iterator[str]:
    yield "Timestamp,Main power (W),Main voltage (V),Main current (A),Board temperature (degC)\n"
    draw, start = random.Random(8), datetime(2026, 3, 15)
    for row in range(rows):
        moment = (start + timedelta(milliseconds=100 * row)).isoformat(sep=" ", timespec="milliseconds")
        yield (
            f"{moment},{60 + 600 * draw.random():.2f},{12 + draw.random():.3f},{50 * draw.random():.3f},"
            f"{30 + 50 * draw.random():.1f}\n"
        )


def lvm(rows: int) -> Iterator[str]:
    yield "LabVIEW Measurement\t\nWriter_Version\t2\nReader_Version\t2\nSeparator\tTab\nDecimal_Separator\t.\n"
    yield "Multi_Headings\tNo\nX_Columns\tOne\nTime_Pref\tAbsolute\nDate\t2026/03/01\nTime\t12:00:00\n"
    yield "***End_of_Header***\t\n\nChannels\t4\nSamples\t1\t1\t1\t1\nDate\t" + "2026/03/01\t" * 4 + "\n"
    yield "Time\t" + "12:00:00\t" * 4 + "\nY_Unit_Label\t" + "Deg C\t" * 4 + "\nX_Dimension\t" + "Time\t" * 4 + "\n"
    yield "X0\t0\t0\t0\t0\nDelta_X\t" + "0.001\t" * 4 + "\n***End_of_Header***\nX_Value\tT0\tT1\tT2\tT3\tComment\n"
    draw = random.Random(6)
    for row in range(rows):
        yield f"{row * 0.001:.6f}\t" + "\t".join(f"{20 + 60 * draw.random():.6f}" for _ in range(4)) + "\n"


def write(path: Path, lines: Iterator[str]) -> None:
    with path.open("w", encoding="utf-8") as stream:
        while block := "".join(islice(lines, 10_000)):
            stream.write(block)
