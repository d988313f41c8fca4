"""``fit power``: which units and which law of active SMs predict the power of kernels, from a table of measurements."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from profsvc.errors import UsageError, counted
from profsvc.views.calculators.declaration import Answer, Calculator, Example, Input, Values

if TYPE_CHECKING:
    import numpy as np

    from profsvc.formulas.power.unit_choice import UnitChoice

UNITS = ("unit", "power_w", "at_rate", "per_rate_w", "meaning")
ERRORS = ("prediction", "error_percent", "rms_w", "worst_kernel", "worst_percent")
KERNELS = ("kernel", "measured_w", "predicted_w", "error_percent", "constant_percent", "regression_percent")
FIXED = {"base": "power that is always drawn", "active": "power of active SMs that does not depend on their work"}
METHODS = {
    "nested_w": "law and units chosen without the kernel",
    "left_out_w": "the model above fitted without the kernel (too small: the choice saw it)",
    "regression_w": "least squares on all units without it",
    "constant_w": "mean power of the other kernels",
}
MAX_UNITS, MAX_ROWS = 10, 2000


def fit_power(values: Values) -> Answer:
    """Return the units chosen, the errors of the ways to predict, or the kernels; the verdict stands in the notes."""
    import numpy as np

    from profsvc.formulas.power.unit_choice import choose_units

    rows = values["table"]
    if len(rows) > MAX_ROWS:
        raise UsageError(f"table has {len(rows)} rows; allowed: {MAX_ROWS}")
    units = _units(rows, values["per"])
    watts, sms = (_column(rows, name) for name in ("watts", "active_sms"))
    idle, per = _column(rows, "idle"), _column(rows, values["per"]) if values["per"] else np.ones(len(rows))
    rates = np.column_stack([_column(rows, name) / per for name in units])
    total = _num_sms(values["sms"], sms)
    has_idle = not np.isnan(idle).all()
    above = watts - idle if has_idle else watts
    names = [str(row["kernel"]) for row in rows]
    found = choose_units(rates, above, sms, total, names, rates_of=values["rates"], base=not has_idle)
    if not found.law:
        raise UsageError(f"{counted(len(set(names)), 'kernel')} are not enough to fit any unit; give at least 3")
    notes = _notes(found, names, watts, units)
    if values["show"] == "errors":
        return Answer([_errors(found, name, names, watts) for name in METHODS], ERRORS, notes)
    if values["show"] == "kernels":
        return Answer(_kernels(found, names, watts), KERNELS, notes)
    highest = [1.0, 1.0, *np.nanmax(rates, axis=0)]
    table = [
        {"unit": name, "power_w": watt * high, "at_rate": high, "per_rate_w": watt, "meaning": FIXED.get(name, "")}
        for name, watt, high in zip((*FIXED, *units), found.coefficients_w, highest, strict=True)
        if watt > 0
    ]
    return Answer(table, UNITS, notes)


def _units(rows: Sequence[Any], per: str | None) -> list[str]:
    known = {column.name for column in TABLE}
    units = [name for name in rows[0] if name not in known and name != per]
    if per and per not in rows[0]:
        raise UsageError(f"per is {per!r}, but the table has {', '.join(rows[0])}")
    if not 1 <= len(units) <= MAX_UNITS:
        has = counted(len(units), "column") + " of access rates"
        raise UsageError(f"table has {has}; allowed: 1 to {MAX_UNITS}; leave out those that repeat others")
    return units


def _column(rows: Sequence[Any], name: str) -> "np.ndarray[Any, np.dtype[np.float64]]":
    import numpy as np

    return np.array([row.get(name) for row in rows], dtype=np.float64)


def _num_sms(given: float | None, sms: Any) -> float:
    import numpy as np

    most = 1.0 if np.isnan(sms).all() else float(np.nanmax(sms))
    if given is not None and given < most:
        raise UsageError(f"sms is {given:g}, but the table has a kernel on {most:g} active SMs")
    return most if given is None else float(given)


def _shares(found: "UnitChoice", name: str, watts: Any) -> Any:
    return getattr(found, name) / watts


def _errors(found: "UnitChoice", name: str, names: Sequence[str], watts: Any) -> dict[str, Any]:
    import numpy as np

    share = np.abs(_shares(found, name, watts))
    known = np.isfinite(share).any()
    worst = int(np.nanargmax(share)) if known else 0
    return {
        "prediction": METHODS[name], "error_percent": 100 * np.nanmean(share) if known else None,
        "rms_w": getattr(found, name.replace("_w", "_rms_w")), "worst_kernel": names[worst] if known else None,
        "worst_percent": 100 * share[worst] if known else None,
    }  # fmt: skip


def _kernels(found: "UnitChoice", names: Sequence[str], watts: Any) -> list[dict[str, Any]]:
    nested, constant, plain = (100 * _shares(found, name, watts) for name in ("nested_w", "constant_w", "regression_w"))
    return [
        {"kernel": name, "measured_w": watts[k], "predicted_w": watts[k] + found.nested_w[k],
         "error_percent": nested[k], "constant_percent": constant[k], "regression_percent": plain[k]}
        for k, name in enumerate(names)
    ]  # fmt: skip


def _notes(found: "UnitChoice", names: Sequence[str], watts: Any, units: Sequence[str]) -> list[str]:
    from profsvc.formulas.power.max_power import MIN_RUNS

    chosen = [name for name, watt in zip((*FIXED, *units), found.coefficients_w, strict=True) if watt > 0]
    rows = {name: _errors(found, name, names, watts) for name in METHODS}
    kernels = len(set(names))
    notes = [f"{found.law} law over active SMs; {', '.join(chosen)} of {counted(len(units), 'unit')}"]
    notes += [
        f"{row['prediction']}: {row['error_percent']:.1f} % off ({row['rms_w']:.1f} W), at worst "
        f"{row['worst_percent']:.0f} % ({row['worst_kernel']})"
        for row in rows.values()
        if row["error_percent"] is not None
    ]
    if kernels < MIN_RUNS:
        notes.append(f"{counted(kernels, 'kernel')}: not enough to claim anything; {MIN_RUNS} are needed")
    elif not found.beats_constant:
        notes.append("not better than the mean power of the other kernels: do not use these values")
    else:
        notes.append("better than the mean power of the other kernels by more than chance")
    return notes


TABLE = (
    Input("kernel", "Name of the kernel", "text"),
    Input("watts", "Power during the kernel", unit="W", above=0),
    Input("active_sms", "SMs that worked; empty: all", default="", above=0),
    Input("idle", "Power at rest, subtracted; without it the fit finds it", unit="W", default="", minimum=0),
)
V100 = """kernel,watts,active_sms,l1,constant,shared,dram,l2,noc,pipeline
btree_k1,172.7,74.9,33.9,0,0,3.95,10.76,20.19,0.3268
btree_k2,157.0,76.8,23.42,0,0,3.189,8.312,15.46,0.2741
backprop_k1,219.8,72.5,16.7,0,17.74,8.899,16,30.2,0.5619
backprop_k2,152.1,70.5,32.9,0,0,14.65,20.53,38.78,0.2012
hotspot_k1,229.6,76.7,15.42,0,17.67,5.819,16.38,30.71,0.947
kmeans_k1,151.9,78.4,0.1145,4.865,0,13.86,21.43,29.09,0.1142
srad_v1_k1,188.5,64.7,27.44,0,0,5.221,16.9,33.77,0.532
parboil_sad_k1,142.5,79.8,1.513,0,1.532,1.37,2.809,5.556,0.2513
parboil_sgemm_k1,217.5,78.1,27.03,0,24.09,1.199,7.213,14.43,0.5496
parboil_mriq_k1,189.4,67.6,0.3312,25.46,0,0.2375,0.3315,0.663,0.5767
dct8x8_k1,111.9,72.2,1.35,32.49,4.738,1.354,3.384,5.414,0.06091
dct8x8_k2,130.1,49.2,11.25,0,8.441,5.628,11.25,22.51,0.1435
binomialOptions_k1,169.7,78.0,0.0007495,0.01734,12.28,0.0004684,0.0007495,0.001499,0.6457
fastWalshTransform_k1,121.5,77.4,17.32,0,0,16.48,17.34,34.68,0.0867
fastWalshTransform_k2,167.1,77.4,14.03,0,22.8,13.37,14.03,28.06,0.3837
histogram_k1,194.6,76.3,14.56,0,33.41,14.5,14.56,29.11,0.3362
mergeSort_k1,172.9,78.8,4.774,0,29.54,4.55,4.774,9.547,0.9137
mergeSort_k2,201.3,78.4,16.2,0,23.31,12.81,16.04,30.98,0.4481
quasirandomGenerator_k1,153.0,62.3,4.877,0.5906,0,3.658,4.877,9.754,0.611
quasirandomGenerator_k2,145.7,74.2,6.737,0,0,5.053,6.737,13.47,0.3074
sobolQRNG_k1,200.4,77.2,12.98,0,16.95,10.28,11.44,22.87,0.638
cutlass_k1,101.9,19.7,3.333,0.001144,4.128,2.948,3.333,6.665,0.2466
cutlass_k2,121.6,31.6,10.23,0.001122,6.415,4.737,10.23,20.46,0.3853
cutlass_k3,178.0,78.2,23.93,0.003956,14.27,3.52,23.93,47.85,0.8526
cudaTensorCoreGemm_k1,182.0,78.7,18.42,0,7.787,4.901,18.42,36.84,0.7381
"""
CALCULATORS = (
    Calculator(
        name="fit power",
        title="Power of the units from own measurements",
        question="Which units and which law of active SMs predict the power of kernels, and how well?",
        source="Hong2012, equations 36 to 48",
        inputs=(
            Input("table", "Kernels with their power, and a column of access rates or counters per unit", "table",
                  columns=TABLE, more_columns="Access rate or counter of a unit"),
            Input("sms", "SMs of the device; default: the most active SMs of the table", "integer", default="",
                  minimum=1),
            Input("per", "Column that divides all counters, such as cycles", "text", default=""),
            Input("rates", "Rates are the mean over the device, as profilers print them, or of an SM that works",
                  "choice", default="device", choices=("device", "sm")),
            Input("show", "Rows of the answer", "choice", default="units", choices=("units", "errors", "kernels")),
        ),
        answer=fit_power,
        examples=(
            Example("25 kernels of a Quadro V100 with 80 SMs: mean power at 65 degrees C and counters per cycle, from "
                    "the public tables of AccelWattch and GPGPU-Sim; kernels that they number are paired in order.",
                    {"table": V100, "sms": "80"}),
        ),
        functions=("power.unit_choice.choose_units",),
        accuracy="25 kernels of a V100, law and units chosen without the kernel: 12.9 % off, worst 58 %; least squares "
        "on all units 14.5 %, a constant 18.8 %",
    ),
)  # fmt: skip
