"""Counters and labels against real exports of one H200, where they are at hand."""

import csv
import gzip
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from profsvc.specs import counters, derive_counters, labels, metrics, parse, units

RAW_PAGES = ("ncu_raw_base.csv.gz", "ncu_raw.csv.gz")
H200 = Path(__file__).parents[4] / "shared" / "captures" / "h200"
needs_captures = pytest.mark.skipif(not H200.is_dir(), reason=f"no captures of an H200 at {H200}")


def number(cell: str) -> float:
    try:
        return float(cell.replace(",", ""))
    except ValueError:
        return np.nan


@cache
def rows_of(name: str) -> list[list[str]]:
    with gzip.open(H200 / name, "rt", encoding="utf-8", newline="") as stream:
        return list(csv.reader(stream))


@cache
def raw_page(name: str) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return the cells as they came by launch ID, and the unit of each column."""
    head, unit_row, *cells = rows_of(name)
    return pd.DataFrame(cells, columns=head).set_index("ID"), dict(zip(head, unit_row, strict=True))


@cache
def si_values(name: str) -> dict[str, npt.NDArray[np.float64]]:
    page, printed = raw_page(name)
    return {c: page[c].map(number).to_numpy() * units("ncu")[printed[c]].factor for c in page.columns}


def details(name: str) -> list[dict[str, str]]:
    """Return the metric rows of a details page; they are up to four cells shorter than the header."""
    head, *cells = rows_of(name)
    found = [dict(zip(head, row, strict=False)) for row in cells if len(row) >= len(head) - 4 and row[0] != "ID"]
    return [row for row in found if row["Metric Name"]]


@needs_captures
def test_a_full_export_gives_most_counters() -> None:
    found, used = derive_counters("ncu", "9.0", si_values("ncu_raw_base.csv.gz"))
    assert len(found) >= 250
    assert {len(values) for values in found.values()} == {34}
    page, printed = raw_page("ncu_raw_base.csv.gz")
    assert printed["gpu__time_duration.sum"] == "ns"
    np.testing.assert_allclose(found["duration_ns"], page["gpu__time_duration.sum"].map(number), rtol=1e-12)
    assert set(used["duration_ns"]) == {"gpu__time_duration.sum * 1e9"}
    assert set(used) == set(found)


@needs_captures
def test_figures_of_the_chip_come_out() -> None:
    found, _ = derive_counters("ncu", "9.0", si_values("ncu_raw_base.csv.gz"))
    chip = {"sm_count": 132, "max_warps_per_sm": 64, "sm_clock_max_hz": 1.98e9, "l2_size_bytes": 62914560}
    for counter, expected in chip.items():
        assert set(found[counter]) == {expected}, counter
    np.testing.assert_allclose(found["dram_peak_bytes_per_s"], 4.81e12, rtol=0.01)
    np.testing.assert_allclose(found["fp32_peak_flop_per_s"], 66.9e12, rtol=0.03)


@needs_captures
def test_shares_lie_between_0_and_1() -> None:
    found, _ = derive_counters("ncu", "9.0", si_values("ncu_raw_base.csv.gz"))
    # An L2 hit rate above 1 is what the tool itself prints for tiny kernels.
    shares = [c for c in found if c.endswith("_fraction") and not c.startswith("l2_")]
    assert len(shares) > 40
    for counter in shares:
        assert np.nanmin(found[counter]) >= 0, counter
        assert np.nanmax(found[counter]) <= 1.01, counter


def rounding(name: str, metric: str) -> npt.NDArray[np.float64]:
    """Half of the last decimal that the page prints, in SI units."""
    page, printed = raw_page(name)
    decimals = page[metric].map(lambda cell: len(str(cell).partition(".")[2])).to_numpy()
    return np.asarray(0.5 * 10.0**-decimals * units("ncu")[printed[metric]].factor)


@needs_captures
def test_scaled_units_give_the_same_metrics_as_far_as_they_are_printed() -> None:
    base, scaled = (si_values(name) for name in RAW_PAGES)
    assert set(base) == set(scaled)
    for metric in sorted(used_metrics()):
        allowed = sum(rounding(name, metric) for name in RAW_PAGES)
        apart = np.abs(base[metric] - scaled[metric])
        assert not (apart > 1.0001 * allowed + 1e-9 * np.abs(base[metric])).any(), metric


def used_metrics() -> set[str]:
    return {n for e in metrics("ncu", "9.0").values() for n in e.names} & set(raw_page(RAW_PAGES[0])[0].columns)


@needs_captures
def test_scaled_units_give_the_same_counters() -> None:
    (base, used), (scaled, _) = (derive_counters("ncu", "9.0", si_values(name)) for name in RAW_PAGES)
    assert set(base) == set(scaled)
    compared = []
    for counter, values in base.items():
        # A column has one unit, so small launches lose digits: 33,792 byte are printed as 0.034 Mbyte.
        top = int(np.nanargmax(np.abs(values)))
        inputs = parse(str(used[counter][top])).names & used_metrics()
        lost = [rounding(RAW_PAGES[0], m)[top] / max(abs(si_values(RAW_PAGES[0])[m][top]), 1e-300) for m in inputs]
        if max(lost, default=0.0) < 5e-4:
            np.testing.assert_allclose(scaled[counter][top], values[top], rtol=1e-3, err_msg=counter)
            compared.append(counter)
    assert len(compared) > 150
    assert {"duration_ns", "sm_clock_hz", "dram_read_bytes", "dram_bytes_per_s", "sol_sm_fraction"} <= set(compared)


@needs_captures
@pytest.mark.parametrize("name", ["ncu_details.csv.gz", "ncu_details_min.csv.gz"])
def test_labels_stand_for_the_metric_whose_value_is_printed(name: str) -> None:
    page, printed = raw_page("ncu_raw_base.csv.gz")
    compared = set()
    for row in details(name):
        metric = labels("9.0").get((row["Section Name"], row["Metric Name"]))
        if metric is None or metric not in page.columns:
            continue
        shown, raw = row["Metric Value"], str(page.at[row["ID"], metric])
        if np.isnan(number(shown)) or np.isnan(number(raw)):
            assert shown == raw, row
            continue
        factor = units("ncu")[printed[metric]].factor / units("ncu")[row["Metric Unit"]].factor
        decimals = len(shown.partition(".")[2])
        expected = number(raw) * factor
        assert abs(number(shown) - expected) <= 0.5000001 * 10**-decimals + 1e-9 * abs(expected), row
        compared.add((row["Section Name"], row["Metric Name"]))
    assert len(compared) >= (260 if name == "ncu_details.csv.gz" else 80)


@needs_captures
def test_a_details_page_gives_the_counters_of_the_raw_page() -> None:
    rows = [row for row in details("ncu_details_min.csv.gz") if not np.isnan(number(row["Metric Value"]))]
    launches = sorted({int(row["ID"]) for row in rows})
    values: dict[str, npt.NDArray[np.float64]] = {}
    for row in rows:
        metric = labels("9.0").get((row["Section Name"], row["Metric Name"]))
        if metric:
            column = values.setdefault(metric, np.full(len(launches), np.nan))
            unit = units("ncu")[row["Metric Unit"]]
            column[launches.index(int(row["ID"]))] = number(row["Metric Value"]) * unit.factor
    found, _ = derive_counters("ncu", "9.0", values)
    truth, _ = derive_counters("ncu", "9.0", si_values("ncu_raw_base.csv.gz"))
    assert len(found) >= 45
    for counter in ("duration_ns", "elapsed_cycles", "dram_bytes_per_s", "inst_executed_warp", "grid_threads"):
        np.testing.assert_allclose(found[counter], truth[counter], rtol=5e-3, err_msg=counter)


def test_counters_refer_to_counters() -> None:
    values = {"@grid_blocks": [10.0, 20.0], "@sm_count": [16.0, 16.0], "trace:'Block X'": [64.0, 65.0]}
    values |= {"trace:'Block Y'": [1.0, 1.0], "trace:'Block Z'": [1.0, 1.0]}
    found, used = derive_counters("nvprof", "6.1", values)
    assert found["warps_per_block"].tolist() == [2.0, 3.0]
    assert found["grid_threads"].tolist() == [640.0, 1300.0]
    assert found["sms_used"].tolist() == [10.0, 16.0]
    assert used["grid_threads"].tolist() == ["@grid_blocks * @block_threads"] * 2


def test_what_is_supplied_fills_the_launches_that_the_tool_leaves_open() -> None:
    values = {"@duration_ns": [5.0, 6.0, np.nan], "trace:'Duration'": [np.nan, 2e-9, np.nan]}
    found, used = derive_counters("nvprof", None, values)
    np.testing.assert_allclose(found["duration_s"], [5e-9, 2e-9, np.nan])
    assert used["duration_ns"].tolist() == [None, "trace:'Duration' * 1e9", None]
    assert used["duration_s"].tolist() == ["@duration_ns * 1e-9", "@duration_ns * 1e-9", None]


def test_what_is_known_for_no_launch_is_left_out() -> None:
    found, _ = derive_counters("ncu", "9.0", {"gpu__time_duration.sum": [np.nan], "lts__t_sectors.sum": [0.0]})
    assert "duration_ns" not in found
    assert found["l2_sectors"].tolist() == [0.0]


@pytest.mark.parametrize(("tool", "chip"), [("ncu", "7.0"), ("ncu", "9.0"), ("ncu", "12.0"), ("nvprof", "3.5")])
def test_every_expression_can_be_evaluated(tool: str, chip: str) -> None:
    names = {name for e in metrics(tool, chip).values() for name in e.names}
    found, _ = derive_counters(tool, chip, {name: [2.0, 3.0] for name in names})
    numeric = {c for c in metrics(tool, chip) if counters()[c].kind == "number"}
    stalls = {c for c in numeric if c.startswith("stall_")}
    assert numeric - set(found) <= stalls
