"""Power and timing model together, as the source joins them: from instruction counts to the best number of SMs."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pytest

from profsvc.formulas.mwp_cwp import exec_cycles
from profsvc.formulas.power.component_power import access_rate, accesses, gpu_power, runtime_power, warps_per_sm
from profsvc.formulas.power.core_count import (
    ClosedCores,
    CoreScan,
    energy_savings,
    optimal_cores_closed,
    optimal_cores_scan,
)
from profsvc.specs import components, instruction_units

UNITS = components("GTX280")
KINDS = {
    "max_power_w": [c.max_power_w for c in UNITS],
    "special": [c.special for c in UNITS],
    "per_sm": [c.per_sm for c in UNITS],
}
SMS = np.arange(1, 31)
CLOCK_HZ = 1.3e9
IDLE_W = 83.0
LATENCY = 430.0
# One block of 16 warps per SM, and the bandwidth at which 10.8 of them use it up: [Hong2012] 3.5.4 and 3.5.5.
THREADS, BLOCKS, WARPS, MWP_PEAK = 512, 600, 16, 10.8
BYTES_PER_S = MWP_PEAK * 30 * CLOCK_HZ * 128 / (LATENCY + 4)
# Loops of a thousand steps in the patterns of the source's kernels; how many FMAs Cmem has is not printed.
DMADD = {"ld_global": 2000, "add_fp": 1000, "add_int": 2000, "setp": 1000}
MADD = {"ld_global": 1000, "add_fp": 1000, "add_int": 1000, "setp": 1000}
CMEM = {"ld_global": 1000, "mad_fp": 40000, "add_int": 1000, "setp": 1000}


class Projection(NamedTuple):
    scan: CoreScan
    closed: ClosedCores
    time_s: np.ndarray
    runtime_w: np.ndarray
    rates: np.ndarray


def project(counts: Mapping[str, int]) -> Projection:
    loads = counts["ld_global"]
    model = exec_cycles(
        n_comp=sum(counts.values()) - loads, n_coal=loads, n_uncoal=0, threads_per_block=THREADS, blocks=BLOCKS,
        active_blocks_per_sm=1, active_sms=SMS, Mem_LD=LATENCY, dep_coal=4, dep_uncoal=40, uncoal_per_mw=1,
        load_bytes_per_warp=128, freq=CLOCK_HZ, bandwidth=BYTES_PER_S,
    )  # fmt: skip
    touches = [[c.name in instruction_units()[name] for c in UNITS] for name in counts]
    warps = warps_per_sm(THREADS, BLOCKS, SMS).value[:, np.newaxis]
    rates = access_rate(accesses(list(counts.values()), touches).value, warps, model.cycles[:, np.newaxis]).value
    rates = np.where([c.always_on for c in UNITS], 1.0, rates)
    power = runtime_power(rates, **KINDS, active_sms=SMS, num_sms=30).total_w
    time = model.cycles / CLOCK_HZ
    scan = optimal_cores_scan(SMS, time, gpu_power(power, IDLE_W).value, num_sms=30)
    closed = optimal_cores_closed(model.MWP[-1], model.CWP[-1], model.N[-1], model.MWP_peak_bw[-1], 30, model.case[-1])
    return Projection(scan, closed, time, power, rates)


@pytest.mark.parametrize("counts", [DMADD, MADD])
def test_kernels_that_the_bandwidth_limits_need_20_of_30_sms(counts: Mapping[str, int]) -> None:
    got = project(counts)
    assert got.closed.cores == 20
    assert got.closed.raw == pytest.approx(20.25)
    assert got.closed.bandwidth_limited
    # The scan takes the next whole number of SMs, because the last quarter of an SM still pays for its power.
    assert got.scan.best == 21
    np.testing.assert_allclose(got.time_s[20:], got.time_s[-1], rtol=0.005)
    assert (np.diff(got.scan.per_watt[:21]) > 0).all()
    assert (np.diff(got.scan.per_watt[20:]) < 0).all()


def test_a_kernel_that_computes_needs_all_sms() -> None:
    got = project(CMEM)
    assert (float(got.closed.cores), float(got.scan.best)) == (30, 30)
    assert not got.closed.bandwidth_limited
    assert (np.diff(got.scan.per_watt) > 0).all()
    np.testing.assert_allclose(got.time_s * SMS, got.time_s[0])


def test_savings_are_of_the_size_that_the_source_measured() -> None:
    got = project(DMADD)
    saved = energy_savings(20, 30, got.time_s[19], got.time_s[29], got.runtime_w[19], got.runtime_w[29], IDLE_W)
    assert 0 < saved.runtime < 0.2209  # the largest of the five kernels
    assert 0.2585 < saved.gated < 1 / 3  # the mean of the five, and the most there can be
    assert saved.runtime_and_idle < saved.runtime < saved.gated


def test_access_rates_stay_within_what_an_sm_can_issue() -> None:
    for counts in (DMADD, MADD, CMEM):
        rates = project(counts).rates
        assert (rates >= 0).all()
        assert (rates <= 1).all()
    fds = [c.name for c in UNITS].index("FDS")
    assert project(CMEM).rates[0, fds] > 0.99
    # Sixteen warps issue four instructions of four cycles each while 434 * 16 / 10.8 cycles pass for their loads.
    assert project(MADD).rates[29, fds] == pytest.approx(16 * 4 * 4 / (434 * WARPS / MWP_PEAK), rel=0.001)
