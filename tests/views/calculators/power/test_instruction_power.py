"""Power of a kernel from its instructions: the figures of tables 8 and 11, and what cannot be counted."""

import pytest

from profsvc.errors import UsageError
from profsvc.views.calculators.answers import calculate
from profsvc.views.calculators.catalog import CALCULATORS

MODEL = CALCULATORS["instruction-power"]
ALL_ON, ONE_SM, MADD = (dict(example.values) for example in MODEL.examples)


def answer(**given: str) -> tuple[dict[str, dict[str, float]], str]:
    found = calculate(MODEL, given)
    return {row["unit"]: row for row in found["rows"]}, found["notes"][0]


def test_figures_of_the_source() -> None:
    units, said = answer(**ALL_ON)
    of_sm = [row["max_power_w"] for row in units.values() if row["per"] == "SM"]
    assert sum(of_sm) == pytest.approx(5.063)  # table 8 per SM
    assert said.startswith("power above idle: 151.89 W; of the board: 234.89 W")
    assert sum(row["power_w"] for row in units.values()) == pytest.approx(151.89)
    # 20 of 30 SMs draw 0.847 of the power of all by equation 44.
    assert answer(**ALL_ON, sms="20")[1].startswith("power above idle: 128.68 W")
    # The source measured 93 W on one SM, 66 W above idle.
    assert answer(**ONE_SM)[1] == "power above idle: 66.50 W; of the board: 93.50 W with 27 W idle"


def test_counts_become_access_rates() -> None:
    units, _ = answer(**MADD)
    # Sixteen warps issue four instructions of four cycles each while 434 * 16 / 10.8 cycles pass for their loads.
    assert units["FDS"]["access_rate"] == pytest.approx(16 * 4 * 4 / (434 * 16 / 10.8), rel=0.001)
    assert units["Global"]["access_rate"] == pytest.approx(units["FDS"]["access_rate"] / 4)
    assert units["Const_SM"]["access_rate"] == 1
    published = answer(**MADD, form="as_published")[0]
    assert published["FP"]["power_w"] == pytest.approx(units["FP"]["power_w"])
    mixed = MADD["table"] + "Shared,,0.5\n"
    both = answer(**MADD | {"table": mixed.replace("name,count", "name,count,rate").replace("000\n", "000,\n")})[0]
    assert both["Shared"]["power_w"] == pytest.approx(15)
    over = calculate(MODEL, MADD | {"cycles": "1000000"})
    assert "access rates above 1: FP, REG, ALU" in over["notes"][-1]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"table": MADD["table"]}, "counts of instructions need threads, blocks, cycles; or give the rates"),
        ({"table": "name,rate\nFPU,1\n"}, "no unit named 'FPU'; did you mean 'FP'"),
        ({"table": "name,count\nFP,1\n"}, "no PTX instruction named 'FP'"),
        ({"table": "name,count,rate\nFP,1,1\n"}, "'FP' needs either a count"),
        ({"table": "name,rate\nFP,1\nFP,0\n"}, "'FP' occurs twice"),
        ({"table": "name,rate\nFP,1.5\n"}, "from 0 to 1"),
        (ALL_ON | {"sms": "31"}, "sms is 31, but a GTX280 has 30"),
    ],
)
def test_what_cannot_be_counted_is_refused(given: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        calculate(MODEL, given)
