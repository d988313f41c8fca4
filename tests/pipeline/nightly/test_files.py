"""A few nights through the whole pipeline: exports and logs in, a report out."""

import io

import numpy as np
import pytest

from profsvc import pipeline, store
from profsvc.errors import InputError
from profsvc.pipeline.nightly import report_of_night
from profsvc.reports.nightly import formats as nightly_formats
from profsvc.views.nightly import findings
from tests.conftest import ROOT
from tests.inputs.nights import quantities
from tests.views import power_logs

HEAD, UNITS, LAUNCH = (ROOT / "fixtures" / "ncu_raw" / "plain.csv").read_text().splitlines()[:3]
NIGHTS, NEW = 9, 3


def upload(engine, night, text, name, **how):
    run = store.RunInfo(name=f"n{night}", started_at=f"2026-02-{night + 1:02}T02:00:00Z", commit_id=f"c{night // 7}")
    return pipeline.ingest(engine, io.BytesIO(text.encode()), name, run, pipeline.ReadOptions(**how))


def exported(rng, slower):
    """An export of three launches whose median takes 131 us, but for noise."""
    rows = [LAUNCH.replace('"131072"', f'"{131072 * slower * (1 + rng.normal(0, 0.003)):.0f}"') for _ in range(3)]
    return "\n".join([HEAD, UNITS, *(row.replace('"0"', f'"{n}"', 1) for n, row in enumerate(rows))]) + "\n"


def test_exports_of_nights_become_series_and_a_slower_kernel_a_finding(engine):
    rng = np.random.default_rng(1)
    for night in range(NIGHTS + NEW):
        upload(engine, night, exported(rng, 1.1 if night >= NIGHTS else 1.0), "raw.csv")
    with pytest.raises(InputError):
        upload(engine, 0, "neither this\nnor that\n", "notes.txt")
    made = report_of_night(engine)
    assert quantities(made["findings"]) == [("saxpy", "duration")]
    row = made["findings"][0]
    assert row["change"] == pytest.approx(0.1, abs=0.01)
    assert (row["device"], row["run"], row["build"]) == ("NVIDIA H200", "n9", "c1")
    assert made["series"]["tested"] == made["series"]["looked_at"] >= 3
    assert [one["file_name"] for one in made["uploads"]["refused"]] == ["notes.txt"]
    assert made["one_line"].endswith("; 1 file refused")
    assert report_of_night(engine) == made


def test_kernels_that_differ_in_a_template_argument_are_told_apart(engine):
    rng = np.random.default_rng(3)
    name = LAUNCH.split('","')[4]
    for night in range(NIGHTS + NEW):
        rows = []
        for tile in (16, 32):
            lines = exported(rng, 1.1 if night >= NIGHTS and tile == 32 else 1.0).splitlines()[2:]
            lines = [line.replace(name, f"void gemm_tiled<{tile}>(const float *, float *)") for line in lines]
            rows += [f'"{tile + n}",{line.partition(",")[2]}' for n, line in enumerate(lines)]
        upload(engine, night, "\n".join([HEAD, UNITS, *rows]) + "\n", "raw.csv")
    made = report_of_night(engine)
    assert [(row["subject"], row["label"]) for row in made["findings"]] == [("gemm_tiled", "gemm_tiled<32>")]
    assert "worst: gemm_tiled<32> duration +" in made["one_line"]
    assert "gemm_tiled<32> duration (" in nightly_formats.text(made)
    number = made["findings"][0]["finding_id"]
    listed = findings.findings(engine)["findings"]
    assert [row["label"] for row in (*listed, findings.finding(engine, number)["finding"])] == ["gemm_tiled<32>"] * 2
    old = {name: value for name, value in made["findings"][0].items() if name != "label"}
    assert nightly_formats.text(made | {"findings": [old]}).count("gemm_tiled duration (") >= 1


def test_power_that_cannot_be_corrected_is_watched_as_measured_and_says_so(engine):
    rng = np.random.default_rng(2)
    for night in range(NIGHTS + NEW):
        more_w = 15.0 * (night >= NIGHTS - 2) + rng.normal(0, 0.3)
        upload(engine, night, power_logs.marks(str(night)), "phases.csv")
        upload(engine, night, power_logs.log(more_w, rise_c_per_w=0.0), "smi.csv", zone="UTC")
    made = report_of_night(engine)
    found = [row for row in made["findings"] if row["quantity"] == "raw_power"]
    assert {row["subject"] for row in found} >= {"mem, 1 SM", "mem, 132 SMs"}
    assert not {row["subject"] for row in found} & {"idle"}
    assert not [row for row in made["findings"] if row["quantity"] == "power"]
    for row in found:
        assert row["after"] - row["before"] == pytest.approx(15.0, abs=1.0)
        assert any("the temperature may be the cause" in words for words in row["why"])
    bare = [row for row in store.select(engine, "v1_power") if row["window"] != "run"]
    bare = [row for row in bare if row["corrected_power_w"] is None]
    assert sum(row["windows"] for row in made["uncorrected"]) == len(bare) > NIGHTS * len(power_logs.SMS)
