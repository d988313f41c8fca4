"""The formulas give the numbers of their sources: fixtures/formulas, and the specification if it is near."""

import csv
import inspect
import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from profsvc.formulas.criteria import device_sync, granularity, host_sync, load_balance_sm, throughput_occupancy
from profsvc.formulas.speedup import amdahl, potential_speedup, remaining_potential

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "fixtures" / "formulas"
GOLDEN = Path(__file__).parents[3] / "shared" / "spec" / "golden.csv"
NOT_ARGUMENTS = {"form", "field", "expected", "tolerance", "source"}
NOT_NUMBERS = {"next_state"}  # all its cases stand in test_findings
NAMES = (
    "accesses",
    "accuracy",
    "active_sms",
    "benefit",
    "change",
    "characterization",
    "core_count",
    "criteria",
    "energy",
    "energy_split",
    "estimates",
    "findings",
    "heat_map",
    "latency",
    "leakage",
    "max_power",
    "memory_balance",
    "memory_hierarchy",
    "mwp_cwp",
    "occupancy",
    "placement",
    "power",
    "roofline",
    "sensor_rotation",
    "speedup",
    "steps",
    "thermal",
    "thermocouple_calibration",
    "thermocouples",
    "throughput",
    "time_bound",
    "time_shares",
    "work_depth",
)
MODULES = tuple(import_module(f"profsvc.formulas.{name}") for name in NAMES)
WITHOUT_ROWS = {  # they take what another formula gives
    "antiparallel_report",
    "benefit_chart",
    "predict_active_sms",
    "what_if",
}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: function
    for module in MODULES
    for name, function in vars(module).items()
    if (FIXTURES / f"{name}.csv").exists()
}


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


ROWS = [
    pytest.param(name, row, id=f"{name}-{n}")
    for name in sorted(FUNCTIONS)
    for n, row in enumerate(table(FIXTURES / f"{name}.csv"), start=2)
]


@pytest.mark.parametrize(("name", "row"), ROWS)
def test_fixture_rows(name: str, row: dict[str, str]) -> None:
    arguments = {key: json.loads(text) for key, text in row.items() if key not in NOT_ARGUMENTS and text}
    if row["form"]:
        arguments["form"] = row["form"]
    result = FUNCTIONS[name](**arguments)
    got = getattr(result, row["field"]) if row["field"] else result
    np.testing.assert_allclose(got, json.loads(row["expected"]), rtol=0, atol=float(row["tolerance"]))


def test_every_formula_of_a_paper_has_rows_and_every_row_a_source() -> None:
    public = {
        name
        for module in MODULES
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__.startswith(module.__name__) and not name.startswith("_")
    }
    assert public - WITHOUT_ROWS - NOT_NUMBERS == set(FUNCTIONS)
    assert all(row.values[1]["source"] for row in ROWS)


def ratio(a: float, b: float) -> Any:
    return remaining_potential(a, b)


CHECKS: dict[str, Callable[..., Any]] = {
    "s002_red_remaining": remaining_potential,
    "s002_red_final": remaining_potential,
    "s002_red_v2_to_v3": ratio,
    "s002_bfs_remaining": remaining_potential,
    "s002_bfs_v2_to_v3": ratio,
    "s002_transpose": ratio,
    "s002_red_fraction": ratio,
    "s002_adds": lambda N: 8191 * N,  # length of a microbenchmark; no formula of ours uses it
    "s002_memthr_from_potential": lambda sp: 1 / potential_speedup(1 / sp, 0.0, "memory", form="as_published").speedup,
    "s002_publ_speedup_below_1": lambda c, p: granularity(c, 1, 1, p, "as_published").speedup,
    "s002_cons_speedup": amdahl,
    "s002_devicesync_publ": lambda inactive, stall: device_sync(stall, 1 - inactive, 1, 1, "as_published").speedup,
    "s002_devicesync_cons": lambda inactive, stall: device_sync(stall, 1 - inactive, 1, 1).speedup,
    "s002_throcc_publ": lambda occ, memthr: throughput_occupancy(occ, memthr, form="as_published").value,
    "s002_throcc_cons": lambda occ, memthr: throughput_occupancy(occ, memthr).value,
    "s002_lbsm": lambda cycles: load_balance_sm(cycles).value,
    "s002_l1_publ": lambda trans, requested: granularity(trans, requested, 128, form="as_published").value,
    "s002_l1_cons": lambda trans, requested: granularity(trans, requested, 128).value,
    "s002_hostsync_overlap_publ": lambda start, exe: host_sync(start, exe, form="as_published").value,
    "s002_hostsync_overlap_cons": lambda start, exe: host_sync(start, exe).value,
}


@pytest.mark.skipif(not GOLDEN.exists(), reason="the specification is not beside this checkout")
def test_rows_of_the_specification() -> None:
    golden = {row["id"]: row for row in table(GOLDEN) if row["seed"] == "002"}
    assert set(golden) == set(CHECKS)
    for name, row in golden.items():
        got = CHECKS[name](**json.loads(row["inputs_json"]))
        np.testing.assert_allclose(got, float(row["computed"]), rtol=1e-9, err_msg=name)
        if row["match"] == "yes":
            np.testing.assert_allclose(got, float(row["printed"]), rtol=0, atol=float(row["tolerance"]), err_msg=name)
