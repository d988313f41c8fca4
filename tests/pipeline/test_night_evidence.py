"""What a report says of the runs of a change: what else changed in them."""

import io

import pytest

from profsvc import pipeline, store
from profsvc.pipeline.nightly import report_of_night
from profsvc.reports.nightly import formats as forms
from profsvc.views import findings as of_findings
from tests.benchmarks.night_record import TRACE

QUIET, KERNEL, OTHER = 12, "saxpy(int, float *)", "gemm(float *)"
LINE = "{start},{ns},1,{grid},1,1,{block},1,1,{registers},0.004096,0.000,,,,,NVIDIA H200 (0),1,7,{kernel}"
COPY = "{start},1000,9,,,,,,,,,,{megabytes},1000,Pageable,Device,NVIDIA H200 (0),1,7,[CUDA memcpy Host-to-Device]"


def trace(night: int, *kernels: dict, megabytes: float = 4.0) -> bytes:
    lines = [COPY.format(start=0, megabytes=megabytes)]
    for number, kernel in enumerate(kernels):
        own = {"kernel": KERNEL, "grid": 64, "block": 128, "registers": 40, "ns": 100_000} | kernel
        own["ns"] = round(own["ns"] * (1 + 0.001 * ((7 * night) % 5 - 2)))
        lines.append(LINE.format(start=10_000_000 * (number + 1), **own))
    # Names with commas are quoted, as the tool does.
    quoted = [line.replace(KERNEL, f'"{KERNEL}"') for line in lines]
    return "\n".join([TRACE, *quoted, ""]).encode()


def put(engine, night: int, *kernels: dict, tags: dict | None = None, commit: str | None = None, **how: object) -> dict:
    at = f"2026-03-{night + 1:02}T02:00:00Z"
    run = store.RunInfo(name=f"night {night}", project="lab", started_at=at, at=at, tags=tags or {}, commit_id=commit)
    pipeline.ingest(engine, io.BytesIO(trace(night, *kernels, **how)), "trace.csv", run)
    return report_of_night(engine, "lab", at[:10])


@pytest.fixture
def engine(tmp_path):
    engine = store.open_store(str(tmp_path / "store.sqlite"))
    for night in range(QUIET):
        put(engine, night, {}, tags={"compiler": "nvcc 12.8"})
    yield engine
    engine.dispose()


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
