"""A kernel over runs: what is one series, where it stepped, and what is said of what is not there."""

import io

import pytest

from profsvc import pipeline, store
from profsvc.errors import NotFoundError, UsageError
from profsvc.store.queries.kernels.history import HistoryFilter
from profsvc.views import history as of_kernel
from profsvc.views.launches.listing import launches_of
from tests.views import histories


@pytest.fixture(scope="module")
def stepped(tmp_path_factory):
    """Eleven nights; from the seventh on the kernel takes 10 % longer, and draws 3 % more. The room warms up."""
    engine = store.open_store(str(tmp_path_factory.mktemp("history") / "store.sqlite"), pooled=True)
    us = histories.steady(6) + histories.steady(5, 110.0, 2)
    for number, run_id in enumerate(histories.fill(engine, us)):
        histories.power(engine, run_id, 300.0 * (1.03 if number >= 6 else 1.0), 48.0 + 1.5 * number)
    yield engine
    engine.dispose()


def test_a_step_is_found_where_it_is(stepped):
    view = of_kernel.history(stepped, "saxpy")
    assert [point["run"] for point in view["points"]] == [f"night {n}" for n in range(1, 12)]
    (step,) = view["steps"]
    assert (step["run"], step["direction"], step["material"]) == ("night 7", "worse", True)
    assert step["change"] == pytest.approx(0.1, abs=0.01)
    assert step["commit_id"] == "0000003"
    assert step["previous_run_id"] == view["points"][5]["run_id"]
    assert (view["truncated"], view["older"], view["notes"]) == (False, None, [])
    point = view["points"][0]
    assert (point["low"] / point["value"], point["high"] > point["value"]) == (pytest.approx(0.99), True)
    assert (point["launches"], point["files"], point["unit"], point["at"]) == (3, 1, "ns", "2026-11-01T02:00:00Z")


def test_raw_power_follows_the_room_and_corrected_power_does_not(stepped):
    raw = of_kernel.history(stepped, "saxpy", "raw_power")
    corrected = of_kernel.history(stepped, "saxpy", "power")
    before, after = [point["value"] for point in corrected["points"][:6]], corrected["points"][6]["value"]
    # All at 63 degrees, the temperature of the newest run.
    assert before == pytest.approx([300 + 0.8 * 13] * 6)
    assert after == pytest.approx(309 + 0.8 * 13)
    assert "at 63 \u00b0C, the reference temperature of the newest run" in corrected["notes"]
    assert [point["raw"] for point in corrected["points"]] == [point["value"] for point in raw["points"]]
    assert [step["run"] for step in corrected["steps"]] == ["night 7"]
    assert raw["points"][5]["value"] - raw["points"][0]["value"] == pytest.approx(5 * 1.5 * 0.8)
    # What is moved far is less sure, by the interval of its coefficient.
    widths = [point["high"] - point["low"] for point in corrected["points"]]
    assert widths[-1] == pytest.approx(1.0)
    assert widths[0] == pytest.approx(1.0 + 2 * 0.1 * 15)
    assert of_kernel.history(stepped, "saxpy", "energy")["points"][0]["value"] == pytest.approx(10 * before[0])
    each = of_kernel.history(stepped, "saxpy", "energy_per_launch")["points"]
    assert {(point["value"], point["reason"]) for point in each} == {
        (None, "the number of launches of the load is unknown")
    }
    heat = of_kernel.history(stepped, "saxpy", "temperature")["points"][2]
    assert (heat["low"], heat["value"], heat["high"]) == (50.0, 51.0, 52.0)
    assert of_kernel.history(stepped, "saxpy", "clock")["points"][0]["value"] == 1.98e9


def test_a_page_says_that_there_are_older_runs(stepped):
    view = of_kernel.history(stepped, "saxpy", asked=HistoryFilter(points=4))
    assert [point["run"] for point in view["points"]] == ["night 8", "night 9", "night 10", "night 11"]
    assert view["truncated"]
    assert view["notes"][0] == f"showing the newest 4 runs; for older ones use before {view['older']}"
    assert "not enough runs to detect a change (needs 5 before, 3 after)" in view["notes"]
    older = of_kernel.history(stepped, "saxpy", asked=HistoryFilter(points=4, before=view["older"]))
    assert [point["run"] for point in older["points"]] == ["night 4", "night 5", "night 6", "night 7"]


def test_what_cannot_be_compared_is_a_series_of_its_own(tmp_path):
    engine = store.open_store(str(tmp_path / "store.sqlite"), pooled=True)
    histories.fill(engine, [100.0], "b")
    histories.fill(engine, [1.0, 2.0], "a")
    view = of_kernel.history(engine, "saxpy")
    assert [(one["series"], one["project"], one["points"]) for one in view["series"]] == [(0, "a", 2), (1, "b", 1)]
    assert {point["series"] for point in view["points"] if point["project"] == "b"} == {1}
    assert len(of_kernel.history(engine, "saxpy", asked=HistoryFilter(project="b"))["series"]) == 1
    engine.dispose()


def test_a_value_that_is_missing_says_why(tmp_path):
    engine = store.open_store(str(tmp_path / "store.sqlite"), pooled=True)
    runs = histories.fill(engine, [100.0, None, 101.0])
    view = of_kernel.history(engine, "saxpy")
    assert [point["value"] for point in view["points"]] == [100e3, None, 101e3]
    assert view["points"][1]["reason"] == "the export has no durations"
    assert "1 of 3 points have no value: the export has no durations" in view["notes"]
    for name in ("divergence", "potential"):
        told = of_kernel.history(engine, "saxpy", name)
        assert {point["reason"] for point in told["points"]} == {"the run lacks the metrics for this quantity"}
    # What is not corrected stays out of the line, and is shown as it was measured.
    gone = dict.fromkeys(("corrected_power_w", "corrected_energy_j", "coefficient_w_per_c"))
    histories.power(engine, runs[0], 300.0, 50.0)
    histories.power(engine, runs[1], 300.0, 50.0, **gone, reason="the span is 2 degC only")
    told = of_kernel.history(engine, "saxpy", "power")["points"]
    assert [(point["value"], point["raw"], point["reason"]) for point in told] == [
        (300.0, 300.0, None), (None, 300.0, "the span is 2 degC only"),
    ]  # fmt: skip
    engine.dispose()


def test_what_is_not_there_is_refused_with_the_names_that_are(stepped, demo):
    with pytest.raises(NotFoundError, match="no kernel named 'saxpi'; did you mean 'saxpy'"):
        of_kernel.history(stepped, "saxpi")
    with pytest.raises(NotFoundError, match="no quantity named 'durations'; did you mean 'duration'"):
        of_kernel.history(stepped, "saxpy", "durations")
    with pytest.raises(
        NotFoundError, match="no run of project 'nightly' of device 'y' has launches of the kernel 'saxpy'"
    ):
        of_kernel.history(stepped, "saxpy", asked=HistoryFilter(device="y", project="nightly"))
    with pytest.raises(NotFoundError, match="no run has the power of a load or kernel named 'elsewhere'; mark it"):
        of_kernel.history(stepped, "elsewhere", "power")
    with pytest.raises(NotFoundError, match="no run of device 'y' has the power of 'saxpy'"):
        of_kernel.history(stepped, "saxpy", "power", HistoryFilter(device="y"))
    with pytest.raises(UsageError, match="a history has 1 to 10000 points, not 0"):
        of_kernel.history(stepped, "saxpy", asked=HistoryFilter(points=0))
    with pytest.raises(UsageError, match=r"2 kernels match 'gemm_tiled'; give the name or number of one: \w+<16> \(#"):
        of_kernel.history(demo, "gemm_tiled")
    assert len(of_kernel.kernels(demo, "gemm_tiled")) == 2
    with pytest.raises(NotFoundError, match="no kernel named 'nothing'"):
        of_kernel.kernels(demo, "nothing")


@pytest.fixture(scope="module")
def totals(tmp_path_factory):
    """Nine nights of which each has only the totals of a kernel that two scopes call; the last three are slower."""
    engine = store.open_store(str(tmp_path_factory.mktemp("totals") / "store.sqlite"), pooled=True)
    for night in range(9):
        ns = (100_000 + 100 * (night % 2)) * (1.1 if night > 5 else 1.0)
        nodes = ", ".join(
            f'{{"children": [], "frame": {{"name": "gemm"}}, "metrics": {{"count": {n}, "time (ns)": {int(n * ns)}}}}}'
            for n in (100, 300)
        )
        data = f'[{{"children": [{nodes}], "frame": {{"name": "ROOT"}}, "metrics": {{}}}}]'.encode()
        run = store.RunInfo(project="totals", name=f"night {night}", at=f"2026-11-0{night + 1}T02:00:00Z")
        pipeline.ingest(engine, io.BytesIO(data), "profile.hatchet", run)
    yield engine
    engine.dispose()


def test_a_kernel_of_which_exports_have_totals_alone_has_a_history_of_means(totals):
    view = of_kernel.history(totals, "gemm")
    assert view["quantity"]["name"] == "mean_duration"
    assert [point["value"] for point in view["points"][:2]] == [100_000.0, 100_100.0]
    assert {(point["launches"], point["files"], point["low"]) for point in view["points"]} == {(400, 1, None)}
    assert [(step["run"], step["direction"]) for step in view["steps"]] == [("night 6", "worse")]
    assert view == of_kernel.history(totals, "gemm", "mean_duration")
    newest = of_kernel.history(totals, "gemm", asked=HistoryFilter(points=4))
    assert (newest["truncated"], [point["run"] for point in newest["points"]]) == (
        True,
        [f"night {n}" for n in (5, 6, 7, 8)],
    )
    older = of_kernel.history(totals, "gemm", asked=HistoryFilter(points=9, before=newest["older"]))
    assert [point["run"] for point in older["points"]] == [f"night {n}" for n in range(5)]
    assert [row["kernel"] for row in store.recent_kernels(totals)] == ["gemm"]
    with pytest.raises(NotFoundError, match="no kernel named 'gem'; did you mean 'gemm'"):
        of_kernel.history(totals, "gem")
    with pytest.raises(NotFoundError, match="no run has launches of the kernel 'gemm'"):
        of_kernel.history(totals, "gemm", "potential")
    with pytest.raises(NotFoundError, match="no run of device 'x' has launches of the kernel '#1'"):
        of_kernel.history(totals, "#1", asked=HistoryFilter(device="x"))


def test_totals_are_told_where_launches_are_asked_for(totals):
    with pytest.raises(
        NotFoundError, match=r"'night 8' has totals of the kernel 'gemm' and no single launches; .* show"
    ):
        launches_of(totals, "night 8", "gemm")


def test_every_quantity_says_what_it_is_and_where_it_stands(demo):
    for name, about in of_kernel.quantities().items():
        assert about.column in store.column_kinds_of(about.source), name
        assert about.meaning
        if about.source not in ("v1_power", "v1_kernel_summaries"):
            (point,) = of_kernel.history(demo, "saxpy", name)["points"]
            assert point["unit"] == about.unit
            assert point["value"] is not None, name
    rows = [row for row in store.select(demo, "v1_criteria") if row["kernel_short"] == "saxpy"]
    want = {row["criterion"]: row["value"] for row in rows}
    assert of_kernel.history(demo, "saxpy", "divergence")["points"][0]["value"] == pytest.approx(want["divergence"])
