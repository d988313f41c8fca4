"""The dicts that the pages and the command line print, on the run of 34 launches."""

import json

import pytest
from sqlalchemy import Engine

from profsvc import specs, store, views
from profsvc.errors import NotFoundError, UsageError
from profsvc.views.explain.numbers import explain


@pytest.fixture(scope="module")
def run(demo: Engine) -> dict:
    return views.run(demo, "h200")


def test_a_run_can_be_written_as_json(run):
    assert json.loads(json.dumps(run, allow_nan=False)) == run


def test_a_run_has_every_launch_in_order_with_what_the_views_say(demo, run):
    launches = {row["launch_id"]: row for row in store.select(demo, "v1_launches")}
    potential = {row["launch_id"]: row for row in store.select(demo, "v1_potential")}
    assert [row["launch_id"] for row in run["launches"]] == sorted(launches)
    assert [row["launch"] for row in run["launches"]] == list(range(34))
    for row in run["launches"]:
        launch, bound = launches[row["launch_id"]], potential[row["launch_id"]]
        assert row["duration_us"] == launch["duration_ns"] / 1e3
        assert (row["kernel"], row["kernel_full"]) == (launch["kernel_short"], launch["kernel"])
        assert (row["potential"], row["ceiling"]) == (bound["speedup"], bound["speedup_ceiling"])
        is_flawed = row["causes"][0]["kind"] == "flaw"
        assert (bound["speedup_low"] is None) == (bound["speedup_high"] is None) == (not is_flawed)
        assert not is_flawed or 1 < bound["speedup_low"] < bound["speedup"] < bound["speedup_high"]
        assert row["reason"] is None
        assert row["bound"] == views.titles_and_hints()[bound["bound"]]["title"]
        assert row["first"]


def test_a_run_has_its_own_criteria_uploads_and_potential(demo, run):
    order = [entry["name"] for entry in specs.criteria()["criterion"]]
    assert [row["criterion"] for row in run["criteria"]] == order
    assert all(row["launch_id"] is None for row in run["criteria"])
    assert run["potential"]["launch_id"] is None
    assert [upload["file_name"] for upload in run["uploads"]] == ["ncu_raw.csv.gz"]
    assert (run["run"]["name"], run["rejects"]) == ("h200", 0)


@pytest.mark.parametrize("name", ["h200", "1", "demo/h200"])
def test_a_run_has_three_names(demo, run, name):
    assert views.run(demo, name) == run


@pytest.mark.parametrize("index", [0, 14, 17, 33])
def test_an_opened_launch_has_what_the_views_say(demo, run, index):
    opened = views.launch(demo, "h200", str(index))
    assert json.loads(json.dumps(opened, allow_nan=False)) == opened
    (one,) = opened["launches"]
    key = one["launch"]["launch_id"]
    assert one["launch"] == store.select(demo, "v1_launches", launch_id=key)[0]
    criteria = store.select(demo, "v1_criteria", launch_id=key)
    assert {row["criterion"]: row["value"] for row in one["criteria"]} == {r["criterion"]: r["value"] for r in criteria}
    assert [row["criterion"] for row in one["of_run"]] == ["host_sync"]
    assert len(one["criteria"]) == len(criteria)
    order = list(views.titles_and_hints())
    assert [row["criterion"] for row in one["criteria"]] == sorted(
        (row["criterion"] for row in criteria), key=order.index
    )
    assert [unit["quantity"] for unit in one["units"]] == [unit["name"] for unit in specs.criteria()["unit"]]
    assert one["potential"] == store.select(demo, "v1_potential", launch_id=key)[0]
    savings = [hint["saving_fraction"] for hint in one["advice"] if hint["kind"] == "saving"]
    assert savings == sorted(savings, reverse=True)
    most = 1 - 1 / one["potential"]["speedup"]
    assert all(0 < saving <= most + 1e-12 for saving in savings)
    summary = run["launches"][index]
    assert one["first"] == summary["first"] != ""
    # Where several causes share the loss, the sentence names them, largest first, and not the limit above them.
    named = next(
        hint for hint in one["advice"] if hint["kind"] == "saving" or "No single cause" not in summary["first"]
    )
    assert named["title"].lower() in summary["first"].lower()


def test_names_choose_launches_exact_before_partial(demo):
    assert len(views.launches_of(demo, "h200")[0]) == 34
    assert len(views.launches_of(demo, "h200", "divergent")[0]) == 6  # and not reduce_v1_divergent, which holds it
    assert len(views.launches_of(demo, "h200", "reduce_")[0]) == 7
    with pytest.raises(NotFoundError, match="did you mean 'saxpy'"):
        views.launches_of(demo, "h200", "saxpi")


def test_explain_answers_for_every_name_it_may_meet(demo):
    for name in [*views.titles_and_hints(), "potential", *specs.counters()]:
        view = explain(None, name, None, None)
        assert view["name"] == name
        assert view["meaning"]
        json.dumps(view, allow_nan=False)


def test_explain_walks_every_criterion_to_a_line(demo):
    for criterion in store.select(demo, "v1_criteria", launch_id=store.select(demo, "v1_launches")[3]["launch_id"]):
        trace = explain(demo, criterion["criterion"], "h200", "3")["trace"]
        assert trace[0]["value"] == criterion["value"]
        assert any(row.get("line") for row in trace) == (criterion["value"] is not None)
        json.dumps(trace, allow_nan=False)


def test_explain_needs_a_store_for_a_run():
    with pytest.raises(UsageError):
        explain(None, "divergence", "h200", None)


def test_devices_and_readers_are_named(demo):
    assert [row["name"] for row in views.devices(demo)] == ["NVIDIA H200"]
    assert len(views.catalogue()) == len(specs.devices())
    for row in views.readers():
        assert views.reader(row["format"]).startswith(row["what"])
    json.dumps([views.devices(demo), views.catalogue(), views.readers()], allow_nan=False)
