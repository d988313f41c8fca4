"""The launches that are listed, beside a sort of all launches."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profsvc.store.ingest.writers import listed_launches
from profsvc.store.ingest.writers.listed_launches import ListedLaunches, _rows

DURATIONS = st.sampled_from([1.0, 2.0, 2.5, 1e9, np.inf, np.nan])


def ends(numbers: Any, durations: Any, depth: int, *, by_number: bool) -> set[int]:
    """Return the launches at the ends of the orders, by sorting all of them."""
    orders = [np.lexsort((numbers, durations)), np.lexsort((numbers, -durations))]
    orders += [np.argsort(numbers), np.argsort(numbers)[::-1]] if by_number else []
    return {int(number) for order in orders for number in numbers[order][:depth]}


@pytest.mark.parametrize("shuffled", [False, True])
@settings(max_examples=60)
@given(rows=st.lists(st.tuples(st.integers(3, 9), DURATIONS), min_size=1, max_size=120), batch=st.integers(1, 50))
def test_the_ends_of_every_order_are_listed(shuffled: bool, rows: list[tuple[int, float]], batch: int) -> None:
    kernels, durations = np.array([k for k, _ in rows]), np.array([d for _, d in rows])
    numbers = np.random.default_rng(len(rows)).permutation(len(rows)) if shuffled else np.arange(len(rows))
    with pytest.MonkeyPatch.context() as patch:
        limits = {"DEPTH": 7, "KERNEL_DEPTH": 5, "MAX_KERNEL_LAUNCHES": 12, "LAUNCHES_PER_BLOCK": 30}
        for name, value in limits.items():
            patch.setattr(listed_launches, name, value)
        listed = ListedLaunches()
        for begin in range(0, len(rows), batch):
            some = slice(begin, begin + batch)
            listed.add(numbers[some], kernels[some], durations[some])
        listed.select()
        depth = min(5, 12 // len(set(kernels.tolist())))
    assert set(listed._of_file.kept.numbers.tolist()) == ends(numbers, durations, 7, by_number=False)
    found: dict[int, set[int]] = {int(kernel): set() for kernel in kernels}
    for _, kernel, number, duration in _rows(1, listed._of_kernels.kept, np.array(list(listed._codes))):
        found[kernel].add(number)
        assert duration == pytest.approx(durations[numbers.tolist().index(number)], nan_ok=True) or duration is None
    for kernel, launches in found.items():
        own = kernels == kernel
        assert launches == ends(numbers[own], durations[own], depth, by_number=True)


def test_the_memory_does_not_grow_with_the_file() -> None:
    listed, draw = ListedLaunches(), np.random.default_rng(1)
    for begin in range(0, 3_000_000, 100_000):
        listed.add(np.arange(begin, begin + 100_000), draw.integers(1, 40_000, 100_000), draw.random(100_000))
    assert len(listed._of_kernels.kept.numbers) <= 4 * listed_launches.MAX_KERNEL_LAUNCHES
    assert listed._kernel_depth() == 2
