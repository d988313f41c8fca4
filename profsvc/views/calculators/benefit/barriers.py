"""``fit barriers``: the cost of a barrier from measured versions of a kernel."""

from profsvc.errors import UsageError
from profsvc.views.calculators.declaration import (
    QUANTITIES,
    Answer,
    Calculator,
    Example,
    Input,
    Values,
    quantity,
)


def fit_barriers(values: Values) -> Answer:
    """Return Gamma with its standard error, and the time without barriers."""
    import numpy as np

    from profsvc.formulas.benefit import fit_gamma

    rows = values["versions"]
    time, count, one = (np.array([row[name] for row in rows]) for name in ("cycles", "barriers", "barrier_cycles"))
    fit = fit_gamma(time, count, one)
    if np.isnan(fit.Gamma):
        raise UsageError(
            "versions: all have the same cost of barriers; give two versions that differ in their barriers"
        )
    gamma, base = float(fit.Gamma), float(fit.base)
    found = [
        quantity("Gamma", gamma, "1", "cost of a barrier; the source takes 64"),
        quantity("standard error", float(fit.se), "1", "of Gamma; two versions have none"),
        quantity("time without barriers", base, "cycle", "extrapolated to no barrier"),
        quantity("explained share", float(fit.r2), "1", "of the differences between the versions"),
    ]
    predicted = base + gamma * count * one
    errors = np.abs(predicted / time - 1)
    notes = [f"the line misses the measured times by {errors.mean():.1%} on average, {errors.max():.1%} at most"]
    notes += ["a cost below 0: something other than barriers changed the time"] if gamma < 0 else []
    place = count * one
    ends = np.array([0.0, place.max()])
    figure = {
        "title": "Time over the cost of the barriers", "x": "barriers x cycles of one at Gamma 1", "y": "cycles",
        "series": [{"name": "fit", "x": ends, "y": base + gamma * ends},
                   {"name": "measured", "x": place, "y": time, "points": True}],
    }  # fmt: skip
    return Answer(found, QUANTITIES, notes, figure)


CALCULATORS = (
    Calculator(
        name="fit barriers",
        title="Cost of a barrier from measured versions",
        question="How many cycles does a barrier cost, from times of a kernel with more and with fewer barriers?",
        source="Kim2012, equations 4.7 and 4.8",
        inputs=(
            Input(
                "versions",
                "Versions of one kernel that computation bounds",
                "table",
                columns=(
                    Input("cycles", "Measured time in SM cycles", above=0),
                    Input("barriers", "Barriers that a warp executes", minimum=0),
                    Input("barrier_cycles", "Cycles of one barrier of each warp at Gamma 1: warps x latency x share of "
                          "memory instructions", above=0),
                ),
            ),
        ),
        answer=fit_barriers,
        examples=(
            Example("Versions whose times follow the Gamma of the source, 64.",
                    {"versions": "cycles,barriers,barrier_cycles\n1000,0,10\n1640,1,10\n2280,2,10\n3560,4,10\n"}),
        ),
        functions=("benefit.fit_gamma",),
        accuracy="no error on measurements is on record; needed: times of three versions of a kernel that differ in "
        "barriers alone",
        has_figure=True,
    ),
)  # fmt: skip
