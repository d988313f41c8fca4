"""Which vanished kernels go on as which new ones."""

import numpy as np
import pytest

from profsvc import specs
from profsvc.analysis.changes.kernels.rename_search import Candidate, find_pairs, usual_times

LAUNCH = {("grid", ""): "64x1x1", ("block", ""): "128x1x1", ("registers_per_thread", ""): 40.0}


def kernel(name: str, ns: float = 100.0, **traits: float | str) -> Candidate:
    times = 1e3 * ns * (1 + 0.002 * np.array([0, 1, -1, 2, -2, 1, 0]))
    return Candidate(name, times.tolist(), LAUNCH | {(what, ""): value for what, value in traits.items()})


def new(name: str, ns: float = 100.0, **traits: float | str) -> Candidate:
    return kernel(name, ns, **traits)._replace(times_ns=[1e3 * ns])


def pairs(vanished: list[Candidate], appeared: list[Candidate], lasting: tuple[str, ...] = ()) -> dict[str, str]:
    return {old: name for name, (old, _) in find_pairs(vanished, appeared, lasting).pairs.items()}


def test_two_that_are_launched_alike_are_told_apart_by_their_times():
    olds, news = [kernel("a", 100), kernel("b", 150)], [new("p", 150.2), new("q", 99.9)]
    assert pairs(olds, news) == {"a": "q", "b": "p"}


def test_two_with_crossing_names_are_refused():
    """One way by name, the other by launch and time: nothing decides."""
    olds = [kernel("f<1>", 100), kernel("g<1>", 100, registers_per_thread=32.0)]
    news = [new("f<2>", 100, registers_per_thread=32.0), new("g<2>", 100)]
    search = find_pairs(olds, news)
    assert search.pairs == {}
    assert search.refused == {"f<2>": "f<1> and g<1> fit equally well", "g<2>": "f<1> and g<1> fit equally well"}


@pytest.mark.parametrize("count", [1, 2, 257])
def test_kernels_that_are_launched_alike_are_linked_by_an_edit_that_all_names_share(count):
    olds = [kernel(f"stage_{number}") for number in range(count)]
    news = [new(f"stage_{number}_v2") for number in range(count)]
    found = pairs(olds, news)
    alike = {f"stage_{number}": f"stage_{number}_v2" for number in range(count)}
    assert found == (alike if count != 2 else {})  # two names that differ in one edit may differ by chance


@pytest.mark.parametrize(
    ("resembling", "linked"),
    [
        (new("other", 100), True),
        (new("other", 108), True),
        (new("other", 250), False),
        (new("other", 100, registers_per_thread=41.0), False),
        (new("other", 100, launches=2.0), True),  # of the other side nothing is known
        (new("void ns::old<4>(int)", 300, grid="128x1x1"), True),
    ],
)
def test_a_kernel_that_merely_resembles_is_not_linked(resembling, linked):
    assert bool(pairs([kernel("old(int)")], [resembling])) is linked


def test_template_arguments_alone_say_little_where_others_of_the_name_run_on():
    """Libraries have many kernels of one template: one that goes and one that comes need more in common."""
    old, other = kernel("map<Add>(int)"), new("map<Mul>(int)", 300, grid="8x1x1")
    assert pairs([old], [other]) == {"map<Add>(int)": "map<Mul>(int)"}
    assert pairs([old], [other], ("map<Exp>(int)",)) == {}
    assert pairs([old], [new("map<Add, 2>(int)", 108)], ("map<Exp>(int)",)) == {"map<Add>(int)": "map<Add, 2>(int)"}


def test_names_alone_link_where_nothing_is_known_of_launches():
    bare = [Candidate("void a<1>(int)", [100e3, 101e3], {}), Candidate("b", [50e3, 50.1e3], {})]
    news = [Candidate("a<2>(long)", [130e3], {}), Candidate("c", [50e3], {})]
    assert pairs(bare, news) == {"void a<1>(int)": "a<2>(long)"}


def test_a_single_time_before_says_nothing_of_noise():
    least = specs.smallest_change("duration").relative
    assert usual_times([100e3]) == pytest.approx((100e3 * (1 - least), 100e3 * (1 + least)))
