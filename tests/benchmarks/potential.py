"""How well the overall potential predicts what tuning achieves, on families of kernels that do the same work.

Run it with ``python -m tests.benchmarks.potential``. Each family holds versions of one computation, profiled once and
timed without the profiler. For a version, *achieved* is its best warm time over that of the family's best version;
*predicted* is the speedup of ``v1_potential``. Printed are the rank correlation and the median |ln(predicted /
achieved)| over all versions but the best of each family, the same for Nsight Compute's own best estimate of kind
``global``, and how far the ideal times that the versions of one family imply lie apart.
"""

import csv
import io
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from profsvc import pipeline, store
from tests.command_line import parser_of

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared" / "captures" / "h200"
HELD_OUT = ROOT / "fixtures" / "held_out"
# Launch order of the capture, as its program prints it.
POWERS = (1, 2, 4, 8, 16, 32)
CAPTURE = [
    *(f"reduce_v{i}" for i in range(1, 8)), "saxpy", *(f"strided_{n}" for n in POWERS), "gemm_naive", "gemm_tiled16",
    "gemm_tiled32", *(f"divergent_{n}" for n in POWERS), *(f"shared_{n}" for n in POWERS), "sfu", "fp64", "fp32", "int",
    "barrier",
]  # fmt: skip
# gemm has no fast member here: its pairs say nothing about the potential, only about the ideal time.
WITHOUT_PAIRS = {"capture": {"gemm"}, "held out": set()}


def best_times_us(path: Path) -> dict[str, float]:
    """Best warm time of each case; repeat 0 is cold."""
    best: dict[str, float] = {}
    for row in csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))):
        if row["rep"] != "0":
            best[row["case"]] = min(best.get(row["case"], np.inf), 1e3 * float(row["time_ms"]))
    return best


def predictions(path: Path) -> list[dict[str, float | str]]:
    """Upload the export to a fresh store; its potential and the vendor's best global estimate, in launch order."""
    with tempfile.TemporaryDirectory() as folder, path.open("rb") as stream:
        engine = store.open_store(str(Path(folder) / "store.sqlite"))
        verdict = pipeline.ingest(engine, stream, path.name, store.RunInfo(name="potential"))
        launches = store.select(engine, "v1_launches", run_id=verdict.run_id)
        bounds = {p["launch_id"]: p for p in store.select(engine, "v1_potential", run_id=verdict.run_id)}
        rules = store.select(engine, "v1_rules", run_id=verdict.run_id, kind="global")
        engine.dispose()
    for rule in rules:
        bound = bounds[rule["launch_id"]]
        bound["vendor"] = max(bound.get("vendor", 1.0), rule["estimated_speedup"] or 1.0)
    return [launch | bounds[launch["launch_id"]] for launch in sorted(launches, key=lambda one: one["launch_index"])]


def score(title: str, export: Path, rules: Path, timings: Path, cases: list[str] | None) -> None:
    """Print both tables for one set of families."""
    best, rows = best_times_us(timings), predictions(export)
    names = cases or [str(r["kernel_short"]) for r in rows]
    vendor = [float(row.get("vendor", 1.0)) for row in predictions(rules)]
    table: dict[str, list[tuple[str, float, float, float, float, str]]] = {}
    for index, (name, row) in enumerate(zip(names, rows, strict=True)):
        family = name.rsplit("_", 1)[0] if cases else family_of(name)
        line = (name, float(row["speedup"]), float(row["duration_ns"]) / 1e3, float(row["ideal_ns"]) / 1e3,
                vendor[index], str(row["bound"]))  # fmt: skip
        table.setdefault(family, []).append(line)
    ours, theirs, achieved = [], [], []
    print(f"\n{title}\n{'version':26}{'us':>10}{'ideal us':>10}{'predicted':>11}{'achieved':>10}{'ncu':>8}  limited by")
    spread = {}
    for family, lines in table.items():
        if len(lines) < 2:
            continue
        fastest = min(best[name] for name, *_ in lines)
        ideal = [line[3] for line in lines]
        spread[family] = max(ideal) / min(ideal)
        for name, speedup, us, bound, ncu, unit in lines:
            reached = best[name] / fastest
            print(f"{name:26}{us:10.1f}{bound:10.1f}{speedup:10.2f}x{reached:9.2f}x{ncu:7.2f}x  {unit}")
            if best[name] > fastest and family not in WITHOUT_PAIRS[title]:
                ours.append(speedup)
                theirs.append(ncu)
                achieved.append(reached)
    titles = f"{'rank correlation':>20}{'median |ln(predicted / achieved)|':>36}{'worst factor':>16}"
    print(f"\n{len(ours)} pairs{'':12}{titles}")
    for who, predicted in (("profsvc", ours), ("Nsight Compute", theirs), ("constant 2x", [2.0] * len(ours))):
        errors = np.abs(np.log(np.array(predicted) / np.array(achieved)))
        print(f"{who:20}{_rank(predicted, achieved):20.2f}{np.median(errors):36.2f}{np.exp(errors.max()):16.2f}")
    print("\nspread of the ideal time over the versions of a family (max / min)")
    print("  ".join(f"{family} {ratio:.2f}" for family, ratio in spread.items()))


def family_of(name: str) -> str:
    """Family of a held-out kernel: the word before the first underscore, except for names of two words."""
    return "scan_block" if name.startswith("scan_block") else name.split("_", 1)[0]


def _rank(predicted: Iterable[float], achieved: Iterable[float]) -> float:
    predicted = list(predicted)
    return float("nan") if len(set(predicted)) < 2 else float(spearmanr(predicted, list(achieved))[0])


def main() -> None:
    """Score every set of families that is present."""
    if (SHARED / "ncu_raw_base.csv.gz").exists():
        score(
            "capture",
            SHARED / "ncu_raw_base.csv.gz",
            SHARED / "ncu_details_min.csv.gz",
            SHARED / "timings.csv",
            CAPTURE,
        )
    else:
        print(f"{SHARED} is absent: the 21 pairs of the capture are left out", file=sys.stderr)
    score("held out", HELD_OUT / "ncu_raw_base.csv.gz", HELD_OUT / "ncu_details.csv.gz", HELD_OUT / "timings.csv", None)


if __name__ == "__main__":
    parser_of(__doc__).parse_args()
    main()
