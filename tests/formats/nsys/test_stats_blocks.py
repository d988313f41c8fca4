"""Blocks of a trace of nsys stats read at once give what the same lines give one by one."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formats.nsys import stats as nsys_stats
from profsvc.formats.nsys.layouts import REPORTS, layout_of
from profsvc.formats.nsys.stats_blocks import MIN_REPORT_COLUMNS, column_plan, parse
from profsvc.formats.parsing.records import split_cells
from tests.formats.both_ways import READERS, with_another_cell
from tests.inputs.long_exports import nsys_trace

READER = READERS["nsys_stats"]
agree = READER.agree


GPU = (
    "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB),"
    "Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name\n"
)
KERNEL = '5200000,4000,13,1024,2,1,256,1,1,32,0.000,0.016,,,,,NVIDIA H200 (0),1,,7,"saxpy(int, float *)"\n'
FILL = "5300000,4512,14,8,1,1,64,4,1,40,0.004,0.000,,,,,NVIDIA H200 (0),1,,13,fill\n"
COPY = "5000000,80000,11,,,,,,,,,,1.000,12500.000,Pageable,Device,NVIDIA H200 (0),1,,7,[CUDA memcpy Host-to-Device]\n"
SET = "5100000,900,12,,,,,,,,,,0.000,41.111,Device,,NVIDIA H200 (0),1,,7,[CUDA memset]\n"
API = "Start (ns),Duration (ns),Name,Result,CorrID,Pid,Tid,T-Pri,Thread Name\n"
CALL = "4900000,2500,cudaMemcpy_v3020,0,11,4711,4711,20,worker\n"
NVTX = (
    "Start (ns),End (ns),Duration (ns),DurChild (ns),DurNonChild (ns),Name,PID,TID,Lvl,NumChild,RangeId,ParentId,"
    "RangeStack,NameTree\n"
)
RANGE = "4000000,6000000,2000000,0,2000000,step,4711,4711,0,0,1,,:1,step\n"
SUMMARY = "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n"
BEGUN = "Processing [r.sqlite] with [/opt/nvidia/reports/cuda_api_trace.py]...\n"


def at_once(header, *rows, separator=",", decimal="."):
    layout = layout_of(split_cells(header, separator))
    return parse("".join(rows).encode(), column_plan(layout, separator, decimal))


def test_a_long_trace_gives_the_same_both_ways():
    found, lines, *_ = agree("".join(nsys_trace(400)).encode())
    assert (len(found["launches"]), len(found["transfers"]), len(found["metrics"])) == (320, 80, 960)
    assert lines == [400, 1, 0]


def test_plain_rows_are_read_at_once():
    part = at_once(GPU, KERNEL, COPY, SET, FILL)
    assert part.rows == 4
    launches, transfers = part.tables["launches"], part.tables["transfers"]
    assert (launches["line"].tolist(), transfers["line"].tolist()) == ([0, 3], [1, 2])
    assert launches["kernel"].tolist() == ["saxpy(int, float *)", "fill"]
    assert launches["shared_mem_dynamic_bytes"].tolist() == [16_000, 0]
    assert part.metrics.values.tolist() == [[32, 0, 16_000], [40, 4_000, 0]]
    assert transfers["bytes"].tolist() == [1_000_000, 37]
    assert transfers["target_memory"].tolist() == ["Device", "Device"]
    assert at_once(API, CALL).tables["api_calls"]["name"].tolist() == ["cudaMemcpy_v3020"]
    assert at_once(NVTX, RANGE).tables["ranges"]["duration_ns"].tolist() == [2_000_000]


@pytest.mark.parametrize(("header", "row"), [(GPU, KERNEL), (GPU, COPY), (API, CALL), (NVTX, RANGE)])
def test_tabs_part_cells_too(header, row):
    tabs = [row.replace(", ", "; ").replace(",", "\t") for row in (header, row)]
    assert at_once(*tabs, separator="\t").rows == 1
    agree((tabs[0] + tabs[1] * 9).encode())


@pytest.mark.parametrize("header", [API, NVTX])
def test_digits_alone_need_no_number_format(header):
    row = {API: CALL, NVTX: RANGE}[header]
    assert at_once(header, row, decimal="").rows == 1
    assert at_once(GPU, FILL, decimal="") is None


def test_a_report_in_other_units_is_read_at_once():
    header = GPU.replace("(ns)", "(us)").replace("(MB)", "(KiB)").replace("(MB/s)", "(B/s)")
    rows = COPY.replace("80000", "80.5"), KERNEL.replace("4000", "4.0625"), FILL.replace("5300000", "5300000.0005")
    part = at_once(header, *rows)
    assert part.tables["launches"]["start_ns"].tolist() == [5_200_000_000, 5_300_000_000]
    assert part.tables["launches"]["duration_ns"].tolist() == [4062.5, 4_512_000]
    agree((header + "".join(rows) * 9).encode())


def test_copies_are_made_whole_in_the_same_way():
    draw, rows = random.Random(7), []
    for number in range(300):
        copied, duration = draw.randrange(10 ** draw.randrange(1, 11)), draw.randrange(1, 10 ** draw.randrange(1, 11))
        rate = copied * (10**9 // duration) / 1e6 * draw.choice([1, 1, 1, 0, 1.5])
        cells = f"{copied / 1e6:.3f},{rate:.3f}"
        rows.append(COPY.replace("1.000,12500.000", cells).replace("80000", str(duration)).replace("11", str(number)))
    found, *_ = agree((GPU + "".join(rows)).encode())
    assert len({row["bytes"] for row in found["transfers"]}) > 200


ODD = [
    "program output\n",
    "\n",
    "5,6\n",
    BEGUN,
    GPU,
    API,
    SUMMARY,
    KERNEL[:-1] + "\r\n",
    KERNEL[:60],
    KERNEL[:-2],
    KERNEL.replace("5200000", "-5200000"),
    KERNEL.replace("4000", "-4000"),
    KERNEL.replace("4000", ""),
    KERNEL.replace("5200000", ""),
    KERNEL.replace("5200000", "5.2E+06"),
    KERNEL.replace("5200000", "5,200,000"),
    KERNEL.replace("5200000", '"5,200,000"'),
    KERNEL.replace("5200000", "9223372036854775808"),
    KERNEL.replace("5200000", "0x52"),
    KERNEL.replace("1024", "0x400"),
    KERNEL.replace("1024", '" 0x400"'),
    KERNEL.replace("1024", "-9223372036854775808"),
    KERNEL.replace("1024", " "),
    KERNEL.replace("1024", "-1"),
    KERNEL.replace("1024,2", "1024,"),
    KERNEL.replace("1024", ""),
    KERNEL.replace("32", "32.5"),
    KERNEL.replace("32", ""),
    KERNEL.replace("32,0.000,0.016", ",,"),
    KERNEL.replace("0.016", '"0,016"'),
    KERNEL.replace("0.016", '"1,016"'),
    KERNEL.replace("0.016", "1.016"),
    KERNEL.replace("0.016", "-0.016"),
    KERNEL.replace("0.016", "1e3"),
    KERNEL.replace("0.016", "x"),
    KERNEL.replace("0.016", " 0.016"),
    KERNEL.replace("0.016", "0.0000001"),
    KERNEL.replace("(0)", ""),
    KERNEL.replace("NVIDIA H200 (0)", ""),
    KERNEL.replace("(0)", '(0)"'),
    KERNEL.replace("saxpy", 'sax""py'),
    KERNEL.replace("saxpy", "sax\npy"),
    KERNEL.replace("saxpy", "\u00e4"),
    FILL.replace("fill", ""),
    FILL.replace("fill", '"fill'),
    FILL.replace("fill", "fill,"),
    FILL.replace("13,fill", '13,"fi"ll'),
    FILL.replace("1,,13", '1,"\n",13'),
    FILL.replace("1,,13", "1,x,13"),
    "Start (ns),Total Time,Instances,Avg,,,,,,,,,,,,,Name,,,,\n",
    COPY.replace("1.000", "1"),
    COPY.replace("1.000", ""),
    COPY.replace("1.000", "0.001"),
    COPY.replace("12500.000", ""),
    COPY.replace("12500.000", '12500.000"'),
    COPY.replace("12500.000", '"12500.000\n"'),
    COPY.replace("12500.000", "1.5.0"),
    COPY.replace("12500.000", '"12,500.000"'),
    COPY.replace("80000", "0"),
    COPY.replace("80000", "80000000000"),
    COPY.replace("[CUDA memcpy Host-to-Device]", "[CUDA graph]"),
    COPY.replace("[CUDA memcpy Host-to-Device]", "[CUDA memcpy XtoY]"),
    SET.replace("Device,,", ",Device,"),
]


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_line_among_plain_ones(odd):
    agree((GPU + KERNEL + COPY + SET + odd + FILL + COPY + KERNEL).encode())
    agree((GPU + KERNEL + COPY + odd).encode())
    agree((GPU + odd + KERNEL + COPY + FILL).encode())


@pytest.mark.parametrize(
    ("header", "row", "odd"),
    [
        (API, CALL, CALL.replace("2500", "2,500")),
        (API, CALL, CALL.replace("2500", '"2,500"')),
        (API, CALL, CALL.replace("2500", "2.500")),
        (API, CALL, CALL.replace("2500", "2500.5")),
        (API, CALL, CALL.replace(",0,", ",?,")),
        (API, CALL, CALL.replace("worker", 'worker"')),
        (API, CALL, CALL.replace("worker", '"a\nb"')),
        (API, CALL, CALL.replace("worker", "")),
        (API, CALL, CALL.replace("cudaMemcpy_v3020", "")),
        (API, CALL, BEGUN + NVTX + RANGE * 3 + "\n" + GPU + KERNEL * 3 + COPY * 3),
        (NVTX, RANGE, RANGE.replace("6000000", "6.000.000")),
        (NVTX, RANGE, RANGE.replace("6000000", "?")),
        (NVTX, RANGE, RANGE.replace("step", "Duration")),
        (NVTX, RANGE, RANGE.replace("step", "")),
        (NVTX, RANGE, "\n" + BEGUN + "a,b,c,d\n1,2,3,4\n"),
        (NVTX, RANGE, SUMMARY + "100.0,4000,2,2000.0,2000.0,1900,2100,5.5,fill\n"),
    ],
)
def test_an_odd_line_of_another_trace(header, row, odd):
    agree((header + row * 5 + odd + row * 5).encode())


def test_rows_that_say_the_number_format_at_the_end_of_a_file_count():
    late = CALL.replace("2500", '"2.500"')
    refused = agree((API + CALL * 20 + late + GPU + COPY.replace("12500.000", '"12,5"')).encode())
    assert "contradict" in refused or isinstance(refused, tuple)
    found, *_ = agree((API + CALL * 20 + late * 3).encode())
    assert found["api_calls"][-1]["duration_ns"] == 2500


@pytest.mark.parametrize("row", [
    ["1", "1", "1", *[""] * 11, "Total Time", "Instances", "Avg", "1", "", "7", "Name"],
    ["1", "1", "1", *[""] * 12, "Total Time", "Instances", "1", "", "7", "Name"],
    ["1", "1", "1", *[""] * 6, "Total Time", "Instances", "Name", *[""] * 9],
    ["1", "1", "1", *["1"] * 6, "Total Time (ns)", "Instances", "Name", *[""] * 8, "kernel"],
])  # fmt: skip
def test_no_row_at_once_is_the_header_of_a_report(row):
    assert all(len(needs) >= MIN_REPORT_COLUMNS > 2 for _, needs in REPORTS)
    line = ",".join(row) + "\n"
    assert len(row) == len(GPU.split(","))
    assert at_once(GPU, line) is None
    agree((GPU + FILL * 9 + line + FILL * 9).encode())


ROWS = [KERNEL, FILL, COPY, SET, CALL, RANGE]
PIECES = (
    "1e-05",
    "007",
    " 5",
    "5 ",
    "x",
    "1,5",
    '"1,5"',
    "1.500",
    "1.5",
    "0",
    "",
    '""',
    '"',
    "'",
    "-1",
    "0x1",
    "[CUDA memset]",
)
CELLS = st.sampled_from([*PIECES, *(cell for row in ROWS for cell in row.rstrip("\n").split(","))])
LINES = st.one_of(
    st.sampled_from([*ROWS, KERNEL, COPY, GPU, API, NVTX, BEGUN, "\n"]),
    with_another_cell(ROWS, CELLS, 20),
    st.text("=19.,\"'[]() aZ\u00e9\t\r", max_size=30).map(lambda text: text + "\n"),
)


@given(st.sampled_from([GPU + KERNEL, API + CALL, NVTX + RANGE]), st.lists(LINES, max_size=25))
def test_any_lines_give_the_same_both_ways(head, lines):
    agree((head + "".join(lines)).encode())


@given(st.lists(st.tuples(st.sampled_from([KERNEL, COPY]), st.integers(0, 20), CELLS), max_size=12))
def test_any_cells_under_other_units_give_the_same_both_ways(changes):
    header = GPU.replace("(ns)", "(us)").replace("Bytes (MB)", "Bytes (B)").replace("DymSMem (MB)", "DymSMem (KiB)")
    rows = []
    for row, place, cell in changes:
        cells = row.rstrip("\n").split(",", 20)
        cells[place] = cell
        rows += [",".join(cells) + "\n", row]
    agree((header + "".join(rows)).encode())


@given(
    st.sampled_from([(GPU, KERNEL), (GPU, COPY), (API, CALL), (NVTX, RANGE)]),
    *[st.sampled_from(["", ",", ",,"])] * 2,
    st.lists(st.tuples(st.booleans(), st.sampled_from(["", ",", ",,", ",x"])), max_size=12),
)
def test_spare_cells_give_the_same_both_ways(table, of_header, of_rows, odd):
    header, row = (line.rstrip("\n") for line in table)
    torn = row.replace("4000", "4,000").replace("80000", "80,000").replace("2500", "2,500")
    lines = [f"{torn if is_torn else row}{spare}\n" for is_torn, spare in odd]
    plain = [f"{row}{of_rows}\n"] * 6
    agree(f"{header}{of_header}\n{''.join([*plain, *lines, *plain])}".encode())
    agree(f"{header}{of_header}\n{''.join([*lines, *plain])}".encode())


def test_rows_with_a_spare_cell_under_a_header_with_one_are_read_at_once():
    part = at_once(GPU.replace("\n", ",\n"), *(row.replace("\n", ",\n") for row in (KERNEL, COPY)))
    assert part.rows == 2
    assert at_once(GPU.replace("\n", ",\n"), KERNEL.replace("\n", ",7\n")) is None


@pytest.mark.parametrize(
    ("header", "report"),
    [
        ("NVTX Range,NVTX Inst,Kern Inst,Total Time (ns),Kernel Name", "nvtx_kern_sum"),
        ("Range,Style,Total Proj Time (ns),Range Instances,Total GPU Ops", "nvtx_gpu_proj_sum"),
        ("Name,Projected Start (ns),Projected Duration (ns),Orig Start (ns)", "nvtx_gpu_proj_trace"),
        ("PID,TID,DevId,Count,QCount,TAvg (ns),KAvg (ns),API Name,Kernel Name", "cuda_kern_exec_sum"),
        ("Total HtoD Migration Size (MB),Total CPU Page Faults,Total GPU PageFaults", "um_total_sum"),
        ("Virtual Address,HtoD Migration Size (MB),DtoH Migration Size (MB),CPU Page Faults", "um_sum"),
    ],
)
def test_a_report_that_is_not_taken_is_refused_by_name_alone_and_skipped_beside_others(header, report):
    alone = f"{header}\n{','.join('1' for _ in header.split(','))}\n"
    assert nsys_stats.sniff(alone.encode())
    said = READER.content(alone.encode())
    assert said.startswith(f"{report} is not read: ")
    assert "nsys stats --format csv -r " in said
    begun = BEGUN.replace("cuda_api_trace", report)
    *_, message = agree((GPU + KERNEL * 3 + "\n" + begun + alone).encode())
    assert report in message
