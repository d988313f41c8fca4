"""How often the first cause of a launch names its flaw, on pairs of kernels with one known flaw each.

Run it with ``python -m tests.benchmarks.causes [design|held_out]``. The pairs are those of ``fixtures/flaws``: half of
them (``design``) were in sight while the attribution was written, the other half was not. Printed are, for each launch
with a flaw, the causes with the largest shares of its time, and how often the first is the flaw, or one of the first
two; beside them the rules of Nsight Compute in the order of their estimates, which count where ``causes.toml`` says
that they speak of the flaw. Kernels without a flaw should be at a limit.
"""

import csv
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from profsvc import pipeline, specs, store
from profsvc.analysis.causes.attribution import lost_time, ranked
from profsvc.analysis.potential.peaks import peaks
from profsvc.specs.causes import causes

FLAWS = Path(__file__).parents[2] / "fixtures" / "flaws"
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


def main(arguments: Sequence[str]) -> None:
    """Print the table of the named half, or of all."""
    counters, bounds, rules = stored()
    shares = lost_time(counters, peaks(counters, specs.figures(*DEVICE))[0])
    kinds = {name: cause.kind for name, cause in causes().items()}
    score = {
        "launches": 0,
        "first": 0,
        "second": 0,
        "vendor first": 0,
        "vendor second": 0,
        "unflawed": 0,
        "at limit": 0,
    }
    for place, case in enumerate(cases()):
        if case["set"] not in (arguments or ("design", "held_out")):
            continue
        loss = 1 - bounds[place]["ideal_ns"] / bounds[place]["duration_ns"]
        found = ranked(shares.loc[place].dropna().to_dict(), loss, kinds)
        names, vendor = [name for name, _ in found], vendor_rules(rules, bounds[place]["launch_id"])
        text = ", ".join(f"{name} {share:.2f}" for name, share in found[:4] if share >= 0.02)
        kernel = f"{case['work']}_{case['variant']}"
        print(f"{kernel:20}{case['flaw']:26}loss {loss:.2f}  {text}  [{', '.join(vendor[:2])}]")
        if case["flaw"] in NO_FLAW:
            score["unflawed"] += 1
            score["at limit"] += loss < 0.25
            continue
        score["launches"] += 1
        score["first"] += names[:1] == [case["flaw"]]
        score["second"] += case["flaw"] in names[:2]
        score["vendor first"] += bool(set(vendor[:1]) & set(causes()[case["flaw"]].rules))
        score["vendor second"] += bool(set(vendor[:2]) & set(causes()[case["flaw"]].rules))
    print(score)


if __name__ == "__main__":
    main(sys.argv[1:])
