"""The benchmarks of the models on small instances: they run, and they count what they say."""

import numpy as np
import pandas as pd
import pytest

from profsvc import specs
from profsvc.analysis.models.evaluation import Machine
from tests.benchmarks import model_times, models

MACHINE = Machine(specs.figures("NVIDIA H200", "9.0"), specs.memory_table("H200"), {}, "ncu", "9.0")


@pytest.fixture(scope="module")
def real() -> pd.DataFrame:
    return models.measured(models.DEMO)


def test_launches_are_made_from_real_ones_a_little_changed(real: pd.DataFrame) -> None:
    made = pd.concat(models.tiled(real, 100))
    assert len(made) == 100
    first = real.to_numpy()[np.arange(100) % len(real)]
    assert np.nanmax(np.abs(made.to_numpy() - first) - models.JITTER / 2 * first) <= 1e-9 * np.nanmax(first)
    assert (made.to_numpy()[34:68] != made.to_numpy()[:34]).any()
    pd.testing.assert_frame_equal(made, pd.concat(models.tiled(real, 100)))


def test_blocks_give_what_whole_columns_give(real: pd.DataFrame) -> None:
    made = pd.concat(models.tiled(real, 300))
    assert models.answered(made, MACHINE, 64) == pytest.approx(models.answered(made, MACHINE, 300), rel=1e-12)


def test_the_table_is_printed(real: pd.DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    models.report(real, MACHINE, 500, 100, 200)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines[1:]] == ["all models", "and their rows", "whole columns"]
    assert "launches/s" in lines[1]


def test_a_score_is_of_the_errors() -> None:
    error, factor, close = model_times.score(np.array([1.1, 0.8, 2.0, np.nan]))
    assert error == pytest.approx((0.1 * 0.2 * 1.0) ** (1 / 3))
    assert factor == pytest.approx((1.1 * 1.25 * 2.0) ** (1 / 3))
    assert close == pytest.approx(2 / 3)


def test_times_of_held_out_kernels_are_predicted_better_than_by_a_constant() -> None:
    counters, kernels = models.counters_of(model_times.HELD_OUT / "ncu_raw_base.csv.gz")
    assert len(kernels) == len(counters) == 61
    found = model_times.scores(*model_times.both(counters))
    guess = found["constant guess"][1]
    for model in model_times.TIME_MODELS:
        assert found[model][1] < min(guess, found[f"{model}, latencies of the sources"][1]), model


def test_predictions_of_each_kernel_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    model_times.report("held out", [model_times.HELD_OUT / "ncu_raw_base.csv.gz"], None)
    page = capsys.readouterr().out
    assert page.splitlines()[1].startswith("held out: 61 kernels")
    assert "typical factor" in page
    assert "assumed: n_sync, ilp, " in page
    assert "without shared_s" in page
