"""What each unit of a device draws, from every run of the store in which power and counters of a kernel meet."""

import re
from typing import TYPE_CHECKING, Any

import pandas as pd

from profsvc import specs, store
from profsvc.analysis.power_components import Components, component_model
from profsvc.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from sqlalchemy import Engine

UNITS = ("unit", "max_power_w", "low", "high", "meaning")
KERNELS = ("run", "kernel", "mean_power_w", "predicted_w", "error_w", "constant_error_w")
# A sensor that does not average shows short windows best.
INSTANT = re.compile("instant")


def components(engine: "Engine", device: str | None = None) -> dict[str, Any]:
    """What the units of a device draw, how well that foretells the power of kernels left out, and kernel by kernel.

    A kernel counts once a run, with one power sensor. Windows in which the board held its clock down are left out.
    """
    powers, left_out = _steady(store.powers_of_loads(engine))
    names = sorted({str(name) for name in powers["device"].dropna()})
    if device is None and len(names) > 1:
        raise UsageError(f"power was measured on {len(names)} devices: {', '.join(names)}; say which with --device")
    known = specs.device(device or names[0]) if device or names else None
    if known is None:
        raise NotFoundError("no run holds the power of a load on a device that it names; see: profsvc formats marks")
    own = powers[[name is not None and _is(str(name), known.name) for name in powers["device"]]]
    counted = [unit.counter for unit in specs.power_units() if unit.counter is not None]
    kernels = _joined(own, store.mean_counters(engine, counted))
    if kernels.empty:
        raise NotFoundError(
            f"no kernel has both a power and counters on {known.name}; {len(own)} loads have a power: mark each with "
            "the name of its kernel, and upload a profile of the kernels to the same run or to another on this device"
        )
    found = component_model(kernels, float(known.sms))
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
    """Windows at one clock, of one sensor a run; and how many were not."""
    held = powers["quality"].fillna("").str.contains("throttled").astype(bool)
    steady = powers[~held]
    order = steady["sensor"].map(lambda name: not INSTANT.search(str(name)))
    first = steady.assign(order=order).sort_values(["run_id", "order"], kind="stable").drop_duplicates("run_id")
    chosen = steady.merge(first[["run_id", "sensor"]], on=["run_id", "sensor"])
    lost = powers.merge(first[["run_id", "sensor"]], on=["run_id", "sensor"])
    return chosen, len(lost) - len(chosen)


def _joined(powers: pd.DataFrame, rates: pd.DataFrame) -> pd.DataFrame:
    """A row a kernel and run: its power, and its counters from the same run, else from the newest that has them."""
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
