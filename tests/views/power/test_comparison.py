"""Power of two runs beside each other, at one temperature where both can be brought to it."""

import io
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Engine

from profsvc import pipeline, store
from profsvc.reports.text.comparison.two_runs import comparison, power_alone
from profsvc.views.comparison import two_runs as side_by_side
from profsvc.views.power.comparison import POWER, compared, windows_of
from tests.views import power_logs

SECONDS = 20.0


def board(reference_c: float, more: float = 0.0, coefficient: float = 1.5, half_w: float = 1.0) -> list[dict[str, Any]]:
    """Windows of a board that draws 200 W and more at 40 degC, as an analysis at another temperature shows them."""
    rows = []
    for number, load in enumerate(("mix", "mem")):
        power_w = 200.0 + 50 * number + more + coefficient * (reference_c - 40)
        row: dict[str, Any] = {"window": f"{load}, 132 SMs", "kind": "load", "source": "marks", "load": load}
        row |= {"sensor": "power.draw.instant", "gpu_index": 0, "active_sms": 132, "sensor_id": 1, "levels": None}
        row |= {"duration_s": SECONDS, "mean_power_w": power_w + 3, "energy_j": (power_w + 3) * SECONDS}
        row |= {"mean_temperature_c": reference_c + 2, "range_c": 10.0, "reference_temperature_c": reference_c}
        row |= {"coefficient_w_per_c": coefficient, "coefficient_low": coefficient - 0.1}
        row |= {"coefficient_high": coefficient + 0.1, "reason": None}
        ends = {"": 0.0, "_low": -half_w, "_high": half_w}
        row |= {f"corrected_power{end}_w": power_w + away for end, away in ends.items()}
        row |= {f"corrected_energy{end}_j": (power_w + away) * SECONDS for end, away in ends.items()}
        rows.append(row)
    return rows


def test_one_board_at_two_temperatures_has_not_changed() -> None:
    rows, said = compared(board(40.0), board(48.0))
    assert (len(rows), said) == (2, [])
    for row in rows:
        assert row["corrected"]
        assert row["reference_temperature_c"] == 40
        assert row["power_after_w"] == pytest.approx(row["power_before_w"])
        assert row["power_change"] == pytest.approx(0, abs=1e-12)
        assert row["energy_change"] == pytest.approx(0, abs=1e-12)
        assert (row["power_beyond"], row["energy_beyond"], row["reason"]) == (False, False, None)
        # 8 degC times 0.1 W/degC on either side, beside the 1 W of its own.
        assert row["power_after_high_w"] - row["power_after_w"] == pytest.approx(1.8)
        assert row["power_after_w"] - row["power_after_low_w"] == pytest.approx(1.8)
        assert row["energy_after_high_j"] - row["energy_after_j"] == pytest.approx(1.8 * SECONDS)
        assert set(POWER) <= set(row)
    colder = compared(board(48.0), board(40.0))[0][0]
    assert colder["power_after_w"] == pytest.approx(colder["power_before_w"])
    assert colder["power_after_low_w"] == pytest.approx(colder["power_after_w"] - 1.8)


def test_a_change_is_beyond_where_the_intervals_lie_apart() -> None:
    near, far = (compared(board(40.0), board(48.0, more))[0][0] for more in (2.7, 2.9))
    assert (near["power_beyond"], far["power_beyond"]) == (False, True)
    assert near["power_change"] == pytest.approx(2.7 / 200)
    assert near["power_change_low"] < 0 < near["power_change"] < near["power_change_high"]
    assert far["power_change_low"] > 0
    less = compared(board(40.0), board(40.0, -5.0))[0][0]
    assert (less["power_beyond"], less["energy_beyond"]) == (True, True)
    assert (less["power_change_low"], less["power_change_high"]) == pytest.approx((194 / 201 - 1, 196 / 199 - 1))


def test_what_one_side_cannot_correct_is_compared_as_measured() -> None:
    after = [
        row | {"corrected_power_w": None, "corrected_energy_j": None, "reason": "range 2.1 degC, at least 5 needed"}
        for row in board(48.0)
    ]
    row = compared(board(40.0), after)[0][0]
    assert (row["corrected"], row["reason"]) == (False, "after: range 2.1 degC, at least 5 needed")
    assert (row["power_before_w"], row["power_after_w"]) == (203, 215)
    assert row["power_change"] == pytest.approx(12 / 203)
    assert (row["power_change_low"], row["power_beyond"], row["reference_temperature_c"]) == (None, None, None)
    without = [row | {"coefficient_w_per_c": None} for row in board(48.0)]
    assert compared(board(40.0), without)[0][0]["reason"] == "after: no coefficient to correct it by -8.0 \u00b0C"
    assert compared(board(48.0), without)[0][0]["corrected"]
    blind = [row | {"coefficient_low": None} for row in board(48.0)]
    moved = compared(board(40.0), blind)[0][0]
    assert (moved["corrected"], moved["power_after_low_w"], moved["power_beyond"]) == (True, None, None)


def test_a_window_moved_too_far_says_so() -> None:
    after = [row | {"range_c": 6.0} for row in board(48.0)]
    said = compared(board(40.0), after)[1]
    assert said[0] == (
        "mix, 132 SMs of power.draw.instant after is +10.0 \u00b0C from the temperature of the earlier run, but its "
        "coefficient covers a range of only 6.0 \u00b0C"
    )
    assert len(said) == 2


def test_windows_meet_by_label_then_by_load() -> None:
    after = board(40.0)
    after[0]["window"] = "mix on all SMs"
    rows, said = compared(board(40.0), after)
    assert [(row["window"], row["window_after"], row["matched_by"]) for row in rows] == [
        ("mix, 132 SMs", "mix on all SMs", "load"),
        ("mem, 132 SMs", "mem, 132 SMs", "window"),
    ]
    assert said == []
    after[0] |= {"load": "other"}
    rows, said = compared(board(40.0), after)
    assert [row["window"] for row in rows] == ["mem, 132 SMs"]
    assert said == [
        "power windows only before: mix, 132 SMs of power.draw.instant",
        "power windows only after: mix on all SMs of power.draw.instant",
    ]
    other = [row | {"sensor": "module"} for row in after]
    assert compared(board(40.0), other)[0] == []
    assert compared(board(40.0), []) == ([], [])
    # The third of four levels is not the third of five.
    steps = [[row | {"source": "change_points", "levels": levels} for row in board(40.0)] for levels in (4, 5)]
    assert compared(*steps)[0] == []


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    engine = store.open_store(str(tmp_path_factory.mktemp("compare") / "store.sqlite"), pooled=True)
    for run, more_w in (("old", 0.0), ("new", 10.0)):
        smi = "\n".join(power_logs.log(more_w).split("\n")[:132]) + "\n"  # the idle board and the first load
        for name, text in (("phases.csv", power_logs.marks(run)), ("smi.csv", smi)):
            how = pipeline.ReadOptions(zone="UTC")
            pipeline.ingest(engine, io.BytesIO(text.encode()), name, store.RunInfo(name=run), how)
    yield engine
    engine.dispose()


def test_two_runs_of_a_store(engine: Engine) -> None:
    view = side_by_side.compare(engine, "old", "new")
    rows = {row["window"]: row for row in view["power"]}
    assert list(rows) == ["run", "idle", "mem, 1 SM"]
    assert rows["idle"]["power_change"] == pytest.approx(0, abs=1e-9)
    before_w = power_logs.IDLE_W + power_logs.FIRST_W + power_logs.SM_W
    load = rows["mem, 1 SM"]
    change_w = load["mean_power_after_w"] - load["mean_power_before_w"]
    assert change_w == pytest.approx(10, rel=0.02)  # half a reading of the pause before stands in both
    assert (load["power_change"], load["energy_change"]) == pytest.approx((10 / before_w,) * 2, abs=5e-3)
    assert "mem, 1 SM: power up 7.0 %, allowed 5 %" in side_by_side.failures(view, ["power=5%"])
    assert side_by_side.unjudged(view, ["power=5%", "energy=5%"]) == []
    page = comparison(view, 160)
    assert "no kernel in common" not in page
    assert "not corrected, without interval (run): before: a whole run contains several loads" in page
    assert page.endswith(power_alone(view, 160).partition("\n\n")[2])


def test_the_page_says_at_which_temperature(engine: Engine) -> None:
    view = side_by_side.compare(engine, "old", "new")
    rows, said = compared(board(40.0), board(48.0, 9.0))
    lines = power_alone({**view, "power": rows, "warnings": said}, 200).splitlines()
    assert lines[0] == "default/old -> default/new"
    assert lines[4].split()[:3] == ["mix,", "132", "SMs"]
    assert "200.0 [199.0, 201.0]  209.0 [207.2, 210.8]  +4.5 %" in lines[4]
    assert lines[4].endswith("power and energy")
    at = "  power.draw.instant: corrected to 40 \u00b0C, the reference temperature of the earlier run; "
    assert lines[-1] == f"{at}95 % confidence intervals; significant: they do not overlap"
    assert "the runs have no power window in common" in power_alone({**view, "power": []})


def test_runs_without_power_have_none(engine: Engine) -> None:
    assert windows_of(engine, "no such run") == []
    view: dict[str, Any] = {"power": [], "kernels": [], "criteria": []}
    assert side_by_side.unjudged(view, ["power=3%", "duration=1%", "divergence=0.1"]) == [
        "limit power not checked: the runs have no window of power in common",
        "limit duration not checked: the runs have no kernel with a duration in common",
        "limit divergence not checked: the runs have no kernel with a divergence in common",
    ]
