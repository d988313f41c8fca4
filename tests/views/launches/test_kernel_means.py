"""Kernels with means: shown, opened and explained."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from profsvc import pipeline, store, views
from profsvc.errors import NotFoundError
from profsvc.reports.text.launches import details as launch_text
from profsvc.reports.text.runs import run as run_text
from profsvc.views.explain.numbers import explain
from tests.store.queries.kernels.test_means import METRICS, TRACE, stored

CORPUS = Path(__file__).parents[4] / "shared" / "corpus" / "1_nvprof"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    engine = store.open_store(str(tmp_path / "store.sqlite"), pooled=True)
    yield engine
    engine.dispose()


def test_a_run_of_means_alone_shows_them(engine: Engine) -> None:
    view = views.run(engine, stored(engine, METRICS))
    assert [(row["kernel"], row["launches"], row["duration_us"]) for row in view["means"]] == [("scale", 3, None)]
    page = run_text.run(view)
    assert "kernel averages" in page
    assert "  scale: the export has no duration" in page


def test_kernels_of_one_short_name_are_told_apart(engine: Engine) -> None:
    both = METRICS + "".join(METRICS.splitlines(keepends=True)[-2:]).replace("scale(float*)", "void scale<int=4>(int*)")
    page = run_text.run(views.run(engine, stored(engine, both.replace("scale(float*)", "void scale<int=2>(int*)"))))
    assert page.count("\nscale<int=2>  ") == page.count("\nscale<int=4>  ") == 1
    assert "  scale<int=2>: the export has no duration" in page
    assert "  scale<int=4>: the export has no duration" in page


def test_a_launch_whose_kernel_has_means_is_not_called_unknown(engine: Engine) -> None:
    page = run_text.run(views.run(engine, stored(engine, METRICS, TRACE)))
    assert "1 launch without potential" in page  # the other kernel


def test_a_kernel_opens_as_a_mean_launch(engine: Engine) -> None:
    run_id = stored(engine, METRICS, TRACE)
    view = views.launch(engine, run_id, "scale")
    assert [one["launch"]["launches"] for one in view["launches"]] == [2]
    assert "mean of 2 launches of scale(float*)" in launch_text.launches(view)
    assert len(views.launch(engine, run_id, "other")["launches"]) == 1
    with pytest.raises(NotFoundError, match="no kernel"):
        views.launch(engine, run_id, "nothing of it")


def test_a_number_of_a_mean_leads_to_its_line(engine: Engine) -> None:
    rows = explain(engine, "sm_efficiency_fraction", stored(engine, METRICS, TRACE), "scale")["trace"]
    assert [(row["launch"], row["name"], row["value"]) for row in rows if row["name"]] == [
        ("scale", "sm_efficiency_fraction", 0.85)
    ]
    assert [(row["metric"], row["line"], row["file"]) for row in rows if not row["name"]] == [
        ("sm_efficiency", 5, "0.csv")
    ]


def test_models_of_a_mean_say_what_they_lack(engine: Engine) -> None:
    run_id = stored(engine, METRICS, TRACE)
    one = views.launch(engine, run_id, "scale")["launches"][0]
    assert {row["model"] for row in one["models"]["missing"]} >= {"mwp_cwp", "benefit", "throughput"}
    rows = store.select(engine, "v1_models", run_id=run_id, kernel_short="scale", model="mwp_cwp")
    assert {row["launch_id"] for row in rows} == {None}
    assert all("collect" in row["reason"] for row in rows if row["value"] is None)
    trace = explain(engine, "mwp_cwp", run_id, "scale")["trace"]
    assert {row["launch"] for row in trace if row["name"] == "n_comp"} == {"scale"}


@pytest.mark.skipif(not CORPUS.exists(), reason="no corpus of public files beside the checkout")
def test_backprop_on_a_k40(engine: Engine) -> None:
    """Its layer kernel halves the active threads of a reduction in shared memory with a stride: both are seen."""
    for name in ("gpu_trace", "prof_out"):
        path = CORPUS / f"leimingyu__magus__{name}.csv"
        with path.open("rb") as stream:
            pipeline.ingest(engine, stream, path.name, store.RunInfo(name="backprop"))
    view = views.run(engine, "backprop")
    assert view["potential"]["duration_ns"] == pytest.approx(487_604, abs=0.5)
    layer = next(row for row in view["means"] if row["kernel"] == "bpnn_layerforward_CUDA")["criteria"]
    assert layer["divergence"] == pytest.approx(0.6457, abs=5e-5)
    assert layer["shared_efficiency"] == pytest.approx(0.20887319, rel=1e-8)
