"""Inputs of the models out of counters, with where each comes from."""

import numpy as np
import pandas as pd
import pytest

from profsvc import specs
from profsvc.analysis.counters.arrays import Counts
from profsvc.analysis.counters.from_metrics import LAUNCH_COLUMNS
from profsvc.analysis.models.inputs import MissingCounters, model_inputs, occupancy_limits
from profsvc.formulas.performance.occupancy import Limits, occupancy

H200 = specs.figures("NVIDIA H200", "9.0")
# Two launches of a copy of 2 ** 20 words, the second with every word on a line of its own.
COPY = pd.DataFrame(
    {
        "duration_ns": [1e4, 8e4],
        "block_threads": [256.0, 256.0],
        "grid_blocks": [4096.0, 4096.0],
        "warp_size": [32.0, 32.0],
        "sm_count": [132.0, 132.0],
        "sm_clock_hz": [1.98e9, 1.98e9],
        "blocks_per_sm_theoretical": [8.0, 8.0],
        "inst_executed_warp": [32768.0 * 12, 32768.0 * 12],
        "global_load_inst_warp": [32768.0, 32768.0],
        "global_store_inst_warp": [32768.0, 32768.0],
        "global_load_requests": [32768.0, 32768.0],
        "global_store_requests": [32768.0, 32768.0],
        "global_load_sectors": [32768 * 4.0, 32768 * 32.0],
        "global_store_sectors": [32768 * 4.0, 32768 * 32.0],
        "l1_tag_requests_global": [65536.0, 65536.0 * 32],
        "global_load_bytes_requested": [2.0**22, 2.0**22],
        "global_store_bytes_requested": [2.0**22, 2.0**22],
        "dram_bytes": [2.0**23, 2.0**26],
    },
    index=pd.Index([7, 8], name="launch_id"),
)


def value(inputs, name: str) -> list[float]:
    return np.broadcast_to(inputs.values[name], inputs.launches).tolist()


def test_counts_become_numbers_of_a_warp() -> None:
    inputs = model_inputs(COPY, H200, specs.memory_table("H200"))
    assert value(inputs, "total_warps") == [32768.0] * 2
    assert value(inputs, "insts_all") == [12.0] * 2
    assert value(inputs, "mem_insts") == [2.0] * 2
    assert value(inputs, "avg_trans_warp") == [1.0, 32.0]
    assert value(inputs, "uncoal_share") == [0.0, 1.0]
    assert value(inputs, "miss_ratio") == [1.0, 1.0]
    assert (value(inputs, "n_coal"), value(inputs, "n_uncoal")) == ([2.0, 0.0], [0.0, 2.0])
    assert value(inputs, "n_comp") == [10.0] * 2
    assert value(inputs, "request_bytes") == [128.0, 1024.0]
    assert value(inputs, "active_sms") == [132.0] * 2
    assert value(inputs, "N") == [64.0] * 2


def test_transactions_of_requests_are_kept_in_the_mean() -> None:
    """Two classes of requests with the shares found have as many transactions as were counted."""
    inputs = model_inputs(COPY.assign(l1_tag_requests_global=[65536.0 * 5, 65536.0 * 17]), H200)
    share, wide = np.array(value(inputs, "uncoal_share")), np.array(value(inputs, "uncoal_per_mw"))
    coal = np.array(value(inputs, "coal_per_mw"))
    assert (share * wide + (1 - share) * coal) == pytest.approx(np.array([5.0, 17.0]))


def test_each_launch_takes_the_first_way_that_gives_a_number() -> None:
    inputs = model_inputs(COPY.assign(sm_clock_hz=[np.nan, 1.5e9], warps_launched=[np.nan, 40000.0]), H200)
    assert value(inputs, "freq") == [1.98e9, 1.5e9]
    assert inputs.origin("freq").tolist() == ["device", "measured"]
    assert inputs.text("total_warps").tolist() == ["blocks * warps_per_block", "@warps_launched"]
    assert inputs.origin("total_warps").tolist() == ["derived", "measured"]
    assert value(inputs, "total_warps") == [32768.0, 40000.0]


def test_what_nobody_tells_is_assumed_or_missing() -> None:
    inputs = model_inputs(COPY, {})
    assert value(inputs, "Mem_LD") == [450.0] * 2
    assert inputs.origin("Mem_LD").tolist() == ["assumed"] * 2
    assert np.isnan(value(inputs, "bandwidth")).all()
    assert inputs.origin("bandwidth").tolist() == [None, None]
    known = model_inputs(COPY, H200, specs.memory_table("H200"), {"dram": 0.9})
    assert value(known, "Mem_LD") == [689.0] * 2
    assert known.origin("dram_bandwidth").tolist() == ["characterized"] * 2
    assert value(known, "dram_bandwidth") == [0.9 * H200["dram_peak_bytes_per_s"]] * 2


def test_blocks_that_fit_are_computed_where_the_export_does_not_say() -> None:
    shape = {"registers_per_thread": 64.0, "shared_mem_static_bytes": 0.0, "shared_mem_dynamic_bytes": 0.0}
    inputs = model_inputs(COPY.drop(columns="blocks_per_sm_theoretical").assign(**shape), H200)
    limits = Limits(**{name: H200[name] for name in Limits._fields})
    assert value(inputs, "blocks_per_sm") == [float(occupancy(256, 64, 0, limits).blocks)] * 2 == [4.0] * 2
    assert occupancy_limits({}, inputs.values) is None


def test_what_is_missing_is_named_down_to_the_counters() -> None:
    bare = COPY.drop(columns=["inst_executed_warp", "grid_blocks"])
    inputs = model_inputs(bare, H200)
    missing = MissingCounters(inputs, np.array([True, True]), Counts(bare))
    assert missing.of_input("n_comp") == ["inst_per_warp", "warps_launched"]
    assert missing.of_input("blocks") == ["grid_blocks"]
    assert missing.of_input("SIMD_width") == ["fp32_peak_flop_per_s"]
    some = COPY.assign(dram_bytes=[np.nan, 1.0])
    of_some = model_inputs(some, H200)
    assert MissingCounters(of_some, np.array([True, False]), Counts(some)).of_input("dram_bytes") == ["dram_bytes"]


def test_no_memory_at_all_divides_nothing_by_nothing() -> None:
    none = {name: 0.0 for name in COPY if name.startswith(("global", "l1", "dram"))}
    inputs = model_inputs(COPY.assign(**none), H200, specs.memory_table("H200"))
    for name in ("n_coal", "n_uncoal", "request_bytes", "uncoal_share"):
        assert value(inputs, name) == [0.0] * 2, name
    assert value(inputs, "avg_trans_warp") == [1.0] * 2
    assert value(inputs, "n_comp") == [12.0] * 2


@pytest.mark.parametrize(
    ("tool", "capability", "device"),
    [
        ("ncu", "9.0", "NVIDIA H200"),
        ("ncu", "7.0", "V100-SXM2"),
        ("nvprof", "6.0", "P100-SXM2"),
        ("nvprof", "3.5", "K40c"),
    ],
)
def test_the_counters_of_a_profiler_are_enough_for_every_input(tool: str, capability: str, device: str) -> None:
    given = {name: [2.0] for name in specs.metrics(tool, capability)
             if specs.counters()[name].kind == "number" and "tensor" not in name}  # fmt: skip
    figures = specs.figures(device, capability)
    inputs = model_inputs(pd.DataFrame(given | {name: [2.0] for name in LAUNCH_COLUMNS}), figures, {})
    lacking = [name for name, found in inputs.values.items() if np.isnan(found).any()]
    # What was measured of one device, and the lines that stores touch, which nvprof does not count.
    measured = {"constant_word", "same_address_rate", "store_departure", "l2_sustained"}
    measured |= {"constant_s", "atomic_s", "scattered_s", "l2_s"}
    measured |= {"l2_lat", "block_rate", "block_s"} if device != "NVIDIA H200" else set()
    unknown = measured | ({"store_lines", "scattered_stores"} if tool == "nvprof" else set())
    assert {name for name in lacking if not (tool == "nvprof" and name.startswith("exported_limit_"))} == unknown
