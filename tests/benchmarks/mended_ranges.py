"""How much of its potential a mended kernel achieves, by the first cause, on pairs of kernels with one known flaw each.

Run it with ``python -m tests.benchmarks.mended_ranges [write]``. Of a pair the version with the flaw has a potential
and a first cause, and the version without it was timed. For each cause two numbers are found: the power of the
potential that nine of ten pairs achieve at least, and the factor by which nine of ten do not exceed it. The other
causes with its sort of evidence count as so many pairs as `OTHERS` says, so that a cause of few pairs has the range of
its like. The range always contains the potential. Printed is how many pairs lie in their range, where the ranges come
from the other sets. ``write`` records what the rules of today say of all sets, and writes the table
``profsvc/data/advice/mended_ranges.csv``.
"""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from profsvc.formulas.performance.mended_range import mended_range
from profsvc.specs.advice.causes import causes, least_shares
from profsvc.specs.advice.mended_ranges import COLUMNS, MENDED_RANGES, MendedRange
from profsvc.specs.table_files import DATA
from tests.benchmarks.causes import EXCLUDED, FIXTURES, FOLDERS, NO_FLAW, cases, stored
from tests.benchmarks.ledger import SETS, table_of
from tests.command_line import parser_of

RECORD = FIXTURES / "first_sight" / "gains.csv.gz"
OUTSIDE = 0.1
"""Share of the pairs below the range, and of those above it."""
OTHERS = 20.0
"""Pairs that the other causes of the same evidence count for; with 5 or 10, ranges are too narrow for sets left out."""
FLAWS = [name for name, cause in causes().items() if cause.kind == "flaw"]


def said_today(name: str) -> pd.DataFrame:
    """Return the first cause and the potential of each pair of a set by the rules of today, and what it achieved."""
    _, bounds, _, found = stored(FOLDERS[name])
    first = found[found["rank"] == 1].set_index("launch_id")["cause"]
    known = cases(FOLDERS[name])
    median_us = {(case["work"], case["variant"]): float(case["median_us"]) for case in known}
    rows = [
        {
            "set": name,
            "launch": case["launch"],
            "cause": first[bound["launch_id"]],
            "potential": round(bound["speedup"], 4),
            "achieved": round(median_us[case["work"], "a"] / median_us[case["work"], "b"], 4),
        }
        for case, bound in zip(known, bounds, strict=True)
        if case["flaw"] not in NO_FLAW and case.get("set") != EXCLUDED
    ]
    return pd.DataFrame(rows)


def recorded() -> pd.DataFrame:
    """Return what the rules of today say of all sets, of kernels whose first cause is a flaw."""
    table = pd.read_csv(RECORD)
    return table[table["cause"].isin(FLAWS)].reset_index(drop=True)


def fitted(pairs: pd.DataFrame) -> Mapping[str, MendedRange]:
    """Return the range of each cause."""
    exponents = (np.log(pairs["achieved"]) / np.log(pairs["potential"])).to_numpy()
    factors = (pairs["achieved"] / pairs["potential"]).to_numpy()
    evidence = np.array([least_shares()[name].evidence for name in pairs["cause"]])
    found = {}
    for name in FLAWS:
        own = (pairs["cause"] == name).to_numpy()
        others = (evidence == least_shares()[name].evidence) & ~own
        weights = own + OTHERS * others / others.sum()
        least, largest = (
            float(np.quantile(values, share, weights=weights, method="inverted_cdf"))
            for values, share in ((exponents, OUTSIDE), (factors, 1 - OUTSIDE))
        )
        found[name] = MendedRange(round(min(least, 1.0), 2), round(max(largest, 1.0), 2), int(own.sum()))
    return found


def is_inside(pairs: pd.DataFrame, ranges: Mapping[str, MendedRange]) -> np.ndarray:
    """Tell which pairs achieved what their range says."""
    own = [ranges[name] for name in pairs["cause"]]
    ends = mended_range(pairs["potential"], [one.least_exponent for one in own], [one.largest_factor for one in own])
    return ((pairs["achieved"] >= ends.low) & (pairs["achieved"] <= ends.high)).to_numpy()


def left_out(pairs: pd.DataFrame) -> pd.Series:
    """Tell which pairs lie in a range that comes from the other sets."""
    inside = pd.Series(False, pairs.index)
    for name in pairs["set"].unique():
        own = pairs["set"] == name
        inside[own] = is_inside(pairs[own], fitted(pairs[~own]))
    return inside


def write(ranges: Mapping[str, MendedRange], path: Path) -> None:
    """Write the table of ranges."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for name, one in ranges.items():
            writer.writerow([name, f"{one.least_exponent:.2f}", f"{one.largest_factor:.2f}", one.pairs])


def main(arguments: Sequence[str] | None = None) -> pd.Series:
    """Print how many pairs lie in their range; return it for each pair."""
    parser = parser_of(__doc__)
    parser.add_argument("act", nargs="?", choices=["write"], help="record what the rules say today; write the table")
    asked = parser.parse_args(arguments)
    if asked.act == "write":
        table = pd.concat([said_today(name) for name in SETS], ignore_index=True)
        table.to_csv(RECORD, index=False, compression={"method": "gzip", "mtime": 0})
        write(fitted(recorded()), DATA / MENDED_RANGES)
    pairs = recorded()
    inside = left_out(pairs)
    evidence = pairs["cause"].map({name: one.evidence for name, one in least_shares().items()})
    size = pd.cut(pairs["potential"], [1, 1.5, 2, 3, 5, np.inf]).astype(str)
    rows = [
        (title, value, int(own.size), f"{own.mean():.2f}")
        for title, keys in (("all", "all"), ("evidence", evidence), ("potential", size), ("set", pairs["set"]))
        for value, own in inside.groupby(keys if isinstance(keys, pd.Series) else [keys] * len(inside), sort=False)
    ]
    print(table_of(["by", "", "pairs", "in their range"], rows))
    return inside


if __name__ == "__main__":
    main()
