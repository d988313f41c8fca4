"""Averages of nvprof over nights on two boards: the files say the device, and the series of both stay apart."""

import io
from functools import partial

import numpy as np
import pytest

from profsvc import pipeline, store
from profsvc.pipeline.nightly import report_of_night
from profsvc.reports.nightly import formats as forms

HEADER = '"Device","Kernel","Invocations","Metric Name","Metric Description","Min","Max","Avg"'
BANNER = "==7== NVPROF is profiling process 7, command: ./saxpy\n==7== Profiling application: ./saxpy\n"
METRICS = BANNER + "==7== Profiling result:\n==7== Metric result:\n"
SUMMARY = (
    BANNER + '==7== Profiling result:\n"Type","Time(%)","Time","Calls","Avg","Min","Max","Name"\n,%,us,,us,us,us,\n'
)
KERNEL = "saxpy(float*, int)"
# Series of nights are of what the files say.
pytestmark = pytest.mark.usefixtures("unanalysed")
OCCUPANCY = {"Tesla V100-SXM2-16GB": 0.9, "Tesla P100-PCIE-16GB": 0.6}
BOARDS = tuple(OCCUPANCY)


def averages(boards: tuple[str, ...], rng: np.random.Generator) -> str:
    lines = [METRICS + HEADER]
    for ordinal, board in enumerate(boards):
        value = OCCUPANCY[board] + 0.001 * rng.standard_normal()
        name = "achieved_occupancy"
        lines.append(f'"{board} ({ordinal})","{KERNEL}",3,"{name}","Achieved Occupancy",{value:f},{value:f},{value:f}')
    return "\n".join([*lines, ""])


def totals(us: float) -> str:
    return SUMMARY + f'"GPU activities",100.000000,{3 * us:f},3,{us:f},{us:f},{us:f},"{KERNEL}"\n'


def upload(engine, night: int, text: str, **run) -> None:
    at = f"2026-02-{night + 1:02}T02:00:00Z"
    info = store.RunInfo(name=f"night {night}", started_at=at, at=at, **run)
    pipeline.ingest(engine, io.BytesIO(text.encode()), "nvprof.csv", info, pipeline.ReadOptions())


def report(engine, night: int) -> dict:
    return report_of_night(engine, None, f"2026-02-{night + 1:02}")


def test_averages_tell_the_device_of_their_run_and_boards_are_series_of_their_own(engine):
    rng = np.random.default_rng(1)
    for night in range(18):
        # Thirteen nights on one board, then the other one: by the numbers alone a change.
        upload(engine, night, averages((BOARDS[night > 12],), rng))
    assert {run["device"] for run in store.select(engine, "v1_runs")} == set(BOARDS)
    made = report(engine, 17)
    assert (made["findings"], made["reruns"], made["told"]) == ([], [], [])
    assert {one["device"] for one in made["runs"]} == set(BOARDS)
    assert "Device unknown" not in forms.in_form(made, "text")


def test_a_file_of_several_boards_is_apart_from_those_of_one(engine):
    rng = np.random.default_rng(2)
    for night in range(17):
        upload(engine, night, averages(BOARDS if night > 12 else BOARDS[:1], rng))
    runs = store.select(engine, "v1_runs")
    assert [(run["device"], run["devices"]) for run in runs[-4:]] == [(None, " + ".join(sorted(BOARDS)))] * 4
    made = report(engine, 16)
    assert (made["findings"], made["reruns"]) == ([], [])
    assert {one["device"] for one in made["runs"]} == {BOARDS[0], " + ".join(sorted(BOARDS))}


def test_a_file_without_a_device_is_never_joined_with_a_known_one_and_says_so(engine):
    rng = np.random.default_rng(3)
    us = partial(rng.normal, scale=0.1)
    for night in range(17):
        # The same kernel at another time, of which no file says the board.
        text, device = (totals(us(100.0)), BOARDS[0]) if night < 10 else (totals(us(130.0)), None)
        upload(engine, night, text, device=device)
    made = report(engine, 16)
    assert (made["findings"], made["reruns"]) == ([], [])
    assert [one["device"] for one in made["runs"]] == [BOARDS[0]] * 10 + [None] * 7
    for form in ("text", "md", "html"):
        said = forms.in_form(made, form)
        assert "the files of 7 of 17 runs name no device" in said
        assert "profsvc upload --device NAME" in said


def test_a_finding_of_an_unknown_device_says_so(engine):
    rng = np.random.default_rng(4)
    for night in range(17):
        upload(engine, night, totals(rng.normal(130.0 if night > 12 else 100.0, 0.1)))
    made = report(engine, 16)
    assert [(row["subject"], row["device"]) for row in made["findings"]] == [("saxpy", None)]
    assert "saxpy mean duration (device unknown)" in forms.in_form(made, "text")


@pytest.mark.parametrize("named", [BOARDS[:1], BOARDS])
def test_readings_of_boards_tell_the_device_if_they_are_of_one(engine, named):
    rows = "".join(f'"SM Clock (MHz)","{board} ({n})",8,1380,1230,1480\n' for n, board in enumerate(named))
    system = f'\n==7== System profiling result:\n"","Device","Count","Avg","Min","Max"\n{rows}'
    upload(engine, 0, totals(100.0) + system)
    (run,) = store.select(engine, "v1_runs")
    assert run["device"] == (named[0] if len(named) == 1 else None)
