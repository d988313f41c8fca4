"""How often the first cause of a launch names its flaw, on pairs of kernels with one known flaw each.

Run it with ``python -m tests.benchmarks.causes [design|held_out]``. The pairs are those of ``fixtures/flaws``: half of
them (``design``) were in sight while the attribution was written, the other half was not. Printed are, for each launch
with a flaw, the causes with the largest shares of its time, and how often the first is the flaw, or one of the first
two; beside them the rules of Nsight Compute in the order of their estimates, which count where ``causes.toml`` says
that they speak of the flaw. Kernels without a flaw should be at a limit. The last line compares the potential of the
flawed kernels with the speedup of the version without the flaw.
"""

import csv
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from profsvc import pipeline, specs, store
from profsvc.analysis.causes.rows import launch_causes
from profsvc.analysis.potential.peaks import peaks
from profsvc.specs.causes import causes

FLAWS = Path(__file__).parents[2] / "fixtures" / "flaws"
# Labels of the set that the causes have another name for.
CAUSE_OF_LABEL = {"address_arithmetic": "overhead_instructions"}
NO_FLAW = ("none", "no_effect")
DEVICE = ("NVIDIA H200", "9.0")


def cases() -> list[dict[str, str]]:
    """Return the launches of the profile in their order, with the flaw of each."""
    with (FLAWS / "cases.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def stored() -> tuple[pd.DataFrame, list[dict[str, Any]], list[dict[str, Any]]]:
    """Upload the profile to a fresh store; return its counters, potential and rules, in launch order."""
    with tempfile.TemporaryDirectory() as folder:
        engine = store.open_store(str(Path(folder) / "store.sqlite"))
        for name in ("ncu_raw_base.csv.gz", "ncu_details.csv.gz"):
            with (FLAWS / name).open("rb") as stream:
                run = pipeline.ingest(engine, stream, name, store.RunInfo(name="flaws")).run_id
        counters = pd.DataFrame(store.select(engine, "v1_counters", run_id=run)).sort_values("launch_id")
        bounds = {row["launch_id"]: row for row in store.select(engine, "v1_potential", run_id=run)}
        rules = store.select(engine, "v1_rules", run_id=run)
        engine.dispose()
    return counters.reset_index(drop=True), [bounds[name] for name in counters["launch_id"]], rules


def vendor_rules(rules: Sequence[dict[str, Any]], launch_id: int) -> list[str]:
    """Return the rules of a launch with an estimate, largest first."""
    found = [row for row in rules if row["launch_id"] == launch_id and row["estimated_speedup"]]
    return [row["rule"] for row in sorted(found, key=lambda row: -row["estimated_speedup"])]


def main(arguments: Sequence[str]) -> dict[str, int]:
    """Print the table of the named half, or of all; return how often each answer was right."""
    counters, bounds, rules = stored()
    potentials = pd.DataFrame(bounds)[["duration_ns", "ideal_ns", "ideal_bound"]]
    table = launch_causes(counters, peaks(counters, specs.figures(*DEVICE))[0], potentials)
    median_us = {(case["work"], case["variant"]): float(case["median_us"]) for case in cases()}
    score = dict.fromkeys(("launches", "first", "second", "vendor first", "vendor second", "unflawed", "at limit"), 0)
    predicted, achieved = [], []
    for place, case in enumerate(cases()):
        if case["set"] not in (arguments or ("design", "held_out")):
            continue
        own = table[table["launch_id"] == place].sort_values("rank")
        names, vendor = list(own["cause"]), vendor_rules(rules, bounds[place]["launch_id"])
        shown = own[own["saving_fraction"] >= 0.02].head(4) if own["kind"].iloc[0] == "flaw" else own.head(1)
        text = ", ".join(
            f"{row.cause} {row.saving_fraction:.2f} ({row.low:.2f}-{row.high:.2f})" for row in shown.itertuples()
        )
        kernel = f"{case['work']}_{case['variant']}"
        print(f"{kernel:20}{case['flaw']:26}{bounds[place]['speedup']:7.2f}x  {text}  [{', '.join(vendor[:2])}]")
        if case["flaw"] in NO_FLAW:
            score["unflawed"] += 1
            score["at limit"] += own["kind"].iloc[0] == "limit"
            continue
        score["launches"] += 1
        flaw = CAUSE_OF_LABEL.get(case["flaw"], case["flaw"])
        score["first"] += names[:1] == [flaw]
        score["second"] += flaw in names[:2]
        score["vendor first"] += bool(set(vendor[:1]) & set(causes()[flaw].rules))
        score["vendor second"] += bool(set(vendor[:2]) & set(causes()[flaw].rules))
        predicted.append(bounds[place]["speedup"])
        achieved.append(median_us[case["work"], "a"] / median_us[case["work"], "b"])
    print(score)
    error = np.median(np.abs(np.log(np.array(predicted) / np.array(achieved))))
    rank = spearmanr(predicted, achieved)[0]
    print(f"potential of {len(predicted)} pairs: median |ln(predicted / achieved)| {error:.2f}, rank {rank:.2f}")
    return score


if __name__ == "__main__":
    main(sys.argv[1:])
