"""Power of the units of a device, fitted to the kernels of a store, and by it the power of the kernels of a run."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from profsvc import specs, store
from profsvc.analysis.power.components import (
    Components,
    fit_component_power,
    kernels_with_power,
    rates_by_kernel,
    steady_powers,
    unit_powers,
)
from profsvc.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from sqlalchemy import Engine

# A run is compared with the newest runs of its project: an upload must not read the whole store.
MAX_RUNS = 30


class DeviceFit(NamedTuple):
    """The fit of a device, and how many windows with a throttled clock it excludes."""

    device: specs.Device
    found: Components
    left_out_windows: int


def fit_of_device(engine: "Engine", device: str | None = None) -> DeviceFit:
    """Fit the units of a device to all kernels of the store with power and counters."""
    powers, left_out = steady_powers(store.powers_of_loads(engine))
    names = sorted({str(name) for name in powers["device"].dropna()})
    if device is None and len(names) > 1:
        raise UsageError(f"power was measured on {len(names)} devices: {', '.join(names)}; choose one with --device")
    known = specs.device(device or names[0]) if device or names else None
    if known is None:
        raise NotFoundError("no run has the power of a load on a named device; see: profsvc formats marks")
    return DeviceFit(known, _fit(powers, store.mean_counters(engine, _counters()), known), left_out)


def unit_powers_of_run(engine: "Engine", run_id: int, own: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return the power of each unit for the kernels of a run, as rows of its models; none without power or counters.

    ``own``: the windows of the run as `store.powers_of_loads` has them, where they are not stored yet. The fit is to
    the newest runs of its project.
    """
    powers = _powers(engine, run_id, own)
    try:  # without a power the counters of all launches need not be read
        return pd.DataFrame(_rows(engine, run_id, own, powers) if powers else [])
    except NotFoundError:
        return pd.DataFrame()


def explained_unit_powers(engine: "Engine", run_id: int) -> list[dict[str, Any]]:
    """Return the rows of `unit_powers_of_run`; raise `NotFoundError` that says what is missing."""
    return _rows(engine, run_id, None, _powers(engine, run_id, None))


def _runs(engine: "Engine", run_id: int) -> list[int]:
    """Return a run and the newest of its project."""
    project = store.select(engine, "v1_runs", run_id=run_id)[0]["project"]
    return sorted({*store.newest_runs(engine, project, MAX_RUNS), run_id})


def _powers(engine: "Engine", run_id: int, own: pd.DataFrame | None) -> list[pd.DataFrame]:
    """Return the windows of a run, if they are not stored yet, and those of the newest runs of its project."""
    runs = _runs(engine, run_id)
    stored = store.powers_of_loads(engine, runs if own is None else [one for one in runs if one != run_id])
    return [frame for frame in (own, stored) if frame is not None and len(frame)]


def _rows(
    engine: "Engine", run_id: int, own: pd.DataFrame | None, parts: Sequence[pd.DataFrame]
) -> list[dict[str, Any]]:
    run = store.select(engine, "v1_runs", run_id=run_id)[0]
    if own is None and _knows_nothing(engine, run_id):
        raise NotFoundError(
            f"run {run['name']!r} has neither the utilization of units nor the power of loads; profile its kernels "
            "with ncu --set full, or upload a power log with marks (profsvc formats marks)"
        )
    if not parts:
        raise NotFoundError(
            f"the project of run {run['name']!r} has no power of a load; upload a power log, and marks with the names "
            "of the kernels (profsvc formats marks)"
        )
    powers = steady_powers(pd.concat(parts, ignore_index=True))[0]
    device = next((name for name in (*powers[powers["run_id"] == run_id]["device"], run["device"]) if name), None)
    if device is None:
        raise NotFoundError(f"run {run['name']!r} names no device; upload it again with --device")
    known = specs.device(str(device))
    rates = store.mean_counters(engine, _counters(), _runs(engine, run_id))
    found = _fit(powers, rates, known)
    kernels = _kernels(found.kernels, rates, run_id)
    if kernels.empty:
        raise NotFoundError(f"run {run['name']!r} has neither the power nor the counters of a kernel of this fit")
    return unit_powers(kernels, found, float(known.sms))


def _knows_nothing(engine: "Engine", run_id: int) -> bool:
    return store.mean_counters(engine, _counters(), [run_id]).empty and store.powers_of_loads(engine, [run_id]).empty


def _kernels(measured: pd.DataFrame, rates: pd.DataFrame, run_id: int) -> pd.DataFrame:
    """Return the kernels of a run: those whose power was measured, then others with counters, at the same rest."""
    own = measured[measured["run_id"] == run_id]
    others = rates[rates["run_id"] == run_id]
    if len(others):
        others = rates_by_kernel(others)
        others = others[~others["kernel"].isin(own["full_name"]) & ~others["kernel_short"].isin(own["kernel"])]
        names = others["kernel"].where(others["kernel"].isin(measured["kernel"]), others["kernel_short"])
        others = others.assign(kernel=names, window=others["kernel_short"], active_sms=None, mean_power_w=None,
                               idle_power_w=measured["idle_power_w"].median())  # fmt: skip
    parts = [frame.astype(object) for frame in (own, others) if len(frame)]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _fit(powers: pd.DataFrame, rates: pd.DataFrame, device: specs.Device) -> Components:
    own = powers[[name is not None and _is(str(name), device.name) for name in powers["device"]]]
    kernels = kernels_with_power(own, rates)
    if kernels.empty:
        raise NotFoundError(
            f"no kernel has both a power and counters on {device.name}; {len(own)} loads have a power; mark each with "
            "the name of its kernel, and upload a profile of the kernels on this device"
        )
    return fit_component_power(kernels, float(device.sms))


def _counters() -> list[str]:
    return [unit.counter for unit in specs.power_units() if unit.counter is not None]


def _is(name: str, device: str) -> bool:
    try:
        return specs.device(name).name == device
    except NotFoundError:
        return False
