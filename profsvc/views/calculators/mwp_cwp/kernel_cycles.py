"""``kernel cycles``: cycles of a described kernel, with instruction classes, diverged paths, independent requests."""

from typing import Any

from profsvc.errors import UsageError
from profsvc.views.calculators.declaration import Answer, Calculator, Example, Input, Values

COLUMNS = ("warps", "instructions", "M_Factor", "acting_warps", "MWP", "CWP", "limited_by", "cycles", "CPI", "time_us")
KERNEL = (
    Input("coalesced", "Coalesced memory instructions of a warp", default="0", minimum=0),
    Input("uncoalesced", "Uncoalesced memory instructions of a warp", default="0", minimum=0),
    Input("independent", "Of both, those that need not wait for an earlier one", default="0", minimum=0),
    Input("barriers", "Barriers of a warp", default="0", minimum=0),
    Input("threads_per_block", "Threads of a block", "integer", minimum=1),
    Input("blocks", "Blocks of the grid", "integer", minimum=1),
    Input("blocks_per_sm", "Blocks resident on an SM; several values are compared", "numbers", minimum=1),
)
DEVICE = (
    Input("sms", "SMs that work", "integer", minimum=1),
    Input("lanes", "Lanes of an SM", default="8", above=0),
    Input("clock_mhz", "SM clock", unit="MHz", above=0),
    Input("bandwidth_gb_per_s", "DRAM bandwidth", unit="GB/s", above=0),
    Input("latency_cycles", "Round trip of a transaction", above=0),
    Input("coalesced_delay_cycles", "Delay between two coalesced transactions", above=0),
    Input("uncoalesced_delay_cycles", "Delay between two uncoalesced transactions", above=0),
    Input("uncoalesced_transactions", "Transactions of an uncoalesced request", default="32", minimum=1),
    Input("request_bytes", "Bytes of a request", unit="B", default="128", above=0),
)
BLOCK = (
    Input("instructions", "Computation instructions of the basic block", minimum=0),
    Input("operations_per_cycle", "Operations of their class that an SM finishes in a cycle; default: its lanes",
          default="", above=0),
    Input("paths", "Paths of the warp's threads through the block, such as [1, 2]; default: all", "numbers",
          default=""),
)  # fmt: skip
CASES = {1: "too few warps", 2: "memory", 3: "computation"}


def kernel_cycles(values: Values) -> Answer:
    """Return the cycles for each number of resident blocks."""
    import numpy as np

    from profsvc.formulas.mwp_cwp import (
        divergent_instructions,
        exec_cycles,
        independent_warps,
        m_factor,
        mean_m_factor,
    )
    from profsvc.views.calculators.values import section_of

    document = values["description"]
    kernel, device = section_of(document, "kernel", KERNEL), section_of(document, "device", DEVICE)
    blocks = _blocks(document)
    lanes = device["lanes"]
    factors = m_factor([one["operations_per_cycle"] or lanes for one in blocks], lanes).value
    uses, count = _paths(blocks)
    executed = np.array([one["instructions"] for one in blocks])
    taken = np.array([any(path[place] for path in uses) for place in range(len(blocks))])
    comp = float(divergent_instructions(uses, executed).value)
    mean = float(mean_m_factor(executed * taken, factors).value)
    memory = kernel["coalesced"] + kernel["uncoalesced"]
    if kernel["independent"] > memory:
        raise UsageError(f"[kernel] independent: {kernel['independent']:g} of {memory:g} memory instructions")
    resident = np.array(kernel["blocks_per_sm"])
    warps = resident * np.ceil(kernel["threads_per_block"] / 32)
    acting = independent_warps(warps, memory, kernel["independent"]).value
    found = exec_cycles(
        n_comp=comp, n_coal=kernel["coalesced"], n_uncoal=kernel["uncoalesced"], n_sync=kernel["barriers"],
        threads_per_block=kernel["threads_per_block"], blocks=kernel["blocks"], active_blocks_per_sm=resident,
        active_sms=device["sms"], Mem_LD=device["latency_cycles"], dep_coal=device["coalesced_delay_cycles"],
        dep_uncoal=device["uncoalesced_delay_cycles"], uncoal_per_mw=device["uncoalesced_transactions"],
        load_bytes_per_warp=device["request_bytes"], freq=device["clock_mhz"] * 1e6,
        bandwidth=device["bandwidth_gb_per_s"] * 1e9, M_Factor=mean, issue_cycles=32 / lanes,
        N_pw=acting if kernel["independent"] else None,
    )  # fmt: skip
    columns = (warps, np.full(warps.shape, comp + memory), np.full(warps.shape, mean), acting, found.MWP, found.CWP,
               [CASES.get(int(case), "unknown") for case in np.broadcast_to(found.case, warps.shape)],
               found.cycles_with_sync, found.CPI, found.cycles_with_sync / device["clock_mhz"])  # fmt: skip
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in zip(*map(np.ravel, columns), strict=True)]
    longest = max(sum(n for n, used in zip(executed, path, strict=True) if used) for path in uses)
    notes = [f"{count} paths diverge: the warp issues {comp:g} instructions, its longest path has {longest:g}"]
    return Answer(rows, COLUMNS, notes if count > 1 else ())


def _blocks(document: dict[str, Any]) -> list[dict[str, Any]]:
    from profsvc.views.calculators.values import section_of

    given = document.get("block", [])
    if unknown := sorted(set(document) - {"kernel", "device", "block"}):
        raise UsageError(f"unknown section {unknown[0]!r}; there is kernel, device and [[block]]")
    if not isinstance(given, list) or not given:
        raise UsageError("description: write the computation instructions as one or more [[block]]")
    return [section_of({"block": one}, "block", BLOCK) for one in given]


def _paths(blocks: list[dict[str, Any]]) -> tuple[list[list[bool]], int]:
    """Return which path runs through which block, and how many paths there are."""
    names = sorted({path for one in blocks for path in one["paths"] or ()})
    if not names:
        return [[True] * len(blocks)], 1
    return [[one["paths"] is None or name in one["paths"] for one in blocks] for name in names], len(names)


FIGURE_29 = """[kernel]
coalesced = 2
independent = 1
threads_per_block = 128
blocks = 160
blocks_per_sm = [1, 2, 4]

[device]
sms = 16
clock_mhz = 1350
bandwidth_gb_per_s = 86.4
latency_cycles = 420
coalesced_delay_cycles = 4
uncoalesced_delay_cycles = 10

[[block]]
instructions = 9

[[block]]
instructions = 1
operations_per_cycle = 2
"""
DIVERGED = FIGURE_29.partition("[[block]]")[0].replace("independent = 1\n", "") + "".join(
    f"[[block]]\ninstructions = 1\npaths = {paths}\n\n"
    for paths in ([1, 2, 3], [1, 2], [3], [1], [2], [1, 2], [1, 2, 3])
)
CALCULATORS = (
    Calculator(
        name="kernel cycles",
        title="Cycles of a described kernel by memory and computation warps",
        question="How many cycles does a kernel take that is described by its instructions, and what limits it?",
        source="Hong2012, sections 2.3 to 2.6, equations 5 to 30",
        inputs=(Input("description", "Sections kernel, device and [[block]] of the computation instructions",
                      "document"),),
        answer=kernel_cycles,
        examples=(
            Example("Nine additions and a division (factor 4 of table 6, mean 1.3) with two independent loads on a "
                    "GeForce 8800 GTX; four warps act as eight (figure 28).", {"description": FIGURE_29}),
            Example("The three paths of figure 29 through seven blocks: the warp issues 7 instructions.",
                    {"description": DIVERGED}),
        ),
        functions=("mwp_cwp.m_factor", "mwp_cwp.mean_m_factor", "mwp_cwp.divergent_instructions",
                   "mwp_cwp.independent_warps", "mwp_cwp.exec_cycles"),
        accuracy="13.3 % of CPI on the Merge benchmarks, as printed in the source; for profiled launches see the model "
                 "mwp_cwp",
    ),
)  # fmt: skip
