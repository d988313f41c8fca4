"""``leakage``: static power against temperature. ``reference-power``: a power at another temperature."""

from profsvc.errors import UsageError
from profsvc.views.calculators.declaration import QUANTITIES, Answer, Calculator, Example, Input, Values, quantity

COLUMNS = ("temperature_c", "leakage_a", "relative", "static_power_w", "slope_w_per_c")


def leakage(values: Values) -> Answer:
    """Return leakage and static power at each temperature."""
    import numpy as np

    from profsvc.formulas.power.leakage import leakage_current, static_power

    T = np.array(values["temperature"])
    supply = values["vdd"]
    nominal = supply if values["vdd0"] is None else values["vdd0"]
    asked = supply, nominal, values["vth"], values["voff"], values["swing"]
    more = {"gain": values["gain"], "b_per_v": values["b"], "form": values["form"]}

    def current(at: np.ndarray) -> np.ndarray:
        return np.asarray(leakage_current(at, *asked, **more).value)

    def power(at: np.ndarray) -> np.ndarray:
        return np.asarray(static_power(supply, values["transistors"], values["k_design"], current(at)).value)

    now = current(T)
    slope = (power(T + 0.5) - power(T - 0.5)) / 1.0
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in zip(T, now, now / now[0], power(T), slope, strict=True)]
    scan = np.linspace(T.min() - 5, T.max() + 5, 60)
    figure = {
        "title": "Leakage against temperature", "x": "temperature (degC)", "y": "relative leakage",
        "series": [
            {"name": "model", "x": scan, "y": current(scan) / now[0]},
            {"name": "asked", "x": T, "y": now / now[0], "points": True},
        ],
    }  # fmt: skip
    notes = ["the constants of a technology are rarely public; compare relative values, or fit a coefficient: thermal"]
    return Answer(rows, COLUMNS, notes, figure)


def reference_power(values: Values) -> Answer:
    """Return a power at another temperature, with the interval of the coefficient."""
    from profsvc.formulas.power.leakage import delta_temperature, power_at_temperature
    from profsvc.formulas.thermal.coefficient.temperature_coefficient import given_coefficient

    T, reference = values["temperature"], values["reference"]
    span = values["lowest"], values["highest"]
    known = given_coefficient(values["coefficient"], values["error"], *span)
    if known.refusal:
        raise UsageError(
            f"{known.refusal}; seen: {values['coefficient']:g} W/degC with an error of {values['error']:g}, from "
            f"{span[0]:g} to {span[1]:g} degC"
        )
    away = float(delta_temperature(reference, T).value)
    ends = (known.coefficient_w_per_c, known.low_w_per_c, known.high_w_per_c)
    middle, *others = (float(power_at_temperature(values["power"], max(end, 0.0), away).value) for end in ends)
    rows = [
        quantity("corrected_power_w", middle, "W", f"power at {reference:g} degC"),
        quantity("corrected_low_w", min(others), "W", "lower end of its 95 % interval"),
        quantity("corrected_high_w", max(others), "W", "upper end of its 95 % interval"),
        quantity("correction_w", middle - values["power"], "W", "what the correction adds"),
    ]
    notes = []
    if not all(span[0] <= one <= span[1] for one in (T, reference)):
        notes.append(f"extrapolated: the coefficient was measured from {span[0]:g} to {span[1]:g} degC")
    return Answer(rows, QUANTITIES, notes)


CALCULATORS = (
    Calculator(
        name="leakage",
        title="Leakage against temperature",
        question="How does the leakage of a chip change with its temperature and voltage?",
        source="Hong2012, equations 33 and 34",
        inputs=(
            Input("temperature", "Temperatures; the first is the reference", "numbers", unit="degC", default="57,67,77",
                  above=-273),
            Input("vdd", "Supply voltage", unit="V", default="1", above=0),
            Input("vdd0", "Supply voltage for which the parameters hold; if empty: the same", unit="V", default="",
                  above=0),
            Input("vth", "Threshold voltage", unit="V", default="0.3"),
            Input("voff", "Offset voltage", unit="V", default="0"),
            Input("swing", "Sub-threshold swing coefficient n", default="1.5", above=0),
            Input("b", "Exponent of the supply voltage", unit="1/V", default="0"),
            Input("gain", "mu_0 C_ox W/L", unit="A/V^2", default="1e-6", above=0),
            Input("transistors", "Number of transistors", default="1.4e9", above=0),
            Input("k_design", "Factor of the design", default="1", above=0),
            Input("form", "as_published subtracts the offset voltage from the threshold", "choice",
                  default="consistent", choices=("consistent", "as_published")),
        ),
        answer=leakage,
        examples=(Example("Twenty degrees more at a threshold of 0.3 V: 1.68 times the leakage.",
                          {"temperature": "57,77"}),),
        functions=("power.leakage.leakage_current", "power.leakage.static_power"),
        accuracy="no error on measurements is on record; needed: power of an idle chip at several temperatures and "
        "voltages",
        has_figure=True,
    ),
    Calculator(
        name="reference-power",
        title="Power at a reference temperature",
        question="What would a measured power be at another temperature, with a coefficient known from elsewhere?",
        source="Hong2012, equations 55 to 57",
        inputs=(
            Input("power", "Measured power", unit="W", minimum=0),
            Input("temperature", "Temperature at which it was measured", unit="degC"),
            Input("reference", "Temperature that is wanted", unit="degC"),
            Input("coefficient", "Temperature coefficient of this board at this clock", unit="W/degC",
                  default="0.4545454545"),
            Input("error", "Its standard error", unit="W/degC", default="0", minimum=0),
            Input("lowest", "Lowest temperature at which it was measured", unit="degC", default="57"),
            Input("highest", "Highest temperature", unit="degC", default="79"),
        ),
        answer=reference_power,
        examples=(Example("A GTX280 with 10 W per 22 degC: 10 W less on the cold board than at 79 degC.",
                          {"power": "210", "temperature": "79", "reference": "57", "error": "0.05"}),),
        functions=("thermal.coefficient.temperature_coefficient.given_coefficient",
                   "power.leakage.power_at_temperature", "power.leakage.delta_temperature"),
        accuracy="a stream on an H200, 43 to 48 degC, coefficient of 40 nights, the 40 others: 7.2 W off, worst 26 W, "
        "of 490 W; without correction 6.7 and 28 W, so over 5 degC it gains nothing",
    ),
)  # fmt: skip
