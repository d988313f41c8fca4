"""``energy frequency``: the clock at which a piece of work costs least energy, from a sweep of clocks."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from profsvc.errors import UsageError
from profsvc.views.calculators.declaration import Answer, Calculator, Example, Input, Values

if TYPE_CHECKING:
    from profsvc.analysis.power.sweeps.frequency import FrequencySweep
    from profsvc.formulas.power.energy import Linearity

COLUMNS = ("clock_mhz", "time_s", "power_w", "energy_j", "modelled_j", "error", "dynamic_w", "speedup",
           "efficiency", "published")  # fmt: skip
CURVE = 80
TABLE = (
    Input("clock", "Clock of the SMs", unit="MHz", above=0),
    Input("time", "Time of the same work", unit="s", above=0),
    Input("power", "Mean power", unit="W", above=0),
)


def energy_frequency(values: Values) -> Answer:
    """Return energy and efficiency at each clock; the best clock stands in the notes."""
    import numpy as np

    from profsvc.analysis.power.sweeps.frequency import fit_sweep
    from profsvc.formulas.power import energy as formulas

    rows = sorted(values["table"], key=lambda row: row["clock"])
    clock, time, power = (np.array([row[name] for row in rows]) for name in ("clock", "time", "power"))
    exponent, wanted = values["exponent"], values["baseline"] or clock[-1]
    base = np.flatnonzero(clock == wanted)
    if not base.size:
        raise UsageError(f"baseline is {wanted:g} MHz, but the table has {', '.join(f'{c:g}' for c in clock)}")
    sweep = fit_sweep(clock * 1e6, time, power, exponent)
    laws, relative = sweep.laws, clock / clock[-1]
    dynamic = formulas.dyn_power(1.0, relative, laws.dynamic_w, exponent).value
    modelled = laws.energy_j(relative, exponent)
    gain = formulas.efficiency(time[base[0]], power[base[0]], time, power)
    published = formulas.frequency_efficiency(clock, wanted, 1.0, laws.dynamic_w / clock[-1] ** exponent,
                                              laws.idle_w, exponent)  # fmt: skip
    energy = formulas.energy(power, time).value
    columns = (clock, time, power, energy, modelled, modelled / energy - 1, dynamic, gain.speedup,
               gain.efficiency, published.efficiency)  # fmt: skip
    table = [dict(zip(COLUMNS, row, strict=True)) for row in zip(*columns, strict=True)]
    line = formulas.linearity(gain.speedup, gain.efficiency)
    notes = [
        *_best(sweep, clock, energy), *_laws(sweep, clock[-1], exponent), _linear(line),
        "published is the efficiency if all the time followed the clock (equation 109)",
    ]  # fmt: skip
    return Answer(table, COLUMNS, notes, _figure(sweep, clock, energy, exponent))


def _best(sweep: "FrequencySweep", clock: Any, energy: Any) -> Sequence[str]:
    measured = int(energy.argmin())
    lowest = f"least energy measured: {energy[measured]:.4g} J at {clock[measured]:g} MHz"
    if sweep.reason:
        return [f"no best clock: {sweep.reason}", lowest]
    low, high = sweep.low_hz / 1e6, sweep.high_hz / 1e6
    open_ends = [f"the {name}est clock measured" for name, end, edge in (("low", low, clock[0]),
                 ("high", high, clock[-1])) if end == edge]  # fmt: skip
    beyond = f"; the interval reaches {' and '.join(open_ends)}" if open_ends else ""
    saved = 1 - sweep.energy_j / energy[-1]
    return [
        f"best clock: {sweep.best_hz / 1e6:.0f} MHz, 95 % interval {low:.0f} to {high:.0f} MHz{beyond}; "
        f"{sweep.energy_j:.4g} J by the laws, {100 * saved:.1f} % less than measured at {clock[-1]:g} MHz",
        lowest,
    ]


def _laws(sweep: "FrequencySweep", most: float, exponent: float) -> Sequence[str]:
    laws = sweep.laws
    notes = [
        f"time = {laws.fixed_s:.4g} s + {laws.clocked_s:.4g} s / f, power = {laws.idle_w:.4g} W + "
        f"{laws.dynamic_w:.4g} W * f^{exponent:g}, with f = clock / {most:g} MHz"
    ]
    if sweep.constant_error == sweep.constant_error:
        notes.append(
            f"energy of a point left out: {100 * sweep.left_out_error:.1f} % off on average, "
            f"{100 * sweep.left_out_worst:.1f} % at worst; the mean of the others is "
            f"{100 * sweep.constant_error:.1f} % off"
        )
    return notes


def _linear(line: "Linearity") -> str:
    if line.curvature_se != line.curvature_se:
        return "linearity of efficiency over speedup: not known; it needs four clocks"
    verdict = "linear within its error" if line.linear else "not linear"
    slope, curvature, _, low, high = (float(x) for x in line[:5])
    return (
        f"efficiency over speedup is {verdict}: slope {slope:.3g}, second derivative {curvature:.3g}, 95 % interval "
        f"{low:.3g} to {high:.3g}"
    )


def _figure(sweep: "FrequencySweep", clock: Any, energy: Any, exponent: float) -> Mapping[str, Any]:
    import numpy as np

    curve = np.linspace(clock[0], clock[-1], CURVE)
    marks = []
    if not sweep.reason:
        marks = [
            {"x": sweep.best_hz / 1e6, "low": sweep.low_hz / 1e6, "high": sweep.high_hz / 1e6, "label": "best clock"}
        ]
    return {
        "title": "Energy over the clock" if not sweep.reason else "Energy over the clock: no optimum measured",
        "x": "clock (MHz)", "y": "energy (J)",
        "series": [
            {"name": "laws of time and power", "x": curve, "y": sweep.laws.energy_j(curve / clock[-1], exponent)},
            {"name": "measured", "x": clock, "y": energy, "points": True},
        ],
        "marks": marks,
    }  # fmt: skip


BACKPROP = """clock (MHz),time (ms),power (W)
500,0.43198,41.94
600,0.40197,42.20
700,0.39177,43.47
800,0.38169,45.77
900,0.38153,49.18
1000,0.37979,50.93
"""
FAST_MEMORY = """clock (MHz),time (ms),power (W)
1680,0.165229,117.23
1780,0.164604,118.44
1880,0.164704,121.64
1980,0.165347,122.89
2080,0.165463,126.11
"""
CALCULATORS = (
    Calculator(
        name="energy frequency",
        title="Best clock for energy",
        question="At which clock does a piece of work cost least energy, and is efficiency linear in speedup?",
        source="Hong2012, sections A.6 and A.7, equations 107, 109 and 115 to 117",
        inputs=(
            Input("table", "The same work at several clocks", "table", maximum=200, columns=TABLE),
            Input("exponent", "Power of the clock in the dynamic power: 3 where the voltage follows it",
                  default="3", above=1, maximum=6),
            Input("baseline", "Clock of speedup 1; default: the highest", unit="MHz", default="", above=0),
        ),
        answer=energy_frequency,
        examples=(
            Example("backprop at six core clocks, the memory clock at 500 MHz: the public measurements of "
                    "NV-DVFS-Benchmark. The optimum is inside.", {"table": BACKPROP}),
            Example("nn of an RTX 2070 Super, from GPU-DVFS-Job-Schedule. Its time does not follow the clock, so the "
                    "optimum lies below the clocks that were measured.", {"table": FAST_MEMORY}),
            Example("Half the time at 1.2 times the power: speedup 2 and efficiency 1.667 of equation 102.",
                    {"table": "clock,time,power\n1000,1,100\n2000,0.5,120\n", "baseline": "1000"}),
        ),
        functions=tuple(f"power.energy.{name}" for name in (
            "energy", "dyn_power", "frequency_efficiency", "frequency_optimum", "linearity", "efficiency")),
        accuracy="seven kernels of two GPUs (NV-DVFS-Benchmark, GPU-DVFS-Job-Schedule), each clock left out: energy "
        "0.6 to 3.3 % off, worst 6.5 %; a constant 1.1 to 12.5 % off",
        has_figure=True,
    ),
)  # fmt: skip
