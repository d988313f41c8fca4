"""``placement``, ``one-block`` and ``tpc-effect``: which SMs to use, and what their clusters cost."""

from itertools import combinations
from math import comb
from typing import Any

from profsvc.errors import UsageError
from profsvc.views.calculators.declaration import QUANTITIES, Answer, Calculator, Example, Input, Values, quantity

RANKED = ("rank", "cores", "tpcs", "active_tpcs", "distance_mm")
EFFECT = ("active_tpcs", "runs", "power_w", "temperature_c", "predicted_w", "worst_error_w")
MAX_OPTIONS = 100_000
SHOWN = 10
TABLE_12 = """cores,power (W),temperature (degC)
0-7-1-8,253.68,76.99
4-11-6-13,253.77,76.59
2-9-5-12,254.44,77.42
4-11-0-1,256.36,77.44
3-10-5-6,257.23,78.01
6-7-8-9,261.04,79.47
10-11-12-13,261.66,78.88
2-3-4-5,261.77,79.60
0-1-2-3,262.53,80.41
"""
TWO_ROWS = """tpc,x (mm),y (mm)
0,3,4
1,9,4
2,15,4
3,21,4
4,6,12
5,12,12
6,18,12
"""


def core_numbers(text: str) -> list[int]:
    """Return the numbers of active SMs.

    >>> core_numbers("0-7-1-8")
    [0, 7, 1, 8]
    """
    parts = text.split("-")
    if not all(part.isascii() and part.isdigit() and len(part) < 6 for part in parts):
        raise UsageError(f"cores {text[:40]!r} must be numbers with a hyphen between them, such as 0-7-1-8")
    found = [int(part) for part in parts]
    if len(set(found)) < len(found):
        raise UsageError(f"cores {text[:40]!r} name an SM twice")
    return found


def placement(values: Values) -> Answer:
    """Return the choices of active SMs, best first."""
    import numpy as np

    from profsvc.formulas.power.placement import rank_placements, tpc_of_core

    tpc = tpc_of_core(np.arange(values["sms"]), values["tpcs"])
    options = _options(values)
    x, y = _floor_plan(values)
    found = rank_placements(options, tpc, x, y)
    order = found.spread if values["kernel"] == "memory" else found.compact
    if found.active_tpcs[order[0]] < 0:
        raise UsageError(f"no option can be: each names an SM beyond {values['sms'] - 1}")
    best = [k for k in order[:SHOWN].tolist() if found.active_tpcs[k] >= 0]
    rows = [
        {
            "rank": rank,
            "cores": "-".join(map(str, options[k])),
            "tpcs": "-".join(map(str, sorted(set(tpc[options[k]].tolist())))),
            "active_tpcs": int(found.active_tpcs[k]),
            "distance_mm": found.distance_mm[k],
        }
        for rank, k in enumerate(best, 1)
    ]  # fmt: skip
    notes = [f"{len(options)} options; the best {len(best)} are shown"]
    notes += [] if x is not None else ["without a floor plan only the number of clusters counts"]
    figure = None
    if x is not None and y is not None:
        active = np.isin(np.arange(x.size), tpc[options[best[0]]])
        parts = [("active clusters", active), ("idle clusters", ~active)]
        figure = {
            "title": f"Best placement: {rows[0]['cores']}", "x": "x (mm)", "y": "y (mm)",
            "series": [{"name": name, "x": x[part], "y": y[part], "points": True} for name, part in parts],
        }  # fmt: skip
    return Answer(rows, RANKED, notes, figure)


def _options(values: Values) -> Any:
    """Return the choices as rows of core numbers: those of the table, else all of so many SMs."""
    import numpy as np

    if values["options"] is not None:
        named = [core_numbers(cell) for cell in values["options"].split(",")]
        if len({len(one) for one in named}) > 1:
            raise UsageError("options: all must have the same number of SMs")
        return np.array(named, dtype=np.int64)
    active, sms = values["active"], values["sms"]
    if active > sms:
        raise UsageError(f"active is {active}, but the device has {sms} SMs")
    if comb(sms, active) > MAX_OPTIONS:
        raise UsageError(
            f"{active} of {sms} SMs can be chosen in {comb(sms, active)} ways; at most {MAX_OPTIONS} are compared: "
            "give options, such as 0-7-1-8,0-1-2-3"
        )
    return np.array(list(combinations(range(sms), active)), dtype=np.int64)


def _floor_plan(values: Values) -> tuple[Any, Any]:
    import numpy as np

    if values["plan"] is None:
        return None, None
    places = {row["tpc"]: (row["x"], row["y"]) for row in values["plan"]}
    if sorted(places) != list(range(values["tpcs"])) or len(places) != len(values["plan"]):
        raise UsageError(f"plan: it must have one row for each cluster from 0 to {values['tpcs'] - 1}")
    x, y = np.array([places[k] for k in range(values["tpcs"])], np.float64).T
    return x, y


def one_block(values: Values) -> Answer:
    """Return whether one more block than SMs doubles the time."""
    from profsvc.formulas.power.placement import verify_one_block_per_sm

    found = verify_one_block_per_sm(values["time"], values["time_more"], values["tolerance"])
    holds = bool(found.holds)
    rows = [
        quantity("ratio", float(found.ratio), "1", "time with one more block, divided by the time without it"),
        quantity("holds", "yes" if holds else "no", "", "whether each SM runs one block at a time"),
    ]
    notes = [] if holds else ["the ratio is not 2: an SM holds several blocks, or the SMs were not all in use; make "
                              "each block use more shared memory or registers"]  # fmt: skip
    return Answer(rows, QUANTITIES, notes)


def tpc_effect(values: Values) -> Answer:
    """Return power and temperature by number of active clusters, and their slopes over the configurations."""
    import numpy as np

    from profsvc.formulas.power import placement as formulas

    rows = values["table"]
    sets = [core_numbers(row["cores"]) for row in rows]
    if len({len(one) for one in sets}) > 1:
        raise UsageError(
            "table: all configurations must have the same number of active SMs; compare one number at a time"
        )
    n = np.array([len(set(formulas.tpc_of_core(one, values["tpcs"]).tolist())) for one in sets])
    power, heat = (np.array([row[name] for row in rows]) for name in ("power", "temperature"))
    found = formulas.tpc_effect(n, power, heat)
    fitted = power.mean() + found.power_per_tpc_w * (n - n.mean())
    left_out = _left_out(n.astype(np.float64), power)
    shown = []
    for k, count in enumerate(found.active_tpcs.tolist()):
        own = n == count
        cells = (count, int(own.sum()), found.power_w[k], found.temperature_c[k], fitted[own][0],
                 np.abs(left_out[own]).max())  # fmt: skip
        shown.append(dict(zip(EFFECT, cells, strict=True)))
    away = heat - heat.mean()
    line = power.mean() + found.power_per_degree_w * away
    notes = _effect_notes(rows, found, left_out, power, power - line, away)
    order = np.argsort(heat)
    series: list[dict[str, Any]] = [
        {"name": f"{count} active clusters", "x": heat[n == count], "y": power[n == count], "points": True}
        for count in found.active_tpcs.tolist()
    ]
    series.append({"name": "line", "x": heat[order], "y": line[order]})
    figure = {"title": "Power against temperature", "x": "temperature (degC)", "y": "power (W)", "series": series}
    return Answer(shown, EFFECT, notes, figure)


def _effect_notes(rows: Any, found: Any, left_out: Any, power: Any, rest: Any, away: Any) -> list[str]:
    """Say what a cluster and a degree cost, how well clusters predict the power, and which configuration is best."""
    import numpy as np

    from profsvc.formulas.numerics.distributions import student_quantile

    coolest = min(rows, key=lambda row: row["temperature"])
    notes = []
    if np.isfinite(found.power_per_tpc_w):
        notes.append(f"{float(found.power_per_tpc_w):.4g} W per further active cluster")
    freedom = power.size - 2
    if np.isfinite(found.power_per_degree_w) and freedom > 0:
        reach = student_quantile(0.975, freedom) * np.sqrt(np.sum(rest**2) / freedom / np.sum(away**2))
        notes.append(
            f"{float(found.power_per_degree_w):.4g} +- {reach:.2g} W/degC across the configurations (95 %), "
            f"correlation {float(found.correlation):.3f}; it is no temperature coefficient, as the clusters change too"
        )
    if not notes:
        notes.append("no slope: the configurations have one number of clusters, or are fewer than three")
    notes.append(
        f"power ranges over {float(found.power_range_w):.4g} W, temperature over "
        f"{float(found.temperature_range_c):.3g} degC"
    )
    if np.isfinite(left_out).any():
        mean = (power.sum() - power) / (power.size - 1)
        notes.append(
            f"left out of the fit, configurations are predicted within {np.nanmean(np.abs(left_out)):.2g} W on "
            f"average, {np.nanmax(np.abs(left_out)):.2g} W at worst; the mean of the others within "
            f"{np.abs(mean - power).mean():.2g} W"
        )
    least = min(rows, key=lambda row: row["power"])
    return [*notes, f"least power: {least['cores']}; least temperature: {coolest['cores']}"]


def _left_out(n: Any, power: Any) -> Any:
    """Return predicted minus measured power of each configuration, left out of the line over the clusters."""
    import numpy as np

    errors = np.full(power.size, np.nan)
    for k in range(power.size):
        others = np.arange(power.size) != k
        if np.unique(n[others]).size > 1:
            slope, base = np.polyfit(n[others], power[others], 1)
            errors[k] = base + slope * n[k] - power[k]
    return errors


TPCS = Input("tpcs", "Clusters (TPCs) of the device; SM k is in cluster k mod this", "integer", default="7", minimum=1,
             maximum=10_000)  # fmt: skip
CALCULATORS = (
    Calculator(
        name="placement",
        title="Placement of active SMs",
        question="Which SMs should run a kernel so that power and the hot spot are least?",
        source="Hong2012, sections 4.5.2, 4.6.2 and 4.7",
        inputs=(
            Input("active", "How many SMs are active", "integer", default="4", minimum=1),
            Input("options", "Instead of all choices: some, such as 0-7-1-8,0-1-2-3", "text", default=""),
            Input("sms", "SMs of the device", "integer", default="14", minimum=1, maximum=1000),
            TPCS,
            Input("kernel", "computation: few clusters, far apart; memory: many clusters", "choice",
                  default="computation", choices=("computation", "memory")),
            Input(
                "plan", "Floor plan: the centre of each cluster", "table", default="",
                columns=(
                    Input("tpc", "Number of the cluster", "integer", minimum=0),
                    Input("x", "Position", unit="mm"), Input("y", "Position", unit="mm"),
                ),
            ),
        ),
        answer=placement,
        examples=(
            Example("The nine configurations of table 12, of 2 to 4 clusters as the source estimates.",
                    {"options": "0-7-1-8,4-11-6-13,2-9-5-12,4-11-0-1,3-10-5-6,6-7-8-9,10-11-12-13,2-3-4-5,0-1-2-3"}),
            Example("All choices of four SMs on an assumed floor plan of two rows.", {"active": "4", "plan": TWO_ROWS}),
        ),
        functions=("power.placement.rank_placements", "power.placement.tpc_of_core"),
        accuracy="table 12 of the source: its three configurations of two clusters are those of least power",
        has_figure=True,
    ),
    Calculator(
        name="one-block",
        title="Check of one block per SM",
        question="Did each SM run one block, so that the number of blocks sets the number of active SMs?",
        source="Hong2012, section 4.4.1",
        inputs=(
            Input("time", "Time with as many blocks as SMs", unit="s", above=0),
            Input("time_more", "Time with one more block", unit="s", above=0),
            Input("tolerance", "Allowed distance of the ratio from 2", default="0.1", minimum=0, maximum=1),
        ),
        answer=one_block,
        examples=(Example("The time is doubled, as the source reports.", {"time": "1.2", "time_more": "2.38"}),),
        functions=("power.placement.verify_one_block_per_sm",),
        accuracy="a check of two measured times: no prediction to be wrong",
    ),
    Calculator(
        name="tpc-effect",
        title="Power of active clusters",
        question="What does a further active cluster cost, and how do power and temperature go together?",
        source="Hong2012, table 12 and figure 91",
        inputs=(
            Input(
                "table", "Configurations with the same number of active SMs", "table", maximum=500,
                columns=(
                    Input("cores", "Active SMs by number, such as 0-7-1-8", "text"),
                    Input("power", "Mean power", unit="W"),
                    Input("temperature", "Mean temperature", unit="degC"),
                ),
            ),
            TPCS,
        ),
        answer=tpc_effect,
        examples=(Example("Table 12: four active SMs of an 8800GT.", {"table": TABLE_12}),),
        functions=("power.placement.tpc_effect", "power.placement.tpc_of_core"),
        accuracy="table 12, each configuration left out: 0.60 W on average, 1.4 W at worst; mean of the others 3.7 W",
        has_figure=True,
    ),
)  # fmt: skip
