"""``fit memory``: latency and departure delays of the memory of a device, from micro-benchmarks."""

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

COUNTS = ("n_comp", "n_coal", "n_uncoal", "M_Factor")
LAUNCH = ("threads_per_block", "blocks", "active_blocks_per_sm", "active_sms")
MEANING = {
    "Mem_LD": "round trip of one transaction",
    "dep_uncoal": "delay between two uncoalesced transactions",
    "dep_coal": "delay between two coalesced transactions",
}


def fit_memory(values: Values) -> Answer:
    """Return the three parameters with their standard errors."""
    import numpy as np

    from profsvc.formulas.mwp_cwp import fit_memory_parameters

    rows = values["benchmarks"]
    given = {name: np.array([row[name.lower()] for row in rows]) for name in ("cpi", *COUNTS, *LAUNCH)}
    machine = {
        "uncoal_per_mw": values["uncoal_per_mw"],
        "load_bytes_per_warp": values["request_bytes"],
        "freq": values["clock"] * 1e6,
        "bandwidth": values["bandwidth"] * 1e9,
        "issue_cycles": values["issue_cycles"],
    }
    counts, launch = ({name: given[name] for name in names} for names in (COUNTS, LAUNCH))
    fit = fit_memory_parameters(given["cpi"], counts, launch, machine)
    if np.isnan(fit.Mem_LD):
        raise UsageError("benchmarks: fewer than three can be used; give three with memory instructions")
    names = [*MEANING]
    found = [
        quantity(name, float(value), "cycle", f"{MEANING[name]}; standard error {_percent(error)}")
        for name, value, error in zip(
            names, (fit.Mem_LD, fit.dep_uncoal, fit.dep_coal), fit.relative_errors, strict=True
        )
    ]
    found.append(quantity("error of CPI", float(fit.residual), "1", "root mean square of ln(predicted / measured)"))
    found.append(quantity("condition", float(fit.condition), "1", "above 10000 the benchmarks cannot tell all three"))
    notes = []
    if not fit.condition < 1e4:
        notes.append("the benchmarks cannot tell all three parameters: add runs with few warps, and scattered accesses")
    notes += [
        f"{name} is known only within {_percent(error)}: it changes little in these benchmarks"
        for name, error in zip(names, fit.relative_errors, strict=True)
        if error > 1
    ]
    return Answer(found, QUANTITIES, notes)


def _percent(share: float) -> str:
    return "unknown" if share != share else f"{share:.2g}" if share > 10 else f"{share:.1%}"


LOOPS = """cpi,n_comp,n_coal,n_uncoal,threads_per_block,blocks,active_sms
27.56,17,1,0,32,16,16
33.24,27,2,0,32,16,16
43.14,59,6,0,32,16,16
44.56,17,0,1,32,16,16
54.34,27,0,2,32,16,16
71.38,59,0,6,32,16,16
6.94,17,1,0,256,16,16
5.91,27,2,0,256,16,16
5.98,59,6,0,256,16,16
18.92,17,0,1,256,16,16
22.64,27,0,2,256,16,16
29.73,59,0,6,256,16,16
5.47,17,1,0,512,16,16
4.91,27,2,0,512,16,16
4.41,59,6,0,512,16,16
18.35,17,0,1,512,16,16
22.35,27,0,2,512,16,16
29.63,59,0,6,512,16,16
"""
CALCULATORS = (
    Calculator(
        name="fit memory",
        title="Memory parameters of a device from micro-benchmarks",
        question="Which memory latency and departure delays make the MWP-CWP model fit measured micro-benchmarks?",
        source="Hong2012, section 2.5.1",
        inputs=(
            Input(
                "benchmarks",
                "Micro-benchmarks, some with few warps and some with scattered accesses",
                "table",
                maximum=100,
                columns=(
                    Input("cpi", "Measured cycles per warp instruction", above=0),
                    Input("n_comp", "Computation instructions of a warp", minimum=0),
                    Input("n_coal", "Coalesced memory instructions of a warp", minimum=0),
                    Input("n_uncoal", "Uncoalesced memory instructions of a warp", minimum=0),
                    Input("m_factor", "Issue cost of a computation instruction, relative", default="1", above=0),
                    Input("threads_per_block", "Threads of a block", minimum=1),
                    Input("blocks", "Blocks of the grid", minimum=1),
                    Input("active_blocks_per_sm", "Blocks resident on an SM", default="1", minimum=1),
                    Input("active_sms", "SMs that work", minimum=1),
                ),
            ),
            Input("clock", "SM clock", unit="MHz", above=0),
            Input("bandwidth", "DRAM bandwidth", unit="GB/s", above=0),
            Input("uncoal_per_mw", "Transactions of an uncoalesced request", default="32", minimum=1),
            Input("request_bytes", "Bytes of a request", unit="B", default="128", above=0),
            Input("issue_cycles", "Cycles to issue a warp instruction", default="4", above=0),
        ),
        answer=fit_memory,
        examples=(
            Example("Loops of table 3 with the cycles that the parameters of table 5 give a GeForce 8800 GTX.",
                    {"benchmarks": LOOPS, "clock": "1350", "bandwidth": "86.4"}),
        ),
        functions=("mwp_cwp.fit_memory_parameters",),
        accuracy="on the micro-benchmarks of the source 5.4 % of CPI, as printed there",
    ),
)  # fmt: skip
