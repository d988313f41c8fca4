"""How well speedups were foretold, as a person reads it in a terminal."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from profsvc.reports.ratios import factor, times
from profsvc.reports.rows import render, visible

Row = Mapping[str, Any]
HEADS = (
    "pairs", "rank corr.", "error", "bias", "within 10/25/50 %", "slope", "passed", "of it achieved", "regressions",
    "constant guess",
)  # fmt: skip
TITLES = {
    "overall": "the whole potential, which nothing but the best version can achieve",
    "ceiling": "ceilings, which only another algorithm, type of numbers or unit may pass",
    "criterion": "single criteria: what repairing one of them alone would bring",
    "model": "models",
    "global": "single rules of the tool, as shares of the kernel's time",
    "local": "single rules of the tool, as shares of what the rule looks at alone: no speedups of the kernel",
}
# What was asked for -> what it is called.
ASKED = {
    "acted": "criteria that improved", "best": "best version of each", "unchanged": "whether or not the kernel changed",
}  # fmt: skip
LEFT_OUT = {
    "not comparable": "of other work, another device or another tool",
    "bound": "of which the export did not tell more than a bound",
    "part": "of single criteria, models and rules, which claim no whole change (--acted scores criteria that improved)",
    "unchanged": "of kernels that are the same in both runs, which is no attempt (--unchanged counts them)",
    "unknown": "where nothing says whether the kernel changed: name the binary when uploading, --tag binary=ID "
    "(--unchanged counts them)",
}
WIDER = "a change seldom acts on one of them alone, so that single ones are foretold too low where much was changed"


def accuracy(view: Row, width: int | None = None) -> str:
    """Write the page of the accuracy: the sources on the pairs that all foretold, then a table a kind."""
    lines = list(_head(view))
    if view["common"]:
        lines += ["", "side by side, on the pairs that all of them foretold", *_table(view["common"], width)]
    for kind, title in TITLES.items():
        own = [row for row in view["scores"] if row["kind"] == kind]
        lines += ["", title, *_table(own, width)] if own else []
    if view["scores"]:
        lines += ["", *_notes()]
    return "\n".join(visible(line) for line in lines) + "\n"


def _head(view: Row) -> Iterable[str]:
    asked = [f"{name} {view[name]}" for name in ("project", "source") if view[name] is not None]
    asked += [words for name, words in ASKED.items() if view[name]]
    yield f"predictions{': ' * bool(asked)}{', '.join(asked)}"
    if not view["recorded"]:
        yield "none is recorded; compare a run with one after a change: profsvc compare BEFORE AFTER"
        return
    yield f"{view['recorded']} recorded, {view['counted']} count, {view['scored']} scored here"
    left_out = {why: number for why, number in view["left_out"].items() if number}
    for why, number in left_out.items():
        yield f"left out: {number}, {LEFT_OUT[why]}"
    if left_out:
        yield 'why, one by one: profsvc sql "select left_out, reason, count(*) from v1_predictions group by 1, 2"'


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
    yield "error: the factor by which half of the predictions are further off; bias: how far they are too high"
    yield "within: share of the predictions that lie so close; passed: more was achieved than 1.05 times the prediction"
    yield "of it achieved: half of the pairs saved less of the time that was to be saved; regressions: became slower"
    yield "slope: of achieved over predicted, as powers, with 95 %; 1 where large ones come true as well as small ones"
    yield "constant guess: who always says the median of what is achieved, which nobody knows before"
    yield WIDER
