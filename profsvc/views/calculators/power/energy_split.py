"""``energy split`` and ``energy shares``: the share of the work that a GPU should get beside a CPU."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from profsvc.errors import UsageError
from profsvc.views.calculators.declaration import Answer, Calculator, Example, Input, Values

if TYPE_CHECKING:
    from profsvc.analysis.power.sweeps.work_split import Devices, SplitSweep

COLUMNS = ("gpu_share_percent", "time_s", "energy_j", "speedup", "efficiency", "better")
MEASURED = ("gpu_share_percent", "time_s", "power_w", "energy_j", "modelled_s", "modelled_j", "error")
SHARES = ("program", "model_share_percent", "best_share_percent", "difference_points", "relative_error")
GIVEN = ("cpu_time", "gpu_time", "cpu_power", "gpu_power", "idle_power")
QUADRANTS = {2: "time and energy", 1: "time only", 0: "energy only", -1: "neither"}
STEPS, CURVE = 11, 101
SPLITS = (
    Input("gpu_share", "Share of the work that the GPU gets", unit="%", minimum=0, maximum=100),
    Input("time", "Time of all the work", unit="s", above=0),
    Input("power", "Mean power of the whole box", unit="W", default="", above=0),
    Input("cpu_power", "Instead of it: mean power of the CPU", unit="W", default="", minimum=0),
    Input("gpu_power", "With it: mean power of the GPU", unit="W", default="", minimum=0),
)


def energy_split(values: Values) -> Answer:
    """Return time and energy at each share; the best share stands in the notes."""
    missing = [name for name in GIVEN if values[name] is None]
    if values["table"] is not None:
        if given := [name for name in GIVEN if name not in missing]:
            raise UsageError(f"the table gives what {given[0]} says; leave out one of them")
        return _measured(values)
    if missing:
        raise UsageError(f"{', '.join(missing)}: missing; give all of {', '.join(GIVEN)}, or a table")
    return _given(values)


def _given(values: Values) -> Answer:
    import numpy as np

    from profsvc.analysis.power.sweeps.work_split import Devices, share_interval
    from profsvc.formulas.power.energy import efficiency
    from profsvc.formulas.power.energy_split import split

    devices = Devices(*(values[name] for name in GIVEN))
    form, objective = values["form"], values["objective"]
    transfer_s, busy = values["transfer_time"], values["busy"]
    best = devices.best(objective, form, transfer_s, busy)
    share = float(best.share)
    shares = np.unique(np.append(np.linspace(0, 1, STEPS), share))

    def at(x: Any) -> Any:
        rates = (1 / devices.cpu_s, 1 / devices.gpu_s)
        return split(1.0, x, *rates, devices.cpu_w, devices.gpu_w, devices.idle_w, transfer_s, busy, form)

    found = at(shares)
    alone = devices.cpu_s, devices.cpu_w + devices.idle_w
    quadrant = efficiency(*alone, found.time_s, found.energy_j / found.time_s).quadrant
    columns = (100 * shares, found.time_s, found.energy_j, found.speedup, found.efficiency, quadrant)
    rows = [dict(zip(COLUMNS, (*row[:-1], QUADRANTS[int(row[-1])]), strict=True)) for row in zip(*columns, strict=True)]
    time_error, power_error = values["time_error"] / 100, values["power_error"] / 100
    errors = Devices(time_error, time_error, power_error, power_error, power_error)
    low, high = share_interval(devices, errors, objective, form, transfer_s, busy) if any(errors) else (share, share)
    off = f", {100 * low:.1f} to {100 * high:.1f} % within the errors given" if any(errors) else ""
    notes = [
        f"best share of the GPU for {objective}: {100 * share:.1f} %{off}; {float(best.time_s):.4g} s, "
        f"{float(best.energy_j):.4g} J, speedup {float(best.speedup):.3g} and efficiency {float(best.efficiency):.3g} "
        "over the CPU alone",
        "better says what is less than on the CPU alone",
    ]
    if not any(errors):
        notes.append("no errors of the sensors were given, so the share has no interval")
    curve = np.linspace(0, 1, CURVE)
    figure = _figure(objective, curve, at(curve).energy_j, None, (share, low, high))
    return Answer(rows, COLUMNS, notes, figure)


def _measured(values: Values) -> Answer:
    import numpy as np

    from profsvc.analysis.power.sweeps.work_split import fit_splits, modelled

    rows = sorted(values["table"], key=lambda row: row["gpu_share"])
    share = np.array([row["gpu_share"] for row in rows]) / 100
    if 0 < share.max() <= 0.01:
        raise UsageError(f"gpu_share goes up to {100 * share.max():g} %, which looks like a fraction; give per cent")
    time, power = np.array([row["time"] for row in rows]), np.array([_power_of(row) for row in rows])
    sweep = fit_splits(share, time, power, values["objective"])
    fitted_time, fitted_energy = modelled(sweep.devices, share)
    energy = time * power
    columns = (100 * share, time, power, energy, fitted_time, fitted_energy, fitted_energy / energy - 1)
    table = [dict(zip(MEASURED, row, strict=True)) for row in zip(*columns, strict=True)]
    curve = np.linspace(share.min(), share.max(), CURVE)
    marked = None if sweep.reason else (sweep.share, sweep.low, sweep.high)
    figure = _figure(values["objective"], curve, modelled(sweep.devices, curve)[1], (share, energy), marked)
    return Answer(table, MEASURED, _said(sweep, values["objective"]), figure)


def _power_of(row: Mapping[str, Any]) -> float:
    both = (row["cpu_power"], row["gpu_power"])
    if (row["power"] is None) == (None in both) or (row["power"] is not None and any(x is not None for x in both)):
        raise UsageError(
            f"gpu_share {row['gpu_share']:g}: give the power of the box, or cpu_power and gpu_power, not both"
        )
    return float(row["power"] if row["power"] is not None else sum(both))


def _said(sweep: "SplitSweep", objective: str) -> Sequence[str]:
    lowest = f"best share among those measured: {100 * sweep.measured_share:g} %"
    if sweep.reason:
        return [f"no best share: {sweep.reason}", lowest]
    return [
        f"best share of the GPU for {objective}: {100 * sweep.share:.1f} %, 95 % interval {100 * sweep.low:.1f} to "
        f"{100 * sweep.high:.1f} %",
        lowest,
        _devices(sweep.devices),
        f"energy of a point left out: {100 * sweep.left_out_error:.1f} % off on average; the mean of the others is "
        f"{100 * sweep.constant_error:.1f} % off",
    ]


def _devices(devices: "Devices") -> str:
    return (
        f"all the work takes {devices.cpu_s:.4g} s on the CPU and {devices.gpu_s:.4g} s on the GPU; they add "
        f"{devices.cpu_w:.4g} W and {devices.gpu_w:.4g} W to {devices.idle_w:.4g} W"
    )


def _figure(objective: str, share: Any, energy: Any, measured: Any, marked: Any) -> Mapping[str, Any]:
    series = [{"name": "modelled", "x": 100 * share, "y": energy}]
    if measured is not None:
        series.append({"name": "measured", "x": 100 * measured[0], "y": measured[1], "points": True})
    marks = []
    if marked is not None:
        best, low, high = (100 * x for x in marked)
        marks = [{"x": best, "low": low, "high": high, "label": f"best for {objective}"}]
    return {"title": "Energy over the share of the GPU", "x": "share of the GPU (%)", "y": "energy (J)",
            "series": series, "marks": marks}  # fmt: skip


def energy_shares(values: Values) -> Answer:
    """Return the error of each modelled share; means and largest stand in the notes."""
    import numpy as np

    from profsvc.formulas.power.energy_split import share_errors

    rows = values["table"]
    model, best = (np.array([row[name] for row in rows]) for name in ("model_share", "best_share"))
    found = share_errors(model, best)
    each = [float(share_errors(m, b).relative_max) for m, b in zip(model, best, strict=True)]
    columns = ([row["program"] for row in rows], model, best, model - best, each)
    table = [dict(zip(SHARES, row, strict=True)) for row in zip(*columns, strict=True)]
    relative = f"{100 * float(found.relative_mean):.2f} % on average, {100 * float(found.relative_max):.0f} % at worst"
    if found.relative_mean != found.relative_mean:
        relative = "not known, because a best share is 0"
    notes = [
        f"relative error of the share: {relative}",
        f"difference: {float(found.points_mean):.2f} points on average, {float(found.points_max):.2f} at worst",
    ]
    return Answer(table, SHARES, notes)


FIGURE_147 = """program,model_share,best_share
1,96.42,95.56
2,91.89,96.72
3,84.22,47.28
4,83.76,43.70
5,84.34,60.71
6,87.36,83.24
7,88.56,88.96
8,91.05,89.97
9,77.49,82.50
10,85.76,87.57
11,89.76,88.53
12,91.74,95.15
13,93.57,95.98
14,94.30,95.96
"""
CALCULATORS = (
    Calculator(
        name="energy split",
        title="Best split of work between CPU and GPU",
        question="Which share of the work should the GPU get for least time, energy or a product of both?",
        source="Hong2012, sections A.3 and A.4, equations 110 to 114",
        inputs=(
            Input("table", "Measured splits of the same work", "table", default="", maximum=200, columns=SPLITS),
            Input("cpu_time", "Time of all the work on the CPU alone", unit="s", default="", above=0),
            Input("gpu_time", "Time of all the work on the GPU alone", unit="s", default="", above=0),
            Input("cpu_power", "Power that the CPU adds at work", unit="W", default="", minimum=0),
            Input("gpu_power", "Power that the GPU adds at work", unit="W", default="", minimum=0),
            Input("idle_power", "Power of the idle box with both in it", unit="W", default="", minimum=0),
            Input("transfer_time", "Time to move all the data to the GPU and back", unit="s", default="0", minimum=0),
            Input("busy", "Share of its power that a waiting device consumes", default="0", minimum=0, maximum=1),
            Input("objective", "What shall be least", "choice", default="energy",
                  choices=("energy", "time", "edp", "ed2p")),
            Input("time_error", "Error of the times given", unit="%", default="0", minimum=0, maximum=99),
            Input("power_error", "Error of the powers given, each on its own", unit="%", default="0", minimum=0,
                  maximum=99),
            Input("form", "as_published: both devices consume power to the end", "choice", default="consistent",
                  choices=("consistent", "as_published")),
        ),
        answer=energy_split,
        examples=(
            Example("A fast CPU and a slow GPU, series 9 to 12 of table 16: nothing should go to the GPU. The source "
                    "prints no numbers for fast and slow.",
                    {"cpu_time": "1", "gpu_time": "8", "cpu_power": "80", "gpu_power": "200", "idle_power": "100",
                     "time_error": "5", "power_error": "10"}),
            Example("A slow CPU and a fast GPU, series 5 to 8: nearly all should go to the GPU.",
                    {"cpu_time": "8", "gpu_time": "1", "cpu_power": "80", "gpu_power": "200", "idle_power": "100",
                     "time_error": "5", "power_error": "10"}),
            Example("Splits of a box whose CPU takes 10 s and adds 80 W, and whose GPU takes 4 s and adds 200 W, to "
                    "100 W.",
                    {"table": "gpu_share,time,power\n0,10,181\n20,8,198\n40,6,231\n60,4,303\n80,3.2,351\n100,4,302\n"}),
        ),
        functions=("power.energy_split.split", "power.energy_split.best_split", "power.energy.efficiency"),
        accuracy="no error on measurements is on record; needed: one program with its work divided between a CPU and a"
        " GPU, and power of both",
        has_figure=True,
    ),
    Calculator(
        name="energy shares",
        title="Errors of modelled work shares",
        question="How far are the shares of a model from the best shares found by trying all?",
        source="Hong2012, figure 147",
        inputs=(
            Input("table", "Modelled and best share of each program", "table", columns=(
                Input("program", "Name of the program", "text", default=""),
                Input("model_share", "Share by the model", unit="%", minimum=0, maximum=100),
                Input("best_share", "Best share when all were tried", unit="%", minimum=0, maximum=100),
            )),
        ),
        answer=energy_shares,
        examples=(
            Example("The 14 programs of figure 147: the 17 % of the source are the mean; the worst is 92 %.",
                    {"table": FIGURE_147}),
        ),
        functions=("power.energy_split.share_errors",),
        accuracy="14 programs of figure 147: 17.04 % of the share on average, 92 % at worst",
    ),
)  # fmt: skip
