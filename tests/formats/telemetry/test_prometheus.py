"""DCGM metrics from Prometheus: what is refused, and values at the edges."""

import io
import json

import pytest

from profsvc import formats
from profsvc.errors import BrokenInputError
from profsvc.formats.telemetry import prometheus

NAME = "DCGM_FI_DEV_POWER_USAGE"


def answer(*series: object) -> bytes:
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": series}}).encode()


def series(values: object, **labels: str) -> dict[str, object]:
    return {"metric": {"__name__": NAME, "gpu": "0", **labels}, "values": values}


def samples(content: bytes) -> list[float]:
    batches = list(prometheus.read(io.BytesIO(content)))
    tables = [batch.tables["samples"] for batch in batches if "samples" in batch.tables]
    return [value for table in tables for value in table["value"].tolist()]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (answer(series([[1e30, "1"]])), "not a time"),
        (answer(series([[True, "1"]])), "not a time"),
        (answer(series([[1718783836, 1]])), "is not a time and a text"),
        (answer(series(["x"])), "is not a time and a text"),
        (answer({"metric": {"__name__": NAME, "gpu": "0"}, "histograms": []}), "has no values"),
        (answer("x"), "a series without labels"),
        (answer(series([[1718783836, "1,5"]])), "prints a decimal point"),
        (answer(series([[1, "1"], [3, "1"]]), series([[2, "1"]], pod="b")), "two series of"),
        (answer(series([[1, "1"]], instance="a"), series([[1, "1"]], instance="b", gpu="1")), "the hosts 'a' and 'b'"),
        (answer(series([[1718783836, "1"]]))[:-9], "cut or damaged"),
        (f'{NAME}{{gpu="0"}} 7,5\n'.encode(), "prints a decimal point"),
    ],
)
def test_what_prometheus_does_not_write_is_refused(content: bytes, why: str) -> None:
    with pytest.raises(BrokenInputError, match=why):
        samples(content)


def test_values_at_the_edges() -> None:
    assert samples(answer(series([]), series([[1718783836.5, "0"], [1718783837, "1e+02"]], gpu="255"))) == [0.0, 100.0]
    seconds = "".join(f'{NAME}{{gpu="{gpu}"}} 1 1718783836.25\n' for gpu in range(257)) + "# EOF\n"
    found = list(prometheus.read(io.BytesIO(seconds.encode())))
    assert [len(batch.tables["sensors"]) for batch in found if "sensors" in batch.tables] == [257]
    times = {time for batch in found if "samples" in batch.tables for time in batch.tables["samples"]["time_ns"]}
    assert times == {1718783836250000000}


@pytest.mark.parametrize(
    "content",
    [
        answer({"metric": {"__name__": "up"}, "values": []}),
        b'{"status":"error","error":"DCGM_FI_"}\n',
        b"go_goroutines 12\n",
        b"# DCGM_FI_DEV is a prefix\n",
    ],
)
def test_other_texts_are_left_to_others(content: bytes) -> None:
    assert not prometheus.sniff(content)


def test_the_reader_is_found_by_its_first_bytes() -> None:
    assert formats.by_name("prometheus").sniff(
        b'\xef\xbb\xbf# HELP DCGM_FI_DEV_SM_CLOCK x\nDCGM_FI_DEV_SM_CLOCK{gpu="0"} 1\n'
    )


LIMITS = {
    "GPU_MAX_OP_TEMP": "degC", "MEM_MAX_OP_TEMP": "degC", "GPU_TEMP_LIMIT": "degC", "SLOWDOWN_TEMP": "degC",
    "SHUTDOWN_TEMP": "degC", "POWER_MGMT_LIMIT": "W", "POWER_MGMT_LIMIT_MIN": "W", "POWER_MGMT_LIMIT_MAX": "W",
    "POWER_MGMT_LIMIT_DEF": "W", "ENFORCED_POWER_LIMIT": "W", "APP_SM_CLOCK": "Hz", "APP_MEM_CLOCK": "Hz",
    "MAX_SM_CLOCK": "Hz", "MAX_MEM_CLOCK": "Hz", "MAX_VIDEO_CLOCK": "Hz",
}  # fmt: skip
READINGS = {
    "POWER_USAGE": "power", "POWER_USAGE_INSTANT": "power", "GPU_TEMP": "temperature", "MEMORY_TEMP": "temperature",
    "SM_CLOCK": "clock", "MEM_CLOCK": "clock", "VIDEO_CLOCK": "clock", "FAN_SPEED": "fan", "GPU_UTIL": "utilization",
    "ENFORCED_POWER_PROFILE_MASK": "unknown", "POWER_VIOLATION": "unknown",
}  # fmt: skip


def test_limits_of_a_board_are_no_readings_of_it(read_all) -> None:
    lines = [f'DCGM_FI_DEV_{name}{{gpu="0"}} 50\n' for name in (*LIMITS, *READINGS)]
    sensors = {
        row["name"].removeprefix("DCGM_FI_DEV_"): row for row in read_all("".join(lines).encode()).rows("sensors")
    }
    assert {name: sensors[name]["unit"] for name in LIMITS} == LIMITS
    assert {sensors[name]["quantity"] for name in LIMITS} == {"limit"}
    assert {name: sensors[name]["quantity"] for name in READINGS} == READINGS
