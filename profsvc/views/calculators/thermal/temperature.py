"""``temperature``: rise, peak and leakage of a board from given constants."""

from profsvc.views.calculators.declaration import QUANTITIES, Answer, Calculator, Example, Input, Values, quantity

POINTS = 200


def temperature(values: Values) -> Answer:
    """Return what a load does to the temperature of a board, and the warmth to its power."""
    import numpy as np

    from profsvc.formulas.power.leakage import delta_temperature, power_at_temperature
    from profsvc.formulas.thermal import rc_model
    from profsvc.formulas.thermal.load_plan import time_to_limit_s
    from profsvc.formulas.thermocouples.emf import saturation

    power, idle, sigma = values["power"], values["idle"], values["sigma"]
    start = idle if values["start"] is None else values["start"]
    intensity, notes = _intensity(values)
    rise = float(
        rc_model.max_rise(
            power, intensity, values["mu"], values["lam"], values["rho"], sigma, form=values["form"]
        )
    )  # fmt: skip
    if not np.isfinite(rise):
        notes.append("mu times sigma is 1 or more: nothing would stop the board from warming")
    asked = values["duration"], values["rc_rise"]
    peak = rc_model.peak_temperature(idle, rise, sigma, *asked, start)
    time = np.linspace(0, values["duration"], POINTS)
    warming = rc_model.temperature(time, start, idle + rise - start, values["rc_rise"])
    cooling = rc_model.temperature(time, idle, warming[-1] - idle, values["rc_decay"], kind="decay")
    above = delta_temperature(warming, idle).value
    added = power_at_temperature(power, sigma, above).value - power
    rows = [
        quantity("settled_rise_c", rise, "degC", "rise above idle if the load ran for ever"),
        quantity("peak_temperature_c", float(peak.temperature_c), "degC", "highest temperature of the plan"),
        quantity("settled_share", float(saturation(*asked)), "1", "share of the rise that the load makes"),
        quantity("leakage_w", float(peak.added_power_w), "W", "power that the warmth adds at the peak"),
        quantity("leakage_share", float(peak.added_power_w) / power if power else None, "1",
                 "the same as a share of the power of the cold board"),
        quantity("heat_energy_j", float(np.trapezoid(added, time)), "J", "energy that the warmth adds"),
        quantity("cooled_temperature_c", float(cooling[-1]), "degC", "as long after the load as it ran"),
    ]  # fmt: skip
    figure = {
        "title": "Temperature under a load, and after it", "x": "time (s)", "y": "temperature (degC)", "marks": [],
        "series": [
            {"name": "under the load", "x": time, "y": warming},
            {"name": "after it", "x": time + values["duration"], "y": cooling},
        ],
    }  # fmt: skip
    if (limit := values["limit"]) is not None:
        until = time_to_limit_s(time, warming, limit)
        if is_reached := bool(np.isfinite(until)):
            figure["marks"] = [{"x": until, "label": f"limit {limit:g} degC"}]
        else:
            notes.append(f"the limit of {limit:g} degC is not reached")
        rows.append(quantity("time_to_limit_s", until if is_reached else None, "s", "until the limit is reached"))
    return Answer(rows, QUANTITIES, notes, figure)


def _intensity(values: Values) -> tuple[float, list[str]]:
    """Return the memory instructions per other instruction, given as such or as two counts."""
    from profsvc.formulas.thermal.rc_model import memory_intensity

    if values["memory_instructions"] is None:
        return values["intensity"], []
    found = float(memory_intensity(values["memory_instructions"], values["other_instructions"]))
    return found, [f"memory instructions per other instruction: {found:.4g}"]


CALCULATORS = (
    Calculator(
        name="temperature",
        title="Temperature of a board under a load",
        question="How hot does a board get, after what time, and how much power and energy does its warmth add?",
        source="Hong2012, equations 49 to 57 and table 9",
        inputs=(
            Input("power", "Power above idle, of the cold board", unit="W", minimum=0),
            Input("intensity", "Memory instructions per other instruction", default="0", minimum=0),
            Input("memory_instructions", "Instead: number of memory instructions", default="", minimum=0),
            Input("other_instructions", "With it: number of all others", default="1", above=0),
            Input("duration", "How long the load runs", unit="s", default="600", above=0),
            Input("start", "Temperature at the start; if empty: idle", unit="degC", default=""),
            Input("limit", "Temperature whose time is wanted", unit="degC", default=""),
            Input("idle", "Temperature of the idle board", unit="degC", default="57"),
            Input("mu", "Rise per watt", unit="degC/W", default="0.12", minimum=0),
            Input("lam", "Rise of any load (lambda)", unit="degC", default="5.5"),
            Input("rho", "Rise per unit of intensity", unit="degC", default="21.505"),
            Input("rc_rise", "Time constant of warming", unit="s", default="35", above=0),
            Input("rc_decay", "Time constant of cooling", unit="s", default="60", above=0),
            Input("sigma", "Temperature coefficient of the power", unit="W/degC", default="0.4545454545", minimum=0),
            Input("form", "consistent: from the cold power; fixed_point: the warmth feeds back", "choice",
                  default="consistent", choices=("consistent", "fixed_point")),
        ),
        answer=temperature,
        examples=(
            Example("Support vector machines on the GTX280 of table 9: 78 degC after 600 s, 10 W of leakage.",
                    {"power": "115.7", "memory_instructions": "1", "other_instructions": "13.3", "limit": "75"}),
            Example("Integer arithmetic on the same board: 68 degC, 5 W.", {"power": "45.83"}),
        ),
        functions=(
            "thermal.rc_model.max_rise", "thermal.rc_model.memory_intensity", "thermal.rc_model.peak_temperature",
            "thermal.rc_model.temperature", "thermocouples.emf.saturation",
            "power.leakage.delta_temperature", "power.leakage.power_at_temperature",
        ),
        accuracy="with constants that thermal fits to a log of an H200, loads left out of the fit: 0.30 degC on "
                 "average, 0.63 at worst; the constants of the GTX280 are printed without an error",
        has_figure=True,
    ),
)  # fmt: skip
