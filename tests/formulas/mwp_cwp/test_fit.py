"""Parameters of the memory found again from the micro-benchmarks of the timing model."""

from typing import Any

import numpy as np
import pytest

from profsvc.formulas.mwp_cwp import exec_cycles, fit_memory_parameters
from profsvc.formulas.numerics.flags import FORMS, Flag

# Loops of the micro-benchmarks, table 3: memory and computation instructions.
LOOPS = [(0, 23), (1, 17), (1, 29), (2, 27), (2, 35), (4, 47), (6, 59)]


def benchmarks(warps: list[int]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    runs = [(m, c, coalesced, n) for n in warps for coalesced in (True, False) for m, c in LOOPS]
    m, c, coalesced, n = (np.array(x) for x in zip(*runs, strict=True))
    counts = {"n_comp": c, "n_coal": np.where(coalesced, m, 0), "n_uncoal": np.where(coalesced, 0, m)}
    launch = {"threads_per_block": 32 * n, "blocks": 16, "active_blocks_per_sm": 1, "active_sms": 16}
    machine = {"uncoal_per_mw": 32, "load_bytes_per_warp": 128, "freq": 1.35e9, "bandwidth": 86.4e9}
    return counts, launch, machine


@pytest.mark.parametrize("truth", [(420, 10, 4), (450, 40, 4), (600, 25, 12)])
@pytest.mark.parametrize("form", FORMS)
def test_fit_finds_the_parameters_again(truth: tuple[float, float, float], form: str) -> None:
    counts, launch, machine = benchmarks([1, 8, 16])
    known = dict(zip(("Mem_LD", "dep_uncoal", "dep_coal"), truth, strict=True))
    cpi = exec_cycles(**counts, **launch, **machine, **known, form=form).CPI
    fit = fit_memory_parameters(np.where(np.isnan(cpi), 4.0, cpi), counts, launch, machine, form)
    np.testing.assert_allclose(fit[:3], truth, rtol=1e-5)
    assert fit.residual < 1e-6
    assert not fit.flags & ~Flag.INPUT_SUSPECT
    assert bool(fit.flags) == (form == "as_published")  # which has no number without memory instructions


def test_fit_says_what_the_benchmarks_cannot_tell() -> None:
    counts, launch, machine = benchmarks([1, 8, 16])
    known = {"Mem_LD": 420, "dep_uncoal": 10, "dep_coal": 4}
    cpi = exec_cycles(**counts, **launch, **machine, **known).CPI
    noise = np.exp(0.05 * np.random.default_rng(2).normal(size=cpi.size))
    fit = fit_memory_parameters(cpi * noise, counts, launch, machine)
    assert fit.residual == pytest.approx(0.05, rel=0.4)
    assert abs(fit.Mem_LD / 420 - 1) < 3 * fit.relative_errors[0] < 0.3
    assert abs(fit.dep_uncoal / 10 - 1) < 3 * fit.relative_errors[1] < 0.3
    assert fit.relative_errors[2] > 1  # no benchmark queues coalesced requests
    coalesced = {name: x[:7] for name, x in counts.items()}
    blind = fit_memory_parameters(cpi[:7], coalesced, launch | {"threads_per_block": 32}, machine)
    assert blind.condition == np.inf
    assert blind.flags & Flag.INPUT_SUSPECT
    assert np.isnan(blind.relative_errors).all()


def test_fit_leaves_out_what_is_no_measurement_and_needs_three() -> None:
    counts, launch, machine = benchmarks([1, 8])
    cpi = exec_cycles(**counts, **launch, **machine, Mem_LD=420, dep_uncoal=10, dep_coal=4).CPI
    cpi[3:6] = np.nan, 0.0, -1.0
    fit = fit_memory_parameters(cpi, counts, launch, machine)
    assert fit.Mem_LD == pytest.approx(420)
    assert fit.flags & Flag.INPUT_SUSPECT
    cpi[2:] = np.nan
    none = fit_memory_parameters(cpi, counts, launch, machine)
    assert np.isnan(none.Mem_LD)
    assert none.flags == Flag.INPUT_SUSPECT
    at_bound = exec_cycles(**counts, **launch, **machine, Mem_LD=420, dep_uncoal=400, dep_coal=4).CPI
    assert fit_memory_parameters(at_bound, counts, launch, machine).flags & Flag.EXTRAPOLATED
    with pytest.raises(TypeError, match="n_comp"):
        fit_memory_parameters(cpi, {}, launch, machine)
