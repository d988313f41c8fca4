"""What the models say of launches as data, and as the pictures of it."""

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from profsvc import pipeline, store
from profsvc.errors import NotFoundError
from profsvc.reports.plots import models as drawing
from profsvc.reports.plots.launches import engineering
from profsvc.views.models import plots as model_plots
from profsvc.views.power.plots import power_on_sms
from tests.reports.plots.test_power import HOSTILE, words
from tests.views import power_logs

TRACE = Path(__file__).parents[3] / "fixtures" / "nvprof" / "gpu_trace.csv"
SCANS = {"roofline": None, "benefit": None, "warps": "saxpy", "sms": "saxpy"}


@pytest.fixture(scope="module")
def plots(demo):
    return {kind: model_plots.plot(demo, "h200", kind, kernel) for kind, kernel in SCANS.items()}


def test_every_kind_has_a_maker_a_picture_and_a_sentence():
    assert set(model_plots.KINDS) == set(model_plots.MAKERS) == set(drawing.MAKERS)


@pytest.mark.parametrize("kind", SCANS)
def test_a_plot_is_plain_data_and_its_picture_is_the_same_after_json(plots, kind):
    data = plots[kind]
    assert set(data["columns"]) <= set(data["rows"][0])
    again = json.loads(json.dumps(data, allow_nan=False))
    svg = drawing.draw(data)
    assert drawing.draw(again) == svg
    assert drawing.draw(data, dark=True) != svg
    assert drawing.draw(data, "png").startswith(b"\x89PNG")
    assert data["title"] in words(svg)
    assert data["run"] == {"run_id": 1, "project": "demo", "name": "h200"}


def test_the_roofline_is_that_of_the_analysis(demo, plots):
    data = plots["roofline"]
    stored = {}
    for row in store.select(demo, "v1_models", model="roofline", form="consistent"):
        stored.setdefault(row["launch_id"], {})[row["quantity"]] = row["value"]
    for row in data["rows"]:
        own = stored[row["launch_id"]]
        for name in ("intensity_dram", "intensity_l2", "intensity_l1", "flop_per_s", "attainable"):
            assert row[name] == own.get(name), name
        assert row["reached"] == pytest.approx(own["flop_per_s"] / own["attainable"])
    bands = {line["label"]: line["value"] for line in data["lines"] if line["type"] == "memory"}
    assert bands["DRAM"] < bands["L2"] < bands["L1"]
    with_work = [one for one in stored.values() if one.get("flop_per_s")]
    assert len(data["rows"]) == min(len(with_work), 40)
    assert any("no floating-point operations" in note for note in data["notes"])
    shown = words(drawing.draw(data))
    assert {"arithmetic intensity (flop/byte of DRAM)", "memory-bound"} <= set(shown)


def test_marks_say_which_launch_they_are(plots):
    for kind in ("roofline", "benefit"):
        root = ElementTree.fromstring(drawing.draw(plots[kind]))
        ids = {one.get("id") for one in root.iter() if str(one.get("id")).startswith("point-")}
        assert ids == {f"point-{row['launch_id']}" for row in plots[kind]["rows"]}


def test_one_launch_is_shown_at_each_level_of_memory(demo):
    data = model_plots.plot(demo, "h200", "roofline", "saxpy")
    assert len(data["rows"]) == 1
    assert {"DRAM", "L2", "L1", "saxpy"} <= set(words(drawing.draw(data)))


def test_the_benefit_chart_is_that_of_the_analysis(demo, plots):
    for row in plots["benefit"]["rows"]:
        assert row["computation"] + row["memory_after_overlap"] == pytest.approx(1)
        assert row["memory"] >= row["memory_after_overlap"] - 1e-12
        assert row["zone"] == ("memory" if row["memory"] > row["computation"] * (1 + 1e-9) else "compute")
    one = model_plots.plot(demo, "h200", "benefit", "gemm_naive")
    gains = [name for name in model_plots.BENEFITS if (one["rows"][0][name] or 0) >= 0.005]
    shown = " ".join(words(drawing.draw(one)))
    for name in gains:
        assert model_plots.BENEFITS[name] in shown
    assert gains


def test_the_scan_of_warps_is_that_of_the_formula(demo, plots):
    data = plots["warps"]
    rows = store.select(demo, "v1_models", model="mwp_cwp", form="consistent", kernel_short="saxpy")
    stored = {row["quantity"]: row["value"] for row in rows}
    now = data["rows"][int(data["now"]) - 1]
    assert (now["MWP"], now["CWP"]) == (pytest.approx(stored["MWP"]), pytest.approx(stored["CWP"]))
    assert now["mwp_cwp_speedup"] == pytest.approx(1)
    assert now["throughput_speedup"] == pytest.approx(1)
    # Two loads of each warp are under way together.
    assert all(row["MWP"] <= 2 * row["warps"] + 1e-9 and row["CWP"] <= row["warps"] + 1e-9 for row in data["rows"])
    assert len(data["rows"]) == 64


def test_the_scan_of_sms_begins_at_one_and_ends_now(plots):
    data = plots["sms"]
    last = data["rows"][-1]
    assert (len(data["rows"]), last["mwp_cwp"], last["throughput"]) == (132, pytest.approx(1), pytest.approx(1))
    speeds = np.array([row["mwp_cwp"] for row in data["rows"]])
    assert (np.diff(speeds) >= -1e-9).all()
    assert data["rows"][0]["power_w"] is None
    assert any("performance per watt unknown: the run has no power log" in note for note in data["notes"])
    assert not [text for text in words(drawing.draw(data)) if "per watt" in text]


def test_speed_per_watt_is_drawn_where_the_power_is_known(plots):
    data = json.loads(json.dumps(plots["sms"]))
    for row in data["rows"]:
        row |= {"power_w": 100.0 + row["sms"], "per_watt_mwp_cwp": row["mwp_cwp"] * 232 / (100 + row["sms"]),
                "per_watt_throughput": row["throughput"]}  # fmt: skip
    assert "relative speed per watt (all SMs = 1)" in words(drawing.draw(data))


def test_power_on_sms_is_the_law_through_the_loads(tmp_path):
    engine = store.open_store(str(tmp_path / "store.sqlite"), pooled=True)
    run_id = power_logs.fill(engine)
    sms = np.array([1.0, 50.0, 132.0])
    swept = power_on_sms(engine, run_id, "mem", sms)
    watts = swept.power_w
    expected = power_logs.IDLE_W + power_logs.FIRST_W + power_logs.SM_W * sms
    assert watts is not None
    np.testing.assert_allclose(watts, expected, rtol=0.1)
    assert "law through the loads 'mem'" in swept.note
    assert swept.measured_sms == (1.0, 132.0)
    none = power_on_sms(engine, run_id, "another", sms)
    assert (none.power_w, "no power of this kernel" in none.note) == (None, True)
    engine.dispose()


def test_hit_ratios_of_a_trace_are_counted_and_without_one_refused(demo, tmp_path):
    with pytest.raises(NotFoundError, match="run 1 has no memory trace to simulate hit ratios from"):
        model_plots.plot(demo, "h200", "hits")
    rng = np.random.default_rng(3)
    lines = ["# device: NVIDIA H200", "# kernel: spmv", "block,warp,seq,site,address,kind"]
    for block in range(40):
        for seq in range(6):
            address = int(rng.integers(0, 4000)) * 128
            lines += [f"{block},{warp},{seq},{seq},{address + 4096 * warp},load" for warp in range(2)]
    file = tmp_path / "trace.csv"
    file.write_text("\n".join(lines) + "\n")
    engine = store.open_store(str(tmp_path / "store.sqlite"), pooled=True)
    with file.open("rb") as stream:
        pipeline.ingest(engine, stream, file.name, store.RunInfo(name="trace"))
    data = model_plots.plot(engine, "trace", "hits")
    draws = store.select(engine, "v1_trace_draws")
    for level, column in (("L1, loads", "l1_load_ratio"), ("L2, loads that missed L1", "l2_load_ratio")):
        rows = [row for row in data["rows"] if row["level"] == level]
        assert sum(row["orders"] for row in rows) == len(draws)
        for row in rows:
            inside = [one for one in draws if row["from_ratio"] <= one[column] <= row["to_ratio"]]
            assert len(inside) >= row["orders"]
        assert rows[0]["mean"] == pytest.approx(np.mean([one[column] for one in draws]))
    assert any(text.startswith("L1, loads: ") for text in words(drawing.draw(data)))
    with pytest.raises(NotFoundError, match="no memory trace of a kernel 'gemm'"):
        model_plots.plot(engine, "trace", "hits", "gemm")
    engine.dispose()


def test_what_cannot_be_drawn_says_why(demo, tmp_path):
    with pytest.raises(NotFoundError, match="no plot named 'roof'; did you mean 'roofline'"):
        model_plots.plot(demo, "h200", "roof")
    with pytest.raises(NotFoundError, match="no kernel named"):
        model_plots.plot(demo, "h200", "roofline", "nothing")
    engine = store.open_store(str(tmp_path / "store.sqlite"), pooled=True)
    with TRACE.open("rb") as stream:
        pipeline.ingest(engine, stream, TRACE.name, store.RunInfo(name="trace"))
    for kind in SCANS:
        with pytest.raises(NotFoundError) as error:
            model_plots.plot(engine, "trace", kind)
        assert len(str(error.value)) > 20
    engine.dispose()


def test_names_do_not_act_and_many_points_are_drawn(plots):
    for kind in ("roofline", "benefit"):
        data = json.loads(json.dumps(plots[kind]))
        for number, row in enumerate(data["rows"]):
            row["kernel"] = HOSTILE + str(number)
        data["title"] = HOSTILE
        assert any("script" in text for text in words(drawing.draw(data)))
        data["rows"] = [row | {"launch_id": k} for k in range(3) for row in data["rows"]]
        assert words(drawing.draw(data))


def test_numbers_with_letters():
    assert [engineering(x) for x in (0.05, 1.0, 1500.0, 6.69e13)] == ["0.05", "1", "1.5 k", "66.9 T"]
