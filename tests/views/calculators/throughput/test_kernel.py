"""A described kernel in the throughput model: limits, suggestions, and the split with a CPU."""

import pytest

from profsvc.errors import UsageError
from profsvc.formulas.throughput import throughput
from profsvc.views.calculators.answers import calculate
from profsvc.views.calculators.catalog import CALCULATORS
from profsvc.views.calculators.throughput.kernel import DOUBLED_LOADS

MODEL = CALCULATORS["kernel-throughput"]


def test_bandwidth_helps_until_another_limit_is_met() -> None:
    view = calculate(MODEL, {"description": DOUBLED_LOADS})
    assert len(view["rows"]) == 9
    by = {(row["warps"], row["bandwidth_gb_per_s"]): row for row in view["rows"]}
    assert by[48, 75]["gflop_per_s"] < by[48, 150]["gflop_per_s"] < by[48, 300]["gflop_per_s"]
    assert by[48, 75]["enough_sms"] < 16
    assert all(row["gflop_per_s"] <= row["without_memory_gflop_per_s"] for row in view["rows"])
    assert "2 requests together: 4 loads in 2 batches" in view["notes"][0]
    assert "both finish together" in view["notes"][-1]


def test_the_kernel_of_the_formula_has_its_performance() -> None:
    text = """[kernel]
fp = 50
other = 9
memory = 1
dependence_distance = 2
[device]
peak_gflop_per_s = 790
wide_peak_gflop_per_s = 1581
clock_mhz = 1544
bandwidth_gb_per_s = 150
sms = 16
warps = 48
latencies_cycles = 450
shares = 1
departure_delay_cycles = 10
"""
    (row,) = calculate(MODEL, {"description": text})["rows"]
    known = throughput(plain=50, wide=0, total=60, mem=1, ilp=1, dep=2, mstr=1, N=48, inst_latency=20,
                       peak_plain=790e9, peak_wide=1581e9, Mem_L=450, departure_delay=10, load_bytes_per_warp=128,
                       freq=1.544e9, bandwidth=150e9, active_sms=16)  # fmt: skip
    assert row["gflop_per_s"] == pytest.approx(float(known.Perf) / 1e9)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("shares = [0, 0.5, 0.5]", "shares = [0, 0.5]", "one for each latency"),
        ("shares = [0, 0.5, 0.5]", "shares = [0, 0.5, 0.6]", "add up to 1"),
        ("first_uses = [2, 2, 6, 6]", "", "one number for each load"),
        ("first_uses = [2, 2, 6, 6]", "first_uses = [0, 2, 6, 6]", "each first use comes after its load"),
        ("sms = 16\nwarps = [8, 24, 48]", 'sms = "1:16"\nwarps = "1:64"', "more than 2000 combinations"),
        ("[cpu]", "[host]", "unknown section 'host'"),
    ],
)
def test_what_is_wrong_is_said(before: str, after: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        calculate(MODEL, {"description": DOUBLED_LOADS.replace(before, after)})
