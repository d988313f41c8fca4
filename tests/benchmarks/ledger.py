"""Predicted against achieved speedup of every pair of kernels with a known flaw, as tables in Markdown.

Run it with ``python -m tests.benchmarks.ledger [all]``. The sets are those of `tests.benchmarks.causes`, each profiled
on one NVIDIA H200. First stands how well each prediction does by set: the potential in its consistent form and as
published, the largest global estimate of Nsight Compute, and the median of what was achieved, which nobody knows in
advance. Then the potential by kind of flaw; with ``all`` every pair.
"""

import sys
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from tests.benchmarks.causes import EXCLUDED, FOLDERS, LATER, NO_FLAW, cases, stored, vendor_speedup
from tests.command_line import parser_of

SETS = ("first", "second", *LATER)
PREDICTIONS = {
    "potential": "potential",
    "as_published": "as published",
    "vendor": "Nsight Compute",
    "constant": "constant",
}


def pairs(name: str) -> pd.DataFrame:
    """Return a row for each pair of a set: what was predicted, and what the kernel without the flaw achieved."""
    counters, bounds, rules, _ = stored(FOLDERS[name])
    known = cases(FOLDERS[name])
    median_us = {(case["work"], case["variant"]): float(case["median_us"]) for case in known}
    rows = [
        {
            "set": name,
            "work": case["work"],
            "flaw": case["flaw"],
            "achieved": median_us[case["work"], "a"] / median_us[case["work"], "b"],
            "potential": bound["speedup"],
            "as_published": bound["speedup_as_published"],
            "vendor": vendor_speedup(rules, bound["launch_id"]),
        }
        for case, bound in zip(known, bounds, strict=True)
        if case["flaw"] not in NO_FLAW and case.get("set") != EXCLUDED and len(counters)
    ]
    table = pd.DataFrame(rows)
    return table.assign(constant=table["achieved"].median())


def score(predicted: "pd.Series[float]", achieved: "pd.Series[float]") -> str:
    """Return the rank correlation, the typical factor and the worst one as a cell of a table."""
    known = predicted.notna()
    errors = np.abs(np.log(predicted[known].astype("float64") / achieved[known]))
    rank = float(spearmanr(predicted[known], achieved[known])[0]) if predicted[known].nunique() > 1 else np.nan
    rank_text = "" if np.isnan(rank) else f"{rank:.2f}, "
    return f"{rank_text}×{np.exp(errors.median()):.2f} (×{np.exp(errors.max()):.3g})"


def table_of(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def main(arguments: Sequence[str]) -> pd.DataFrame:
    """Print the tables; return the pairs."""
    parser = parser_of(__doc__)
    parser.add_argument("every", nargs="?", choices=["all"], help="print every pair as well")
    asked = parser.parse_args(arguments)
    every = pd.concat([pairs(name) for name in SETS], ignore_index=True)
    by_set = [(name, len(own), own) for name, own in every.groupby("set", sort=False)]
    by_set += [("all", len(every), every.assign(constant=every["achieved"].median()))]
    cells = ([name, count, *(score(own[one], own["achieved"]) for one in PREDICTIONS)] for name, count, own in by_set)
    print(table_of(["set", "pairs", *(f"{title}: rank, factor (worst)" for title in PREDICTIONS.values())], cells))
    ratio = np.log(every["potential"].astype("float64") / every["achieved"]).groupby(every["flaw"])
    columns = {"pairs": ratio.size(), "bias": np.exp(ratio.median()), "factor": np.exp(ratio.apply(_typical))}
    flaws = pd.DataFrame(columns)
    rows = [(name, int(row["pairs"]), f"×{row['bias']:.2f}", f"×{row['factor']:.2f}") for name, row in flaws.iterrows()]
    print("\n" + table_of(["flaw", "pairs", "predicted / achieved", "typical factor"], rows))
    if asked.every:
        numbers = ["achieved", *list(PREDICTIONS)[:3]]
        shown = every.assign(**{one: every[one].astype("float64").round(2) for one in numbers})
        columns_shown = ["set", "work", "flaw", *numbers]
        print("\n" + table_of(columns_shown, shown[columns_shown].to_numpy().tolist()))
    return every


def _typical(logarithms: "pd.Series[float]") -> float:
    return float(np.abs(logarithms).median())


if __name__ == "__main__":
    main(sys.argv[1:])
