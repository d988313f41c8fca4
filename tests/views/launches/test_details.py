"""What the pages of launches, devices and explanations show: breakdowns, curves of devices, meanings of columns."""

import math

import numpy as np
import pytest

from profsvc import pipeline, specs, store, views
from profsvc.errors import DomainError, NotFoundError
from profsvc.reports.plots import characterization as characterization_plots
from profsvc.specs.metrics.breakdown import read_breakdown
from profsvc.specs.vocabulary.computed import read_computed
from profsvc.views.device import device
from profsvc.views.explain import runs as explain_runs
from profsvc.views.explain.numbers import explain
from profsvc.views.explain.quantities import quantity
from profsvc.views.launches.breakdown import breakdown
from tests.conftest import ROOT

MEASURED = ROOT / "fixtures" / "characterization" / "plain.csv"


@pytest.fixture(scope="module")
def launch_id(demo):
    return store.select(demo, "v1_launches", launch_index=3)[0]["launch_id"]


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    engine = store.open_store(str(tmp_path_factory.mktemp("measured") / "store.sqlite"), pooled=True)
    for project in ("lab", "other"):
        text = MEASURED.read_bytes().replace(b"0.97", b"0.88" if project == "other" else b"0.97")
        path = tmp_path_factory.mktemp(project) / "plain.csv"
        path.write_bytes(text)
        with path.open("rb") as stream:
            run = store.RunInfo(name="m", project=project)
            pipeline.ingest(engine, stream, path.name, run, files=store.blob_store_of(engine, free_bytes=1))
    yield engine
    engine.dispose()


def test_a_launch_is_broken_down_by_its_counters(demo, launch_id):
    found = breakdown(demo, launch_id)
    assert list(found) == list(specs.breakdown())
    stored = {row["counter"]: row["value"] for row in store.select(demo, "v1_counter_values", launch_id=launch_id)}
    for rows in found.values():
        assert rows
        assert all(row["value"] == stored[row["counter"]] for row in rows)
    assert sum(row["share"] for row in found["stalls"]) == pytest.approx(1.0)
    assert {"Long Scoreboard", "Barrier", "IMC Miss", "Not Selected"} <= {row["title"] for row in found["stalls"]}
    assert sum(row["value"] for row in found["stall_groups"]) == pytest.approx(1.0, abs=0.01)
    assert breakdown(demo, 1) == {section: [] for section in found}


@pytest.mark.parametrize(
    ("row", "match"),
    [("light,A,no_such,share", "counter must be"), ("light,A,dram_read_bytes,share", "is not a share"),
     ("night,A,ipc_sm,number", "section"), ("light,,ipc_sm,number", "title"), ("light,A,ipc_sm,luck", "kind")],
)  # fmt: skip
def test_a_wrong_row_of_the_breakdown_is_said(row, match):
    with pytest.raises(DomainError, match=match):
        read_breakdown(f"section,title,counter,kind\n{row}\n")


def test_every_entry_of_a_number_is_one_and_whole():
    for name, one in specs.computed().items():
        view, _, column = name.partition(".")
        columns = store.VIEWS.get(view, ("", {}))[1]
        is_of_view = view in store.VIEWS and (not column or column in columns)
        assert bool(one.meaning) != is_of_view, name
        assert set(one.of) <= set(columns), name
        if column:
            assert {"formula", "read"} & set(quantity(name)), name


def test_a_wrong_entry_of_a_number_is_named():
    for text, match in (
        ('["a.b"]\nluck = 1\n', "not known"), ('["a.b"]\nformula = ""\n', "missing"),
        ('["a.b"]\nformula = "x"\nread = "y"\n', "not both"),
        ('["a.b"]\nformula = "x"\nreference = "Nobody1900"\n', "not in references"),
    ):  # fmt: skip
        with pytest.raises(DomainError, match=match):
            read_computed(text)


def test_columns_are_explained_with_their_formula_and_source(demo):
    found = explain(demo, "v1_criteria.speedup", 1, None)
    assert found["formula"] == "1 / (1 - share + share value)"
    assert "Amdahl" in found["source"]
    rows = store.select(demo, "v1_criteria", run_id=1, launch_id=None, kernel=None)
    traced = [step["value"] for step in found["trace"] if step["name"] == "v1_criteria.speedup"]
    assert traced == [row["speedup"] for row in rows] != []
    assert explain(None, "v1_launches.grid_x", None, None)["meaning"]
    with pytest.raises(NotFoundError):
        explain(None, "v1_launches.nothing", None, None)


def test_one_launch_is_explained_to_its_line(demo, launch_id):
    trace = explain(demo, "divergence", 1, f"id:{launch_id}")["trace"]
    assert {row["launch"] for row in trace} == {3}
    assert any(row.get("line") == 6 and row["file"] == "ncu_raw.csv.gz" for row in trace)


def test_a_device_is_shown_with_sources_and_curves(measured):
    view = device(measured, "H200")
    by_name = {row["figure"]: row for row in view["figures"]}
    assert (by_name["sms"]["value"], by_name["dram_peak_bytes_per_s"]["unit"]) == (132, "byte/s")
    assert all(row["source"] for row in view["figures"])
    assert "datasheet" in by_name["dram_peak_bytes_per_s"]["source"]
    curve = next(one for one in view["curves"] if one["quantity"] == "F_DRAMThr")
    assert curve["saturated"] == 0.92  # the median of three repeats
    assert [row["x"] for row in curve["rows"]] == [4096, 16384, 65536, 65536, 65536]
    line = dict(map(tuple, curve["curve"]))
    assert line[65536.0] == pytest.approx(0.92)
    assert np.all(np.diff(list(line.values())) >= 0)
    assert [(one["title"], one["cycles"]) for one in view["costs"]] == [("dram load", 0.0141), ("integer", 0.5)]


def test_a_project_sees_what_was_measured_in_it(measured):
    def arithmetic(project):
        curves = device(measured, "NVIDIA H200", project)["curves"]
        return [one["saturated"] for one in curves if one["quantity"] == "F_ArithThr:fp32"]

    assert (arithmetic("lab"), arithmetic("other"), arithmetic(None)) == ([0.97], [0.88], [0.88])
    with pytest.raises(NotFoundError, match="did you mean"):
        device(measured, "NVIDIA H2000")


def test_a_curve_is_drawn(measured):
    for curve in device(measured, "NVIDIA H200")["curves"]:
        svg = characterization_plots.draw(curve)
        assert svg == characterization_plots.draw(curve)
        assert b"saturated" in svg
        assert characterization_plots.draw(curve, "png", dark=True).startswith(b"\x89PNG")


def test_advice_of_a_run_is_ranked_by_the_time_it_saves(demo):
    found = views.advice_of_run(views.run(demo, "h200", 1))
    savings = [hint["saving_fraction"] for hint in found if hint["kind"] == "saving"]
    assert savings == sorted(savings, reverse=True)
    assert savings
    assert found[-1]["kind"] == "limit"


@pytest.mark.parametrize(
    ("name", "part"), [("potential", "speedup"), ("v1_potential.speedup_ceiling", "speedup_ceiling")]
)
def test_a_potential_of_a_run_is_the_sum_of_its_launches(demo, name, part):
    whole, *parts = explain_runs.run_steps(demo, name, 1)
    launches, more = explain_runs.longest(demo, name, 1)
    assert more
    assert len(launches) == explain_runs.MAX_LAUNCHES
    stored = {row["launch_id"]: row for row in store.select(demo, "v1_potential", run_id=1)}
    assert all(one["value"] == stored[one["launch_id"]][part] for one in launches)
    times = [one["duration_ns"] for one in launches]
    assert times == sorted(times, reverse=True)
    of_launches = [row for row in stored.values() if row["launch_id"]]
    total = sum(row["duration_ns"] for row in of_launches)
    rest = sum(row["duration_ns"] / (row[part] or math.inf) for row in of_launches)
    assert whole["value"] == pytest.approx(total / rest)
    assert [one["value"] for one in parts] == [stored[None]["duration_ns"], stored[None]["ideal_ns"]]


def test_a_criterion_of_a_run_is_the_mean_of_its_launches(demo):
    whole, *parts = explain_runs.run_steps(demo, "divergence", 1)
    launches, _ = explain_runs.longest(demo, "divergence", 1)
    stored = {row["launch_id"]: row for row in store.select(demo, "v1_criteria", run_id=1, criterion="divergence")}
    assert {one["name"]: one["value"] for one in [whole, *parts]} == {
        "divergence": stored[None]["value"],
        "v1_criteria.share": stored[None]["share"],
        "v1_criteria.speedup": stored[None]["speedup"],
    }
    assert [one["value"] for one in launches] == [stored[one["launch_id"]]["value"] for one in launches]
    assert explain(demo, "divergence", 1, None)["trace"][: 1 + len(parts)] == [whole, *parts]


@pytest.mark.parametrize("name", ["host_sync", "dram_read_bytes", "mwp_cwp", "v1_runs.launches"])
def test_what_is_no_sum_over_launches_has_no_part_of_a_run(demo, name):
    assert explain_runs.run_steps(demo, name, 1) == []
