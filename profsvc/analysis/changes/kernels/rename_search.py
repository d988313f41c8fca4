"""Which kernels that vanished go on as which of those that appeared in the same run, and why."""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from profsvc import specs
from profsvc.formulas.numerics.distributions import student_quantile
from profsvc.kernel_names import base_name, with_template_arguments

MIN_P = 0.01  # of a time, if the kernel is the same
MAX_TIME_RATIO = 2.0  # of a kernel that the same launch alone links
MIN_SAME_EDITS = 3  # names that change in one and the same way
MAX_PAIRS = 250_000  # of kernels that are launched alike; above, their names alone decide
SHAPE = ("grid", "block")
TEMPLATE, BASE = 3.0, 2.0
"""Names that differ in their name space or signature, or in template arguments too; less than 1: in one edit."""
MAX_NAMED = 3
Trait = tuple[str, str]


class Candidate(NamedTuple):
    """A kernel of one side: its times per launch, the oldest first, and the facts about its launches."""

    name: str
    times_ns: Sequence[float]
    traits: Mapping[Trait, float | str]


class Evidence(NamedTuple):
    """How much speaks for a pair, an axis each."""

    name: float
    launch: float  # 1 if all that is known of the launches is the same, 0.5 if nothing is known, else 0
    time: bool  # the time is within the noise of before


class Search(NamedTuple):
    """The pairs, with their evidence, and why a kernel that appeared has none though some vanished ones fit."""

    pairs: dict[str, tuple[str, Evidence]]  # appeared -> vanished
    refused: dict[str, str]


def find_pairs(
    vanished: Sequence[Candidate],
    appeared: Sequence[Candidate],
    lasting: Iterable[str] = (),
    apart: Container[tuple[str, str]] = (),
) -> Search:
    """Return which kernels of ``vanished`` go on as which of ``appeared``; ``lasting`` are those that run on.

    Pairs that are ``apart``, the vanished one first, are none.

    A pair is one if it is better than every other pair of both kernels: on no axis of `Evidence` worse, and better on
    one. Where two fit equally well, both are left out.

    >>> launch = {("grid", ""): "64x1x1", ("block", ""): "128x1x1", ("registers_per_thread", ""): 40.0}
    >>> old, new = Candidate("saxpy(int)", [100.0, 101.0, 99.0], launch), Candidate("axpy_v2(int)", [105.0], launch)
    >>> find_pairs([old], [new]).pairs["axpy_v2(int)"][0]
    'saxpy(int)'
    >>> find_pairs([old, old._replace(name="scale(int)")], [new]).refused["axpy_v2(int)"]
    'saxpy and scale fit equally well'
    """
    left, right = ({one.name: one for one in side} for side in (vanished, appeared))
    fits = _fitting(left, right, Counter(map(base_name, lasting)))
    fits = {pair: own for pair, own in fits.items() if pair not in apart}
    pairs: dict[str, tuple[str, Evidence]] = {}
    while found := list(_best_pairs(fits)):
        pairs |= {new: (old, fits[old, new]) for old, new in found}
        taken = {name for pair in found for name in pair}
        fits = {pair: own for pair, own in fits.items() if not taken.intersection(pair)}
    refused = {new: _refusal(new, fits) for new in dict.fromkeys(new for _, new in fits)}
    return Search(pairs, refused)


def _fitting(
    left: Mapping[str, Candidate], right: Mapping[str, Candidate], lasting: Mapping[str, int]
) -> dict[tuple[str, str], Evidence]:
    alike = _launched_alike(left, right)
    edits = _shared_edits(alike or ([*product(left, right)] if len(left) * len(right) <= MAX_PAIRS else []))
    named = {pair: level for level, reduced in ((BASE, base_name), (TEMPLATE, with_template_arguments))
             for pair in _same(left, right, reduced)}  # fmt: skip
    usual = {name: usual_times(one.times_ns) for name, one in left.items()}
    level = {name: float(np.median(one.times_ns)) for name, one in left.items()}
    fits = {}
    for old, new in dict.fromkeys([*named, *alike, *edits]):
        own = Evidence(named.get((old, new), edits.get((old, new), 0.0)), *_compared(left[old], right[new], usual[old]))
        ratio = right[new].times_ns[-1] / level[old]
        by_launch = own.launch == 1.0 and 1 / MAX_TIME_RATIO <= ratio <= MAX_TIME_RATIO
        # A name that others of the run have too, or nearly, needs more than itself.
        alone = own.name == TEMPLATE or (own.name == BASE and not lasting.get(base_name(old)))
        if alone or by_launch or (own.name > 0 and own.time):
            fits[old, new] = own
    return fits


def _same(left: Iterable[str], right: Iterable[str], reduced: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    news: dict[str, list[str]] = {}
    for name in right:
        news.setdefault(reduced(name), []).append(name)
    return ((old, new) for old in left for new in news.get(reduced(old), ()))


def _launched_alike(left: Mapping[str, Candidate], right: Mapping[str, Candidate]) -> list[tuple[str, str]]:
    """Return the pairs whose grid and block are known and the same."""
    shapes: dict[tuple[object, ...], tuple[list[str], list[str]]] = {}
    for number, side in enumerate((left, right)):
        for name, one in side.items():
            shape = tuple(one.traits.get((what, "")) for what in SHAPE)
            if None not in shape:
                shapes.setdefault(shape, ([], []))[number].append(name)
    return [
        pair for olds, news in shapes.values() if len(olds) * len(news) <= MAX_PAIRS for pair in product(olds, news)
    ]


def _shared_edits(pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], float]:
    """Return the pairs of names that differ in a part that many pairs differ in, with the share of these (below 1)."""
    pairs = list(pairs)
    short = {name: with_template_arguments(name) for name in {name for pair in pairs for name in pair}}
    edits = {(old, new): _edit(short[old], short[new]) for old, new in pairs}
    counts = Counter(edits.values())
    most = len({old for old, _ in edits}) + 1
    return {pair: counts[edit] / most for pair, edit in edits.items() if MIN_SAME_EDITS <= counts[edit] < most}


def _edit(old: str, new: str) -> tuple[str, str]:
    """Return what of a name another one has in its place.

    >>> _edit("gemm_nt_kernel", "gemm_nn_kernel"), _edit("scale", "scale_v2")
    (('t', 'n'), ('', '_v2'))
    """
    least = min(len(old), len(new))
    begin = next((place for place in range(least) if old[place] != new[place]), least)
    end = next((place for place in range(least - begin) if old[-1 - place] != new[-1 - place]), least - begin)
    return old[begin : len(old) - end], new[begin : len(new) - end]


def _compared(old: Candidate, new: Candidate, usual: tuple[float, float]) -> tuple[float, bool]:
    """Return how much the launches of two kernels, and the time of the new one, speak for one kernel."""
    shared = [trait for trait in old.traits if trait in new.traits]
    known = {what for what, _ in shared}
    same = all(_equal(trait[0], old.traits[trait], new.traits[trait]) for trait in shared)
    launch = float(same) if not same or set(SHAPE) <= known else 0.5
    return launch, usual[0] <= new.times_ns[-1] <= usual[1]


def _equal(what: str, old: float | str, new: float | str) -> bool:
    if old == new:
        return True
    fact = specs.change_fact(what)
    if fact is None or isinstance(old, str) or isinstance(new, str):
        return False
    return abs(new - old) <= max(fact.absolute, fact.relative * abs(old))


def usual_times(times_ns: Sequence[float]) -> tuple[float, float]:
    """Return between which times the next one lies, by Student's prediction interval, or is too near to be a change.

    >>> [round(float(end)) for end in usual_times([100e3, 101e3, 99e3, 100e3])]
    [94668, 105332]
    """
    least, level, n = specs.smallest_change("duration"), float(np.median(times_ns)), len(times_ns)
    spread = float(np.std(times_ns, ddof=1)) * np.sqrt(1 + 1 / n) if n > 1 else 0.0
    half = max(least.relative * level, least.absolute, spread and spread * student_quantile(1 - MIN_P / 2, n - 1))
    return level - half, level + half


def _best_pairs(fits: Mapping[tuple[str, str], Evidence]) -> Iterator[tuple[str, str]]:
    by_name: dict[tuple[int, str], list[tuple[str, str]]] = {}
    for pair in fits:
        for side, name in enumerate(pair):
            by_name.setdefault((side, name), []).append(pair)
    chosen = [_dominating(pairs, fits) for pairs in by_name.values()]
    counts = Counter(pair for pair in chosen if pair)
    return (pair for pair, count in counts.items() if count == 2)


def _dominating(pairs: Sequence[tuple[str, str]], fits: Mapping[tuple[str, str], Evidence]) -> tuple[str, str] | None:
    """Return the pair that is better than each of the others, if there is one."""
    best = max(pairs, key=lambda pair: tuple(fits[pair]))
    top = fits[best]
    beats = (all(a >= b for a, b in zip(top, fits[pair], strict=True)) and top != fits[pair] for pair in pairs
             if pair != best)  # fmt: skip
    return best if all(beats) else None


def _refusal(new: str, fits: Mapping[tuple[str, str], Evidence]) -> str:
    olds = [old for old, other in fits if other == new]
    rivals = [other for old, other in fits if old == olds[0]]
    names = sorted(with_template_arguments(name) for name in (olds if len(olds) > 1 else rivals))
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    said = ", ".join(names[:MAX_NAMED]) + more if more else " and ".join([", ".join(names[:-1]), names[-1]])
    if len(olds) > 1:
        return f"{said} fit equally well"
    return f"{with_template_arguments(olds[0])} fits {said} equally well"


def evidence_text(evidence: Evidence, traits: Iterable[str]) -> str:
    """Return the evidence of a pair in a few words; ``traits`` are titles of what is the same.

    >>> evidence_text(Evidence(0.0, 1.0, True), ["grid", "block"])
    'same grid, block; time within its noise'
    """
    said = []
    if evidence.name >= BASE:
        said.append("same name but for name space and signature" if evidence.name == TEMPLATE
                    else "same name but for template arguments")  # fmt: skip
    elif evidence.name > 0:
        said.append("renamed as others are")
    if evidence.launch == 1.0:
        said.append(f"same {', '.join(traits)}")
    if evidence.time:
        said.append("time within its noise")
    return "; ".join(said)
