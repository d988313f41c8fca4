"""``profsvc.open``: a store and a service give the same results as frames, and show themselves in a notebook."""

import shutil
from pathlib import Path

import pandas as pd
import pytest

import profsvc
from profsvc import store
from profsvc.api import Run
from profsvc.errors import NotFoundError, UsageError
from profsvc.web.http.state import AppState
from tests.conftest import ROOT
from tests.inputs.uploads import ingest_all
from tests.store.conftest import open_files
from tests.views import power_logs
from tests.web.conftest import looked_at, running

__all__ = ["looked_at"]
TABLES = [name for name, value in vars(Run).items() if isinstance(value, property) and name != "info"]
FILES = {
    "traced": ("nvprof/gpu_trace.csv", "nsys_stats/several_reports.csv"),
    "profiled": ("ncu_details/h200_three_launches.csv.gz",),
}


@pytest.fixture(scope="module")
def both(looked_at, demo):
    """The same store opened as a file and over HTTP."""
    with profsvc.open(store.address(demo)) as local, profsvc.open(looked_at.url) as service:
        yield local, service


@pytest.mark.parametrize("name", TABLES)
def test_a_table_of_a_run_is_the_same_from_both(both, name):
    local, service = (getattr(one.run("h200"), name) for one in both)
    pd.testing.assert_frame_equal(local, service)
    assert len(local) or name == "power"
    assert len(local.columns) > 5


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    """A store with a power log, a trace and a profile with rules, as a file and over HTTP."""
    file = tmp_path_factory.mktemp("others") / "store.sqlite"
    engine = store.open_store(str(file), pooled=True)
    power_logs.fill(engine, "board")
    for run, names in FILES.items():
        contents = [((ROOT / "fixtures" / name).read_bytes(), Path(name).name) for name in names]
        ingest_all(engine, contents, store.RunInfo(name=run, device="NVIDIA H200"))
    site = AppState(engine, store.blob_store_of(engine))
    with running(site) as service, profsvc.open(file) as local, profsvc.open(service.url) as remote:
        yield local, remote
    engine.dispose()


@pytest.mark.parametrize("run", ["board", *FILES])
def test_all_of_a_run_is_the_same_from_both(others, run):
    local, remote = (one.run(run) for one in others)
    assert local.info == remote.info
    assert repr(local) == repr(remote)
    for name in TABLES:
        pd.testing.assert_frame_equal(getattr(local, name), getattr(remote, name))
    assert len(local.power) if run == "board" else len(local.launches)


def test_every_view_is_the_same_from_both(others):
    filled = 0
    for view in store.VIEWS:
        frames = [one.table(view, limit=100) for one in others]
        pd.testing.assert_frame_equal(*frames)
        filled += len(frames[0]) > 0
    assert filled > 20
    kernels = [one.compare("traced", "profiled") for one in others]
    for name in ("kernels", "criteria", "only_before", "only_after"):
        pd.testing.assert_frame_equal(*(getattr(one, name) for one in kernels))


def test_runs_queries_and_comparisons_are_the_same(both):
    local, service = both
    for ask in (
        lambda one: one.runs(),
        lambda one: one.sql("select kernel_short, duration_ns from v1_launches where launch_index < :n", {"n": 5}),
        lambda one: one.compare("h200", "h200").kernels,
        lambda one: one.table("counters", launch_id=1_000_000_001),
    ):
        pd.testing.assert_frame_equal(ask(local), ask(service))
    assert local.explain("divergence") == service.explain("divergence")
    assert list(local.run("h200").causes["saving_ns"]) == sorted(local.run("h200").causes["saving_ns"], reverse=True)


def test_errors_are_the_same(both):
    for one in both:
        with pytest.raises(NotFoundError, match="no run named"):
            one.run("nothing like it")
        with pytest.raises(UsageError, match="more than"):
            one.sql("select a.launch_id from v1_launches a, v1_launches b, v1_launches c")
    with pytest.raises(UsageError, match="token"):
        profsvc.open("x.sqlite", token="psvc_")
    with pytest.raises(AttributeError):
        getattr(profsvc, "no_such_name")  # noqa: B009


def test_notebooks_show_tables(both):
    for one in both:
        for shown, text in ((one, "h200"), (one.run("h200"), "Shared memory bank conflicts"),
                            (one.compare("h200", "h200"), "gemm_naive")):  # fmt: skip
            html = shown._repr_html_()
            assert text in html
            assert "<table" in html
            assert "&lt;" in html


def test_the_file_stays_open_until_nobody_asks_any_more(empty, tmp_path):
    file = Path(shutil.copy(empty, tmp_path / "store.sqlite"))
    results = profsvc.open(file)
    results.runs()
    assert open_files(file)
    del results
    assert open_files(file) == []


def test_a_file_is_uploaded_into_a_store(tmp_path, profile_path):
    with profsvc.open(tmp_path / "store.sqlite") as results:
        said = results.upload(profile_path, run="mine")
        assert said["run_id"] == results.run("mine").info["run_id"]
        assert len(results.runs()) == 1


@pytest.fixture
def profile_path():
    from tests.web.conftest import PLAIN

    return PLAIN
