"""``instruction-power``: power of a kernel on a GTX280 or GTX580 from its instructions, unit by unit."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from profsvc.errors import NotFoundError, UsageError
from profsvc.views.calculators.declaration import Answer, Calculator, Example, Input, Values

COLUMNS = ("unit", "accesses", "access_rate", "effective_rate", "max_power_w", "per", "power_w")


class Board(NamedTuple):
    """What the source says of a device beside the power of its units."""

    sms: int
    idle_w: float
    law: str
    issue_cycles: float


BOARDS = {"GTX280": Board(30, 83.0, "log", 4.0), "GTX580": Board(16, 27.0, "linear", 1.0)}


def instruction_power(values: Values) -> Answer:
    """Return the power of each unit; the sums stand in the notes."""
    import numpy as np

    from profsvc import specs
    from profsvc.formulas.power import component_power as formulas

    board, units = BOARDS[values["device"]], specs.components(values["device"])
    form, idle = values["form"], board.idle_w if values["idle"] is None else values["idle"]
    sms = board.sms if values["sms"] is None else values["sms"]
    if sms > board.sms:
        raise UsageError(f"sms is {sms}, but a {values['device']} has {board.sms}")
    counts, given = _counts_and_rates(values["table"], [unit.name for unit in units], form)
    accesses = np.zeros(len(units))
    rates = np.array([1.0 if unit.always_on else given.get(unit.name, 0.0) for unit in units])
    if counts:
        kinds = specs.instruction_units(form)
        touches = [[unit.name in kinds[name] for unit in units] for name in counts]
        accesses = formulas.accesses(list(counts.values()), touches).value
        warps, cycles = _launch(values, sms, form)
        found = formulas.access_rate(accesses, warps, cycles, board.issue_cycles).value
        rates = np.where((accesses > 0) & ~np.isin([unit.name for unit in units], list(given)), found, rates)
    special, per_sm = [unit.special for unit in units], [unit.per_sm for unit in units]
    watts = [unit.max_power_w for unit in units]
    law = board.law if values["law"] == "device" else values["law"]
    power = formulas.runtime_power(rates, watts, special, per_sm, sms, board.sms, law=law, form=form)
    effective = np.where(special, formulas.special_linear(rates, form).value, rates)
    every = formulas.component_power(np.clip(effective, 0, 1), np.where(per_sm, board.sms, 1), watts, 0.0, idle).value
    rows = [
        {"unit": unit.name, "accesses": accesses[k] if counts else None, "access_rate": rates[k],
         "effective_rate": effective[k], "max_power_w": unit.max_power_w, "per": "SM" if unit.per_sm else "board",
         "power_w": power.breakdown_w[k]}
        for k, unit in enumerate(units)
    ]  # fmt: skip
    total = formulas.gpu_power(power.total_w, idle).value
    notes = [
        f"power above idle: {float(power.total_w):.2f} W; of the board: {float(total):.2f} W with {idle:g} W idle",
        f"{law} law: {sms} of {board.sms} SMs draw {float(power.factor):.3f} of the power of all SMs",
        f"all {board.sms} SMs at these rates: {float(every):.2f} W",
    ]
    over = [unit.name for unit, rate in zip(units, rates, strict=True) if rate > 1]
    if over:
        notes.append(f"access rates above 1: {', '.join(over)}; check cycles and instruction counts")
    return Answer(rows, COLUMNS, notes)


def _counts_and_rates(
    rows: Sequence[Mapping[str, Any]], units: Sequence[str], form: str
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the counts of instructions and the rates of units that a table names."""
    from profsvc import specs

    counts: dict[str, float] = {}
    rates: dict[str, float] = {}
    kinds = specs.instruction_units(form)
    for row in rows:
        name, of_instruction = str(row["name"]), row["count"] is not None
        if of_instruction == (row["rate"] is not None):
            raise UsageError(f"{name!r} needs either a count (an instruction) or a rate (a unit)")
        known = kinds if of_instruction else units
        if name not in known:
            what = "PTX instruction" if of_instruction else "unit"
            raise UsageError(str(NotFoundError.near(what, name, known)))
        if name in counts or name in rates:
            raise UsageError(f"{name!r} occurs twice")
        (counts if of_instruction else rates)[name] = row["count"] if of_instruction else row["rate"]
    return counts, rates


def _launch(values: Values, sms: int, form: str) -> tuple[float, float]:
    """Return the warps of an SM and the cycles of the launch; refuse counts without them."""
    from profsvc.formulas.power.component_power import warps_per_sm

    missing = [name for name in ("threads", "blocks", "cycles") if values[name] is None]
    if missing:
        raise UsageError(f"counts of instructions need {', '.join(missing)}; or give the rates of units")
    warps = warps_per_sm(values["threads"], values["blocks"], sms, form=form).value
    return float(warps), float(values["cycles"])


TABLE = (
    Input("name", "PTX instruction of table 7, such as mad_fp, or unit, such as FP", "text"),
    Input("count", "Instructions that one warp executes", default="", minimum=0),
    Input("rate", "Access rate of the unit, 0 to 1", default="", minimum=0, maximum=1),
)
ALL_ON = "name,rate\nFP,1\nREG,1\nALU,1\nSFU,1\nINT,1\nFDS,1\nShared,1\nTexture,1\nConstant,1\n"
ONE_SM = "name,rate\nFP,1\nREG,1\nFDS,1\n"
MADD = "name,count\nld_global,1000\nadd_fp,1000\nadd_int,1000\nsetp,1000\n"
CALCULATORS = (
    Calculator(
        name="instruction-power",
        title="Power of a kernel from its instructions",
        question="How much power does each unit of a GTX280 or GTX580 take for a kernel?",
        source="Hong2012, equations 32 to 48, tables 7, 8 and 11",
        inputs=(
            Input("table", "Instructions of one warp, or access rates of units", "table", columns=TABLE),
            Input("device", "Device with published power of its units", "choice", default="GTX280",
                  choices=tuple(BOARDS)),
            Input("threads", "Threads per block", "integer", default="", minimum=1),
            Input("blocks", "Blocks of the grid", "integer", default="", minimum=1),
            Input("cycles", "Cycles of the launch", default="", above=0),
            Input("sms", "Active SMs; default: all", "integer", default="", minimum=1),
            Input("idle", "Power at rest; default: 83 W of the GTX280, 27 W of the GTX580", unit="W", default="",
                  minimum=0),
            Input("law", "Power against active SMs; device: log for the GTX280, linear for the GTX580", "choice",
                  default="device", choices=("device", "log", "linear")),
            Input("form", "Formulas as repaired here or as printed", "choice", default="consistent",
                  choices=("consistent", "as_published")),
        ),
        answer=instruction_power,
        examples=(
            Example("Every unit of all SMs of a GTX280 at its full rate: 151.9 W, the sum of table 8 times 30.",
                    {"table": ALL_ON}),
            Example("One SM of a GTX580 that computes: 93.5 W by table 11; the source measured 93 W.",
                    {"table": ONE_SM, "device": "GTX580", "sms": "1"}),
            Example("A loop of a load, an addition and its address: the memory takes most of the time.",
                    {"table": MADD, "threads": "512", "blocks": "600", "cycles": "12860000"}),
        ),
        functions=(
            "power.component_power.accesses", "power.component_power.access_rate",
            "power.component_power.warps_per_sm", "power.component_power.runtime_power",
            "power.component_power.component_power",
        ),
        accuracy="printed: 8.94 % on the kernels of a GTX280, 4.64 % on those of a GTX580; not repeated, as no such "
        "board was measured",
    ),
)  # fmt: skip
