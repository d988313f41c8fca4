"""Points of the series of runs: what an older version of the analysis computed is not compared."""

import pandas as pd
import pytest

from profsvc import store
from profsvc.analysis.changes.series.run_series import COMPUTED, of_older_analysis, run_points, to_series, with_texts

RUNS = pd.DataFrame(
    [(1, "9", None), (2, "10", None), (3, None, None), (4, "10", None), (5, "9", "feature"), (6, None, "feature")],
    columns=["run_id", "version", "branch"],
).assign(project="p", device="d")
KERNEL = {"kernel": "saxpy(int)", "kernel_short": "saxpy"}
POWER = ("run_id", *store.column_kinds_of("v1_power"))


def figures() -> dict[str, pd.DataFrame]:
    of_runs = pd.DataFrame({"run_id": RUNS["run_id"], "value": 1.0})
    of_kernel = of_runs.assign(**KERNEL)
    return {
        "durations": of_kernel.assign(format="ncu-raw"),
        "means": of_kernel.iloc[:0],
        "criteria": of_kernel.assign(criterion="divergence"),
        "whole": of_runs.assign(criterion="host_sync"),
        "potential": of_kernel,
        "lines": of_runs,
        "missing": of_runs,
        "power": pd.DataFrame({name: pd.Series(dtype=object) for name in POWER}),
    }


def test_a_run_is_of_an_older_analysis_than_the_newest_of_its_history() -> None:
    assert RUNS.loc[of_older_analysis(RUNS), "run_id"].tolist() == [1]


@pytest.mark.parametrize(("quantity", "computed"), [("duration", False), ("rejected_lines", False), ("potential", True),
                                                    ("divergence", True), ("host_sync", True),
                                                    ("missing_criteria", True)])  # fmt: skip
def test_only_what_an_analysis_computes_is_left_out(quantity: str, *, computed: bool) -> None:
    points = run_points(RUNS, figures())
    assert (
        sorted(points.loc[points["quantity"] == quantity, "run_id"]) == [2, 3, 4, 5, 6] if computed else [*range(1, 7)]
    )


def test_texts_are_numbers_until_they_are_asked_for() -> None:
    """Of many kernels there is no room for texts of each run, nor for what no run has."""
    runs = RUNS.assign(at="2026-01-01T02:00:00Z", run="nightly", build=[None, "a", "a", None, None, "b"])
    runs["device"] = ["d", "d", None, "e", None, "e"]
    one = figures()
    one["durations"] = one["durations"].astype(dict.fromkeys(("kernel", "kernel_short", "format"), "category"))
    whole, coded = (to_series(run_points(runs, own), runs, {}) for own in (figures(), one))
    pd.testing.assert_frame_equal(with_texts(whole), with_texts(coded))
    assert [name for name in coded if coded[name].dtype == object] == ["at"]
    assert coded["low"].to_numpy().strides == (0,)
    texts = with_texts(coded)
    timed = texts[texts["quantity"] == "duration"].sort_values("run_id")
    assert timed["device"].tolist() == ["d", "d", None, "e", None, "e"]
    assert timed["build"].tolist() == [None, "a", "a", None, None, "b"]
    assert (timed["sensor"] == "ncu").all()


def test_every_computed_figure_is_read() -> None:
    assert set(COMPUTED) < set(figures())
