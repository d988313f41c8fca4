"""nvprof: every fixture against its truth, damage of every kind, and public exports that stay outside."""

import io
import re
from pathlib import Path

import pandas as pd
import pytest

from profsvc.analysis import launch_counters
from profsvc.errors import InputError
from profsvc.formats.nvprof import csv_export as nvprof_csv
from profsvc.formats.nvprof import text_export as nvprof_text
from profsvc.formats.nvprof import two_pass
from profsvc.formats.parsing.stream import open_stream
from profsvc.specs import derive_counters, units
from profsvc.tables import TABLES, check, frame
from tests.formats.fixtures import ROOT, good

READERS = {reader.NAME: reader for reader in (nvprof_csv, nvprof_text)}
CORPUS = Path(__file__).parents[4] / "shared" / "corpus" / "1_nvprof"
needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason=f"the public exports are not at {CORPUS}")


EMPTY = {name: frame(name, {}) for name in TABLES}


class Content:
    """A whole file, read by the one reader of nvprof that knows it."""

    def __init__(self, data, name=None):
        self.name = name or next(name for name, reader in READERS.items() if reader.sniff(data))
        batches = list(READERS[self.name].read(io.BytesIO(data)))
        self.tables = {}
        for table in dict.fromkeys(name for batch in batches for name in batch.tables):
            parts = [check(table, batch.tables[table]) for batch in batches if table in batch.tables]
            self.tables[table] = pd.concat(parts, ignore_index=True) if len(parts) > 1 else parts[0]
        self.lines = tuple(sum(getattr(b, f"lines_{k}") for b in batches) for k in ("stored", "skipped", "rejected"))
        self.facts, self.message = batches[-1].facts, batches[-1].message

    def table(self, name):
        return self.tables[name] if name in self.tables else EMPTY[name]

    def rows(self, table):
        records = self.table(table).astype(object).to_dict("records")
        return [{key: value for key, value in row.items() if not pd.isna(value)} for row in records]


def read(path):
    return Content(open_stream(path).read())


@pytest.mark.parametrize("size", [50, 92, 99, 2000])
def test_units_below_a_header_at_the_end_of_a_block_are_evidence(size, monkeypatch):
    summary, trace = ((ROOT / "nvprof" / name).read_text(encoding="utf-8") for name in ("summary.csv", "gpu_trace.csv"))
    monkeypatch.setattr(two_pass, "FIRST_BLOCK_BYTES", size)
    assert Content((summary + trace).encode()).facts["prefixes"] == "1024, by the sizes and throughputs of copies"


@pytest.mark.parametrize("case", ["summary", "metrics", "gpu_trace", "events_and_metrics", "metrics_by_launch"])
def test_bare_decimal_commas_are_refused(case):
    text = (ROOT / "nvprof" / f"{case}.csv").read_text(encoding="utf-8")
    local = re.sub(r"(?<=[,\n])([0-9]+)\.([0-9]+)", r"\1,\2", text)
    with pytest.raises(InputError, match="as if commas marked decimals; export again with: LC_ALL=C"):
        Content(local.encode())


def test_a_long_file_comes_in_batches(monkeypatch):
    monkeypatch.setattr(two_pass, "BATCH_ROWS", 3)
    path = ROOT / "nvprof" / "two_processes.csv"
    assert read(path).table("launches")["launch_index"].tolist() == [0, 1, 2, 3]
    assert len(list(nvprof_csv.read(io.BytesIO(path.read_bytes())))) > 3


def test_metrics_of_a_kernel_give_counters():
    table = read(ROOT / "nvprof" / "events_and_metrics.csv").table("metrics")
    mean = table[(table["statistic"] == "avg") & table["value"].notna()].set_index("metric")["value"]
    found, used = derive_counters("nvprof", "6.0", {name: [value] for name, value in mean.items()})
    assert found["achieved_occupancy_fraction"].tolist() == [0.90111]
    assert found["sm_efficiency_fraction"].tolist() == pytest.approx([0.996])
    assert found["dram_read_bytes_per_s"].tolist() == [13 * 2**30]
    assert found["dram_read_bytes"].tolist() == [32 * 1048578]
    assert found["sm_active_cycles_sum"].tolist() == [1100]
    assert used["sm_active_cycles_sum"].tolist() == ["event:active_cycles"]
    content = read(ROOT / "nvprof" / "gpu_trace.csv")
    launches = content.table("launches").assign(launch_id=[1, 2])
    found, _ = launch_counters(launches, content.table("metrics").assign(launch_id=0), "nvprof", "6.1")
    assert found["registers_per_thread"].tolist() == [16, 16]
    assert found["shared_mem_static_bytes"].tolist() == [0, 2048]
    assert found["shared_mem_dynamic_bytes"].tolist() == [128, 0]
    assert found["grid_blocks"].tolist() == [1056, 1056]
    assert found["grid_threads"].tolist() == [1056 * 256] * 2


def test_the_units_of_every_cell_are_known():
    known = set(units("nvprof"))
    for path in good("nvprof", "nvprof_text"):
        seen = set(read(path).table("metrics")["unit"].dropna())
        assert seen <= known, path


# file: reader, (stored, skipped, rejected), launches, their ns, {kind of transfer: (how many, ns)}
TRACES = {
    "leimingyu__magus__convolutionFFT2D_trace.csv": (
        (57, 5, 0), 42, 3731652, {"HtoD": (6, 120423430), "DtoH": (3, 118564230), "memset": (6, 505161)},
    ),
    "leimingyu__magus__gpu_trace.csv": ((10, 5, 0), 2, 487604, {"HtoD": (5, 3055191), "DtoH": (3, 1203139)}),
    "leimingyu__magus__trace_out.csv": ((224, 5, 0), 2, 489172, {"HtoD": (5, 3019539), "DtoH": (3, 1241280)}),
    "leimingyu__magus__traces_poly_correlation.csv": (
        (10, 5, 0), 4, 1289962000, {"HtoD": (5, 86141000), "DtoH": (1, 40152000)},
    ),
    "leimingyu__magus__traces_shoc_lev1stencil2d.csv": (
        (13798, 5, 1), 13715, 138863218, {"HtoD": (14, 47314313), "DtoH": (13, 38694297), "DtoD": (56, 84100)},
    ),
    "nanzifan__nvprof-result__print-gpu-trace.csv": (
        (16238, 5, 0), 14003, 402140420,
        {
            "DtoD": (2000, 19552077), "HtoD": (5, 3776), "memset": (1, 1312), "unified memory HtoD": (160, 717920),
            "unified memory GPU page faults": (20, 3207296), "unified memory CPU page faults": (49, 0),
        },
    ),
    "nanzifan__nvprof-result__print-gpu-trace.txt": (
        (170, 9, 0), 0, 0,
        {
            "unified memory HtoD": (21, 82464), "unified memory DtoH": (3, 26976),
            "unified memory GPU page faults": (8, 691428), "unified memory CPU page faults": (138, 0),
        },
    ),
}  # fmt: skip
# file: (stored, skipped), kernels, names of metrics and events, rows of the table
METRICS = {
    "leimingyu__magus__BlackScholes_metrics.csv": ((113, 6), 1, 113, {512}),
    "leimingyu__magus__backprop_metrics_k40.csv": ((248, 12), 2, 124, {1}),
    "leimingyu__magus__histogram_metrics.csv": ((479, 7), 4, 120, {17, 4096}),
    "leimingyu__magus__lavaMD_metrics.csv": ((109, 6), 1, 109, {1}),
    "leimingyu__magus__prof_out.csv": ((530, 9), 2, 124 + 141, {1}),
    "utcs-scea__altis__bfs_backup_metrics.csv": ((352, 6), 2, 176, {3}),
    "utcs-scea__altis__lavamd_1.txt": ((12, 8), 1, 12, {1}),
    "utcs-scea__altis__mandelbrot_metrics_big_zemaitis.csv": ((176, 7), 1, 176, {1}),
}
# file: (stored, skipped), ns of the GPU, kernel calls, their ns, ns of API calls
SUMMARIES = {
    "nanzifan__nvprof-result__print-gpu-summary.csv": ((10, 8), 390393560, 14003, 371284709, 0),
    "nanzifan__nvprof-result__profile-api-trace.csv": ((29, 8), 427436056, 14003, 407501707, 1547107907),
    "nanzifan__nvprof-result__track-memory-allocations.txt": ((29, 8), 429968417, 14003, 409452267, 2722548109),
    "nanzifan__nvprof-result__unified-memory-profiling.csv": ((29, 8), 393499279, 14003, 374615613, 1484999387),
    "nanzifan__nvprof-result__cpu-thread-tracing.txt": ((17, 10), 1033024, 0, 0, 249523540),
}


@needs_corpus
def test_every_public_export_has_an_oracle():
    assert {path.name for path in CORPUS.iterdir()} == {*TRACES, *METRICS, *SUMMARIES}


@needs_corpus
@pytest.mark.parametrize("name", TRACES)
def test_public_trace(name, count_lines):
    lines, launches, duration, transfers = TRACES[name]
    content = read(CORPUS / name)
    assert content.lines == lines
    assert sum(lines) == count_lines(CORPUS / name)
    table = content.table("launches")
    assert (len(table), table["duration_ns"].sum()) == (launches, duration)
    moved = content.table("transfers").groupby("kind")["duration_ns"].agg(["size", "sum"])
    assert dict(zip(moved.index, moved.itertuples(index=False, name=None), strict=True)) == transfers


@needs_corpus
@pytest.mark.parametrize("name", METRICS)
def test_public_metrics(name, count_lines):
    lines, kernels, names, invocations = METRICS[name]
    content = read(CORPUS / name)
    assert content.lines == (*lines, 0)
    assert sum(lines) == count_lines(CORPUS / name)
    table = content.table("metrics")
    assert (len(table), table["kernel"].nunique(), table["metric"].nunique()) == (3 * lines[0], kernels, names)
    assert set(table["invocations"]) <= invocations
    assert table["value"].notna().all()


@needs_corpus
@pytest.mark.parametrize("name", SUMMARIES)
def test_public_summary(name, count_lines):
    lines, gpu, calls, kernels, api = SUMMARIES[name]
    content = read(CORPUS / name)
    assert content.lines == (*lines, 0)
    assert sum(lines) == count_lines(CORPUS / name)
    table = content.table("kernel_summaries")
    time = table.groupby("category")["total_ns"].sum()
    assert time.get("kernel", 0) + time.get("memory", 0) == pytest.approx(gpu, rel=1e-12)
    assert (table.loc[table["category"] == "kernel", "calls"].sum(), time.get("kernel", 0)) == (calls, kernels)
    assert time.get("api", 0) == pytest.approx(api, rel=1e-12)


@needs_corpus
def test_values_of_public_exports():
    fft = read(CORPUS / "leimingyu__magus__convolutionFFT2D_trace.csv")
    table = fft.table("launches")
    assert (table["kernel"].nunique(), set(table["stream"])) == (14, {7})
    starts = pd.concat([table["start_ns"], fft.table("transfers")["start_ns"]])
    assert (starts.min(), starts.max()) == (1443043000, 3597471000)
    api = read(CORPUS / "leimingyu__magus__trace_out.csv").table("api_calls")
    assert (len(api), api["duration_ns"].sum()) == (214, 219146954)
    flux = read(CORPUS / "nanzifan__nvprof-result__print-gpu-summary.csv").table("kernel_summaries").iloc[0]
    assert (flux["calls"], flux["mean_ns"], flux["max_ns"]) == (6000, 44725, 1791976)
    k40 = read(CORPUS / "leimingyu__magus__backprop_metrics_k40.csv").table("metrics")
    found = k40[k40["statistic"] == "avg"]["unit"].fillna("").value_counts()
    levels = sum(count for unit, count in found.items() if unit.endswith("(n)"))
    assert (found["%"], found["GB/s"], found["B/s"], found["KB/s"], levels, found[""]) == (56, 22, 24, 2, 18, 126)
    silent = read(CORPUS / "nanzifan__nvprof-result__cpu-thread-tracing.txt")
    assert "2 records have invalid timestamps" in silent.message
    assert "No kernels were profiled" in silent.message


@needs_corpus
def test_old_versions_mean_thousands():
    old, new = (read(CORPUS / f"leimingyu__magus__{name}") for name in ("prof_out.csv", "backprop_metrics_k40.csv"))
    seconds = []
    for content in (old, new):
        table = content.table("metrics")
        of_kernel = table[(table["statistic"] == "avg") & table["kernel"].str.startswith("bpnn_adjust")]
        mean = of_kernel.set_index("metric")["value"]
        seconds.append(32 * mean["dram_read_transactions"] / mean["dram_read_throughput"])
    trace = read(CORPUS / "leimingyu__magus__trace_out.csv")
    assert trace.facts["prefixes"].startswith("1000, by")
    traced = trace.table("launches").set_index("kernel")["duration_ns"].filter(like="bpnn_adjust").iloc[0] * 1e-9
    assert seconds == pytest.approx([traced, traced], rel=0.01)
    assert set(trace.table("transfers")["bytes"]) == {262148, 262144, 4456516, 68}


@pytest.mark.parametrize("sign", ["\x1c", "\x1d", "\x1e", "\x1f"])
def test_an_odd_space_before_a_number_changes_nothing(sign):
    plain = (ROOT / "nvprof" / "gpu_trace.csv").read_text(encoding="utf-8")
    odd = Content(plain.replace("0.000061,", f"{sign}0.000061,").encode())
    assert odd.lines == Content(plain.encode()).lines
    assert odd.rows("transfers") == Content(plain.encode()).rows("transfers")


BOARD = b'"","Device","Count","Avg","Min","Max"\n"Power (mW)","Tesla P100 (0)",2,1500.000000,1000.000000,2000.000000\n'


def test_a_table_of_a_board_alone():
    content = Content(BOARD)
    assert content.name == "nvprof"
    assert [(row["statistic"], row["value"]) for row in content.rows("metrics")] == [
        ("avg", 1.5),
        ("min", 1.0),
        ("max", 2.0),
    ]


def test_a_table_of_a_program_is_not_that_of_a_board():
    output = b"  Count  Avg  Min  Max\n  Power (mW)  2  1.5  1.0  2.0\n"
    assert not any(reader.sniff(output) for reader in READERS.values())
    content = Content(b"==7== NVPROF is profiling process 7, command: ./a\n" + output)
    assert not content.rows("metrics")
