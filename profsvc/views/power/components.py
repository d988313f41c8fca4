"""The power of each unit of a device, fitted to all kernels with power and counters, and of the kernels of a run."""

from typing import TYPE_CHECKING, Any

from profsvc import store
from profsvc.analysis.power.components import MODEL, Components
from profsvc.pipeline.component_power import explained_unit_powers, fit_of_device

if TYPE_CHECKING:
    from sqlalchemy import Engine

UNITS = ("unit", "max_power_w", "low", "high", "meaning")
KERNELS = ("run", "kernel", "mean_power_w", "predicted_w", "error_w", "constant_error_w")
OF_RUN = ("kernel", "measured_power_w", "predicted_power_w", "low", "high", "error_percent", "idle_power_w")


def components(engine: "Engine", device: str | None = None) -> dict[str, Any]:
    """Return the power of the units of a device, the error of the fit on kernels left out, and all kernels.

    A kernel counts once per run, with one power sensor. Windows with a throttled clock are excluded.
    """
    fit = fit_of_device(engine, device)
    found = fit.found
    return {
        "device": fit.device.name,
        "runs": len(found.kernels),
        "left_out_windows": fit.left_out_windows,
        **{name: getattr(found, name) for name in Components._fields if name not in ("units", "kernels", "without_w")},
        "units": found.units.to_dict("records"),
        "kernels": found.kernels.drop(columns="full_name").to_dict("records"),
    }


def unit_powers(engine: "Engine", name: str | int) -> dict[str, Any]:
    """Return the power of each unit for the kernels of a run, beside their measured power.

    It is computed from the runs of the project as they are now. Raise `NotFoundError` for what is missing.
    """
    run_id = store.find_run(engine, name)
    rows = explained_unit_powers(engine, run_id)
    return {"run": store.select(engine, "v1_runs", run_id=run_id)[0], **by_kernel(rows)}


def by_kernel(models: list[dict[str, Any]]) -> dict[str, Any]:
    """Return rows of the model of components as one row per kernel, with the columns of its units, and the notes."""
    found: dict[str, dict[str, Any]] = {}
    notes: dict[str, None] = {}
    units: dict[str, None] = {}
    for row in models:
        if row["model"] != MODEL:
            continue
        own = found.setdefault(str(row["window"]), {"kernel": row["window"], **dict.fromkeys(OF_RUN[1:])})
        own[row["quantity"]] = row["value"]
        if row["quantity"] == "predicted_power_w":
            own |= {"low": row.get("low"), "high": row.get("high"), "reason": row["reason"]}
            notes[str(row["form"]).removesuffix("; this kernel is left out")] = None
        if row["quantity"].startswith("unit_power_w_"):
            units[row["quantity"]] = None
    for row in found.values():
        measured, predicted = row["measured_power_w"], row["predicted_power_w"]
        row["error_percent"] = 100 * (predicted / measured - 1) if measured and predicted is not None else None
    return {"rows": [*found.values()], "columns": [*OF_RUN, *units, "reason"], "notes": [*notes]}
