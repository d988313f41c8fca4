"""What was foretold, and what came of it: recorded when two runs are compared, scored over all of them."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from profsvc import store
from profsvc.analysis.changed_kernels import COUNTED, LAUNCHED, Build, Kernel, Verdict, changed
from profsvc.analysis.matching import MAPPED
from profsvc.analysis.outcomes import REGRESSION, outcomes
from profsvc.errors import NotFoundError
from profsvc.formulas import accuracy as formula

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
LEFT_OUT = ("not comparable", "bound", "part", *store.UNCHANGED)
# Whether what was foretold is a floor and whether it is a ceiling -> why it is no prediction.
BOUNDS = {
    (1, 0): "it is at least what was foretold: the run before lacks counts of its work",
    (0, 1): "it is at most what was foretold: the run before lacks counts of its work",
    (1, 1): "it is more or less than what was foretold: the run before lacks counts of its work",
}
TRAITS = (*LAUNCHED, *COUNTED)
# A criterion that rose by less was hardly worked on.
ACTED = 0.05


def record(engine: "Engine", view: Row) -> dict[str, Any]:
    """Store what was foretold of the kernels of a comparison (`compare.compare`) beside what they achieved.

    The rows of the same pair of runs are replaced. ``recorded`` says how many there are, ``scored`` how many of them
    count, ``reasons`` why the others do not.
    """
    before, after = view["before"]["run_id"], view["after"]["run_id"]
    pairs = {row["kernel_before_full"]: row for row in view["kernels"] if _is_pair(row, same_run=before == after)}
    told = [row for row in store.foretold(engine, before) if row["kernel"] in pairs]
    works = [store.work_of_kernels(engine, run_id) for run_id in (before, after)] if told else [{}, {}]
    values = store.criteria_of_kernels(engine, after) if told else {}
    verdicts = _verdicts(engine, view, pairs) if told else {}
    judged = {
        name: _judged(
            pair,
            _work(works[0], name, view["before"]),
            _work(works[1], pair["kernel_after_full"], view["after"]),
            verdicts[name],
        )
        for name, pair in pairs.items()
        if told
    }
    rows = [_prediction(row, pairs[row["kernel"]], judged[row["kernel"]], values) for row in told]
    store.save_predictions(engine, before, after, rows)
    whole = [row for row in rows if row["kind"] not in store.PARTS]
    left_out = [row for row in whole if not (row["scored"] == 1 and row["changed"])]
    reasons = dict.fromkeys(f"{row['kernel_after']}: {row['reason'] or row['changed_because']}" for row in left_out)
    if len(whole) < len(rows):
        reasons[f"single criteria, models and rules: {store.PART}"] = None
    return {"recorded": len(rows), "scored": len(whole) - len(left_out), "reasons": list(reasons)}


def _verdicts(engine: "Engine", view: Row, pairs: Mapping[str, Row]) -> dict[str, Verdict]:
    """Return of each kernel whether it is another one in the run after."""
    runs = view["before"], view["after"]
    builds = _build(runs[0]), _build(runs[1])
    traits = [store.traits_of_kernels(engine, run["run_id"], TRAITS) for run in runs]

    def kernel(number: int, name: str) -> Kernel:
        return Kernel(name, *traits[number].get(name, (0, {})))

    return {
        name: changed(
            kernel(0, name), kernel(1, pair["kernel_after_full"]), builds, mapped=pair["matched_by"] == MAPPED
        )
        for name, pair in pairs.items()
    }


def _build(run: Row) -> Build:
    return Build(json.loads(run["tags"]).get(store.BINARY), run["commit_id"])


def _prediction(told: Row, pair: Row, judged: Row, values: Mapping[tuple[str, str], float]) -> dict[str, Any]:
    """Return the row of what was foretold of a kernel, with what it achieved."""
    is_criterion = told["kind"] == "criterion"
    bound = BOUNDS.get((told["is_floor"], told["is_ceiling"])) if judged["scored"] else None
    return {
        **told,
        **judged,
        **({"scored": store.BOUND, "reason": bound} if bound else {}),
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
    """Return what is known of the work of a kernel; of one without launches the device of its run."""
    unknown = dict.fromkeys(("least_threads", "most_threads", "tool", "other_tool"))
    return works.get(kernel) or {**unknown, "unknown": 0, "device": run["device"], "other_device": run["device"]}


def _is_pair(row: Row, *, same_run: bool) -> bool:
    """Tell whether something came of a kernel: both are timed, and they are not one and the same."""
    return row["speedup"] is not None and not (same_run and row["kernel_before_full"] == row["kernel_after_full"])


def _judged(pair: Row, old: Row, new: Row, verdict: Verdict) -> dict[str, Any]:
    """Why both do the same work, and why a prediction of the pair cannot be compared; None where it can. What is known
    of whether the kernel changed stands beside it.
    """
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
            f"nothing says that both do the same work: a launch has {threads[0]} before and {threads[1]} after; "
            "where it is the same, say so with --map OLD=NEW"
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
    """Return the least and the most threads of a launch, where all are known."""
    if one["unknown"] or one["least_threads"] is None:
        return None
    return one["least_threads"], one["most_threads"]


def _words(threads: tuple[float, float] | None) -> str:
    if threads is None:
        return "an unknown number of threads"
    least, most = threads
    return f"{least:.0f} threads" if least == most else f"{least:.0f} to {most:.0f} threads"


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
    """Score the predictions that count: a row for each source, kind and criterion in ``scores``.

    Those of kernels that did not change, or of which nothing says so, count with ``unchanged`` alone, and those of a
    single criterion, model or rule claim no whole change; ``left_out`` says how many do not count, by why. With
    ``acted`` those of a criterion count too that the change improved by 0.05 or more, where that is known; with
    ``best`` of several runs after one only the fastest. ``common`` compares the overall predictions of all sources on
    the pairs that each of them foretold. A row with too few pairs has its number and a reason, and no scores but the
    number of ``regressions`` among them. ``median_share`` is how much of the time that was to be saved was saved.
    ``pairs`` are the overall predictions that were scored, each with its ``outcome``.
    """
    counted, numbers = store.scored_predictions(engine, project, source, unchanged=unchanged, parts=acted)
    too = (*(store.UNCHANGED if unchanged else ()), *(("part",) if acted else ()))
    counted = [row for row in counted if row["kind"] not in store.PARTS or row["kind"] == CRITERION]
    recorded = sum(numbers.values())
    if source is not None and not recorded and source not in (named := store.sources_of_predictions(engine)):
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
        "truncated": len(counted) == store.MOST_PREDICTIONS,
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
    """Keep of each prediction the pair that achieved most."""
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
    if made.n < formula.LEAST:
        return scored | {"reason": f"{int(made.n)} of the {formula.LEAST} pairs that a score needs"}
    numbers = {name: float(value) for name, value in made._asdict().items() if value.ndim == 0}
    numbers |= {"median_log_error": numbers["log_error"], "median_factor": float(np.exp(numbers["log_error"]))}
    numbers |= {f"within_{share * 100:.0f}": float(x) for share, x in zip(formula.SHARES, made.within, strict=True)}
    scored |= {
        name: None if np.isnan(value) else value for name, value in numbers.items() if name in SCORES and name != "n"
    }
    shares = [row["achieved_share"] for row in rows if row["achieved_share"] is not None]
    return scored | {"median_share": float(np.median(shares)) if shares else None}


def _with_outcomes(rows: Sequence[Row]) -> list[Row]:
    """Add what each kernel became, and how much of the saving that was foretold it is."""
    before, after, predicted = ([row[name] for row in rows] for name in ("before_ns", "after_ns", "predicted"))
    came = outcomes(before, after, predicted)
    return [{**row, "outcome": one.word, "achieved_share": one.share} for row, one in zip(rows, came, strict=True)]


def _common(rows: Collection[Row]) -> list[dict[str, Any]]:
    """Score the overall predictions of all sources on the pairs that each of them foretold; none with one source."""
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
