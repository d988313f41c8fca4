"""Predicted and achieved speedups: saved when two runs are compared, scored over all saved pairs."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from profsvc import store
from profsvc.analysis.changes.kernels.changed_kernels import (
    COUNTER_TRAITS,
    LAUNCH_TRAITS,
    Build,
    ChangeVerdict,
    Kernel,
    has_changed,
)
from profsvc.analysis.changes.kernels.kernel_matching import MAPPED
from profsvc.analysis.changes.outcomes import REGRESSION, kernel_outcomes
from profsvc.errors import NotFoundError, counted
from profsvc.formulas.numerics import prediction_accuracy as formula

if TYPE_CHECKING:
    from sqlalchemy import Engine

Row = Mapping[str, Any]
SCORES = (
    "source", "kind", "criterion", "n", "runs", "rank_correlation", "median_log_error", "median_factor", "bias",
    "slope", "slope_low", "slope_high", "within_10", "within_25", "within_50", "passed", "constant",
    "constant_log_error", "regressions", "median_share", "reason",
)  # fmt: skip
OVERALL, CRITERION = "overall", "criterion"
KINDS = ("overall", "ceiling", "criterion", "model", "global", "local")
SAME_THREADS = "threads"
LEFT_OUT = ("not comparable", "bound", "part", *store.UNCHANGED_REASONS)
# (is lower bound, is upper bound) -> why it is not scored as a prediction.
BOUNDS = {
    (1, 0): "only a lower bound was predicted: the earlier run lacks counters",
    (0, 1): "only an upper bound was predicted: the earlier run lacks counters",
    (1, 1): "the prediction is uncertain in both directions: the earlier run lacks counters",
}
TRAITS = (*LAUNCH_TRAITS, *COUNTER_TRAITS)
# A criterion with a smaller increase counts as not improved.
ACTED = 0.05


def record(engine: "Engine", view: Row) -> dict[str, Any]:
    """Save predicted and achieved speedups of the kernels of a comparison (`compare.compare`).

    Rows of the same pair of runs are replaced. ``recorded`` is their number, ``scored`` the number of valid ones,
    ``reasons`` why the others are not scored.
    """
    before, after = view["before"]["run_id"], view["after"]["run_id"]
    pairs = {row["kernel_before_full"]: row for row in view["kernels"] if _is_pair(row, same_run=before == after)}
    predicted = [row for row in store.predicted_speedups(engine, before) if row["kernel"] in pairs]
    works = [store.kernel_work(engine, run_id) for run_id in (before, after)] if predicted else [{}, {}]
    values = store.criteria_of_kernels(engine, after) if predicted else {}
    verdicts = _verdicts(engine, view, pairs) if predicted else {}
    judged = {
        name: _judged(
            pair,
            _work(works[0], name, view["before"]),
            _work(works[1], pair["kernel_after_full"], view["after"]),
            verdicts[name],
        )
        for name, pair in pairs.items()
        if predicted
    }
    rows = [_prediction(row, pairs[row["kernel"]], judged[row["kernel"]], values) for row in predicted]
    store.save_predictions(engine, before, after, rows)
    whole = [row for row in rows if row["kind"] not in store.PARTIAL_KINDS]
    left_out = [row for row in whole if not (row["scored"] == 1 and row["changed"])]
    reasons = dict.fromkeys(f"{row['kernel_after']}: {row['reason'] or row['changed_because']}" for row in left_out)
    if len(whole) < len(rows):
        reasons[f"single criteria, models and rules: {store.PARTIAL_REASON}"] = None
    return {"recorded": len(rows), "scored": len(whole) - len(left_out), "reasons": list(reasons)}


def _verdicts(engine: "Engine", view: Row, pairs: Mapping[str, Row]) -> dict[str, ChangeVerdict]:
    """Return for each kernel whether it changed in the later run."""
    runs = view["before"], view["after"]
    builds = _build(runs[0]), _build(runs[1])
    traits = [store.kernel_properties(engine, run["run_id"], TRAITS) for run in runs]

    def kernel(number: int, name: str) -> Kernel:
        return Kernel(name, *traits[number].get(name, (0, {})))

    return {
        name: has_changed(
            kernel(0, name), kernel(1, pair["kernel_after_full"]), builds, mapped=pair["matched_by"] == MAPPED
        )
        for name, pair in pairs.items()
    }


def _build(run: Row) -> Build:
    return Build(json.loads(run["tags"]).get(store.BINARY_TAG), run["commit_id"])


def _prediction(told: Row, pair: Row, judged: Row, values: Mapping[tuple[str, str], float]) -> dict[str, Any]:
    """Return the row of a prediction with the achieved speedup."""
    is_criterion = told["kind"] == "criterion"
    bound = BOUNDS.get((told["is_floor"], told["is_ceiling"])) if judged["scored"] else None
    return {
        **told,
        **judged,
        **({"scored": store.SCORED_AS_BOUND, "reason": bound} if bound else {}),
        "kernel_before": told["kernel"],
        "kernel_after": pair["kernel_after_full"],
        "achieved": pair["speedup"],
        "value_before": told["value"],
        "value_after": values.get((pair["kernel_after_full"], told["criterion"])) if is_criterion else None,
        "before_ns": pair["mean_before_us"] * 1e3,
        "after_ns": pair["mean_after_us"] * 1e3,
        "matched_by": pair["matched_by"],
    }


def _work(works: Mapping[str, Row], kernel: str, run: Row) -> Row:
    """Return the work of a kernel; only the device of its run if it has no launches."""
    unknown = dict.fromkeys(("least_threads", "most_threads", "tool", "other_tool"))
    return works.get(kernel) or {**unknown, "unknown": 0, "device": run["device"], "other_device": run["device"]}


def _is_pair(row: Row, *, same_run: bool) -> bool:
    """Tell whether a pair can be scored: both are timed, and they are not the same kernel of the same run."""
    return row["speedup"] is not None and not (same_run and row["kernel_before_full"] == row["kernel_after_full"])


def _judged(pair: Row, old: Row, new: Row, verdict: ChangeVerdict) -> dict[str, Any]:
    """Return why both kernels do the same work, why the pair is not scored (None if it is), and whether it changed."""
    same = MAPPED if pair["matched_by"] == MAPPED else SAME_THREADS if _threads(old) == _threads(new) else None
    if same == SAME_THREADS and _threads(old) is None:
        same = None
    said = []
    for what, words in (("device", "it ran on {} before and on {} after"), ("tool", "{} timed it before, {} after")):
        names = [_names(one, what) for one in (old, new)]
        if names[0] != names[1] or len(names[0]) > 1:
            said.append(words.format(*(" and ".join(sorted(name)) or "an unknown " + what for name in names)))
    if same is None:
        threads = [_words(_threads(one)) for one in (old, new)]
        said.append(
            f"the work may differ: a launch has {threads[0]} before and {threads[1]} after; if it is the same, use "
            "--map OLD=NEW"
        )
    return {
        "same_work": same,
        "device": old["device"],
        "scored": int(not said),
        "reason": "; ".join(said) or None,
        "changed": None if verdict.changed is None else int(verdict.changed),
        "changed_because": verdict.because,
    }


def _threads(one: Row) -> tuple[float, float] | None:
    """Return the minimum and maximum threads of a launch; None if some are unknown."""
    if one["unknown"] or one["least_threads"] is None:
        return None
    return one["least_threads"], one["most_threads"]


def _words(threads: tuple[float, float] | None) -> str:
    if threads is None:
        return "an unknown number of threads"
    least, most = threads
    return counted(f"{least:.0f}", "thread") if least == most else f"{least:.0f} to {most:.0f} threads"


def _names(one: Row, what: str) -> set[str]:
    return {name for name in (one[what], one[f"other_{what}"]) if name is not None}


def accuracy(
    engine: "Engine",
    project: str | None = None,
    source: str | None = None,
    *,
    acted: bool = False,
    best: bool = False,
    unchanged: bool = False,
) -> dict[str, Any]:
    """Score the valid predictions: one row for each source, kind and criterion in ``scores``.

    Kernels that are not known to have changed are scored only with ``unchanged``. Predictions of a single criterion,
    model or rule do not predict the whole change. ``left_out`` counts excluded predictions by reason. With ``acted``,
    criteria that improved by 0.05 or more are scored as well; with ``best`` only the fastest of several later runs.
    ``common`` compares the overall predictions of all sources on their common pairs. A row with too few pairs has only
    their number, the ``regressions`` among them and a reason. ``median_share`` is the median share of the predicted
    saving. ``pairs`` are the scored overall predictions with their ``outcome``.
    """
    counted, numbers = store.scored_predictions(engine, project, source, unchanged=unchanged, parts=acted)
    too = (*(store.UNCHANGED_REASONS if unchanged else ()), *(("part",) if acted else ()))
    counted = [row for row in counted if row["kind"] not in store.PARTIAL_KINDS or row["kind"] == CRITERION]
    recorded = sum(numbers.values())
    if source is not None and not recorded and source not in (named := store.prediction_sources(engine)):
        raise NotFoundError.near("source of predictions", source, named)
    rows: list[Row] = [row for row in counted if not acted or _improved(row)]
    rows = sorted(_with_outcomes(_fastest(rows) if best else rows), key=_group)
    scores = [_score(group, list(own)) for group, own in groupby(rows, _group)]
    return {
        "project": project,
        "source": source,
        "acted": acted,
        "best": best,
        "unchanged": unchanged,
        "recorded": recorded,
        "left_out": {why: numbers.get(why, 0) for why in LEFT_OUT if why not in too},
        "counted": len(counted),
        "scored": len(rows),
        "truncated": len(counted) == store.MAX_PREDICTIONS,
        "scores": sorted(scores, key=_place),
        "common": _common(rows),
        "pairs": [row for row in rows if row["criterion"] == OVERALL],
    }


def _place(row: Row) -> tuple[Any, ...]:
    return KINDS.index(row["kind"]), row["source"], -row["n"], row["criterion"]


def _group(row: Row) -> tuple[str, str, str]:
    return row["source"], row["kind"], row["criterion"]


def _improved(row: Row) -> bool:
    if row["kind"] != "criterion":
        return True
    return None not in (row["value_before"], row["value_after"]) and row["value_after"] - row["value_before"] >= ACTED


def _fastest(rows: Iterable[Row]) -> list[Row]:
    """Return for each prediction only the fastest pair."""
    kept: dict[Any, Row] = {}
    for row in rows:
        key = (row["run_before"], row["kernel_before"], _group(row))
        if key not in kept or row["achieved"] > kept[key]["achieved"]:
            kept[key] = row
    return list(kept.values())


def _score(group: Sequence[str], rows: Sequence[Row]) -> dict[str, Any]:
    made = formula.accuracy([row["predicted"] for row in rows], [row["achieved"] for row in rows])
    scored: dict[str, Any] = dict.fromkeys(SCORES)
    scored |= dict(zip(("source", "kind", "criterion"), group, strict=True))
    scored |= {"n": int(made.n), "runs": len({(row["run_before"], row["run_after"]) for row in rows})}
    scored["regressions"] = sum(row["outcome"] == REGRESSION for row in rows)
    if made.n < formula.MIN_PAIRS:
        return scored | {"reason": f"{int(made.n)} of the {formula.MIN_PAIRS} pairs required for a score"}
    numbers = {name: float(value) for name, value in made._asdict().items() if value.ndim == 0}
    numbers |= {"median_log_error": numbers["log_error"], "median_factor": float(np.exp(numbers["log_error"]))}
    numbers |= {
        f"within_{share * 100:.0f}": float(x) for share, x in zip(formula.WITHIN_SHARES, made.within, strict=True)
    }
    scored |= {
        name: None if np.isnan(value) else value for name, value in numbers.items() if name in SCORES and name != "n"
    }
    shares = [row["achieved_share"] for row in rows if row["achieved_share"] is not None]
    return scored | {"median_share": float(np.median(shares)) if shares else None}


def _with_outcomes(rows: Sequence[Row]) -> list[Row]:
    """Add the outcome of each kernel, and the share of the predicted saving."""
    before, after, predicted = ([row[name] for row in rows] for name in ("before_ns", "after_ns", "predicted"))
    came = kernel_outcomes(before, after, predicted)
    return [{**row, "outcome": one.word, "achieved_share": one.share} for row, one in zip(rows, came, strict=True)]


def _common(rows: Collection[Row]) -> list[dict[str, Any]]:
    """Score the overall predictions of all sources on their common pairs; empty with one source."""
    overall = [row for row in rows if row["criterion"] == OVERALL]
    sources = sorted({row["source"] for row in overall})
    of_pair: dict[Any, set[str]] = {}
    for row in overall:
        of_pair.setdefault(_pair(row), set()).add(row["source"])
    shared = [row for row in overall if len(of_pair[_pair(row)]) == len(sources)]
    return [
        _score((name, OVERALL, OVERALL), [row for row in shared if row["source"] == name])
        for name in sources
        if len(sources) > 1
    ]


def _pair(row: Row) -> tuple[Any, ...]:
    return row["run_before"], row["run_after"], row["kernel_before"], row["kernel_after"]
