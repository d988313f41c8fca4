"""The best clock from power windows: of logs at several clocks, and where windows do not make a sweep."""

from datetime import UTC, datetime, timedelta

import pytest

from profsvc import pipeline, store
from profsvc.errors import NotFoundError, UsageError
from profsvc.views.power.clock_sweep import clock_sweep
from profsvc.views.power.run_power import power
from tests.cli import conftest
from tests.inputs.uploads import ingest_all

cli, store_file = conftest.cli, conftest.store_file
BEGIN = datetime(2026, 5, 4, 12, tzinfo=UTC)
IDLE_S, LOAD_S, STEP_S = 10.0, 20.0, 0.1
CLOCKS = (800, 1000, 1200, 1400, 1600, 1800)
POINT = {"kind": "load", "load": "gemm", "window": "gemm", "sensor": "power.draw", "active_sms": 132, "launches": 10,
         "duration_s": 10.0, "mean_power_w": 100.0, "settled_power_w": 100.0, "corrected_power_w": None,
         "mean_clock_hz": 1e9}  # fmt: skip


def fill(engine, clock: int) -> str:
    """Upload a load at a clock: 60 W and 90 W times the cube of clock / 1800 MHz; a launch takes 1800 s / clock."""
    f = clock / CLOCKS[-1]
    lines = ["timestamp, index, name, power.draw.instant [W], temperature.gpu, clocks.current.sm [MHz]"]
    for n in range(int((2 * IDLE_S + LOAD_S) / STEP_S)):
        at = n * STEP_S
        watts = 50.0 if not IDLE_S <= at < IDLE_S + LOAD_S else 60 + 90 * f**3
        stamp = (BEGIN + timedelta(seconds=at)).strftime("%Y/%m/%d %H:%M:%S.%f")[:-3]
        lines.append(f"{stamp}, 0, NVIDIA H200, {watts + 0.01 * (n % 3):.2f} W, 40, {clock} MHz")
    first = BEGIN.timestamp() + IDLE_S
    marks = f"unix_s,mark,type,sms,extra\n{first:.3f},begin,gemm,132\n"
    marks += f"{first + LOAD_S:.3f},end,gemm,132,launches={round(LOAD_S * f * 50)}\n"
    name = f"clock_{clock}"
    files = [("\n".join([*lines, ""]).encode(), "smi.csv"), (marks.encode(), "phases.csv")]
    ingest_all(engine, files, store.RunInfo(name=name), pipeline.ReadOptions(zone="UTC"))
    return name


def test_a_sweep_of_runs_finds_the_clock_of_its_laws(engine, cli, tmp_path) -> None:
    names = [fill(engine, clock) for clock in CLOCKS]
    view = clock_sweep([row for name in names for row in power(engine, name)["windows"]])
    assert [round(row["clock_mhz"]) for row in view["rows"]] == [*CLOCKS]
    assert view["rows"][-1]["time_s"] == pytest.approx(1 / 50, rel=0.01)
    best = 1800 * (60 / (2 * 90)) ** (1 / 3)
    (mark,) = view["figure"]["marks"]
    assert mark["x"] == pytest.approx(best, rel=0.02)
    assert mark["low"] <= best * 1.01
    assert view["notes"][-1].startswith("load gemm of sensor power.draw.instant, 6 windows: time of a launch")
    found = cli("--store", engine.url.database, "energy", "sweep", *names, "--plot", tmp_path / "a.svg")
    assert found.code == 0, found.err
    assert f"best clock: {mark['x']:.0f} MHz" in found.out
    assert (tmp_path / "a.svg").read_bytes().startswith(b"<?xml")


@pytest.mark.parametrize(
    ("rows", "options", "said"),
    [
        ([], {}, "no windows of load with power"),
        ([{**POINT, "kind": "idle"}], {}, "no windows of load with power"),
        ([{**POINT, "mean_clock_hz": None}], {}, "no window has an SM clock"),
        ([POINT], {"load": "gem"}, "no load named 'gem'; did you mean 'gemm'"),
        ([POINT], {"sensor": "power"}, "no sensor named 'power'"),
        ([POINT, {**POINT, "active_sms": 66}], {}, "load gemm differ in their SMs"),
    ],
)
def test_windows_that_make_no_sweep_are_refused(rows, options, said) -> None:
    with pytest.raises((NotFoundError, UsageError), match=said):
        clock_sweep(rows, **options)


def test_windows_without_launches_are_taken_for_the_same_work() -> None:
    points = [{**POINT, "mean_clock_hz": hz, "launches": None, "load": None} for hz in (1e9, 2e9)]
    view = clock_sweep(points)
    assert [row["time_s"] for row in view["rows"]] == [10, 10]
    assert "each taken for the same work, settled power" in view["notes"][-1]
    assert view["notes"][0].startswith("no best clock: 2 clocks were measured")
