"""Questions of what would be: how they are read, answered and refused."""

import json
from pathlib import Path

import pytest

from profsvc import pipeline, store
from profsvc.errors import NotFoundError, UsageError
from profsvc.reports import what_if_text
from profsvc.reports.rows import plain
from profsvc.views import what_if

TRACE = Path(__file__).parents[2] / "fixtures" / "nvprof" / "gpu_trace.csv"


def test_each_thing_is_changed_alone_where_nobody_says_what(demo):
    view = what_if.what_if(demo, "h200", "saxpy")
    now, *rows = view["rows"]
    assert view["launch"]["kernel_short"] == "saxpy"
    assert (now["sms"], now["mwp_cwp_change"], now["throughput_change"]) == (132, 0, 0)
    assert now["expected_low_us"] == now["expected_high_us"] == pytest.approx(view["measured_us"])
    names = ("sms", "warps", "frequency_mhz", "bandwidth_gb_per_s")
    for row in rows:
        assert sum(row[name] != now[name] for name in names) == 1
        ratio = row["mwp_cwp_us"] / now["mwp_cwp_us"]
        assert row["mwp_cwp_change"] == pytest.approx(ratio - 1)
        assert row["expected_low_us"] <= view["measured_us"] * ratio * (1 + 1e-9)
        assert row["expected_high_us"] >= view["measured_us"] * ratio * (1 - 1e-9)
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
    said = f"^{what_if.OPTIONS[axis]} .* must be a .* or a share, such as {what_if.EXAMPLES[axis][:2]}"
    with pytest.raises(UsageError, match=said):
        what_if.what_if(demo, "h200", "saxpy", {axis: [text]})


def test_too_many_scenarios_are_refused(demo):
    axes = {"sms": [str(n) for n in range(1, 101)], "warps": [str(n) for n in range(1, 31)]}
    with pytest.raises(UsageError, match="that are 3000 scenarios; ask for 2000 at most"):
        what_if.what_if(demo, "h200", "saxpy", axes)


def test_what_goes_beyond_the_device_is_said(demo):
    notes = what_if.what_if(demo, "h200", "saxpy", {"warps": ["4096"], "sms": ["500"]})["notes"]
    assert sum("beware: only" in note for note in notes) == 2
    assert not [note for note in what_if.what_if(demo, "h200", "saxpy")["notes"] if "beware" in note]


def test_another_device_has_a_row_of_its_own_and_names_what_is_assumed(demo):
    view = what_if.what_if(demo, "h200", "saxpy", {"sms": ["x0.5"]}, "A100-SXM-80GB")
    assert [row["device"] for row in view["rows"]] == ["NVIDIA H200", *["NVIDIA A100 SXM4 80GB"] * 2]
    assert [row["sms"] for row in view["rows"]] == [132, 108, 54]
    assert any("latencies of its memory are not known" in note for note in view["notes"])
    with pytest.raises(NotFoundError, match="no device named"):
        what_if.what_if(demo, "h200", "saxpy", None, "A101")


def test_a_block_that_does_not_fit_there_is_refused(demo):
    with pytest.raises(UsageError, match=r"cannot run on .*8800 GTX: a block of it does not fit"):
        what_if.what_if(demo, "h200", "gemm_tiled<32>", None, "8800GTX")


def test_a_launch_without_counters_says_why(tmp_path):
    engine = store.open_store(str(tmp_path / "store.sqlite"))

    with TRACE.open("rb") as stream:
        pipeline.ingest(engine, stream, TRACE.name, store.RunInfo(name="trace"))
    with pytest.raises(NotFoundError, match="neither model has all its inputs"):
        what_if.what_if(engine, "trace")
    engine.dispose()


def test_the_page_names_both_models_and_what_they_suggest(demo):
    page = what_if_text.what_if(what_if.what_if(demo, "h200", "saxpy"))
    assert page.startswith("#")
    for words in ("MWP-CWP says", "throughput says", "expected us", "category", "assumed, as no counter tells"):
        assert words in page
    view = what_if.what_if(demo, "h200", "saxpy")
    view["suggestions"] = [row | {"value": row["now"]} for row in view["suggestions"]]
    assert "keep all SMs, all warps and the clock" in what_if_text.what_if(view)
