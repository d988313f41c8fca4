"""Errors: the names that a wrong one may have been meant as."""

import pytest

from profsvc.cli.application import MODULES
from profsvc.errors import nearest_names


@pytest.mark.parametrize(
    ("typed", "near"),
    [
        ("comapre", ["compare"]),
        ("COMPARE", ["compare"]),
        ("com", ["compare", "components"]),
        ("exlpain", ["explain"]),
        ("anaylze", ["analyze"]),
        ("bananas", []),
        ("q", []),
        ("", []),
    ],
)
def test_commands_near_a_typing_error(typed: str, near: list[str]) -> None:
    assert nearest_names(typed, MODULES) == near


def test_few_of_many_names_are_near() -> None:
    assert nearest_names("gemmx", [f"gemm_{index}" for index in range(1000)]) == ["gemm_0", "gemm_1", "gemm_2"]
