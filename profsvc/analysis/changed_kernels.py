"""Whether a kernel is another one in a later run: a run again of the same program is no attempt at tuning it.

What a kernel executes tells it. On an NVIDIA H200 all counters of `COUNTED` were the same, to the last digit, in 183 of
183 pairs of runs of one binary (61 kernels, four profiles on two boards), and at least one differed in every pair of
versions of those kernels but one, which the compiler had made the same code of (1.0005x). Where no counter tells, the
binary or the commit that a run names does; where that is missing too, nothing is known.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

EXECUTED = "inst_executed_warp"
"""The counter without which the others say too little."""
LAUNCHED = (
    "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "registers_per_thread", "shared_mem_static_bytes",
    "shared_mem_dynamic_bytes",
)  # fmt: skip
COUNTED = (
    EXECUTED, "thread_inst_executed_pred_on", "global_load_sectors", "global_theoretical_sectors",
    "shared_wavefronts_sass",
)  # fmt: skip
ROUNDED = 0.005
"""Memory is printed in KiB with two digits behind the point, or in bytes, as the tool is asked."""
SHOWN = 2
Ends = tuple[float, float]
Trait = tuple[str, str]


class Kernel(NamedTuple):
    """A kernel of a run: how many launches it has, and the least and the most of what is known of each of them.

    A trait has a name and what it was computed by: pages of one report round differently, and only what was computed in
    the same way can be held against each other.
    """

    name: str
    launches: int
    traits: Mapping[Trait, Ends]


class Build(NamedTuple):
    """What a run says of the program that ran; None where it does not."""

    binary: str | None = None
    commit: str | None = None


class Verdict(NamedTuple):
    """Whether a kernel changed (None: nothing says so, nor that it did not), and what says it."""

    changed: bool | None
    because: str


def changed(old: Kernel, new: Kernel, builds: tuple[Build, Build], *, mapped: bool = False) -> Verdict:
    """Tell whether a kernel is another one in a later run; ``mapped``: somebody said what became of it.

    >>> old = Kernel("k", 1, {("inst_executed_warp", "inst"): (64.0, 64.0)})
    >>> changed(old, old, (Build(), Build())).changed
    False
    >>> changed(old, Kernel("k", 1, {("inst_executed_warp", "inst"): (48.0, 48.0)}), (Build(), Build()))
    Verdict(changed=True, because='inst_executed_warp 64 before and 48 after')
    """
    if mapped and old.name != new.name:
        return Verdict(True, "it was said what became of it")
    shared = [trait for trait in sorted(old.traits, key=_place) if _comparable(trait, old, new)]
    other = [trait for trait in shared if _differs(trait[0], old.traits[trait], new.traits[trait])]
    binaries, commits = ([getattr(build, what) for build in builds] for what in ("binary", "commit"))
    if None not in binaries and binaries[0] == binaries[1] and not {name for name, _ in other} & set(LAUNCHED):
        return Verdict(False, f"both runs are of the binary {binaries[0]!r}, and launch it alike")
    if other:
        return Verdict(True, _words(other, old, new))
    if EXECUTED in {name for name, _ in shared}:
        return Verdict(False, "it executes as many instructions and moves as much in both runs, and is launched alike")
    for what, names in (("binary", binaries), ("commit", commits)):
        if None not in names:
            same = names[0] == names[1]
            said = f"both runs are of the {what} {names[0]!r}" if same else f"{what} {names[0]!r}, then {names[1]!r}"
            return Verdict(not same, said)
    return Verdict(None, _unknown(builds))


def _place(trait: Trait) -> tuple[int, str]:
    return (*LAUNCHED, *COUNTED).index(trait[0]), trait[1]


def _comparable(trait: Trait, old: Kernel, new: Kernel) -> bool:
    """Tell whether a trait is known of both; of launches that differ among each other, only if there are as many."""
    ends = [one.traits.get(trait) for one in (old, new)]
    return None not in ends and (old.launches == new.launches or all(end and end[0] == end[1] for end in ends))


def _differs(name: str, one: Ends, two: Ends) -> bool:
    most = ROUNDED if name.endswith("_bytes") else 0.0
    return any(abs(a - b) > most * max(abs(a), abs(b)) for a, b in zip(one, two, strict=True))


def _words(traits: Iterable[Trait], old: Kernel, new: Kernel) -> str:
    listed = list({trait[0]: trait for trait in traits}.values())
    said = [f"{trait[0]} {_span(old.traits[trait])} before and {_span(new.traits[trait])} after"
            for trait in listed[:SHOWN]]  # fmt: skip
    more = len(listed) - SHOWN
    return ", ".join(said) + (f", and {more} more counters" if more > 0 else "")


def _span(ends: Ends) -> str:
    return f"{ends[0]:.15g}" if ends[0] == ends[1] else f"{ends[0]:.15g} to {ends[1]:.15g}"


def _unknown(builds: tuple[Build, Build]) -> str:
    silent = [not any(build) for build in builds]
    who = "neither run names" if all(silent) else f"the run {'before' if silent[0] else 'after'} does not name"
    if not any(silent):
        who = "one run names a binary and the other a commit, not both"
    return (
        f"nothing says whether the kernel changed: {who} its binary (profsvc upload --tag binary=ID), and no counter "
        "of both runs says what it executes"
    )
