"""``load-balance``: how evenly SMs and their warp slots are used, from a number per SM."""

from profsvc.errors import UsageError
from profsvc.views.calculators.declaration import QUANTITIES, Answer, Calculator, Example, Input, Values, quantity

COLUMNS = (
    Input("active_cycles", "Cycles in which the SM was not idle", minimum=0),
    Input("active_warps", "Active warps, summed over these cycles", default="", minimum=0),
)


def load_balance(values: Values) -> Answer:
    """Return both criteria of load balance, with the speedup of each."""
    import numpy as np

    from profsvc.formulas.criteria.balance import load_balance_sm, load_balance_warp

    table = values["table"]
    cycles = np.array([row["active_cycles"] for row in table])
    if not cycles.any():
        raise UsageError("active_cycles: no SM was active")
    if values["elapsed"] is not None and values["elapsed"] < cycles.max():
        raise UsageError(f"elapsed: {values['elapsed']:g} cycles are fewer than the {cycles.max():g} of an SM")
    found = load_balance_sm(cycles, values["elapsed"])
    busiest = int(np.argmax(cycles)) + 1
    rows = [
        quantity("load_balance_sm", float(found.value), "1", "average / maximum of the SMs' active cycles"),
        quantity("speedup_sm", float(found.speedup), "1", "with all SMs equally busy"),
        quantity("busiest_sm", busiest, "row", f"{cycles.max():g} cycles; {int((cycles == 0).sum())} SMs never worked"),
    ]
    warps = [row["active_warps"] for row in table]
    notes = []
    if any(one is None for one in warps):
        notes.append("without active_warps of every SM the balance of warps is not known")
    elif values["block"] is None or values["blocks_per_sm"] is None:
        notes.append("give block and blocks_per_sm for the balance of warps")
    else:
        of_warps = load_balance_warp(warps, cycles, values["block"], values["blocks_per_sm"], values["idle"])
        rows += [
            quantity("load_balance_warp", float(of_warps.value), "1", "active warps / warps that fit"),
            quantity("speedup_warp", float(of_warps.speedup), "1", "with all warp slots taken, in the idle share"),
        ]
    if values["elapsed"] is None:
        notes.append("without elapsed cycles, speedup_sm takes the whole time as affected: an upper limit")
    return Answer(rows, QUANTITIES, notes)


SMS = """active_cycles,active_warps
100,2400
100,800
100,1600
60,480
"""
CALCULATORS = (
    Calculator(
        name="load-balance",
        title="Load balance of SMs and warps",
        question="How evenly are the SMs and their warp slots used, from the counters of each SM?",
        source="FineGrained2016, sections IV-D and IV-E",
        inputs=(
            Input("table", "One row per SM, as with ncu --print-metric-instances values", "table", columns=COLUMNS),
            Input("elapsed", "Elapsed cycles of the kernel", default="", above=0),
            Input("block", "Threads per block", "integer", default="", minimum=1, maximum=4096),
            Input("blocks_per_sm", "Blocks that fit on an SM", "integer", default="", minimum=1),
            Input("idle", "Idle share of the cycles, which more warps can fill", default="1", minimum=0, maximum=1),
        ),
        answer=load_balance,
        examples=(
            Example("Four SMs, of which one ends early.",
                    {"table": SMS, "elapsed": "200", "block": "256", "blocks_per_sm": "4", "idle": "0.5"}),
        ),
        functions=("criteria.balance.load_balance_sm", "criteria.balance.load_balance_warp"),
        accuracy="ratios of counters: no prediction to be wrong",
    ),
)  # fmt: skip
