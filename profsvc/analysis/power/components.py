"""Power of each unit of a device, fitted to the power of many kernels and their utilization of the units."""

import math
import re
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from profsvc import specs
from profsvc.errors import counted
from profsvc.formulas.power.component_power import gpu_power, runtime_power
from profsvc.formulas.power.max_power import MIN_RUNS, MaxPowerFit, fit_maxpower

# The power of SMs that all work follows any law alike; a sweep of SMs tells the law, this fit does not.
LAW = "linear"
# Sensors without averaging are preferred for short windows.
INSTANT = re.compile("instant")
MODEL = "components"
COVERAGE = 0.95
MAX_NAME = 60


class Components(NamedTuple):
    """Power of the units, leave-one-out predictions of the kernels, and the verdict.

    ``units``: unit, max_power_w (of all SMs together where it is once an SM), low, high (over the fits with one kernel
    left out), meaning; ``kernels``: as given, with predicted_w, error_w, constant_error_w; ``without_w``: power of the
    units (columns) fitted without the kernel (rows); ``verdict`` in words.
    """

    units: pd.DataFrame
    kernels: pd.DataFrame
    without_w: npt.NDArray[np.float64]
    left_out_rms_w: float
    constant_rms_w: float
    left_out_share: float
    constant_share: float
    condition: float
    beats_constant: bool
    verdict: str
    flags: int


def fit_component_power(kernels: pd.DataFrame, num_sms: float) -> Components:
    """Fit the power of each unit to kernels, and compare its predictions with those of a constant.

    ``kernels``: one row per kernel that power was measured of, with ``mean_power_w``, ``idle_power_w``, ``active_sms``
    (null: all) and one column per counter of `profsvc.specs.power.units`. Kernels that lack a power or a counter which
    others have are left out; units whose counter no kernel has are.
    """
    units = [u for u in specs.power_units() if u.counter is None or (u.counter in kernels and kernels[u.counter].any())]
    counted = [unit.counter for unit in units if unit.counter is not None]
    known = kernels.dropna(subset=["mean_power_w", "idle_power_w", *counted]).reset_index(drop=True)
    sms = known["active_sms"].astype("float64").fillna(num_sms).to_numpy()
    power = (known["mean_power_w"] - known["idle_power_w"]).to_numpy(np.float64)
    per_sm = [unit.per_sm for unit in units]
    kinds = ([False] * len(units), per_sm)
    fit = fit_maxpower(_rates(known, units), power, *kinds, sms, num_sms, list(known["kernel"]), law=LAW)
    scale = np.where(per_sm, num_sms, 1.0)
    drawn = pd.DataFrame(
        {
            "unit": [unit.name for unit in units],
            "max_power_w": fit.max_power_w * scale,
            "low": fit.lowest_w * scale,
            "high": fit.highest_w * scale,
            "meaning": [unit.meaning for unit in units],
        }
    )
    told = known.assign(
        predicted_w=known["mean_power_w"] + fit.left_out_w, error_w=fit.left_out_w, constant_error_w=fit.constant_w
    )
    return Components(
        units=drawn,
        kernels=told,
        without_w=fit.without_w * scale,
        left_out_rms_w=float(fit.left_out_rms_w),
        constant_rms_w=float(fit.constant_rms_w),
        left_out_share=_share(fit.left_out_w, told["mean_power_w"]),
        constant_share=_share(fit.constant_w, told["mean_power_w"]),
        condition=float(fit.condition),
        beats_constant=bool(fit.beats_constant),
        verdict=_verdict(fit, len(known)),
        flags=int(fit.flags),
    )


def _numbers(kernels: pd.DataFrame, name: str) -> pd.Series:
    """Return a column as floats, NaN where it is missing."""
    empty = pd.Series(np.nan, kernels.index)
    return pd.to_numeric(kernels[name], errors="coerce").astype("float64") if name in kernels else empty


def _rates(kernels: pd.DataFrame, units: list[specs.PowerUnit]) -> npt.NDArray[np.float64]:
    """Access rates of the units, one unit per column."""
    return np.column_stack(
        [np.ones(len(kernels)) if u.counter is None else kernels[u.counter].clip(0, 1) for u in units]
    ).astype(np.float64)


def _share(errors: npt.NDArray[np.float64], power: pd.Series) -> float:
    """Mean of the errors as shares of the power."""
    each = np.abs(errors) / power.to_numpy(np.float64)
    return float(np.mean(each)) if each.size else float("nan")


def _verdict(fit: MaxPowerFit, kernels: int) -> str:
    """What the fit may claim."""
    if kernels < MIN_RUNS:
        return f"{counted(kernels, 'kernel')}: not enough to fit component power; {MIN_RUNS} are needed"
    if not bool(fit.beats_constant):
        return "not better than the mean power in leave-one-out prediction: do not use these values"
    return "better than the mean power in leave-one-out prediction"


def steady_powers(powers: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Return windows without throttling, of one sensor per run, and the number of excluded windows."""
    held = powers["quality"].fillna("").str.contains("throttled").astype(bool)
    steady = powers[~held]
    order = steady["sensor"].map(lambda name: not INSTANT.search(str(name)))
    first = steady.assign(order=order).sort_values(["run_id", "order"], kind="stable").drop_duplicates("run_id")
    chosen = steady.merge(first[["run_id", "sensor"]], on=["run_id", "sensor"])
    lost = powers.merge(first[["run_id", "sensor"]], on=["run_id", "sensor"])
    return chosen, len(lost) - len(chosen)


def rates_by_kernel(rates: pd.DataFrame) -> pd.DataFrame:
    """Return one row per run and kernel with a column per counter, from rows of a counter each."""
    wide = rates.pivot_table(index=["run_id", "kernel", "kernel_short"], columns="counter", values="value")
    return wide.reset_index()


def kernels_with_power(powers: pd.DataFrame, rates: pd.DataFrame) -> pd.DataFrame:
    """Return one row per kernel and run: its power, and counters from the same run or else the newest with them."""
    if rates.empty or powers.empty:
        return pd.DataFrame()
    wide = rates_by_kernel(rates)
    by_name = pd.concat([wide.assign(name=wide[column]) for column in ("kernel", "kernel_short")])
    by_name = by_name.rename(columns={"run_id": "profile", "kernel": "full_name"}).drop(columns="kernel_short")
    named = powers.assign(name=powers["kernel"].fillna(powers["load"]))
    both = named.drop(columns="kernel").merge(by_name, on="name")
    both = both.assign(other=both["profile"] != both["run_id"])
    best = both.sort_values(["run_id", "name", "other", "profile"], ascending=[True, True, True, False], kind="stable")
    return best.drop_duplicates(["run_id", "name"]).rename(columns={"name": "kernel"}).reset_index(drop=True)


def unit_powers(kernels: pd.DataFrame, found: Components, num_sms: float) -> list[dict[str, Any]]:
    """Return the power of each unit for kernels, as rows of the models of a run.

    ``kernels``: kernel, window (its label), idle_power_w, active_sms, mean_power_w (null where it was not measured) and
    counters. A kernel that the fit contains is predicted by the fit without it. The interval is that of the errors on
    kernels left out; too few kernels give none.
    """
    names = list(found.units["unit"])
    units = [unit for unit in specs.power_units() if unit.name in names]
    missing = [[u.meaning for u in units if u.counter is not None and pd.isna(row.get(u.counter))]
               for row in kernels.to_dict("records")]  # fmt: skip
    figures = ["active_sms", "idle_power_w", *(unit.counter for unit in units if unit.counter)]
    known = kernels.assign(**{name: _numbers(kernels, name) for name in figures})
    sms = known["active_sms"].fillna(num_sms).to_numpy()
    places = {str(name): place for place, name in enumerate(found.kernels["kernel"])}
    inside = [places.get(str(name)) for name in known["kernel"]]
    whole = found.units["max_power_w"].to_numpy(np.float64)
    watts = np.array([whole if place is None else found.without_w[place] for place in inside]).reshape(-1, len(units))
    per_sm = [unit.per_sm for unit in units]
    watts = np.nan_to_num(watts) / np.where(per_sm, num_sms, 1.0)
    kinds = ([False] * len(units), per_sm)
    drawn = runtime_power(_rates(known, units), watts, *kinds, sms, num_sms, law=LAW)
    idle = known["idle_power_w"].to_numpy(np.float64)
    total = gpu_power(drawn.total_w, idle).value
    half = error_quantile(found.kernels["error_w"].to_numpy(np.float64))
    said = _record(found)
    rows: list[dict[str, Any]] = []
    for place, (label, lacks) in enumerate(zip(known["window"], missing, strict=True)):
        reason = found.verdict if not found.beats_constant else None
        reason = f"no counter for {', '.join(lacks)}" if lacks else reason
        fit = f"{said}; this kernel is left out" if inside[place] is not None else said
        about = {"model": MODEL, "unit": "W", "window": label, "form": fit, "flags": found.flags, "reason": reason}
        measured = known["mean_power_w"].iloc[place]
        if pd.notna(measured):
            rows.append(about | {"quantity": "measured_power_w", "value": float(measured), "form": "settled power",
                                 "reason": None})  # fmt: skip
        if reason:
            rows.append(about | {"quantity": "predicted_power_w", "value": None})
            continue
        value = float(total[place])
        ends = {} if math.isinf(half) else {"low": max(value - half, 0.0), "high": value + half}
        rows.append(about | {"quantity": "predicted_power_w", "value": value, **ends})
        rows.append(about | {"quantity": "idle_power_w", "value": float(idle[place])})
        rows += [
            about | {"quantity": f"unit_power_w_{name}", "value": float(part)}
            for name, part in zip(names, drawn.breakdown_w[place], strict=True)
        ]
    return rows


def _record(found: Components) -> str:
    """The error of the fit on kernels left out, in words."""
    errors = (np.abs(found.kernels["error_w"]) / found.kernels["mean_power_w"]).dropna()
    words = f"fitted to {counted(len(found.kernels), 'kernel')}"
    if errors.empty:
        return words
    name = str(found.kernels["kernel"][errors.idxmax()])
    name = name if len(name) <= MAX_NAME else name[: MAX_NAME - 1] + "\u2026"
    worst = f"worst {100 * errors.max():.0f} % ({name})"
    return f"{words}; error on kernels left out {100 * errors.mean():.1f} %, {worst}"


def error_quantile(errors: npt.NDArray[np.float64]) -> float:
    """Return the size that 95 % of the errors of new kernels stay within; infinite for fewer than 19 errors.

    >>> error_quantile(np.arange(-9.0, 10.0)), error_quantile(np.ones(18))
    (9.0, inf)
    """
    sizes = np.sort(np.abs(errors[np.isfinite(errors)]))
    place = math.ceil((len(sizes) + 1) * COVERAGE)
    return float(sizes[place - 1]) if 0 < place <= len(sizes) else math.inf
