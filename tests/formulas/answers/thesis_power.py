"""Figures of [Hong2012]: power, temperature, placement, energy, and the split between CPU and GPU."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import optimize

from profsvc.formulas.power import component_power, core_count
from profsvc.formulas.power.active_sms import fit_activation, fit_beta
from profsvc.formulas.power.energy import efficiency
from profsvc.formulas.power.energy_split import share_errors, split
from profsvc.formulas.power.leakage import delta_temperature, power_at_temperature
from profsvc.formulas.power.placement import tpc_effect
from profsvc.formulas.thermal.rc_model import sigma
from profsvc.formulas.thermocouples.emf import saturation
from profsvc.specs import components

FIXTURES = Path(__file__).parents[3] / "fixtures" / "formulas"
GTX280 = components("GTX280")
UNITS = {
    "max_power_w": [c.max_power_w for c in GTX280],
    "special": [c.special for c in GTX280],
    "per_sm": [c.per_sm for c in GTX280],
}


def published(n: float, num: float = 30) -> Any:
    return component_power.active_factors(n, num, form="as_published").sm


def special(x: float) -> Any:
    return component_power.special_linear(x, "as_published").value


def alpha(num: float, beta: float) -> Any:
    n = np.arange(1.0, num + 1)
    return fit_beta(n, 40 * np.log10((10 - beta) / num * n + beta), num).alpha


def gated(n: float, num: float) -> Any:
    return 1 - core_count.gating_saving(n, num, 1, 1).value


def leak(end: float, idle: float) -> Any:
    return power_at_temperature(0, 10 / 22, delta_temperature(end, idle).value).value


def slope(delta: float, steps: float) -> Any:
    return fit_activation([1, 1 + steps], [93, 93 + delta], 27).slope_w


def jump(idle: float, p1: float) -> Any:
    fit = fit_activation([1, 16], [p1, p1 + 60], idle)
    return fit.activation_w + fit.slope_w


def all_on() -> Any:
    return component_power.runtime_power(np.ones(len(GTX280)), **UNITS, active_sms=30, num_sms=30).max_sm_w


def row_of(name: str) -> dict[str, str]:
    with (FIXTURES / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return next(csv.DictReader(file))


def effect(field: str) -> Any:
    row = row_of("tpc_effect")
    return getattr(tpc_effect(*(json.loads(row[name]) for name in ("active_tpcs", "power_w", "temperature_c"))), field)


def coolest() -> str:
    cores = json.loads(row_of("rank_placements")["options"])
    heat = json.loads(row_of("tpc_effect")["temperature_c"])
    return "-".join(map(str, cores[int(np.argmin(heat))]))


def shares() -> Any:
    row = row_of("share_errors")
    return share_errors(json.loads(row["model"]), json.loads(row["best"]))


ANSWERS: dict[str, Callable[..., Any]] = {
    "alpha_30": lambda Num, beta: alpha(Num, beta),
    "alpha_identity": lambda Num, beta: 10 ** component_power.active_factors(Num, Num, "log", beta).sm,
    "alpha_identity_any": lambda Num, beta: component_power.active_factors(Num, Num, "log", beta).board,
    **{f"log_factor_{n}": lambda Num, beta, n: published(n, Num) for n in (0, 1, 10, 19, 20, 30)},
    "maxsm_from_37W": lambda delta_W: delta_W / (1 - published(1)),
    "sm_component_sum": lambda **_: all_on() / 30,
    "max_sm_all_rates_one": lambda **_: all_on(),
    "special_linear_units": lambda: np.sum(UNITS["special"]),
    **{f"special_access_{x}": special for x in ("1", "0.5", "0.1", "0.01", "0.001")},
    "special_access_zero": lambda: optimize.brentq(special, 1e-4, 1e-3, xtol=1e-15),
    "svm_leak": lambda Tend, Tidle: leak(Tend, Tidle),
    "int_leak": lambda Tend, Tidle: leak(Tend, Tidle),
    "idle_sum": lambda gpu, sys: component_power.gpu_power(sys, gpu).value,
    "gate_per_core": lambda SM, W: W * gated(1, SM),
    "gate_bound": lambda Num, n: 1 - gated(n, Num),
    "gate_implied_time": lambda Num, n, saving: (1 - saving) / gated(n, Num),
    "runtime_implied_time": lambda n, saving: (1 - saving) / published(n),
    "optimal_cores_20": lambda MWP_peak_BW, N, SM: (
        core_count.optimal_cores_closed(MWP_peak_BW, N, N, MWP_peak_BW, SM, case=2).raw
    ),
    "fermi_jump": jump,
    "fermi_slope_compute": slope,
    "fermi_slope_memory": slope,
    "energy_identity": lambda aP, aT: efficiency(1, 1, aT, aP).efficiency,
    "power_rise_split": lambda fan, total: sigma(total, 1, fan),
    "sigma": lambda dP, dT: sigma(dP, dT),
    "sigma_with_fan": lambda dP, dT: sigma(dP, dT, 4, fan="included"),
    "rc_rise_63": lambda RC, t: saturation(t, RC),
    "rc_rise_600": lambda RC, t: saturation(t, RC),
    "rc_rise_120": lambda RC, t: saturation(t, RC),
    "t12_corr": lambda: effect("correlation"),
    "t12_slope": lambda: effect("power_per_degree_w"),
    "t12_per_tpc": lambda: effect("power_per_tpc_w"),
    "t12_spread_P": lambda: effect("power_range_w"),
    "t12_spread_T": lambda: effect("temperature_range_c"),
    **{f"t12_mean_P_{n}": lambda tpc: effect("power_w")[tpc - 2] for n in (2, 3, 4)},
    "t12_min_temp": coolest,
    "fig147_gpu_rel": lambda: 100 * shares().relative_mean,
    "fig147_pp_mean": lambda: shares().points_mean,
    "fig147_pp_max": lambda: shares().points_max,
    "energy_points": lambda: split(100, np.arange(0, 101, 10) / 100, 1, 1, 1, 1, 1).time_s.size,
}
