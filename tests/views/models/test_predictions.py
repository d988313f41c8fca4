"""What was predicted for a run, what another run achieved, and how good the predictions are on the whole."""

from pathlib import Path

import pytest
from scipy.stats import spearmanr
from sqlalchemy import text

from profsvc import pipeline, store
from profsvc.analysis.changes.kernels.changed_kernels import ChangeVerdict
from profsvc.errors import NotFoundError
from profsvc.reports.plots import models as model_plots
from profsvc.reports.text.comparison import two_runs as comparison
from profsvc.reports.text.models import accuracy as accuracy_text
from profsvc.store.connection.transactions import writing
from profsvc.views.comparison import two_runs as side_by_side
from profsvc.views.models import predictions
from tests.benchmarks.potential import family_of
from tests.inputs.uploads import ingest_all
from tests.reports.plots.test_power import words

HELD_OUT = Path(__file__).parents[3] / "fixtures" / "held_out"


@pytest.fixture(scope="module")
def held(tmp_path_factory):
    """A store with kernels of 19 families, profiled once, with the tool's own rules; each is compared with the best."""
    engine = store.open_store(str(tmp_path_factory.mktemp("held") / "store.sqlite"), pooled=True)
    names = ("ncu_raw_base.csv.gz", "ncu_details.csv.gz")
    ingest_all(engine, [((HELD_OUT / name).read_bytes(), name) for name in names], store.RunInfo(name="held"))
    yield engine
    engine.dispose()


@pytest.fixture(scope="module")
def became(held):
    """Each version of a family but the best -> the best."""
    families: dict[str, dict[str, float]] = {}
    for row in store.select(held, "v1_launches", same_as=None):
        families.setdefault(family_of(row["kernel_short"]), {})[row["kernel_short"]] = row["duration_ns"]
    return {
        name: best
        for versions in families.values()
        for best in [min(versions, key=lambda name: versions[name])]
        for name in versions
        if name != best
    }


@pytest.fixture(scope="module")
def recorded(held, became):
    return predictions.record(held, side_by_side.compare(held, "held", "held", became))


def test_predictions_of_profsvc_and_of_the_tool_are_recorded(held, became, recorded):
    rows = store.select(held, "v1_predictions")
    whole = [row for row in rows if row["kind"] in ("overall", "ceiling")]
    assert (recorded["recorded"], recorded["scored"]) == (len(rows), len(whole))
    assert recorded["reasons"] == [f"single criteria, models and rules: {store.PARTIAL_REASON}"]
    kinds = {(row["source"], row["kind"]) for row in rows}
    assert {("profsvc", "overall"), ("profsvc", "ceiling"), ("profsvc", "criterion"), ("ncu", "overall"),
            ("ncu", "global"), ("ncu", "local")} <= kinds  # fmt: skip
    overall = [row for row in rows if (row["source"], row["criterion"]) == ("profsvc", "overall")]
    assert len(overall) == len(became)
    raw = {row["launch_id"] for row in store.select(held, "v1_launches", upload_id=1)}
    known = {row["kernel"]: row for row in store.select(held, "v1_potential") if row["launch_id"] in raw}
    for row in overall:
        assert row["predicted"] == pytest.approx(known[row["kernel_before"]]["speedup"])
        ratio = known[row["kernel_before"]]["duration_ns"] / known[row["kernel_after"]]["duration_ns"]
        assert row["achieved"] == pytest.approx(ratio)
        assert (row["matched_by"], row["same_work"], row["device"]) == ("map", "map", "NVIDIA H200")


def test_a_rule_that_is_silent_on_a_launch_saves_nothing_there(held, recorded):
    rules = [row for row in store.select(held, "v1_rules", kind="global") if row["estimated_saving_fraction"]]
    best: dict[str, float] = {}
    for rule in rules:
        best[rule["kernel"]] = max(best.get(rule["kernel"], 0.0), rule["estimated_saving_fraction"])
    found = store.select(held, "v1_predictions", source="ncu", kind="overall")
    assert found
    for row in found:
        assert row["predicted"] == pytest.approx(1 / (1 - best[row["kernel_before"]]))
        assert (row["analysis_version"], row["value_before"]) == (None, None)


def test_the_same_pair_again_changes_nothing(held, became, recorded):
    def rows():
        return [{**row, "prediction_id": 0, "made_at": ""} for row in store.select(held, "v1_predictions")]

    before = rows()
    assert predictions.record(held, side_by_side.compare(held, "held", "held", became)) == recorded
    assert rows() == before


@pytest.fixture(scope="module")
def profiled_again(held, recorded, tmp_path_factory):
    """The same program profiled once more on another board, and what the same source becomes with fast arithmetic."""
    file = tmp_path_factory.mktemp("again") / "store.sqlite"
    store.backup(held, file)
    engine = store.open_store(str(file), pooled=True)
    for name in ("again", "fast_math"):
        with (HELD_OUT / f"ncu_raw_base_{name}.csv.gz").open("rb") as stream:
            pipeline.ingest(engine, stream, name, store.RunInfo(name=name))
    yield engine
    engine.dispose()


@pytest.fixture
def again(profiled_again, tmp_path):
    """A copy of it, to be changed."""
    store.backup(profiled_again, tmp_path / "store.sqlite")
    engine = store.open_store(str(tmp_path / "store.sqlite"), pooled=True)
    yield engine
    engine.dispose()


def test_a_run_again_of_the_same_program_is_no_attempt(again):
    view = side_by_side.compare(again, "held", "again")
    made = predictions.record(again, view)
    assert (made["scored"], len(made["reasons"])) == (0, 61 + 1)
    assert made["recorded"] > 61
    rows = store.select(again, "v1_predictions", name_after="again")
    whole = [row for row in rows if row["kind"] not in store.PARTIAL_KINDS]
    assert {(row["scored"], row["changed"], row["left_out"]) for row in whole} == {(0, 0, "unchanged")}
    assert {row["reason"] for row in whole} == {
        "instructions, traffic and launch configuration are the same in both runs"
    }
    # The profiler's own noise is all that came of it.
    assert all(0.9 < row["achieved"] < 1.1 for row in rows)
    before, after = (predictions.accuracy(again, unchanged=unchanged) for unchanged in (False, True))
    parts = before["left_out"].pop("part")
    assert before["left_out"] == {"not comparable": 0, "bound": 0, "unchanged": len(whole), "unknown": 0}
    assert before["recorded"] - before["counted"] == len(whole) + parts
    assert after["left_out"] == {"not comparable": 0, "bound": 0, "part": parts}
    assert after["counted"] == after["recorded"] - parts
    page = accuracy_text.accuracy(before)
    assert f"excluded: {len(whole)} of kernels that are identical in both runs (--unchanged counts them)" in page
    assert "of kernels that are identical" not in (page := accuracy_text.accuracy(after))
    assert f"excluded: {parts} of single criteria, models and rules" in page
    assert page.startswith("predictions: also unchanged kernels\n")


def test_regressions_are_counted_and_a_share_of_nothing_is_nothing(again):
    predictions.record(again, side_by_side.compare(again, "held", "again"))
    view = predictions.accuracy(again, unchanged=True)
    (ours,) = [row for row in view["scores"] if (row["source"], row["criterion"]) == ("profsvc", "overall")]
    slower = [row for row in view["pairs"] if row["source"] == "profsvc" and row["outcome"] == "regression"]
    assert ours["regressions"] == len(slower)
    assert all(row["after_ns"] > row["before_ns"] and row["achieved"] < 1 for row in slower)
    assert all(row["achieved_share"] is None or row["achieved_share"] < 0 for row in slower)
    still = [row for row in view["pairs"] if row["outcome"] == "no change"]
    assert still
    assert {row["achieved_share"] for row in still} <= {0.0, None}
    assert "regressions" in accuracy_text.accuracy(view)


def test_of_a_program_that_changed_the_kernels_count_that_did(again):
    view = side_by_side.compare(again, "held", "fast_math")
    predictions.record(again, view)
    rows = store.select(again, "v1_predictions", name_after="fast_math", criterion="overall", source="profsvc")
    moved = {row["kernel_after"].partition("(")[0] for row in rows if row["scored"]}
    # Those that divide, take roots, exponentials or logarithms, or round doubles to floats.
    assert moved == {"softmax_naive", "softmax_warp", "softmax_online_f4", "divide_precise", "divide_fast",
                     "fp64_literals", "nbody_global", "nbody_shared", "nbody_shared_u4"}  # fmt: skip
    assert {row["left_out"] for row in rows if not row["scored"]} == {"unchanged"}


def test_what_is_only_a_bound_is_recorded_and_does_not_count(became, tmp_path):
    engine = store.open_store(str(tmp_path / "store.sqlite"), pooled=True)
    with (HELD_OUT / "ncu_details.csv.gz").open("rb") as stream:
        pipeline.ingest(engine, stream, "details.csv.gz", store.RunInfo(name="details", project="bounds"))
    made = predictions.record(engine, side_by_side.compare(engine, "details", "details", became))
    assert not store.select(engine, "v1_predictions", kind="overall", source="profsvc")  # without counts no number
    with writing(engine) as connection:  # as if a part of the work had been counted
        connection.execute(text("UPDATE potential SET speedup = 2 WHERE speedup IS NULL"))
    flags = {row["kernel"]: row["flags"] for row in store.select(engine, "v1_potential") if row["kernel"]}
    made = predictions.record(engine, side_by_side.compare(engine, "details", "details", became))
    rows = store.select(engine, "v1_predictions")
    bounds = [row for row in rows if row["left_out"] == "bound"]
    ours = [row for row in rows if (row["source"], row["criterion"]) == ("profsvc", "overall")]
    assert len(ours) == len(became)
    assert all(row["scored"] == ("_BOUND" not in (flags[row["kernel_before"]] or "")) for row in ours)
    assert 0 < len(bounds) < len(rows)
    assert not {row["source"] for row in bounds} - {"profsvc"}
    parts = [row for row in rows if row["left_out"] == "part"]
    assert {row["reason"] for row in parts} == {store.PARTIAL_REASON}
    assert (made["recorded"], made["scored"]) == (len(rows), len(rows) - len(bounds) - len(parts))
    assert all("lacks counters" in row["reason"] for row in bounds)
    assert any("lacks counters" in reason for reason in made["reasons"])
    view = predictions.accuracy(engine, "bounds", unchanged=True)
    left_out = {"not comparable": 0, "bound": len(bounds), "part": len(parts)}
    assert (view["left_out"], view["scored"]) == (left_out, made["scored"])
    assert f"excluded: {len(bounds)} where the export gives only a bound\n" in accuracy_text.accuracy(view)
    engine.dispose()


def test_a_run_compared_with_itself_predicts_nothing(demo):
    found = predictions.record(demo, side_by_side.compare(demo, "h200", "h200"))
    assert found == {"recorded": 0, "scored": 0, "reasons": []}


def test_scores_are_those_of_another_road(held, recorded):
    view = predictions.accuracy(held)
    (ours,) = (row for row in view["scores"] if (row["source"], row["criterion"]) == ("profsvc", "overall"))
    rows = store.select(held, "v1_predictions", source="profsvc", criterion="overall")
    columns = [[row[name] for row in rows] for name in ("predicted", "achieved")]
    assert ours["rank_correlation"] == pytest.approx(spearmanr(*columns).statistic)
    assert ours["n"] == len(rows) == len([row for row in view["pairs"] if row["source"] == "profsvc"
                                          and row["criterion"] == "overall"])  # fmt: skip
    assert 0.7 < ours["rank_correlation"] < 0.9
    assert ours["median_log_error"] < 0.2 < ours["constant_log_error"]
    assert view["recorded"] == len(store.select(held, "v1_predictions"))
    assert view["counted"] == view["scored"] == view["recorded"] - view["left_out"]["part"]
    assert {row["kind"] for row in view["scores"]} == {"overall", "ceiling"}
    assert {(row["source"], row["n"]) for row in view["common"]} == {("ncu", 42), ("profsvc", 42)}


def test_few_pairs_get_no_score(held, recorded):
    view = predictions.accuracy(held, acted=True)
    few = [row for row in view["scores"] if row["n"] < 8]
    assert few
    for row in few:
        assert row["reason"] == f"{row['n']} of the 8 pairs required for a score"
        scores = set(predictions.SCORES) - {"source", "kind", "criterion", "n", "runs", "regressions", "reason"}
        assert {row[name] for name in scores} == {None}


def test_criteria_that_improved_can_be_scored_alone(held, recorded):
    every, acted = (predictions.accuracy(held, acted=acted) for acted in (False, True))
    counts = [{row["criterion"]: row["n"] for row in view["scores"] if row["kind"] == "criterion"}
              for view in (every, acted)]  # fmt: skip
    assert counts[0] == {}
    rows = store.select(held, "v1_predictions", criterion="divergence")
    improved = [row for row in rows if row["value_after"] is not None
                and row["value_after"] - row["value_before"] >= 0.05]  # fmt: skip
    assert counts[1]["divergence"] == len(improved)
    others = [{row["criterion"] for row in view["scores"] if row["kind"] != "criterion"} for view in (every, acted)]
    assert others[0] == others[1]


def test_of_several_versions_the_best_can_stand_for_all():
    same = {"run_before": 1, "kernel_before": "k", "source": "s", "kind": "overall", "criterion": "overall"}
    rows = [{**same, "run_after": after, "achieved": achieved} for after, achieved in ((2, 1.5), (3, 2.5), (4, 2.0))]
    assert [row["run_after"] for row in predictions._fastest(rows)] == [3]


def test_sources_and_projects_are_chosen(held, recorded):
    assert {row["source"] for row in predictions.accuracy(held, source="ncu")["scores"]} == {"ncu"}
    assert predictions.accuracy(held, source="ncu")["common"] == []
    assert predictions.accuracy(held, project="nothing")["scores"] == []
    with pytest.raises(NotFoundError, match="no source of predictions named 'nuc'; did you mean 'ncu'"):
        predictions.accuracy(held, source="nuc")


OLD = {"least_threads": 64.0, "most_threads": 64.0, "unknown": 0, "device": "A", "other_device": "A", "tool": "ncu",
       "other_tool": "ncu"}  # fmt: skip


@pytest.mark.parametrize(
    ("by", "changes", "same", "reason"),
    [
        ("name", {}, "threads", None),
        ("map", {"most_threads": 128.0}, "map", None),
        ("name", {"most_threads": 128.0}, None, "a launch has 64 threads before and 64 to 128 threads after"),
        ("name", {"unknown": 1}, None, "64 threads before and an unknown number of threads after"),
        ("map", {"device": "B", "other_device": "B"}, "map", "it ran on A before and on B after"),
        ("name", {"other_device": "B"}, "threads", "it ran on A before and on A and B after"),
        ("name", {"tool": "nsys", "other_tool": "nsys"}, "threads", "ncu timed it before, nsys after"),
    ],
)
def test_only_the_same_work_on_the_same_device_counts(by, changes, same, reason):
    judged = predictions._judged({"matched_by": by}, OLD, OLD | changes, ChangeVerdict(True, "why"))
    assert (judged["same_work"], judged["scored"], judged["device"]) == (same, int(reason is None), "A")
    assert judged["reason"] is None if reason is None else reason in judged["reason"]


def test_kernels_whose_work_is_unknown_in_both_do_not_count():
    work = predictions._work({}, "k", {"device": None})
    judged = predictions._judged({"matched_by": "name"}, work, work, ChangeVerdict(None, "nothing says"))
    assert (judged["changed"], judged["changed_because"]) == (None, "nothing says")
    assert (judged["same_work"], judged["scored"]) == (None, 0)
    assert "an unknown number of threads before and an unknown number of threads after" in judged["reason"]


def test_the_page_says_what_the_scores_mean(held, recorded):
    page = accuracy_text.accuracy(predictions.accuracy(held, acted=True))
    assert "comparison on the pairs that all sources predicted" in page
    assert "too few" in page
    assert page.count("\n") > 20
    nothing = accuracy_text.accuracy(predictions.accuracy(held, "nothing", "ncu", acted=True, best=True))
    assert nothing.splitlines() == [
        "predictions: project nothing, source ncu, criteria that improved, best version of each",
        "no predictions saved; compare a run with one after a change: profsvc compare BEFORE AFTER",
    ]


def test_a_comparison_says_what_was_recorded_and_why_some_does_not_count(held, became):
    view = side_by_side.compare(held, "held", "held", became)
    reasons = [f"k{number}: another device" for number in range(7)]
    page = comparison.comparison(view | {"predictions": {"recorded": 9, "scored": 2, "reasons": reasons}})
    assert "9 predictions saved; 2 scored: profsvc report accuracy\n  not scored: k0: another device" in page
    assert page.endswith("  and 2 more: -o json\n")
    assert "predictions saved" not in comparison.comparison(view)


def test_the_picture_shows_the_sources_with_their_error(held, recorded):
    view = predictions.accuracy(held)
    svg = model_plots.calibration(view)
    shown = words(svg)
    assert {"predicted speedup", "achieved speedup"} <= set(shown)
    assert any("profsvc, 42 pairs, median error x1.10" in text for text in shown)
    assert svg == model_plots.calibration(view)
    assert model_plots.calibration(view, dark=True) != svg
    assert words(model_plots.calibration(predictions.accuracy(held, "nothing")))
