"""Every calculator declares what it needs, and its examples are answered."""

import inspect
from importlib import import_module

import pytest

from profsvc import specs
from profsvc.errors import NotFoundError
from profsvc.reports.plots import lines
from profsvc.reports.text.models import index as text
from profsvc.views.calculators.answers import calculate
from profsvc.views.calculators.catalog import CALCULATORS, GROUPS, calculator_of
from profsvc.views.calculators.declaration import KINDS, Calculator

ALL = pytest.mark.parametrize("one", CALCULATORS.values(), ids=list(CALCULATORS))


@ALL
def test_its_declaration_is_whole(one: Calculator) -> None:
    assert one.question.endswith("?")
    assert not one.title.endswith(".")
    assert one.source.partition(",")[0] in specs.references()
    group, _, _ = one.name.rpartition(" ")
    assert not group or group in GROUPS
    names = [i.name for i in one.inputs]
    assert len(names) == len(set(names))
    for i in one.inputs:
        assert i.kind in KINDS
        assert (i.kind == "choice") == bool(i.choices)
        assert bool(i.columns) == (i.kind == "table")
        assert not i.help.endswith(".")
    for function in one.functions:
        module, _, name = function.rpartition(".")
        assert inspect.isroutine(getattr(import_module(f"profsvc.formulas.{module}"), name)), function
    assert one.functions


@ALL
def test_its_examples_are_answered(one: Calculator) -> None:
    assert one.examples
    drawn = 0
    for example in one.examples:
        view = calculate(one, example.values)
        assert view["rows"]
        assert all(set(row) == set(view["columns"]) for row in view["rows"])
        assert one.title in text.answer(view)
        if view["figure"] is not None:
            assert lines.draw(view["figure"]).startswith(b"<?xml")
            drawn += 1
    assert bool(drawn) == one.has_figure


def test_a_mistyped_name_is_not_found() -> None:
    with pytest.raises(NotFoundError, match="did you mean 'work-depth'"):
        calculator_of("workdepth")
