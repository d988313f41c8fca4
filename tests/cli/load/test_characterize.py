"""``profsvc characterize`` from the search for a compiler to the figures on the page, with stand-ins for CUDA."""

import csv
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from profsvc.microbench import measuring
from tests.cli.conftest import Call
from tests.environment.cuda import PHASES, POWER_LOG, SMI, Script, parts


def lines(path: Path) -> list[dict[str, str]]:
    text = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    return list(csv.DictReader(text))


def test_the_file_is_uploaded_listed_and_plotted(cli: Call, cuda: Path, tmp_path: Path) -> None:
    done = cli("characterize", "--out", "h200.csv", "--raw", "raw.csv")
    assert (done.code, done.out) == (0, "")
    assert "upload it with: profsvc upload h200.csv" in done.err
    head = [line for line in Path("h200.csv").read_text().splitlines() if line.startswith("#")]
    assert head[0].startswith("# characterization 1: ")
    assert "# boost_clock_hz: 1980000000" in head
    assert "# machine code: not inspected, for cuobjdump was not found" in head
    assert "# l2_percent_of_peak: 82.87" in head
    assert Path("raw.csv").read_text() == "".join(parts().values())
    stored = cli("upload", "h200.csv")
    assert stored.code == 0
    assert f" {len(lines(Path('h200.csv')))} stored" in stored.err
    assert ", 0 rejected" in stored.err
    rows = json.loads(cli("devices", "H200", "-o", "json", "--out", "curves.svg").out)["rows"]
    found = {row["quantity"]: row for row in rows}
    assert found["k_double"]["value"] == pytest.approx(0.501, abs=0.002)
    assert found["k_double"]["spread"] < 0.01
    assert found["F_DRAMThr"]["x"] == "512 to 1.311e+05"
    assert found["F_L2Thr"]["value"] == pytest.approx(0.8, abs=0.1)
    assert (found["latency_l2"]["unit"], found["rate_tensor_bf16"]["unit"]) == ("cycle", "op/cycle")
    assert "one thread that follows pointers through 16 MiB" in cli("explain", "latency_l2").out
    assert Path("curves.svg").read_text().count("saturated") >= 7


def light_load(lowest_c: float, highest_c: float) -> pd.DataFrame:
    """Means of the light load of the power log at temperatures of a range, one row for each time that it ran."""
    log = pd.read_csv(POWER_LOG, skipinitialspace=True).rename(columns=lambda name: name.split(" [")[0])
    time_s = (pd.to_datetime(log["timestamp"], utc=True) - pd.Timestamp(0, tz="UTC")).dt.total_seconds()
    power = log["power.draw.instant"].str.split().str[0].astype(float)
    clock = log["clocks.current.sm"].str.split().str[0].astype(float)
    warmth = log["temperature.gpu"]
    marks = pd.read_csv(PHASES, names=["unix_s", "mark", "type", "sms", "extra"], header=0)
    begins, ends = (
        marks.loc[(marks["mark"] == mark) & (marks["type"] == "light"), "unix_s"] for mark in ("begin", "end")
    )
    good = (clock == clock.max()) & warmth.between(lowest_c, highest_c) & (power.diff() != 0)
    parts = [good & time_s.between(begin + 0.3, end) for begin, end in zip(begins, ends, strict=True)]
    return pd.DataFrame(
        [{"power": power[part].mean(), "temperature": warmth[part].mean()} for part in parts if part.any()]
    )


def test_without_a_compiler_or_a_gpu_it_ends_with_6(cli: Call, cuda: Path) -> None:
    (cuda / "nvidia-smi").unlink()
    without_gpu = cli("characterize")
    assert (without_gpu.code, without_gpu.err.startswith("Error: no GPU: nvidia-smi")) == (6, True)
    (cuda / "nvcc").unlink()
    without_compiler = cli("characterize")
    assert (without_compiler.code, without_compiler.err.startswith("Error: no CUDA compiler: nvcc")) == (6, True)


def test_a_program_that_fails_takes_only_its_own_figures(
    cli: Call, cuda: Path, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "SECONDS_A_PROGRAM", 1)
    (cuda / "tensor.txt").unlink()
    (cuda / "control.txt").write_text(parts()["control"][:2000])
    script("nvidia-smi", SMI.format("NVIDIA H200", "9.0", 37))
    script("ncu", "#!/bin/sh\necho '==ERROR== ERR_NVGPUCTRPERM'\nexit 1\n")
    done = cli("characterize", "--out", "part.csv")
    assert done.code == 0
    assert "the GPU was 37 % busy before the first benchmark" in done.err
    text = Path("part.csv").read_text()
    assert "# counters: not read: ==ERROR== ERR_NVGPUCTRPERM" in text
    assert "# not measured: F_L2Thr: the peak of the unit is not known" in text
    assert "# tensor failed: exit status 1: cat: " in text
    assert "# not measured: rate_tensor_bf16: this device or program gave no such figure" in text
    assert "k_single" in {line["quantity"] for line in lines(Path("part.csv"))}
    assert cli("upload", "part.csv").code == 0


def test_the_power_log_gives_the_temperature_coefficient(cli: Call, power_cuda: Path) -> None:
    """One session of an H200; a load repeats from 39 to 49 degC while the board cools."""
    done = cli("characterize", "--power", "--out", "h200.csv")
    assert done.code == 0
    words = "h200-power.csv and h200-phases.csv: upload them with: profsvc upload h200-phases.csv h200-power.csv"
    assert f"{words} --run NAME --timezone UTC" in done.err
    assert cli("upload", "h200-phases.csv", "h200-power.csv", "--run", "board", "--timezone", "UTC").code == 0
    query = (
        "select coefficient_w_per_c value, coefficient_low low, coefficient_high high, basis from "
        "v1_power_coefficients where used = 1 and sensor = 'power.draw.instant'"
    )
    (row,) = json.loads(cli("sql", query, "-o", "json").out)["rows"]
    assert 0 < row["high"] - row["low"] < 2 * 0.3 * row["value"]
    assert row["basis"].endswith("; 11 repeats of 2 loads agree")
    assert "dram, 16 SMs" in cli("power", "board", "-o", "json").out
    warm, cold = light_load(50, 60), light_load(0, 42)
    apart_c = warm["temperature"].mean() - cold["temperature"].mean()
    left_w = warm["power"].mean() - cold["power"].mean() - row["value"] * apart_c
    error_w = np.sqrt(warm["power"].var() + cold["power"].var() + ((row["high"] - row["low"]) / 4 * apart_c) ** 2)
    assert apart_c > 8
    assert abs(left_w) < 1.96 * error_w < row["value"] * apart_c


def test_a_program_that_hangs_is_stopped_and_nothing_at_all_is_an_error(
    cli: Call, cuda: Path, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "SECONDS_A_PROGRAM", 0.1)
    script("nvcc", (cuda / "nvcc").read_text().replace('cat "%s/%s.txt"', "exec sleep 60 # %s %s"))
    done = cli("characterize")
    assert done.code == 5
    assert "no benchmark ended well on NVIDIA H200: " in done.err
    assert "did not end within 0.1 s" in done.err


def test_code_that_the_compiler_changed_gives_no_figure(cli: Call, cuda: Path, script: Script) -> None:
    kernel = "Function : _Z10arithmeticI9SingleFmaLi4EEv"
    script("cuobjdump", f"#!/bin/sh\nprintf '{kernel}\\n  /*0000*/  FADD R0, R1 ;\\n'\n")
    done = cli("characterize", "--out", "folded.csv")
    why = "0 of FFMA instead of 256; most are 1 FADD"
    assert f"k_single is not measured: {why}" in done.err
    assert f"# machine code: inspected; single_fma: {why}" in Path("folded.csv").read_text()
    assert "k_single" not in {line["quantity"] for line in lines(Path("folded.csv"))}


def test_a_device_without_measurements_is_said(cli: Call) -> None:
    missing = cli("devices", "My GPU")
    assert missing.code == 3
    assert "no characterization of 'My GPU'; no device is characterized" in missing.err
    assert cli("devices", "H200", "--out", "curves.svg").code == 3
    assert cli("devices", "--out", "curves.svg").code == 2


def test_a_device_of_the_catalogue_without_measurements_has_its_data_sheet(cli: Call) -> None:
    told = cli("devices", "NVIDIA L4", "-o", "json")
    assert told.code == 0
    assert "NVIDIA L4 is not characterized" in told.err
    assert "profsvc characterize" in told.err
    rows = {row["figure"]: row for row in json.loads(told.out)["rows"]}
    bandwidth = "public deviceQuery output; TechPowerUp GPU database"
    assert rows["dram_peak_bytes_per_s"] == {
        "figure": "dram_peak_bytes_per_s", "value": 3.00048e11, "unit": "byte/s", "source": bandwidth
    }  # fmt: skip
    assert {"sms", "boost_clock_hz", "tensor_fp16_op_per_s"} <= rows.keys()
    assert rows["has_fan"]["source"].startswith("product brief")
    assert all(row["source"] for row in rows.values())
    assert len(cli("devices", "NVIDIA L4", "--limit", "3", "-o", "csv").out.splitlines()) == 4
