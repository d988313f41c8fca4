"""Every public formula says where it comes from, what it returns and in which range, and shows a worked example."""

import ast
import doctest
import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable
from typing import Any

import pytest

import profsvc.formulas

STEPS = {  # modules with parts of formulas, which are documented where the formula is
    "profsvc.formulas.change.levels.level_habits",
    "profsvc.formulas.change.levels.level_visits",
    "profsvc.formulas.change.steps.surest_step",
    "profsvc.formulas.change.steps.two_level_test",
    "profsvc.formulas.memory_hierarchy.lru",
    "profsvc.formulas.memory_hierarchy.warp_streams",
    "profsvc.formulas.numerics.arrays",
    "profsvc.formulas.numerics.distributions",
    "profsvc.formulas.numerics.regression",
    "profsvc.formulas.numerics.series",
    "profsvc.formulas.power.sm_laws",
    "profsvc.formulas.sensors.logs",
    "profsvc.formulas.sensors.power_steps",
    "profsvc.formulas.thermal.clock_offset.joint_offset_fit",
    "profsvc.formulas.thermal.clock_offset.offset_search",
    "profsvc.formulas.thermal.noise.autocorrelated_fit",
    "profsvc.formulas.thermal.noise.constant_load_segments",
    "profsvc.formulas.thermal.noise.quantization",
    "profsvc.formulas.thermal.step_response",
    "profsvc.formulas.thermal.time_constants.relaxation",
}


def public_functions() -> dict[str, Callable[..., Any]]:
    found: dict[str, Callable[..., Any]] = {}
    for info in pkgutil.walk_packages(profsvc.formulas.__path__, "profsvc.formulas."):
        module = importlib.import_module(info.name)
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if not name.startswith("_") and function.__module__ == info.name and info.name not in STEPS:
                found[f"{info.name}.{name}"] = function
    return found


FUNCTIONS = public_functions()
PACKAGES = [
    info.name.removeprefix("profsvc.formulas.")
    for info in pkgutil.walk_packages(profsvc.formulas.__path__, "profsvc.formulas.")
    if info.ispkg
]


def test_the_walk_finds_nested_modules() -> None:
    assert {"profsvc.formulas.performance.speedup.amdahl", "profsvc.formulas.criteria.memory.granularity"} <= set(
        FUNCTIONS
    )


def test_every_docstring_has_its_sections_and_a_worked_example() -> None:
    missing = []
    for name, function in FUNCTIONS.items():
        text = inspect.getdoc(function) or ""
        sections = ("Source", "Returns", "Range")
        missing += [f"{name}: {section}" for section in sections if not re.search(rf"\b{section}\b", text)]
        if not doctest.DocTestParser().get_examples(text):
            missing.append(f"{name}: a >>> example")
    assert missing == []


@pytest.mark.parametrize("package", ["", *(f".{name}" for name in PACKAGES)])
def test_packages_hold_no_logic_and_list_their_modules(package: str) -> None:
    module = importlib.import_module(f"profsvc.formulas{package}")
    tree = ast.parse(inspect.getsource(module)).body
    assert all(isinstance(node, ast.Expr | ast.ImportFrom | ast.Assign) for node in tree)
    listed = re.findall(r"^    (\w+)  ", (module.__doc__ or "").split("::\n")[-1], re.MULTILINE)
    assert sorted(listed) == sorted(info.name for info in pkgutil.iter_modules(module.__path__))


@pytest.mark.parametrize("package", PACKAGES)
def test_public_names_of_a_package(package: str) -> None:
    """A package offers all public functions of its modules, in sorted order, or none."""
    module = importlib.import_module(f"profsvc.formulas.{package}")
    names: list[str] = getattr(module, "__all__", [])
    assert names == sorted(names, key=lambda name: (not name.isupper(), name[0].islower(), name))
    assert all(hasattr(module, name) for name in names)
    offered = {name for name in names if inspect.isfunction(getattr(module, name))}
    public = {name.rpartition(".")[2] for name in FUNCTIONS if name.startswith(f"profsvc.formulas.{package}.")}
    assert offered in (set(), public - {"check_sectors"})  # a check of arguments
