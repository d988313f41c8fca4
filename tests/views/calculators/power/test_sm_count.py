"""Best number of SMs from a table: the source's 20 of 30, a measured load, and optima that were not measured."""

import pytest

from profsvc.errors import UsageError
from profsvc.views.calculators.answers import calculate
from profsvc.views.calculators.catalog import CALCULATORS

MODEL = CALCULATORS["sm-count"]
MEASURED, LIMITED = (dict(example.values) for example in MODEL.examples)


def answer(**given: str) -> tuple[dict[float, dict[str, float]], list[str]]:
    found = calculate(MODEL, given)
    return {row["sms"]: row for row in found["rows"]}, found["notes"]


def test_twenty_of_thirty_sms_are_best_and_save_what_the_source_says() -> None:
    rows, notes = answer(**LIMITED)
    assert notes[0] == "most work per joule: 20 SMs"
    # Printed: 10.99 % on average and 22.09 % at most above idle; 25.85 % on average and a third at most if gated.
    assert 0 < rows[20]["energy_saved"] < rows[20]["runtime_energy_saved"] == pytest.approx(0.144, abs=0.002)
    assert rows[20]["gated_energy_saved"] == pytest.approx(1 - 20 / 30 / 0.99)
    assert any("beta 1.1 " in note and "43.28 W" in note for note in notes)


def test_a_measured_load_needs_all_sms() -> None:
    rows, notes = answer(**MEASURED)
    assert notes[0] == "most work per joule: 132 SMs"
    assert rows[99]["energy_saved"] == pytest.approx(-0.024, abs=0.001)
    assert rows[66]["gated_energy_saved"] == pytest.approx(0.34, abs=0.005)
    assert any("follows the channels law best" in note for note in notes)


def test_what_was_not_measured_is_refused() -> None:
    short = MEASURED | {"table": "\n".join(MEASURED["table"].splitlines()[:-1]) + "\n"}
    rows, notes = answer(**short)
    assert (
        notes[0] == "no best number of SMs: the most work per joule is on the largest measured, 99 of 132; measure more"
    )
    assert rows[66]["energy_saved"] is None
    assert any("give device_sms, and measure that number" in note for note in notes)
    assert any("give idle" in note for note in answer(table=LIMITED["table"], device_sms="30")[1])
    few = answer(table="sms,time,power\n10,2,100\n20,1,101\n", device_sms="20")[1]
    assert any("no law of power: 2 numbers of SMs" in note for note in few)
    noisy = answer(**LIMITED | {"table": LIMITED["table"].replace("power\n", "power,power_error\n").replace(
        ".28\n", ".28,3\n").replace(".26\n", ".26,3\n").replace(".67\n", ".67,3\n").replace(".21\n", ".21,3\n").replace(
        ".37\n", ".37,3\n").replace(".84\n", ".84,3\n")})  # fmt: skip
    assert "20 SMs; 20 to 30 are equally good within the errors" in noisy[1][0]
    down = answer(table="sms,time,power\n4,1,50\n8,1,60\n16,1,70\n", device_sms="16", idle="40")
    assert "it is the smallest measured, fewer may be better" in down[1][0]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"table": "sms,time,power\n4,1,50\n4,1,60\n"}, "at least two numbers of SMs, each once"),
        ({"table": "sms,time,power\n4,1,50\n"}, "at least two numbers"),
        (LIMITED | {"device_sms": "20"}, "device_sms is 20, but the table has 30 SMs"),
    ],
)
def test_wrong_tables_are_refused(given: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        calculate(MODEL, given)
