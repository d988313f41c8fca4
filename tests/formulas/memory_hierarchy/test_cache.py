"""Hits of a cache against one simulated reference by reference, and what more of it can do."""

from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formulas.memory_hierarchy import cache_sim, lru

references = st.lists(st.integers(0, 40), min_size=1, max_size=120)


def one_by_one(lines: list[int], sets: int, ways: int) -> list[bool]:
    held: list[OrderedDict[int, None]] = [OrderedDict() for _ in range(sets)]
    found = []
    for line in lines:
        own = held[line % sets]
        found.append(line in own)
        own[line] = None
        own.move_to_end(line)
        if len(own) > ways:
            own.popitem(last=False)
    return found


@pytest.mark.parametrize("few", [1, 8, 10**6], ids=["in step", "both", "by distance"])
@given(lines=references, sets=st.integers(1, 9), ways=st.integers(1, 9))
def test_hits_are_those_of_a_cache(lines: list[int], sets: int, ways: int, few: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lru, "MAX_PAIRWISE_REFERENCES", few)
        assert cache_sim(lines, sets, ways).tolist() == one_by_one(lines, sets, ways)


def test_a_long_trace_with_one_set_that_is_used_most() -> None:
    rng = np.random.default_rng(5)
    lines = np.where(rng.random(20000) < 0.4, rng.zipf(1.4, 20000) % 500 * 64, rng.integers(0, 3000, 20000))
    for ways in (2, 16):
        assert cache_sim(lines, 64, ways).tolist() == one_by_one(lines.tolist(), 64, ways)


@given(references, st.integers(1, 8), st.integers(1, 8))
def test_more_ways_never_lose_a_hit(lines: list[int], sets: int, ways: int) -> None:
    fewer, more = (cache_sim(lines, sets, w) for w in (ways, ways + 1))
    assert (more >= fewer).all()
    assert cache_sim(lines, 1, 41).sum() == len(lines) - len(set(lines))


@given(references, references)
def test_runs_and_caches_know_nothing_of_each_other(one: list[int], other: list[int]) -> None:
    n = min(len(one), len(other))
    both = cache_sim([one[:n], other[:n]], 4, 2)
    assert both.tolist() == [one_by_one(x[:n], 4, 2) for x in (one, other)]
    mixed = np.array([one[:n], other[:n]]).T.ravel()
    of = cache_sim(mixed, 4, 2, np.arange(2 * n) % 2)
    assert of.reshape(n, 2).T.tolist() == both.tolist()


def test_addresses_of_64_bits_and_what_is_refused() -> None:
    far = (1 << 57) + np.array([0, 64, 0, 128, 64])
    assert cache_sim(far, 64, 2).tolist() == [False, False, True, False, False]
    assert cache_sim([], 4, 2).shape == (0,)
    with pytest.raises(TypeError, match="line has dtype float64"):
        cache_sim([0.5], 4, 2)
    with pytest.raises(ValueError, match="line holds -1; allowed: 0 or more"):
        cache_sim([-1], 4, 2)
    with pytest.raises(ValueError, match="sets 0, ways 2; allowed: 1 or more"):
        cache_sim([1], 0, 2)
    with pytest.raises(ValueError, match=r"cache has shape \(1,\); allowed: \(2,\)"):
        cache_sim([1, 2], 1, 1, [0])
