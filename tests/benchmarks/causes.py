"""How often the first cause of a launch names its flaw, on pairs of kernels with one known flaw each.

Run it with ``python -m tests.benchmarks.causes [SET] [PART...]``. SET is ``first`` (``fixtures/flaws``, on which the
attribution was designed), ``second`` (``fixtures/flaws_second``), ``with_counts`` (the second set profiled again, with
the metrics that the first has beyond ``--set full``), ``third`` to ``twenty_seventh`` (``fixtures/flaws_third`` to
``flaws_twenty_seventh``) or a folder with the same files; PART keeps the cases whose column ``set`` says so. Printed
are, for each launch with a flaw, the causes with the largest shares of its time, and how often the first is the flaw,
or one of the first two; beside them the rules of Nsight Compute in the order of their estimates, which count where
``causes.toml`` says that they speak of the flaw. Kernels without a flaw should be at a limit. The last lines compare
the potential of the flawed kernels with the speedup of the version without the flaw; beside it the largest global
estimate of Nsight Compute, and the median of what was achieved, which nobody knows in advance, and how many pairs lie
in the range beside their potential.
The source page is uploaded too where the set has one.
"""

import csv
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import spearmanr
from sqlalchemy import Engine

from profsvc import store
from profsvc.specs.advice.causes import causes
from tests.command_line import parser_of
from tests.inputs.uploads import ingest_all

FIXTURES = Path(__file__).parents[2] / "fixtures"
# The sets after the first two, in the order in which they were captured.
LATER = (
    "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh", "twelfth", "thirteenth",
    "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth", "twentieth", "twenty_first",
    "twenty_second", "twenty_third", "twenty_fourth", "twenty_fifth", "twenty_sixth", "twenty_seventh",
)  # fmt: skip
SECOND = FIXTURES / "flaws_second"
FOLDERS = {"first": FIXTURES / "flaws", "second": SECOND, "with_counts": SECOND / "with_counts"}
FOLDERS |= {name: FIXTURES / f"flaws_{name}" for name in LATER}
# Labels of the set that the causes have another name for.
CAUSE_OF_LABEL = {"address_arithmetic": "overhead_instructions"}
NO_FLAW = ("none", "no_effect")
EXCLUDED = "excluded"
PARTS = ("design", "held_out")
DEVICE = ("NVIDIA H200", "9.0")
# The source page has counts of instructions by class, and not every set has one.
FILES = ("ncu_raw_base.csv.gz", "ncu_details.csv.gz", "ncu_source.csv.zst")
# The pages of a folder, of which other captures have the source in gzip.
PAGES = (*FILES, "ncu_source.csv.gz")


class Prediction(NamedTuple):
    """How well predicted speedups match the achieved ones."""

    error: float
    rank: float
    worst: float


def cases(folder: Path) -> list[dict[str, str]]:
    """Return the launches of the profile in their order, with the flaw of each."""
    with (folder / "cases.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


class Stored(NamedTuple):
    """Counters and potential of the launches of a profile in their order, and its rules and causes."""

    counters: pd.DataFrame
    bounds: list[dict[str, Any]]
    rules: list[dict[str, Any]]
    causes: pd.DataFrame


def upload(engine: Engine, folder: Path) -> int:
    """Upload the profile; return the number of its run."""
    contents = [((folder / name).read_bytes(), name) for name in PAGES if (folder / name).exists()]
    return int(ingest_all(engine, contents, store.RunInfo(name="flaws")).run_id or 0)


def results(engine: Engine, run: int) -> Stored:
    """Return what a store has of a profile."""
    counters = pd.DataFrame(store.select(engine, "v1_counters", run_id=run)).sort_values("launch_id")
    bounds = {row["launch_id"]: row for row in store.select(engine, "v1_potential", run_id=run)}
    rules = store.select(engine, "v1_rules", run_id=run)
    found = pd.DataFrame(store.select(engine, "v1_causes", run_id=run))
    return Stored(counters.reset_index(drop=True), [bounds[name] for name in counters["launch_id"]], rules, found)


def stored(folder: Path) -> Stored:
    """Upload the profile to a fresh store; return what it has then."""
    with tempfile.TemporaryDirectory() as place:
        engine = store.open_store(str(Path(place) / "store.sqlite"))
        found = results(engine, upload(engine, folder))
        engine.dispose()
    return found


def vendor_rules(rules: Sequence[dict[str, Any]], launch_id: int) -> list[str]:
    """Return the rules of a launch with an estimate, largest first."""
    found = [row for row in rules if row["launch_id"] == launch_id and row["estimated_speedup"]]
    return [row["rule"] for row in sorted(found, key=lambda row: -row["estimated_speedup"])]


def vendor_speedup(rules: Sequence[dict[str, Any]], launch_id: int) -> float:
    """Return the largest global estimate of a launch, 1 if there is none."""
    found = [row["estimated_speedup"] for row in rules if row["launch_id"] == launch_id and row["kind"] == "global"]
    return max([1.0, *(value for value in found if value)])


def prediction(predicted: Sequence[float], achieved: Sequence[float]) -> Prediction:
    """Return the median error, as a logarithm, the rank correlation, which a constant does not have, and the worst."""
    errors = np.abs(np.log(np.array(predicted) / np.array(achieved)))
    rank = spearmanr(predicted, achieved)[0] if len(set(predicted)) > 1 else np.nan
    return Prediction(float(np.median(errors)), float(rank), float(errors.max()))


def main(arguments: Sequence[str]) -> dict[str, float]:
    """Print the tables of the named set, or of its named parts; return how often each answer was right."""
    parser = parser_of(__doc__)
    parser.add_argument("words", nargs="*", metavar="SET or PART", help="a set or folder, and parts of it [first]")
    words = parser.parse_args(arguments).words
    named, parts = (words[0], words[1:]) if words and words[0] not in PARTS else ("first", words)
    folder = FOLDERS.get(named, Path(named))
    if not (folder / FILES[0]).exists():
        raise SystemExit(f"{named!r} is neither a set ({', '.join(FOLDERS)}) nor a folder with {FILES[0]}")
    _, bounds, rules, table = stored(folder)
    known = cases(folder)
    median_us = {(case["work"], case["variant"]): float(case["median_us"]) for case in known}
    score = dict.fromkeys(("launches", "first", "second", "vendor first", "vendor second", "unflawed", "at limit"), 0.0)
    speedups: dict[str, list[float]] = {"profsvc": [], "Nsight Compute": []}
    achieved, in_range = [], []
    for place, case in enumerate(known):
        if case.get("set") == EXCLUDED or (parts and case.get("set") not in parts):
            continue
        launch_id = bounds[place]["launch_id"]
        own = table[table["launch_id"] == launch_id].sort_values("rank")
        names, vendor = list(own["cause"]), vendor_rules(rules, launch_id)
        shown = own[own["saving_fraction"] >= 0.02].head(4) if own["kind"].iloc[0] == "flaw" else own.head(1)
        text = ", ".join(
            f"{row.cause} {row.saving_fraction:.2f} ({row.low:.2f}-{row.high:.2f})" for row in shown.itertuples()
        )
        kernel, speedup = f"{case['work']}_{case['variant']}", bounds[place]["speedup"]
        print(f"{kernel:20}{case['flaw']:26}{speedup or np.nan:7.2f}x  {text}  [{', '.join(vendor[:2])}]")
        if case["flaw"] in NO_FLAW:
            score["unflawed"] += 1
            score["at limit"] += own["kind"].iloc[0] == "limit"
            continue
        score["launches"] += 1
        flaw = CAUSE_OF_LABEL.get(case["flaw"], case["flaw"])
        score["first"] += names[:1] == [flaw]
        score["second"] += flaw in names[:2]
        of_flaw = set(causes()[flaw].rules) if flaw in causes() else set()
        score["vendor first"] += bool(set(vendor[:1]) & of_flaw)
        score["vendor second"] += bool(set(vendor[:2]) & of_flaw)
        if speedup is not None:
            for one, value in zip(speedups, (speedup, vendor_speedup(rules, launch_id)), strict=True):
                speedups[one].append(value)
            achieved.append(median_us[case["work"], "a"] / median_us[case["work"], "b"])
            low, high = bounds[place]["speedup_low"], bounds[place]["speedup_high"]
            if low is not None and own["kind"].iloc[0] == "flaw":
                in_range.append(low <= achieved[-1] <= high)
    print({name: int(value) for name, value in score.items()})
    print(f"potential of {len(achieved)} pairs: median |ln(predicted / achieved)|, rank correlation, worst factor")
    median = float(np.median(achieved))
    for one, predicted in {**speedups, f"constant {median:.2f}x": [median] * len(achieved)}.items():
        found = prediction(predicted, achieved)
        print(f"{one:20}{found.error:8.2f}{found.rank:8.2f}{np.exp(found.worst):9.2f}")
    print(f"in the range of their potential: {sum(in_range)} of {len(in_range)} pairs whose first cause is a flaw")
    return score | prediction(speedups["profsvc"], achieved)._asdict()


if __name__ == "__main__":
    main(sys.argv[1:])
