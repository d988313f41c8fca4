"""Which log goes with which power."""

import zlib
from dataclasses import replace

import numpy as np
import pytest

from profsvc.analysis.power.logs import (
    ELAPSED,
    LOCAL,
    UTC,
    Log,
    logs_named,
    matching_sensor,
    shares_clock,
    shift_time,
    throttle_log,
)
from profsvc.errors import NotFoundError


def log(quantity: str, name: str, *, upload: int = 1, gpu: int | None = 0, clock: str = UTC, values=(1.0, 2.0)) -> Log:
    time = np.arange(len(values), dtype=np.int64) * 10**9
    number = zlib.crc32(f"{quantity} {name} {upload} {gpu}".encode())
    return Log(number, upload, quantity, name, "?", gpu, None, clock, time, np.array(values, dtype=float))


POWER = log("power", "power.draw")


@pytest.mark.parametrize(
    ("quantity", "names", "chosen"),
    [
        ("temperature", ["temperature.memory", "temperature.gpu"], "temperature.gpu"),
        ("temperature", ["hbm_temp_c", "temp_c"], "temp_c"),
        ("temperature", ["memory", "junction"], "junction"),
        ("temperature", ["mtemp", "gtemp"], "gtemp"),
        ("clock", ["clocks.current.memory", "clocks.current.sm"], "clocks.current.sm"),
        ("energy", ["total_energy_mj"], "total_energy_mj"),
    ],
)
def test_the_likeliest_name_is_chosen(quantity, names, chosen):
    logs = [log(quantity, name) for name in names]
    assert matching_sensor(POWER, logs, quantity).log.name == chosen


def test_the_same_file_comes_before_a_likelier_name_and_another_gpu_is_never_taken():
    logs = [log("temperature", "temperature.gpu", upload=2), log("temperature", "odd"), log("temperature", "x", gpu=1)]
    assert matching_sensor(POWER, logs, "temperature").log.name == "odd"
    assert (
        matching_sensor(POWER, logs[2:], "temperature").reason
        == "no temperature sensor with readings matches power.draw"
    )


def test_sensors_that_are_equally_likely_are_not_guessed_between():
    choice = matching_sensor(POWER, [log("temperature", "T1"), log("temperature", "T2")], "temperature")
    assert choice.log is None
    assert choice.reason == "2 temperature sensors could match power.draw: T1, T2; select one by name"
    two = [replace(log("temperature", "Ch 1"), sensor_id=number) for number in (21, 22)]
    choice = matching_sensor(POWER, two, "temperature")
    assert choice.reason.endswith("power.draw: Ch 1 (number 21), Ch 1 (number 22); select one by number")


def test_a_sensor_is_named_by_its_name_or_its_number():
    logs = [log("power", "power.draw"), log("power", "power.draw.instant")]
    assert logs_named(logs, "power.draw") == logs[:1]
    assert logs_named(logs, str(logs[1].sensor_id)) == logs[1:]
    with pytest.raises(NotFoundError, match=r"did you mean 'power\.draw'"):
        logs_named(logs, "power.drew")


def test_clocks_that_nobody_knows_are_not_compared():
    other = log("temperature", "t", upload=2)
    assert shares_clock(POWER, other)
    assert not shares_clock(POWER, log("temperature", "t", upload=2, clock=LOCAL))
    elapsed = log("power", "p", clock=ELAPSED)
    assert not shares_clock(elapsed, log("temperature", "t", upload=2, clock=ELAPSED))
    assert shares_clock(elapsed, log("temperature", "t", clock=ELAPSED))
    assert shift_time(other, -1.5).seconds(0).tolist() == [1.5, 2.5]


def test_what_holds_the_clock_down_is_told_from_what_does_not():
    reasons = log("state", "clocks_event_reasons.active", values=[0, 1, 2, 4, 0x41, 0x100])
    assert throttle_log(POWER, [reasons]).value.tolist() == [0, 0, 0, 1, 1, 0]
    single = [
        log("state", "clocks_throttle_reasons.sw_power_cap", values=[0, 1, 0]),
        log("state", "clocks_throttle_reasons.hw_thermal_slowdown", values=[0, 0, 1]),
        log("state", "clocks_throttle_reasons.gpu_idle", values=[1, 1, 1]),
    ]
    assert throttle_log(POWER, single).value.tolist() == [0, 1, 1]
    assert throttle_log(POWER, [log("state", "pstate")]) is None
