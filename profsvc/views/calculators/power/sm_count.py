"""``sm-count``: the number of SMs with the most work per joule, and what fewer SMs save, from a measured sweep."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from profsvc.errors import UsageError, counted
from profsvc.views.calculators.declaration import Answer, Calculator, Example, Input, Values

if TYPE_CHECKING:
    import numpy as np

    from profsvc.formulas.power.core_count import CoreScan

COLUMNS = ("sms", "time_s", "power_w", "per_joule", "of_best", "energy_saved", "runtime_energy_saved",
           "gated_energy_saved")  # fmt: skip


def sm_count(values: Values) -> Answer:
    """Return work per joule and savings of each number of SMs; the best number stands in the notes."""
    import numpy as np

    from profsvc.formulas.numerics.flags import Flag
    from profsvc.formulas.power.core_count import energy_savings, optimal_cores_scan, perf_per_watt

    rows = sorted(values["table"], key=lambda row: float(row["sms"]))
    n, time, power = (np.array([row[name] for row in rows], np.float64) for name in ("sms", "time", "power"))
    errors = [np.array([row[name] or 0.0 for row in rows], np.float64) for name in ("time_error", "power_error")]
    if len(set(n)) < len(n) or len(n) < 2:
        raise UsageError("table needs at least two numbers of SMs, each once")
    total, idle = values["device_sms"], values["idle"]
    if total is not None and total < n[-1]:
        raise UsageError(f"device_sms is {total}, but the table has {n[-1]:g} SMs")
    scan = optimal_cores_scan(n, time, power, time_se_s=errors[0], power_se_w=errors[1], num_sms=total)
    work = perf_per_watt(1.0, time, power).value
    table: list[dict[str, Any]] = [
        {"sms": n[k], "time_s": time[k], "power_w": power[k], "per_joule": work[k],
         "of_best": work[k] / scan.per_watt_best}
        for k in range(len(n))
    ]  # fmt: skip
    notes = [_best(scan, n, total, refused=bool(int(scan.flags) & Flag.EXTRAPOLATED))]
    if total is None or n[-1] != total:
        notes.append("savings are relative to all SMs of the device: give device_sms, and measure that number")
    elif idle is None:
        notes.append("savings need the power at rest: give idle")
    else:
        saved = energy_savings(n, total, time, time[-1], power - idle, power[-1] - idle, idle)
        for row, both, above, gated in zip(table, saved.runtime_and_idle, saved.runtime, saved.gated, strict=True):
            row |= {"energy_saved": both, "runtime_energy_saved": above, "gated_energy_saved": gated}
        notes.append("gated: if idle SMs were switched off and drew nothing; a projection, not a measurement")
    notes += _law(n, power, n[-1] if total is None else total, idle)
    return Answer(table, COLUMNS, notes, _figure(n, work, scan))


def _best(scan: "CoreScan", n: Any, total: int | None, *, refused: bool) -> str:
    best, low, high = (float(x) for x in (scan.best, scan.low, scan.high))
    if refused:
        of = "" if total is None else f" of {total}"
        return f"no best number of SMs: the most work per joule is on the largest measured, {n[-1]:g}{of}; measure more"
    within = f"; {low:g} to {high:g} are equally good within the errors" if low < high else ""
    end = "; it is the smallest measured, fewer may be better" if best == n[0] > 1 else ""
    return f"most work per joule: {counted(format(best, 'g'), 'SM')}{within}{end}"


def _law(n: "np.ndarray[Any, Any]", power: Any, total: float, idle: float | None) -> Sequence[str]:
    """Return which law of power fits, its error on numbers left out, and the printed logarithmic law."""
    from profsvc.formulas.power.active_sms import MIN_LEVELS, fit_active_sms, fit_beta

    fit = fit_active_sms(n, power, total, idle)
    if not fit.law:
        return [f"no law of power: {len(n)} numbers of SMs; {MIN_LEVELS} are needed"]
    known = {law.law: law for law in fit.laws}
    words = [
        f"{name} {float(law.left_out_rms_w):.3g} W (worst {float(law.left_out_worst_w):.3g} W)"
        for name, law in known.items()
    ]
    notes = [f"power follows the {fit.law} law best; error on numbers left out: {', '.join(words)}"]
    if idle is not None:
        curve = fit_beta(n, power - idle, total)
        notes.append(
            f"printed law: {float(curve.max_sm_w):.4g} W * log10(alpha n + beta) above idle, beta "
            f"{float(curve.beta):.4g} (95 % {float(curve.low):.3g} to {float(curve.high):.3g}), alpha "
            f"{float(curve.alpha):.4g}, off by {float(curve.residual_sd_w):.3g} W"
        )
    return notes


def _figure(n: Any, work: Any, scan: "CoreScan") -> Mapping[str, Any]:
    mark = {"x": float(scan.best), "low": float(scan.low), "high": float(scan.high), "label": "most work per joule"}
    return {
        "title": "Work per joule over active SMs", "x": "active SMs", "y": "work per joule",
        "series": [{"name": "measured", "x": n, "y": work, "points": True}], "marks": [mark],
    }  # fmt: skip


TABLE = (
    Input("sms", "SMs that work", "integer", minimum=1),
    Input("time", "Time of the same work", unit="s", above=0),
    Input("power", "Mean power of the board", unit="W", above=0),
    Input("time_error", "Standard error of the time", unit="s", default="", minimum=0),
    Input("power_error", "Standard error of the power", unit="W", default="", minimum=0),
)
MEMORY_LOAD = """sms,time,power
1,282.8,142.93
16,17.63,233.17
33,9.127,302.93
66,5.228,399.58
99,4.245,451.20
132,3.954,473.19
"""
LIMITED = """sms,time,power
5,4,100.84
10,2,109.37
15,1.3333,115.21
20,1,119.67
25,0.995,123.26
30,0.99,126.28
"""
CALCULATORS = (
    Calculator(
        name="sm-count",
        title="Best number of SMs",
        question="On how many SMs does a kernel do the most work per joule, and what do fewer SMs save?",
        source="Hong2012, equations 44 to 47 and 62, sections 3.5.5 and 3.5.6",
        inputs=(
            Input("table", "The same work on several numbers of SMs", "table", maximum=500, columns=TABLE),
            Input("device_sms", "SMs of the device", "integer", default="", minimum=1),
            Input("idle", "Power at rest", unit="W", default="", minimum=0),
        ),
        answer=sm_count,
        examples=(
            Example("A memory-bound load of an H200, as measured: all SMs are best.",
                    {"table": MEMORY_LOAD, "device_sms": "132", "idle": "79.56"}),
            Example("A kernel that 20 of 30 SMs saturate, with power by equation 44: 20 SMs, as the source found.",
                    {"table": LIMITED, "device_sms": "30", "idle": "83"}),
        ),
        functions=(
            "power.core_count.optimal_cores_scan", "power.core_count.perf_per_watt", "power.core_count.energy_savings",
            "power.core_count.gating_saving", "power.active_sms.fit_active_sms", "power.active_sms.fit_beta",
        ),
        accuracy="power of a memory-bound load of an H200, each number of SMs left out: 4.4 W off, worst 7.3 W, of "
        "143 to 473 W",
        has_figure=True,
    ),
)  # fmt: skip
