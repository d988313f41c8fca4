"""From the raw output of an H200 to the lines of its characterization."""

from importlib import resources

import numpy as np
import pytest

from profsvc import specs
from profsvc.microbench import characterization_rows, read_raw
from profsvc.microbench.machine_code import COLUMNS, FILE, count_instructions
from profsvc.microbench.rows import SCALES
from profsvc.microbench.toolkit import PROGRAMS
from profsvc.specs.criteria import COST, microbenchmarks
from profsvc.specs.table_files import rows_of
from tests.cuda import raw_text

RAW = read_raw(raw_text())
SOURCES = "".join(
    (resources.files("profsvc.microbench") / f"{name}.cu").read_text(encoding="utf-8") for name in PROGRAMS
)


def values(quantity: str) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    return np.array([line["y"] for line in characterization_rows(RAW).lines if line["quantity"] == quantity])


def raw_values(name: str, x: float) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    points = RAW.points
    return points.loc[(points["name"] == name) & (points["x"] == x), "value"].to_numpy(dtype=np.float64)


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
    assert values("F_Divergence")[0] == pytest.approx(1, abs=0.01)


def test_the_best_of_mma_and_wgmma_counts() -> None:
    assert np.median(values("rate_tensor_bf16")) == pytest.approx(4088.2, rel=1e-3)
    assert np.median(values("rate_mma_bf16")) == pytest.approx(2703.7, rel=1e-3)


def test_a_quantity_without_figures_or_peak_or_with_other_code_is_told() -> None:
    bare = RAW._replace(points=RAW.points[RAW.points["name"] != "dram_read"])
    assert characterization_rows(bare).missing == {
        "k_dram_load": "this device or program gave no such figure",
        "bandwidth_dram_read": "this device or program gave no such figure",
    }
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
