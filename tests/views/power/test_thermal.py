"""Temperature under planned loads: a board whose constants are known, what is refused, and what is said beside."""

import io
import re
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Engine

from profsvc import pipeline, store
from profsvc.analysis.power.thermal.plan import thermal_model
from profsvc.errors import InputError, NotFoundError, UsageError
from profsvc.views.power.run_power import power
from profsvc.views.power.thermal import drawn, thermal
from tests.views import power_logs as logs


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    engine = store.open_store(str(tmp_path_factory.mktemp("thermal") / "store.sqlite"), pooled=True)
    logs.fill(engine)
    blind = re.sub(r", [0-9]+, 1980 MHz", ", 1980 MHz", logs.log()).replace("temperature.gpu, ", "")
    for name, text in (("blind", blind), ("short", "\n".join(logs.log().split("\n")[:30]) + "\n")):
        how = pipeline.ReadOptions(zone="UTC")
        pipeline.ingest(engine, io.BytesIO(text.encode()), f"{name}.csv", store.RunInfo(name=name), how)
    yield engine
    engine.dispose()


def answers(view: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["quantity"]: row for row in view["answers"]}


def settled_c(power_w: float) -> float:
    return logs.COLD_C + logs.RISE_C_PER_W * (power_w - logs.IDLE_W)


def test_the_peak_of_a_plan_is_that_of_the_board(engine: Engine) -> None:
    for power_w in (150.0, 250.0):
        peak = answers(thermal(engine, "sweep", [power_w], [40.0]))["peak_temperature_c"]
        assert peak["value"] == pytest.approx(settled_c(power_w), abs=0.3)
        assert peak["low"] < settled_c(power_w) < peak["high"]
    short = answers(thermal(engine, "sweep", [250.0], [logs.LAG_S]))["peak_temperature_c"]
    assert short["value"] == pytest.approx(logs.COLD_C + 0.632 * (settled_c(250.0) - logs.COLD_C), abs=0.5)


def test_the_time_to_a_limit_and_the_reason_where_it_is_not_reached(engine: Engine) -> None:
    half = (settled_c(300.0) + logs.COLD_C) / 2
    found = answers(thermal(engine, "sweep", [300.0], [30.0], limit=half))["time_to_limit_s"]
    assert found["value"] == pytest.approx(0.693 * logs.LAG_S, abs=0.3)
    assert found["low"] < found["value"] < found["high"]
    never = answers(thermal(engine, "sweep", [300.0], [30.0], limit=90.0))["time_to_limit_s"]
    assert (never["value"], never["low"], never["high"]) == (None, None, None)
    assert re.fullmatch(r"the plan reaches 4\d\.\d \u00b0C, below the limit of 90 \u00b0C", never["reason"])
    hot = answers(thermal(engine, "sweep", [300.0], [30.0], start=60.0, limit=50.0))
    assert (hot["time_to_limit_s"]["value"], hot["peak_temperature_c"]["value"]) == (0, 60)


def test_loads_follow_each_other(engine: Engine) -> None:
    view = thermal(engine, "sweep", [300.0, 80.0], [40.0, 40.0])
    found = answers(view)
    assert found["time_to_peak_s"]["value"] == pytest.approx(40)
    assert found["end_temperature_c"]["value"] == pytest.approx(logs.COLD_C, abs=0.5)
    assert drawn(view, "svg").startswith(b"<?xml")


def test_a_board_that_only_cools_is_hottest_at_the_start(engine: Engine) -> None:
    found = answers(thermal(engine, "sweep", [0.0], [40.0], start=60.0))
    assert (found["peak_temperature_c"]["value"], found["time_to_peak_s"]["value"]) == (60, 0)
    assert found["leakage_share"]["value"] is None
    assert found["leakage_share"]["reason"]


def test_without_a_plan_the_heaviest_load_of_the_run_is_taken(engine: Engine) -> None:
    view = thermal(engine, "sweep")
    assert view["plan"]["is_default"]
    assert view["plan"]["load_w"] == [pytest.approx(80 + 60 + 2 * 132, abs=1)]
    assert view["plan"]["start_c"] == logs.COLD_C
    assert not view["notes"]


def test_each_load_of_the_run_was_predicted_without_it(engine: Engine) -> None:
    view = thermal(engine, "sweep")
    assert [row["window"] for row in view["checks"]] == [f"mem, {n} SM{'s' * (n > 1)}" for n in logs.SMS]
    assert max(abs(row["error_c"]) for row in view["checks"]) < 1.0
    rows = store.select(engine, "v1_power_models", run_id=view["run"]["run_id"], quantity="left_out_error_c")
    assert [row["value"] for row in rows] == [pytest.approx(row["error_c"]) for row in view["checks"]]


def test_what_lies_beyond_the_log_is_marked(engine: Engine) -> None:
    view = thermal(engine, "sweep", [800.0], [600.0])
    assert [note.split(":")[0] for note in view["notes"]] == ["extrapolated"] * 2
    peak = answers(view)["peak_temperature_c"]
    assert peak["flags"] == "EXTRAPOLATED"
    near = answers(thermal(engine, "sweep", [300.0], [40.0]))["peak_temperature_c"]
    assert peak["high"] - peak["low"] > 2 * (near["high"] - near["low"])


def test_leakage_has_a_reason_where_the_coefficient_is_refused(engine: Engine) -> None:
    found = answers(thermal(engine, "sweep", [300.0], [40.0]))
    for name in ("leakage_w", "leakage_share", "heat_energy_j"):
        assert (found[name]["value"] is None) == bool(found[name]["reason"])


def test_a_run_of_an_older_analysis_asks_for_a_new_one(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("profsvc.views.power.thermal.VERSION", "later")
    with pytest.raises(InputError, match=r"'short' was analysed by an older version; run: profsvc analyze id:\d+"):
        thermal(engine, "short")


def test_a_log_of_too_few_loads_carries_no_interval_and_is_refused(engine: Engine) -> None:
    view = power(engine, "sweep")
    rows = [row for row in view["models"] if row["quantity"] != "left_out_error_c"]
    errors = [row for row in view["models"] if row["quantity"] == "left_out_error_c"]
    assert not isinstance(thermal_model(rows + errors[:3], view["windows"]), str)
    for count, said in ((0, "with 0 loads, but 3 are needed"), (1, "with 1 load, but 3 are needed; it is off by 0.")):
        assert said in str(thermal_model(rows + errors[:count], view["windows"]))


@pytest.mark.parametrize(
    ("run", "message"),
    [
        ("blind", r"run 'blind' predicts no temperature: .*temperature.*; to measure it, log power and temperature"),
        ("short", r"run 'short' predicts no temperature: .*; to measure it, log .* profsvc upload --run short FILE"),
    ],
)
def test_a_log_that_carries_no_model_says_why_and_which_would(engine: Engine, run: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        thermal(engine, run, [300.0], [40.0])


def test_a_plan_that_cannot_be_is_refused_before_any_work(engine: Engine) -> None:
    for load, duration, start, message in (
        ([300.0], [], None, "the plan has 1 load and 0 durations"),
        ([-1.0], [1.0], None, "--load -1 must be 0 W or more"),
        ([1.0], [0.0], None, "--for 0 must be a finite number of s above 0"),
        ([1.0], [float("inf")], None, "--for inf must be"),
        ([1.0], [1.0], 999.0, "--start 999 must be from -60 to 200"),
        ([1.0] * 21, [1.0] * 21, None, "at most 20"),
    ):
        with pytest.raises(UsageError, match=message):
            thermal(engine, "no such run", load, duration, start)
    with pytest.raises(NotFoundError):
        thermal(engine, "no such run")
