"""Ratios that cannot be true are not printed as answers, on any page."""

import re

import numpy as np
import pytest

from profsvc.analysis.models.timing import benefit
from profsvc.reports import ratios
from profsvc.reports.text import cells
from profsvc.reports.text.launches import details as launch_text
from profsvc.reports.text.models.accuracy import accuracy
from profsvc.reports.text.models.launch_models import model_lines
from profsvc.reports.text.models.what_if import what_if as what_if_text
from profsvc.reports.text.runs import run as run_text
from profsvc.views import launch, run
from profsvc.views.comparison import two_runs as compare
from profsvc.views.models import what_if as views
from profsvc.web.pages.rendering.filters import speedup

ABSURD = (2.0**53, float("inf"), 38341.0, 1e300)
FORBIDDEN = re.compile(r"inf(x|\u00d7|\b)|nan|[0-9]{5,}(\.[0-9]+)?[x\u00d7]|x[0-9]{5,}")


@pytest.mark.parametrize("value", ABSURD)
def test_no_writer_prints_a_ratio_that_cannot_be_true(value):
    written = [ratios.times(value), ratios.factor(value), ratios.change(value), speedup(value),
               cells.bounded(value, "LOWER_BOUND")]  # fmt: skip
    assert [one for one in written if FORBIDDEN.search(one)] == []
    assert all("1000" in one for one in written[:3])


@pytest.mark.parametrize("value", ABSURD)
def test_pages_of_launches_and_models_print_none(demo, value):
    view = launch(demo, "h200", "7")
    one = view["launches"][0]
    for name in ("speedup", "speedup_as_published", "speedup_ceiling"):
        one["potential"][name] = value
    for row in one["criteria"]:
        row["speedup"] = value
    for row in one["models"]["times"]:
        row |= {"ratio": value, "record": {"factor": value, "kernels": 9, "kind": "memory"}}
    one["models"]["agreement"] |= {"time_spread": value, "speedup_low": value, "speedup_high": value}
    page = launch_text.launches(view)
    assert "1000x+" in page
    assert not FORBIDDEN.search(page)
    assert not FORBIDDEN.search("\n".join(model_lines(one["models"], 1.0)))


@pytest.mark.parametrize("value", ABSURD)
def test_pages_of_runs_what_ifs_and_accuracies_print_none(demo, value):
    view = run(demo, "h200")
    for row in view["kernels"]:
        row |= {"potential": value, "ceiling": value}
    assert not FORBIDDEN.search(run_text.run(view))
    asked = views.what_if(demo, "h200", "saxpy")
    for row in asked["rows"]:
        row |= {"mwp_cwp_change": value, "throughput_change": value}
    assert not FORBIDDEN.search(what_if_text(asked))
    score = dict.fromkeys(("rank_correlation", "slope", "slope_low", "slope_high", "median_share"), 0.5)
    score |= dict.fromkeys(("within_10", "within_25", "within_50", "passed"), 0.5)
    score |= {"source": "profsvc", "kind": "overall", "criterion": "overall", "n": 9, "median_factor": value,
              "bias": 0.0, "constant": value, "constant_log_error": 40.0, "regressions": 0, "reason": None}  # fmt: skip
    page = accuracy({"project": None, "source": None, "acted": False, "best": False, "unchanged": False, "recorded": 9,
                     "counted": 9, "scored": 9, "left_out": {}, "common": [], "scores": [score]})  # fmt: skip
    assert not FORBIDDEN.search(page)
    assert compare.KERNELS


def test_a_benefit_of_all_but_a_trace_of_the_time_promises_nothing(launch_values):
    with np.errstate(all="ignore"):
        answers = {one.quantity: one for one in benefit(launch_values)}
    known = np.asarray(answers["speedup"].value)
    share = max(float(np.ravel(answers[f"B_{name}"].value)[0]) for name in ("itilp", "memlp", "fp", "serial"))
    assert share > 0.999
    assert np.isnan(known).all()


@pytest.fixture
def launch_values(demo):
    """Inputs of a launch whose time is nearly all serialization."""
    from profsvc import store
    from profsvc.views.models.launch_models import known_of

    one = next(row for row in store.select(demo, "v1_launches") if row["kernel_short"] == "saxpy")
    return known_of(demo, one).inputs().values | {"O_bank": np.asarray(1e25)}
