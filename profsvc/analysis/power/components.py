"""Power of each unit of a device, fitted to the power of many kernels and their utilization of the units."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from profsvc import specs
from profsvc.errors import counted
from profsvc.formulas.power.max_power import MIN_RUNS, MaxPowerFit, fit_maxpower

# The power of SMs that all work follows any law alike; a sweep of SMs tells the law, this fit does not.
LAW = "linear"


class Components(NamedTuple):
    """Power of the units, leave-one-out predictions of the kernels, and the verdict.

    ``units``: unit, max_power_w (of all SMs together where it is once an SM), low, high (over the fits with one kernel
    left out), meaning; ``kernels``: as given, with predicted_w, error_w, constant_error_w; ``verdict`` in words.
    """

    units: pd.DataFrame
    kernels: pd.DataFrame
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
    (null: all) and one column per counter of `profsvc.specs.power_units`. Kernels that lack a power or a counter which
    others have are left out; units whose counter no kernel has are.
    """
    units = [u for u in specs.power_units() if u.counter is None or (u.counter in kernels and kernels[u.counter].any())]
    counted = [unit.counter for unit in units if unit.counter is not None]
    known = kernels.dropna(subset=["mean_power_w", "idle_power_w", *counted]).reset_index(drop=True)
    rates = np.column_stack([np.ones(len(known)) if u.counter is None else known[u.counter].clip(0, 1) for u in units])
    sms = known["active_sms"].astype("float64").fillna(num_sms).to_numpy()
    power = (known["mean_power_w"] - known["idle_power_w"]).to_numpy(np.float64)
    per_sm = [unit.per_sm for unit in units]
    fit = fit_maxpower(rates, power, [False] * len(units), per_sm, sms, num_sms, law=LAW)
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
        left_out_rms_w=float(fit.left_out_rms_w),
        constant_rms_w=float(fit.constant_rms_w),
        left_out_share=_share(fit.left_out_w, told["mean_power_w"]),
        constant_share=_share(fit.constant_w, told["mean_power_w"]),
        condition=float(fit.condition),
        beats_constant=bool(fit.beats_constant),
        verdict=_verdict(fit, len(known)),
        flags=int(fit.flags),
    )


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
