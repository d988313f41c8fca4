"""The power of each unit of a device, fitted to all kernels with power and counters."""

import re
from typing import TYPE_CHECKING, Any

import pandas as pd

from profsvc import specs, store
from profsvc.analysis.power.components import Components, fit_component_power
from profsvc.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from sqlalchemy import Engine

UNITS = ("unit", "max_power_w", "low", "high", "meaning")
KERNELS = ("run", "kernel", "mean_power_w", "predicted_w", "error_w", "constant_error_w")
# Sensors without averaging are preferred for short windows.
INSTANT = re.compile("instant")


def components(engine: "Engine", device: str | None = None) -> dict[str, Any]:
    """Return the power of the units of a device, the error of the fit on kernels left out, and all kernels.

    A kernel counts once per run, with one power sensor. Windows with a throttled clock are excluded.
    """
    powers, left_out = _steady(store.powers_of_loads(engine))
    names = sorted({str(name) for name in powers["device"].dropna()})
    if device is None and len(names) > 1:
        raise UsageError(f"power was measured on {len(names)} devices: {', '.join(names)}; choose one with --device")
    known = specs.device(device or names[0]) if device or names else None
    if known is None:
        raise NotFoundError("no run has the power of a load on a named device; see: profsvc formats marks")
    own = powers[[name is not None and _is(str(name), known.name) for name in powers["device"]]]
    counted = [unit.counter for unit in specs.power_units() if unit.counter is not None]
    kernels = _joined(own, store.mean_counters(engine, counted))
    if kernels.empty:
        raise NotFoundError(
            f"no kernel has both a power and counters on {known.name}; {len(own)} loads have a power; mark each with "
            "the name of its kernel, and upload a profile of the kernels on this device"
        )
    found = fit_component_power(kernels, float(known.sms))
    return {
        "device": known.name,
        "runs": len(found.kernels),
        "left_out_windows": left_out,
        **{name: getattr(found, name) for name in Components._fields if name not in ("units", "kernels")},
        "units": found.units.to_dict("records"),
        "kernels": found.kernels.to_dict("records"),
    }


def _is(name: str, device: str) -> bool:
    try:
        return specs.device(name).name == device
    except NotFoundError:
        return False


def _steady(powers: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Return windows without throttling, of one sensor per run, and the number of excluded windows."""
    held = powers["quality"].fillna("").str.contains("throttled").astype(bool)
    steady = powers[~held]
    order = steady["sensor"].map(lambda name: not INSTANT.search(str(name)))
    first = steady.assign(order=order).sort_values(["run_id", "order"], kind="stable").drop_duplicates("run_id")
    chosen = steady.merge(first[["run_id", "sensor"]], on=["run_id", "sensor"])
    lost = powers.merge(first[["run_id", "sensor"]], on=["run_id", "sensor"])
    return chosen, len(lost) - len(chosen)


def _joined(powers: pd.DataFrame, rates: pd.DataFrame) -> pd.DataFrame:
    """Return one row per kernel and run: its power, and counters from the same run or else the newest with them."""
    if rates.empty or powers.empty:
        return pd.DataFrame()
    wide = rates.pivot_table(index=["run_id", "kernel", "kernel_short"], columns="counter", values="value")
    wide = wide.reset_index()
    by_name = pd.concat([wide.assign(name=wide[column]) for column in ("kernel", "kernel_short")])
    by_name = by_name.drop(columns=["kernel", "kernel_short"]).rename(columns={"run_id": "profile"})
    named = powers.assign(name=powers["kernel"].fillna(powers["load"]))
    both = named.drop(columns="kernel").merge(by_name, on="name")
    both = both.assign(other=both["profile"] != both["run_id"])
    best = both.sort_values(["run_id", "name", "other", "profile"], ascending=[True, True, True, False], kind="stable")
    return best.drop_duplicates(["run_id", "name"]).rename(columns={"name": "kernel"}).reset_index(drop=True)
