"""Public traces that nobody here made; they stay outside the repository. Sums are exact, in nanoseconds."""

from pathlib import Path

import pandas as pd
import pytest

from profsvc.formats.nsys import database as nsys_database
from profsvc.formats.nsys import stats as nsys_stats
from profsvc.formats.parsing.stream import open_stream
from profsvc.formats.pytorch import trace as pytorch_trace
from profsvc.formats.rocm import rocprof
from profsvc.tables import check

CORPUS = Path(__file__).parents[4] / "shared" / "corpus"
needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason=f"the public exports are not at {CORPUS}")
GANDEE = "3_nsys/CodeGandee__llm-perf-opt__"
FLAME = "3_nsys/PranavDani__Flame__"
HTA = "7_traces/facebookresearch__HolisticTraceAnalysis__"
AMD = "8_rocprof/ROCm__rocprofiler-compute__Axes1_"

# file: reader, launches, their ns, transfers, calls, ranges, lines stored
TRACES = {
    f"{FLAME}fluidsGL_cuda_gpu_trace_base_v1.csv": (nsys_stats, 8305, 54028739, 646, 0, 0, 8951),
    f"{FLAME}torch-ex_cuda_gpu_trace_base.csv": (nsys_stats, 2482, 339300381, 203, 0, 0, 2685),
    "3_nsys/hpcgroup__pipit__nbody-nvtx_trace.csv": (nsys_stats, 0, 0, 0, 0, 131, 131),
    f"{FLAME}torch-ex.sqlite": (nsys_database, 2482, 339300381, 203, 5142, 21, 7848),
    "3_nsys/GindaChen__nsys-ai__h100_2gpu_1s.sqlite": (nsys_database, 3442, 44829522, 926, 5796, 16782, 26946),
    "3_nsys/brycelelbach__nsightful__power_iteration__baseline.sqlite": (
        *(nsys_database, 3689, 1131742684, 89, 7417, 786, 11981),
    ),
    f"{HTA}alexnet_trace.json.gz": (pytorch_trace, 79, 10692000, 19, 361, 367, None),
    f"{HTA}event_sync_trace.json.gz": (pytorch_trace, 4, 49000, 1, 12, 11, None),
    f"{HTA}rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz": (pytorch_trace, 4350, 468153602, 1745, 15329, 23980, None),
    f"{HTA}rank_non_gpu.json.gz": (pytorch_trace, 0, 0, 0, 0, 2467, None),
    f"{HTA}triton_example.json.gz": (pytorch_trace, 1, 1760, 0, 2, 4, None),
    f"{AMD}mi100_timestamps.csv": (rocprof, 167, 66237637, 0, 0, 0, 167),
    f"{AMD}mi200_timestamps.csv": (rocprof, 167, 42824116, 0, 0, 0, 167),
}
# file: rows, calls, ns
SUMMARIES = {
    f"{GANDEE}all-stage_summary_cuda_gpu_kern_sum.csv": (113, 1695983, 4946064742),
    f"{GANDEE}examples_summary_cuda_gpu_kern_sum.csv": (128, 254999, 634727919),
    f"{GANDEE}per-stage_clip_summary_cuda_gpu_kern_sum.csv": (19, 387, 3424837),
    f"{GANDEE}per-stage_projector_summary_cuda_gpu_kern_sum.csv": (2, 2, 35488),
}


def contents(module, name):
    with open_stream(CORPUS / name) as stream:
        batches = list(module.read(stream))
    for batch in batches:
        for table, rows in batch.tables.items():
            check(table, rows)
    names = {name for batch in batches for name in batch.tables}
    tables = {n: pd.concat([b.tables[n] for b in batches if n in b.tables], ignore_index=True) for n in names}
    return tables, batches


@needs_corpus
@pytest.mark.parametrize("name", TRACES)
def test_public_trace(name):
    module, launches, total, transfers, calls, ranges, stored = TRACES[name]
    tables, batches = contents(module, name)
    for table, count in (("launches", launches), ("transfers", transfers), ("api_calls", calls), ("ranges", ranges)):
        assert len(tables.get(table, ())) == count, table
    if launches:
        assert sum(map(int, tables["launches"]["duration_ns"])) == total
    assert "rejects" not in tables
    assert sum(b.lines_rejected for b in batches) == 0
    seen = sum(b.lines_stored for b in batches)
    assert stored in (None, seen)
    if module is not nsys_database:
        data = open_stream(CORPUS / name).read()
        lines = data.count(b"\n") + (not data.endswith(b"\n"))
        assert seen + sum(b.lines_skipped for b in batches) == lines


@needs_corpus
@pytest.mark.parametrize("name", SUMMARIES)
def test_public_summary(name):
    tables, _ = contents(nsys_stats, name)
    rows, calls, total = SUMMARIES[name]
    summary = tables["kernel_summaries"]
    assert (len(summary), summary["calls"].sum(), int(summary["total_ns"].sum())) == (rows, calls, total)
    assert set(summary["category"]) == {"kernel"}


@needs_corpus
def test_every_public_trace_has_an_oracle():
    files = [p for folder in ("3_nsys", "7_traces", "8_rocprof") for p in (CORPUS / folder).iterdir()]
    names = {f"{p.parent.name}/{p.name}" for p in files if "zeus" not in p.name}
    assert names == set(TRACES) | set(SUMMARIES)


@needs_corpus
def test_table_and_database_of_one_report_agree():
    printed = contents(nsys_stats, f"{FLAME}torch-ex_cuda_gpu_trace_base.csv")[0]
    stored = contents(nsys_database, f"{FLAME}torch-ex.sqlite")[0]
    same = ["start_ns", "duration_ns", "correlation_id", "stream", "context", "device", "device_index"]
    same += [f"{part}_{axis}" for part in ("grid", "block") for axis in "xyz"]
    order = ["start_ns", "correlation_id"]
    tables = [t["launches"].sort_values(order)[same].reset_index(drop=True) for t in (printed, stored)]
    assert tables[0].equals(tables[1])
    # The bytes of each copy come back whole from megabytes with 3 decimals.
    same = ["start_ns", "duration_ns", "kind", "bytes", "target_memory", "stream", "device"]
    copies = [t["transfers"].sort_values(["start_ns", "kind"])[same].reset_index(drop=True) for t in (printed, stored)]
    assert copies[0].equals(copies[1]), copies[0].compare(copies[1])


@needs_corpus
def test_details_of_public_traces():
    h100 = contents(nsys_database, "3_nsys/GindaChen__nsys-ai__h100_2gpu_1s.sqlite")[0]["launches"]
    assert h100.groupby("device_index")["duration_ns"].sum().to_dict() == {0: 22385163, 1: 22444359}
    assert h100["process_id"].nunique() == 2
    fluids = contents(nsys_stats, f"{FLAME}fluidsGL_cuda_gpu_trace_base_v1.csv")[0]
    times = fluids["transfers"].groupby("kind")["duration_ns"].sum().to_dict()
    assert times == {"HtoD": 3298241, "DtoA": 6650617}
    assert int((fluids["launches"]["start_ns"] + fluids["launches"]["duration_ns"]).max()) <= 10957894597
    mi200 = contents(rocprof, f"{AMD}mi200_timestamps.csv")[0]["launches"]
    assert mi200["start_ns"].min() == 17250653618423
    assert max(s + int(d) for s, d in zip(mi200["start_ns"], mi200["duration_ns"], strict=True)) == 17250707076763
    triton = contents(pytorch_trace, f"{HTA}triton_example.json.gz")[0]["launches"]
    assert triton["start_ns"].tolist() == [1727743122000000000 + 2413669097444592]
