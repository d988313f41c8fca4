"""Chains of versions, parts and applications: the tables of the sources, to the rounding of what they print."""

import pytest

from profsvc.errors import UsageError
from profsvc.views.calculators.answers import calculate
from profsvc.views.calculators.catalog import CALCULATORS

CHAIN, AMDAHL, APPLICATION = (CALCULATORS[name] for name in ("speedup-chain", "amdahl-parts", "application-speedup"))


def test_the_reduction_of_the_source() -> None:
    rows = calculate(CHAIN, CHAIN.examples[0].values)["rows"]
    printed = {
        "bandwidth_gb_per_s": [2.083, 4.854, 9.741, 17.377, 31.289, 43.996, 62.671],
        "step": [1, 2.33, 2.01, 1.78, 1.8, 1.41, 1.42],
        "total": [1, 2.33, 4.68, 8.34, 15.01, 21.16, 30.04],
    }
    for name, numbers in printed.items():
        assert [row[name] for row in rows] == pytest.approx(numbers, rel=0.0026), name
    assert [row["left"] for row in rows] == pytest.approx([86.4 / row["bandwidth_gb_per_s"] for row in rows])


def test_what_is_left_of_a_potential() -> None:
    view = calculate(CHAIN, {"times": "148,100,20", "potential": "5.8"})
    assert [round(row["left"], 2) for row in view["rows"]] == [5.8, 3.92, 0.78]
    assert "left below 1: more was reached than the potential" in view["notes"]


@pytest.mark.parametrize(("p", "s", "expected"), [
    (0.35, 20.2, 1.49851632), (0.99, 11.0, 10.0), (0.99, 210, 67.96116505), (0.96, 60.2, 17.87410926),
    (0.164, 10.5, 1.174233952),
])  # fmt: skip
def test_amdahl_of_the_applications(p, s, expected) -> None:
    (row,) = calculate(AMDAHL, {"shares": str(p), "speedups": str(s)})["rows"]
    assert [row["alone"], row["up_to_here"]] == pytest.approx([expected] * 2, rel=1e-9)
    assert row["at_most"] == pytest.approx(1 / (1 - p))


def test_parts_save_their_times_together() -> None:
    view = calculate(AMDAHL, {"shares": "0.5,0.25", "speedups": "2,4"})
    assert [row["up_to_here"] for row in view["rows"]] == pytest.approx([4 / 3, 1 / (1 - 0.25 - 0.1875)])
    assert "if they took no time at all: 4" in view["notes"][0]
    with pytest.raises(UsageError, match=r"add up to 1\.2"):
        calculate(AMDAHL, {"shares": "0.6,0.6", "speedups": "2,2"})
    with pytest.raises(UsageError, match="2 shares and 1 speedups"):
        calculate(AMDAHL, {"shares": "0.6,0.1", "speedups": "2"})


def test_the_tables_of_the_source_agree_but_for_two_rows() -> None:
    printed = {"H.264": 1.47, "LBM": 12.3, "RC5-72": 11.0, "FEM": 10.1, "RPES": 79.4, "PNS": 23.7, "SAXPY": 11.8,
               "TPACF": 21.6, "FDTD": 1.16, "MRI-FHD": 263, "CP": 102}  # fmt: skip
    rows = calculate(APPLICATION, APPLICATION.examples[0].values)["rows"]
    found = {row["application"]: row["application_speedup"] for row in rows}
    far = {name for name, number in printed.items() if abs(found[name] / number - 1) > 0.021}
    assert far == {"SAXPY", "MRI-FHD"}
    assert {row["application"]: row["at_most"] for row in rows}["FDTD"] == pytest.approx(1.196172249)


def test_times_or_a_table() -> None:
    with pytest.raises(UsageError, match="give the times, or a table"):
        calculate(CHAIN, {})
