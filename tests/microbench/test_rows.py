"""From the raw output of an H200 to the lines of its characterization."""

import csv
import gzip
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from profsvc import specs
from profsvc.microbench import Raw, characterization_rows, read_raw
from profsvc.microbench.machine_code import COLUMNS, FILE, count_instructions
from profsvc.microbench.rows import SCALES
from profsvc.microbench.toolkit import PROGRAMS
from profsvc.specs.criteria import COST, microbenchmarks
from profsvc.specs.table_files import rows_of
from tests.environment.cuda import RAW as RAW_FILE
from tests.environment.cuda import raw_text

L2_PERCENT = {"l2_percent_of_peak": "82.98"}  # as Nsight Compute printed in the same session


def measured(path: Path = RAW_FILE) -> Raw:
    raw = read_raw(raw_text(path))
    return raw._replace(facts=raw.facts | L2_PERCENT)


RAW = measured()
SOURCES = "".join(
    (resources.files("profsvc.microbench") / f"{name}.cu").read_text(encoding="utf-8") for name in PROGRAMS
)


@cache
def lines_of_capture() -> list[dict[str, Any]]:
    """The lines of the first capture, which most tests look at."""
    return list(characterization_rows(RAW).lines)


def values(quantity: str) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    return np.array([line["y"] for line in lines_of_capture() if line["quantity"] == quantity])


def raw_values(name: str, x: float) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    points = RAW.points
    return points.loc[(points["name"] == name) & (points["x"] == x), "value"].to_numpy(dtype=np.float64)


def medians(raw: Raw) -> dict[tuple[str, float | None], float]:
    found: dict[tuple[str, float | None], list[float]] = {}
    for line in lines_of_capture() if raw is RAW else characterization_rows(raw).lines:
        found.setdefault((line["quantity"], line["x"]), []).append(line["y"])
    return {point: float(np.median(values)) for point, values in found.items()}


def test_two_measurements_of_one_device_agree() -> None:
    one, other = medians(RAW), medians(measured(RAW_FILE.with_name("h200_raw_second.csv.gz")))
    apart = {point for point, value in one.items() if abs(other[point] / value - 1) > 0.05}
    assert not {name for name, _ in apart if name.startswith("k_")}
    assert len(one) > 200
    assert len(apart) < 0.05 * len(one)


def test_rates_are_those_of_the_data_sheet_or_of_nsight_compute() -> None:
    """DRAM: bus and clock. L2: 5120 bytes a cycle. The others: lanes and tensor operations of the catalogue."""
    known, found = specs.device("H200"), medians(RAW)
    shares = {
        "dram": found["bandwidth_dram_read", None] / known.dram_peak_bytes_per_s,
        "l2": found["bandwidth_l2_read", None] / (5120 * 1.98e9),
        "shared": 1 / found["k_shared_load", None],
        "fp32": 32 / known.fp32_lanes_per_sm / found["k_single", None],
        "fp64": 32 / known.fp64_lanes_per_sm / found["k_double", None],
        "special": 32 / known.sfu_per_sm / found["k_special", None],
        "bf16": found["rate_tensor_bf16", None] / known.tensor_bf16_op_per_sm_cycle,
        "fp8": found["rate_tensor_fp8", None] / known.tensor_fp8_op_per_sm_cycle,
        "tensor fp64": found["rate_tensor_fp64", None] / known.tensor_fp64_op_per_sm_cycle,
    }
    assert {name: share for name, share in shares.items() if not 0.85 < share < 1.05} == {}


def test_the_file_that_is_shipped_as_an_example_is_that_of_the_raw_output() -> None:
    text = gzip.decompress(RAW_FILE.with_name("characterization_h200.csv.gz").read_bytes()).decode()
    rows = list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))
    lines = lines_of_capture()
    assert [row["quantity"] for row in rows] == [line["quantity"] for line in lines]
    assert [float(row["y"]) for row in rows] == pytest.approx([line["y"] for line in lines], rel=1e-5)


def test_every_quantity_of_the_table_is_measured_on_an_h200() -> None:
    rows = characterization_rows(RAW)
    assert rows.missing == {}
    measured = {line["quantity"] for line in rows.lines}
    assert measured == {one.quantity for one in microbenchmarks()}
    assert {name for name, kind in specs.quantities().items() if kind == COST} <= measured
    assert {"F_Divergence", "F_DRAMThr", "F_SHMEM", "F_ArithThr:fp32"} <= measured
    assert {line["device"] for line in rows.lines} == {"NVIDIA H200"}


def test_scales_and_benchmarks_of_the_table_are_known() -> None:
    lanes = set(specs.figures("NVIDIA H200", "9.0"))
    assert {one.scale for one in microbenchmarks()} <= set(SCALES) | lanes
    for one in microbenchmarks():
        for name in one.benchmarks:
            stem = name.removesuffix("_latency").removesuffix("_throughput").removesuffix("_load").removeprefix("mma_")
            assert f'"{stem}' in SOURCES, name
    for row in rows_of(FILE, COLUMNS):
        assert row["program"] in PROGRAMS
        assert row["kernel"].lstrip("0123456789").split("I")[0] in SOURCES


def test_a_cost_is_cycles_of_the_boost_clock() -> None:
    sector = 32 * 1.98e9 / raw_values("dram_read", RAW.points.loc[RAW.points["name"] == "dram_read", "x"].iloc[0])
    assert values("k_dram_load").tolist() == sector.tolist()
    assert np.median(values("k_single")) == pytest.approx(0.25, rel=0.05)


def test_functions_are_shares_of_the_peak() -> None:
    peak = 2 * 3201e6 * 6016 / 8
    assert values("F_DRAMThr").max() == pytest.approx(
        RAW.points.query("name == 'dram_bytes_in_flight'")["value"].max() / peak
    )
    first = np.median(raw_values("shared_load_conflict", 1))
    assert values("F_SHMEM")[-1] == pytest.approx(32 * first / raw_values("shared_load_conflict", 32)[-1])
    assert values("F_ArithThr:fp64").max() == pytest.approx(1, abs=0.01)
    found = {x: y for (name, x), y in medians(RAW).items() if name == "F_Divergence"}
    assert max(found.values()) == pytest.approx(1)
    assert found[0.25] < found[0.1] < 0.9


def test_the_constant_of_synchronization_is_what_barriers_add() -> None:
    """Blocks of 4, 8, 16 and 32 warps, as many as fit and one alone; computed once more from the medians."""
    found = values("sync_constant")
    assert len(found) == 8
    points = RAW.points.groupby(["name", "x"])["value"].median()
    latency = RAW.points.loc[RAW.points["name"] == "dram_latency", "value"].median()
    lengths = np.array([64.0, 128.0, 256.0])
    added = np.array([points[f"meet_{n:.0f}", 8.0] - points[f"free_{n:.0f}", 8.0] for n in lengths])
    assert found[1] == pytest.approx(np.linalg.lstsq((latency / lengths)[:, None], added, rcond=None)[0][0])
    assert 0.03 < found.min() < np.median(found) < found.max() < 0.35


def test_without_cost_or_latency_there_is_no_constant_of_synchronization() -> None:
    def missing(raw: Raw) -> str:
        return characterization_rows(raw).missing["sync_constant"]

    names = RAW.points["name"]
    assert missing(RAW._replace(points=RAW.points[names != "dram_latency"])) == "the latency of DRAM was not measured"
    swapped = names.str.replace("meet", "other").str.replace("free", "meet").str.replace("other", "free")
    told = "barriers of some blocks cost nothing that could be measured"
    assert missing(RAW._replace(points=RAW.points.assign(name=swapped))) == told


def test_the_best_of_mma_and_wgmma_counts() -> None:
    assert np.median(values("rate_tensor_bf16")) == pytest.approx(4088.1, rel=1e-3)
    assert np.median(values("rate_mma_bf16")) == pytest.approx(2703.7, rel=1e-3)


def test_a_quantity_without_figures_or_peak_or_with_other_code_is_told() -> None:
    bare = RAW._replace(points=RAW.points[RAW.points["name"] != "dram_read"])
    assert characterization_rows(bare).missing == {
        "k_dram_load": "this device or program gave no such figure",
        "bandwidth_dram_read": "this device or program gave no such figure",
    }
    uncounted = RAW._replace(facts={name: value for name, value in RAW.facts.items() if name not in L2_PERCENT})
    assert characterization_rows(uncounted).missing == {"F_L2Thr": "the peak of the unit is not known for this device"}
    unknown = RAW._replace(facts={"device": "a new board", "compute_capability": "99.0"})
    missing = characterization_rows(unknown).missing
    assert missing["F_ArithThr:fp32"] == missing["F_DRAMThr"] == "the peak of the unit is not known for this device"
    assert "latency_l2" not in missing
    folded = characterization_rows(RAW, {"single_fma": "0 of FFMA instead of 256; most are 12 NOP"})
    assert (
        folded.missing["k_single"] == folded.missing["F_ArithThr:fp32"] == "0 of FFMA instead of 256; most are 12 NOP"
    )


def test_lines_that_are_cut_or_impossible_are_kept_apart() -> None:
    lines = ["dram_read,1,2,B/s,1", "dram_read,1,nan,B/s,2", "dram_read,1,-2,B/s,3", "dram_re", 'a,"b', "# sms: 1"]
    raw = read_raw("\r\n".join(lines))
    assert raw.points["value"].tolist() == [2.0]
    assert raw.rejected == lines[1:5]
    assert raw.number("sms") == 1
    assert np.isnan(raw.number("l2_size_bytes"))


def test_instructions_are_counted_by_function() -> None:
    text = ["Function : one", " /*0000*/ FFMA R0, R1 ; /* 0x0 */", " /*0010*/ @P0 BRA 0x20 ;"]
    text += ["Function : two", " /*0*/ @!UP1 NOP;"]
    assert {name: dict(found) for name, found in count_instructions(text).items()} == {
        "one": {"FFMA": 1, "BRA": 1},
        "two": {"NOP": 1},
    }
