"""Power and energy of nights, from simulated logs of a board that warms, through the path of every upload."""

import shutil
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from profsvc import pipeline, store
from profsvc.pipeline.nightly import report_of_night
from profsvc.reports.nightly import formats as forms
from profsvc.views import history as of_kernel
from tests.benchmarks.night_record import TRACE
from tests.conftest import opened
from tests.inputs.uploads import ingest_all

NIGHTS, CHANGED = 13, 9
KERNEL = "saxpy(int, float *)"
LINE = '{start},{ns},1,64,1,1,128,1,1,40,0.004096,0.000,,,,,NVIDIA H200 (0),1,7,"' + KERNEL + '"'
HEADER = "timestamp, name, uuid, power.draw.instant [W], temperature.gpu, clocks.current.sm [MHz]"
LOAD_W, PER_C, IDLE_W, HEAT_C, TAU_S, STEP_S = 420.0, 1.2, 110.0, 14.0, 12.0, 0.2
LOADS = ((5.0, 40.0), (60.0, 95.0), (115.0, 150.0))
BOARD = "GPU-01234567-89ab-cdef-0123-456789abcdef"


def log(night: int, begin: datetime, load_w: float, room_c: float) -> bytes:
    """Return the readings of nvidia-smi: three loads on a board that warms from ``room_c``."""
    rng = np.random.default_rng(night)
    temperature, lines = room_c, [HEADER]
    for step in range(round((LOADS[-1][1] + 10) / STEP_S)):
        at = step * STEP_S
        loaded = any(a <= at < b for a, b in LOADS)
        temperature += STEP_S / TAU_S * (room_c + HEAT_C * loaded - temperature)
        watts = (load_w + PER_C * (temperature - 50.0) if loaded else IDLE_W) + 0.6 * rng.standard_normal()
        stamp = f"{begin + timedelta(seconds=at):%Y/%m/%d %H:%M:%S.%f}"[:-3]
        lines.append(f"{stamp}, NVIDIA H200, {BOARD}, {watts:.2f} W, {temperature:.0f}, 1980 MHz")
    return "\n".join([*lines, ""]).encode()


def marks(begin: datetime, launch_s: float) -> bytes:
    """Return the loads of the log as marks by the name of the kernel."""
    rows = ["name,begin,end,sms,launches"]
    for ends in LOADS:
        stamps = [f"{begin + timedelta(seconds=at):%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z" for at in ends]
        rows.append(f"saxpy,{stamps[0]},{stamps[1]},132,{round((ends[1] - ends[0]) / launch_s)}")
    return "\n".join([*rows, ""]).encode()


def put(engine, night: int, *, time: float = 1.0, power: float = 1.0, room_c: float = 40.0) -> None:
    begin = datetime(2026, 3, night + 1, 2, tzinfo=UTC)
    at, ns = f"{begin:%Y-%m-%dT%H:%M:%SZ}", 100_000 * time
    run = store.RunInfo(name=f"night {night}", project="lab", started_at=at, at=at, commit_id=f"c{night:07}")
    lines = [LINE.format(start=10**7 * n, ns=round(ns * (1 + 0.001 * ((7 * night + n) % 5 - 2)))) for n in range(1, 6)]
    trace = "\n".join([TRACE, *lines, ""]).encode()
    files = [(trace, "trace.csv"), (marks(begin, ns / 1e9), "marks.csv")]
    files.append((log(night, begin, LOAD_W * power, room_c), "smi.csv"))
    ingest_all(engine, files, run, pipeline.ReadOptions(zone="UTC"))


def season(engine, *, time: float = 1.0, power: float = 1.0, warmer_c: float = 0.0) -> list[dict]:
    """Return the reports of the nights since a change, in a store that may have the nights before it."""
    made = []
    for night in range(len(store.select(engine, "v1_runs")), NIGHTS):
        late = night >= CHANGED
        # The room is a little warmer or colder each night, so that runs of the board know its coefficient.
        room_c = 40.0 + 3.0 * np.sin(2.1 * night) + warmer_c * late
        put(engine, night, time=time if late else 1.0, power=power if late else 1.0, room_c=room_c)
        if night >= CHANGED - 1:
            made.append(report_of_night(engine, "lab", f"2026-03-{night + 1:02}"))
    return made


@pytest.fixture(scope="module")
def quiet_file(tmp_path_factory, empty):
    """A store with the nights before a change, but for the last of them, of which there is a report."""
    file = tmp_path_factory.mktemp("quiet") / "store.sqlite"
    shutil.copy(empty, file)
    with opened(str(file)) as engine:
        for night in range(CHANGED - 1):
            put(engine, night, room_c=40.0 + 3.0 * np.sin(2.1 * night))
    return file


@pytest.fixture
def engine(quiet_month):
    return quiet_month


@pytest.fixture(params=["sqlite", "postgres"])
def either(request):
    """Give a store of each database."""
    if request.param == "sqlite":
        yield request.getfixturevalue("engine")
        return
    with opened(request.getfixturevalue("postgres_whole_url")) as engine:
        yield engine


def found(made: list[dict]) -> dict[str, dict]:
    return {row["quantity"]: row for document in made for row in document["findings"]}


def test_a_kernel_that_is_faster_by_more_power_is_told_as_that(either):
    made = season(either, time=0.92, power=1.08)
    rows = found(made)
    assert {"duration", "power"} <= set(rows)
    assert rows["duration"]["change"] == pytest.approx(-0.08, abs=0.002)
    assert rows["power"]["change"] == pytest.approx(0.08, abs=0.006)
    told = [line for line in rows["duration"]["why"] if line.startswith("faster by drawing more power: ")]
    assert len(told) == 1
    assert float(told[0].rsplit("changed by ", 1)[1].removesuffix(" %")) == pytest.approx(-0.6, abs=0.4)
    together = [event["text"] for document in made for event in document["events"]]
    assert [words for words in together if words.startswith("saxpy faster by 8 % with more power (+8")]
    assert any("with more power" in forms.in_form(document, "text") for document in made)


def test_a_warmer_room_is_no_finding_of_power_and_its_coefficient_is_that_of_earlier_runs(engine):
    made = season(engine, warmer_c=12.0)
    assert not {"power", "energy_per_launch", "raw_power"} & set(found(made))
    rows = store.select(engine, "v1_power_coefficients")
    carried = [row for row in rows if row["form"] == "pooled" and (row["basis"] or "").endswith("of this board")]
    assert carried
    newest = max(carried, key=lambda row: row["run_id"])
    assert newest["coefficient_low"] <= PER_C <= newest["coefficient_high"]
    first = next(row for row in rows if row["run_id"] == 1 and row["used"])
    width = [row["coefficient_high"] - row["coefficient_low"] for row in (first, newest)]
    assert width[1] < 0.6 * width[0]


def test_energy_of_a_launch_is_a_series_and_its_rise_is_found(engine):
    made = season(engine, power=1.06)
    rows = found(made)
    assert rows["energy_per_launch"]["change"] == pytest.approx(0.06, abs=0.006)
    assert rows["energy_per_launch"]["unit"] == "J"
    assert "duration" not in rows
    # Six series of three loads are one change, which the temperature of its nights does not explain.
    (event,) = [event for document in made for event in document["events"]]
    assert event["text"].startswith("saxpy: power +6.")
    assert event["text"].endswith(" in 3 loads")
    (line,) = [document["one_line"] for document in made if document["findings"]]
    assert line.startswith("1 regression in 1 run; worst: saxpy, 132 SMs")
    asked = [row for document in made for row in (*document["findings"], *document["reruns"])]
    assert not [one for row in asked for one in row["differences"] if one["fact"] == "temperature_c"]
    finding = store.select(engine, "v1_findings", quantity="energy_per_launch")[0]
    view = of_kernel.history(engine, "saxpy", "energy_per_launch")
    assert {step["run"] for step in view["steps"]} == {finding["run"]}
    assert finding["finding_id"] in {row["finding_id"] for row in view["findings"]}
    before = [point["value"] for point in view["points"] if point["window"] == finding["subject"]][:CHANGED]
    assert np.median(before) == pytest.approx(finding["value_before"], rel=0.02)  # at another temperature
