"""The power of each unit of a device, of the kernels of a run, and of numbers of SMs, as text for a terminal."""

from collections.abc import Mapping
from typing import Any

from profsvc.errors import counted
from profsvc.reports.rows import cell, render, visible
from profsvc.reports.text.cells import middle

UNITS = {
    "unit": "unit",
    "max_power_w": "W at full utilization",
    "interval": "range with one kernel left out",
    "meaning": "meaning",
}
KERNELS = {
    "run": "run", "kernel": "kernel", "mean_power_w": "W", "predicted_w": "W predicted", "error_w": "error W",
    "constant_error_w": "error W of the mean",
}  # fmt: skip

OF_RUN = {"kernel": "kernel", "measured_power_w": "measured", "predicted_power_w": "predicted",
          "interval": "95 % of errors", "error_percent": "error %", "idle_power_w": "idle"}  # fmt: skip
UNIT_PREFIX = "unit_power_w_"
SM_COUNTS = {
    "sms": "SMs", "relative_speed": "speed", "power_w": "W", "of_best": "work per J, of best",
    "energy_saved": "energy saved", "runtime_energy_saved": "above idle", "gated_energy_saved": "gated",
}  # fmt: skip
SHARES = ("of_best", "energy_saved", "runtime_energy_saved", "gated_energy_saved")


def components(view: Mapping[str, Any], width: int | None = None, *, with_kernels: bool = False) -> str:
    """Return the power of the units, the error of the fit and, on request, the kernels."""
    rows = [row | {"interval": f"{cell(row['low'])} to {cell(row['high'])}"} for row in view["units"]]
    lines = [f"{view['device']}: {counted(view['runs'], 'kernel')} with power and counters", ""]
    lines += _table(UNITS, rows, width)
    errors = [f"{view[f'{who}_rms_w']:.1f} W ({100 * view[f'{who}_share']:.1f} %)" for who in ("left_out", "constant")]
    lines += ["", f"error for a kernel left out: {errors[0]}{_worst(view)}; of the mean of the others: {errors[1]}"]
    lines += [f"condition number {view['condition']:.3g}", view["verdict"]]
    if view["left_out_windows"]:
        lines.append(f"left out: {counted(view['left_out_windows'], 'window')} with a throttled clock")
    if with_kernels:
        rows = [row | {"kernel": middle(str(row["kernel"]), 40)} for row in view["kernels"]]
        lines += ["", *_table(KERNELS, rows, width)]
    return "\n".join(visible(line) for line in lines) + "\n"


def _worst(view: Mapping[str, Any]) -> str:
    """Return the kernel with the largest relative error."""
    known = [row for row in view["kernels"] if row["error_w"] == row["error_w"]]
    if not known:
        return ""
    worst = max(known, key=lambda row: abs(row["error_w"]) / row["mean_power_w"])
    share = 100 * abs(worst["error_w"]) / worst["mean_power_w"]
    return f", worst {share:.0f} % ({middle(str(worst['kernel']), 40)})"


def unit_powers(view: Mapping[str, Any], width: int | None = None) -> str:
    """Return the power of each unit of the kernels of a run, beside their measured power."""
    units = [name for name in view["columns"] if name.startswith(UNIT_PREFIX)]
    shown = [name for name in units if any(row.get(name) for row in view["rows"])]
    heads = OF_RUN | {name: name.removeprefix(UNIT_PREFIX) for name in shown}
    rows = []
    for row in view["rows"]:
        between = "" if row["low"] is None else f"{row['low']:.0f} to {row['high']:.0f}"
        one = {"kernel": middle(str(row["kernel"]), 40), "interval": between, "error_percent": row["error_percent"]}
        rows.append({**row, **one})
    lines = [f"power of each unit in W, run {view['run']['name']} (id {view['run']['run_id']})", ""]
    lines += _table(heads, rows, width)
    lines += ["", *view["notes"], *dict.fromkeys(row["reason"] for row in view["rows"] if row["reason"])]
    return "\n".join(visible(line) for line in lines) + "\n"


def sm_counts(view: Mapping[str, Any], width: int | None = None) -> str:
    """Return power and savings on several numbers of SMs, and the best number of each load or model."""
    rows = [row | {name: _percent(row.get(name)) for name in SHARES} for row in view["rows"]]
    first = ("load", "sensor") if "load" in view["columns"] else ("model",)
    heads = {name: name for name in first} | SM_COUNTS
    lines = [f"power on several numbers of SMs, run {view['run']['name']} (id {view['run']['run_id']})", ""]
    lines += _table({name: title for name, title in heads.items() if name in view["columns"]}, rows, width)
    lines += ["", *(best_sms_words(row) for row in view["best"]), *view["notes"]]
    return "\n".join(visible(line) for line in lines) + "\n"


def best_sms_words(row: Mapping[str, Any]) -> str:
    """Return the best number of SMs in words, with the error of the law.

    >>> best_sms_words({"load": "mem", "sensor": None, "best_sms": 99.0, "low": 66.0, "high": 132.0, "law": None,
    ...              "reason": None})
    'mem: most work per joule on 99 SMs (66 to 132 are equally good within the errors)'
    """
    name = ", ".join(str(row[part]) for part in ("load", "sensor") if row[part])
    if row["best_sms"] is None:
        words = f"{name}: no best number of SMs"
    else:
        words = f"{name}: most work per joule on {counted(format(row['best_sms'], '.0f'), 'SM')}"
        if row["low"] is not None and row["low"] < row["high"]:
            words += f" ({row['low']:.0f} to {row['high']:.0f} are equally good within the errors)"
    if row["reason"]:
        words += f"; {row['reason']}"
    if row["law"] and row["left_out_rms_w"] is not None:
        words += f"; {row['law']} law, off by {row['left_out_rms_w']:.1f} W (worst {row['left_out_worst_w']:.1f} W) on "
        words += "SM counts left out"
    return words


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} %"


def _table(heads: Mapping[str, str], rows: list[dict[str, Any]], width: int | None) -> list[str]:
    named = [{title: row.get(name) for name, title in heads.items()} for row in rows]
    return str(render(list(heads.values()), named, "table", width=width)).splitlines()
