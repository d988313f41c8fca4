"""Whether the code of a kernel changed between two runs: running the same program again is not a tuning attempt.

The counters of executed work decide. On an NVIDIA H200 all counters of `COUNTER_TRAITS` were identical in 183 of 183
pairs of runs of one binary (61 kernels, four profiles on two boards). At least one differed in every pair of kernel
versions except one, for which the compiler had produced the same code (1.0005x). Without these counters, the binary or
the commit that a run names decides; without those, the answer is unknown.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

INSTRUCTIONS_EXECUTED = "inst_executed_warp"
"""The counter without which the others say too little."""
LAUNCH_TRAITS = (
    "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "registers_per_thread", "shared_mem_static_bytes",
    "shared_mem_dynamic_bytes",
)  # fmt: skip
COUNTER_TRAITS = (
    INSTRUCTIONS_EXECUTED, "thread_inst_executed_pred_on", "global_load_sectors", "global_theoretical_sectors",
    "shared_wavefronts_sass",
)  # fmt: skip
ROUNDING_SHARE = 0.005
"""Memory is printed in KiB with two digits behind the point, or in bytes, as the tool is asked."""
MAX_SHOWN_TRAITS = 2
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


class ChangeVerdict(NamedTuple):
    """Whether a kernel changed (None: nothing says so, nor that it did not), and what says it."""

    changed: bool | None
    because: str


def has_changed(old: Kernel, new: Kernel, builds: tuple[Build, Build], *, mapped: bool = False) -> ChangeVerdict:
    """Return whether the code of a kernel changed in a later run; ``mapped``: the user mapped it to another name.

    >>> old = Kernel("k", 1, {("inst_executed_warp", "inst"): (64.0, 64.0)})
    >>> has_changed(old, old, (Build(), Build())).changed
    False
    >>> has_changed(old, Kernel("k", 1, {("inst_executed_warp", "inst"): (48.0, 48.0)}), (Build(), Build()))
    ChangeVerdict(changed=True, because='inst_executed_warp 64 before and 48 after')
    """
    if mapped and old.name != new.name:
        return ChangeVerdict(True, "the mapping renames it")
    shared = [trait for trait in sorted(old.traits, key=_place) if _comparable(trait, old, new)]
    other = [trait for trait in shared if _differs(trait[0], old.traits[trait], new.traits[trait])]
    binaries, commits = ([getattr(build, what) for build in builds] for what in ("binary", "commit"))
    if None not in binaries and binaries[0] == binaries[1] and not {name for name, _ in other} & set(LAUNCH_TRAITS):
        return ChangeVerdict(False, f"both runs are of the binary {binaries[0]!r} with the same launch configuration")
    if other:
        return ChangeVerdict(True, _difference_text(other, old, new))
    if INSTRUCTIONS_EXECUTED in {name for name, _ in shared}:
        return ChangeVerdict(False, "instructions, traffic and launch configuration are the same in both runs")
    for what, names in (("binary", binaries), ("commit", commits)):
        if None not in names:
            same = names[0] == names[1]
            said = f"both runs are of the {what} {names[0]!r}" if same else f"{what} {names[0]!r}, then {names[1]!r}"
            return ChangeVerdict(not same, said)
    return ChangeVerdict(None, _unknown(builds))


def _place(trait: Trait) -> tuple[int, str]:
    return (*LAUNCH_TRAITS, *COUNTER_TRAITS).index(trait[0]), trait[1]


def _comparable(trait: Trait, old: Kernel, new: Kernel) -> bool:
    """Tell whether a trait is known of both; of launches that differ among each other, only if there are as many."""
    ends = [one.traits.get(trait) for one in (old, new)]
    return None not in ends and (old.launches == new.launches or all(end and end[0] == end[1] for end in ends))


def _differs(name: str, one: Ends, two: Ends) -> bool:
    most = ROUNDING_SHARE if name.endswith("_bytes") else 0.0
    return any(abs(a - b) > most * max(abs(a), abs(b)) for a, b in zip(one, two, strict=True))


def _difference_text(traits: Iterable[Trait], old: Kernel, new: Kernel) -> str:
    listed = list({trait[0]: trait for trait in traits}.values())
    said = [f"{trait[0]} {_range_text(old.traits[trait])} before and {_range_text(new.traits[trait])} after"
            for trait in listed[:MAX_SHOWN_TRAITS]]  # fmt: skip
    more = len(listed) - MAX_SHOWN_TRAITS
    return ", ".join(said) + (f", and {more} more counters" if more > 0 else "")


def _range_text(ends: Ends) -> str:
    return f"{ends[0]:.15g}" if ends[0] == ends[1] else f"{ends[0]:.15g} to {ends[1]:.15g}"


def _unknown(builds: tuple[Build, Build]) -> str:
    silent = [not any(build) for build in builds]
    who = "neither run names" if all(silent) else f"the run {'before' if silent[0] else 'after'} does not name"
    if not any(silent):
        who = "one run names a binary and the other a commit, not both"
    return (
        f"unknown whether the kernel changed: {who} its binary (profsvc upload --tag binary=ID), and no counter "
        "of both runs shows what it executes"
    )
