"""Every public formula says where it comes from, what it returns and in which range, and shows a worked example."""

import doctest
import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable
from typing import Any

import pytest

import profsvc.formulas


def public_functions() -> dict[str, Callable[..., Any]]:
    found: dict[str, Callable[..., Any]] = {}
    for info in pkgutil.walk_packages(profsvc.formulas.__path__, "profsvc.formulas."):
        module = importlib.import_module(info.name)
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if not name.startswith("_") and function.__module__ == info.name and "._" not in info.name:
                found[f"{info.name}.{name}"] = function
    return found


FUNCTIONS = public_functions()


def test_the_walk_finds_nested_modules() -> None:
    assert {"profsvc.formulas.speedup.amdahl", "profsvc.formulas.criteria.memory.granularity"} <= set(FUNCTIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_sections(name: str) -> None:
    text = inspect.getdoc(FUNCTIONS[name]) or ""
    missing = [section for section in ("Source", "Returns", "Range") if not re.search(rf"\b{section}\b", text)]
    assert not missing, f"{name}: the docstring lacks {missing}"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_worked_example(name: str) -> None:
    assert doctest.DocTestParser().get_examples(inspect.getdoc(FUNCTIONS[name]) or ""), f"{name}: no >>> example"
