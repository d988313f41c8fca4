"""Power against the number of SMs that a load keeps busy, how many do most work a joule, and what fewer SMs save."""

import numpy as np
import pandas as pd

from profsvc import specs
from profsvc.analysis.power.sensor import PowerSensor
from profsvc.analysis.power.windows import IDLE, RUN
from profsvc.errors import NotFoundError
from profsvc.formulas.numerics.distributions import NORMAL_975
from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.power.active_sms import MIN_LEVELS, fit_activation, fit_active_sms, fit_beta, predict_active_sms
from profsvc.formulas.power.core_count import energy_savings, optimal_cores_scan

MODEL, CORES = "active_sms", "performance_per_watt"
CATALOGUE = "catalogue"
# Assumed extra power per degree without any measured coefficient; 0.1 to 0.5 % were measured.
LEAKAGE_PER_C = 0.005
# Work is not in a log of marks: each launch is taken to give each SM that works in it the same amount.
WORK_FORM = "work: launches times SMs"
# Accounts of the energy saved -> their quantity of a number of SMs.
SAVINGS = {"runtime_and_idle": "energy_saved_on_{}_sms", "runtime": "runtime_energy_saved_on_{}_sms",
           "gated": "gated_energy_saved_on_{}_sms"}  # fmt: skip


def fit_sweeps(own: PowerSensor, windows: pd.DataFrame, idle_w: float | None) -> None:
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
        if levels < MIN_LEVELS:
            reason = f"{levels} SM counts were measured; a law needs {MIN_LEVELS}"
            own.model(MODEL, "law", None, "", window=label, reason=reason)
            continue
        corrected = bool(group["corrected_power_w"].notna().all())
        moved = group["corrected_power_w"] - group["mean_power_w"] if corrected else 0.0
        power = (group["settled_power_w"] + moved).to_numpy(np.float64)
        sms = group["active_sms"].to_numpy(np.float64)
        form = "corrected power" if corrected else "power as measured"
        _fit_laws(own, label, sms, power, idle_w, form, _error_of_temperature(group, power, corrected=corrected))
        _best_sm_count(own, label, sms, power, group, idle_w)


def _error_of_temperature(group: pd.DataFrame, power: np.ndarray, *, corrected: bool) -> float:
    """Standard error [W] that the temperature leaves in the powers of a sweep.

    What follows the power is in the law already. What is left of the temperature moves the power by the coefficient,
    or, once that is corrected for, by what is not known of it.
    """
    warmth = group["mean_temperature_c"].to_numpy(np.float64)
    known = np.isfinite(warmth)
    if known.sum() < MIN_LEVELS:
        return 0.0
    line = np.polynomial.Polynomial.fit(power[known], warmth[known], 1)
    left = float(np.sqrt(np.sum((warmth[known] - line(power[known])) ** 2) / (known.sum() - 2)))
    low, high = (group[name].to_numpy(np.float64) for name in ("coefficient_low", "coefficient_high"))
    if corrected:
        return left * float(np.nanmax(high - low)) / (2 * NORMAL_975)
    most = float(np.nanmax(high)) if np.isfinite(high).any() else LEAKAGE_PER_C * float(np.max(power))
    return left * most


def device_sms(own: PowerSensor, sms: np.ndarray) -> tuple[float, str]:
    """Return how many SMs the device has, and where that is from: the catalogue, else the largest number tried."""
    if own.log.device is not None:
        try:
            return float(specs.device(own.log.device).sms), CATALOGUE
        except NotFoundError:
            pass
    return float(np.max(sms)), "largest number tried"


def _fit_laws(
    own: PowerSensor, label: str, sms: np.ndarray, power: np.ndarray, idle_w: float | None, form: str, error_w: float
) -> None:
    total, source = device_sms(own, sms)
    fit = fit_active_sms(sms, power, total, idle_w, error_w=error_w)
    more = {"window": label, "form": f"{form}; {fit.law} law; SMs: {source}", "flags": int(fit.flags)}
    for law in fit.laws:
        said = {"window": label, "form": f"{form}; {law.law} law", "flags": int(fit.flags)}
        own.model(MODEL, f"left_out_rms_w_{law.law}", float(law.left_out_rms_w), "W", **said)
        own.model(MODEL, f"left_out_worst_w_{law.law}", float(law.left_out_worst_w), "W", **said)
        own.model(MODEL, f"residual_sd_w_{law.law}", float(law.residual_sd_w), "W", **said)
    chosen = next(law for law in fit.laws if law.law == fit.law)
    own.model(MODEL, "base_w", float(chosen.base_w), "W", **more)
    own.model(MODEL, "amplitude_w", float(chosen.amplitude_w), "W", **more)
    own.model(MODEL, "shape", float(chosen.shape), "1", **more)
    own.model(MODEL, "activation_w", float(fit.activation_w), "W", **more)
    predicted = predict_active_sms(fit, [total])
    interval = {"low": float(predicted.low_w[0]), "high": float(predicted.high_w[0])}
    flags = {"flags": int(predicted.flags[0])}
    own.model(MODEL, "power_on_all_sms_w", float(predicted.power_w[0]), "W", **more | interval | flags)
    line = fit_activation(sms, power, idle_w)
    straight = {"window": label, "form": "as_published", "flags": int(line.flags)}
    for name in ("activation", "slope"):
        low, high = (float(getattr(line, f"{name}_{end}_w")) for end in ("low", "high"))
        own.model(MODEL, f"linear_{name}_w", float(getattr(line, f"{name}_w")), "W", low=low, high=high, **straight)
    if idle_w is not None:
        curve = fit_beta(sms, power - idle_w, total)
        printed = {"window": label, "form": "as_published", "flags": int(curve.flags)}
        own.model(MODEL, "log_beta", float(curve.beta), "1", low=float(curve.low), high=float(curve.high), **printed)
        own.model(MODEL, "log_max_sm_w", float(curve.max_sm_w), "W", **printed)


def _best_sm_count(
    own: PowerSensor, label: str, sms: np.ndarray, power: np.ndarray, group: pd.DataFrame, idle_w: float | None
) -> None:
    """The number of SMs with most work a joule, with the range that is equally good within the errors."""
    if group["launches"].isna().any():
        own.model(CORES, "best_sms", None, "SM", window=label, reason="the marks have no launch counts")
        return
    work = group["launches"].to_numpy(np.float64) * sms
    time = group["duration_s"].to_numpy(np.float64)
    error = group["power_sd_w"].to_numpy(np.float64) / np.sqrt(np.maximum(group["readings"].to_numpy(np.float64), 1))
    total, source = device_sms(own, sms)
    known = total if source == CATALOGUE else None
    scan = optimal_cores_scan(sms, time, power, work, power_se_w=np.nan_to_num(error), num_sms=known)
    said = {"window": label, "form": WORK_FORM, "flags": int(scan.flags)}
    best, most = float(scan.best), float(np.max(sms))
    rises = f"the most work per joule was on the largest SM count measured, {most:.0f}"
    if Flag.EXTRAPOLATED & int(scan.flags):
        of = f" of {total:.0f}" if known else ""
        reason = f"{rises}{of}; more SMs may be better, measure more"
        own.model(CORES, "best_sms", None, "SM", low=float(scan.low), reason=reason, **said)
        own.warn("sweep_too_short", f"{label}: {reason}", best, "SM", window=label)
    else:
        own.model(CORES, "best_sms", best, "SM", low=float(scan.low), high=float(scan.high), **said)
        if best == most:
            words = f"{label}: {rises}, all SMs of the device: there is no optimum below"
            own.warn("no_optimum", words, best, "SM", window=label)
    for number, value in zip(sms, scan.per_watt, strict=True):
        own.model(CORES, f"per_joule_on_{int(number)}_sms", float(value), "1/J", **said)
    _energy_saved(own, label, sms, time / work, power, idle_w)


def _energy_saved(
    own: PowerSensor, label: str, sms: np.ndarray, time_s: np.ndarray, power: np.ndarray, idle_w: float | None
) -> None:
    """The share of energy that fewer SMs save for the same work, against all SMs; ``time_s`` is that of the work."""
    total, source = device_sms(own, sms)
    said = {"window": label, "form": WORK_FORM}
    reason = None
    if source != CATALOGUE or not (sms == total).any():
        reason = f"savings are relative to all SMs of the device, but the sweep ends at {np.max(sms):.0f}"
        reason += f" of {total:.0f}; measure {total:.0f}" if source == CATALOGUE else "; name the device in the log"
    elif idle_w is None:
        reason = "the power at rest is unknown; record an idle phase"
    if reason or idle_w is None:
        own.model(CORES, "energy_saved", None, "1", reason=reason, **said)
        return
    everywhere = sms == total
    saved = energy_savings(
        sms, total, time_s, float(time_s[everywhere].mean()), power - idle_w,
        float(power[everywhere].mean()) - idle_w, idle_w,
    )  # fmt: skip
    for place, number in enumerate(sms):
        if number != total:
            for account, quantity in SAVINGS.items():
                value = float(getattr(saved, account)[place])
                own.model(CORES, quantity.format(int(number)), value, "1", flags=int(saved.flags[place]), **said)
