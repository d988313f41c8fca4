"""Two runs side by side: matched kernels, achieved and predicted speedups."""

import math
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from profsvc import store
from profsvc.analysis.changes.cause_changes import cause_changes
from profsvc.analysis.changes.kernels.kernel_matching import match_kernels
from profsvc.analysis.changes.outcomes import kernel_outcomes
from profsvc.analysis.potential.advice import MIN_SAVING
from profsvc.errors import UsageError
from profsvc.reports.kernel_names import labels
from profsvc.views.catalog import titles_and_hints
from profsvc.views.power import comparison as power_comparison

if TYPE_CHECKING:
    from sqlalchemy import Engine

KERNELS = (
    "kernel_before", "kernel_after", "matched_by", "launches_before", "launches_after", "mean_before_us",
    "mean_after_us", "speedup", "predicted", "estimate", "bound_before", "bound_after", "outcome", "achieved_share",
)  # fmt: skip
SHAPES = {
    "grid": ("grid_x", "grid_y", "grid_z"), "block": ("block_x", "block_y", "block_z"),
    "registers per thread": ("registers",),
}  # fmt: skip
"""Property of the launches of a kernel -> its columns."""
# Larger relative differences of clocks affect the times.
CLOCK_TOLERANCE = 0.02
# Names of limits that are not criteria: they limit a relative increase.
POWERS = ("power", "energy")
RELATIVE = ("duration", *POWERS)


@store.snapshot
def compare(
    engine: "Engine", before: str | int, after: str | int, mapped: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Compare two runs: one row per common kernel, its criteria, and the unmatched kernels.

    ``speedup`` is the mean time before / the mean time after. ``predicted`` is the potential of the earlier run (a
    bound if ``predicted_flags`` say so), ``estimate`` the estimate of Nsight rules. ``outcome`` is regression, no
    change or faster. ``achieved_share`` is the share of the predicted saving: 0 without a change, negative for a
    regression, None without a prediction. ``effect_us`` is how much longer all launches of the kernel take, and
    ``changes`` are launch shape and registers that differ. ``causes`` are the parts of the change of the mean time,
    and ``new_causes`` those without cost before.
    ``mapped`` has renamed kernels (old name -> new name). ``power`` has one row per common window.
    """
    ids = [store.find_run(engine, name) for name in (before, after)]
    runs = [store.select(engine, "v1_runs", run_id=run_id)[0] for run_id in ids]
    read = {run_id: store.kernels_of_run(engine, run_id) for run_id in dict.fromkeys(ids)}
    olds, news = (read[run_id] for run_id in ids)
    matches = match_kernels(list(olds), list(news), mapped)
    named = labels(olds), labels(news)
    kernels, criteria, words = [], [], titles_and_hints()
    for match in matches:
        old, new = olds[match.before], news[match.after]
        pair = {"kernel_before": named[0][match.before], "kernel_after": named[1][match.after]}
        full = {"kernel_before_full": match.before, "kernel_after_full": match.after}
        kernels.append(pair | _kernel(old, new, words) | {"matched_by": match.by} | full)
        criteria += [pair | row for row in _criteria(old["criteria"], new["criteria"])]
    power, alone = power_comparison.compared(*(power_comparison.windows_of(engine, name) for name in (before, after)))
    return {
        "before": runs[0],
        "after": runs[1],
        "warnings": _warnings(engine, runs) + alone,
        "kernels": _with_outcomes(kernels),
        "criteria": criteria,
        "power": power,
        "geometric_mean_speedup": _geometric_mean([row["speedup"] for row in kernels]),
        "only_before": _alone(olds, {match.before for match in matches}, named[0]),
        "only_after": _alone(news, {match.after for match in matches}, named[1]),
    }


def _kernel(old: Mapping[str, Any], new: Mapping[str, Any], words: Mapping[str, Any]) -> dict[str, Any]:
    timed = old["mean_ns"] is not None and new["mean_ns"]
    parts = cause_changes(old["causes"], new["causes"], old["mean_ns"], new["mean_ns"]) if timed else []
    return {
        "launches_before": old["launches"],
        "launches_after": new["launches"],
        "mean_before_us": _micro(old["mean_ns"]),
        "mean_after_us": _micro(new["mean_ns"]),
        "total_before_us": _micro(old["total_ns"]),
        "total_after_us": _micro(new["total_ns"]),
        "effect_us": _effect(old["total_ns"], new["total_ns"]),
        "change": new["mean_ns"] / old["mean_ns"] - 1 if timed and old["mean_ns"] else None,
        "changes": _changes(old["shape"], new["shape"]),
        "speedup": old["mean_ns"] / new["mean_ns"] if timed else None,
        "predicted": old["predicted"],
        "predicted_flags": old["predicted_flags"],
        "estimate": old["estimate"],
        "causes": parts,
        "new_causes": [
            {"cause": part["cause"], "title": part["title"], "share": part["after_ns"] / new["mean_ns"]}
            for part in parts
            if part["before_ns"] == 0.0 and part["after_ns"] >= MIN_SAVING * new["mean_ns"]
        ],
        "bound_before": old["bound"],
        "bound_after": new["bound"],
        **{
            f"limit_{when}": words[one["bound"]]["title"] if one["bound"] else None
            for when, one in (("before", old), ("after", new))
        },
    }


def _effect(before_ns: float | None, after_ns: float | None) -> float | None:
    return None if before_ns is None or after_ns is None else (after_ns - before_ns) / 1e3


def _changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return what differs of grid, block and registers, each as text before and after."""
    pairs = ((what, _sizes(old, axes), _sizes(new, axes)) for what, axes in SHAPES.items())
    return [{"what": what, "before": a, "after": b} for what, a, b in pairs if a and b and a != b]


def _sizes(shape: Mapping[str, Any], axes: Sequence[str]) -> str:
    """Return sizes as text; empty if one is unknown.

    >>> _sizes({"block_x": 64, "block_x_most": 128, "block_y": 1, "block_y_most": 1}, ("block_x", "block_y"))
    '64 to 128 x 1'
    """
    pairs = [(shape.get(axis), shape.get(f"{axis}_most")) for axis in axes]
    if any(least is None for least, _ in pairs):
        return ""
    return " x ".join(f"{least:g}" if least == most else f"{least:g} to {most:g}" for least, most in pairs)


def _with_outcomes(kernels: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    before, after = (
        [None if row[name] is None else 1e3 * row[name] for row in kernels]
        for name in ("mean_before_us", "mean_after_us")
    )
    came = kernel_outcomes(before, after, [row["predicted"] for row in kernels])
    return [{**row, "outcome": one.word, "achieved_share": one.share} for row, one in zip(kernels, came, strict=True)]


def _criteria(old: Mapping[str, float], new: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return the common criteria of a kernel before and after, largest change first."""
    rows = [
        {"criterion": name, "before": old[name], "after": new[name], "change": new[name] - old[name]}
        for name in old
        if name in new
    ]
    return sorted(rows, key=lambda row: -abs(row["change"]))


def _alone(
    kernels: Mapping[str, Mapping[str, Any]], matched: Collection[str], named: Mapping[str, str]
) -> list[dict[str, Any]]:
    return [
        {
            "kernel": named[name],
            "kernel_full": name,
            "launches": one["launches"],
            "mean_us": _micro(one["mean_ns"]),
            "total_us": _micro(one["total_ns"]),
        }
        for name, one in kernels.items()
        if name not in matched
    ]


def _micro(ns: float | None) -> float | None:
    return None if ns is None else ns / 1e3


def _geometric_mean(speedups: Sequence[float | None]) -> float | None:
    known = [math.log(speedup) for speedup in speedups if speedup]
    return math.exp(sum(known) / len(known)) if known else None


def _warnings(engine: "Engine", runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return warnings about differences of two runs other than the kernels."""
    same = runs[0]["run_id"] == runs[1]["run_id"]
    said = ["both are the same run"] if same else []
    said += [f"{run['name']} is {run['archived']}; its launch details are missing" for run in runs if run["archived"]]
    for what in ("device", "host"):
        texts = [run[what] for run in runs]
        if None not in texts and texts[0] != texts[1]:
            said.append(f"different {what}: {texts[0]} before, {texts[1]} after")
    clocks = [{} if same else store.clocks_of_run(engine, run["run_id"]) for run in runs]
    for counter, title in (("sm_clock_hz", "SM clock"), ("dram_clock_hz", "memory clock")):
        old, new = (one.get(counter) for one in clocks)
        if old and new and abs(new / old - 1) > CLOCK_TOLERANCE:
            said.append(f"different mean {title}: {old / 1e6:.0f} MHz before, {new / 1e6:.0f} MHz after")
    return said


def failures(view: Mapping[str, Any], limits: Sequence[str]) -> list[str]:
    """Return a sentence for each kernel that breaks one of ``limits``, such as ``duration=5%`` or ``divergence=0.05``.

    A duration may grow by that share, a criterion may fall by that much. Raise `UsageError` for an invalid limit.
    """
    said = []
    for name, most in map(_limit, limits):
        for row in view["kernels"] if name == "duration" else ():
            if row["speedup"] is not None and 1 / row["speedup"] - 1 > most:
                growth = 100 * (1 / row["speedup"] - 1)
                said.append(f"{row['kernel_after']}: duration up {growth:.1f} %, allowed {100 * most:g} %")
        said += [
            f"{row['kernel_after']}: {name} fell from {row['before']:.3f} to {row['after']:.3f}, allowed {most:g}"
            for row in view["criteria"]
            if row["criterion"] == name and -row["change"] > most
        ]
        for row in view.get("power", ()) if name in POWERS else ():
            change = row[f"{name}_change"]
            if change is not None and change > most:
                said.append(f"{row['window']}: {name} up {100 * change:.1f} %, allowed {100 * most:g} %")
    return said


def unjudged(view: Mapping[str, Any], limits: Sequence[str]) -> list[str]:
    """Return a sentence for each limit for which the runs have no common data, so it was not checked."""
    judged = {row["criterion"] for row in view["criteria"]}
    judged |= {"duration" for row in view["kernels"] if row["speedup"] is not None}
    judged |= {name for name in POWERS for row in view.get("power", ()) if row[f"{name}_change"] is not None}
    return [
        f"limit {name} not checked: the runs have no "
        f"{f'window of {name}' if name in POWERS else f'kernel with a {name}'} in common"
        for name in dict.fromkeys(name for name, _ in map(_limit, limits))
        if name not in judged
    ]


def check_limits(limits: Sequence[str]) -> None:
    """Raise `UsageError` for the first invalid limit, before any work is done."""
    for text in limits:
        _limit(text)


def _limit(text: str) -> tuple[str, float]:
    from profsvc import specs

    allowed = [*RELATIVE, *(criterion["name"] for criterion in specs.criteria()["criterion"])]
    name, _, figure = text.partition("=")
    try:
        most = float(figure.removesuffix("%")) / (100 if figure.endswith("%") else 1)
        # A bare 5 would mean 500 %, which is hardly intended.
        largest = sys.float_info.max if figure.endswith("%") and name in RELATIVE else 1
        if name in allowed and 0 <= most <= largest:
            return name, most
    except ValueError:
        pass
    raise UsageError(
        f"{text!r} is not a limit; write NAME=NUMBER, such as duration=5% (or 0.05) or "
        "divergence=0.05, with one of: "
        f"{', '.join(allowed)}"
    )
