"""The kernels of fixtures/flaws: pairs that do the same work with one known flaw and without it."""

import csv
import gzip
from pathlib import Path

import pandas as pd
import pytest

from profsvc import formats

FLAWS = Path(__file__).parents[3] / "fixtures" / "flaws"
SETS = {"design", "held_out", "excluded"}


def cases() -> list[dict[str, str]]:
    with (FLAWS / "cases.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_each_launch_of_the_profile_is_its_case() -> None:
    with gzip.open(FLAWS / "ncu_raw_base.csv.gz") as file:
        tables = [batch.tables["launches"] for batch in formats.read(file)[1] if "launches" in batch.tables]
    launches = pd.concat(tables).to_dict("records")
    for case, launch in zip(cases(), launches, strict=True):
        assert case["set"] in SETS
        assert launch["kernel"].removeprefix("void ").startswith(case["work"].split("_")[0].removesuffix("33")), case
        # Caches are flushed before each pass of the profiler, and warm in a timing.
        assert launch["duration_ns"] / 1e3 == pytest.approx(float(case["median_us"]), rel=0.3), case


def test_the_flaw_is_what_costs_time() -> None:
    times = {(case["work"], case["variant"]): float(case["median_us"]) for case in cases()}
    flawed = [case["work"] for case in cases() if case["flaw"] not in ("none", "no_effect")]
    assert len(flawed) >= 40
    assert all(times[work, "a"] > 1.15 * times[work, "b"] for work in flawed)
    halves = [case["set"] for case in cases() if case["work"] in flawed and case["variant"] == "a"]
    assert halves.count("held_out") == len(halves) // 2
