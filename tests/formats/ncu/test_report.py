"""Reports read by NVIDIA's own package: the same content as their pages, and a sentence for each that is damaged."""

import gzip
import importlib.util
import io
import json
import random
import struct
import time
from contextlib import suppress
from pathlib import Path

import pytest
import zstandard

from profsvc import formats
from profsvc.errors import BrokenInputError, InputError
from profsvc.formats.ncu import report as ncu_report
from profsvc.workers import process
from tests.formats.ncu import report_file
from tests.formats.ncu.report_file import Result, Rule

FIXTURES = Path(__file__).parents[3] / "fixtures"
REPORT = FIXTURES / "ncu_rep" / "two_launches.ncu-rep"
LINES = FIXTURES / "ncu_report_lines" / "two_launches.jsonl"
RAW = FIXTURES / "ncu_raw" / "h200_three_launches_base.csv.gz"
DETAILS = FIXTURES / "ncu_details" / "h200_three_launches_min.csv.gz"
SAXPY = "saxpy(const float *, float *)"
ONE = {"gpu__time_duration.sum": 5000, "launch__grid_dim_x": 7, "launch__grid_dim_y": 1, "launch__grid_dim_z": 1}
CHIP = {
    "device__attribute_implementation": 384,
    "device__attribute_compute_capability_major": 9,
    "device__attribute_compute_capability_minor": 0,
}
# What gives the package the units of an NVIDIA H200.
H200 = {**ONE, **CHIP}
needs_package = pytest.mark.skipif(
    importlib.util.find_spec("ncu_report") is None, reason="the package ncu-report is not installed"
)


def small(*results: Result) -> bytes:
    return report_file.report(((4711, "saxpy", "node7"), results or [Result(SAXPY, H200)]))


@pytest.fixture(scope="module")
def pages() -> bytes:
    return report_file.of_pages(RAW, DETAILS)


@needs_package
def test_launches_and_metrics_are_those_of_the_raw_page(pages, read_all):
    page, report = read_all(RAW), read_all(pages)
    assert report.reader == "ncu-report"
    own = set(page.launches.columns) - {"line"}
    assert report.launches[sorted(own)].equals(page.launches[sorted(own)])
    keys = ["launch_index", "metric"]
    theirs, ours = (c.metrics.sort_values(keys, ignore_index=True) for c in (page, report))
    assert len(theirs) > 6000
    for column in (*keys, "unit", "value", "si_unit", "reason"):
        left, right = theirs[column], ours[column]
        same = left.eq(right) | (left.isna() & right.isna())
        # The package has a unit for one metric that this version of the tool prints without.
        assert set(theirs["metric"][~same]) <= ({"idc__requests.sum"} if column.endswith("unit") else set()), column


@needs_package
def test_rules_are_those_of_the_details_page(pages, read_all):
    own = ["launch_index", "section", "rule", "rule_type", "kind", "message"]
    page, report = read_all(DETAILS).rules, read_all(pages).rules
    assert len(page) > 10
    assert report[own].equals(page[own])
    for column in ("estimated_saving_fraction", "estimated_speedup"):
        assert report[column].tolist() == pytest.approx(page[column].tolist(), nan_ok=True)


@needs_package
def test_links_in_rules_are_written_as_the_details_page_does(read_all):
    words = (
        "fuse @url:them:https://docs.nvidia.com/cuda/x#y:z@, see @section:SourceCounters:Source Counters@ and "
        "@sass:4096:this one@, @source:/a b/k.cu:45:line 45@; mail a@b.c @url:x"
    )
    rule = Rule("InstructionStats", "FPInstructions", "OPT", words, "local", 12.5)
    (row,) = read_all(small(Result(SAXPY, H200, [rule]))).rules.to_dict("records")
    assert row["message"] == (
        "fuse them (https://docs.nvidia.com/cuda/x#y:z), see Source Counters and this one, line 45; mail a@b.c @url:x"
    )
    assert (row["kind"], row["estimated_saving_fraction"]) == ("local", 0.125)
    assert row["estimated_speedup"] != row["estimated_speedup"]


@needs_package
@pytest.mark.parametrize("apart", [False, True])
def test_metrics_that_a_rule_names_are_stored_with_it(read_all, apart):
    focus = [("l2_sectors", 9.5, 2, 'Decrease "it"'), ("hit_rate", float("nan"), 0, "")]
    rules = [Rule("S", "A", "OPT", "a", "global", 50.0, focus, apart), Rule("S", "B", "INF", "b")]
    found = read_all(small(Result(SAXPY, H200, rules))).rules
    assert found["estimated_speedup"].tolist() == pytest.approx([2, float("nan")], nan_ok=True)
    first, second = found["focus_metrics"]
    assert json.loads(first) == [
        {"name": "l2_sectors", "value": 9.5, "severity": "high", "info": 'Decrease "it"'},
        {"name": "hit_rate", "value": None, "severity": "default", "info": ""},
    ]
    assert second is None


@needs_package
def test_ranges_around_a_launch_are_metrics(read_all):
    content = read_all(small(Result(SAXPY, H200, push_pop=["step", "a, b"], start_end=["all"])))
    found = content.metrics.set_index("metric")[["raw_text", "reason"]].T.to_dict("list")
    assert found["NVTX Push/Pop Ranges"] == ['["<default domain>:step", "<default domain>:a, b"]', "text"]
    assert found["NVTX Start/End Ranges"] == ['["<default domain>:all"]', "text"]


@needs_package
def test_each_launch_has_the_process_of_its_block(read_all):
    results = [Result("a()", H200), Result("b()", {**CHIP, "gpu__time_duration.sum": 7}), Result("c()", H200)]
    data = report_file.report(((1, "one", "node7"), results[:2]), ((2, "two", "node8"), results[2:]))
    launches = read_all(data).launches
    assert launches["kernel"].tolist() == ["a()", "b()", "c()"]
    assert launches["process_id"].tolist() == [1, 1, 2]
    assert launches["host"].tolist() == ["node7", "node7", "node8"]
    assert launches["duration_ns"].tolist() == [5000, 7, 5000]
    assert launches["source_id"].tolist() == ["0", "1", "2"]
    assert launches["grid_x"].fillna(-1).tolist() == [7, -1, 7]


@needs_package
def test_numbers_keep_all_digits_and_hostile_texts_are_texts(read_all):
    values = {"gpu__time_duration.sum": 2**63 + 1025, "sm__throughput.avg.pct_of_peak_sustained_elapsed": 0.1 + 0.2}
    texts = {"launch__func_cache_config": "1,234", "launch__kernel_name": 'a"\0\n\x1b,<script>', "a": float("nan")}
    content = read_all(small(Result('k<"\n\0>()', {**CHIP, **values, **texts})))
    rows = content.metrics.set_index("metric")
    assert rows.loc["sm__throughput.avg.pct_of_peak_sustained_elapsed", "raw_text"] == "0.30000000000000004"
    assert rows.loc["gpu__time_duration.sum", "raw_text"] == str(2**63 + 1025)
    assert rows.loc["a", "reason"] == "nan"
    assert rows.loc["launch__func_cache_config", "reason"] == "odd separators"
    assert "\0" not in rows.loc["launch__kernel_name", "raw_text"]
    assert "\0" not in content.launches["kernel"][0]


@needs_package
def test_metrics_by_instruction_are_rows_of_the_launch(read_all):
    wait, miss = "smsp__pcsamp_warps_issue_stalled_wait", "smsp__pcsamp_warps_issue_stalled_imc_miss_not_issued"
    code = 0x7F24937A0000
    instances = {
        "inst_executed": [(code + 16, 20), (code, 10)],
        wait: [(code, 7), (code + 16, 0)],
        miss: [(code + 16, 3)],
        "memory_type": [(code, "Global"), (code + 16, 4)],
        "sass__inst_executed_per_opcode": [("LDG", 30)],
        "derived__avg_thread_executed": [(code, 32.0)],
    }
    metrics = {**H200, **dict.fromkeys(instances, None), "inst_executed": 30}
    results = [Result("a()", H200), Result(SAXPY, metrics, instances=instances), Result("b()", metrics)]
    content = read_all(small(*results))
    assert content.source_kernels[["source_index", "launch_index", "kernel"]].values.tolist() == [[0, 1, SAXPY]]
    rows = content.source_lines[["kind", "address", "instructions", "samples", "samples_not_issued", "address_space"]]
    first, second = rows.astype(object).where(rows.notna(), None).values.tolist()
    assert first == ["instruction", code, 10, 7, 0, "Global"]
    assert second == ["instruction", code + 16, 20, 0, 3, None]
    stalls = content.source_stalls[["line_index", "reason", "samples", "samples_not_issued"]].fillna(-1)
    assert stalls.values.tolist() == [[0, "Wait", 7, -1], [1, "IMC Miss", -1, 3]]
    # A metric that has only instances has no value of the launch.
    assert set(content.metrics.query("launch_index == 1")["metric"]) == {*H200, "inst_executed"}


@needs_package
@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress], ids=["gzip", "zstd"])
def test_a_compressed_report_is_read(read_all, pack):
    assert read_all(pack(REPORT.read_bytes())).launches.equals(read_all(REPORT).launches)


@needs_package
def test_an_empty_report_says_so(read_all):
    content = read_all(report_file.report(((1, "a", "b"), [])))
    assert len(content.launches) == 0
    assert content.message == "no launches: the report holds no results; profile again"


@needs_package
def test_metrics_without_units_are_refused(read_all):
    with pytest.raises(BrokenInputError, match=r"gives no units for its metrics.*pip install --upgrade ncu-report"):
        read_all(small(Result(SAXPY, ONE)))


@needs_package
def test_a_cut_report_is_refused():
    data = small()
    places = [*range(4, 60, 7), *range(60, len(data), 97), len(data) - 1]
    for place in places:
        with pytest.raises(InputError, match=r"the report is damaged \(it ends inside .*: the file is cut\)"):
            list(formats.read(io.BytesIO(data[:place]))[1])


@needs_package
def test_a_report_that_ends_in_zeros_is_refused_at_the_first_of_them():
    begun = time.monotonic()
    for zeros in (4, 1 << 20, 32 << 20):
        with pytest.raises(InputError, match="the header of block 2 is empty"):
            list(formats.read(io.BytesIO(small() + bytes(zeros)))[1])
    assert time.monotonic() - begun < 20


@needs_package
@pytest.mark.parametrize(
    "data",
    [
        report_file.MAGIC + b"\xff" * 40,
        report_file.MAGIC + struct.pack("<I", 2) + b"\x08\x09" + struct.pack("<I", 6) + b"\xff" * 6,
        report_file.MAGIC + struct.pack("<I", 2) + b"\x08\x09" + b"{}\n" * 50,
    ],
)
def test_bytes_after_the_magic_that_are_no_report_are_refused(data):
    with pytest.raises(InputError, match="the report is damaged"):
        list(formats.read(io.BytesIO(data))[1])


@needs_package
def test_a_result_that_does_not_parse_is_no_launch(read_all):
    data = bytearray(small(Result(SAXPY, H200), Result("other()", H200)))
    place = data.rindex(b"other()")
    data[place - 1] = 200
    with pytest.raises(InputError, match=r"result \d of 2 cannot be read"):
        read_all(bytes(data))


@needs_package
def test_damaged_bytes_end_as_a_sentence():
    data, chance = REPORT.read_bytes(), random.Random(7)
    for _ in range(20):
        broken = bytearray(data)
        for _ in range(chance.randint(1, 6)):
            broken[chance.randrange(4, len(data))] = chance.randrange(256)
        with suppress(InputError):  # any other error fails
            list(formats.read(io.BytesIO(bytes(broken)))[1])


@needs_package
def test_a_report_that_takes_too_long_is_given_up(tmp_path, monkeypatch):
    endless = tmp_path / "endless.py"
    endless.write_text("import time\ndef run(*_): time.sleep(600)", encoding="utf-8")
    monkeypatch.setattr(ncu_report, "JOB", endless)
    monkeypatch.setattr(process, "WAIT_FACTOR", 0.02)
    began = time.monotonic()
    with pytest.raises(BrokenInputError, match="more memory or time than a valid one of its size"):
        list(formats.read(io.BytesIO(small()))[1])
    assert time.monotonic() - began < 20


@pytest.mark.parametrize(
    ("job", "words"),
    [
        ("import os, signal\ndef run(*_): os.kill(os.getpid(), signal.SIGSEGV)", "is damaged: what reads it crashed"),
        ("def run(*_): bytearray(1 << 40)", "more memory or time"),
    ],
)
def test_a_reader_that_crashes_ends_as_a_sentence(tmp_path, monkeypatch, job, words):
    file = tmp_path / "job.py"
    file.write_text(job, encoding="utf-8")
    monkeypatch.setattr(ncu_report, "JOB", file)
    monkeypatch.setattr(ncu_report, "package_folder", lambda: tmp_path)
    with pytest.raises(BrokenInputError, match=words):
        list(formats.read(io.BytesIO(small()))[1])


def test_a_large_report_gets_half_of_the_memory_of_the_machine(tmp_path, monkeypatch):
    job = tmp_path / "job.py"
    job.write_text(
        "import marshal, mmap\ndef run(asked, received, send): "  # reserved is enough: to fill it takes seconds
        "mmap.mmap(-1, 1 << 32).close(); send(marshal.dumps(('error', 'it had 4 GB')))",
        encoding="utf-8",
    )
    monkeypatch.setattr(ncu_report, "JOB", job)
    monkeypatch.setattr(ncu_report, "package_folder", lambda: tmp_path)
    monkeypatch.setattr(ncu_report, "_version", lambda: "0")
    monkeypatch.setattr(ncu_report, "MEMORY_PER_BYTE", 1 << 32)
    for memory, words in ((1 << 40, "it had 4 GB"), (4 << 30, "or than this machine has")):
        monkeypatch.setattr(ncu_report, "machine_bytes", lambda memory=memory: memory)
        with pytest.raises(BrokenInputError, match=words):
            list(formats.read(io.BytesIO(small()))[1])


def test_without_the_package_the_message_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(ncu_report, "package_folder", lambda: None)
    with pytest.raises(InputError, match=r"pip install 'profsvc\[ncu\]'.*ncu --csv --page raw"):
        list(formats.read(io.BytesIO(small()), name="x.ncu-rep")[1])


@needs_package
def test_a_package_that_does_not_load_ends_as_a_sentence(tmp_path, monkeypatch):
    (tmp_path / "ncu_report.py").write_text("import nothing_like_it", encoding="utf-8")
    monkeypatch.setattr(ncu_report, "package_folder", lambda: tmp_path)
    with pytest.raises(BrokenInputError, match="the package ncu_report does not load: No module named 'nothing_like_i"):
        list(formats.read(io.BytesIO(small()))[1])


@needs_package
def test_the_lines_of_the_fixture_are_made_of_its_report(read_all):
    written = b"".join(ncu_report.lines_of(io.BytesIO(REPORT.read_bytes())))
    made, kept = ([json.loads(line) for line in data.splitlines()] for data in (written, LINES.read_bytes()))
    assert made[1:] == kept[1:]
    assert made[0] == {**kept[0], "package": made[0]["package"]}
    assert read_all(written).launches.equals(read_all(REPORT).launches)
