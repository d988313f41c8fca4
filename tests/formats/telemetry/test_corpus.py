"""Public logs that nobody here wrote, and whole logs of one GPU: means and energies from the samples themselves."""

import csv
from pathlib import Path

import numpy as np
import pytest

from profsvc import formats
from profsvc.formats.parsing.stream import open_stream
from profsvc.formats.telemetry import (
    dcgm,
    nvidia_smi,
    nvidia_smi_dmon,
    nvidia_smi_q,
    nvml_energy,
    rocm_smi,
    tegrastats,
    zeus,
)

MODULES = [nvidia_smi, nvidia_smi_dmon, nvidia_smi_q, dcgm, tegrastats, zeus, nvml_energy, rocm_smi]
SHARED = Path(__file__).parents[4] / "shared"
CORPUS = SHARED / "corpus"
SMI = CORPUS / "4_smi"
ZEUS = CORPUS / "7_traces"
CAPTURES = SHARED / "captures" / "h200"
needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason=f"the public logs are not at {CORPUS}")
needs_captures = pytest.mark.skipif(not CAPTURES.is_dir(), reason=f"the captures are not at {CAPTURES}")

YANG = "JimZeyuYang__GPU_Power_Benchmark__"
YQG = "yqg9651__cuda_test__"
TEGRA = "ssaraff98__tegrastats_parser__sample_"
# file: reader, rows, and of each power sensor the mean in W and the energy in J (trapezoids; None without a clock)
ORACLES = {
    "4179e1__dcgm_test__dmon.csv": ("dcgm", 171, {"power_usage_instant": (71.0586, None)}),
    "4179e1__dcgm_test__result_us.csv": ("dcgm", 310, {"Watts": (71.1068, None)}),
    f"{YANG}TR_4090_gpudata.csv": ("nvidia-smi", 2311, {"power.draw": (174.4421, 2843.768)}),
    f"{YANG}results_gpudata_old.csv": ("nvidia-smi", 1087, {"power.draw": (122.1964, 727.394)}),
    "PranavDani__Flame__fluidsGL-smi.csv": ("nvidia-smi", 303, {"power.draw": (62.9708, 1908.462)}),
    "PranavDani__Flame__torch-ex-smi.csv": ("nvidia-smi", 65, {"power.draw": (49.8149, 322.32)}),
    "amitadate__GPU_Power_Model__20250320_033129_strategy_0_metrics.csv": (
        "nvidia-smi",
        11,
        {"power.draw": (66.5327, 3389.494)},
    ),
    "gitcrumbs__slm-launchpad__gpu_stats.log_dmon.txt": ("nvidia-smi-dmon", 63, {"pwr": (39.9683, None)}),
    "leimingyu__magus__monitor_similarity_log0.5s.csv": ("nvidia-smi", 5376, {}),
    f"{TEGRA}log.txt": ("tegrastats", 432, {"VDD_IN": (3.828984, None), "VDD_SYS_GPU": (0.168574, None)}),
    f"{TEGRA}tegrastats_time_log.txt": (
        "tegrastats",
        99,
        {"VDD_IN": (6.215687, None), "VDD_SYS_GPU": (1.782414, None)},
    ),
    f"{YQG}h100_350w_pcie_fp16_half_allzero.csv": (
        "nvidia-smi",
        739,
        {"power.draw": (122.9891, 717.55), "power.draw.instant": (133.9637, 787.42)},
    ),
    f"{YQG}h800_700w_sxm_allzero_gemm_fp32.csv": (
        "nvidia-smi",
        247,
        {"power.draw": (115.4457, 35916.575), "power.draw.instant": (114.019, None)},
    ),
    f"{YQG}period_lgc.csv": ("nvidia-smi", 33655, {"power.draw.instant": (326.9978, 50191.344)}),
}
NO_LOG_OF_POWER = f"{YANG}5050_3090_timestamps.csv"


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    rest = [module for module in MODULES if module not in formats.READERS]
    monkeypatch.setattr(formats.reading, "READERS", [*formats.READERS, *rest])


def samples_of(content, name):
    index = content.sensors.loc[content.sensors["name"] == name, "sensor_index"]
    return content.samples[content.samples["sensor_index"].isin(index)]


def energy(samples, column="elapsed_ns"):
    ns = samples[column].to_numpy(np.int64)
    return float(np.trapezoid(samples["value"].to_numpy(), (ns - ns[0]) / 1e9))


@needs_corpus
@pytest.mark.parametrize("name", ORACLES)
def test_public_log(name, read_all, count_lines):
    reader, rows, sensors = ORACLES[name]
    content = read_all(SMI / name)
    assert content.reader == reader
    assert (content.stored, content.rejected) == (rows, 0)
    assert content.stored + content.skipped == count_lines(SMI / name)
    for sensor, (mean, joules) in sensors.items():
        samples = samples_of(content, sensor)
        digits = 6 if reader == "tegrastats" else 4
        assert round(samples["value"].mean(), digits) == pytest.approx(mean, abs=1.01 * 10**-digits)
        assert (content.sensors.loc[content.sensors["name"] == sensor, "quantity"] == "power").all()
        assert joules is None or energy(samples) == pytest.approx(joules, abs=0.006)


@needs_corpus
def test_every_public_log_has_an_oracle():
    assert {path.name for path in SMI.iterdir()} == {*ORACLES, NO_LOG_OF_POWER}
    head = (SMI / NO_LOG_OF_POWER).read_bytes()
    assert not [module.NAME for module in MODULES if module.sniff(head)]


@needs_corpus
def test_no_public_file_of_another_kind_is_taken():
    taken = {
        path.relative_to(CORPUS).as_posix()
        for path in CORPUS.glob("*/*")
        if any(module.sniff(open_stream(path).read(1 << 16)) for module in MODULES)
    }
    assert {name for name in taken if not name.startswith("4_smi/")} == {
        "7_traces/ml-energy__zeus__A40+resnet18+gpu0,1,2,3.csv",
        "7_traces/ml-energy__zeus__zeus_monitor_sample.csv",
    }


@needs_corpus
def test_details_of_public_logs(read_all):
    eight = read_all(SMI / "4179e1__dcgm_test__result_us.csv")
    means = eight.samples.groupby("sensor_index")["value"].mean().round(3)
    assert eight.sensors["gpu_index"].tolist() == list(range(8))
    assert (means[0], means[6]) == (71.254, 69.764)
    assert eight.samples["time_ns"].iloc[0] == 1718369824263312000
    assert len(samples_of(read_all(SMI / "4179e1__dcgm_test__dmon.csv"), "power_usage_instant")) == 57
    bursts = read_all(SMI / "leimingyu__magus__monitor_similarity_log0.5s.csv")
    assert bursts.sensors["gpu_index"].tolist() == list(range(12))
    assert set(bursts.samples.groupby("sensor_index").size()) == {448}
    dmon = read_all(SMI / "gitcrumbs__slm-launchpad__gpu_stats.log_dmon.txt")
    assert samples_of(dmon, "gtemp")["value"].agg(["min", "max"]).tolist() == [52, 75]
    assert samples_of(dmon, "gtemp")["value"].mean() == pytest.approx(61.3968, abs=1e-4)
    assert samples_of(dmon, "pwr")["value"].agg(["min", "max"]).tolist() == [7, 113]
    assert dmon.samples[["time_ns", "local_ns", "elapsed_ns"]].isna().all(axis=None)
    tegra = read_all(SMI / f"{TEGRA}log.txt")
    assert samples_of(tegra, "GPU")["value"].mean() == pytest.approx(35.3194, abs=1e-4)
    quality = tegra.sensors.set_index("name")["quality"]
    assert quality["PMIC"] == "stuck at 100 degC in all 432 readings"
    assert samples_of(read_all(SMI / f"{YANG}TR_4090_gpudata.csv"), "power.draw")["value"].max() == 391.79
    assert samples_of(read_all(SMI / f"{YQG}period_lgc.csv"), "power.draw.instant")["value"].max() == 437.37


@needs_corpus
def test_forty_one_columns(read_all):
    content = read_all(SMI / f"{YQG}h800_700w_sxm_allzero_gemm_fp32.csv")
    quantity = content.sensors.set_index("name")["quantity"]
    assert {name for name, found in quantity.items() if found == "power"} == {
        "power.draw",
        "power.draw.average",
        "power.draw.instant",
    }
    assert {"power.limit", "enforced.power.limit", "power.default_limit"} <= set(quantity[quantity == "limit"].index)
    assert (content.samples["reason"] == "n/a").sum() == 741
    assert set(samples_of(content, "clocks_event_reasons.gpu_idle")["value"]) == {0, 1}
    assert quantity["clocks_event_reasons.active"] == "state"
    ns = content.samples["local_ns"]
    assert (ns.min(), ns.max()) == (1689343246078000000, 1689343573721000000)


@needs_corpus
def test_zeus(read_all):
    windows = read_all(ZEUS / "ml-energy__zeus__A40+resnet18+gpu0,1,2,3.csv")
    assert len(windows.ranges) == 9
    assert windows.sensors["gpu_index"].tolist() == [0, 1, 2, 3]
    first = windows.samples[windows.samples["sample_index"] == 0]
    assert first["value"].sum() == pytest.approx(16520.021, abs=1e-6)
    power = read_all(ZEUS / "ml-energy__zeus__zeus_monitor_sample.csv")
    assert power.samples["value"].mean() == pytest.approx(32.347474, abs=1e-6)
    assert power.samples["local_ns"].iloc[0] % 10**9 == 708783111


def phases():
    """Return the loads that were marked while the logs ran: name, SMs, begin and end in ns."""
    with (CAPTURES / "phases.csv").open(encoding="utf-8") as file:
        rows = list(csv.reader(file))[1:]
    begins = [row for row in rows if row[1] == "begin"]
    ends = [row for row in rows if row[1] == "end"]
    return [
        (begin[2], int(begin[3]), int(float(begin[0]) * 1e9), int(float(end[0]) * 1e9))
        for begin, end in zip(begins, ends, strict=True)
    ]


@needs_captures
def test_power_of_each_load(read_all):
    nvml = samples_of(read_all(CAPTURES / "nvml_energy.csv"), "power_mw")
    smi = samples_of(read_all(CAPTURES / "smi_100ms.csv"), "power.draw.instant")
    dmon = samples_of(read_all(CAPTURES / "dmon.txt"), "pwr")
    bare = read_all(CAPTURES / "smi_1s_nounits.csv").samples
    bare = bare[bare["sensor_index"] == 0]
    # The host's zone is UTC, as its notes say; the readers do not know that.
    logs = [(nvml, "time_ns"), (smi, "local_ns"), (dmon, "local_ns"), (bare, "local_ns")]
    for kind, sms, begin, end in phases():
        wanted = {("idle", 0): None, ("mix", 132): 534.0}.get(
            (kind, sms), {1: 143, 16: 233, 33: 303, 66: 401, 99: 452, 132: 474}.get(sms)
        )
        if wanted is None or end - begin < 5e9:
            continue
        for samples, column in logs:
            # The averages lag by a second.
            inside = samples[(samples[column] > begin + 1_500_000_000) & (samples[column] < end)]
            assert inside["value"].mean() == pytest.approx(wanted, rel=0.03), (kind, sms, column)


@needs_captures
def test_counter_and_integrated_power_agree(read_all):
    content = read_all(CAPTURES / "nvml_energy.csv")
    counter, power = samples_of(content, "energy_mj"), samples_of(content, "power_mw")
    difference = float(counter["value"].iloc[-1] - counter["value"].iloc[0])
    assert difference == pytest.approx((160721870 - 53296225) / 1000)
    assert energy(power) == pytest.approx(difference, rel=0.01)
    smi = read_all(CAPTURES / "smi_100ms.csv")
    assert energy(samples_of(smi, "power.draw")) == pytest.approx(difference, rel=0.01)
    quality = content.sensors.set_index("name")["quality"]
    assert "ms but was polled every 50.1 ms" in quality["power_mw"]
    slow = "updates every 119.6 ms but was polled every 100.3 ms (means): 572 of 3535 readings are duplicates"
    assert smi.sensors.set_index("name")["quality"]["power.draw"] == slow
    assert "take differences; updates every 100" in quality["energy_mj"]


@needs_captures
def test_page_of_one_gpu(read_all, count_lines):
    content = read_all(CAPTURES / "nvidia-smi-q.txt")
    assert content.reader == "nvidia-smi-q"
    assert content.stored + content.skipped == count_lines(CAPTURES / "nvidia-smi-q.txt")
    values = content.metrics.set_index(["section", "metric"])["value"]
    gpu = "GPU 00000000:00:06.0"
    assert values[f"{gpu} > GPU Memory Power Readings", "Average Power Draw"] == 46.01
    assert values[f"{gpu} > Max Clocks", "SM"] == 1.98e9
    assert values[f"{gpu} > ECC Errors > Volatile", "DRAM Correctable"] == 0
    assert content.facts["device"] == "NVIDIA H200"
