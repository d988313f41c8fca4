"""What a report says of the runs of a change: what else changed in them."""

import shutil
from contextlib import nullcontext

import pandas as pd
import pytest

from profsvc import store
from profsvc.pipeline.nightly import report_of_night
from profsvc.pipeline.nightly.evidence import finding_differences
from profsvc.pipeline.nightly.report import NO_NAMES
from profsvc.pipeline.nightly.verdict import since_text
from profsvc.reports.nightly import formats as forms
from profsvc.views.nightly import findings as of_findings
from tests.benchmarks.night_record import TRACE
from tests.conftest import opened
from tests.inputs.uploads import ingest_all, without_analysis

QUIET, KERNEL, OTHER = 12, "saxpy(int, float *)", "gemm(float *)"
LINE = "{start},{ns},1,{grid},1,1,{block},1,1,{registers},0.004096,0.000,,,,,NVIDIA H200 (0),1,7,{kernel}"
COPY = "{start},1000,9,,,,,,,,,,{megabytes},1000,Pageable,Device,NVIDIA H200 (0),1,7,[CUDA memcpy Host-to-Device]"

LOG = "timestamp, power.draw [W], temperature.gpu, clocks.current.sm [MHz]"


def trace(night: int, *kernels: dict, megabytes: float = 4.0) -> bytes:
    lines = [COPY.format(start=0, megabytes=megabytes)]
    for number, kernel in enumerate(kernels):
        own = {"kernel": KERNEL, "grid": 64, "block": 128, "registers": 40, "ns": 100_000} | kernel
        own["ns"] = round(own["ns"] * (1 + 0.001 * ((7 * night) % 5 - 2)))
        lines.append(LINE.format(start=10_000_000 * (number + 1), **own))
    # Names with commas are quoted, as the tool does.
    quoted = [line.replace(KERNEL, f'"{KERNEL}"') for line in lines]
    return "\n".join([TRACE, *quoted, ""]).encode()


def put(
    engine,
    night: int,
    *kernels: dict,
    tags: dict | None = None,
    commit: str | None = None,
    clock: float | None = None,
    host: str | None = None,
    hour: int = 2,
    zone: str = "UTC",
    **how: object,
) -> dict:
    at = f"2026-03-{night + 1:02}T{hour:02}:00:00Z"
    run = store.RunInfo(
        name=f"night {night}", project="lab", started_at=at, at=at, tags=tags or {}, commit_id=commit, host=host
    )
    files = [(trace(night, *kernels, **how), "trace.csv")]
    if clock:
        lines = [f"{at[:10].replace('-', '/')} 02:00:0{n}.000, 300.0 W, 50, {clock / 1e6:.0f} MHz" for n in range(8)]
        files.append(("\n".join([LOG, *lines, ""]).encode(), "smi.csv"))
    # Series of nights are of what the files say; the clock of a run is found by the analysis of its log.
    with nullcontext() if clock else without_analysis():
        ingest_all(engine, files, run)
    # The first report covers all nights before it.
    return report_of_night(engine, "lab", at[:10], zone) if night >= QUIET - 1 else {"findings": []}


@pytest.fixture(scope="module")
def quiet_file(tmp_path_factory):
    """A store with nights in which nothing changes."""
    file = tmp_path_factory.mktemp("quiet") / "store.sqlite"
    with opened(str(file)) as engine:
        for night in range(QUIET):
            put(engine, night, {}, tags={"compiler": "nvcc 12.8"})
    return file


@pytest.fixture
def engine(quiet_month):
    return quiet_month


def test_a_slower_kernel_is_told_with_its_registers_inputs_compiler_and_new_kernels(engine):
    slow = {"ns": 112_000, "registers": 72, "grid": 128}
    made = [
        put(engine, QUIET + n, slow, {"kernel": OTHER}, tags={"compiler": "nvcc 13.0"}, megabytes=8.0) for n in range(3)
    ]
    (finding,) = [row for row in made[-1]["findings"] if row["quantity"] == "duration"]
    assert finding["cause"] == (
        "compiler nvcc 12.8 to nvcc 13.0, bytes copied (HtoD) 4 MB to 8 MB (+100 %), grid 64x1x1 to 128x1x1, "
        "registers 40 to 72"
    )
    assert finding["why"][0] == f"changed with it: {finding['cause']}"
    assert finding["why"][1] == "new kernel gemm (100.1 us)"
    for form in ("text", "md", "html", "json"):
        assert "registers 40 to 72" in forms.in_form(made[-1], form)
    number = finding["finding_id"]
    stored = [row for row in store.select(engine, "v1_finding_differences") if row["finding_id"] == number]
    assert [(row["fact"], row["value_before"], row["value_after"]) for row in stored][-2:] == [
        ("registers_per_thread", 40.0, 72.0),
        ("appeared", None, pytest.approx(1e5, rel=0.01)),
    ]
    assert [row["fact"] for row in of_findings.finding(engine, number)["differences"]] == [
        row["fact"] for row in stored
    ]
    count = len(store.select(engine, "v1_finding_differences"))
    assert report_of_night(engine, "lab", f"2026-03-{QUIET + 3:02}") == made[-1]
    assert len(store.select(engine, "v1_finding_differences")) == count


def test_a_slower_kernel_of_which_nothing_else_is_known_says_nothing_of_it(engine):
    made = [put(engine, QUIET + n, {"ns": 112_000}, tags={"compiler": "nvcc 12.8"}) for n in range(3)]
    (finding,) = [row for row in made[-1]["findings"] if row["quantity"] == "duration"]
    assert (finding["cause"], finding["differences"]) == ("", [])
    assert not any(words.startswith("changed with it") for words in finding["why"])


def test_new_and_vanished_kernels_and_a_launch_that_changed_are_told_without_a_finding(engine):
    made = put(engine, QUIET, {"grid": 128}, {"kernel": OTHER}, tags={"compiler": "nvcc 12.8"})
    assert (made["findings"], [row["change"] for row in made["kernels"]]) == ([], ["appeared", "launched"])
    assert made["one_line"].endswith("; 1 new kernel; 1 kernel launched differently")
    written = forms.in_form(made, "text")
    assert " us per launch)" in written
    assert "grid 64x1x1 to 128x1x1" in written
    for night in range(1, 5):
        last = put(engine, QUIET + night, {"grid": 128}, {"kernel": OTHER}, tags={"compiler": "nvcc 12.8"})
        assert last["kernels"] == []
    gone = put(engine, QUIET + 5, {"grid": 128}, tags={"compiler": "nvcc 12.8"})
    assert [(row["change"], row["subject"]) for row in gone["kernels"]] == [("vanished", "gemm")]
    assert gone["one_line"].endswith("; 1 vanished kernel")


def test_launches_that_are_another_number_each_night_are_told_once(engine):
    counts = [4, 2, 5, 3, 3, 3, 3, 6]
    made = [put(engine, QUIET + number, *[{}] * count) for number, count in enumerate(counts)]
    told = [place for place, one in enumerate(made) if one["kernels"]]
    assert told == [0, 7]  # the first change, and one after nights that were alike
    assert [row["change"] for row in made[7]["kernels"]] == ["launched"]
    assert "launches per run 3 to 6" in forms.in_form(made[7], "text")


def test_a_kernel_that_ran_each_night_is_back_after_nights_without_it(engine):
    for night in range(3):
        put(engine, QUIET + night, {}, {"kernel": OTHER, "ns": 50_000})
    changes = [put(engine, QUIET + night, {})["kernels"] for night in range(3, 5)]
    assert [[row["change"] for row in rows] for rows in changes] == [["vanished"], []]
    made = put(engine, QUIET + 5, {}, {"kernel": OTHER, "ns": 60_000})
    (row,) = made["kernels"]
    assert (row["change"], row["subject"], row["nights"]) == ("returned", "gemm", 2)
    assert row["text"].startswith("back after 2 nights without it (60")
    assert row["text"].endswith(" us before)")
    assert made["one_line"].endswith("; 1 kernel back")
    assert put(engine, QUIET + 6, {}, {"kernel": OTHER, "ns": 60_000})["kernels"] == []
    # Once back it ran on too few nights to be missed again, and no report says that it comes and goes.
    assert put(engine, QUIET + 7, {})["kernels"] == []
    assert put(engine, QUIET + 8, {}, {"kernel": OTHER, "ns": 60_000})["kernels"] == []


def test_a_run_that_lacks_most_kernels_may_have_ended_early(engine):
    others = [{"kernel": f"kernel{number}(float *)"} for number in range(4)]
    for night in range(3):
        put(engine, QUIET + night, {}, *others)
    made = put(engine, QUIET + 3, {}, others[0])
    assert [row["of"] for row in made["kernels"]] == [5, 5, 5]
    assert made["one_line"].endswith("; 3 vanished kernels (a run may have ended early)")
    assert "3 of 5 kernels that ran each night are missing in project lab" in forms.in_form(made, "text")
    back = put(engine, QUIET + 4, {}, *others)
    assert [row["subject"] for row in back["kernels"]] == ["kernel1", "kernel2", "kernel3"]


@pytest.mark.parametrize(("zone", "told"), [("UTC", ["vanished"]), ("Asia/Kolkata", [])])
def test_the_nights_that_a_kernel_ran_on_are_those_of_the_zone(engine, zone, told):
    """Its three runs are on three dates in UTC, and on two in Kolkata: too few to miss it."""
    for night, hour in ((QUIET, 20), (QUIET + 1, 2), (QUIET + 2, 2)):
        put(engine, night, {}, {"kernel": OTHER}, hour=hour, zone=zone)
    gone = put(engine, QUIET + 3, {}, zone=zone)
    assert [row["change"] for row in gone["kernels"]] == told


def test_a_run_that_is_uploaded_late_makes_nothing_new_once_more(engine):
    """It stands before a kernel came and another launch changed: the report of its upload knows both."""
    for night in range(4):
        put(engine, QUIET + night, {"grid": 128}, {"kernel": OTHER})
    at = "2026-03-06T12:00:00Z"
    with without_analysis():
        ingest_all(
            engine, [(trace(5, {}), "trace.csv")], store.RunInfo(name="late", project="lab", started_at=at, at=at)
        )
    assert report_of_night(engine, "lab", f"2026-03-{QUIET + 4:02}", dry_run=True)["kernels"] == []
    made = put(engine, QUIET + 4, {"grid": 128}, {"kernel": OTHER})
    assert (len(made["runs"]), made["kernels"], made["findings"]) == (2, [], [])


KERNELS = [f"kernel{number}(float *)" for number in range(6)]


BEFORE, AFTER = 1.98e9, 1.86e9
TAGS = {"compiler": "nvcc 12.8", "driver": "580.1"}


def six(slower: dict[str, float]) -> list[dict]:
    return [{"kernel": name, "ns": 100_000 * slower.get(name, 1.0)} for name in KERNELS]


@pytest.fixture(scope="module")
def six_quiet(request, tmp_path_factory):
    """A store with nights in which nothing changes of six kernels, and the clock of their GPU."""
    file, clock = tmp_path_factory.mktemp("six") / "store.sqlite", BEFORE if request.param == "known" else None
    with opened(str(file)) as engine:
        for night in range(QUIET):
            put(engine, night, *six({}), tags=TAGS, commit="c0000000", clock=clock)
    return file


without_clock, with_clock = (
    pytest.mark.parametrize("six_quiet", [kind], indirect=True) for kind in ("unknown", "known")
)


@pytest.fixture
def season(tmp_path, six_quiet):
    """Report three more nights, in which some of six kernels take another time."""

    def report(slower, *, clock=None, tags=TAGS, commit="c0000001"):
        shutil.copy(six_quiet, tmp_path / "many.sqlite")
        with opened(str(tmp_path / "many.sqlite")) as engine:
            made = [put(engine, QUIET + n, *six(slower), tags=tags, clock=clock, commit=commit) for n in range(3)]
        return made[-1]

    return report


@with_clock
def test_kernels_that_slow_down_with_the_clock_are_one_change_of_the_clock(season):
    made = season(dict.fromkeys(KERNELS, 1.06), clock=AFTER)
    (event,) = made["events"]
    assert event["kind"] == "clock"
    assert "1.98 GHz to 1.86 GHz (-6.1 %): 6 of 6 kernels slower by" in event["text"]
    assert made["one_line"].startswith("1 change of the clock in 1 run; ")
    assert "regression" not in made["one_line"]
    assert "one event: " in forms.in_form(made, "md")


def test_a_clock_that_was_as_low_before_is_no_cause_of_a_later_change(tmp_path):
    """Nights 4 and 5 ran at the low clock, in the times of before; so did all since the kernel became slower."""
    found = []
    with opened(str(tmp_path / "clocks.sqlite")) as engine:
        for night in range(QUIET + 3):
            late = night >= QUIET
            low = late or night in (4, 5)
            made = put(engine, night, {"ns": 112_000 if late else 100_000}, clock=1.5e9 if low else 1.98e9)
            found += [row for row in made["findings"] if row["quantity"] == "duration"]
    (finding,) = found
    assert "log_clock_hz" not in {one["fact"] for one in finding["differences"]}


@without_clock
def test_kernels_that_slow_down_together_are_one_change(season):
    made = season(dict.fromkeys(KERNELS, 1.06))
    assert [event["kind"] for event in made["events"]] == ["together"]
    assert "6 of 6 kernels slower by" in made["events"][0]["text"]
    assert made["one_line"].startswith("1 change of all kernels in 1 run; ")


@without_clock
def test_a_kernel_that_slows_down_far_more_than_all_others_is_a_regression_beside_them(season):
    made = season(dict.fromkeys(KERNELS, 1.05) | {KERNELS[2]: 1.18})
    (event,) = made["events"]
    assert event["text"].startswith("5 of 6 kernels slower by 5")
    assert made["one_line"].startswith("1 change of all kernels, 1 regression in 1 run; worst: kernel2 duration +1")
    assert " % since c0000001, beyond the change of all kernels" in made["one_line"]


def test_a_suspicion_says_what_else_is_new_on_each_of_its_nights(engine):
    tags = {"compiler": "nvcc 12.8"}
    put(engine, QUIET, {}, tags=tags, commit="a" * 7, host="node1")
    made = [put(engine, QUIET + n, {"ns": 112_000}, tags=tags, commit="b" * 7, host="node2") for n in (1, 2)]
    for document in made:
        (asked,) = document["reruns"]
        assert (asked["cause"], asked["build_before"]) == ("host node1 to node2", "a" * 7)
        assert " % (host node1 to node2; and the commit: bbbbbbb)" in document["one_line"]
        assert "changed with it: host node1 to node2" in forms.in_form(document, "junit")


@without_clock
def test_half_of_the_kernels_are_one_change_and_a_tag_that_differs_is_named(season):
    made = season(dict.fromkeys(KERNELS[:3], 1.06), tags=TAGS | {"driver": "590.2"}, commit="c0000000")
    assert made["events"][0]["text"].startswith("3 of 6 kernels slower by ")
    assert made["events"][0]["text"].endswith(" together: tag driver 580.1 to 590.2")
    assert made["one_line"].startswith("1 change of all kernels in 1 run; ")


@with_clock
def test_one_slow_kernel_is_a_regression_since_its_commit(season):
    made = season({KERNELS[2]: 1.06}, clock=BEFORE)
    assert [event["kind"] for event in made["events"]] == []
    assert made["one_line"].startswith("1 regression in 1 run; worst: kernel2 duration +")
    assert "since c0000001" in made["one_line"]


def test_an_improvement_is_not_called_the_worst_and_its_commit_is_one_that_git_finds(engine):
    commits = ["3f2c1ab900d417e6a5b8c2d9f0e1a2b3c4d5e6f7", "a81b0c2d3e4f5061728394a5b6c7d8e9f0011223"]
    put(engine, QUIET, {}, commit=commits[0])
    made = [put(engine, QUIET + n, {"ns": 90_000}, commit=commits[1]) for n in (1, 2, 3)][-1]
    said = forms.in_form(made, "text")
    assert "improvement" in said
    assert "worst" not in said
    runs = said.partition("\nRuns\n")[2]
    assert " a81b0c2d3e4f\n" in runs
    assert "\u2026" not in runs


@without_clock
def test_time_that_moves_from_one_kernel_to_another_is_told_so(season):
    made = season({KERNELS[0]: 0.9, KERNELS[1]: 1.1})
    (event,) = made["events"]
    assert event["text"].startswith("time moved from kernel0 to kernel1: ")
    assert made["one_line"].startswith("1 shift of time in 1 run; ")


@pytest.mark.parametrize("name", ["void v2::saxpy<float, 2>(int, float *)", "_ZN2v25saxpyIfLi2EEEviPf"])
def test_a_kernel_that_is_renamed_is_held_against_its_time_before(engine, name):
    made = put(engine, QUIET, {"kernel": f'"{name}"', "ns": 107_000}, tags={"compiler": "nvcc 12.8"})
    (row,) = made["kernels"]
    assert (row["change"], row["kernel"], row["kernel_before"]) == ("renamed", name, KERNEL)
    assert row["time_ns"] / row["before_ns"] - 1 == pytest.approx(0.07, abs=0.01)
    assert "us to 10" in row["text"]
    assert "; history continues (same name but for " in row["text"]
    assert made["one_line"].startswith("nothing certain: 1 suspected change (re-run wanted) in 1 run: ")
    assert "; 1 renamed kernel (" in made["one_line"]
    assert "history continues" in forms.in_form(made, "md")


def test_a_driver_that_changed_too_is_told_before_the_commit():
    row = {"build": "b" * 40, "build_before": "a" * 40, "cause": "driver 570 to 580", "differences": []}
    assert since_text(row) == " since bbbbbbbbbbbb (driver 570 to 580)"
    row["differences"] = [{"part": "context"}]
    assert since_text(row) == " (driver 570 to 580; and the commit: bbbbbbbbbbbb)"


NVPROF = """==1== NVPROF is profiling process 1, command: ./app
==1== Profiling application: ./app
==1== Profiling result:
==1== Metric result:
"Device","Kernel","Invocations","Metric Name","Metric Description","Min","Max","Avg"
"Tesla P100-PCIE-16GB (0)","{kernel}",3,"inst_executed","Instructions Executed",{count},{count},{count}
"Tesla P100-PCIE-16GB (0)","{kernel}",3,"achieved_occupancy","Achieved Occupancy",0.9,0.9,0.9
"""


def test_what_changed_is_told_of_kernels_with_means_alone(tmp_path):
    with opened(str(tmp_path / "means.sqlite")) as engine:
        for run, count in enumerate((1000, 1500), 1):
            file = NVPROF.format(kernel=KERNEL, count=count).encode(), "metrics.csv"
            ingest_all(engine, [file], store.RunInfo(name=f"r{run}"))
        points = pd.DataFrame(
            {"series": "s", "kind": "criterion", "kernel": KERNEL, "run_id": [1, 2], "value": [0.8, 0.6]}
        )
        place = {"project": "default", "device": None, "branch": None}
        found = place | {"series": "s", "kind": "criterion", "kernel": KERNEL, "run_before_id": 1, "run_id": 2}
        found |= {"subject": "saxpy", "quantity": "divergence", "worse": 1, "unit": "1"}
        (told,), _ = finding_differences(engine, [found | {"before": 0.8, "after": 0.6}], points, {}, NO_NAMES)
    assert [(row["fact"], row["before"], row["after"]) for row in told["differences"]] == [
        ("inst_executed_warp", 1000.0, 1500.0)
    ]
