"""The kernels of fixtures/flaws and flaws_third: pairs that do the same work with one known flaw and without it."""

import csv
import gzip
from pathlib import Path

import pandas as pd
import pytest

from profsvc import formats

FIXTURES = Path(__file__).parents[3] / "fixtures"
NAMES = ("flaws", "flaws_third")
SETS = {"design", "held_out", "excluded"}


def cases(name: str) -> list[dict[str, str]]:
    with (FIXTURES / name / "cases.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("name", NAMES)
def test_each_launch_of_the_profile_is_its_case(name: str) -> None:
    with gzip.open(FIXTURES / name / "ncu_raw_base.csv.gz") as file:
        tables = [batch.tables["launches"] for batch in formats.read(file)[1] if "launches" in batch.tables]
    launches = pd.concat(tables).to_dict("records")
    for case, launch in zip(cases(name), launches, strict=True):
        assert case["set"] in SETS
        assert launch["kernel"].removeprefix("void ").startswith(case["work"].split("_")[0].removesuffix("33")), case
        # Caches are flushed before each pass of the profiler, and warm in a timing.
        assert launch["duration_ns"] / 1e3 == pytest.approx(float(case["median_us"]), rel=0.3), case


@pytest.mark.parametrize("name", NAMES)
def test_the_flaw_is_what_costs_time(name: str) -> None:
    known = [case for case in cases(name) if case["set"] != "excluded"]
    times = {(case["work"], case["variant"]): float(case["median_us"]) for case in known}
    flawed = [case["work"] for case in known if case["flaw"] not in ("none", "no_effect")]
    assert len(flawed) >= 40
    assert all(times[work, "a"] > 1.15 * times[work, "b"] for work in flawed)
    halves = [case["set"] for case in known if case["work"] in flawed and case["variant"] == "a"]
    assert halves.count("held_out") in (len(halves) // 2, (len(halves) + 1) // 2)
