"""Two runs beside each other."""

import io

import pytest

from profsvc import pipeline, store, views
from profsvc.errors import UsageError
from profsvc.reports.text.comparison import two_runs as comparison
from profsvc.views.comparison import two_runs as side_by_side


def summary(kernels: dict[str, tuple[int, float]]) -> bytes:
    """An nvprof summary: kernel -> calls and mean in us."""
    lines = ["==1== Profiling result:", '"Type","Time(%)","Time","Calls","Avg","Min","Max","Name"', ",%,us,,us,us,us,"]
    total = sum(calls * mean for calls, mean in kernels.values())
    for name, (calls, mean) in kernels.items():
        time = calls * mean
        lines.append(f'"GPU activities",{100 * time / total:.6f},{time},{calls},{mean},{mean},{mean},"{name}"')
    return ("\n".join(lines) + "\n").encode()


@pytest.fixture
def pair(tmp_path):
    engine = store.open_store(str(tmp_path / "store.sqlite"), pooled=True)
    runs = {
        "old": {"void gemm<16>(float*)": (10, 20.0), "saxpy(int)": (4, 5.0), "gone()": (1, 1.0)},
        "new": {"void gemm<32>(float*)": (10, 10.0), "saxpy(int)": (4, 6.0), "came()": (1, 1.0)},
    }
    for name, kernels in runs.items():
        pipeline.ingest(engine, io.BytesIO(summary(kernels)), f"{name}.csv", store.RunInfo(name=name))
    yield engine
    engine.dispose()


def test_kernels_of_sums_alone_are_compared(pair):
    view = side_by_side.compare(pair, "old", "new")
    assert [(row["kernel_before"], row["matched_by"], row["speedup"]) for row in view["kernels"]] == [
        ("gemm", "short name", pytest.approx(2.0)),
        ("saxpy", "name", pytest.approx(5 / 6)),
    ]
    assert view["geometric_mean_speedup"] == pytest.approx((2 * 5 / 6) ** 0.5)
    assert [one["kernel"] for one in view["only_before"]] == ["gone"]
    assert [one["kernel"] for one in view["only_after"]] == ["came"]
    assert view["warnings"] == []


def test_a_map_pairs_what_has_another_name(pair):
    view = side_by_side.compare(pair, "old", "new", {"gone": "came"})
    assert [row["matched_by"] for row in view["kernels"]] == ["short name", "name", "map"]
    assert (view["only_before"], view["only_after"]) == ([], [])


def test_a_run_compared_with_itself_says_so_and_keeps_its_predictions(demo):
    view = side_by_side.compare(demo, "h200", "h200")
    assert view["warnings"] == ["both are the same run"]
    assert {row["speedup"] for row in view["kernels"]} == {1.0}
    assert {row["change"] for row in view["criteria"]} == {0.0}
    names = [row["kernel_before"] for row in view["kernels"]]
    assert len(set(names)) == len(names)
    assert "gemm_tiled<16>" in names
    of_launch = {row["kernel"]: row["speedup"] for row in store.select(demo, "v1_potential") if row["launch_id"]}
    for row in view["kernels"]:
        if row["launches_before"] == 1:
            assert row["predicted"] == pytest.approx(of_launch[row["kernel_before_full"]])


def test_what_limits_a_kernel_is_said_in_the_words_of_its_run(demo):
    rows = side_by_side.compare(demo, "h200", "h200")["kernels"]
    said = {one["kernel_full"]: one["bound"] for one in views.run(demo, "h200")["launches"]}
    alone = [row for row in rows if row["launches_before"] == 1]
    assert [row["limit_before"] for row in alone] == [said[row["kernel_before_full"]] for row in alone]
    assert {"DRAM", "Issue slots"} < {row["limit_after"] for row in rows}


def test_what_does_nothing_achieved_nothing_and_a_regression_is_one(pair, monkeypatch):
    told = {"gemm": 1.5, "saxpy": 1.34}
    of_run = store.kernels_of_run

    def predicted(engine, run_id):
        return {
            name: row | {"predicted": told.get(row["kernel_short"])} for name, row in of_run(engine, run_id).items()
        }

    monkeypatch.setattr(store, "kernels_of_run", predicted)
    view = side_by_side.compare(pair, "old", "new")
    assert [(row["outcome"], row["achieved_share"]) for row in view["kernels"]] == [
        ("faster", pytest.approx(0.5 / (1 - 1 / 1.5))),
        ("regression", pytest.approx(-0.2 / (1 - 1 / 1.34))),
    ]
    text = comparison.comparison(view, 200)
    assert "150 %" in text
    assert "regression" in text
    same = side_by_side.compare(pair, "old", "old")
    assert {(row["outcome"], row["achieved_share"]) for row in same["kernels"]} == {
        ("no change", 0.0), ("no change", None)
    }  # fmt: skip
    assert "0 %" in comparison.comparison(same, 200)


def test_limits_that_are_broken_are_named(pair):
    view = side_by_side.compare(pair, "old", "new")
    assert side_by_side.failures(view, ["duration=25%"]) == []
    assert side_by_side.unjudged(view, ["duration=5%"]) == side_by_side.failures(view, ["duration=200%"]) == []
    assert side_by_side.failures(view, ["duration=5%"]) == ["saxpy: duration up 20.0 %, allowed 5 %"]
    fell = {"kernel_after": "k", "criterion": "divergence", "before": 0.9, "after": 0.5, "change": -0.4}
    view = {"kernels": [], "criteria": [fell]}
    assert side_by_side.failures(view, ["divergence=0.3"]) == ["k: divergence fell from 0.900 to 0.500, allowed 0.3"]
    assert side_by_side.failures(view, ["divergence=0.5", "l1_granularity=0"]) == []


@pytest.mark.parametrize(
    "text",
    [
        "duration",
        "duration=",
        "duration=-1",
        "speed=5%",
        "duration=inf",
        "divergence=x",
        "duration=5",
        "divergence=5",
        "divergence=200%",
    ],
)
def test_a_limit_that_is_none_is_refused(text):
    with pytest.raises(UsageError, match="is not a limit; write NAME=NUMBER"):
        side_by_side.failures({"kernels": [], "criteria": []}, [text])


def test_the_causes_of_a_change_add_up_to_it(demo):
    view = side_by_side.compare(demo, "h200", "h200", {"reduce_v1_divergent": "reduce_v4_firstadd"})
    row = next(one for one in view["kernels"] if one["kernel_before"] == "reduce_v1_divergent")
    change_us = row["mean_after_us"] - row["mean_before_us"]
    assert sum(part["change_ns"] for part in row["causes"]) == pytest.approx(1e3 * change_us)
    assert row["causes"][-1]["cause"] == "unexplained"
    assert len(row["causes"]) > 2
    assert "of this, " in comparison.comparison(view)
    assert "why mean times changed" in comparison.comparison(view)


def test_another_number_of_launches_is_told_with_the_total_times(tmp_path):
    engine = store.open_store(str(tmp_path / "store.sqlite"), pooled=True)
    for name, calls in (("old", 4), ("new", 8)):
        kernels = {"saxpy(int)": (calls, 5.0), "gemm(int)": (2, 3.0)}
        pipeline.ingest(engine, io.BytesIO(summary(kernels)), f"{name}.csv", store.RunInfo(name=name))
    told = comparison.comparison(side_by_side.compare(engine, "old", "new"))
    assert "changed number of launches\n  saxpy: 4 -> 8, in all 20 -> 40 us\n" in told
    assert "changed number" not in comparison.comparison(side_by_side.compare(engine, "old", "old"))
    engine.dispose()
