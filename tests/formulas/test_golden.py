"""Every published figure of `reproduced.csv` is what its line says, and no checked figure is left out."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from profsvc import specs
from profsvc.specs.published.reproduced import CANNOT, NO, YES
from tests.formulas.answers import book, fine_grained, ryoo, slides, thesis_power, thesis_time
from tests.formulas.test_docstrings import public_functions

GOLDEN = Path(__file__).parents[3] / "shared" / "spec" / "golden.csv"
ANSWERS: dict[str, Callable[..., Any]] = {}
for part in (book, fine_grained, ryoo, slides, thesis_power, thesis_time):
    ANSWERS |= part.ANSWERS
WITHOUT_FORMULA = {"s002_adds", "special_linear_units", "t12_min_temp"}  # counted, of data
ROUNDED = {"alpha_30": 1e-6}  # found by a fit
FIGURES = {figure.name: figure for figure in specs.reproduced()}


def same(got: Any, printed: str, tolerance: float, relative: float = 0.0) -> None:
    """Compare two figures; text is compared as text."""
    try:
        wanted = float(printed)
    except ValueError:
        assert str(got) == printed
        return
    np.testing.assert_allclose(got, wanted, rtol=relative, atol=tolerance)


@pytest.mark.parametrize("name", [name for name, figure in FIGURES.items() if figure.reproduced != CANNOT])
def test_published_figure(name: str) -> None:
    figure = FIGURES[name]
    got = ANSWERS[name](**figure.inputs)
    same(got, figure.computed, 0.0, ROUNDED.get(name, 1e-9))
    if figure.reproduced == YES:
        same(got, figure.printed, (figure.tolerance or 0.0) + 1e-12)
    else:
        with pytest.raises(AssertionError):
            same(got, figure.printed, figure.tolerance or 0.0)


def test_formulas_that_are_named_exist() -> None:
    functions = {name.rpartition(".")[2] for name in public_functions()} | {"device"}
    for figure in FIGURES.values():
        assert set(figure.formula.split()) <= functions, figure.name
        assert figure.reproduced == CANNOT or figure.formula or figure.name in WITHOUT_FORMULA


@pytest.mark.skipif(not GOLDEN.exists(), reason="the specification is not beside this checkout")
def test_no_row_of_the_specification_is_left_out() -> None:
    with GOLDEN.open(encoding="utf-8", newline="") as file:
        golden = {row["id"]: row for row in csv.DictReader(file)}
    hard = {name for name, row in golden.items() if row["match"] in {YES, NO}}
    assert not hard - set(FIGURES), "figures of the specification that nothing computes"
    for name in hard:
        row, figure = golden[name], FIGURES[name]
        given = json.loads(row["inputs_json"])
        assert (figure.inputs, figure.computed) == (given, row["computed"]), name
        assert (figure.reproduced, figure.unit) == (row["match"], row["unit"]), name
        if row["match"] == YES:
            same(ANSWERS[name](**given), row["printed"], float(row["tolerance"] or 0) + 1e-12)
    for name in set(ANSWERS) & set(golden) - hard:
        got = ANSWERS[name](**json.loads(golden[name]["inputs_json"]))
        same(got, golden[name]["computed"], 0.0, ROUNDED.get(name, 1e-9))


@pytest.mark.skipif(not GOLDEN.exists(), reason="the specification is not beside this checkout")
def test_every_answer_is_asked_for() -> None:
    with GOLDEN.open(encoding="utf-8", newline="") as file:
        assert set(ANSWERS) <= {row["id"] for row in csv.DictReader(file)} | set(FIGURES)
