"""The wall time of several devices: who waits for whom in collectives."""

import json
from pathlib import Path
from typing import Any

import pytest

from profsvc import store
from profsvc.reports.text.runs import wall_time as text
from profsvc.views.traces.wall_time import wall_time
from tests.inputs.uploads import ingest_all

STEPS, STEP_US = 3, 10_000.0


def trace(rank: int, collective_us: float, collectives: int = STEPS) -> bytes:
    """Return a trace of PyTorch in which each step computes and then adds up over all ranks, half behind compute."""
    events: list[dict[str, Any]] = []
    for step in range(STEPS):
        start = step * STEP_US + 7.0 * rank
        kernels = [
            ("gemm", start, 4000.0, 7),
            ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", start + 3000, collective_us, 20),
        ]
        events += [
            {"ph": "X", "cat": "kernel", "name": name, "pid": rank, "tid": stream, "ts": at, "dur": lasts,
             "args": {"device": rank, "stream": stream, "correlation": 10 * step + place}}
            for place, (name, at, lasts, stream) in enumerate(kernels[: 2 if step < collectives else 1])
        ]  # fmt: skip
    device = {"id": rank, "name": "NVIDIA H200", "numSms": 132, "computeMajor": 9, "computeMinor": 0}
    return json.dumps({"schemaVersion": 1, "deviceProperties": [device], "traceEvents": events}).encode()


def lanes(tmp_path: Path, *traces: bytes) -> tuple[list[dict[str, Any]], str]:
    engine = store.open_store(str(tmp_path / "store.sqlite"), pooled=True)
    files = [(content, f"rank{rank}.json") for rank, content in enumerate(traces)]
    ingest_all(engine, files, store.RunInfo(name="ddp"))
    found = wall_time(engine, 1, store.select(engine, "v1_uploads", run_id=1))
    engine.dispose()
    return found, text.wall_time({"run": {"name": "ddp", "run_id": 1}, "wall_time": found})


def test_the_others_wait_for_the_device_whose_collectives_are_shortest(tmp_path: Path) -> None:
    found, said = lanes(tmp_path, trace(0, 3000.0), trace(1, 2500.0))
    assert [lane["waits_ns"] for lane in found] == [pytest.approx(STEPS * 500e3), 0]
    assert "waits up to 1.5 ms in collectives for device 1, rank1.json" in said
    assert said.count("arrives last at collectives") == 1


@pytest.mark.parametrize(
    "traces",
    [
        (trace(0, 3000.0),),
        (trace(0, 3000.0), trace(1, 2500.0, collectives=STEPS - 1)),
        (trace(0, 3000.0), trace(1, 2500.0, collectives=0)),
    ],
    ids=["one device", "another number of collectives", "a device without any"],
)
def test_who_waits_is_not_told_of_devices_that_cannot_be_compared(tmp_path: Path, traces: tuple[bytes, ...]) -> None:
    found, said = lanes(tmp_path, *traces)
    assert [lane["waits_ns"] for lane in found] == [None] * len(traces)
    assert "waits up to" not in said


def test_devices_that_arrive_together_wait_for_nobody(tmp_path: Path) -> None:
    found, said = lanes(tmp_path, trace(0, 3000.0), trace(1, 3000.0))
    assert [lane["waits_ns"] for lane in found] == [0, 0]
    assert "arrives last" not in said
