"""Launches of which too little was counted have no potential, and say what to collect."""

import numpy as np
import pandas as pd
import pytest
from sqlalchemy import Engine

from profsvc import specs, store
from profsvc.analysis.potential.advice import advice
from profsvc.analysis.potential.launch_potential import launch_potentials, run_potential
from profsvc.analysis.potential.peaks import peaks
from profsvc.analysis.potential.unknown_potential import BOUND_COLUMNS, NEEDED_COUNTERS, without_uninformative_bounds
from profsvc.analysis.potential.useful_time import UNITS
from profsvc.views import titles_and_hints

SHARES = dict.fromkeys(UNITS, 0.8)
H200 = specs.figures("NVIDIA H200", "9.0")


def bounds(counters: pd.DataFrame, tool: str = "ncu", capability: str = "9.0") -> pd.DataFrame:
    figures, _ = peaks(counters, H200)
    return without_uninformative_bounds(
        launch_potentials(counters, figures, SHARES)[0], counters, figures, tool, capability
    )


def test_a_launch_of_which_all_is_counted_keeps_its_numbers(demo: Engine) -> None:
    table = store.counters(demo, 1)
    found, whole = bounds(table), launch_potentials(table, peaks(table, H200)[0], SHARES)[0]
    pd.testing.assert_frame_equal(found, whole)


def test_without_counts_of_useful_work_there_is_no_number_but_the_counters_to_collect(demo: Engine) -> None:
    table = store.counters(demo, 1)
    found = bounds(table.drop(columns=["global_load_bytes_requested", "shared_wavefronts_ideal"]))
    none = found["speedup"].isna()
    assert none.sum() > 10
    assert found.loc[none, list(BOUND_COLUMNS)].isna().all(axis=None)
    assert found.loc[none, "reason"].str.contains("global_load_bytes_requested").any()
    assert found.loc[none, "reason"].str.contains("collect with: ncu --").all()
    assert not found.loc[none, "reason"].str.contains("--set full").any()
    assert found.loc[~none, "reason"].isna().all()
    row = found[none].iloc[0]
    hint = advice(
        [], row.to_dict() | {"flags": "LOWER_BOUND", "duration_ns": 1e5, "speedup": None}, titles_and_hints()
    )[-1]
    assert (hint["kind"], hint["hint"][1:]) == ("uncounted", row["reason"][1:])


def test_a_page_without_attributes_of_the_device_asks_for_the_raw_page(demo: Engine) -> None:
    table = store.counters(demo, 1).drop(columns=["global_load_bytes_requested", "max_warps_per_sm"])
    found = bounds(table)
    none = found["speedup"].isna()
    assert found.loc[none, "reason"].str.endswith("ncu -i REPORT --csv --page raw").all()


@pytest.mark.parametrize("capability", ["3.5", "6.1"])
def test_nvprof_is_never_told_to_run_another_profiler(demo: Engine, capability: str) -> None:
    table = store.counters(demo, 1)
    lacking = table.drop(columns=[name for name in table if name.startswith(("global_theoretical", "flop_", "fp32_"))])
    for counters in (lacking, lacking.assign(duration_ns=np.nan)):
        reasons = bounds(counters, "nvprof", capability)["reason"].dropna()
        assert len(reasons) > 10
        assert not reasons.str.contains("ncu|SpeedOfLight|gpu__").any()
        assert reasons.str.contains("nvprof").all()


def test_what_is_needed_are_counters() -> None:
    assert set(NEEDED_COUNTERS) == set(UNITS)
    assert {name for names in NEEDED_COUNTERS.values() for name in names} <= set(specs.counters())


def test_a_run_keeps_the_time_of_launches_without_a_number(demo: Engine) -> None:
    table = store.counters(demo, 1)
    found = bounds(table.drop(columns=["shared_wavefronts_ideal"]))
    none = found["speedup"].isna()
    assert 0 < none.sum() < len(found)
    whole = run_potential(found)
    rest = found.loc[none, "duration_ns"].sum() + found.loc[~none, "ideal_ns"].sum()
    assert whole["ideal_ns"] == pytest.approx(rest)


@pytest.mark.parametrize("device", ["AMD Instinct MI300X", "Intel(R) Data Center GPU Max 1550", "Radeon RX 7900"])
def test_devices_of_other_vendors_are_never_told_to_run_ncu(device: str) -> None:
    for tool in ("kineto", "nvprof", "nsys"):
        assert "run: n" not in specs.how_to_measure(tool, device)


def test_devices_before_volta_are_never_told_to_run_ncu() -> None:
    for device in ("Tesla P100-SXM2-16GB", "Tesla K40c", "GeForce GTX 950"):
        for tool in ("nsys", "kineto", "nvprof"):
            assert "ncu" not in specs.how_to_measure(tool, device)
    assert specs.how_to_measure("nsys", "NVIDIA H200") == specs.how_to_measure("nsys")
    assert "ncu --set full" in specs.how_to_measure("nsys")
