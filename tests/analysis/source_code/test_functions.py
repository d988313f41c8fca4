"""Accurate functions in machine code are known by a coefficient of their polynomials."""

import csv

import pytest

from profsvc.analysis.source_code.functions import REDUCTION_LENGTH, reduction_threads, spared_threads
from profsvc.specs.metrics.accurate_functions import FILE, spared_arithmetic
from profsvc.specs.table_files import DATA


def threads(*code: str, on: int | None = 32) -> float:
    return spared_threads([{"sass": one, "thread_instructions_on": on} for one in code])


def test_each_call_has_a_coefficient_once() -> None:
    tangent = "FFMA R19, R2, R19, 0.1331529766321182251"
    assert threads(tangent, "@!P0 FFMA R9, R2, R9.reuse, -0.1331529766321182251") == 64 * 13
    assert threads(tangent, on=None) == 0
    assert threads("FSEL R4, R5, 1.0029599666595458984, P0") == 32 * 10, "an error function has no fast form: half"


@pytest.mark.parametrize(
    "other", ["0.133152976632118", "10.1331529766321182251", "0.13315297663211822512", "c[0x0][0x133]"]
)
def test_other_numbers_are_of_the_program(other: str) -> None:
    assert threads(f"FFMA R19, R2, R19, {other}") == 0


def test_a_fast_form_is_shorter_than_its_function() -> None:
    with (DATA / FILE).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len({row["coefficient"] for row in rows}) == len(rows)
    assert all(0 < float(row["fast"] or 1) < float(row["arithmetic"]) for row in rows)
    assert all(value > 0 for value in spared_arithmetic().values())


def test_each_large_angle_has_the_upper_word_of_a_turn_once() -> None:
    code = ("UMOV UR6, 0x54442d19", "UMOV UR7, 0x3bf921fb", "DMUL R20, R20, UR6")
    rows = [{"sass": one, "thread_instructions_on": 32} for one in code]
    assert reduction_threads(rows) == 32 * REDUCTION_LENGTH
    assert reduction_threads([row | {"thread_instructions_on": None} for row in rows]) == 0
    assert reduction_threads([{"sass": "UMOV UR7, 0x3ff921fb", "thread_instructions_on": 32}]) == 0, "pi / 2 itself"
