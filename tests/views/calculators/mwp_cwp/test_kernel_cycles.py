"""A described kernel: figures of the source, and what cannot be."""

import pytest

from profsvc.errors import UsageError
from profsvc.views.calculators.answers import calculate
from profsvc.views.calculators.catalog import CALCULATORS
from profsvc.views.calculators.mwp_cwp.kernel_cycles import DIVERGED, FIGURE_29

MODEL = CALCULATORS["kernel-cycles"]


def test_mean_factor_and_acting_warps_of_the_source() -> None:
    rows = calculate(MODEL, {"description": FIGURE_29})["rows"]
    assert rows[0]["M_Factor"] == pytest.approx(1.3)
    assert (rows[0]["warps"], rows[0]["acting_warps"]) == (4, 8)  # figure 28b
    assert [row["cycles"] for row in rows] == sorted((row["cycles"] for row in rows), reverse=True)
    assert all(row["time_us"] == pytest.approx(row["cycles"] / 1350) for row in rows)


def test_diverged_paths_of_figure_29() -> None:
    view = calculate(MODEL, {"description": DIVERGED})
    assert view["rows"][0]["instructions"] == 7 + 2
    assert view["notes"] == ["3 paths diverge: the warp issues 7 instructions, its longest path has 5"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it is missing"),
        ("[kernel]\nx = 1", r"\[kernel\]: no entry named 'x'"),
        (FIGURE_29.replace("sms = 16\n", ""), r"\[device\] sms: it is missing"),
        (FIGURE_29.replace("independent = 1", "independent = 9"), "9 of 2 memory instructions"),
        (FIGURE_29.partition("[[block]]")[0], r"as one or more \[\[block\]\]"),
        ("kernel = 1", "write \\[kernel\\] above its entries"),
        (FIGURE_29 + "[gpu]\n", "unknown section 'gpu'"),
    ],
)
def test_what_is_wrong_is_said(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        calculate(MODEL, {"description": text})
