"""How far models were off on other kernels: what counts, what is left out, and when too little is known."""

import numpy as np
import pytest

from profsvc import store, views
from profsvc.reports.text.models.launch_models import model_lines
from profsvc.views.models.launch_models import side_by_side
from profsvc.views.models.past_errors import MIN_PAIRS, Pair, Record, kind_of, pairs_of, records

MODEL = "mwp_cwp"


def pairs(count, off, kind="memory", first=0):
    return [Pair(MODEL, f"k{first + n}", kind, 100.0, 100.0 * off) for n in range(count)]


def test_models_that_agree_with_each_other_and_are_wrong_have_a_large_typical_error():
    """Three models at 39.4 us for a measured 368 us agree within 1 %; the record says how far off they are."""
    found = records(pairs(MIN_PAIRS, 9.3), "another", "memory")
    assert found[MODEL]["factor"] == pytest.approx(9.3)
    assert found[MODEL]["low"] == pytest.approx(9.3)
    rows = [{"model": name, "quantity": "time_ns", "form": "consistent", "value": 39.4e3, "label": None, "reason": None}
            for name in ("mwp_cwp", "benefit", "throughput")]  # fmt: skip
    rows.append(rows[0] | {"model": "agreement", "quantity": "time_spread", "value": 1.01})
    page = "\n".join(model_lines(side_by_side(rows, 368e3, None, "a board", found), 368e3))
    assert "39.4 us    x0.11" in page
    assert "typical error x9.30" in page
    assert "agreement: the predicted times differ by x1.01" in page
    assert "uncertainty" not in page


def test_a_kernel_does_not_vouch_for_itself_and_counts_once_however_often_it_ran():
    many = [*pairs(MIN_PAIRS, 2.0), *[Pair(MODEL, "k0", "memory", 100.0, 5000.0)] * 50]
    assert records(many, "k0", "memory") == {}
    found = records([*many, Pair(MODEL, "new", "memory", 100.0, 200.0)], "k0", "memory")[MODEL]
    assert (found["kernels"], found["factor"]) == (MIN_PAIRS, pytest.approx(2.0))


def test_kernels_of_the_same_kind_count_where_there_are_enough():
    both = [*pairs(MIN_PAIRS, 2.0), *pairs(MIN_PAIRS - 1, 8.0, "compute", 100)]
    assert records(both, "x", "memory")[MODEL]["kind"] == "memory"
    mixed = records(both, "x", "compute")[MODEL]
    assert (mixed["kind"], mixed["kernels"]) == ("any kind", 2 * MIN_PAIRS - 1)
    assert mixed["low"] <= mixed["high"]
    assert records(both, "x", None)[MODEL]["kind"] == "any kind"
    assert records(pairs(MIN_PAIRS - 1, 2.0), "x", "memory") == {}


def test_with_too_few_other_kernels_the_uncertainty_is_said_to_be_unknown(demo):
    rows = store.select(demo, "v1_models", model=MODEL, quantity="time_ns", form="consistent")[:1]
    page = "\n".join(model_lines(side_by_side(rows, 1e5, None, "a board", {}), 1e5))
    assert "uncertainty unknown: too few other kernels were measured on a board" in page


def test_the_record_is_that_of_the_device_in_this_store(demo):
    found = pairs_of(demo, "NVIDIA H200")
    assert {pair.model for pair in found} == {"mwp_cwp", "benefit", "throughput"}
    assert len({pair.kernel for pair in found}) > 20
    assert pairs_of(demo, "a board that is not there") == ()
    (one,) = views.launch(demo, "h200", "7")["launches"]
    own = records(found, one["launch"]["kernel"], kind_of(one["potential"]["bound"]))
    assert {row["model"]: row["record"] for row in one["models"]["times"]} == own
    assert Record(demo).of(None, "k", "dram") == {}
    assert np.isfinite([row["factor"] for row in own.values()]).all()
