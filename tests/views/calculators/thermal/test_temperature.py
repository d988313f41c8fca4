"""Temperature and leakage from given constants: the figures of the source, and what is refused."""

import json
from typing import Any

import pytest

from profsvc.errors import UsageError
from profsvc.views.calculators.answers import calculate
from profsvc.views.calculators.catalog import CALCULATORS
from tests.cli import conftest as commands

cli, store_file = commands.cli, commands.store_file


def answered(name: str, **given: str) -> dict[str, Any]:
    view = calculate(CALCULATORS[name], given)
    return {row["quantity"]: row["value"] for row in view["rows"]} | {"notes": view["notes"]}


@pytest.mark.parametrize(
    ("power", "final_c", "leakage_w"), [("115.7", 78.0, 9.545454545), ("45.8333333", 68.0, 5.0)], ids=["svm", "int"]
)
def test_the_final_temperatures_and_leakage_that_the_source_prints(
    cli: Any, power: str, final_c: float, leakage_w: float
) -> None:
    more = ["--memory-instructions", "1", "--other-instructions", "13.3"] if power == "115.7" else []
    found = cli("temperature", "--power", power, *more, "-o", "json")
    rows = {row["quantity"]: row["value"] for row in json.loads(found.out)["rows"]}
    assert rows["peak_temperature_c"] == pytest.approx(final_c, abs=0.01)
    assert rows["leakage_w"] == pytest.approx(leakage_w, abs=0.01)


def test_a_short_load_a_limit_and_the_fixed_point() -> None:
    short = answered("temperature", power="115.7", intensity="0.0751879699", duration="35", limit="70")
    assert short["peak_temperature_c"] == pytest.approx(57 + 21 * 0.6321205588, abs=0.01)
    assert short["time_to_limit_s"] == pytest.approx(33.76, abs=0.1)
    long = answered("temperature", power="115.7", intensity="0.0751879699", form="fixed_point", limit="90")
    assert long["settled_rise_c"] == pytest.approx(21 * 1.0577, abs=0.01)
    assert (long["time_to_limit_s"], long["notes"]) == (None, ["the limit of 90 degC is not reached"])
    away = answered("temperature", power="100", mu="3", sigma="0.5", form="fixed_point")
    assert away["settled_rise_c"] is None
    assert "nothing would stop" in away["notes"][0]


def test_the_fit_gives_the_law_back_and_needs_enough_benchmarks() -> None:
    lines = ["benchmark,rise,power,intensity"]
    for power, intensity in ((45.8, 0.0), (60.0, 0.2), (80.0, 0.02), (100.0, 0.15), (115.7, 0.075)):
        lines.append(f"b,{0.12 * power + 5.5 + 21.505 * intensity},{power},{intensity}")
    found = answered("fit-temperature", table="\n".join(lines))
    assert [found[name] for name in ("mu", "lambda", "rho")] == [pytest.approx(one) for one in (0.12, 5.5, 21.505)]
    with pytest.raises(UsageError, match="3 benchmarks do not give three parameters"):
        answered("fit-temperature", table="\n".join(lines[:4]))


def test_leakage_grows_with_temperature_and_the_forms_differ_in_the_sign_of_the_offset() -> None:
    view = calculate(CALCULATORS["leakage"], {"temperature": "57,77"})
    assert view["rows"][1]["relative"] == pytest.approx(1.681, abs=0.001)
    slope = (view["rows"][1]["static_power_w"] - view["rows"][0]["static_power_w"]) / 20
    assert view["rows"][0]["slope_w_per_c"] < slope < view["rows"][1]["slope_w_per_c"]
    both = [
        calculate(CALCULATORS["leakage"], {"voff": "-0.08", "form": form})["rows"][0]["leakage_a"]
        for form in ("consistent", "as_published")
    ]
    assert both[0] > both[1]


def test_a_power_at_another_temperature_has_the_interval_of_its_coefficient() -> None:
    found = answered("reference-power", power="210", temperature="79", reference="57", error="0.05")
    assert found["corrected_power_w"] == pytest.approx(200)
    assert found["corrected_high_w"] - found["corrected_low_w"] == pytest.approx(2 * 1.96 * 0.05 * 22, rel=1e-3)
    assert not found["notes"]
    assert "extrapolated" in answered("reference-power", power="210", temperature="95", reference="57")["notes"][0]
    with pytest.raises(UsageError, match=r"not a coefficient.*; seen: 0.45.* from 80 to 79 degC"):
        answered("reference-power", power="210", temperature="79", reference="57", lowest="80")
