"""The prediction accuracy as text for a terminal."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from profsvc.reports.ratios import factor, times
from profsvc.reports.rows import render, visible

Row = Mapping[str, Any]
HEADS = (
    "pairs", "rank corr.", "error", "bias", "within 10/25/50 %", "slope", "passed", "share of predicted gain",
    "regressions", "constant guess",
)  # fmt: skip
TITLES = {
    "overall": "overall potential, which only the best version can reach",
    "ceiling": "ceilings, which only another algorithm, data type or unit can exceed",
    "criterion": "single criteria: speedup from fixing only one of them",
    "model": "models",
    "global": "single rules of the tool, as shares of the kernel time",
    "local": "single rules of the tool, as shares of one unit's inefficiency: not kernel speedups",
}
# Option -> its description.
OPTION_TEXTS = {
    "acted": "criteria that improved", "best": "best version of each", "unchanged": "also unchanged kernels",
}  # fmt: skip
LEFT_OUT = {
    "not comparable": "with different work, device or tool",
    "bound": "where the export gives only a bound",
    "part": "of single criteria, models and rules, which do not predict the whole change (--acted scores "
    "improved criteria)",
    "unchanged": "of kernels that are identical in both runs (--unchanged counts them)",
    "unknown": "where it is unknown whether the kernel changed; upload with --tag binary=ID (--unchanged counts them)",
}
SINGLE_NOTE = (
    "a change rarely affects only one criterion, so predictions of single criteria are too low after large changes"
)


def accuracy(view: Row, width: int | None = None) -> str:
    """Return the accuracy as text: all sources on their common pairs, then one table per kind."""
    lines = list(_head(view))
    if view["common"]:
        lines += ["", "comparison on the pairs that all sources predicted", *_table(view["common"], width)]
    for kind, title in TITLES.items():
        own = [row for row in view["scores"] if row["kind"] == kind]
        lines += ["", title, *_table(own, width)] if own else []
    if view["scores"]:
        lines += ["", *_notes()]
    return "\n".join(visible(line) for line in lines) + "\n"


def _head(view: Row) -> Iterable[str]:
    options = [f"{name} {view[name]}" for name in ("project", "source") if view[name] is not None]
    options += [words for name, words in OPTION_TEXTS.items() if view[name]]
    yield f"predictions{': ' * bool(options)}{', '.join(options)}"
    if not view["recorded"]:
        yield "no predictions saved; compare a run with one after a change: profsvc compare BEFORE AFTER"
        return
    yield f"{view['recorded']} saved, {view['counted']} valid, {view['scored']} scored"
    left_out = {why: number for why, number in view["left_out"].items() if number}
    for why, number in left_out.items():
        yield f"excluded: {number} {LEFT_OUT[why]}"
    if left_out:
        yield 'reasons: profsvc sql "select left_out, reason, count(*) from v1_predictions group by 1, 2"'


def _table(rows: Sequence[Row], width: int | None) -> list[str]:
    cells = [dict(zip(("who", "what", *HEADS), _cells(row), strict=True)) for row in rows]
    return str(render(("who", "what", *HEADS), cells, "table", width=width)).splitlines()


def _cells(row: Row) -> Iterable[Any]:
    yield from (row["source"], row["criterion"], row["n"])
    if row["reason"]:
        yield from ("too few", *[""] * (len(HEADS) - 4), row["regressions"], "")
        return
    yield _two(row["rank_correlation"])
    yield factor(row["median_factor"])
    yield f"{100 * (_factor(row['bias']) - 1):+.0f} %"
    yield "/".join(f"{100 * row[f'within_{share}']:.0f}" for share in (10, 25, 50))
    ends = row["slope_low"], row["slope_high"]
    yield (
        "" if row["slope"] is None else _two(row["slope"]) + ("" if None in ends else " [{:.2f}, {:.2f}]".format(*ends))
    )
    yield f"{100 * row['passed']:.0f} %"
    yield "" if row["median_share"] is None else f"{100 * row['median_share']:.0f} %"
    yield row["regressions"]
    yield f"{times(row['constant'])}: {factor(_factor(row['constant_log_error']))}"


def _two(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _factor(log: float) -> float:
    return math.exp(log)


def _notes() -> Iterable[str]:
    yield "error: median factor between predicted and achieved; bias: mean over-prediction"
    yield "within: share of predictions with at most this error; passed: share exceeded by more than 5 %"
    yield "share of predicted gain: median of time saved / predicted saving; regressions: kernels that became slower"
    yield (
        "slope: exponent of achieved against predicted with its 95 % interval; 1 if large predictions are as "
        "accurate as small ones"
    )
    yield "constant guess: always predicting the median achieved speedup, which is unknown beforehand"
    yield SINGLE_NOTE
