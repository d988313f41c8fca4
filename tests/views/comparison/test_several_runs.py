"""Several runs beside a baseline: each pair is what the comparison of the two says."""

import io

import pytest

from profsvc import pipeline, store
from profsvc.errors import UsageError
from profsvc.views.comparison.several_runs import compare_several
from profsvc.views.comparison.two_runs import compare
from tests.conftest import DEMO, ROOT
from tests.store.queries.told import One, trace

RUNS = {
    "first": {"solve": 60_000, "copy": 30_000, "rest": 10_000},
    "second": {"solve": 20_000, "copy": 30_000, "rest": 11_000},
    "third": {"solve": 90_000, "rest": 10_000, "added": 5_000},
}


@pytest.fixture
def tuned(made_once):
    def fill(engine):
        for name, kernels in RUNS.items():
            launches = [One(f"{kernel}(int)", ns=ns) for kernel, ns in kernels.items() for _ in range(3)]
            data = io.BytesIO(trace(launches).encode())
            pipeline.ingest(engine, data, f"{name}.csv", store.RunInfo(name=name))

    engine = store.open_store(str(made_once("several runs", fill)), pooled=True)
    yield engine
    engine.dispose()


@pytest.mark.parametrize("baseline", [None, "second", "third"])
def test_each_run_beside_the_baseline_is_the_comparison_of_the_two(tuned, baseline):
    view = compare_several(tuned, list(RUNS), baseline)
    rows = {row["kernel"]: row for row in view["kernels"]}
    for place, name in enumerate(RUNS):
        if name == (baseline or "first"):
            assert all(row["change"][place] is None and row["effect_us"][place] is None for row in rows.values())
            continue
        pair = compare(tuned, baseline or "first", name)
        known = {row["kernel_before"]: row for row in pair["kernels"]}
        for kernel, row in rows.items():
            one = known.get(kernel)
            assert row["change"][place] == (one and pytest.approx(one["change"], rel=1e-12)), kernel
            assert row["effect_us"][place] == (one and pytest.approx(one["effect_us"], rel=1e-12))
            assert row["outcome"][place] == (one and one["outcome"])
        assert {row["kernel"] for row in pair["only_after"]} == {
            kernel for kernel, row in rows.items() if row["mean_us"][place] is not None and kernel not in known
        }
    for kernel, row in rows.items():
        expected = [RUNS[name].get(kernel) for name in RUNS]
        assert row["mean_us"] == [None if ns is None else pytest.approx(ns / 1e3) for ns in expected]
        assert row["launches"] == [None if ns is None else 3 for ns in expected]


def test_the_largest_effect_comes_first_and_new_kernels_last(tuned):
    view = compare_several(tuned, list(RUNS))
    assert [row["kernel"] for row in view["kernels"]] == ["solve", "rest", "copy", "added"]
    assert [run["change"] for run in view["runs"]] == [0, pytest.approx(61 / 100 - 1), pytest.approx(105 / 100 - 1)]


def test_different_devices_are_said(tuned):
    assert compare_several(tuned, list(RUNS))["warnings"] == []
    for name, path in (("h200", DEMO), ("older", ROOT / "fixtures" / "nvprof" / "gpu_trace.csv")):
        with path.open("rb") as stream:
            pipeline.ingest(tuned, stream, path.name, store.RunInfo(name=name))
    view = compare_several(tuned, [*RUNS, "h200", "older"])
    said = {run["device"] for run in view["runs"]} - {None}
    assert len(said) == 2
    assert view["warnings"][0].startswith("different device: ")
    assert all(device in view["warnings"][0] for device in said)
    new = [row for row in view["kernels"] if row["mean_us"][0] is None and row["mean_us"][3] is not None]
    totals = [row["total_us"][3] for row in new]
    assert len(totals) > 20
    assert totals == sorted(totals, reverse=True)


def test_what_cannot_be_compared_is_refused(tuned):
    with pytest.raises(UsageError, match="0 runs"):
        compare_several(tuned, [])
    with pytest.raises(UsageError, match="not one of the runs"):
        compare_several(tuned, ["first", "second"], "third")
    assert len(compare_several(tuned, ["first", "first"])["runs"]) == 1
