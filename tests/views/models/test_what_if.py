"""Questions of what would be: how they are read, answered and refused."""

import csv
import gzip
import io
import json
from pathlib import Path

import pytest

from profsvc import pipeline, store
from profsvc.errors import NotFoundError, UsageError
from profsvc.reports.rows import plain
from profsvc.reports.text.models import what_if as what_if_text
from profsvc.views.models import what_if

TRACE = Path(__file__).parents[3] / "fixtures" / "nvprof" / "gpu_trace.csv"


def test_each_thing_is_changed_alone_where_nobody_says_what(demo):
    view = what_if.what_if(demo, "h200", "saxpy")
    now, *rows = view["rows"]
    assert view["launch"]["kernel_short"] == "saxpy"
    assert (now["sms"], now["mwp_cwp_change"], now["throughput_change"]) == (132, 0, 0)
    assert now["expected_low_us"] == now["expected_high_us"] == pytest.approx(view["measured_us"])
    names = ("sms", "blocks", "block_threads", "warps", "frequency_mhz", "bandwidth_gb_per_s")
    for row in rows:
        assert sum(row[name] != now[name] for name in names) == 1
        assert min(row["mwp_cwp_us"], row["throughput_us"]) >= 0.99 * row["peak_us"]
        assert row["mwp_cwp_change"] == pytest.approx(row["mwp_cwp_us"] / now["mwp_cwp_us"] - 1)
        assert row["peak_us"] <= row["expected_low_us"] <= row["expected_us"] <= row["expected_high_us"]
    json.dumps(plain(view))
    assert view["missing"] == []
    assert str(now["category"]) in view["categories"]
    assert any("n_sync" in name or "ilp" in name for name in view["assumed"])


def test_a_grid_has_each_combination(demo):
    axes = {
        "sms": ["33", "x0.5"],
        "bandwidth_bytes_per_s": ["2000", "2TB/s", "x2"],
        "frequency_hz": ["1.2GHz", "900mhz"],
    }
    _, *rows = what_if.what_if(demo, "h200", "0", axes)["rows"]
    assert len(rows) == 12
    assert {row["sms"] for row in rows} == {33, 66}
    assert {row["frequency_mhz"] for row in rows} == {1200, 900}
    assert sorted({round(row["bandwidth_gb_per_s"]) for row in rows})[0] == 2000
    assert len({row["bandwidth_gb_per_s"] for row in rows}) == 2


@pytest.mark.parametrize(
    ("axis", "text"),
    [
        *(("sms", text) for text in ("0", "-3", "1.5", "x", "12MHz", "nan", "1e400", "")),
        *(("warps", text) for text in ("3.2", "x0", "many")),
        *(("frequency_hz", text) for text in ("1200", "1.2", "x0.5GHz", "1.2kHz")),
        *(("bandwidth_bytes_per_s", text) for text in ("2PB/s", "-1", "0")),
    ],
)
def test_what_is_no_value_is_refused(demo, axis, text):
    said = f"^{what_if.OPTIONS[axis]} .* must be a .* or a factor, such as {what_if.EXAMPLES[axis][:2]}"
    with pytest.raises(UsageError, match=said):
        what_if.what_if(demo, "h200", "saxpy", {axis: [text]})


def test_too_many_scenarios_are_refused(demo):
    axes = {"sms": [str(n) for n in range(1, 101)], "warps": [str(n) for n in range(1, 31)]}
    with pytest.raises(UsageError, match="3000 scenarios requested; at most 2000 are allowed"):
        what_if.what_if(demo, "h200", "saxpy", axes)


def test_what_goes_beyond_the_device_is_said(demo):
    notes = what_if.what_if(demo, "h200", "saxpy", {"warps": ["4096"], "sms": ["500"]})["notes"]
    assert sum("warning: only" in note for note in notes) == 2
    assert not [note for note in what_if.what_if(demo, "h200", "saxpy")["notes"] if "warning" in note]


def test_another_device_has_a_row_of_its_own_and_names_what_is_assumed(demo):
    view = what_if.what_if(demo, "h200", "saxpy", {"sms": ["x0.5"]}, "A100-SXM-80GB")
    assert [row["device"] for row in view["rows"]] == ["NVIDIA H200", *["NVIDIA A100 SXM4 80GB"] * 2]
    assert [row["sms"] for row in view["rows"]] == [132, 108, 54]
    assert any("memory latencies unknown" in note for note in view["notes"])
    with pytest.raises(NotFoundError, match="no device named"):
        what_if.what_if(demo, "h200", "saxpy", None, "A101")


def test_a_block_that_does_not_fit_there_is_refused(demo):
    with pytest.raises(UsageError, match=r"cannot run on .*8800 GTX: a block of it does not fit"):
        what_if.what_if(demo, "h200", "gemm_tiled<32>", None, "8800GTX")


def test_the_grid_and_its_blocks_can_be_asked_for_and_keep_the_work(demo):
    now, *rows = what_if.what_if(demo, "h200", "saxpy", {"blocks": ["x0.5"], "block_threads": ["128", "512"]})["rows"]
    assert [(row["blocks"], row["block_threads"]) for row in rows] == [(528, 128), (528, 512)]
    (same,) = what_if.what_if(demo, "h200", "saxpy", {"block_threads": ["512"]})["rows"][1:]
    assert (same["blocks"], same["block_threads"], same["warps"]) == (528, 512, now["warps"])
    assert same["expected_us"] == pytest.approx(now["expected_us"], rel=0.01)
    page = what_if_text.what_if(what_if.what_if(demo, "h200", "saxpy", {"block_threads": ["512"]}))
    assert "threads" in page.splitlines()[3]


def test_registers_and_shared_memory_change_the_blocks_and_the_time(demo):
    axes = {"registers": ["32", "+17", "64"], "shared_bytes": ["0", "28KiB", "+1"]}
    view = what_if.what_if(demo, "h200", "saxpy", axes)
    now, *rows = view["rows"]
    assert (now["registers"], now["shared_bytes"], now["occupancy"]) == (16, 0, 1.0)
    assert [(row["registers"], row["shared_bytes"]) for row in rows][:4] == [(32, 0), (32, 28672), (32, 1), (33, 0)]
    assert [row["blocks_per_sm"] for row in rows] == [8, 7, 8, 6, 6, 6, 4, 4, 4]
    assert {row["occupancy_limiter"] for row in rows[3:]} == {"registers"}
    assert rows[0]["expected_us"] == pytest.approx(now["expected_us"], rel=0.01)
    assert rows[6]["expected_us"] > 1.1 * now["expected_us"]
    assert rows[6]["warps"] == 32
    assert any("spill" in note for note in view["notes"])
    page = what_if_text.what_if(view)
    assert "16 registers per thread: up to 32 keep 8 blocks per SM, one more leaves 6" in page
    assert "occupancy  limit of blocks" in page


@pytest.mark.parametrize(
    ("axis", "text", "said"),
    [
        ("registers", "256", "256 registers per thread are more than the 255"),
        ("registers", "0", "registers '0' must be a whole number"),
        ("shared_bytes", "256KiB", "262144 bytes of shared memory per block are more than the 232448"),
        ("shared_bytes", "1.5", "shared '1.5' must be"),
        ("shared_bytes", "+x", r"shared '\+x' must be"),
    ],
)
def test_more_than_the_device_has_is_refused(demo, axis, text, said):
    with pytest.raises(UsageError, match=said):
        what_if.what_if(demo, "h200", "saxpy", {axis: [text]})


@pytest.mark.parametrize(
    ("index", "axes", "measured_us", "error"),
    [("56", {"shared_bytes": ["0"]}, 227.168, 0.03), ("60", {"registers": ["18"]}, 247.488, 0.15)],
)
def test_other_resources_are_predicted_as_they_were_measured(flawed, index, axes, measured_us, error):
    """The next launch of the run has these resources, the second with 40 % more instructions: see cases.csv."""
    row = what_if.what_if(flawed, "flaws", index, axes)["rows"][1]
    assert row["expected_us"] == pytest.approx(measured_us, rel=error)


def test_few_warps_of_arithmetic_are_not_called_enough(demo):
    view = what_if.what_if(demo, "h200", "fp32_fma", {"warps": ["2"]})
    assert view["rows"][1]["limited_by"] == "latency"
    page = what_if_text.what_if(view)
    assert "limited by latency" not in page
    view["rows"] = view["rows"][1:]
    page = what_if_text.what_if(view)
    assert "limited by latency: more warps" in page
    assert "Enough warps" not in page
    assert "keeping all SMs" not in page


def test_a_block_too_large_is_refused(demo):
    with pytest.raises(UsageError, match="a block of 2048 threads does not fit on an SM"):
        what_if.what_if(demo, "h200", "saxpy", {"block_threads": ["2048"]})


def test_without_stall_reasons_the_published_models_answer_and_say_what_is_missing(engine):
    held = Path(__file__).parents[3] / "fixtures" / "demo" / "ncu_raw.csv.gz"
    text = gzip.decompress(held.read_bytes()).decode()
    rows = list(csv.reader(io.StringIO(text)))
    keep = [k for k, name in enumerate(rows[0]) if "average_warps_issue_stalled" not in name]
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL).writerows([[row[k] for k in keep] for row in rows[:10]])
    pipeline.ingest(engine, io.BytesIO(out.getvalue().encode()), "cut.csv", store.RunInfo(name="cut"))
    view = what_if.what_if(engine, "cut", "saxpy", {"sms": ["66"]})
    assert view["missing"][0]["model"] == "expected"
    assert "stall_barrier_cycles_per_issue" in view["missing"][0]["reason"]
    row = view["rows"][1]
    assert row["expected_us"] is None
    assert view["measured_us"] < row["expected_low_us"] <= row["expected_high_us"]
    assert "the expected time is unknown: the export lacks" in what_if_text.what_if(view)


def test_a_launch_without_counters_says_why(tmp_path):
    engine = store.open_store(str(tmp_path / "store.sqlite"), pooled=True)

    with TRACE.open("rb") as stream:
        pipeline.ingest(engine, stream, TRACE.name, store.RunInfo(name="trace"))
    with pytest.raises(NotFoundError, match="both models lack inputs"):
        what_if.what_if(engine, "trace")
    engine.dispose()


def test_the_page_names_both_models_and_what_they_suggest(demo):
    page = what_if_text.what_if(what_if.what_if(demo, "h200", "saxpy"))
    assert page.startswith("#")
    for words in ("MWP-CWP", "throughput", "expected us", "limited by", "category", "assumed (no counter available)"):
        assert words in page
    assert "blocks" not in page.splitlines()[3]
    view = what_if.what_if(demo, "h200", "saxpy")
    view["suggestions"] = [row | {"value": row["now"]} for row in view["suggestions"]]
    assert "keeping all SMs, all warps and the clock" in what_if_text.what_if(view)


def test_models_that_cannot_see_matrix_instructions_are_not_asked_about_them(engine):
    profile = Path(__file__).parents[3] / "fixtures" / "tensor" / "ncu_raw_base.csv.gz"
    pipeline.ingest(engine, io.BytesIO(profile.read_bytes()), profile.name, store.RunInfo(name="r"))
    for kernel in ("0", "2", "17"):
        view = what_if.what_if(engine, "r", kernel)
        missing = {one["model"]: one["reason"] for one in view["missing"]}
        assert "matrix instructions" in missing["mwp_cwp"]
        assert "matrix instructions" in missing["throughput"] or "more bytes" in missing["throughput"]
        assert all(row["mwp_cwp_us"] is None and row["throughput_us"] is None for row in view["rows"])
        assert view["suggestions"] == []
        assert all(row["expected_us"] for row in view["rows"])
