"""``fit temperature``: parameters of the rise of a board from a table of benchmarks."""

from profsvc.errors import UsageError
from profsvc.views.calculators.declaration import Answer, Calculator, Example, Input, Values

COLUMNS = ("quantity", "value", "low", "high", "unit", "meaning")
MADE_UP = """benchmark,rise (degC),power (W),intensity
int,11.2,45.8,0
fp,12.9,62,0.01
bs,19.1,80,0.19
sepia,18.2,104,0.02
svm,20.8,115.7,0.075
cmem,26.1,120,0.28
"""


def fit(values: Values) -> Answer:
    """Return the parameters with their intervals, and the error of each benchmark left out of the fit."""
    import numpy as np

    from profsvc.formulas.thermal.rc_model import max_rise
    from profsvc.formulas.thermal.time_constants.rc_fits import fit_max_rise

    rows = values["table"]
    rise, power, intensity = (np.array([row[name] for row in rows]) for name in ("rise", "power", "intensity"))
    found = fit_max_rise(rise, power, intensity)
    if not np.isfinite(found.mu):
        raise UsageError(
            f"table: {len(rows)} benchmarks do not give three parameters; at least four of different intensity are "
            "needed, whose power and intensity do not go together"
        )
    units = {"mu": ("degC/W", "rise per watt"), "lambda": ("degC", "rise of any load"),
             "rho": ("degC", "rise per unit of intensity")}  # fmt: skip
    parts = zip(units.items(), (found.mu, found.lam, found.rho), found.low, found.high, strict=True)
    shown = [
        dict(zip(COLUMNS, (name, value, low, high, unit, words), strict=True))
        for (name, (unit, words)), value, low, high in parts
    ]
    errors, constant = np.full(len(rows), np.nan), np.full(len(rows), np.nan)
    for k, name in enumerate(row["benchmark"] for row in rows):
        others = np.arange(len(rows)) != k
        part = fit_max_rise(rise[others], power[others], intensity[others])
        errors[k] = float(max_rise(power[k], intensity[k], part.mu, part.lam, part.rho)) - rise[k]
        constant[k] = rise[others].mean() - rise[k]
        words = "predicted minus measured rise, left out of the fit"
        cells = (f"left_out_error_c, {name or k + 1}", errors[k], None, None, "degC", words)
        shown.append(dict(zip(COLUMNS, cells, strict=True)))
    known = errors[np.isfinite(errors)]
    notes = [
        f"left out of the fit, benchmarks are predicted within {np.abs(known).mean():.2g} degC on average, "
        f"{np.abs(known).max():.2g} at worst; the mean of the others within {np.abs(constant).mean():.2g}"
        if known.size
        else "too few benchmarks to leave one out"
    ]
    fitted = max_rise(power, intensity, found.mu, found.lam, found.rho)
    figure = {
        "title": "Measured and fitted rise", "x": "measured rise (degC)", "y": "fitted rise (degC)",
        "series": [
            {"name": "benchmarks", "x": rise, "y": fitted, "points": True},
            {"name": "equal", "x": [rise.min(), rise.max()], "y": [rise.min(), rise.max()]},
        ],
    }  # fmt: skip
    return Answer(shown, COLUMNS, notes, figure)


CALCULATORS = (
    Calculator(
        name="fit temperature",
        title="Fit of the temperature rise of a board",
        question="How much does a board warm per watt, and how much more by memory instructions?",
        source="Hong2012, equation 53 and table 9",
        inputs=(
            Input(
                "table", "Benchmarks, each run until its temperature stood still", "table", maximum=200,
                columns=(
                    Input("benchmark", "Name", "text", default=""),
                    Input("rise", "Rise above idle", unit="degC"),
                    Input("power", "Power above idle, of the cold board", unit="W", minimum=0),
                    Input("intensity", "Memory instructions per other instruction", minimum=0),
                ),
            ),
        ),
        answer=fit,
        examples=(Example("Made-up benchmarks near the law of table 9, which the source prints without its data.",
                          {"table": MADE_UP}),),
        functions=("thermal.time_constants.rc_fits.fit_max_rise", "thermal.rc_model.max_rise"),
        accuracy="no error on measurements is on record; needed: settled temperatures of several loads with counts of "
        "their memory instructions",
        has_figure=True,
    ),
)  # fmt: skip
