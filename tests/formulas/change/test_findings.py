"""What becomes of a finding: every transition, and how often the evidence errs."""

import itertools

import numpy as np
import pytest

from profsvc.formulas.change.findings import STATES, evidence, next_state
from profsvc.formulas.numerics.flags import Flag


def test_every_transition() -> None:
    expected = {
        ("new", False, False): "new",
        ("new", True, False): "confirmed",
        ("new", False, True): "fixed",
        ("new", True, True): "fixed",
        ("confirmed", False, True): "fixed",
        ("confirmed", True, True): "fixed",
    }
    for state, holds, returned in itertools.product(STATES, (False, True), (False, True)):
        assert next_state(state, holds, returned) == expected.get((state, holds, returned), state)
        for said in STATES:
            assert next_state(state, holds, returned, said) == said


@pytest.mark.parametrize("wrong", [("old", None), ("new", "gone")])
def test_unknown_states(wrong: tuple[str, str | None]) -> None:
    with pytest.raises(ValueError, match=r"no state '(old|gone)'; allowed: 'new', 'confirmed', 'accepted', 'fixed'"):
        next_state(wrong[0], holds=False, returned=False, said=wrong[1])


def test_evidence_errs_as_seldom_as_it_says() -> None:
    rng = np.random.default_rng(5)
    group = np.repeat(np.arange(1000), 12)
    lasting = evidence(rng.standard_normal(12000) + 2.0, 0.0, 2.0, 1.0, group)
    gone = evidence(rng.standard_normal(12000), 0.0, 2.0, 1.0, group)
    assert lasting.holds.mean() >= 0.93
    assert gone.returned.mean() >= 0.93
    assert not (lasting.holds & lasting.returned).any()
    assert (gone.log_odds < 0).mean() > 0.99


def test_a_change_that_lasted_and_then_went() -> None:
    on, off = [2.0, 2.1, 1.9] * 5, [0.0, 0.1, -0.1, 0.0]
    assert evidence(on, 0.0, 2.0, 1.0).holds
    assert evidence(on + off, 0.0, 2.0, 1.0).returned
    assert not evidence(on + off[:1], 0.0, 2.0, 1.0).returned


@pytest.mark.parametrize("spike", [1e9, -1e9])
def test_one_wild_value_decides_nothing(spike: float) -> None:
    alone = evidence([spike], 0.0, 2.0, 1.0)
    assert not alone.holds
    assert not alone.returned
    later = evidence([2.0, 2.0, 2.0, spike, 2.0], 0.0, 2.0, 1.0)
    assert later.holds
    assert not later.returned


@pytest.mark.parametrize("height", [8.0, 50.0])
def test_half_of_the_way_back_is_no_return(height: float) -> None:
    """There each level is as probable as the other, and the sum of the evidence comes to a bound by chance."""
    rng = np.random.default_rng(7)
    x = np.tile(np.r_[np.full(6, height), np.full(20, height / 2)], (300, 1)) + rng.standard_normal((300, 26))
    back = np.stack([
        evidence(x[:, :nights].ravel(), 0.0, height, 1.0, np.repeat(np.arange(300), nights)).returned
        for nights in range(7, 27)
    ])  # fmt: skip
    assert back.any(axis=0).mean() <= 0.01
    x[:, 6:] -= height / 2
    assert evidence(x[:, :11].ravel(), 0.0, height, 1.0, np.repeat(np.arange(300), 11)).returned.mean() > 0.95


def test_downwards_missing_and_impossible() -> None:
    down = evidence([1.0, np.nan, 1.0, 1.0], 2.0, 1.0, 0.3)
    assert down.holds
    nothing = evidence([], 1.0, 2.0, 1.0)
    assert (float(nothing.log_odds), bool(nothing.holds), bool(nothing.returned)) == (0.0, False, False)
    for before, after, sd in ((1.0, 1.0, 1.0), (np.nan, 1.0, 1.0), (1.0, 2.0, 0.0), (1.0, 2.0, np.nan)):
        odd = evidence([1.0, 2.0], before, after, sd)
        assert np.isnan(odd.log_odds)
        assert odd.flags == Flag.INPUT_SUSPECT
        assert not odd.holds
        assert not odd.returned
