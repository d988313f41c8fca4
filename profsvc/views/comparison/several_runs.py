"""Several runs side by side: the mean time of each kernel in each, beside a baseline."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from profsvc import store
from profsvc.analysis.changes.kernels.kernel_matching import match_kernels
from profsvc.analysis.changes.outcomes import kernel_outcomes
from profsvc.errors import UsageError
from profsvc.reports.kernel_names import labels

if TYPE_CHECKING:
    from sqlalchemy import Engine

MAX_RUNS = 8
RUN_FIELDS = ("run_id", "project", "name", "device", "commit_id", "started_at", "launches", "gpu_time_ns")


@store.snapshot
def compare_several(engine: "Engine", runs: Sequence[str | int], baseline: str | int | None = None) -> dict[str, Any]:
    """Return the kernels of several runs in the order given, each beside the baseline: the first run, or another.

    ``runs`` have their GPU time and its ``change``. A kernel has, as lists with a value for each run, its launches,
    its total and mean time, the relative ``change`` of the mean, the ``outcome`` (regression, no change or faster) and
    the ``effect_us``: how much longer all its launches take. None stands where a run lacks the kernel, and in the
    column of the baseline. Kernels with the largest effect come first, and those that the baseline lacks last.
    ``warnings`` are differences of the runs other than the kernels.
    """
    ids = list(dict.fromkeys(store.find_run(engine, name) for name in runs))
    if not 1 <= len(ids) <= MAX_RUNS:
        raise UsageError(f"{len(ids)} runs are given; at most {MAX_RUNS} can be compared")
    base = ids[0] if baseline is None else store.find_run(engine, baseline)
    if base not in ids:
        raise UsageError(f"the baseline {baseline!r} is not one of the runs")
    infos = [store.select(engine, "v1_runs", run_id=run_id)[0] for run_id in ids]
    read = {run_id: store.kernels_of_run(engine, run_id) for run_id in ids}
    rows = _matched(read, base)
    kernels = [_kernel(name, [own.get(run_id) for run_id in ids], ids.index(base)) for name, own in rows.items()]
    named = labels(list(rows))
    whole = infos[ids.index(base)]["gpu_time_ns"]
    return {
        "baseline": base,
        "warnings": [
            f"different {what}: {', '.join(said)}"
            for what in ("device", "host")
            if len(said := list(dict.fromkeys(str(info[what]) for info in infos if info[what] is not None))) > 1
        ],
        "runs": [
            {name: info[name] for name in RUN_FIELDS} | {"change": _change(whole, info["gpu_time_ns"])}
            for info in infos
        ],
        "kernels": [row | {"kernel": named[row["kernel_full"]]} for row in sorted(kernels, key=_order)],
    }  # fmt: skip


def _matched(read: Mapping[int, Mapping[str, Any]], base: int) -> dict[str, dict[int, Any]]:
    """Return for each kernel by its name in the baseline, or where it lacks it, the kernel of each run."""
    rows: dict[str, dict[int, Any]] = {name: {base: one} for name, one in read[base].items()}
    for run_id, kernels in read.items():
        if run_id == base:
            continue
        names = {match.after: match.before for match in match_kernels(list(read[base]), list(kernels))}
        for name, one in kernels.items():
            rows.setdefault(names.get(name, name), {})[run_id] = one
    return rows


def _kernel(name: str, found: Sequence[Mapping[str, Any] | None], base: int) -> dict[str, Any]:
    def each(field: str) -> list[Any]:
        return [None if one is None else one[field] for one in found]

    means, totals = each("mean_ns"), each("total_ns")
    words = kernel_outcomes([means[base]] * len(means), means, [None] * len(means))
    others = [place != base for place in range(len(means))]
    return {
        "kernel_full": name,
        "launches": each("launches"),
        "total_us": [None if total is None else total / 1e3 for total in totals],
        "mean_us": [None if mean is None else mean / 1e3 for mean in means],
        "change": [_change(means[base], mean) if other else None for mean, other in zip(means, others, strict=True)],
        "outcome": [one.word if other else None for one, other in zip(words, others, strict=True)],
        "effect_us": [
            (total - totals[base]) / 1e3 if other and None not in (total, totals[base]) else None
            for total, other in zip(totals, others, strict=True)
        ],
    }


def _change(before: float | None, after: float | None) -> float | None:
    return after / before - 1 if before and after is not None else None


def _order(row: Mapping[str, Any]) -> tuple[bool, float, str]:
    effects = [abs(effect) for effect in row["effect_us"] if effect is not None]
    sizes = effects or [total for total in row["total_us"] if total is not None]
    return not effects, -max(sizes, default=0.0), row["kernel_full"]
