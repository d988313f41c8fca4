"""Who calls a library's kernel is told what a caller can do."""

import pandas as pd

from profsvc.analysis.causes.first_steps import with_first_steps
from profsvc.specs.advice.causes import causes


def test_steps_are_for_callers_where_the_kernel_is_of_a_library() -> None:
    kernels = pd.Series({7: "void at::native::copy<(int)4>(int)", 9: "copy(float *)"})
    rows = pd.DataFrame({"launch_id": [7, 9, 7, 7], "cause": ["narrow_accesses"] * 2 + ["memory_limit", "barriers"]})
    rows = rows.assign(rank=[1, 1, 2, 3], kind=["flaw", "flaw", "limit", "flaw"])
    steps = with_first_steps(rows, kernels)["first_step"].tolist()
    assert steps[0].startswith("Align operands and rows to 16 bytes")
    assert steps[0].endswith("(this kernel is PyTorch's).")
    assert steps[1:3] == [causes()["narrow_accesses"].first_step, causes()["memory_limit"].first_step]
    assert steps[3].startswith("Batch more rows")


def test_the_step_of_an_alternative_begins_with_its_condition() -> None:
    rows = pd.DataFrame(
        {
            "launch_id": [7, 7, 9, 9],
            "rank": [1, 2, 1, 2],
            "cause": ["warp_imbalance", "barriers", "memory_limit", "cache_thrashing"],
            "kind": ["flaw", "alternative", "limit", "alternative"],
        }
    )
    steps = with_first_steps(rows, pd.Series({7: "copy(float *)", 9: "copy(float *)"}))["first_step"].tolist()
    barriers = causes()["barriers"].first_step
    assert steps[1] == (
        "If the warps have the same work, and are late by turns: " + barriers[:1].lower() + barriers[1:]
    )
    assert steps[3].startswith("If the arrays are smaller than the bytes read from DRAM, ")


def test_no_causes_have_no_steps() -> None:
    none = pd.DataFrame({"launch_id": [1], "rank": [1], "cause": ["barriers"], "kind": ["flaw"]}).iloc[:0]
    assert with_first_steps(none, pd.Series({1: "copy(float *)"}))["first_step"].tolist() == []
