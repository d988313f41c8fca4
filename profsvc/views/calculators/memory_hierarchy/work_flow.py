"""``work-flow``: cycles of an average warp and of all warps of an SM, from the work-flow graph of a kernel."""

from typing import TYPE_CHECKING, Any

from profsvc.errors import UsageError, counted
from profsvc.views.calculators.declaration import Answer, Calculator, Example, Input, Values

if TYPE_CHECKING:
    from profsvc.analysis.models.work_flow import Description

WARPS = ("warps", "cycles_of_a_warp", "cycles", "bound", "balance", "data_stall_cycles", "bank_conflict_cycles",
         "divergence_cycles")  # fmt: skip
NODES = ("node", "kind", "visits", "instructions", "issue_cycles", "bank_conflict_cycles", "gap_cycles", "issue_share")
BOUNDS = ("issue", "latency", "bandwidth")
KINDS = ("entry", "exit", "computation", "global", "shared", "barrier")


def work_flow(values: Values) -> Answer:
    """Return the cycles for each number of warps, or visits and costs of each node."""
    from profsvc.analysis.models.work_flow import read_description

    described = read_description(values["graph"])
    machine = dict(described.machine)
    machine["memory_latency_cycles"] *= values["latency"]
    machine["bytes_per_cycle"] *= values["bandwidth"]
    described = described._replace(machine=machine)
    return _nodes(described) if values["show"] == "nodes" else _warps(described, values["warps"])


def _warps(described: "Description", warps: Any) -> Answer:
    import numpy as np

    from profsvc.formulas.memory_hierarchy.work_flow import wfg_evaluate

    m = described.machine

    def at(number: Any) -> Any:
        return wfg_evaluate(described.graph, number, m["memory_latency_cycles"], m["bytes_per_cycle"],
                            m["transaction_bytes"], m["issue_cycles"], m["pipe_latency_cycles"],
                            m["independent_instructions"])  # fmt: skip

    number = np.array(warps)
    flow = at(number)
    if np.isnan(flow.T_W).any():
        raise UsageError("graph: no warp reaches the exit, because a loop has no end; give trips, or a way out of it")
    alone = np.broadcast_to(flow.T_1, number.shape)
    columns = (number, alone, flow.T_W, [BOUNDS[b] for b in flow.bound], flow.balance, *flow.stalls.T)
    rows = [dict(zip(WARPS, row, strict=True)) for row in zip(*columns, strict=True)]
    scan = np.unique(np.geomspace(1, max(number.max(), 2), 60).round())
    curve = at(scan)
    full = np.flatnonzero(curve.bound != BOUNDS.index("latency"))
    notes = ["balance is computation over memory time: 1 where the kernel is balanced, below 1 where memory is slower"]
    notes.append(
        f"the latency is hidden from {counted(format(scan[full[0]], 'g'), 'warp')} on; "
        f"then {BOUNDS[curve.bound[full[0]]]} sets the time"
        if full.size
        else f"{scan[-1]:g} warps do not hide the latency"
    )
    marks = [{"x": scan[full[0]], "label": "latency hidden"}] if full.size else []
    figure = {"title": "Cycles of the warps of an SM", "x": "resident warps", "y": "cycles", "log": "xy",
              "series": [{"name": "all warps", "x": scan, "y": curve.T_W},
                         {"name": "one warp", "x": scan, "y": np.broadcast_to(curve.T_1, scan.shape)}],
              "marks": marks}  # fmt: skip
    return Answer(rows, WARPS, notes, figure)


def _nodes(described: "Description") -> Answer:
    import numpy as np

    from profsvc.formulas.memory_hierarchy.work_flow import wfg_costs, wfg_visits

    graph, m = described.graph, described.machine
    visits = wfg_visits(graph.src, graph.dst, graph.prob, len(described.names)).value
    if np.isnan(visits).any():
        raise UsageError("graph: no warp reaches the exit, because a loop has no end; give trips, or a way out of it")
    costs = wfg_costs(graph, 1, m["issue_cycles"], m["pipe_latency_cycles"], m["independent_instructions"])
    issued = visits * costs.issue
    kinds = [KINDS[kind] for kind in np.asarray(graph.kind)]
    columns = (described.names, kinds, visits, np.asarray(graph.n_insts), costs.issue, costs.conflicts, costs.gap,
               issued / max(issued.sum(), 1e-300))  # fmt: skip
    rows = [dict(zip(NODES, row, strict=True)) for row in zip(*columns, strict=True)]
    notes = [
        f"cycles are those of a visit; a warp issues for {issued.sum():.4g} cycles; alone it also waits "
        f"{visits @ costs.gap:.4g} cycles for earlier instructions"
    ]
    return Answer(rows, NODES, notes)


LOAD_AND_USE = """[machine]
memory_latency_cycles = 100
bytes_per_cycle = 128

[node.load]
kind = "global"

[node.use]
kind = "computation"
instructions = 9
uses = ["load"]
"""
TILES = """[machine]
memory_latency_cycles = 400
bytes_per_cycle = 8
pipe_latency_cycles = 24
issue_cycles = 4

[node.index]
kind = "computation"
instructions = 6

[node.tile]
kind = "global"
instructions = 2

[node.store_tile]
kind = "shared"
instructions = 2
uses = ["tile"]

[node.full]
kind = "barrier"
cycles = 20

[node.read_tile]
kind = "shared"
instructions = 32
bank_conflict_degree = 2

[node.multiply]
kind = "computation"
instructions = 16

[node.free]
kind = "barrier"
cycles = 20
loop_to = "tile"
trips = 64

[node.edge]
kind = "computation"
instructions = 4
next = { result = 1.0, correction = 0.5 }

[node.correction]
kind = "computation"
instructions = 10
next = "exit"

[node.result]
kind = "global"
instructions = 1
next = "exit"
"""
CALCULATORS = (
    Calculator(
        name="work-flow",
        title="Work-flow graph of a kernel",
        question="How many cycles does an average warp take, what stalls it, and how many warps hide it?",
        source="Kim2012, sections 4.2.1 and 4.2.2, after Baghsorkhi2010",
        inputs=(
            Input("graph", "Nodes, ways between them, and the machine", "document"),
            Input("warps", "Resident warps of an SM", "numbers", default="1,2,4,8,16,32,64", minimum=1),
            Input("latency", "Factor of the memory latency", default="1", above=0),
            Input("bandwidth", "Factor of the bandwidth", default="1", above=0),
            Input("show", "What the rows are", "choice", default="warps", choices=("warps", "nodes")),
        ),
        answer=work_flow,
        examples=(
            Example("A load of 100 cycles and nine instructions that need it: 110 cycles until 11 warps hide it.",
                    {"graph": LOAD_AND_USE, "warps": "1,8,11,20"}),
            Example("Tiles of a matrix product: visits and costs of each node.", {"graph": TILES, "show": "nodes"}),
        ),
        functions=tuple(f"memory_hierarchy.work_flow.{name}" for name in ("wfg_visits", "wfg_costs", "wfg_evaluate")),
        accuracy="the same graph from counters (profsvc graph RUN --show warps), 34 launches of an H200: factor 1.19 "
        "in the median, 3.3 at worst",
        has_figure=True,
    ),
)  # fmt: skip
