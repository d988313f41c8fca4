"""Mixes of instructions and elements per second: the figures of the sources."""

import pytest

from profsvc.errors import UsageError
from profsvc.views.calculators.answers import calculate
from profsvc.views.calculators.catalog import CALCULATORS

MIX, ELEMENTS = CALCULATORS["instruction-mix"], CALCULATORS["elements"]
GTX = {"lanes": "128", "clock": "1.35GHz", "bandwidth": "86.4GB/s"}


def mix(**given):
    return {row["quantity"]: row["value"] for row in calculate(MIX, GTX | given)["rows"]}


def test_matrix_multiplication_of_the_source() -> None:
    naive = mix(measured="10.58")
    expected = {"peak": 345.6, "issue_rate": 172.8, "potential": 43.2, "demand": 172.8, "demand_of_available": 2.0,
                "limited": 21.6}  # fmt: skip
    assert {name: naive[name] for name in expected} == pytest.approx(expected)
    assert mix(reuse="16")["demand_of_available"] == pytest.approx(0.125)
    assert mix(reuse="16", measured="46.49")["measured_of_limited"] == pytest.approx(1.076157, rel=1e-6)
    unrolled = mix(instructions="59", fma="16", loads="2", reuse="16", measured="91.14")
    assert unrolled["potential"] == pytest.approx(93.722034, rel=1e-7)
    assert unrolled["measured_of_limited"] == pytest.approx(0.97245, rel=1e-5)
    assert mix(instructions="4", fma="1", loads="0")["potential"] == pytest.approx(86.4)


def test_peaks_name_the_operations_of_a_clock() -> None:
    assert mix(lanes="16", operations="18")["peak"] == pytest.approx(388.8)
    assert mix(lanes="240", clock="1.3GHz")["peak"] == pytest.approx(624)
    assert mix(lanes="240", clock="1.296GHz", operations="3")["peak"] == pytest.approx(933.12)


def test_a_device_gives_what_is_not_given() -> None:
    rows = calculate(MIX, {"device": "8800GTX"})["rows"]
    assert {row["quantity"]: row["value"] for row in rows}["limited"] == pytest.approx(21.6)
    with pytest.raises(UsageError, match="lanes, clock, bandwidth: missing"):
        calculate(MIX, {})
    with pytest.raises(UsageError, match="more than the 8 instructions"):
        mix(fma="7")


def test_pixels_per_second() -> None:
    given = {"operations": "9,6", "bytes": "5", "rate": "500Gop/s", "bandwidth": "115GB/s"}
    rows = calculate(ELEMENTS, given)["rows"]
    assert [row["intensity"] for row in rows] == [1.8, 1.2]
    assert [row["rate_g_per_s"] for row in rows] == [23, 23]
    assert [round(row["compute_g_per_s"]) for row in rows] == [56, 83]
    assert {row["bound"] for row in rows} == {"memory"}
    with pytest.raises(UsageError, match="bytes has 3 numbers and operations 2"):
        calculate(ELEMENTS, given | {"bytes": "1,2,3"})
