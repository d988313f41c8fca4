"""Worked figures of the sources come out of the commands."""

import json

import pytest

from profsvc import specs
from profsvc.views.calculators.catalog import CALCULATORS

FIGURES = {figure.name: figure for figure in specs.reproduced()}


@pytest.fixture
def answer(cli, tmp_path):
    def ask(*words, example=None):
        if example is not None:
            file = tmp_path / "table.csv"
            file.write_text(example, encoding="utf-8")
            words = (*words[:2], file, *words[2:])
        found = cli(*words, "-o", "json")
        assert found.code == 0, found.err
        return json.loads(found.out)

    return ask


def computed(name: str) -> float:
    return float(FIGURES[name].computed)


def test_figure_147_of_work_shares(answer) -> None:
    table = CALCULATORS["energy-shares"].examples[0].values["table"]
    view = answer("energy", "shares", example=table)
    errors = [row["relative_error"] for row in view["rows"]]
    assert 100 * sum(errors) / len(errors) == pytest.approx(computed("fig147_gpu_rel"))
    assert "17.04 % on average, 92 % at worst" in view["notes"][0]
    assert "9.10 points on average, 40.06 at worst" in view["notes"][1]


def test_equation_102_and_the_shares_of_section_a_4(answer) -> None:
    pair = "clock,time,power\n1000,1,100\n2000,0.5,120\n"
    second = answer("energy", "frequency", "--baseline", "1000", example=pair)["rows"][1]
    assert (second["speedup"], second["efficiency"]) == pytest.approx((2, 1 / (1.2 * 0.5)))
    box = ["--cpu-time", "1", "--gpu-time", "1", "--cpu-power", "50", "--gpu-power", "50", "--idle-power", "100"]
    rows = answer("energy", "split", *box)["rows"]
    assert len(rows) == computed("energy_points")
    assert rows[0]["energy_j"] == 50 + 100  # the idle power and the CPU, without the GPU that rests
    assert answer("energy", "split", *box, "--form", "as_published")["rows"][0]["energy_j"] == 50 + 50 + 100


def test_reduction_of_section_2_3(answer) -> None:
    machine = ["--cores", "10", "--core-rate", "1e11", "--bandwidth", "1e11", "--fast-memory", "256", "--line", "32"]
    view = answer("balance", "--algorithm", "reduction", "--n", "1024", *machine)
    assert f"work {computed('book_red_adds'):g} operations" in view["notes"][1]
    assert view["rows"][0]["intensity"] == pytest.approx(1 - 1 / 64)
    assert view["rows"][0]["transfers"] == 1024 / 8


def test_balance_and_near_field_of_sections_3_3_to_3_5(answer) -> None:
    view = answer("near-field", "--points", "1,422")
    first, second = view["rows"]
    reach, words = view["notes"][1:3]
    assert f"machine balance is {computed('book_balance'):g} flop/B" in reach
    assert f"{computed('book_fmm_q'):.0f} points" in reach
    assert f"{computed('book_fmm_q_KB'):.3g} KiB at one word a point" in reach
    assert words.startswith(f"{computed('book_fmm_words'):g} words are moved for a point")
    assert f"{computed('book_inner_ai'):g} flop/B, {computed('book_roof_base'):g} Gflop/s" in words
    assert first["printed_flop_per_byte"] == pytest.approx(11 / computed("book_fmm_bytes"))
    assert second["printed_flop_per_byte"] == pytest.approx(10, rel=1e-3)
    kung = answer("balance", "--algorithm", "given", "--work", "5e6", "--depth", "1", "--traffic", "1e6", "--word", "1",
                  "--cores", "10", "--core-rate", "1e11", "--bandwidth", "1e11", "--fast-memory", "1e6")  # fmt: skip
    assert kung["rows"][0]["kung_slack"] == pytest.approx(5 / computed("book_balance"))
