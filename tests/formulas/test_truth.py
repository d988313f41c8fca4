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

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "fixtures" / "formulas"
NOT_ARGUMENTS = {"form", "field", "expected", "tolerance", "source"}
NOT_NUMBERS = {"next_state"}  # all its cases stand in test_findings
NAMES = (
    "benefit",
    "change.bisection",
    "change.findings",
    "change.nightly_test",
    "change.steps.newest_step",
    "criteria",
    "memory_hierarchy",
    "mwp_cwp",
    "numerics.prediction_accuracy",
    "performance.avoidable_work",
    "performance.characterization",
    "performance.latency",
    "performance.lost_time",
    "performance.loaded_latency",
    "performance.memory_accesses",
    "performance.memory_balance",
    "performance.occupancy",
    "performance.peak_estimates",
    "performance.roofline",
    "performance.speedup",
    "performance.time_bound",
    "performance.time_shares",
    "performance.work_depth",
    "power.active_sms",
    "power.component_power",
    "power.core_count",
    "power.energy",
    "power.energy_split",
    "power.leakage",
    "power.max_power",
    "power.placement",
    "power.unit_choice",
    "thermal.rc_model",
    "thermocouples.calibration",
    "thermocouples.emf",
    "thermocouples.heat_map",
    "thermocouples.rotation",
    "throughput",
)
MODULES = tuple(import_module(f"profsvc.formulas.{name}") for name in NAMES)
WITHOUT_ROWS = {  # they take what another formula gives
    "antiparallel_report",
    "benefit_chart",
    "hierarchy_of",
    "noise_prior",
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


ROWS = {name: table(FIXTURES / f"{name}.csv") for name in sorted(FUNCTIONS)}


@pytest.mark.parametrize("name", ROWS)
def test_fixture_rows(name: str) -> None:
    wrong = []
    for line, row in enumerate(ROWS[name], start=2):
        arguments = {key: json.loads(text) for key, text in row.items() if key not in NOT_ARGUMENTS and text}
        if row["form"]:
            arguments["form"] = row["form"]
        result = FUNCTIONS[name](**arguments)
        got = getattr(result, row["field"]) if row["field"] else result
        try:
            np.testing.assert_allclose(got, json.loads(row["expected"]), rtol=0, atol=float(row["tolerance"]))
        except AssertionError as error:
            wrong.append(f"line {line}: {error}")
    assert ROWS[name]
    assert not wrong, "\n".join(wrong)


def test_every_formula_of_a_paper_has_rows_and_every_row_a_source() -> None:
    public = {
        name
        for module in MODULES
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__.startswith(module.__name__) and not name.startswith("_")
    }
    assert public - WITHOUT_ROWS - NOT_NUMBERS == set(FUNCTIONS)
    assert all(row["source"] for rows in ROWS.values() for row in rows)
