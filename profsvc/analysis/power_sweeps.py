"""Power against the number of SMs that a load keeps busy, and how many do most work a joule."""

import numpy as np
import pandas as pd

from profsvc import specs
from profsvc.analysis.power_sensor import Measured
from profsvc.analysis.power_windows import IDLE, RUN
from profsvc.errors import NotFoundError
from profsvc.formulas.active_sms import LEAST_LEVELS, fit_activation, fit_active_sms, predict_active_sms
from profsvc.formulas.core_count import optimal_cores_scan
from profsvc.formulas.flags import Flag, flag_names

MODEL, CORES = "active_sms", "performance_per_watt"
# Work is not in a log of marks: each launch is taken to give each SM that works in it the same amount.
WORK = "work: launches times SMs"


def sweeps(own: Measured, windows: pd.DataFrame, idle_w: float | None) -> None:
    """Fit what each load draws on several numbers of SMs, and put the figures into the models of the sensor.

    A load is what has one ``load`` name; its windows differ in ``active_sms``. The corrected power is taken where all
    its windows have one, else the measured power, and the form says which.
    """
    rows = windows[
        ~windows["kind"].isin([IDLE, RUN]) & windows["active_sms"].notna() & windows["settled_power_w"].notna()
    ]
    for load, group in rows.groupby("load", sort=False):
        levels = group["active_sms"].nunique()
        if levels < 2:
            continue
        label = str(load)
        if levels < LEAST_LEVELS:
            reason = f"{levels} numbers of SMs were tried; a law needs {LEAST_LEVELS}"
            own.model(MODEL, "law", None, "", window=label, reason=reason)
            continue
        corrected = bool(group["corrected_power_w"].notna().all())
        moved = group["corrected_power_w"] - group["mean_power_w"] if corrected else 0.0
        power = (group["settled_power_w"] + moved).to_numpy(np.float64)
        sms = group["active_sms"].to_numpy(np.float64)
        _laws(own, label, sms, power, idle_w, "corrected power" if corrected else "power as measured")
        _best(own, label, sms, power, group)


def device_sms(own: Measured, sms: np.ndarray) -> tuple[float, str]:
    """Return how many SMs the device has, and where that is from: the catalogue, else the largest number tried."""
    if own.log.device is not None:
        try:
            return float(specs.device(own.log.device).sms), "catalogue"
        except NotFoundError:
            pass
    return float(np.max(sms)), "largest number tried"


def _laws(own: Measured, label: str, sms: np.ndarray, power: np.ndarray, idle_w: float | None, form: str) -> None:
    total, source = device_sms(own, sms)
    fit = fit_active_sms(sms, power, total, idle_w)
    more = {"window": label, "form": f"{form}; {fit.law} law; SMs: {source}", "flags": int(fit.flags)}
    for law in fit.laws:
        said = {"window": label, "form": f"{form}; {law.law} law", "flags": int(fit.flags)}
        own.model(MODEL, f"left_out_rms_w_{law.law}", float(law.left_out_rms_w), "W", **said)
        own.model(MODEL, f"residual_sd_w_{law.law}", float(law.residual_sd_w), "W", **said)
    chosen = next(law for law in fit.laws if law.law == fit.law)
    own.model(MODEL, "base_w", float(chosen.base_w), "W", **more)
    own.model(MODEL, "amplitude_w", float(chosen.amplitude_w), "W", **more)
    own.model(MODEL, "shape", float(chosen.shape), "1", **more)
    own.model(MODEL, "activation_w", float(fit.activation_w), "W", **more)
    foretold = predict_active_sms(fit, [total])
    interval = {"low": float(foretold.low_w[0]), "high": float(foretold.high_w[0])}
    flags = {"flags": int(foretold.flags[0])}
    own.model(MODEL, "power_on_all_sms_w", float(foretold.power_w[0]), "W", **more | interval | flags)
    line = fit_activation(sms, power, idle_w)
    straight = {"window": label, "form": "as_published", "flags": int(line.flags)}
    for name in ("activation", "slope"):
        low, high = (float(getattr(line, f"{name}_{end}_w")) for end in ("low", "high"))
        own.model(MODEL, f"linear_{name}_w", float(getattr(line, f"{name}_w")), "W", low=low, high=high, **straight)


def _best(own: Measured, label: str, sms: np.ndarray, power: np.ndarray, group: pd.DataFrame) -> None:
    """The number of SMs with most work a joule, with those that the errors do not tell from it."""
    if group["launches"].isna().any():
        own.model(CORES, "best_sms", None, "SM", window=label, reason="the marks do not say how many launches ran")
        return
    work = group["launches"].to_numpy(np.float64) * sms
    time = group["duration_s"].to_numpy(np.float64)
    error = group["power_sd_w"].to_numpy(np.float64) / np.sqrt(np.maximum(group["readings"].to_numpy(np.float64), 1))
    scan = optimal_cores_scan(sms, time, power, work, power_se_w=np.nan_to_num(error), num_sms=device_sms(own, sms)[0])
    said = {"window": label, "form": WORK, "flags": int(scan.flags)}
    own.model(CORES, "best_sms", float(scan.best), "SM", low=float(scan.low), high=float(scan.high), **said)
    for number, value in zip(sms, scan.per_watt, strict=True):
        own.model(CORES, f"per_joule_on_{int(number)}_sms", float(value), "1/J", **said)
    if Flag.EXTRAPOLATED & int(scan.flags):
        words = f"{label}: the largest number of SMs tried is the best; {', '.join(flag_names(scan.flags))}"
        own.beware("sweep_too_short", words, float(scan.best), "SM", window=label)
