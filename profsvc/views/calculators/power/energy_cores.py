"""``energy cores``: speedup and energy efficiency with other numbers of cores and other clocks."""

from profsvc.errors import UsageError, counted
from profsvc.views.calculators.declaration import Answer, Calculator, Example, Input, Values

COLUMNS = ("cores", "clock_mhz", "time_s", "power_w", "energy_j", "speedup", "efficiency", "better")
QUADRANTS = {2: "time and energy", 1: "time only", 0: "energy only", -1: "neither"}


def energy_cores(values: Values) -> Answer:
    """Return time, power and energy of each number of cores at each clock, over the first of both."""
    import numpy as np

    from profsvc.formulas.power import energy as formulas

    if values["idle_power"] > values["power"]:
        raise UsageError(f"idle_power is {values['idle_power']:g} W but power is {values['power']:g} W")
    cores, clock = (x.ravel() for x in np.meshgrid(values["cores"], values["clock"], indexing="ij"))
    scale, base = cores[0] * clock[0], values["power"] - values["idle_power"]
    # The weight of the benchmark is what the first cores add at the first clock.
    weight = base / (cores[0] * clock[0] ** values["exponent"])
    speed = formulas.rate(cores, 1 / scale, clock, values["slowdown"]).value
    time = values["time"] * formulas.rate(cores[0], 1 / scale, clock[0]).value / speed
    time[0] = values["time"]
    power = formulas.dyn_power(cores, clock, weight, values["exponent"]).value + values["idle_power"]
    gain = formulas.efficiency(time[0], power[0], time, power)
    energy = formulas.energy(power, time).value
    columns = (cores, clock, time, power, energy, gain.speedup, gain.efficiency, [QUADRANTS[q] for q in gain.quadrant])
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in zip(*columns, strict=True)]
    series = [
        {"name": counted(format(number, "g"), "core"),
         "x": gain.speedup[cores == number], "y": gain.efficiency[cores == number],
         "points": True}
        for number in dict.fromkeys(values["cores"])
    ]  # fmt: skip
    figure = {"title": "Energy efficiency over speedup", "x": "speedup", "y": "energy efficiency", "log": "xy",
              "series": series}  # fmt: skip
    notes = [f"over {counted(format(cores[0], 'g'), 'core')} at {clock[0]:g} MHz; better says what is less than there"]
    line = formulas.linearity(gain.speedup, gain.efficiency)
    if line.curvature == line.curvature:
        notes.append(
            f"slope of efficiency over speedup {float(line.slope):.3g}, second derivative {float(line.curvature):.3g}"
        )
    return Answer(rows, COLUMNS, notes, figure)


CALCULATORS = (
    Calculator(
        name="energy cores",
        title="Energy with other cores and clocks",
        question="What do more cores or another clock do to time and energy?",
        source="Hong2012, section A.2, equations 104 to 109",
        inputs=(
            Input("cores", "Numbers of cores, the measured one first", "numbers", default="1,2,4,8", above=0),
            Input("clock", "Clocks, the measured one first", "numbers", unit="MHz", default="1000", above=0),
            Input("time", "Time on the first cores at the first clock", unit="s", default="1", above=0),
            Input("power", "Power there", unit="W", above=0),
            Input("idle_power", "Of this, power that depends on neither", unit="W", minimum=0),
            Input("exponent", "Power of the clock in the dynamic power: 3 where the voltage follows it", default="3",
                  above=0, maximum=6),
            Input("slowdown", "Factor by which another limit slows all but the first", default="1", minimum=1),
        ),
        answer=energy_cores,
        examples=(
            Example("Cores that add 10 W each to 90 W, at two clocks.",
                    {"cores": "1,2,4,8", "clock": "1000,1500", "power": "100", "idle_power": "90"}),
        ),
        functions=("power.energy.rate", "power.energy.dyn_power", "power.energy.efficiency", "power.energy.energy",
                   "power.energy.linearity"),
        accuracy="a memory load of an H200, from 1 and 16 SMs to 132: time 46 % too short, power 97 % too high, energy"
        " 7 % too high (worst 10 %, on 66); clocks not measured",
        has_figure=True,
    ),
)  # fmt: skip
