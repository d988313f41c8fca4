"""Random orders: valid ones only, all of them where each is as likely, and the same from one seed."""

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formulas.memory_hierarchy import RATE, UNIFORM, merge_order

orders = pytest.mark.parametrize("order", [RATE, UNIFORM])


def valid(run: tuple[int, ...], block: list[int], warp: list[int], epoch: list[int], slot: list[int]) -> bool:
    """Whether no reference comes before one that it must follow."""
    rows = [(slot[k], block[k], epoch[k], warp[k], k) for k in run]
    for i, (s, b, e, w, k) in enumerate(rows):
        for t, c, f, x, j in rows[i + 1 :]:
            same_warp = (b, w) == (c, x) and j < k
            barrier = b == c and f < e
            earlier_block = s == t and c < b
            if same_warp or barrier or earlier_block:
                return False
    return True


@orders
@given(data=st.data())
def test_every_order_is_valid(data: st.DataObject, order: str) -> None:
    rows = sorted(data.draw(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 2)), max_size=25)))
    block, warp, epoch = ([row[k] for row in rows] for k in range(3))
    slot = [b % 2 for b in block]
    drawn = merge_order(
        np.array(block, int), np.array(warp, int), np.array(epoch, int), np.array(slot, int), 3, 7, order
    )
    for run in drawn.tolist():
        assert sorted(run) == list(range(len(rows)))
        assert valid(tuple(run), block, warp, epoch, slot)


@pytest.mark.parametrize(
    ("warp", "epoch", "block"),
    [
        ([0, 0, 0, 1], [0] * 4, [0] * 4),
        ([0, 0, 1, 1, 1], [0, 1, 0, 0, 1], [0] * 5),
        ([0, 0, 1, 0], [0] * 4, [0, 0, 0, 1]),
    ],
)
def test_uniform_orders_are_as_likely_as_each_other(warp: list[int], epoch: list[int], block: list[int]) -> None:
    slot, n = block, len(warp)
    allowed = [run for run in permutations(range(n)) if valid(run, block, warp, epoch, slot)]
    seen = Counter(map(tuple, merge_order(block, warp, epoch, slot, runs=6000, seed=1, order=UNIFORM).tolist()))
    assert set(seen) == set(allowed)
    expected = 6000 / len(allowed)
    chi2 = sum((seen[run] - expected) ** 2 / expected for run in allowed)
    assert chi2 < len(allowed) - 1 + 4 * np.sqrt(2 * len(allowed))


def test_warps_of_one_rate_finish_by_their_length() -> None:
    """At one rate a warp ends when its references do; where orders are as likely, about when all end."""
    warp = np.repeat([0, 1], [50, 500])
    last = {
        order: np.mean([run.tolist().index(49) for run in merge_order(np.zeros(550, int), warp, runs=200, order=order)])
        for order in (RATE, UNIFORM)
    }
    assert 90 < last[RATE] < 110
    assert last[UNIFORM] > 500


@orders
def test_one_seed_gives_one_order(order: str) -> None:
    warp = np.repeat(np.arange(20), 10)
    one, again, other = (merge_order(np.zeros(200, int), warp, runs=2, seed=s, order=order) for s in (3, 3, 4))
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()
    assert (one[0] != one[1]).any()


def test_what_is_refused() -> None:
    assert merge_order(np.zeros(0, int), np.zeros(0, int), runs=3).shape == (3, 0)
    with pytest.raises(ValueError, match="do not lie by block, warp and epoch"):
        merge_order([1, 0], [0, 0])
    with pytest.raises(ValueError, match="do not lie by block, warp and epoch"):
        merge_order([0, 0], [0, 0], [1, 0])
    with pytest.raises(TypeError, match="warp has dtype float64"):
        merge_order([0], [0.5])
    with pytest.raises(ValueError, match="no form 'time'; allowed: 'rate', 'uniform'"):
        merge_order([0], [0], order="time")
